/* forker BEFORE CHILD AFTER: calls, then a child without exec that calls, then the parent calls again. */
#include "client.h"

#include <sys/wait.h>
#include <unistd.h>

static void calls_of(int calls) {
  simple_t s = simple_open(8);
  for (int i = 0; i < calls; i++) {
    MUST(simple_call(&s));
    must(!simple_right(&s), "the result");
  }
  simple_close(&s);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int status;
  calls_of(atoi(argv[1]));
  pid_t child = fork();
  must(child < 0, "fork");
  if (child == 0) {
    calls_of(atoi(argv[2]));
    return 0;
  }
  must(waitpid(child, &status, 0) != child || status, "the child");
  calls_of(atoi(argv[3]));
  printf("child: %d\n", (int)child);
  return 0;
}
