/* Inside a stand-in: what every exported function does first. */
#ifndef GS_SIM_RECORD_H
#define GS_SIM_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim.h"

typedef struct sim_function {
  const char *name;
  atomic_bool known; /* in the list, its fault looked up */
  atomic_ulong calls;
  unsigned long fail_at; /* the nth call fails; 0: none, SIM_EVERY: each */
  int fail_with;
  struct sim_function *next;
} sim_function_t;

#define SIM_EVERY (~0ul)

/* Counts and remembers a call of whoever the address is in; returns the status to return at once, or 0. */
int sim_enter(sim_function_t *function, const void *caller, int count, const uint64_t *args);
bool sim_nocompute(void);
bool sim_times_only(void);             /* SIM_NOCOMPUTE=times */
bool sim_launches_by(const char *how); /* SIM_LAUNCH */

/* What SIM_US, SIM_HOST_US and SIM_WRONG say of a kernel or a function. */
typedef struct {
  double us, host_us, wrong;
  bool is_wrong, last_only;
  char zeros[2]; /* as in product_t */
  int strays;    /* -1: a read before A, 1: one behind it */
} sim_flaw_t;
sim_flaw_t sim_flaw(const char *name);
double sim_now_us(void);
void sim_wait(double until_us);

/* Each argument as a word, by the usual deferred expansion. */
#define SIM_EXPAND(...)         SIM_EXPAND3(SIM_EXPAND3(SIM_EXPAND3(__VA_ARGS__)))
#define SIM_EXPAND3(...)        SIM_EXPAND2(SIM_EXPAND2(SIM_EXPAND2(__VA_ARGS__)))
#define SIM_EXPAND2(...)        SIM_EXPAND1(SIM_EXPAND1(SIM_EXPAND1(__VA_ARGS__)))
#define SIM_EXPAND1(...)        __VA_ARGS__
#define SIM_PARENTHESES         ()
#define SIM_WORD(argument, ...) (uint64_t)(argument) __VA_OPT__(, SIM_WORD_AGAIN SIM_PARENTHESES(__VA_ARGS__))
#define SIM_WORD_AGAIN()        SIM_WORD

#define SIM_ENTER(...)                                                                                       \
  do {                                                                                                       \
    static sim_function_t sim_function = {.name = __func__};                                                 \
    const uint64_t sim_args[] = {SIM_EXPAND(SIM_WORD(__VA_ARGS__))};                                         \
    int sim_status = sim_enter(&sim_function, __builtin_return_address(0),                                   \
                               (int)(sizeof sim_args / sizeof *sim_args), sim_args);                         \
    if (sim_status) return sim_status;                                                                       \
  } while (0)

#define SIM_EXPORT __attribute__((visibility("default")))

#endif
