// Factors of reductions of one's own: on the host they may change at once, on the device
// when the call has ended on its stream. The operator may be destroyed before that, the
// factor may lie beside the data, and several calls at once may read it.
#include "../check.h"

static void set(float *device, float value, cudaStream_t on) {
    static float values[8]; // the copy reads it later
    static int n;
    values[n] = value;
    MUST(cudaMemcpyAsync(device, &values[n++], sizeof value, cudaMemcpyHostToDevice, on));
}

static ncclRedOp_t times(float *factor, ncclScalarResidence_t where, ncclComm_t of) {
    ncclRedOp_t op;
    MUST(ncclRedOpCreatePreMulSum(&op, factor, ncclFloat32, where, of));
    return op;
}

int main(void) {
    start();
    float *buf, *factor, host[4] = {8, 8, 8, 8}, half = 0.5f;
    ncclComm_t other = new_comm(MPI_COMM_WORLD);
    cudaStream_t side = new_stream();
    cudaEvent_t done;
    MUST(cudaEventCreate(&done));
    MUST(cudaMalloc((void **)&buf, 13 * sizeof *buf));
    factor = buf + 4;
    MUST(cudaMemcpyAsync(buf, host, sizeof host, cudaMemcpyHostToDevice, stream));
    MUST(cudaMemsetAsync(buf + 5, 0, 8 * sizeof *buf, stream));

    ncclRedOp_t op = times(&half, ncclScalarHostImmediate, comm);
    half = 77;
    MUST(ncclAllReduce(buf, buf, 4, ncclFloat32, op, comm, stream)); // 4 n
    MUST(ncclRedOpDestroy(op, comm));

    set(factor, 0.5f, stream);
    op = times(factor, ncclScalarDevice, comm);
    MUST(ncclAllReduce(buf, buf, 4, ncclFloat32, op, comm, stream)); // 2 n n
    set(factor, 0.25f, stream);
    MUST(ncclAllReduce(buf, buf, 4, ncclFloat32, op, comm, stream)); // n n n / 2
    MUST(cudaEventRecord(done, stream));
    MUST(cudaStreamWaitEvent(side, done, 0));
    set(factor, 1, side); // another stream, after the calls
    MUST(cudaEventRecord(done, side));
    MUST(cudaStreamWaitEvent(stream, done, 0));

    ncclRedOp_t others = times(factor, ncclScalarDevice, other);
    MUST(ncclGroupStart());
    MUST(ncclAllReduce(buf + 5, buf + 5, 2, ncclFloat32, op, comm, stream));
    MUST(ncclAllReduce(buf + 7, buf + 7, 2, ncclFloat32, op, comm, stream));
    MUST(ncclGroupEnd());
    MUST(ncclAllReduce(buf + 9, buf + 9, 4, ncclFloat32, others, other, side));
    MUST(ncclRedOpDestroy(op, comm));
    MUST(ncclRedOpDestroy(others, other));
    // Its number may be that of one on the device.
    op = times(&half, ncclScalarHostImmediate, comm);
    MUST(cudaStreamSynchronize(side));
    set(factor, 2, stream);
    MUST(ncclAllReduce(buf + 9, buf + 9, 4, ncclFloat32, op, comm, side));
    MUST(ncclRedOpDestroy(op, comm));
    MUST(cudaStreamSynchronize(side));
    MUST(cudaMemcpyAsync(host, buf, sizeof host, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    EXPECT(2 * host[3], nranks * nranks * nranks);

    MUST(cudaEventDestroy(done));
    MUST(cudaStreamDestroy(side));
    MUST(ncclCommDestroy(other));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
