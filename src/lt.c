#include "lt.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hash.h"

/* Descriptors and layouts are plain values of which some bytes stay as they were: which, is learnt from the
 * library itself. A descriptor begins with a 32-bit version, chosen by the size that its maker gave; layouts
 * have had one size from the start, and no version. */
typedef struct {
  uint32_t version;
  uint32_t init_size; /* asking for this many bytes makes this version */
  uint32_t words;     /* 8-byte words that the library writes */
  uint64_t mask[32];  /* which bits it writes */
} gs_form_t;

#define FORMS_MAX   8
#define WORDS_MAX   32                   /* of one object */
#define KEY_WORDS   (WORDS_MAX + 4 * 16) /* of a descriptor and four layouts */
#define MEMO_SIZE   1024
#define MEMO_PROBES 8
#define HINTS       64
#define LEARN_FROM  8
#define LEARN_UP_TO 512

typedef struct {
  gs_form_t desc[FORMS_MAX], layout;
  int desc_count;
  int bias_word; /* of a descriptor, where BIAS_POINTER lies; -1: not found, nothing is remembered */
} gs_forms_t;

/* What one set of descriptors asks; but for slot immutable once published, never freed. */
typedef struct {
  const gs_real_t *real;
  const gs_form_t *form[5]; /* of the descriptor and the layouts; the key holds them one behind the other */
  uint64_t hash;
  uint32_t words;
  uint64_t key[KEY_WORDS];
  gs_gemm_t gemm;
  gs_reason_t refusal;
  bool device_scalars;
  _Atomic int slot[5]; /* the histogram's + 1, by alignment 1, 2, 4, 8, 16; 0: not yet known */
} gs_memo_t;

static _Atomic(gs_forms_t *) forms_of_real[GS_REALS_MAX];
static _Atomic(gs_memo_t *) memo[MEMO_SIZE];
static _Atomic(gs_memo_t *) hints[HINTS]; /* what descriptors at these addresses asked last time */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- learning what descriptors look like ---- */

static bool init_desc(const gs_real_t *real, void *object, size_t size) {
  return real->cublasLtMatmulDescInit_internal(object, size, CUBLAS_COMPUTE_32F, CUDA_R_32F) ==
         CUBLAS_STATUS_SUCCESS;
}

static bool init_layout(const gs_real_t *real, void *object, size_t size) {
  return real->cublasLtMatrixLayoutInit_internal(object, size, CUDA_R_16F, 8, 8, 8) == CUBLAS_STATUS_SUCCESS;
}

/* Initialises over zeros and over ones: what is equal afterwards was written. */
static bool learn(const gs_real_t *real, bool (*init)(const gs_real_t *, void *, size_t), uint32_t size,
                  gs_form_t *form) {
  uint64_t zeros[LEARN_UP_TO / 8] = {0}, ones[LEARN_UP_TO / 8];
  memset(ones, 255, sizeof ones);
  if (!init(real, zeros, size) || !init(real, ones, size)) return false;
  *form = (gs_form_t){.init_size = size};
  memcpy(&form->version, zeros, sizeof form->version);
  for (uint32_t word = 0; word < WORDS_MAX; word++) {
    form->mask[word] = ~(zeros[word] ^ ones[word]);
    if (form->mask[word]) form->words = word + 1;
  }
  return true;
}

static int learn_descs(const gs_real_t *real, gs_form_t *forms) {
  int count = 0;
  for (uint32_t size = LEARN_FROM; size <= LEARN_UP_TO && count < FORMS_MAX; size += 8)
    if (learn(real, init_desc, size, &forms[count]) &&
        (count == 0 || forms[count].version != forms[count - 1].version))
      count++;
  return count;
}

/* The word that changes, to the very value set, when the bias pointer is. */
static int find_bias(const gs_real_t *real, const gs_form_t *form) {
  uint64_t plain[LEARN_UP_TO / 8] = {0}, set[LEARN_UP_TO / 8] = {0}, mark = 0x1122334455667788u;
  if (!init_desc(real, plain, form->init_size) || !init_desc(real, set, form->init_size)) return -1;
  if (real->cublasLtMatmulDescSetAttribute((cublasLtMatmulDesc_t)(void *)set,
                                           CUBLASLT_MATMUL_DESC_BIAS_POINTER, &mark,
                                           sizeof mark) != CUBLAS_STATUS_SUCCESS)
    return -1;
  int found = -1;
  for (int word = 0; word < (int)form->words; word++) {
    if (plain[word] == set[word]) continue;
    if (found >= 0 || set[word] != mark) return -1;
    found = word;
  }
  return found;
}

