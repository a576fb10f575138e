// A function that runs before main makes the communicator, as the constructor of a global
// object in C++ would. (One that runs after main may not use CUDA: its functions return
// cudaErrorCudartUnloading on a GPU.)
#include "../check.h"

__attribute__((constructor)) static void open_all(void) {
    start();
}

int main(void) {
    use_comm(comm);
    finish();
    return 0;
}
