// cudaMemcpy from and to managed memory is over when it returns, whatever kind is named:
// the host reads what it brought, and writes over what it took.
#include "../check.h"

enum { COUNT = 1000, BYTES = COUNT * sizeof(int) };

int main(void) {
    start();
    int *buf = device_ints(COUNT, 7), *one, *other;
    MUST(cudaMallocManaged((void **)&one, BYTES, cudaMemAttachGlobal));
    MUST(cudaMallocManaged((void **)&other, BYTES, cudaMemAttachGlobal));
    MUST(cudaMemcpy(one, buf, BYTES, cudaMemcpyDeviceToHost));
    EXPECT(one[COUNT - 1], 7);
    one[0] = 8;
    MUST(cudaMemcpy(other, one, BYTES, cudaMemcpyHostToHost));
    EXPECT(other[0], 8);
    for (int i = 0; i < COUNT; i++)
        other[i] = 9;
    MUST(cudaMemcpy(one, other, BYTES, cudaMemcpyDefault));
    EXPECT(one[COUNT - 1], 9);
    MUST(cudaMemcpy(buf, other, BYTES, cudaMemcpyHostToDevice));
    other[0] = 10;
    EXPECT_INTS(buf, COUNT, 9);
    MUST(cudaFree(one));
    MUST(cudaFree(other));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
