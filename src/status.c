#include "gs_status.h"

const char *gs_status_text(gs_status_t status) {
  static const char *const texts[] = {
#define X(name, text) text,
      GS_STATUSES(X)
#undef X
  };
  return texts[status];
}
