/* See operands.h; nothing in the file is trusted. */
#include "operands.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "file.h"
#include "gate.h"
#include "json.h"
#include "progress.h"
#include "tools.h"

/* A tensor in the file: batch x columns x rows, columns contiguous. */
typedef struct {
  const char *at; /* NULL: it is not there */
  int64_t rows, columns, batch;
} gs_tensor_t;

typedef struct {
  char *bytes;
  size_t size;
  gs_gemm_t gemm;
  double alpha, beta;
  const char *row, *gpu, *cublas;
  gs_tensor_t a, b, c, d, reference, bias;
  cJSON *head;
} gs_dumped_t;

/* One of the two results. */
typedef struct {
  gs_gate_t gate;
  double largest, value, exact; /* the element that is most off */
  int64_t i, j, z;
} gs_result_t;

/* ---- reading ---- */

static const char *text_of(const gs_dumped_t *dumped, const char *name) {
  const cJSON *all = cJSON_GetObjectItemCaseSensitive(dumped->head, "__metadata__");
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(all, name));
  return text ? text : "";
}

static int64_t number_in(const cJSON *list, int index) {
  const cJSON *item = cJSON_GetArrayItem(list, index);
  return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= GS_DUMP_BYTES_MAX
             ? (int64_t)item->valuedouble
             : -1;
}

/* False where it does not hold what the product says it does. */
static bool find_tensor(gs_dumped_t *dumped, const char *name, gs_type_t type, int64_t rows, int64_t columns,
                        int64_t batch, gs_tensor_t *tensor) {
  const cJSON *entry = cJSON_GetObjectItemCaseSensitive(dumped->head, name);
  const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(entry, "data_offsets");
  const char *dtype = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(entry, "dtype"));
  const char *wanted = type == GS_TYPE_F16 ? "F16" : type == GS_TYPE_BF16 ? "BF16" : "F32";
  uint64_t head = 0;
  for (int i = 0; i < 8; i++) head |= (uint64_t)(unsigned char)dumped->bytes[i] << 8 * i;
  int64_t begin = number_in(offsets, 0), end = number_in(offsets, 1);
  double bytes = (double)rows * (double)columns * (double)batch * gs_type_bytes[type];
  if (!dtype || strcmp(dtype, wanted) != 0 || begin < 0 || end < begin || bytes != (double)(end - begin) ||
      (8 + head + (uint64_t)begin) % gs_type_bytes[type] || 8 + head + (uint64_t)end > dumped->size)
    return false;
  *tensor = (gs_tensor_t){dumped->bytes + 8 + head + begin, rows, columns, batch};
  return true;
}

static bool find_tensors(gs_dumped_t *dumped) {
  const gs_gemm_t *g = &dumped->gemm;
  bool ta = g->transa != GS_OP_N, tb = g->transb != GS_OP_N;
  return find_tensor(dumped, "a", g->a_type, ta ? g->k : g->m, ta ? g->m : g->k, g->batch, &dumped->a) &&
         find_tensor(dumped, "b", g->b_type, tb ? g->n : g->k, tb ? g->k : g->n, g->batch, &dumped->b) &&
         find_tensor(dumped, "d", g->d_type, g->m, g->n, g->batch, &dumped->d) &&
         find_tensor(dumped, "reference", g->d_type, g->m, g->n, g->batch, &dumped->reference) &&
         (dumped->beta == 0 || find_tensor(dumped, "c", g->c_type, g->m, g->n, g->batch, &dumped->c)) &&
         (!gs_epilogue_has_bias(g->epilogue) ||
          find_tensor(dumped, "bias", g->d_type, g->m, 1, 1, &dumped->bias));
}

static bool is_float(gs_type_t type) {
  return type == GS_TYPE_F16 || type == GS_TYPE_BF16 || type == GS_TYPE_F32;
}

