/*
 * operations.c has what cuBLAS's calls do: each names its operands with their types,
 * which are checked against the manual, and is queued like any other operation. Where all
 * are floats, the arithmetic is arithmetic.c's. cuBLAS, "cuBLAS Level-1 Function
 * Reference" and the following.
 */
#define _GNU_SOURCE
#include "blas/operations.h"

#include "data/rounding.h"
#include "blas/arithmetic.h"
#include "cuda/capture.h"
#include "data/number.h"

#include <dlfcn.h>
#include <math.h>

/* --- Operands ---------------------------------------------------------------------- */

struct wide {
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
    bool cublas_place;
    double param[5];  // of ROTM, unless b has it: a flag, h11, h21, h12, h22
    void *numbers[5]; // of ROTG and ROTMG: where the first lies, there lie all
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
    if (o->many)
        return ((const void *const *)shadow(o->many))[b];
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
    if (bytes == 0 || (!o->at && !o->many))
        return bytes == 0;
    if (o->many && !memory_range(o->many, (size_t)batch * sizeof *o->many))
        return false;
    for (int b = 0; b < batch; b++)
        if (!memory_range(start_of(o, b), bytes))
            return false;
    return true;
}

/* --- Products ---------------------------------------------------------------------- */

typedef void dgemm_function(int order, int ta, int tb, int m, int n, int k, double alpha,
                            const double *a, int lda, const double *b, int ldb,
                            double beta, double *c, int ldc);

/* The distribution's BLAS, where one is installed. */
static dgemm_function *fast_dgemm(void) {
    static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3",
                                        "libblas.so.3"};
    static dgemm_function *found;
    static bool looked;
    if (looked)
        return found;
    looked = true;
    setenv("OPENBLAS_NUM_THREADS", "1", 0); // each rank has its own
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        found = library ? (dgemm_function *)dlsym(library, "cblas_dgemm") : NULL;
    }
    return found;
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
    void *out = must_grow(NULL, n * (as_double ? 8 : 4));
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

