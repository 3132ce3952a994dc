/* What `doctor` finds: one line a finding, with what to do. */
#ifndef GS_DOCTOR_H
#define GS_DOCTOR_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef enum { GS_FINE, GS_NOTE, GS_BAD } gs_state_t;

typedef struct {
  const char *topic;  /* static */
  const char *advice; /* static: what to do; "" when nothing */
  gs_state_t state;
  char *text;
} gs_finding_t;

#define GS_FINDINGS_MAX 256

typedef struct {
  gs_finding_t all[GS_FINDINGS_MAX];
  int count;
  int status;            /* the exit status: the largest of the bad findings' */
  char cublas[PATH_MAX]; /* the cuBLAS that the program or this machine would use; "" when none was found */
  int cublas_version[3]; /* 0.0.0 when unknown */
  char calls[PATH_MAX];  /* the calls that were looked at, a file or a folder; "" when none */
} gs_findings_t;

/* status is GS_EXIT_OK, or the exit status that a bad finding makes. */
__attribute__((format(printf, 5, 6))) void gs_find(gs_findings_t *found, const char *topic, int status,
                                                   const char *advice, const char *format, ...);
/* Fine, but worth knowing. */
__attribute__((format(printf, 4, 5))) void gs_note(gs_findings_t *found, const char *topic,
                                                   const char *advice, const char *format, ...);

void gs_findings_text(const gs_findings_t *found, FILE *file);
void gs_findings_print(const gs_findings_t *found, bool json);
void gs_findings_free(gs_findings_t *found);

/* Notes the cuBLAS at path with its version (from its file name, else by asking it); the first stays. */
void gs_find_cublas(gs_findings_t *found, const char *path);

void gs_doctor_machine(gs_findings_t *found);
void gs_doctor_tables(gs_findings_t *found); /* after cuBLAS was looked for */
void gs_doctor_program(gs_findings_t *found, const char *name);
/* A histogram, a folder of them, or a .calls file: verdicts, and what to do about each. */
void gs_doctor_calls(gs_findings_t *found, const char *path);
/* Writes what was found as a .tar.gz without names of host, user and folders; false: said why not. */
bool gs_doctor_bundle(const gs_findings_t *found, const char *path);
void gs_doctor_process(gs_findings_t *found, long pid);

#endif
