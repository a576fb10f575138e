//: kind repair
//: title Sometimes the loss explodes
//: trains the same order of calls on all ranks
//: ranks 2 3 | 1 4 7 8
//: starter Different layers were added here
//: learned Calls are matched by their order, not by their buffers: all ranks must make them in the same order.
//: why The order in which the layers are ready no longer matters: the calls follow the layers' numbers.
//: hint On which rank are which layers ready first? What then meets in the first all-reduce?
//: hint NCCL does not know layers. The first call of one rank belongs to the first call of the others.
//: hint Make the calls for layer 0, 1, 2, … on every rank, and don't use `ready` for the order.
//: file

/*
 * "We start the all-reduce of a layer's gradient as soon as it is ready. Since the last
 * release the loss explodes now and then. There is no error."
 *
 * ready[0], ready[1], … are the numbers of the layers in the order in which their
 * gradients became ready on this rank. All are ready when this function is called. All
 * layers have `count` elements. Repair it: afterwards grad[l] must be the sum of all
 * ranks, for each layer l.
 */
#include "lesson.h"

void reduce_layers(float **grad, const int *ready, int nlayers, size_t count,
                   ncclComm_t comm, cudaStream_t stream) {
    //: starter
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    //: solution
    for (int layer = 0; layer < nlayers; layer++) {
        float *buf = grad[layer];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    //: wrong grouped: Different layers were added here
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong waits: Different layers were added here
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: wrong backwards: Different layers were added here
    for (int i = nlayers - 1; i >= 0; i--) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    //: wrong all-but-one: of layer 0 … nothing was added
    for (int layer = 1; layer < nlayers; layer++) {
        float *buf = grad[layer];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    //: end
}
//: check
void reduce_layers(float **grad, const int *ready, int nlayers, size_t count,
                   ncclComm_t comm, cudaStream_t stream);

enum { LAYERS = 5, COUNT = 65 };

/* The layer that is ready as number i: the last first, but two of them the other way
 * round on the last rank, after the first step. */
static int order(int rank, int step, int i) {
    if (rank == check_nranks - 1 && step > 0 && (i == step || i == step + 1))
        i = i == step ? step + 1 : step;
    return LAYERS - 1 - i;
}

static float element(int rank, int layer, size_t i) {
    return (float)check_data(rank, (size_t)layer * COUNT + i);
}

void check(void) {
    for (int step = 0; step < 3; step++) {
        check_case("step %d", step);
        float *grad[LAYERS], mine[COUNT], expected[COUNT], mixed[COUNT];
        int ready[LAYERS];
        for (int l = 0; l < LAYERS; l++) {
            grad[l] = check_device(sizeof mine);
            for (size_t i = 0; i < COUNT; i++)
                mine[i] = element(check_rank, l, i);
            check_put(grad[l], mine, sizeof mine);
            ready[l] = order(check_rank, step, l);
        }
        reduce_layers(grad, ready, LAYERS, COUNT, check_comm, check_stream);
        for (int n = 0; n < LAYERS; n++) {
            const int layer = ready[n];
            char name[32];
            snprintf(name, sizeof name, "the gradient of layer %d", layer);
            for (size_t i = 0; i < COUNT; i++) {
                mine[i] = element(check_rank, layer, i);
                expected[i] = mixed[i] = 0;
                for (int r = 0; r < check_nranks; r++) {
                    expected[i] += element(r, layer, i);
                    mixed[i] += element(r, order(r, step, n), i);
                }
            }
            check_mistake("This is what this rank had: nothing was added.", mine);
            check_mistake("Different layers were added here.", mixed);
            check_buffer(name, grad[layer], expected, COUNT, ncclFloat32);
        }
    }
}