static void gemm(const struct wide *w, double alpha, double beta, const void *a,
                 const void *b, void *c) {
    enum { LARGE = 32 * 32 * 32, CBLAS_COLUMNS = 102, CBLAS_AS_IT_IS = 111 };
    int64_t m = w->c.rows, n = w->c.columns, k = w->k;
    bool as_double = w->compute == CUDA_R_64F;
    void *pa = packed(&w->a, a, as_double), *pb = packed(&w->b, b, as_double);
    // "If beta == 0, C does not have to be a valid input."
    struct operand out = w->c;
    void *pc = beta == 0 ? must_alloc((size_t)m * (size_t)n * (as_double ? 8 : 4))
                         : packed(&out, c, as_double);
    if (!as_double)
        blas_gemm(m, n, k, (float)alpha, (struct blas_matrix){pa, m, false},
                  (struct blas_matrix){pb, k, false}, (float)beta, pc, m);
    else if (m * n * k >= LARGE && m < INT32_MAX && n < INT32_MAX && k < INT32_MAX &&
             fast_dgemm())
        fast_dgemm()(CBLAS_COLUMNS, CBLAS_AS_IT_IS, CBLAS_AS_IT_IS, (int)m, (int)n,
                     (int)k, alpha, pa, (int)m, pb, (int)k, beta, pc, (int)m);
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

/* --- Carrying out ------------------------------------------------------------------ */

static double sum_up(const struct wide *w, const void *x, const void *y) {
    double sum = 0;
    for (int64_t i = 0; i < w->a.rows; i++) {
        double one = get(&w->a, x, i, 0);
        sum += w->kind == DOT    ? one * get(&w->b, y, i, 0)
               : w->kind == NRM2 ? one * one
                                 : fabs(one);
    }
    return w->kind == NRM2 ? sqrt(sum) : sum;
}

static int64_t place_of(const struct wide *w, const void *x) {
    int64_t best = 0;
    for (int64_t i = 1; i < w->a.rows; i++) {
        double one = fabs(get(&w->a, x, i, 0)), other = fabs(get(&w->a, x, best, 0));
        if (w->kind == AMAX ? one > other : one < other)
            best = i;
    }
    return w->a.rows > 0 ? best + 1 : 0;
}

static void give_result(const struct wide *w, const void *x, const void *y) {
    void *to = w->result_there ? shadow(w->result_there) : w->result;
    if ((w->kind == AMAX || w->kind == AMIN) && w->cublas_place)
        *(int64_t *)to = place_of(w, x);
    else if (w->kind == AMAX || w->kind == AMIN)
        *(int *)to = (int)place_of(w, x);
    else
        write_one(w->compute, to, sum_up(w, x, y));
}

/* As in the reference implementation of BLAS. */
static void find_rotation(double *a, double *b, double *c, double *s) {
    double larger = fabs(*a) > fabs(*b) ? *a : *b, r = copysign(hypot(*a, *b), larger);
    *c = r == 0 ? 1 : *a / r;
    *s = r == 0 ? 0 : *b / r;
    *b = fabs(*a) > fabs(*b) ? *s : r == 0 ? 0 : *c != 0 ? 1 / *c : 1;
    *a = r;
}

static void find_modified(double d[2], double *x, double y, double param[5]) {
    enum { GAMMA = 4096 };
    const double large = (double)GAMMA * GAMMA;
    double p = d[1] * y, q[] = {d[0] * *x * *x, d[1] * y * y};
    double h[2][2] = {{1, 1}, {-1, 1}}, flag = -1, u = 0;
    if (d[0] >= 0 && p == 0) {
        flag = -2;
        u = 1;
    } else if (d[0] >= 0 && fabs(q[0]) > fabs(q[1])) {
        flag = 0;
        h[1][0] = -y / *x;
        h[0][1] = p / (d[0] * *x);
        u = 1 - h[0][1] * h[1][0];
        d[0] /= u, d[1] /= u, *x *= u;
    } else if (d[0] >= 0 && q[1] >= 0) {
        flag = 1;
        h[0][0] = d[0] * *x / p;
        h[1][1] = *x / y;
        u = 1 + h[0][0] * h[1][1];
        double first = d[0];
        d[0] = d[1] / u, d[1] = first / u, *x = y * u;
    }
    if (u <= 0) {
        flag = -1;
        d[0] = d[1] = *x = h[0][0] = h[0][1] = h[1][0] = h[1][1] = 0;
    }
    for (int i = 0; i < 2; i++)
        while (flag != -2 && d[i] != 0 && isfinite(d[i]) &&
               (fabs(d[i]) <= 1 / large || fabs(d[i]) >= large)) {
            double by = fabs(d[i]) >= large ? GAMMA : 1. / GAMMA;
            flag = -1;
            d[i] /= by * by, h[i][0] *= by, h[i][1] *= by;
            *x *= i == 0 ? by : 1;
        }
    param[0] = flag;
    for (int i = 0; i < 4; i++)
        param[1 + i] = h[i % 2][i / 2];
}

/* Whether param's i-th number is stored: those that the flag implies are not. */
static bool is_stored(double flag, int i) {
    bool outer = i == 1 || i == 4; // h11, h22
    return i == 0 || flag == -1 || (flag == 0 && !outer) || (flag == 1 && outer);
}

static void give_rotation(const struct wide *w) {
    int type = w->compute;
    void *at[5];
    double number[4], param[5];
    for (int i = 0; i < 5; i++)
        at[i] = w->result_there && w->numbers[i] ? shadow(w->numbers[i]) : w->numbers[i];
    for (int i = 0; i < (w->kind == ROTG ? 2 : 4); i++)
        number[i] = read_one(type, at[i]);
    if (w->kind == ROTG)
        find_rotation(&number[0], &number[1], &number[2], &number[3]);
    else
        find_modified(number, &number[2], number[3], param);
    for (int i = 0; i < (w->kind == ROTG ? 4 : 3); i++)
        write_one(type, at[i], number[i]);
    for (int i = 0; i < 5 && w->kind == ROTMG; i++)
        if (is_stored(param[0], i))
            write_one(type, (char *)at[4] + (size_t)i * bytes_of(type), param[i]);
}

/* Of one element: changes x, and returns the new y. */
static double rotate(const struct wide *w, const double param[5], const void *x,
                     int64_t i, double y) {
    static const double implied[] = {0, 1, 0, 0, 1}, by_one[] = {0, 0, -1, 1, 0};
    double h[5], one = get(&w->a, x, i, 0);
    for (int k = 1; k < 5; k++)
        h[k] = is_stored(param[0], k) ? param[k] : (param[0] == 1 ? by_one : implied)[k];
    set(&w->a, x, i, 0, h[1] * one + h[3] * y);
    return h[2] * one + h[4] * y;
}

static void each_element(const struct wide *w, double alpha, double beta, const void *x,
                         const void *y, void *z) {
    double param[5] = {-1, alpha, -beta, beta, alpha};
    for (int i = 0; i < 5 && w->kind == ROTM; i++)
        param[i] = y ? get(&w->b, y, i, 0) : w->param[i];
    for (int64_t j = 0; j < w->c.columns; j++)
        for (int64_t i = 0; i < w->c.rows; i++) {
            double old = w->kind == COPY || (w->kind == GEAM) ? 0 : get(&w->c, z, i, j);
            double new = 0;
            switch (w->kind) {
            case AXPY: new = old + alpha *get(&w->a, x, i, 0); break;
            case SCAL: new = alpha *old; break;
            case COPY: new = get(&w->a, x, i, 0); break;
            case SWAP:
                new = get(&w->a, x, i, 0);
                set(&w->a, x, i, 0, old);
                break;
            case ROT:
            case ROTM: new = rotate(w, param, x, i, old); break;
            case GER: new = old + alpha *get(&w->a, x, i, 0) * get(&w->b, y, j, 0); break;
            default: // what a factor of 0 goes with is not read
                new = (alpha != 0 ? alpha * get(&w->a, x, i, j) : 0) +
                      (beta != 0 ? beta * get(&w->b, y, i, j) : 0);
            }
            set(&w->c, z, i, j, new);
        }
}

/* The calls of which arithmetic.c knows how to do them fast. False: not among them. */
static bool in_floats(const struct wide *w, float alpha, float beta, const void *x,
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

static void calculate(const struct wide *w) {
    AS_ON_A_GPU;
    double alpha =
        w->alpha_there ? read_one(w->compute, shadow(w->alpha_there)) : w->alpha;
    double beta = w->beta_there ? read_one(w->compute, shadow(w->beta_there)) : w->beta;
    for (int b = 0; b < w->batch; b++) {
        const void *x = extent(&w->a) ? shadow(start_of(&w->a, b)) : NULL;
        const void *y = extent(&w->b) ? shadow(start_of(&w->b, b)) : NULL;
        void *z = extent(&w->c) ? shadow(start_of(&w->c, b)) : NULL;
        if (w->kind == ROTG || w->kind == ROTMG)
            give_rotation(w);
        else if (w->result || w->result_there)
            give_result(w, x, y);
        else if (in_floats(w, (float)alpha, (float)beta, x, y, z))
            continue;
        else if (w->kind == GEMM)
            gemm(w, alpha, beta, x, y, z);
        else
            each_element(w, alpha, beta, x, y, z);
    }
}

static size_t result_bytes(const struct wide *w) {
    if (w->kind != AMAX && w->kind != AMIN)
        return bytes_of(w->compute);
    return w->cublas_place ? sizeof(int64_t) : sizeof(int);
}

static bool numbers_reachable(const struct wide *w) {
    for (int i = 0; i < 5; i++)
        if (w->result_there && w->numbers[i] &&
            !memory_range(w->numbers[i], bytes_of(w->compute) * (i == 4 ? 5 : 1)))
            return false;
    return true;
}

static bool step(struct op *op) {
    const struct wide *w = (const struct wide *)op;
    op->done = true;
    if (reachable(&w->a, w->batch) && reachable(&w->b, w->batch) &&
        reachable(&w->c, w->batch) && numbers_reachable(w) &&
        (!w->alpha_there || memory_range(w->alpha_there, bytes_of(w->compute))) &&
        (!w->beta_there || memory_range(w->beta_there, bytes_of(w->compute))) &&
        (!w->result_there || memory_range(w->result_there, result_bytes(w))))
        calculate(w);
    else
        device_break(w->device, cudaErrorIllegalAddress);
    return true;
}

static struct op *copy_of(const struct op *op) {
    const struct wide *from = (const struct wide *)op;
    struct wide *to = (struct wide *)op_create(sizeof *to, step);
    struct op fresh = to->op;
    *to = *from;
    to->op = fresh;
    to->op.cost = from->op.cost;
    to->op.copy = copy_of;
    return &to->op;
}

/* --- Queueing ---------------------------------------------------------------------- */

static double elements(const struct wide *w) { // of the result
    return (double)w->c.rows * (double)w->c.columns * w->batch;
}

static double work_of(const struct wide *w) {
    double n = elements(w);
    return w->kind == GEMM ? 2 * n * (double)w->k : n + (double)w->a.rows;
}

/* The bytes that pass to and from the GPU's memory. What is written is read before, but
 * for copies. */
static double bytes_passed(const struct wide *w) {
    const struct operand *all[] = {&w->a, &w->b, &w->c};
    bool only_written = w->kind == COPY || w->kind == GEAM;
    double bytes = 0;
    for (int i = 0; i < 3; i++)
        bytes += (double)all[i]->rows * (double)all[i]->columns *
                 (double)bytes_of(all[i]->type) * (i == 2 && !only_written ? 2 : 1);
    return bytes * w->batch;
}

static cublasStatus_t queue(cublasHandle_t handle, struct wide w, const void *alpha,
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

struct operand cublas_vector(int type, const void *at, int64_t n, int64_t distance) {
    return (struct operand){
        .at = at, .type = type, .rows = n, .columns = 1, .ld = distance, .vector = true};
}

struct operand cublas_matrix(int type, const void *at, cublasOperation_t op, int64_t rows,
                             int64_t columns, int64_t ld) {
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
cublasStatus_t cublas_measure(cublasHandle_t handle, enum kind kind, struct operand x,
                              struct operand y, void *result, int type, bool wide) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_known(x.type) || (kind == DOT && !is_known(y.type)) || !is_known(type))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (x.rows < 0 || (kind != DOT && x.ld <= 0))
        x.rows = y.rows = 0;
    return queue(handle,
                 (struct wide){
                     .kind = kind, .compute = type, .a = x, .b = y, .cublas_place = wide},
                 NULL, NULL, result);
}

/* Those that go through two vectors. */
cublasStatus_t cublas_walk(cublasHandle_t handle, enum kind kind, const void *alpha,
                           int type, struct operand x, struct operand y) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_known(type) || !is_known(y.type) || (kind != SCAL && !is_known(x.type)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (y.rows <= 0 || (kind == SCAL && y.ld <= 0))
        return CUBLAS_STATUS_SUCCESS;
    if ((kind == AXPY || kind == SCAL) && !alpha)
        return CUBLAS_STATUS_INVALID_VALUE;
    return queue(handle, (struct wide){.kind = kind, .compute = type, .a = x, .c = y},
                 alpha, NULL, NULL);
}

cublasStatus_t cublas_rotate(cublasHandle_t handle, enum kind kind, struct operand x,
                             struct operand y, const void *c, const void *s,
                             const void *param) {
    struct wide w = {.kind = kind, .compute = x.type, .a = x, .c = y};
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (x.rows <= 0)
        return CUBLAS_STATUS_SUCCESS;
    if (kind == ROT ? !c || !s : !param)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct operand five = cublas_vector(x.type, param, 5, 1);
    if (kind == ROTM && handle->mode == CUBLAS_POINTER_MODE_DEVICE)
        w.b = five;
    for (int i = 0; i < 5 && kind == ROTM && !w.b.at; i++)
        w.param[i] = get(&five, param, i, 0);
    return queue(handle, w, c, s, NULL);
}

cublasStatus_t cublas_rotation(cublasHandle_t handle, enum kind kind, int type,
                               void *const numbers[5]) {
    struct wide w = {.kind = kind, .compute = type};
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    for (int i = 0; i < (kind == ROTG ? 4 : 5); i++)
        if (!(w.numbers[i] = numbers[i]))
            return CUBLAS_STATUS_INVALID_VALUE;
    return queue(handle, w, NULL, NULL, numbers[0]);
}

static cublasStatus_t product(cublasHandle_t handle, struct wide w, const void *alpha,
                              const void *beta) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!is_known(w.a.type) || !is_known(w.b.type) || !is_known(w.c.type) ||
        w.compute < 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!fits(&w.a) || !fits(&w.b) || !fits(&w.c) || w.k < 0 || w.batch < 0 || !alpha ||
        !beta)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (w.c.rows == 0 || w.c.columns == 0)
        return CUBLAS_STATUS_SUCCESS;
    w.kind = GEMM;
    return queue(handle, w, alpha, beta, NULL);
}

