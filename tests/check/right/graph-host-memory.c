// Graphs that use memory of the host, which lives as long as they are launched: of main,
// of a caller, of the heap until the graph is gone, static; and a graph that was captured
// from what is gone, and is never launched.
#include "../check.h"

#include <stdlib.h>

enum { N = 8 };
static int tables[N], total;

static void add(void *value) {
    total += *(int *)value;
}

static __attribute__((noinline)) cudaGraphExec_t capture(int *buf, const int *from,
                                                         int *argument) {
    cudaGraph_t graph;
    cudaGraphExec_t launchable;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMemcpyAsync(buf, from, N * sizeof *buf, cudaMemcpyHostToDevice, stream));
    MUST(cudaLaunchHostFunc(stream, add, argument));
    MUST(ncclAllReduce(buf, buf, N, ncclInt32, ncclSum, comm, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&launchable, graph, 0));
    MUST(cudaGraphDestroy(graph));
    return launchable;
}

static __attribute__((noinline)) void launch(cudaGraphExec_t launchable, int times) {
    for (int i = 0; i < times; i++)
        MUST(cudaGraphLaunch(launchable, stream));
    MUST(cudaStreamSynchronize(stream));
}

/* Its variables live while it launches. */
static __attribute__((noinline)) void from_stack(int *buf) {
    int ones[N], value = 1;
    for (int i = 0; i < N; i++)
        ones[i] = 1;
    cudaGraphExec_t launchable = capture(buf, ones, &value);
    launch(launchable, 2);
    EXPECT_INTS(buf, N, nranks);
    MUST(cudaGraphExecDestroy(launchable));
}

/* Captured to see that it can be, and thrown away by the caller. */
static __attribute__((noinline)) cudaGraphExec_t tried(int *buf) {
    int ones[N] = {1}, value = 1;
    return capture(buf, ones, &value);
}

int main(void) {
    start();
    int *buf = device_ints(N, 0), value = 10, mine[N];
    for (int round = 0; round < 3; round++) {
        from_stack(buf);
        MUST(cudaGraphExecDestroy(tried(buf)));
        int *heap = malloc(N * sizeof *heap), *argument = malloc(sizeof *argument);
        *argument = 100;
        for (int i = 0; i < N; i++)
            heap[i] = tables[i] = mine[i] = round;
        cudaGraphExec_t one = capture(buf, heap, argument),
                        two = capture(buf, mine, &value),
                        three = capture(buf, tables, &value);
        launch(one, 2);
        launch(two, 2);
        launch(three, 1);
        EXPECT_INTS(buf, N, round * nranks);
        MUST(cudaGraphExecDestroy(one));
        free(heap);
        free(argument);
        launch(two, 1);
        MUST(cudaGraphExecDestroy(two));
        MUST(cudaGraphExecDestroy(three));
    }
    EXPECT(total, 3 * (2 * 1 + 2 * 100 + 4 * 10));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
