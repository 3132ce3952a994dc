/* shapes COUNT: that many calls, each of another n. */
#include "client.h"

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1, failed = 0;
  simple_t s = simple_open(count);
  for (s.n = 1; s.n <= count; s.n++) failed += simple_call(&s) != CUBLAS_STATUS_SUCCESS;
  printf("failed: %d\n", failed);
  return failed != 0;
}
