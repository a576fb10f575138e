/*
 * operations.c has what cuBLAS's calls do: each names its operands with their types,
 * which are checked against the manual, and is queued like any other operation. Where all
 * are floats, the arithmetic is arithmetic.c's. cuBLAS, "cuBLAS Level-1 Function
 * Reference" and the following.
 */
#include "blas/operations.h"

#include "data/rounding.h"
#include "blas/arithmetic.h"
#include "cuda/capture.h"
#include "data/number.h"

#include <math.h>

struct operation {
    struct op op;
    enum kind kind;
    int device, compute; // cudaDataType: that of the sums
    struct operand a, b, c;
    double alpha, beta;
    const void *alpha_there, *beta_there; // on the device, instead
    int64_t k;
    int batch;
    void *result; // of a sum; on the host, or
    void *result_there;
};

static size_t bytes_of(int type) {
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static bool is_known(int type) {
    return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F ||
           type == CUDA_R_16BF;
}

static double read_one(int type, const void *at) {
    switch (type) {
    case CUDA_R_64F: return *(const double *)at;
    case CUDA_R_32F: return *(const float *)at;
    default:
        return number_widen(type == CUDA_R_16F ? ncclFloat16 : ncclBfloat16,
                            *(const uint16_t *)at);
    }
}

static void write_one(int type, void *at, double value) {
    switch (type) {
    case CUDA_R_64F: *(double *)at = value; break;
    case CUDA_R_32F: *(float *)at = (float)value; break;
    default:
        *(uint16_t *)at =
            number_narrow(type == CUDA_R_16F ? ncclFloat16 : ncclBfloat16, (float)value);
    }
}

/* Element (i, j) of op(o), of the b-th. */
static void *element(const struct operand *o, const void *start, int64_t i, int64_t j) {
    int64_t at = o->vector       ? (o->ld < 0 ? (i - (o->rows - 1)) * o->ld : i * o->ld)
                 : o->transposed ? j + i * o->ld
                                 : i + j * o->ld;
    return (char *)(uintptr_t)start + at * (int64_t)bytes_of(o->type);
}

static double get(const struct operand *o, const void *start, int64_t i, int64_t j) {
    return read_one(o->type, element(o, start, i, j));
}

static void set(const struct operand *o, const void *start, int64_t i, int64_t j,
                double value) {
    write_one(o->type, element(o, start, i, j), value);
}

static const void *start_of(const struct operand *o, int b) {
    return (const char *)o->at + b * o->stride * (int64_t)bytes_of(o->type);
}

static size_t extent(const struct operand *o) {
    int64_t rows = o->transposed ? o->columns : o->rows;
    int64_t columns = o->transposed ? o->rows : o->columns;
    if (rows <= 0 || columns <= 0)
        return 0;
    int64_t last =
        o->vector ? (rows - 1) * llabs(o->ld) : (columns - 1) * o->ld + rows - 1;
    return (size_t)(last + 1) * bytes_of(o->type);
}

/* Whether a GPU could read or write all of it. */
static bool reachable(const struct operand *o, int batch) {
    size_t bytes = extent(o);
    if (bytes == 0 || !o->at)
        return bytes == 0;
    for (int b = 0; b < batch; b++)
        if (!memory_range(start_of(o, b), bytes))
            return false;
    return true;
}

static void plain_dgemm(int64_t m, int64_t n, int64_t k, double alpha, const double *a,
                        const double *b, double beta, double *c) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            c[i + j * m] = beta == 0 ? 0 : beta * c[i + j * m];
    for (int64_t j = 0; j < n; j++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = 0; i < m; i++)
                c[i + j * m] += alpha * a[i + p * m] * b[p + j * k];
}

/* op(o) as it is added up: column after column, without gaps. */
static void *packed(const struct operand *o, const void *start, bool as_double) {
    size_t n = (size_t)o->rows * (size_t)o->columns;
    void *out = base_grow(NULL, n * (as_double ? 8 : 4));
    for (int64_t j = 0; j < o->columns; j++)
        for (int64_t i = 0; i < o->rows; i++) {
            double value = get(o, start, i, j);
            if (as_double)
                ((double *)out)[i + j * o->rows] = value;
            else
                ((float *)out)[i + j * o->rows] = (float)value;
        }
    return out;
}

static void gemm(const struct operation *w, double alpha, double beta, const void *a,
                 const void *b, void *c) {
    int64_t m = w->c.rows, n = w->c.columns, k = w->k;
    bool as_double = w->compute == CUDA_R_64F;
    void *pa = packed(&w->a, a, as_double), *pb = packed(&w->b, b, as_double);
    // "If beta == 0, C does not have to be a valid input."
    struct operand out = w->c;
    void *pc = beta == 0 ? base_alloc((size_t)m * (size_t)n * (as_double ? 8 : 4))
                         : packed(&out, c, as_double);
    if (!as_double)
        blas_gemm(m, n, k, (float)alpha, (struct blas_matrix){pa, m, false},
                  (struct blas_matrix){pb, k, false}, (float)beta, pc, m);
    else
        plain_dgemm(m, n, k, alpha, pa, pb, beta, pc);
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < m; i++)
            set(&out, c, i, j,
                as_double ? ((double *)pc)[i + j * m] : ((float *)pc)[i + j * m]);
    free(pa);
    free(pb);
    free(pc);
}

