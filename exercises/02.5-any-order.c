//: kind repair
//: title Sometimes the loss explodes
//: trains the same order of calls on all ranks
//: ranks 3 2 | 1 4 7 8
//: starter of layer
//: learned Calls are matched by their order, not by their buffers: all ranks must make them in the same one.
//: why The order in which the layers are ready no longer matters: the calls follow the layers' numbers.
//: hint On which rank are which layers ready first? What then meets in the first all-reduce?
//: hint NCCL does not know layers. The first call of one rank belongs to the first call of the others.
//: hint Call for layer 0, 1, 2, … on every rank, and don't use `ready` for the order.
//: file

/*
 * "We start the all-reduce of a layer's gradient as soon as it is ready. Since the last
 * release the loss explodes now and then. There is no error."
 *
 * ready[0], ready[1], … are the numbers of the layers in the order in which their
 * gradients became ready on this rank. All are ready when this function is called. All
 * layers have `count` elements. Repair it: afterwards grad[l] shall be the sum of all
 * ranks for each layer l.
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
    //: wrong grouped: of layer
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong waits: of layer
    for (int i = 0; i < nlayers; i++) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
        CHECK_CUDA(cudaStreamSynchronize(stream));
    }
    //: wrong backwards: of layer
    for (int i = nlayers - 1; i >= 0; i--) {
        float *buf = grad[ready[i]];
        CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, comm, stream));
    }
    //: wrong all-but-one: of layer
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

void check(void) {
    for (int step = 0; step < 3; step++) {
        check_case("step %d", step);
        float *grad[LAYERS], host[COUNT], expected[COUNT];
        int ready[LAYERS];
        for (int l = 0; l < LAYERS; l++) {
            grad[l] = check_device(sizeof host);
            for (size_t i = 0; i < COUNT; i++)
                host[i] = (float)check_data(check_rank, (size_t)l * COUNT + i);
            check_put(grad[l], host, sizeof host);
            ready[l] = LAYERS - 1 - l;
        }
        // The last rank has two of them the other way round, in the second and third
        // step.
        if (check_rank == check_nranks - 1 && step > 0) {
            ready[step] = LAYERS - 2 - step;
            ready[step + 1] = LAYERS - 1 - step;
        }
        reduce_layers(grad, ready, LAYERS, COUNT, check_comm, check_stream);
        for (int l = 0; l < LAYERS; l++) {
            char name[32];
            snprintf(name, sizeof name, "the gradient of layer %d", l);
            for (size_t i = 0; i < COUNT; i++) {
                expected[i] = 0;
                for (int r = 0; r < check_nranks; r++)
                    expected[i] += (float)check_data(r, (size_t)l * COUNT + i);
            }
            check_buffer(name, grad[l], expected, COUNT, ncclFloat32);
        }
    }
}
