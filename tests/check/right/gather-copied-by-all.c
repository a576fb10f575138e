// The root gathers; all ranks copy what they have to the host, and only the root looks at
// it. On the others nothing has written it.
#include "../check.h"

enum { N = 1000 };

int main(void) {
    start();
    int *mine = device_ints(N, rank), *all;
    const size_t bytes = (size_t)nranks * N * sizeof(int);
    int *host = malloc(bytes);
    MUST(cudaMalloc((void **)&all, bytes));
    MUST(ncclGroupStart());
    MUST(ncclSend(mine, N, ncclInt32, 0, comm, stream));
    for (int r = 0; rank == 0 && r < nranks; r++)
        MUST(ncclRecv(all + r * N, N, ncclInt32, r, comm, stream));
    MUST(ncclGroupEnd());
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaMemcpy(host, all, bytes, cudaMemcpyDeviceToHost));
    for (int r = 0; rank == 0 && r < nranks; r++)
        EXPECT(host[r * N + N - 1], r);
    MUST(cudaFree(all));
    MUST(cudaFree(mine));
    free(host);
    finish();
    return 0;
}
