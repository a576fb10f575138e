/*
 * cublas.c: cuBLAS: vectors and matrices that are added, multiplied, measured.
 *
 * A call is an operation on the stream of its handle; one whose result is a number on the
 * host waits for it. Calls that do not stand here are not seen: on GPUs the judge expects
 * operations that nobody told of. cuBLAS, "cuBLAS Helper Function Reference".
 */
#include "cublas_front.h"

#include "timeline.h"

struct blas {
    int device;
    cudaStream_t stream;
    bool on_device; // factors and results of one number lie there
    struct judge_at made;
};
static struct map handles;

static cublasStatus_t blas_status(cublasStatus_t result, struct judge_at at) {
    if (result == CUBLAS_STATUS_SUCCESS)
        return result;
    const char *text = CALL(BELOW(cublasGetStatusString), result);
    front_failed(true, front_code(CALL(BELOW(cublasGetStatusName), result), (int)result),
                 text, at);
    return result;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
    ENTER_AS("cublasCreate", cublasCreate_v2, handle);
    cublasStatus_t result = CALL(BELOW(cublasCreate_v2), handle);
    if (result != CUBLAS_STATUS_SUCCESS)
        return blas_status(result, at);
    struct blas *blas = must_alloc(sizeof *blas);
    blas->device = current_device();
    blas->made = at;
    front_in();
    free(table_get(&handles, *handle));
    table_put(&handles, *handle, blas);
    front_out();
    return result;
}

/* Waits for all work of its device. */
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    ENTER_AS("cublasDestroy", cublasDestroy_v2, handle);
    struct judge *j = front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas)
        judge_wait_device(j, blas->device, at);
    table_put(&handles, handle, NULL);
    front_out();
    struct timeline_wait wait = {
        .at = at, .on_device = true, .device = blas ? blas->device : 0, .world = -1};
    cublasStatus_t result = blas
                                ? HOST_WAITS(&wait, CALL(BELOW(cublasDestroy_v2), handle))
                                : CALL(BELOW(cublasDestroy_v2), handle);
    const bool gone = result == CUBLAS_STATUS_SUCCESS;
    j = front_in();
    if (blas)
        judge_wait_end(j, gone);
    if (blas && !gone)
        table_put(&handles, handle, blas); // it is still there
    front_out();
    if (gone)
        free(blas);
    return blas_status(result, at);
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    ENTER_AS("cublasSetStream", cublasSetStream_v2, handle, stream);
    cublasStatus_t result = CALL(BELOW(cublasSetStream_v2), handle, stream);
    front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas && result == CUBLAS_STATUS_SUCCESS)
        blas->stream = stream;
    front_out();
    return blas_status(result, at);
}

cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    ENTER_AS("cublasSetPointerMode", cublasSetPointerMode_v2, handle, mode);
    cublasStatus_t result = CALL(BELOW(cublasSetPointerMode_v2), handle, mode);
    front_in();
    struct blas *blas = table_get(&handles, handle);
    if (blas && result == CUBLAS_STATUS_SUCCESS)
        blas->on_device = mode == CUBLAS_POINTER_MODE_DEVICE;
    front_out();
    return blas_status(result, at);
}

/* As far as the host knows: "If beta == 0, C does not have to be a valid input" (cuBLAS,
 * cublas<t>gemm). */
static bool is_used(const struct blas_use *use, const struct blas *blas) {
    static const char zeros[16];
    if (use->scaled && (blas->on_device || !use->factor ||
                        memcmp(use->factor, zeros, use->factor_bytes) == 0))
        return false;
    return !use->number || blas->on_device;
}

struct blas_begun blas_begins(cublasHandle_t handle, const struct blas_use *uses,
                              int nuses, bool result, struct judge_at at) {
    struct judge_range ranges[MOST_USES * MOST_ROWS];
    enum which_rows which[MOST_USES] = {0};
    int n = 0, number = -1;
    bool all = true;
    front_in();
    const struct blas *blas = table_get(&handles, handle);
    struct blas found = blas ? *blas : (struct blas){0};
    front_out();
    if (!blas)
        return (struct blas_begun){UNSEEN, NULL};
    size_t bytes = 0;
    for (int i = 0; i < nuses; i++)
        if (is_used(&uses[i], &found)) {
            which[i] = add_rows(&uses[i].rows, uses[i].write, true, ranges, &n);
            all &= which[i] != NO_ROWS;
            bytes += uses[i].rows.width * uses[i].rows.height;
        }
    struct judge *j = front_in_stream(found.stream, found.device, &number);
    struct blas_begun begun = {number >= 0 ? GOES_ON : UNSEEN, NULL};
    for (int i = 0; i < nuses; i++)
        open_rows(j, &uses[i].rows, which[i]);
    if (number >= 0 &&
        (judge_handle_device(j, number, found.device, found.made, at) ||
         judge_op(j, number, ranges, all ? n : 0, all ? JUDGE_COMPUTES : JUDGE_KERNEL,
                  at)) &&
        front_checks) {
        begun.how = WRONG;
    } else if (number >= 0 && result && !found.on_device) {
        judge_wait_stream(j, number, at);
        begun.how = WAITS;
    }
    front_out();
    if (timeline_on && (begun.how == GOES_ON || begun.how == WAITS)) {
        const struct timeline_op op = {.name = at.call,
                                       .at = at,
                                       .waits = begun.how == WAITS,
                                       .done = begun.how == WAITS,
                                       .bytes = bytes};
        begun.span = timeline_begins(&op, found.stream, found.device);
    }
    return begun;
}

cublasStatus_t blas_ends(struct blas_begun begun, cublasStatus_t result,
                         struct judge_at at) {
    if (begun.span)
        timeline_ends(begun.span, (int)result);
    if (begun.how == WAITS)
        TELL(judge_wait_end, result == CUBLAS_STATUS_SUCCESS);
    return blas_status(result, at);
}

struct blas_use blas_matrix(const void *start, int64_t rows, int64_t columns,
                            int64_t distance, size_t size, bool write) {
    struct blas_use use = {.write = write};
    if (rows > 0 && columns > 0)
        use.rows = (struct rows){start, (size_t)distance * size, (size_t)rows * size,
                                 (size_t)columns};
    else
        use.number = true; // nothing
    return use;
}

struct blas_use vector_rows(const void *start, int64_t n, int64_t distance, size_t size,
                            bool write) {
    return blas_matrix(start, 1, n, distance < 0 ? -distance : distance, size, write);
}

struct blas_use blas_one(const void *start, size_t size, bool write) {
    return (struct blas_use){
        .rows = {start, size, size, 1}, .write = write, .number = true};
}

struct blas_use blas_unless_zero(const void *factor, size_t bytes, struct blas_use use) {
    use.scaled = true;
    use.factor = factor;
    use.factor_bytes = bytes;
    return use;
}

void blas_moves(struct judge_at at) {
    int number;
    struct judge *j = front_in_stream(cudaStreamLegacy, -1, &number);
    judge_op(j, number, NULL, 0, JUDGE_KERNEL, at);
    judge_wait_stream(j, number, at);
    front_out();
}

cublasStatus_t blas_moved(cublasStatus_t result, struct judge_at at) {
    TELL(judge_wait_end, result == CUBLAS_STATUS_SUCCESS);
    return blas_status(result, at);
}
