/* A program without a loader, which no preload reaches. */
#include <stdio.h>

int main(void) {
  puts("static");
  return 5;
}
