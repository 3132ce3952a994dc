/* settings NAME=VALUE ...: sets these, as Python does long after the start, between one handle of cuBLAS and the next;
 * then takes them back. A product each of the first handle, before and after they are set; of the second, made under
 * them; of the third, made after. Prints "wrong: N". */
#include "client.h"

int main(int argc, char **argv) {
  int wrong = 0;
  simple_t first = simple_open(8);
  MUST(simple_call(&first));
  wrong += !simple_right(&first);
  for (int i = 1; i < argc; i++) MUST(putenv(argv[i]));
  MUST(simple_call(&first));
  wrong += !simple_right(&first);
  simple_t second = simple_open(8);
  MUST(simple_call(&second));
  wrong += !simple_right(&second);
  MUST(clearenv());
  simple_t third = simple_open(8);
  MUST(simple_call(&third));
  wrong += !simple_right(&third);
  printf("wrong: %d\n", wrong);
  return wrong != 0;
}