static double sum_up(const struct operation *w, const void *x, const void *y) {
    double sum = 0;
    for (int64_t i = 0; i < w->a.rows; i++) {
        double one = get(&w->a, x, i, 0);
        sum += w->kind == DOT ? one * get(&w->b, y, i, 0) : one * one;
    }
    return w->kind == NRM2 ? sqrt(sum) : sum;
}

static int64_t place_of(const struct operation *w, const void *x) {
    int64_t best = 0;
    for (int64_t i = 1; i < w->a.rows; i++) {
        if (fabs(get(&w->a, x, i, 0)) > fabs(get(&w->a, x, best, 0)))
            best = i;
    }
    return w->a.rows > 0 ? best + 1 : 0;
}

static void give_result(const struct operation *w, const void *x, const void *y) {
    void *to = w->result_there ? shadow(w->result_there) : w->result;
    if (w->kind == AMAX)
        *(int *)to = (int)place_of(w, x);
    else
        write_one(w->compute, to, sum_up(w, x, y));
}

static void each_element(const struct operation *w, double alpha, const void *x,
                         void *z) {
    for (int64_t i = 0; i < w->c.rows; i++) {
        double one = w->kind == SCAL ? 0 : get(&w->a, x, i, 0);
        if (w->kind != COPY)
            one = w->kind == SCAL ? alpha * get(&w->c, z, i, 0)
                                  : get(&w->c, z, i, 0) + alpha * one;
        set(&w->c, z, i, 0, one);
    }
}

/* The calls of which arithmetic.c knows how to do them fast. False: not among them. */
static bool in_floats(const struct operation *w, float alpha, float beta, const void *x,
                      const void *y, void *z) {
    int64_t n = w->c.rows;
    if (w->compute != CUDA_R_32F || w->a.type != CUDA_R_32F || w->b.type != CUDA_R_32F ||
        w->c.type != CUDA_R_32F)
        return false;
    switch (w->kind) {
    case AXPY: blas_axpy(n, alpha, x, w->a.ld, z, w->c.ld); return true;
    case SCAL: blas_scal(n, alpha, z, w->c.ld); return true;
    case COPY: blas_copy(n, x, w->a.ld, z, w->c.ld); return true;
    case GEMM:
        if (w->b.vector || w->c.vector)
            return false;
        blas_gemm(n, w->c.columns, w->k, alpha,
                  (struct blas_matrix){x, w->a.ld, w->a.transposed},
                  (struct blas_matrix){y, w->b.ld, w->b.transposed}, beta, z, w->c.ld);
        return true;
    default: return false;
    }
}

static void calculate(const struct operation *w) {
    AS_ON_A_GPU;
    double alpha =
        w->alpha_there ? read_one(w->compute, shadow(w->alpha_there)) : w->alpha;
    double beta = w->beta_there ? read_one(w->compute, shadow(w->beta_there)) : w->beta;
    for (int b = 0; b < w->batch; b++) {
        const void *x = extent(&w->a) ? shadow(start_of(&w->a, b)) : NULL;
        const void *y = extent(&w->b) ? shadow(start_of(&w->b, b)) : NULL;
        void *z = extent(&w->c) ? shadow(start_of(&w->c, b)) : NULL;
        if (w->result || w->result_there)
            give_result(w, x, y);
        else if (in_floats(w, (float)alpha, (float)beta, x, y, z))
            continue;
        else if (w->kind == GEMM)
            gemm(w, alpha, beta, x, y, z);
        else
            each_element(w, alpha, x, z);
    }
}

static size_t result_bytes(const struct operation *w) {
    return w->kind == AMAX ? sizeof(int) : bytes_of(w->compute);
}

static bool step(struct op *op) {
    const struct operation *w = (const struct operation *)op;
    op->done = true;
    if (reachable(&w->a, w->batch) && reachable(&w->b, w->batch) &&
        reachable(&w->c, w->batch) &&
        (!w->alpha_there || memory_range(w->alpha_there, bytes_of(w->compute))) &&
        (!w->beta_there || memory_range(w->beta_there, bytes_of(w->compute))) &&
        (!w->result_there || memory_range(w->result_there, result_bytes(w))))
        calculate(w);
    else
        device_break(w->device, cudaErrorIllegalAddress);
    return true;
}

static struct op *copy_of(const struct op *op) {
    const struct operation *from = (const struct operation *)op;
    struct operation *to = (struct operation *)op_create(sizeof *to, step);
    struct op fresh = to->op;
    *to = *from;
    to->op = fresh;
    to->op.cost = from->op.cost;
    to->op.copy = copy_of;
    return &to->op;
}

