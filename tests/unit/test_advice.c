/* Advice for every reason. */
#include <criterion/criterion.h>
#include <string.h>

#include "advice.h"

Test(advice, every_reason_has_a_line_of_its_own) {
  for (int r = GS_REASON_SERVED + 1; r < GS_REASON_COUNT; r++) {
    const char *text = gs_reason_advice((gs_reason_t)r);
    cr_expect(*text, "%s has none: tools/advice.c", gs_reason_names[r]);
    cr_expect_leq(strlen(text), 130, "%s", gs_reason_names[r]);
    for (int other = GS_REASON_SERVED + 1; *text && other < r; other++)
      cr_expect_str_neq(text, gs_reason_advice((gs_reason_t)other), "%s", gs_reason_names[r]);
  }
}
