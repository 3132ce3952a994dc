#include "json.h"

#include <stdio.h>
#include <stdlib.h>

void gs_json_print(cJSON *root) {
  char *text = cJSON_Print(root);
  if (!text) abort(); /* out of memory, in a tool that has printed nothing yet */
  puts(text);
  free(text);
  cJSON_Delete(root);
}
