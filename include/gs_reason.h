/* Why a call was served or forwarded: one list for the log, the histogram and the tests. */
#ifndef GS_REASON_H
#define GS_REASON_H

/* name, text, explanation for people */
#define GS_REASONS(X)                                                                                        \
  X(SERVED, "served", "a tuned kernel, or a tuned algorithm of the library, computed it")                    \
  X(OFF, "off", "serving is switched off (GEMMSHIM_SERVE=0)")                                                \
  X(NOT_READY, "not_ready", "no CUDA driver with library loading (12.0 or newer) in this process")           \
  X(NO_TABLE, "no_table", "no table of tuned kernels fits this GPU")                                         \
  X(NO_ROW, "no_row", "the table has no row for this shape: run gemmshim tune")                              \
  X(UNPROVEN, "unproven", "the row was not measured on this GPU with this cuBLAS: run gemmshim requalify")   \
  X(TRIAL, "trial", "the row is on trial (GEMMSHIM_UNPROVEN=probation), and it was the library's turn")      \
  X(TRIAL_LOST, "trial_lost", "the row lost its trial in this process: the library was faster, or as fast")  \
  X(SKIPPED, "skipped", "GEMMSHIM_ONLY or GEMMSHIM_SKIP left the row out")                                   \
  X(ENTRY, "entry", "this entry point is counted and forwarded only")                                        \
  X(DEGENERATE, "degenerate", "a size is zero or negative, or an argument is invalid: cuBLAS answers")       \
  X(TYPE, "type", "no kernel family for these types or this compute type")                                   \
  X(RANGE, "range", "a size, leading dimension or batch is beyond the kernels' index range")                 \
  X(ALIGNMENT, "alignment", "a pointer or leading dimension is less aligned than the row's kernel needs")    \
  X(KERNEL, "kernel", "the row's kernel does not cover this call")                                           \
  X(SCALARS, "scalars", "alpha is 0, or a scalar is of a kind that only cuBLAS reads")                       \
  X(OVERLAP, "overlap", "the result overlaps an input or another batch entry")                               \
  X(MATH_MODE, "math_mode", "pedantic math, emulation, or an SM count target is set on the handle")          \
  X(ALGORITHM, "algorithm", "the caller asked for a particular algorithm")                                   \
  X(AUTOTUNING, "autotuning",                                                                                \
    "a second explicit algorithm came for this shape: its caller is comparing them")                         \
  X(ALGORITHM_REFUSED, "algorithm_refused", "this cuBLAS does not take the algorithm that the row names")    \
  X(ATTRIBUTE, "attribute", "a cublasLt attribute that kernels do not implement is set")                     \
  X(EPILOGUE, "epilogue", "this epilogue is not implemented by the row's kernel")                            \
  X(BATCH_INVARIANT, "batch_invariant", "the caller asked for one order of summation for every n")           \
  X(CONTEXT, "context", "the stream belongs to another CUDA context than the current one")                   \
  X(CAPTURE, "capture", "the stream's capture could not be joined")                                          \
  X(WORKSPACE, "workspace", "the workspace bound GEMMSHIM_VRAM_MB would be passed")                          \
  X(LOAD_FAILED, "load_failed", "the driver cannot load the kernel (older than the toolkit that made it?)")  \
  X(WRONG, "wrong", "GEMMSHIM_VERIFY found the row's result off; the row is retired")                        \
  X(LAUNCH_FAILED, "launch_failed", "the driver refused the launch; the row is retired")

#define X(name, ...) GS_REASON_##name,
typedef enum { GS_REASONS(X) GS_REASON_COUNT } gs_reason_t;
#undef X

extern const char *const gs_reason_names[GS_REASON_COUNT];
extern const char *const gs_reason_texts[GS_REASON_COUNT];

#endif
