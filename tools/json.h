/* JSON is only ever written; cJSON builds it. */
#ifndef GS_JSON_H
#define GS_JSON_H

#include <cjson/cJSON.h>

/* Prints root on stdout, with a newline, and deletes it. */
void gs_json_print(cJSON *root);

#endif
