#define _GNU_SOURCE
#include "pool.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "device.h"
#include "tools.h"

/* What names stand for: kernels, each once. */
typedef struct {
  gs_kernel_t *items;
  int count, room;
} list_t;

static bool grow(void **items, int count, int *room, size_t size) {
  if (count < *room) return true;
  int more = *room ? 2 * *room : 64;
  void *grown = realloc(*items, (size_t)more * size);
  if (!grown) return gs_say("out of memory"), false;
  *items = grown, *room = more;
  return true;
}

bool gs_pool_add(gs_pool_t *pool, int index) {
  for (int i = 0; i < pool->count; i++)
    if (pool->indices[i] == index) return true;
  if (!grow((void **)&pool->indices, pool->count, &pool->room, sizeof *pool->indices)) return false;
  pool->indices[pool->count++] = index;
  return true;
}

static bool runs_on(const gs_kernel_t *kernel, int sm) {
  return !sm || gs_kernel_runs_on(kernel, sm);
}

bool gs_pool_shipped(gs_pool_t *pool, int sm) {
  for (int i = 0; i < gs_shipped_count(); i++) {
    gs_kernel_t kernel = gs_shipped_at(i);
    if (runs_on(&kernel, sm) && !gs_pool_add(pool, i)) return false;
  }
  return true;
}

void gs_pool_free(gs_pool_t *pool) {
  free(pool->indices);
  *pool = (gs_pool_t){0};
}

/* ---- names ---- */

static bool list_add(list_t *list, const gs_kernel_t *kernel) {
  for (int i = 0; i < list->count; i++)
    if (!memcmp(&list->items[i], kernel, sizeof *kernel)) return true;
  if (!grow((void **)&list->items, list->count, &list->room, sizeof *list->items)) return false;
  list->items[list->count++] = *kernel;
  return true;
}

static bool of_use(const gs_kernel_t *kernel, const gs_points_t *products) {
  bool used = !products;
  for (int i = 0; !used && i < products->count; i++)
    used = gs_kernel_supports(kernel, &products->items[i]) == GS_REASON_SERVED;
  return used;
}

static gs_status_t add_pattern(list_t *list, const char *pattern) {
  int before = list->count;
  for (int i = 0; i < gs_shipped_count(); i++) {
    char id[GS_KERNEL_ID_MAX];
    gs_kernel_t kernel = gs_shipped_at(i);
    gs_kernel_format(id, sizeof id, &kernel);
    if (fnmatch(pattern, id, 0) == 0 && !list_add(list, &kernel)) return GS_NOMEM;
  }
  if (list->count > before) return GS_OK;
  gs_say("no shipped kernel matches \"%s\" (gemmshim kernels lists them)", pattern);
  return GS_NOT_FOUND;
}

/* "mma_128x64x32_s4_w4": every pair of types and layout that shipped kernels have. */
static gs_status_t add_tile(list_t *list, const char *name, const char *tile, const gs_points_t *products) {
  bool parsed = false;
  for (int i = 0; i < gs_shipped_count(); i++) {
    char id[2 * GS_KERNEL_ID_MAX];
    gs_kernel_t like = gs_shipped_at(i), kernel;
    snprintf(id, sizeof id, "%.*s%s_%s_%s%s_%.*s", (int)(tile - name), name, gs_type_names[like.ab_type],
             gs_type_names[like.d_type], gs_op_names[like.transa], gs_op_names[like.transb], GS_KERNEL_ID_MAX,
             tile);
    if (!gs_kernel_parse(id, &kernel)) continue;
    parsed = true;
    if (of_use(&kernel, products) && !list_add(list, &kernel)) return GS_NOMEM;
  }
  return parsed ? GS_OK : GS_SYNTAX;
}

static gs_status_t add_name(list_t *list, const char *name, const gs_points_t *products) {
  gs_kernel_t kernel;
  if (strpbrk(name, "*?[")) return add_pattern(list, name);
  const char *tile = strchr(name, '_');
  gs_status_t status = GS_SYNTAX;
  if (gs_kernel_parse(name, &kernel))
    status = list_add(list, &kernel) ? GS_OK : GS_NOMEM;
  else if (tile && isdigit((unsigned char)tile[1]))
    status = add_tile(list, name, tile + 1, products);
  if (status == GS_SYNTAX)
    gs_say("\"%s\" is neither a kernel's id nor a tile nor a pattern: see gemmshim kernels --help", name);
  return status;
}

