// Calls fail as expected, and the program looks at what they return, in many ways. It
// asks for no text, and for no last error.
#include "../check.h"

#include <stdbool.h>

static cudaError_t kept;
static int counted;

static void count(int code) {
    counted += code != 0;
}

static int refused(ncclResult_t result) {
    return result == ncclInvalidArgument;
}

static cudaError_t passes_on(int device) {
    return cudaSetDevice(device);
}

static int in_a_loop(void) {
    int n = 0;
    while (cudaSetDevice(4711 + n) == cudaErrorInvalidDevice && n < 3)
        n++;
    return n;
}

/* Not ready, or else an error, of which there may be several. */
static int asked(cudaEvent_t event) {
    cudaError_t error = cudaEventQuery(event);
    while (error == cudaErrorNotReady)
        error = cudaEventQuery(event);
    return error != cudaSuccess;
}

static int asked_by_case(cudaEvent_t event) {
    switch (cudaEventQuery(event)) {
    case cudaErrorNotReady: return 2;
    case cudaSuccess: return 0;
    default: return 1;
    }
}

static cudaEvent_t captured(void) {
    cudaEvent_t event;
    cudaGraph_t graph;
    MUST(cudaEventCreate(&event));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaEventRecord(event, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphDestroy(graph));
    return event;
}

int main(void) {
    start();
    int *buf = device_ints(4, rank), device = 4711;
    MUST(cudaGetDevice(&device));

    if (cudaSetDevice(4711) != cudaErrorInvalidDevice)
        return 4;
    EXPECT(cudaFree(buf + 1) == cudaErrorInvalidValue, 1);
    EXPECT(refused(ncclReduce(buf, buf, 4, ncclInt32, ncclSum, nranks, comm, stream)), 1);
    switch (ncclReduce(buf, buf, 4, ncclInt32, ncclSum, -1, comm, stream)) {
    case ncclInvalidArgument: break;
    default: return 4;
    }
    EXPECT(passes_on(-2), cudaErrorInvalidDevice);
    kept = cudaMemcpy(buf, buf, 4, (enum cudaMemcpyKind)99);
    EXPECT(kept != cudaSuccess, 1);
    count(cudaSetDevice(4711));
    count((int)ncclReduce(buf, buf, 4, ncclInt32, (ncclRedOp_t)77, 0, comm, stream));
    EXPECT(counted, 2);
    EXPECT(in_a_loop(), 3);
    cudaError_t errors[2] = {cudaSetDevice(4711), cudaSetDevice(device)};
    EXPECT(errors[0] == errors[1], 0);
    int bad = cudaSetDevice(-7) ? 1 : 0;
    EXPECT(bad, 1);
    bool both = cudaSetDevice(-7) == cudaErrorInvalidDevice &&
                cudaMemset(NULL, 0, 4) == cudaErrorInvalidValue;
    EXPECT(both, 1);
    printf("%d\n", cudaSetDevice(4711));
    cudaEvent_t event = captured();
    EXPECT(asked(event), 1);
    EXPECT(asked_by_case(event), 1);
    MUST(cudaEventDestroy(event));

    MUST(cudaFree(buf));
    finish();
    return 0;
}
