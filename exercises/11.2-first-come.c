//: kind repair
//: title First come, first sent
//: trains the order of calls on all ranks
//: ranks 2 3 | 1 4 7 8
//: calls ncclAllReduce=4
//: starter NCCL CHECK: mismatch
//: wrong in-a-group s/(for \(int i.*)ngradients - 1 - i(.*)\}/CHECK_NCCL(ncclGroupStart());\n$1order[i]$2CHECK_NCCL(ncclGroupEnd());\n}/s: NCCL CHECK: mismatch
//: wrong waits-each-time s/ngradients - 1 - i(.*sending\)\);)/order[i]$1\nCHECK_CUDA(cudaStreamSynchronize(sending));/s: NCCL CHECK: mismatch
//: wrong not-ready s/CHECK_CUDA\(cudaStreamWaitEvent[^;]*;//: NCCL CHECK: race
//: wrong other-event s/sending, ready\[g\]/sending, ready[ngradients - 1]/: NCCL CHECK: race
//: learned All ranks make their calls in the same order, even if on some rank a later gradient is ready first.
//: why The loop is the same on all ranks, and each all-reduce waits for its own gradient in the stream.
//: hint On which gradient does each rank's first all-reduce work?
//: hint NCCL knows no names: the first call of one rank meets the first call of the others. `order` differs from rank to rank.
//: hint Go through the gradients in a fixed order, such as from the last to the first, and wait for ready[g] each time.
//: file

/*
 * Gradient g has count[g] elements; ready[g] is recorded when it is computed. On this
 * rank they become ready in the order order[0], order[1], … So this function sends them
 * in that order, to lose no time: "Worked for weeks. Since one GPU is a little slower
 * than the others, the loss explodes."
 *
 * Repair it: each gradient must become the sum over all ranks. Make one all-reduce for
 * each gradient, in the stream `sending`.
 */
#include "lesson.h"

void reduce_gradients(float **gradient, const size_t *count, int ngradients,
                      const int *order, const cudaEvent_t *ready, ncclComm_t comm,
                      cudaStream_t sending) {
    for (int i = 0; i < ngradients; i++) {
        //: starter
        const int g = order[i];
        //: solution
        const int g = ngradients - 1 - i;
        //: wrong off-by-one: of gradient
        const int g = ngradients - 1 - i - (i == 0);
        //: end
        CHECK_CUDA(cudaStreamWaitEvent(sending, ready[g], 0));
        CHECK_NCCL(ncclAllReduce(gradient[g], gradient[g], count[g], ncclFloat32, ncclSum,
                                 comm, sending));
    }
}
//: check
#include <cublas_v2.h>

void reduce_gradients(float **gradient, const size_t *count, int ngradients,
                      const int *order, const cudaEvent_t *ready, ncclComm_t comm,
                      cudaStream_t sending);

enum { GRADIENTS = 4 };

void check(void) {
    const float three = 3;
    cublasHandle_t blas;
    cudaStream_t sending;
    CHECK_CUDA(cudaStreamCreateWithFlags(&sending, cudaStreamNonBlocking));
    CHECK_CUBLAS(cublasCreate(&blas));
    CHECK_CUBLAS(cublasSetStream(blas, check_stream));
    for (int c = 0; c < 3; c++) {
        check_case("%d gradients, in the order of case %d", GRADIENTS, c);
        // The last is ready first, but on some ranks two neighbours change places.
        int order[GRADIENTS] = {3, 2, 1, 0};
        const int swap = (check_rank + c) % GRADIENTS;
        if (swap > 0) {
            order[swap - 1] = 3 - swap;
            order[swap] = 4 - swap;
        }
        float *gradient[GRADIENTS];
        size_t count[GRADIENTS];
        cudaEvent_t ready[GRADIENTS];
        for (int g = 0; g < GRADIENTS; g++) {
            count[g] = 10 + 7 * (size_t)g + (size_t)c;
            float *mine = check_host(count[g] * sizeof *mine);
            for (size_t i = 0; i < count[g]; i++)
                mine[i] = (float)check_data(check_rank, 100 * (size_t)g + i);
            gradient[g] = check_device(count[g] * sizeof **gradient);
            check_put(gradient[g], mine, count[g] * sizeof *mine);
            CHECK_CUDA(cudaEventCreateWithFlags(&ready[g], cudaEventDisableTiming));
        }
        for (int i = 0; i < GRADIENTS; i++) {
            const int g = order[i];
            CHECK_CUBLAS(cublasSscal_64(blas, (int64_t)count[g], &three, gradient[g], 1));
            CHECK_CUDA(cudaEventRecord(ready[g], check_stream));
        }
        reduce_gradients(gradient, count, GRADIENTS, order, ready, check_comm, sending);
        CHECK_CUDA(cudaStreamSynchronize(sending));
        for (int g = 0; g < GRADIENTS; g++) {
            char name[32];
            snprintf(name, sizeof name, "gradient %d", g);
            float *expected = check_host(count[g] * sizeof *expected);
            for (size_t i = 0; i < count[g]; i++) {
                expected[i] = 0;
                for (int r = 0; r < check_nranks; r++)
                    expected[i] += 3 * (float)check_data(r, 100 * (size_t)g + i);
            }
            check_buffer(name, gradient[g], expected, count[g], ncclFloat32);
        }
        for (int g = 0; g < GRADIENTS; g++)
            CHECK_CUDA(cudaEventDestroy(ready[g]));
    }
    CHECK_CUBLAS(cublasDestroy(blas));
    CHECK_CUDA(cudaStreamDestroy(sending));
}
