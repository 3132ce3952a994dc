/* plain CALLS [how]: calls of one shape from a program that links cuBLAS in the ordinary way; how it ends:
 * exit (the default), _exit, kill, abort. */
#include "client.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int calls = argc > 1 ? atoi(argv[1]) : 1, failed = 0, wrong = 0;
  const char *how = argc > 2 ? argv[2] : "exit";
  simple_t s = simple_open(8);
  for (int i = 0; i < calls; i++) {
    cublasStatus_t status = simple_call(&s);
    failed += status != CUBLAS_STATUS_SUCCESS;
    if (status == CUBLAS_STATUS_SUCCESS) wrong += !simple_right(&s);
    if (status) printf("status: %d\n", (int)status);
  }
  printf("failed: %d\nwrong: %d\n", failed, wrong);
  fflush(stdout);
  if (!strcmp(how, "_exit")) _exit(wrong != 0);
  if (!strcmp(how, "kill")) raise(SIGKILL);
  if (!strcmp(how, "abort")) abort();
  simple_close(&s);
  return wrong != 0;
}