/* NULL, or why it is no dump. */
static const char *read_dump(gs_dumped_t *dumped, const char *path) {
  const char *why = NULL;
  uint64_t length = 0;
  dumped->bytes = gs_file_read(path, 2u * GS_DUMP_BYTES_MAX, false, &dumped->size, &why);
  if (!dumped->bytes) return why;
  for (int i = 0; i < 8 && dumped->size >= 8; i++)
    length |= (uint64_t)(unsigned char)dumped->bytes[i] << 8 * i;
  if (!length || length > dumped->size - 8) return "not a safetensors file";
  dumped->head = cJSON_ParseWithLength(dumped->bytes + 8, (size_t)length);
  if (!dumped->head) return "not a safetensors file";
  dumped->row = text_of(dumped, "row"), dumped->gpu = text_of(dumped, "gpu"),
  dumped->cublas = text_of(dumped, "cublas");
  dumped->alpha = strtod(text_of(dumped, "alpha"), NULL),
  dumped->beta = strtod(text_of(dumped, "beta"), NULL);
  if (gs_gemm_parse(text_of(dumped, "product"), &dumped->gemm, &why) != GS_OK)
    return "its metadata tell of no product: GEMMSHIM_DUMP did not write it";
  const gs_gemm_t *g = &dumped->gemm;
  if (!is_float(g->a_type) || !is_float(g->b_type) || !is_float(g->c_type) || !is_float(g->d_type))
    return "a type that no kernel computes";
  return find_tensors(dumped) ? NULL : "a tensor is missing, cut short, or not of the product's size";
}

/* ---- judging ---- */

/* Row i of op(A) or column j of op(B): along k, for batch entry z. */
static void load_line(const gs_tensor_t *t, gs_type_t type, bool contiguous, int64_t index, int64_t z,
                      int64_t k, double *line) {
  int64_t step = contiguous ? 1 : t->rows;
  int64_t at = z * t->rows * t->columns + index * (contiguous ? t->rows : 1);
  for (int64_t l = 0; l < k; l++) line[l] = gs_element_load(type, t->at, at + l * step);
}

