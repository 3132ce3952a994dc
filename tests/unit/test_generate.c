/* The generator: what it makes, what it refuses and with which words, and its cache. Needs NVRTC, no GPU. */
#define _GNU_SOURCE
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cache.h"
#include "compile.h"
#include "generate.h"
#include "ptx.h"
#include "rtc.h"
#include "sass.h"

#define SHIPPED "mma_f16_f16_tn_32x32x64_s4_w4"

static char cache[] = "/tmp/gs-generate-XXXXXX";
static gs_cubin_t cubin;

static gs_status_t generate(const char *id, int sm) {
  gs_cubin_free(&cubin);
  return gs_generate(id, sm, GS_GENERATE_CACHE, &cubin);
}

/* A cache of the test's own. */
static void begin(void) {
  cr_assert_not_null(mkdtemp(cache));
  setenv("XDG_CACHE_HOME", cache, 1);
}

static void end(void) {
  char command[64];
  gs_cubin_free(&cubin);
  snprintf(command, sizeof command, "rm -rf %s", cache);
  cr_assert_eq(system(command), 0);
}

#define GENERATE_TEST(name) Test(generate, name, .init = begin, .fini = end)

static void need_nvrtc(void) {
  if (generate(SHIPPED, 80) == GS_NOT_FOUND) cr_skip_test("%s", cubin.why);
  gs_cleaned_t cleaned;
  cr_assert(gs_cache_clean(&cleaned));
}

/* Paths of the cached files. */
static size_t cached_files(glob_t *found) {
  char pattern[64];
  snprintf(pattern, sizeof pattern, "%s/gemmshim/*", cache);
  return glob(pattern, 0, NULL, found) == 0 ? found->gl_pathc : 0;
}

/* Whether the cubin, an ELF file, defines a global function of that name. */
static bool defines(const char *name) {
  const char *image = cubin.image;
  const Elf64_Ehdr *header = cubin.image;
  cr_assert_eq(memcmp(header->e_ident, ELFMAG, SELFMAG), 0);
  const Elf64_Shdr *sections = (const void *)(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Sym *symbols = (const void *)(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    for (size_t j = 0; j < sections[i].sh_size / sizeof *symbols; j++)
      if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC && symbols[j].st_shndx != SHN_UNDEF &&
          !strcmp(names + symbols[j].st_name, name))
        return true;
  }
  return false;
}

/* The architecture, which toolkits 13 write into the second byte of an ELF file's flags, and 12 into the first. */
static bool is_for(int sm) {
  unsigned flags = ((const Elf64_Ehdr *)cubin.image)->e_flags;
  return (int)(flags & 0xff) == sm || (int)(flags >> 8 & 0xff) == sm;
}

GENERATE_TEST(shipped_and_other_ids_compile_for_both_architectures) {
  static const struct {
    const char *id;
    bool shipped;
  } cases[] = {{SHIPPED, true},
               {"mma_bf16_f32_nt_48x64x32_s3_w2", false},
               {"mma_f16_f16_nn_32x64x32_s2_w4_v2", false},
               {"direct_bf16_bf16_tn_16x8_u4_w8_sw", true},
               {"direct_f16_f32_nn_16x32_u2_w4", false},
               {"rows_f16_f16_tn_2x1_u4_w8", true},
               {"rows_bf16_f32_nt_8x2_u2_w8", false}};
  static const int archs[] = {80, 90};
  need_nvrtc();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    gs_kernel_t kernel;
    cr_assert(gs_kernel_parse(cases[i].id, &kernel));
    cr_assert_eq(gs_shipped_find(&kernel) >= 0, cases[i].shipped, "%s", cases[i].id);
    for (int a = 0; a < 2; a++) {
      cr_assert_eq(generate(cases[i].id, archs[a]), GS_OK, "%s: %s", cases[i].id, cubin.why);
      cr_assert_not(cubin.cached);
      cr_assert(defines(cases[i].id) && is_for(archs[a]), "%s for %d", cases[i].id, archs[a]);
      cr_assert(cubin.needs.registers > 16 && cubin.needs.registers <= 255);
      cr_assert(!cubin.needs.stack && !cubin.needs.spill_stores && !cubin.needs.spill_loads);
    }
  }
}

