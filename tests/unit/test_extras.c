/* Kernels beyond the shipped ones: their names, their files, the hash that tells them. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "extras.h"
#include "file.h"
#include "sha256.h"

Test(extras, sha256_is_that_of_the_standard) {
  static const struct {
    const char *text;
    int times;
    const char *digest;
  } cases[] = {
      {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopq"
       "rst"
       "nopqrstu",
       1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    size_t length = strlen(cases[i].text), size = length * (size_t)cases[i].times;
    char *bytes = malloc(size + 1), hex[65];
    uint32_t digest[8];
    for (int t = 0; t < cases[i].times; t++) memcpy(bytes + (size_t)t * length, cases[i].text, length);
    gs_sha256(bytes, size, digest);
    for (int w = 0; w < 8; w++) snprintf(hex + 8 * w, 9, "%08x", digest[w]);
    cr_expect_str_eq(hex, cases[i].digest);
    free(bytes);
  }
}

Test(extras, names_are_read_strictly) {
  static const char *const faulty[] = {"mma_f16_f16_tn_48x64x32_s3_w2",
                                       "mma_f16_f16_tn_48x64x32_s3_w2-",
                                       "mma_f16_f16_tn_48x64x32_s3_w2-0123456789abcde",
                                       "mma_f16_f16_tn_48x64x32_s3_w2-0123456789abcdef0",
                                       "mma_f16_f16_tn_48x64x32_s3_w2-0123456789ABCDEF",
                                       "mma_f16_f16_tn_48x64x32_s3_w2-0123456789abcde/",
                                       "mma_f16_f16_tn_47x64x32_s3_w2-0123456789abcdef",
                                       "../mma_f16_f16_tn_48x64x32_s3_w2-0123456789abcdef",
                                       "-0123456789abcdef",
                                       ""};
  gs_kernel_t kernel, same;
  uint64_t code;
  for (size_t i = 0; i < sizeof faulty / sizeof *faulty; i++)
    cr_expect_not(gs_extra_parse(faulty[i], &kernel, &code), "%s", faulty[i]);
  cr_assert(gs_extra_parse("mma_f16_f16_tn_48x64x32_s3_w2-0123456789abcdef", &kernel, &code));
  cr_assert(gs_kernel_parse("mma_f16_f16_tn_48x64x32_s3_w2", &same));
  cr_assert(!memcmp(&kernel, &same, sizeof same) && code == 0x0123456789abcdef);
}

/* Enough of a cubin to be taken for one. */
#define CUBIN_BYTES 256
static void *cubin_of(unsigned char tag) {
  Elf64_Ehdr *header = calloc(1, CUBIN_BYTES);
  memcpy(header->e_ident, ELFMAG, SELFMAG);
  header->e_machine = 190;
  ((unsigned char *)header)[200] = tag;
  return header;
}

static gs_kernel_t kernel_of(const char *id) {
  gs_kernel_t kernel;
  cr_assert(gs_kernel_parse(id, &kernel));
  return kernel;
}

Test(extras, they_are_counted_after_the_shipped_ones_and_each_once) {
  size_t size, found;
  gs_kernel_t kernel = kernel_of("mma_f16_f16_tn_48x64x32_s3_w2");
  int first = gs_extra_add(&kernel, cubin_of(1), CUBIN_BYTES),
      second = gs_extra_add(&kernel, cubin_of(2), CUBIN_BYTES);
  cr_assert_eq(first, gs_shipped_count());
  cr_assert_eq(second, first + 1, "the same kernel, other machine code");
  cr_assert_eq(gs_extra_add(&kernel, cubin_of(1), CUBIN_BYTES), first);
  cr_assert_eq(gs_kernel_count(), first + 2);
  const unsigned char *image = gs_kernel_image(second, &found);
  cr_assert(found == CUBIN_BYTES && image[200] == 2);
  cr_assert(gs_kernel_code(first) && gs_kernel_code(first) != gs_kernel_code(second));
  gs_kernel_t shipped = gs_kernel_at(0), listed = gs_shipped_at(0), extra = gs_kernel_at(first);
  cr_assert(!memcmp(&shipped, &listed, sizeof listed) && !memcmp(&extra, &kernel, sizeof kernel));
  cr_assert(gs_kernel_code(0) == 0 && gs_kernel_image(0, &found) == gs_shipped_image(0, &size) &&
            found == size);
}

static char folder[] = "/tmp/gs_extras.XXXXXX";

static void make_folder(void) {
  cr_assert(mkdtemp(folder));
}
static void remove_folder(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  cr_assert_eq(system(command), 0);
}

/* A file that is no cubin is refused though its content is the one that is named. */
Test(extras, files_are_taken_for_what_they_hold, .init = make_folder, .fini = remove_folder) {
  char table[64], path[128], why[256] = "";
  gs_kernel_t kernel = kernel_of("mma_f16_f16_tn_48x64x32_s3_w2");
  const uint64_t abc = 0xba7816bf8f01cfea;
  snprintf(table, sizeof table, "%s/t.table", folder);
  cr_assert(gs_extra_path(path, sizeof path, table, NULL));
  cr_assert_eq(mkdir(path, 0700), 0);
  cr_assert(gs_extra_path(path, sizeof path, table, "mma_f16_f16_tn_48x64x32_s3_w2-ba7816bf8f01cfea"));
  cr_assert_eq(gs_extra_load(table, &kernel, abc, why, sizeof why), -1);
  cr_assert(strstr(why, "No such file") && strstr(why, path), "%s", why);
  FILE *file = fopen(path, "w");
  cr_assert(file && fputs("abc", file) >= 0 && fclose(file) == 0);
  cr_assert_eq(gs_extra_load(table, &kernel, abc, why, sizeof why), -1);
  cr_assert(strstr(why, "not a cubin"), "%s", why);
  cr_assert_not(gs_extra_path(path, 20, table, "mma"), "a path that does not fit");
  cr_assert_eq(gs_kernel_count(), gs_shipped_count());
}
