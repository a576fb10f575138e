//: kind build
//: title Each sample meets all
//: trains an all-gather, work, and an all-reduce, one after another
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllGather=1 ncclAllReduce=1
//: no cudaStreamSynchronize cudaDeviceSynchronize
//: starter element 0 of sums is 0, expected
//: wrong no-sum s/CHECK_NCCL\(\s*ncclAllReduce[^;]*;//: These are the sums over this rank's samples only.
//: wrong own-share-only s/ncclAllReduce\(sums, sums, total,/ncclAllReduce(sums, sums, share,/: of sums is
//: wrong not-gathered-yet s/(CHECK_NCCL\(\s*ncclAllGather[^;]*;)\s*(compare[^;]*;)/$2\n$1/: of sums is
//: wrong count-of-all s/ncclAllGather\(mine, all, share \* WIDTH/ncclAllGather(mine, all, total * WIDTH/: NCCL CHECK: memory
//: wrong width-forgotten s/ncclAllGather\(mine, all, share \* WIDTH/ncclAllGather(mine, all, share/: of sums is
//: learned Gather what every rank needs, work on your own share of the pairs, add up the results: in one stream, each step waits for the one before.
//: why The all-gather brings all samples, `compare` handles this rank's pairs, and the all-reduce adds up the ranks' parts.
//: hint `compare` needs all samples of all ranks, and gives only this rank's part of each sum. Which collective comes before it,
//:   which one after it?
//: hint All three go into `stream`, so they run one after another. The count of an all-gather is what one rank gives, in
//:   floats.
//: hint ncclAllGather(mine, all, share * WIDTH, …); compare(mine, share, all, total, sums); ncclAllReduce(sums, sums, total, …).
//: file

/*
 * Some losses compare each sample with the samples of all ranks. Each rank has `share`
 * samples of WIDTH floats in `mine`; all ranks together have `total`. Every rank needs,
 * for each of them, the sum of its products with all samples: sums[j] is the sum of
 * sample i times sample j, over all i.
 *
 * compare(…) works this out for the samples i of this rank alone, and needs all samples
 * j, in the order of the ranks. Queue what has to come before it and after it. `all` has
 * room for all samples, `sums` for all sums. The host should not wait.
 */
#include "lesson.h"

enum { WIDTH = 4 };

/* Queues on the stream that sums_of_products gets: out[j] = the sum of mine[i] times
 * all[j], over all i < share. */
void compare(const float *mine, size_t share, const float *all, size_t total, float *out);

void sums_of_products(const float *mine, size_t share, float *all, float *sums,
                      size_t total, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Your calls.
    //: solution
    CHECK_NCCL(ncclAllGather(mine, all, share * WIDTH, ncclFloat32, comm, stream));
    compare(mine, share, all, total, sums);
    CHECK_NCCL(ncclAllReduce(sums, sums, total, ncclFloat32, ncclSum, comm, stream));
    //: end
}
//: check
#include <cublas_v2.h>

enum { WIDTH = 4 };

void compare(const float *mine, size_t share, const float *all, size_t total, float *out);
void sums_of_products(const float *mine, size_t share, float *all, float *sums,
                      size_t total, ncclComm_t comm, cudaStream_t stream);

static cublasHandle_t blas;
static float *products, *ones;

void compare(const float *mine, size_t share, const float *all, size_t total,
             float *out) {
    const float one = 1, none = 0;
    // products: share rows of `total` numbers; then their sum over the rows.
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, (int)total, (int)share,
                             WIDTH, &one, all, WIDTH, mine, WIDTH, &none, products,
                             (int)total));
    CHECK_CUBLAS(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, (int)total, 1, (int)share,
                             &one, products, (int)total, ones, (int)share, &none, out,
                             (int)total));
}

/* The sum of the products of sample j of rank s with all samples of ranks from..to-1. */
static float sum_of(int s, size_t j, int from, int to, size_t share) {
    float sum = 0;
    for (int r = from; r < to; r++)
        for (size_t i = 0; i < share * WIDTH; i++)
            sum += (float)check_data(r, i) * (float)check_data(s, j * WIDTH + i % WIDTH);
    return sum;
}

void check(void) {
    const size_t shares[] = {3, 1, 10};
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    for (int c = 0; c < 3; c++) {
        const size_t share = shares[c], total = share * (size_t)check_nranks;
        const size_t size = sizeof(float);
        check_case("%zu samples on each rank", share);
        float *mine = check_device(share * WIDTH * size);
        float *all = check_device(total * WIDTH * size),
              *sums = check_device(total * size);
        products = check_device(share * total * size);
        ones = check_device(share * size);
        float *host = check_host(total * WIDTH * size),
              *expected = check_host(total * size);
        float *own = check_host(total * size);
        memset(host, 0, total * WIDTH * size);
        check_put(all, host, total * WIDTH * size);
        check_put(sums, host, total * size);
        for (size_t i = 0; i < share; i++)
            host[i] = 1;
        check_put(ones, host, share * size);
        for (size_t i = 0; i < share * WIDTH; i++)
            host[i] = (float)check_data(check_rank, i);
        check_put(mine, host, share * WIDTH * size);
        for (size_t j = 0; j < total; j++) {
            const int s = (int)(j / share);
            expected[j] = sum_of(s, j % share, 0, check_nranks, share);
            own[j] = sum_of(s, j % share, check_rank, check_rank + 1, share);
        }
        check_mistake("These are the sums over this rank's samples only.", own);
        sums_of_products(mine, share, all, sums, total, check_comm, check_stream);
        check_buffer("sums", sums, expected, total, ncclFloat32);
    }
    CHECK_CUBLAS(cublasDestroy(blas));
}