GENERATE_TEST(the_second_time_it_comes_from_the_cache_unchanged) {
  need_nvrtc();
  cr_assert_eq(generate(SHIPPED, 90), GS_OK, "%s", cubin.why);
  gs_cubin_t first = cubin;
  cubin.image = NULL;
  cr_assert_eq(generate(SHIPPED, 90), GS_OK, "%s", cubin.why);
  cr_assert(cubin.cached);
  cr_assert(cubin.size == first.size && !memcmp(cubin.image, first.image, first.size));
  cr_assert_eq(memcmp(&cubin.needs, &first.needs, sizeof first.needs), 0);
  cr_assert_eq(cubin.smem, first.smem);
  gs_cubin_free(&first);
  cr_assert_eq(generate(SHIPPED, 80), GS_OK);
  cr_assert_not(cubin.cached, "another architecture is another kernel");
}

GENERATE_TEST(what_is_refused_is_refused_with_the_reason) {
  static const struct {
    const char *id;
    int sm;
    gs_status_t status;
    const char *why;
  } cases[] = {
      {"mma_f16_f16_tn_128x64x32_s4_w4 ", 80, GS_SYNTAX, "not the id of a kernel"},
      {"mma_f16_f64_tn_128x64x32_s4_w4", 80, GS_SYNTAX, "not the id of a kernel"},
      {SHIPPED, 70, GS_UNSUPPORTED, "80 and 90"},
      {"mma_f16_f16_tn_128x128x64_s6_w8", 80, GS_UNSUPPORTED, "196608 bytes of shared memory"},
      {"mma_f16_f16_tn_256x128x64_s5_w8", 90, GS_UNSUPPORTED, "grants a block 232448"},
      {"mma_f16_f16_tn_256x256x32_s2_w4", 90, GS_UNSUPPORTED, "512 accumulators a thread"},
      {"mma_f16_f16_tn_48x48x32_s3_w4", 80, GS_UNSUPPORTED, "no arrangement of these warps"},
      {"direct_f16_f16_tn_16x8_u3_w4_sw", 90, GS_UNSUPPORTED, "warps or stages"},
      {"mma_bf16_f32_nn_192x128x32_s3_w4_v2", 80, GS_UNSUPPORTED, "it spills"},
      {"direct_f16_f16_nt_64x64_u4_w4", 90, GS_UNSUPPORTED, "it spills"},
  };
  need_nvrtc();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    cr_assert_eq(generate(cases[i].id, cases[i].sm), cases[i].status, "%s: %s", cases[i].id, cubin.why);
    cr_assert(strstr(cubin.why, cases[i].why), "%s: %s", cases[i].id, cubin.why);
    cr_assert(!cubin.image && !strchr(cubin.why, '\n'));
  }
}

GENERATE_TEST(a_spilling_kernel_is_refused_from_the_cache_too) {
  need_nvrtc();
  for (int again = 0; again < 2; again++) {
    cr_assert_eq(generate("direct_f16_f16_nt_64x64_u4_w4", 80), GS_UNSUPPORTED);
    cr_assert(strstr(cubin.why, "it spills"), "%s", cubin.why);
    cr_assert(cubin.needs.spill_stores > 0 && cubin.needs.stack > 0);
    cr_assert_eq(cubin.cached, again == 1);
  }
}

GENERATE_TEST(a_corrupt_file_is_replaced) {
  glob_t found;
  need_nvrtc();
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_eq(cached_files(&found), 1);
  const char *file = found.gl_pathv[0];
  for (int fault = 0; fault < 3; fault++) {
    int fd = open(file, O_WRONLY);
    if (fault == 0) cr_assert_eq(pwrite(fd, "x", 1, 1000), 1); /* a byte of the cubin */
    if (fault == 1) cr_assert_eq(ftruncate(fd, 3000), 0);
    if (fault == 2) cr_assert_eq(ftruncate(fd, 0), 0);
    close(fd);
    cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
    cr_assert_not(cubin.cached, "fault %d", fault);
    cr_assert(defines(SHIPPED));
    cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
    cr_assert(cubin.cached, "fault %d", fault);
  }
  globfree(&found);
}

GENERATE_TEST(links_are_not_followed_and_files_are_private) {
  glob_t found;
  struct stat info;
  char elsewhere[64];
  need_nvrtc();
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_eq(cached_files(&found), 1);
  const char *file = found.gl_pathv[0];
  cr_assert(lstat(file, &info) == 0 && S_ISREG(info.st_mode) && (info.st_mode & 0777) == 0600);
  snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", cache);
  cr_assert(rename(file, elsewhere) == 0 && symlink(elsewhere, file) == 0 && lstat(elsewhere, &info) == 0);
  struct timespec made = info.st_mtim;
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_not(cubin.cached, "what the link leads to is faultless, and yet not read");
  cr_assert(lstat(file, &info) == 0 && S_ISREG(info.st_mode), "the link gave way to a file");
  cr_assert(lstat(elsewhere, &info) == 0 && !memcmp(&made, &info.st_mtim, sizeof made), "nor written");
  globfree(&found);
}

