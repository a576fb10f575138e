// A function that runs before main makes the communicator, as the constructor of a global
// object in C++ would, and one that runs after main destroys it.
#include "../check.h"

__attribute__((constructor)) static void open_all(void) {
    start();
}

__attribute__((destructor)) static void close_all(void) {
    finish();
}

int main(void) {
    use_comm(comm);
    return 0;
}
