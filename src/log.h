/* Floor 0. The log: whole lines, "gemmshim[pid]: ...", to stderr or GEMMSHIM_LOG_FILE by one write(2) each;
 * never stdio, never stdout, at most GEMMSHIM_LOG_RATE lines a second. */
#ifndef GS_LOG_H
#define GS_LOG_H

typedef enum { GS_LOG_FAULT, GS_LOG_SUMMARY, GS_LOG_CALL } gs_log_level_t;

void gs_log_open(void);   /* after gs_options_read */
void gs_log_reopen(void); /* in a forked child */
int gs_log_wants(gs_log_level_t level);
__attribute__((format(printf, 2, 3))) void gs_log(gs_log_level_t level, const char *format, ...);

#endif