static gs_forms_t *learn_forms(const gs_real_t *real) {
  gs_forms_t *forms = calloc(1, sizeof *forms);
  if (!forms) return NULL;
  bool layouts = learn(real, init_layout, sizeof(cublasLtMatrixLayoutOpaque_t), &forms->layout);
  forms->desc_count = layouts ? learn_descs(real, forms->desc) : 0;
  forms->bias_word = forms->desc_count ? find_bias(real, &forms->desc[0]) : -1;
  for (int i = 1; i < forms->desc_count; i++)
    if (find_bias(real, &forms->desc[i]) != forms->bias_word) forms->bias_word = -1;
  return forms;
}

static const gs_forms_t *forms_of(const gs_real_t *real) {
  gs_forms_t *forms = atomic_load_explicit(&forms_of_real[real->index], memory_order_acquire);
  if (forms) return forms;
  pthread_mutex_lock(&lock);
  forms = atomic_load(&forms_of_real[real->index]);
  if (!forms) atomic_store(&forms_of_real[real->index], forms = learn_forms(real));
  pthread_mutex_unlock(&lock);
  return forms;
}

static const gs_form_t *form_of_desc(const gs_forms_t *forms, const void *desc) {
  uint32_t version;
  memcpy(&version, desc, sizeof version);
  for (int i = forms->desc_count; i-- > 0;) /* the newest first */
    if (forms->desc[i].version == version) return &forms->desc[i];
  return NULL;
}

/* ---- asking ---- */

static bool same_where_written(const gs_form_t *form, const void *object, const uint64_t *normal) {
  uint64_t words[WORDS_MAX], differ = 0;
  memcpy(words, object, 8 * form->words);
  for (uint32_t i = 0; i < form->words; i++) differ |= (words[i] ^ normal[i]) & form->mask[i];
  return !differ;
}

static bool desc_get(const gs_real_t *real, cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t id,
                     void *value, size_t size) {
  size_t written;
  return real->cublasLtMatmulDescGetAttribute(desc, id, value, size, &written) == CUBLAS_STATUS_SUCCESS;
}

/* The attributes that kernels honour: id, type, member. Everything else must be as a fresh descriptor has
 * it, known to this file or not: the caller's is compared with a fresh one that got these values. */
#define DESC_ATTRIBUTES(X)                                                                                   \
  X(POINTER_MODE, int32_t, pointer_mode)                                                                     \
  X(TRANSA, int32_t, transa)                                                                                 \
  X(TRANSB, int32_t, transb)                                                                                 \
  X(EPILOGUE, int32_t, epilogue)                                                                             \
  X(BIAS_POINTER, void *, bias)                                                                              \
  X(BIAS_DATA_TYPE, int32_t, bias_type)

typedef struct {
#define X(id, type, member) type member;
  DESC_ATTRIBUTES(X)
#undef X
  int32_t compute, scale;
} gs_desc_t;

