/* Little peers for `verify --peer` on the stand-ins, where device memory is host memory. Macros make them
 * right or wrong in one way each; rules.mk lists them. */
#include <stdio.h>
#include <stdlib.h>

#ifndef PEER_SUM
#define PEER_SUM float /* what sums are kept in */
#endif
#ifndef PEER_LEAVES
#define PEER_LEAVES 0 /* which elements are not written */
#endif
#ifndef PEER_FIRST
#define PEER_FIRST /* what is done before all else */
#endif

int gemm_peer(const void *a, const void *b, const void *b_t, void *c, int m, int n, int k);

static int calls;

int gemm_peer(const void *a, const void *b, const void *b_t, void *c, int m, int n, int k) {
  const _Float16 *rows = a, *columns = b_t, *odd = b;
  _Float16 *result = c;
  calls++;
  PEER_FIRST;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      PEER_SUM sum = 0;
      for (int l = 0; l < k; l++)
        sum += (PEER_SUM)rows[(long)i * k + l] *
               (PEER_SUM)(j % 16 == 1 ? odd[(long)l * n + j] : columns[(long)j * k + l]);
      if (!(PEER_LEAVES)) result[(long)i * n + j] = (_Float16)sum;
    }
  return 0;
}
