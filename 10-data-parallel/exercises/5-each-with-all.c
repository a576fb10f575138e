// 10.5 Each sample meets all (build)
// make exercise N=10.5

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
    // Your calls.
}