GENERATE_TEST(a_folder_that_others_may_write_is_not_used) {
  char folder[64];
  glob_t found;
  need_nvrtc();
  snprintf(folder, sizeof folder, "%s/gemmshim", cache);
  cr_assert_eq(chmod(folder, 0777), 0);
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_eq(cached_files(&found), 0);
}

/* Bytes that the one file of id takes in the cache. */
static uint64_t cached_bytes(const char *id) {
  char pattern[160];
  struct stat info;
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/gemmshim/%s-*", cache, id);
  cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "%s is not cached", id);
  cr_assert_eq(found.gl_pathc, 1);
  cr_assert_eq(stat(found.gl_pathv[0], &info), 0);
  globfree(&found);
  return (uint64_t)info.st_size;
}

GENERATE_TEST(the_cache_is_emptied_and_the_sum_is_right) {
  gs_cleaned_t cleaned;
  need_nvrtc();
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_eq(generate("direct_f16_f16_nn_16x16_u1_w1", 90), GS_OK, "%s", cubin.why);
  uint64_t bytes = cached_bytes(SHIPPED) + cached_bytes("direct_f16_f16_nn_16x16_u1_w1");
  cr_assert(gs_cache_clean(&cleaned));
  cr_assert_eq(cleaned.files, 2);
  cr_assert_eq(cleaned.bytes, bytes);
  cr_assert(!strncmp(cleaned.folder, cache, strlen(cache)));
  cr_assert_eq(generate(SHIPPED, 80), GS_OK, "%s", cubin.why);
  cr_assert_not(cubin.cached);
}

GENERATE_TEST(the_bound_holds_and_the_longest_unused_goes) {
  static const char *const ids[] = {"direct_f16_f16_nn_16x16_u1_w1", "direct_f16_f16_tn_16x16_u1_w1",
                                    "direct_f16_f16_nt_16x16_u1_w1"};
  glob_t found;
  need_nvrtc();
  for (int i = 0; i < 3; i++) cr_assert_eq(generate(ids[i], 80), GS_OK, "%s", cubin.why);
  uint64_t two = cached_bytes(ids[0]) + cached_bytes(ids[2]);
  gs_cleaned_t cleaned;
  cr_assert(gs_cache_clean(&cleaned));

  for (int i = 0; i < 2; i++) cr_assert_eq(generate(ids[i], 80), GS_OK, "%s", cubin.why);
  usleep(20000); /* the clock of files ticks every few milliseconds */
  cr_assert_eq(generate(ids[0], 80), GS_OK, "%s", cubin.why);
  gs_cubin_free(&cubin);
  cr_assert_eq(gs_generate(ids[2], 80, two, &cubin), GS_OK, "%s", cubin.why);
  cr_assert_eq(cached_files(&found), 2, "the bound");
  globfree(&found);
  cr_assert_eq(cached_bytes(ids[0]) + cached_bytes(ids[2]), two, "one used since, one just made");

  gs_cubin_free(&cubin);
  cr_assert_eq(gs_generate(SHIPPED, 80, 0, &cubin), GS_OK, "%s", cubin.why);
  cr_assert_eq(cached_files(&found), 0, "a bound of nothing keeps nothing");
}

/* ---- many at once ---- */

GENERATE_TEST(many_at_once_come_out_as_one_by_one) {
  static const char *const ids[] = {SHIPPED, "mma_f16_f16_tn_256x256x32_s2_w4",
                                    "direct_f16_f16_nn_16x16_u1_w1", "mma_f16_f16_tn_48x48x32_s3_w4",
                                    "direct_bf16_f32_tt_16x16_u1_w2"};
  enum { COUNT = sizeof ids / sizeof *ids };
  gs_job_t jobs[COUNT] = {{.status = GS_OK}};
  gs_progress_t progress = gs_progress_begin();
  need_nvrtc();
  for (int i = 0; i < COUNT; i++) cr_assert(gs_kernel_parse(ids[i], &jobs[i].kernel));
  cr_assert_eq(gs_compile(jobs, COUNT, 90, &progress, NULL), 3);
  for (int i = 0; i < COUNT; i++) {
    cr_assert_eq(generate(ids[i], 90), jobs[i].status, "%s", ids[i]);
    cr_assert_eq(cubin.size, jobs[i].cubin.size);
    cr_assert_not(memcmp(&cubin.needs, &jobs[i].cubin.needs, sizeof cubin.needs));
    if (cubin.image) cr_assert_not(memcmp(cubin.image, jobs[i].cubin.image, cubin.size), "%s", ids[i]);
    if (cubin.image) cr_assert(cubin.cached, "a child's work is kept");
    cr_assert_str_eq(cubin.why, jobs[i].cubin.why);
    gs_cubin_free(&jobs[i].cubin);
  }
}

