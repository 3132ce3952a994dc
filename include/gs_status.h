/* One status enum for the whole project; text by gs_status_text(). */
#ifndef GS_STATUS_H
#define GS_STATUS_H

#define GS_STATUSES(X)                                                                                       \
  X(OK, "ok")                                                                                                \
  X(NOMEM, "out of memory")                                                                                  \
  X(IO, "input or output failed")                                                                            \
  X(SYNTAX, "the file breaks the format")                                                                    \
  X(MISMATCH, "made for another GPU, cuBLAS or format version")                                              \
  X(NOT_FOUND, "not found")                                                                                  \
  X(DRIVER, "the CUDA driver refused")                                                                       \
  X(UNSUPPORTED, "not supported")

typedef enum {
#define X(name, text) GS_##name,
  GS_STATUSES(X)
#undef X
} gs_status_t;

const char *gs_status_text(gs_status_t status);

#endif