cublasStatus_t cublas_gemv(cublasHandle_t handle, struct operand a, struct operand x,
                           struct operand y, const void *alpha, const void *beta,
                           int batch) {
    if (x.ld == 0 || y.ld == 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (batch == 0 && is_context(handle))
        return CUBLAS_STATUS_SUCCESS;
    struct wide w = {.compute = a.type, .a = a, .b = x, .c = y, .batch = batch};
    w.k = a.columns;
    return product(handle, w, alpha, beta);
}

cublasStatus_t cublas_ger(cublasHandle_t handle, const void *alpha, struct operand x,
                          struct operand y, struct operand a) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!fits(&a) || !alpha || x.ld == 0 || y.ld == 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    return queue(handle,
                 (struct wide){.kind = GER, .compute = a.type, .a = x, .b = y, .c = a},
                 alpha, NULL, NULL);
}

cublasStatus_t cublas_geam(cublasHandle_t handle, const void *alpha, struct operand a,
                           const void *beta, struct operand b, struct operand c) {
    if (!is_context(handle))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    // "If alpha == 0, A does not have to be a valid input", and it may be null.
    if (!alpha || !beta || !fits(&c) || (a.at && !fits(&a)) || (b.at && !fits(&b)))
        return CUBLAS_STATUS_INVALID_VALUE;
    a.rows = a.at ? a.rows : 0;
    b.rows = b.at ? b.rows : 0;
    return queue(handle,
                 (struct wide){.kind = GEAM, .compute = c.type, .a = a, .b = b, .c = c},
                 alpha, beta, NULL);
}