static bool read_desc(const gs_real_t *real, cublasLtMatmulDesc_t desc, gs_desc_t *out) {
  bool ok = desc_get(real, desc, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &out->compute, sizeof out->compute) &&
            desc_get(real, desc, CUBLASLT_MATMUL_DESC_SCALE_TYPE, &out->scale, sizeof out->scale);
#define X(id, type, member)                                                                                  \
  ok = ok && desc_get(real, desc, CUBLASLT_MATMUL_DESC_##id, &out->member, sizeof out->member);
  DESC_ATTRIBUTES(X)
#undef X
  return ok;
}

static bool desc_is_plain(const gs_real_t *real, const gs_form_t *form, cublasLtMatmulDesc_t desc,
                          const gs_desc_t *read) {
  uint64_t normal[LEARN_UP_TO / 8] = {0};
  cublasLtMatmulDesc_t fresh = (cublasLtMatmulDesc_t)(void *)normal;
  if (real->cublasLtMatmulDescInit_internal(fresh, form->init_size, (cublasComputeType_t)read->compute,
                                            (cudaDataType)read->scale) != CUBLAS_STATUS_SUCCESS)
    return false;
#define X(id, type, member)                                                                                  \
  real->cublasLtMatmulDescSetAttribute(fresh, CUBLASLT_MATMUL_DESC_##id, &read->member, sizeof read->member);
  DESC_ATTRIBUTES(X)
#undef X
  return same_where_written(form, desc, normal);
}

#define LAYOUT_ATTRIBUTES(X)                                                                                 \
  X(TYPE, uint32_t, type)                                                                                    \
  X(ROWS, uint64_t, rows)                                                                                    \
  X(COLS, uint64_t, columns)                                                                                 \
  X(LD, int64_t, ld)                                                                                         \
  X(BATCH_COUNT, int32_t, batch)                                                                             \
  X(STRIDED_BATCH_OFFSET, int64_t, stride)

typedef struct {
#define X(id, type, member) type member;
  LAYOUT_ATTRIBUTES(X)
#undef X
} gs_layout_t;

static bool read_layout(const gs_real_t *real, cublasLtMatrixLayout_t layout, gs_layout_t *out) {
  size_t written;
  bool ok = true;
#define X(id, type, member)                                                                                  \
  ok = ok && real->cublasLtMatrixLayoutGetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_##id, &out->member,       \
                                                    sizeof out->member, &written) == CUBLAS_STATUS_SUCCESS;
  LAYOUT_ATTRIBUTES(X)
#undef X
  return ok;
}

static bool layout_is_plain(const gs_real_t *real, const gs_form_t *form, cublasLtMatrixLayout_t layout,
                            const gs_layout_t *read) {
  uint64_t normal[LEARN_UP_TO / 8] = {0};
  cublasLtMatrixLayout_t fresh = (cublasLtMatrixLayout_t)(void *)normal;
  if (real->cublasLtMatrixLayoutInit_internal(fresh, form->init_size, (cudaDataType)read->type, read->rows,
                                              read->columns, read->ld) != CUBLAS_STATUS_SUCCESS)
    return false;
#define X(id, type, member)                                                                                  \
  real->cublasLtMatrixLayoutSetAttribute(fresh, CUBLASLT_MATRIX_LAYOUT_##id, &read->member,                  \
                                         sizeof read->member);
  LAYOUT_ATTRIBUTES(X)
#undef X
  return same_where_written(form, layout, normal);
}

/* Shapes and types into the call; false where they do not fit each other (cuBLAS will say so). */
static bool fill_gemm(gs_gemm_t *g, const gs_desc_t *desc, const gs_layout_t layout[4]) {
  const gs_layout_t *a = &layout[0], *b = &layout[1], *c = &layout[2], *d = &layout[3];
  bool ta = desc->transa != CUBLAS_OP_N, tb = desc->transb != CUBLAS_OP_N;
  g->entry = GS_ENTRY_LT_MATMUL;
  g->transa = gs_op_of_cublas(desc->transa), g->transb = gs_op_of_cublas(desc->transb);
  g->a_type = gs_type_of_cuda((int)a->type), g->b_type = gs_type_of_cuda((int)b->type);
  g->c_type = gs_type_of_cuda((int)c->type), g->d_type = gs_type_of_cuda((int)d->type);
  g->compute = gs_compute_of_cublas(desc->compute);
  g->epilogue = gs_epilogue_of_cublas(desc->epilogue);
  g->m = (int64_t)d->rows, g->n = (int64_t)d->columns, g->k = (int64_t)(ta ? a->rows : a->columns);
  g->lda = a->ld, g->ldb = b->ld, g->ldc = c->ld, g->ldd = d->ld;
  g->batch = d->batch;
  if (d->batch > 1) {
    g->batch_kind = GS_BATCH_STRIDED;
    g->stride_a = a->stride, g->stride_b = b->stride, g->stride_c = c->stride, g->stride_d = d->stride;
  }
  return (int64_t)(ta ? a->columns : a->rows) == g->m && (int64_t)(tb ? b->rows : b->columns) == g->n &&
         (int64_t)(tb ? b->columns : b->rows) == g->k && c->rows == d->rows && c->columns == d->columns &&
         a->batch == d->batch && b->batch == d->batch && c->batch == d->batch;
}

/* Scalars of the type that the compute type implies, in host memory or one value each on the device. */
static bool plain_scalars(const gs_desc_t *desc) {
  bool natural = (desc->compute == CUBLAS_COMPUTE_32F && desc->scale == CUDA_R_32F) ||
                 (desc->compute == CUBLAS_COMPUTE_16F && desc->scale == CUDA_R_16F);
  return natural && (desc->pointer_mode == CUBLASLT_POINTER_MODE_HOST ||
                     desc->pointer_mode == CUBLASLT_POINTER_MODE_DEVICE);
}

static void ask(gs_memo_t *entry, const gs_forms_t *forms, const void *const object[5]) {
  cublasLtMatmulDesc_t desc = (cublasLtMatmulDesc_t)object[0];
  gs_desc_t read = {0};
  gs_layout_t layouts[4];
  const gs_real_t *real = entry->real;
  const gs_form_t *form = form_of_desc(forms, desc);
  bool plain = form && read_desc(real, desc, &read) && desc_is_plain(real, form, desc, &read);
  for (int i = 0; i < 4; i++) {
    cublasLtMatrixLayout_t layout = (cublasLtMatrixLayout_t)object[i + 1];
    memset(&layouts[i], 0, sizeof layouts[i]);
    bool read_all = form && read_layout(real, layout, &layouts[i]);
    plain &= read_all && layout_is_plain(real, &forms->layout, layout, &layouts[i]);
  }
  bool fits = fill_gemm(&entry->gemm, &read, layouts);
  entry->device_scalars = read.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE;
  bool bias = gs_epilogue_has_bias((gs_epilogue_t)entry->gemm.epilogue);
  if (!plain)
    entry->refusal = GS_REASON_ATTRIBUTE;
  else if (!fits)
    entry->refusal = GS_REASON_DEGENERATE;
  else if (entry->gemm.epilogue == GS_EPILOGUE_OTHER)
    entry->refusal = GS_REASON_EPILOGUE;
  else if (bias &&
           (!read.bias || (read.bias_type >= 0 && gs_type_of_cuda(read.bias_type) != entry->gemm.d_type)))
    entry->refusal = GS_REASON_EPILOGUE;
  else if (read.compute != CUBLAS_COMPUTE_32F && read.compute != CUBLAS_COMPUTE_16F)
    entry->refusal = GS_REASON_TYPE; /* pedantic, TF32, emulated: whatever its scalars are */
  else if (!plain_scalars(&read))
    entry->refusal = GS_REASON_SCALARS;
}

/* ---- remembering ---- */

/* Appends what the library writes of one object. */
static void add_words(const gs_form_t *form, const void *object, uint64_t *key, uint32_t *at) {
  uint64_t *words = key + *at;
  memcpy(words, object, 8 * form->words);
  for (uint32_t i = 0; i < form->words; i++) words[i] &= form->mask[i];
  *at += form->words;
}

/* All five objects, with of the bias pointer only whether there is one; false where one is of no known form.
 */
static bool make_key(const gs_forms_t *forms, const void *const object[5], gs_memo_t *entry,
                     const void **bias) {
  entry->words = 0;
  if (forms->bias_word < 0) return false;
  for (int i = 0; i < 5; i++) {
    entry->form[i] = i ? &forms->layout : form_of_desc(forms, object[i]);
    if (!entry->form[i]) return false;
    add_words(entry->form[i], object[i], entry->key, &entry->words);
  }
  memcpy(bias, &entry->key[forms->bias_word], sizeof *bias);
  entry->key[forms->bias_word] = *bias != NULL;
  if (entry->words % 2) entry->key[entry->words++] = 0;
  entry->hash = gs_hash_words(entry->key, entry->words);
  return true;
}

/* Whether these objects are those of the entry: in place, without copying or hashing them. */
static bool matches(const gs_forms_t *forms, const void *const object[5], const gs_memo_t *entry,
                    const void **bias) {
  const uint64_t *key = entry->key;
  uint64_t differ = 0;
  for (int i = 0; i < 5; i++) {
    const gs_form_t *form = entry->form[i];
    const uint64_t *words = object[i];
    if (i == 0 && memcmp(words, &form->version, sizeof form->version) != 0) return false;
    for (uint32_t word = 0; word < form->words; word++)
      if (i > 0 || word != (uint32_t)forms->bias_word) differ |= (words[word] ^ key[word]) & form->mask[word];
    key += form->words;
  }
  memcpy(bias, (const uint64_t *)object[0] + forms->bias_word, sizeof *bias);
  return !differ && entry->key[forms->bias_word] == (*bias != NULL);
}

static gs_memo_t *recall(const gs_memo_t *wanted) {
  for (unsigned probe = 0; probe < MEMO_PROBES; probe++) {
    gs_memo_t *entry = atomic_load_explicit(&memo[(wanted->hash + probe) % MEMO_SIZE], memory_order_acquire);
    if (!entry) return NULL;
    if (entry->hash == wanted->hash && entry->real == wanted->real && entry->words == wanted->words &&
        memcmp(entry->key, wanted->key, 8 * wanted->words) == 0)
      return entry;
  }
  return NULL;
}

/* Where no place is free near the hash the answer is simply not kept. */
static gs_memo_t *remember(gs_memo_t *fresh) {
  gs_memo_t *copy = malloc(sizeof *copy);
  if (!copy) return fresh;
  *copy = *fresh;
  for (unsigned probe = 0; probe < MEMO_PROBES; probe++) {
    gs_memo_t *none = NULL;
    if (atomic_compare_exchange_strong(&memo[(fresh->hash + probe) % MEMO_SIZE], &none, copy)) return copy;
  }
  free(copy);
  return fresh;
}

static _Atomic(gs_memo_t *) *hint_of(const void *const object[5]) {
  uintptr_t mixed = 0;
  for (int i = 0; i < 5; i++) mixed = (mixed ^ (uintptr_t)object[i]) * 0x9e3779b97f4a7c15u;
  return &hints[mixed >> 58];
}
_Static_assert(HINTS == 64, "six bits");

static void take(gs_call_t *call, gs_memo_t *found) {
  call->gemm = found->gemm;
  call->device_scalars = found->device_scalars;
  call->refusal = found->refusal;
  if (!gs_epilogue_has_bias((gs_epilogue_t)call->gemm.epilogue)) call->at.bias = NULL;
  call->gemm.align = gs_align_of(&call->at);
}

/* By the objects' contents, else by asking. Apart from the fast path, whose stack stays small. */
static __attribute__((noinline)) void look_up(gs_call_t *call, const gs_forms_t *forms,
                                              const void *const object[5], _Atomic(gs_memo_t *) *hint) {
  gs_memo_t fresh = {.real = call->real};
  bool keyed = make_key(forms, object, &fresh, &call->at.bias);
  gs_memo_t *entry = keyed ? recall(&fresh) : NULL;
  if (!entry) {
    ask(&fresh, forms, object);
    entry = keyed ? remember(&fresh) : &fresh;
  }
  if (!keyed)
    desc_get(call->real, (cublasLtMatmulDesc_t)object[0], CUBLASLT_MATMUL_DESC_BIAS_POINTER, &call->at.bias,
             sizeof call->at.bias);
  if (entry != &fresh) atomic_store_explicit(hint, entry, memory_order_release);
  take(call, entry);
}

void gs_lt_describe(gs_call_t *call, const void *const object[5]) {
  call->gemm.entry = GS_ENTRY_LT_MATMUL;
  call->gemm.batch = 1;
  call->refusal = GS_REASON_DEGENERATE;
  for (int i = 0; i < 5; i++)
    if (!object[i]) return;
  const gs_forms_t *forms = forms_of(call->real);
  if (!forms) return;
  _Atomic(gs_memo_t *) *hint = hint_of(object);
  gs_memo_t *entry = atomic_load_explicit(hint, memory_order_acquire);
  if (entry && entry->real == call->real && matches(forms, object, entry, &call->at.bias)) {
    take(call, entry);
    call->known_slot = &entry->slot[__builtin_ctz(call->gemm.align)];
  } else {
    look_up(call, forms, object, hint);
  }
}

void gs_lt_fork(void) {
  pthread_mutex_init(&lock, NULL);
  memset(memo, 0, sizeof memo); /* the slots it knows are the parent's */
  memset(hints, 0, sizeof hints);
}
