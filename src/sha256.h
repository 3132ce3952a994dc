/* Floor 0. SHA-256 (FIPS 180-4), for what must be the very bytes that were meant. */
#ifndef GS_SHA256_H
#define GS_SHA256_H

#include <stddef.h>
#include <stdint.h>

void gs_sha256(const void *bytes, size_t size, uint32_t digest[8]);

#endif
