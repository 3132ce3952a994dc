/* What a user can do about a reason for forwarding. */
#ifndef GS_ADVICE_H
#define GS_ADVICE_H

#include "gs_reason.h"

/* One line; "" for SERVED. */
const char *gs_reason_advice(gs_reason_t reason);

#endif
