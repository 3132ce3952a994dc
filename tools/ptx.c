#define _GNU_SOURCE
#include "ptx.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#define PART "abcdefghijklmnopqrstuvwxyz0123456789_."

/* Tensor core instructions that keep F32 sums of 16-bit products, and what goes with them. */
static const char *const right[] = {
    "mma.sync.aligned.*.f32.f16.f16.f32",
    "mma.sync.aligned.*.f32.bf16.bf16.f32",
    "wgmma.mma_async.sync.aligned.*.f32.f16.f16",
    "wgmma.mma_async.sync.aligned.*.f32.bf16.bf16",
};
static const char *const tensor[] = {"mma.*", "wmma.mma.*", "wgmma.mma*", "tcgen05.mma*"};
/* They carry small types about, or turn them into others, and compute nothing. */
static const char *const movers[] = {"cvt.*", "mov.*", "ld.*", "st.*", "ldmatrix.*"};
static const char *const small_types[] = {"f16",  "f16x2",  "bf16",   "bf16x2", "e4m3",  "e4m3x2",
                                          "e5m2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"};
static const char *const float_types[] = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"};

#define IS_ONE(opcode, patterns) is_one(opcode, patterns, sizeof patterns / sizeof *patterns)
static bool is_one(const char *opcode, const char *const *patterns, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fnmatch(patterns[i], opcode, 0) == 0) return true;
  return false;
}

/* Whether one of the types is a part of the opcode: add.rn.f16x2. */
#define NAMES(opcode, types) names(opcode, types, sizeof types / sizeof *types)
static bool names(const char *opcode, const char *const *types, size_t count) {
  for (const char *part = strchr(opcode, '.'); part; part = strchr(part + 1, '.')) {
    size_t length = strcspn(part + 1, ".");
    for (size_t i = 0; i < count; i++)
      if (strlen(types[i]) == length && strncmp(part + 1, types[i], length) == 0) return true;
  }
  return false;
}

/* NULL, or what is wrong with the instruction. */
static const char *judge(const char *opcode, bool by_fma, int *multiplies) {
  if (by_fma && !strcmp(opcode, "fma.rn.f32")) ++*multiplies;
  if (IS_ONE(opcode, tensor)) {
    *multiplies += !by_fma;
    return IS_ONE(opcode, right) ? NULL : "its sums are not kept in F32";
  }
  if ((!strncmp(opcode, "atom.", 5) || !strncmp(opcode, "red.", 4)) && NAMES(opcode, float_types))
    return "it adds up in no fixed order";
  return NAMES(opcode, small_types) && !IS_ONE(opcode, movers) ? "it computes in 16 bits or fewer" : NULL;
}

/* Statements end with a semicolon, blocks with braces. What is in the braces of a list of registers begins with %,
 * a directive with a dot: neither is an opcode. */
bool gs_ptx_check(const char *ptx, bool by_fma, char *why, size_t size) {
  int multiplies = 0;
  for (const char *at = ptx; *at; at += strcspn(at, ";{}\n")) {
    char opcode[128];
    at += strspn(at, ";{} \t\r\n");
    if (*at == '@') at += strcspn(at, " \t;\n"), at += strspn(at, " \t"); /* under a predicate */
    if (*at == '/' && at[1] == '/') {
      at += strcspn(at, "\n");
      continue;
    }
    size_t length = strspn(at, PART);
    /* "a::b" is part of an opcode, "a:" a label. */
    while (at[length] == ':' && at[length + 1] == ':') length += 2 + strspn(at + length + 2, PART);
    if (length == 0 || *at == '.' || at[length] == ':') continue;
    snprintf(opcode, sizeof opcode, "%.*s", (int)length, at);
    const char *fault =
        length < sizeof opcode ? judge(opcode, by_fma, &multiplies) : "its opcode is not known";
    if (!fault) continue;
    snprintf(why, size, "wrong instruction %s: %s", opcode, fault);
    return false;
  }
  if (!multiplies)
    snprintf(why, size, "no %s multiplies", by_fma ? "FMA in F32" : "instruction of the tensor cores");
  return multiplies;
}
