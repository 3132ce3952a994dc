/* Floor 0. Hash of a few words: pairs of them multiplied with each other and the products added (the idea of
 * XXH3), so that the multiplications do not wait for one another. Never 0. A product of 0 costs a collision,
 * which comparing settles. */
#ifndef GS_HASH_H
#define GS_HASH_H

#include <stdint.h>

static inline uint64_t gs_hash_words(const uint64_t *words, unsigned count /* even */) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; i += 2) {
    uint64_t low = words[i] ^ (2 * i + 1) * 0x9e3779b97f4a7c15u;
    uint64_t high = words[i + 1] ^ (2 * i + 3) * 0x9e3779b97f4a7c15u;
    unsigned __int128 product = (unsigned __int128)low * high;
    sum += (uint64_t)product ^ (uint64_t)(product >> 64);
  }
  sum ^= sum >> 29;
  return sum ? sum : 1;
}

#endif