GENERATE_TEST(stopped_it_makes_no_more) {
  const volatile sig_atomic_t stopped = SIGINT;
  gs_job_t job = {.status = GS_OK};
  gs_progress_t progress = gs_progress_begin();
  need_nvrtc();
  cr_assert(gs_kernel_parse(SHIPPED, &job.kernel));
  cr_assert_eq(gs_compile(&job, 1, 90, &progress, &stopped), 0);
  cr_assert(job.status == GS_UNSUPPORTED && strstr(job.cubin.why, "stopped"), "%s", job.cubin.why);
}

/* ---- how sums are kept ---- */

static gs_status_t compile_text(const char *text) {
  static const char *const options[] = {"--gpu-architecture=sm_80", "--std=c++17", "--ptxas-options=-v"};
  int version[2];
  gs_cubin_free(&cubin);
  cubin = (gs_cubin_t){0};
  if (gs_nvrtc_open(version, cubin.why, sizeof cubin.why) != GS_OK) cr_skip_test("%s", cubin.why);
  return gs_nvrtc_compile(&(gs_source_t){.text = text, .options = options, .option_count = 3}, &cubin);
}

/* The same product, its sums kept in fp32 and in fp16. */
#define KERNEL(body) "extern \"C\" __global__ void f(unsigned *x, const unsigned *a) {\n" body "}\n"
#define FACTORS      "\"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(a[4]), \"r\"(a[5])"

static const char in_f32[] = KERNEL(
    "  float d[4] = {};\n"
    "  for (int i = 0; i < 4; i++)\n"
    "    asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
    "{%8,%9}, \"\n"
    "                 \"{%0,%1,%2,%3};\" : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3]) : " FACTORS
    ");\n"
    "  for (int i = 0; i < 4; i++) x[i] = __float_as_uint(d[i]);\n");
static const char in_f16[] =
    KERNEL("  unsigned d[2] = {};\n"
           "  for (int i = 0; i < 4; i++)\n"
           "    asm volatile(\"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, "
           "{%6,%7}, \"\n"
           "                 \"{%0,%1};\" : \"+r\"(d[0]), \"+r\"(d[1]) : " FACTORS ");\n"
           "  x[0] = d[0], x[1] = d[1];\n");

GENERATE_TEST(a_kernel_that_sums_in_fp16_is_refused) {
  cr_assert_eq(compile_text(in_f32), GS_OK, "%s", cubin.why);
  cr_assert(cubin.image && cubin.needs.registers > 0);
  cr_assert_eq(compile_text(in_f16), GS_UNSUPPORTED);
  cr_assert(
      strstr(cubin.why, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16: its sums are not kept in F32"),
      "%s", cubin.why);
  cr_assert_null(cubin.image);
}

/* A disassembler that says what the test wants, found before any other. */
static void disassembler_says(const char *listing, int status) {
  char path[64];
  snprintf(path, sizeof path, "%s/bin", cache);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/bin/nvdisasm", cache);
  FILE *script = fopen(path, "w");
  cr_assert(script && fprintf(script, "#!/bin/sh\nprintf '%%b\\n' '%s'\nexit %d\n", listing, status) > 0 &&
            fclose(script) == 0);
  cr_assert_eq(chmod(path, 0700), 0);
  setenv("CUDA_HOME", cache, 1);
}

GENERATE_TEST(machine_code_is_read_where_there_is_a_disassembler) {
  static const struct {
    const char *listing, *why; /* NULL: right */
    int status;
  } cases[] = {
      {"/*0100*/ HMMA.16816.F32 R4, R8, R2, R4 ;", NULL, 0},
      {"/*0100*/ HMMA.16816.F32.BF16 R4, R8, R2, R4 ;\n HGMMA.64x64x16.F32 R4, gdesc[UR4], R4 ;", NULL, 0},
      {"/*0100*/ HMMA.16816.F32 R4, R8, R2, R4 ;\n HMMA.16816.F16 R4, R8, R2, R4 ;",
       "HMMA.16816.F16: its sums", 0},
      {"/*0100*/ HGMMA.64x64x16.F16 R4, gdesc[UR4], R4 ;", "HGMMA.64x64x16.F16: its sums", 0},
      {"/*0100*/ FFMA R4, R8, R2, R4 ;", "no instruction of the tensor cores", 0},
      {"nvdisasm fatal: it is older than the cubin", NULL, 1},
  };
  cr_assert_eq(compile_text(in_f32), GS_OK, "%s", cubin.why);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[256] = "";
    disassembler_says(cases[i].listing, cases[i].status);
    bool right = gs_sass_check(cubin.image, cubin.size, false, why, sizeof why);
    cr_expect_eq(right, !cases[i].why, "case %zu: %s", i, why);
    if (cases[i].why) cr_expect(strstr(why, cases[i].why), "case %zu: %s", i, why);
  }
  disassembler_says("HMMA.16816.F16 R4, R8, R2, R4 ;", 0);
  cr_assert_eq(compile_text(in_f32), GS_UNSUPPORTED, "the compiler asks it");
}