cublasStatus_t cublas_strided(cublasHandle_t handle, int compute, cublasOperation_t ta,
                              cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                              const void *alpha, const void *a, int atype, int64_t lda,
                              int64_t stridea, const void *b, int btype, int64_t ldb,
                              int64_t strideb, const void *beta, void *c, int ctype,
                              int64_t ldc, int64_t stridec, int batch) {
    struct wide w = {.compute = compute,
                     .a = cublas_matrix(atype, a, ta, m, k, lda),
                     .b = cublas_matrix(btype, b, tb, k, n, ldb),
                     .c = cublas_matrix(ctype, c, CUBLAS_OP_N, m, n, ldc),
                     .k = k,
                     .batch = batch};
    w.a.stride = stridea;
    w.b.stride = strideb;
    w.c.stride = stridec;
    if (batch == 0 && is_context(handle))
        return CUBLAS_STATUS_SUCCESS;
    return product(handle, w, alpha, beta);
}

cublasStatus_t cublas_many(cublasHandle_t handle, int compute, cublasOperation_t ta,
                           cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                           const void *alpha, const void *const *a, int atype,
                           int64_t lda, const void *const *b, int btype, int64_t ldb,
                           const void *beta, const void *const *c, int ctype, int64_t ldc,
                           int batch) {
    struct wide w = {.compute = compute,
                     .a = cublas_matrix(atype, NULL, ta, m, k, lda),
                     .b = cublas_matrix(btype, NULL, tb, k, n, ldb),
                     .c = cublas_matrix(ctype, NULL, CUBLAS_OP_N, m, n, ldc),
                     .k = k,
                     .batch = batch};
    w.a.many = a;
    w.b.many = b;
    w.c.many = c;
    if (batch == 0 && is_context(handle))
        return CUBLAS_STATUS_SUCCESS;
    return product(handle, w, alpha, beta);
}