static double finish(const gs_dumped_t *dumped, double sum, int64_t i, int64_t j, int64_t z) {
  const gs_gemm_t *g = &dumped->gemm;
  double x = dumped->alpha * sum;
  if (dumped->c.at) x += dumped->beta * gs_element_load(g->c_type, dumped->c.at, (z * g->n + j) * g->m + i);
  if (dumped->bias.at) x += gs_element_load(g->d_type, dumped->bias.at, i);
  if (g->epilogue == GS_EPILOGUE_RELU || g->epilogue == GS_EPILOGUE_RELU_BIAS) return x < 0 ? 0 : x;
  if (g->epilogue != GS_EPILOGUE_GELU && g->epilogue != GS_EPILOGUE_GELU_BIAS) return x;
  return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

static void add_element(gs_result_t *result, gs_type_t type, const gs_tensor_t *t, double exact, int64_t i,
                        int64_t j, int64_t z) {
  int64_t at = (z * t->columns + j) * t->rows + i;
  double value = gs_element_load(type, t->at, at), off = fabs(value - exact);
  gs_gate_add(&result->gate, type, t->at + at * gs_type_bytes[type], &exact, 1);
  bool misfit = isnan(off) && !(isnan(value) && isnan(exact));
  if (!(off > result->largest) && !misfit) return;
  *result = (gs_result_t){result->gate, misfit ? INFINITY : off, value, exact, i, j, z};
}

static bool judge(const gs_dumped_t *dumped, gs_result_t results[2]) {
  const gs_gemm_t *g = &dumped->gemm;
  const gs_tensor_t *const tensors[] = {&dumped->d, &dumped->reference};
  double *b = malloc(sizeof *b * (size_t)(g->k * g->n)), *a = malloc(sizeof *a * (size_t)g->k);
  gs_progress_t progress = gs_progress_begin();
  bool fine = a && b;
  for (int64_t z = 0; z < g->batch && fine; z++) {
    for (int64_t j = 0; j < g->n; j++)
      load_line(&dumped->b, g->b_type, g->transb == GS_OP_N, j, z, g->k, b + j * g->k);
    for (int64_t i = 0; i < g->m; i++) {
      gs_progress_show(&progress, (double)(z * g->m + i) / (double)(g->batch * g->m), "multiplying in FP64");
      load_line(&dumped->a, g->a_type, g->transa != GS_OP_N, i, z, g->k, a);
      for (int64_t j = 0; j < g->n; j++) {
        double sum = 0;
        for (int64_t l = 0; l < g->k; l++) sum += a[l] * b[j * g->k + l];
        double exact = finish(dumped, sum, i, j, z);
        for (int r = 0; r < 2; r++) add_element(&results[r], g->d_type, tensors[r], exact, i, j, z);
      }
    }
  }
  gs_progress_clear(&progress);
  free(a);
  free(b);
  return fine;
}

/* ---- telling ---- */

static const char *const names[] = {"gemmshim", "cublas"};

static void print_text(const gs_dumped_t *dumped, const gs_result_t results[2], const double bounds[2],
                       const char *const faults[2]) {
  char product[256];
  gs_gemm_describe(product, sizeof product, &dumped->gemm);
  printf("%s, alpha %g, beta %g\n%s on %s, cuBLAS %s; exact: FP64 on this CPU\n", product, dumped->alpha,
         dumped->beta, dumped->row, dumped->gpu, dumped->cublas);
  printf("%-9s %12s %12s  %s\n", "", "error", "bound", "most off");
  for (int r = 0; r < 2; r++) {
    const gs_result_t *x = &results[r];
    printf("%-9s %12.4g %12.4g  row %" PRId64 ", column %" PRId64 ", entry %" PRId64
           ": %.9g, exactly %.9g%s%s\n",
           names[r], gs_gate_error(&x->gate), bounds[r], x->i, x->j, x->z, x->value, x->exact,
           faults[r] ? ": FAIL " : "", faults[r] ? faults[r] : "");
  }
}

static void add_number(cJSON *object, const char *name, double value) {
  if (isfinite(value))
    cJSON_AddNumberToObject(object, name, value);
  else
    cJSON_AddNullToObject(object, name);
}

static void print_json(const gs_dumped_t *dumped, const gs_result_t results[2], const double bounds[2],
                       const char *const faults[2]) {
  cJSON *root = cJSON_CreateObject();
  cJSON_AddStringToObject(root, "product", text_of(dumped, "product"));
  cJSON_AddStringToObject(root, "row", dumped->row);
  cJSON_AddStringToObject(root, "gpu", dumped->gpu);
  cJSON_AddStringToObject(root, "cublas_version", dumped->cublas);
  for (int r = 0; r < 2; r++) {
    const gs_result_t *x = &results[r];
    cJSON *object = cJSON_AddObjectToObject(root, names[r]);
    cJSON_AddBoolToObject(object, "ok", !faults[r]);
    cJSON_AddStringToObject(object, "why", faults[r] ? faults[r] : "");
    add_number(object, "error", gs_gate_error(&x->gate));
    add_number(object, "bound", bounds[r]);
    add_number(object, "row", (double)x->i);
    add_number(object, "column", (double)x->j);
    add_number(object, "entry", (double)x->z);
    add_number(object, "value", x->value);
    add_number(object, "exact", x->exact);
  }
  gs_json_print(root);
}

int gs_verify_operands(const char *path, bool json) {
  gs_dumped_t dumped = {0};
  gs_result_t results[2] = {{.largest = -1}, {.largest = -1}};
  const char *why = read_dump(&dumped, path), *faults[2];
  double bounds[2];
  if (!why && !judge(&dumped, results)) why = "out of memory";
  if (why) {
    gs_say("%s: %s", path, why);
  } else {
    const gs_gemm_t *g = &dumped.gemm;
    for (int r = 0; r < 2;
         r++) { /* f32 results: twice the library's own error, which the library's is not held to */
      double library = r == 0 ? gs_gate_error(&results[1].gate) : -1;
      bounds[r] = gs_gate_bound(&results[r].gate, g->d_type, g->k, library);
      faults[r] = gs_gate_fault(&results[r].gate, GS_GATE_ROUNDING, g->d_type, g->k, library);
    }
    (json ? print_json : print_text)(&dumped, results, bounds, faults);
  }
  cJSON_Delete(dumped.head);
  free(dumped.bytes);
  return why ? GS_EXIT_MACHINE : faults[0] ? GS_EXIT_FALSE : GS_EXIT_OK;
}