/* One line of a file, or the whole list of the command line. */
static gs_status_t add_line(list_t *list, char *line, const gs_points_t *products) {
  gs_status_t status = GS_OK;
  line[strcspn(line, "#\r\n")] = 0;
  for (char *next = line, *name; status == GS_OK && (name = strsep(&next, ", \t"));)
    if (*name) status = add_name(list, name, products);
  return status;
}

static gs_status_t read_names(list_t *list, const char *names, const gs_points_t *products) {
  struct stat info;
  if (stat(names, &info) != 0) {
    char *copy = strdup(names);
    gs_status_t status = copy ? add_line(list, copy, products) : GS_NOMEM;
    free(copy);
    return status;
  }
  FILE *file = fopen(names, "re");
  char *line = NULL;
  size_t room = 0;
  gs_status_t status = file && S_ISREG(info.st_mode) ? GS_OK : GS_IO;
  if (status == GS_IO) gs_say("%s: cannot be read: %s", names, file ? "not a regular file" : strerror(errno));
  while (status == GS_OK && getline(&line, &room, file) >= 0) status = add_line(list, line, products);
  free(line);
  if (file) fclose(file);
  return status;
}

gs_status_t gs_pool_named(gs_pool_t *pool, char *const *lists, int count, const gs_pool_for_t *for_what,
                          gs_pool_tally_t *tally) {
  list_t list = {0};
  gs_status_t status = GS_OK;
  int before = pool->count;
  *tally = (gs_pool_tally_t){0};
  for (int i = 0; i < count && status == GS_OK; i++) status = read_names(&list, lists[i], for_what->products);
  if (status == GS_OK) *tally = gs_pool_compile(pool, list.items, list.count, for_what, true);
  free(list.items);
  if (tally->no_compiler) return GS_NOT_FOUND;
  if (status == GS_OK && pool->count == before) {
    gs_say("of the kernels that are named none could take part");
    return GS_NOT_FOUND;
  }
  return status;
}

/* ---- compiling ---- */

static void settle(gs_pool_t *pool, gs_job_t *job, bool say) {
  char id[GS_KERNEL_ID_MAX];
  gs_kernel_format(id, sizeof id, &job->kernel);
  if (job->status != GS_OK) {
    if (say) gs_say("%s: refused: %s", id, job->cubin.why);
    return;
  }
  int index = gs_extra_add(&job->kernel, job->cubin.image, job->cubin.size);
  if (index < 0) {
    gs_say("%s: left out: %d kernels are loaded already; tune in several runs", id, GS_EXTRAS_MAX);
    gs_cubin_free(&job->cubin);
  } else {
    gs_pool_add(pool, index);
  }
}

gs_pool_tally_t gs_pool_compile(gs_pool_t *pool, const gs_kernel_t *kernels, int count,
                                const gs_pool_for_t *for_what, bool say) {
  gs_pool_tally_t tally = {0};
  gs_progress_t progress = gs_progress_begin();
  gs_job_t *jobs = calloc((size_t)count + 1, sizeof *jobs);
  int wanted = 0, sm = gs_device_arch(for_what->sm);
  for (int i = 0; jobs && i < count; i++) {
    int shipped = gs_shipped_find(&kernels[i]);
    if (shipped >= 0 && runs_on(&kernels[i], for_what->sm))
      gs_pool_add(pool, shipped);
    else
      jobs[wanted++].kernel = kernels[i];
  }
  if (!jobs || (wanted && !sm)) {
    gs_say(jobs ? GS_DEVICE_ARCHS "; this one is %d.%d" : "out of memory", for_what->sm / 10,
           for_what->sm % 10);
    wanted = 0;
  }
  if (wanted) tally.compiled = gs_compile(jobs, wanted, sm, &progress, for_what->stopped);
  if (wanted && jobs[0].status == GS_NOT_FOUND) {
    gs_say("%s", jobs[0].cubin.why);
    tally.no_compiler = true, wanted = 0;
  }
  tally.refused = wanted - tally.compiled;
  for (int i = 0; i < wanted; i++) settle(pool, &jobs[i], say);
  free(jobs);
  return tally;
}