GENERATE_TEST(instructions_are_judged_by_what_they_compute) {
  static const struct {
    const char *ptx, *why; /* NULL: right */
  } cases[] = {
#define F32 "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2}, {%r1}, {%r2}, {%f1,%f2};\n"
      {F32, NULL},
      {"L1:\n\t@!%p1 bra L1;\n{ .reg .b16 %h; cvt.rn.f16x2.f32 %r1, %f1, %f2; } // add.f16\n" F32, NULL},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, p, 1, 1, 0, 1;", NULL},
      {F32 "bar.red.or.pred %p1, 0, %p2; atom.add.acq_rel.gpu.global.u32 %r1, [%rd1], 1;", NULL},
      {F32
       "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], [%r2];",
       NULL},
      {"", "no instruction of the tensor cores"},
      {"fma.rn.f32 %f1, %f2, %f3, %f1;", "no instruction of the tensor cores"},
      {F32 "@%p1 mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1};", "its sums are not kept in F32"},
      {"wgmma.mma_async.sync.aligned.m64n64k16.f16.f16.f16 {%r1}, %rd1, %rd2;",
       "its sums are not kept in F32"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%r1};", "its sums are not kept in F32"},
      {F32 "{ add.f16 %h1, %h2, %h3; }", "it computes in 16 bits or fewer"},
      {F32 "{add.rn.f16x2 %r1, %r2, %r3;}", "it computes in 16 bits or fewer"},
      {F32 "\t@%p7\tfma.rn.bf16x2 %r1, %r2, %r3, %r1;", "it computes in 16 bits or fewer"},
      {F32 "red.global.add.f32 [%rd1], %f1;", "it adds up in no fixed order"},
      {F32 "atom.global.add.noftz.f16x2 %r1, [%rd1], %r2;", "it adds up in no fixed order"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char why[256] = "";
    cr_expect_eq(gs_ptx_check(cases[i].ptx, false, why, sizeof why), !cases[i].why, "case %zu: %s", i, why);
    if (cases[i].why) cr_expect(strstr(why, cases[i].why), "case %zu: %s", i, why);
  }
}

/* Family rows has no use for tensor cores. */
GENERATE_TEST(kernels_by_fma_are_judged_by_their_fma) {
  static const struct {
    const char *code, *why; /* NULL: right */
  } ptx[] = {{"cvt.f32.f16 %f1, %rs1; fma.rn.f32 %f1, %f2, %f3, %f1;", NULL},
             {"mul.f32 %f1, %f2, %f3;", "no FMA in F32"},
             {F32, "no FMA in F32"},
             {"fma.rn.f32 %f1, %f2, %f3, %f1; fma.rn.f16x2 %r1, %r2, %r3, %r1;",
              "it computes in 16 bits or fewer"}},
    sass[] = {{"/*0100*/ FFMA R4, R8, R2, R4 ;", NULL},
              {"/*0100*/ HFMA2 R4, R8, R2, R4 ;", "no FMA in F32"},
              {"/*0100*/ HMMA.16816.F32 R4, R8, R2, R4 ;", "no FMA in F32"}};
  cr_assert_eq(compile_text(in_f32), GS_OK, "%s", cubin.why);
  for (size_t i = 0; i < sizeof ptx / sizeof *ptx; i++) {
    char why[256] = "";
    cr_expect_eq(gs_ptx_check(ptx[i].code, true, why, sizeof why), !ptx[i].why, "case %zu: %s", i, why);
    if (ptx[i].why) cr_expect(strstr(why, ptx[i].why), "case %zu: %s", i, why);
  }
  for (size_t i = 0; i < sizeof sass / sizeof *sass; i++) {
    char why[256] = "";
    disassembler_says(sass[i].code, 0);
    cr_expect_eq(gs_sass_check(cubin.image, cubin.size, true, why, sizeof why), !sass[i].why, "case %zu: %s",
                 i, why);
    if (sass[i].why) cr_expect(strstr(why, sass[i].why), "case %zu: %s", i, why);
  }
}
