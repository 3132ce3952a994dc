/* Collects and prints findings; see doctor.h. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "doctor.h"
#include "json.h"

static const char *const state_names[] = {"ok", "note", "bad"};

static void add(gs_findings_t *found, const char *topic, gs_state_t state, const char *advice,
                const char *format, va_list args) {
  if (found->count == GS_FINDINGS_MAX) return;
  gs_finding_t *finding = &found->all[found->count++];
  *finding = (gs_finding_t){topic, advice, state, NULL};
  if (vasprintf(&finding->text, format, args) < 0) abort();
}

void gs_find(gs_findings_t *found, const char *topic, int status, const char *advice, const char *format,
             ...) {
  va_list args;
  va_start(args, format);
  add(found, topic, status ? GS_BAD : GS_FINE, advice, format, args);
  va_end(args);
  if (status > found->status) found->status = status;
}

void gs_note(gs_findings_t *found, const char *topic, const char *advice, const char *format, ...) {
  va_list args;
  va_start(args, format);
  add(found, topic, GS_NOTE, advice, format, args);
  va_end(args);
}

void gs_findings_text(const gs_findings_t *found, FILE *file) {
  for (int i = 0; i < found->count; i++) {
    const gs_finding_t *f = &found->all[i];
    fprintf(file, "%-4s  %-8s  %s\n", state_names[f->state], f->topic, f->text);
    if (*f->advice) fprintf(file, "%16s-> %s\n", "", f->advice);
  }
}

static void print_json(const gs_findings_t *found) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddBoolToObject(root, "healthy", found->status == 0);
  cJSON *findings = cJSON_AddArrayToObject(root, "findings");
  for (int i = 0; i < found->count; i++) {
    const gs_finding_t *f = &found->all[i];
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "topic", f->topic);
    cJSON_AddStringToObject(object, "state", state_names[f->state]);
    cJSON_AddStringToObject(object, "text", f->text);
    cJSON_AddStringToObject(object, "advice", f->advice);
    cJSON_AddItemToArray(findings, object);
  }
  gs_json_print(root);
}

void gs_findings_print(const gs_findings_t *found, bool json) {
  json ? print_json(found) : gs_findings_text(found, stdout);
}

void gs_findings_free(gs_findings_t *found) {
  for (int i = 0; i < found->count; i++) free(found->all[i].text);
}