static double elements(const struct operation *w) { // of the result
    return (double)w->c.rows * (double)w->c.columns * w->batch;
}

static double work_of(const struct operation *w) {
    double n = elements(w);
    return w->kind == GEMM ? 2 * n * (double)w->k : n + (double)w->a.rows;
}

/* The bytes that pass to and from the GPU's memory. What is written is read before, but
 * for copies. */
static double bytes_passed(const struct operation *w) {
    const struct operand *all[] = {&w->a, &w->b, &w->c};
    bool only_written = w->kind == COPY;
    double bytes = 0;
    for (int i = 0; i < 3; i++)
        bytes += (double)all[i]->rows * (double)all[i]->columns *
                 (double)bytes_of(all[i]->type) * (i == 2 && !only_written ? 2 : 1);
    return bytes * w->batch;
}

static cublasStatus_t queue(cublasHandle_t handle, struct operation w, const void *alpha,
                            const void *beta, void *result) {
    struct stream *stream = stream_of(handle->stream, handle->device);
    bool on_device = handle->mode == CUBLAS_POINTER_MODE_DEVICE;
    if (!stream || capture_in_the_way(stream) ||
        device_broken(stream->device) != cudaSuccess)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (result && !on_device && stream->capture) {
        capture_spoil(stream); // the host would get it when the call returns
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    w.device = stream->device;
    w.batch = w.batch ? w.batch : 1;
    if (on_device) {
        w.alpha_there = alpha;
        w.beta_there = beta;
        w.result_there = result;
    } else {
        w.alpha = alpha ? read_one(w.compute, alpha) : 0;
        w.beta = beta ? read_one(w.compute, beta) : 0;
        w.result = result;
    }
    if (clock_on)
        w.op.cost = clock_compute(work_of(&w), bytes_passed(&w),
                                  w.kind == GEMM ? elements(&w) : 0);
    op_enqueue(copy_of(&w.op), stream);
    if (result && !on_device)
        wait_for(stream_end(stream));
    return CUBLAS_STATUS_SUCCESS;
}

struct operand operand_vector(int type, const void *at, int64_t n, int64_t distance) {
    return (struct operand){
        .at = at, .type = type, .rows = n, .columns = 1, .ld = distance, .vector = true};
}

struct operand operand_matrix(int type, const void *at, cublasOperation_t op,
                              int64_t rows, int64_t columns, int64_t ld) {
    return (struct operand){.at = at,
                            .type = type,
                            .rows = rows,
                            .columns = columns,
                            .ld = (unsigned)op <= CUBLAS_OP_C ? ld : 0, // refused
                            .transposed = op != CUBLAS_OP_N};
}

static bool fits(const struct operand *o) {
    int64_t rows = o->transposed ? o->columns : o->rows;
    if (o->vector)
        return o->ld != 0;
    return o->rows >= 0 && o->columns >= 0 && o->ld >= 1 && o->ld >= rows;
}

/* Those that make one number of one or two vectors. */
cublasStatus_t blas_measure(cublasHandle_t handle, enum kind kind, struct operand x,
                            struct operand y, void *result, int type) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_known(x.type) || (kind == DOT && !is_known(y.type)) || !is_known(type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (x.rows < 0 || (kind != DOT && x.ld <= 0))
        x.rows = y.rows = 0;
    return queue(handle,
                 (struct operation){.kind = kind, .compute = type, .a = x, .b = y}, NULL,
                 NULL, result);
}

/* Those that go through two vectors. */
cublasStatus_t blas_walk(cublasHandle_t handle, enum kind kind, const void *alpha,
                         int type, struct operand x, struct operand y) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_known(type) || !is_known(y.type) || (kind != SCAL && !is_known(x.type)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (y.rows <= 0 || (kind == SCAL && y.ld <= 0))
        return CUBLAS_STATUS_SUCCESS;
    if ((kind == AXPY || kind == SCAL) && !alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    return queue(handle,
                 (struct operation){.kind = kind, .compute = type, .a = x, .c = y}, alpha,
                 NULL, NULL);
}

cublasStatus_t blas_product(cublasHandle_t handle, int compute, struct operand a,
                            struct operand b, struct operand c, int64_t k,
                            const void *alpha, const void *beta, int batch) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (batch == 0)
        return CUBLAS_STATUS_SUCCESS;
    if (!is_known(a.type) || !is_known(b.type) || !is_known(c.type) || compute < 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!fits(&a) || !fits(&b) || !fits(&c) || k < 0 || batch < 0 || !alpha || !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (c.rows == 0 || c.columns == 0)
        return CUBLAS_STATUS_SUCCESS;
    struct operation w = {.kind = GEMM, .compute = compute, .a = a, .b = b, .c = c};
    w.k = k;
    w.batch = batch;
    return queue(handle, w, alpha, beta, NULL);
}
