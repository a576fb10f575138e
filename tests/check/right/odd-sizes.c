// Counts that divide by nothing, buffers filled to the last byte, and every element type.
#include "../check.h"

static const struct {
    ncclDataType_t type;
    size_t size;
} types[] = {{ncclInt8, 1},    {ncclUint8, 1},   {ncclInt32, 4},   {ncclUint32, 4},
             {ncclInt64, 8},   {ncclUint64, 8},  {ncclFloat16, 2}, {ncclFloat32, 4},
             {ncclFloat64, 8}, {ncclBfloat16, 2}};

int main(void) {
    start();
    static const size_t counts[] = {1, 3, 7, 1021, 65537};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            char *buf;
            size_t bytes = counts[i] * types[t].size;
            MUST(cudaMalloc((void **)&buf, bytes));
            MUST(cudaMemsetAsync(buf, 0, bytes, stream));
            MUST(
                ncclAllReduce(buf, buf, counts[i], types[t].type, ncclSum, comm, stream));
            MUST(cudaStreamSynchronize(stream));
            MUST(cudaFree(buf));
        }
        int *ints = device_ints((int)counts[i], rank + 1);
        MUST(ncclAllReduce(ints, ints, counts[i], ncclInt32, ncclSum, comm, stream));
        MUST(cudaStreamSynchronize(stream));
        EXPECT_INTS(ints, (int)counts[i], sum_of_ranks() + nranks);
        MUST(cudaFree(ints));
    }
    finish();
    return 0;
}
