// Threads as PyTorch's. Its watchdog: Python does not know it, and it asks again and
// again whether an event has happened, and looks after others. Autograd's: Python knows
// it, and it has no line of its own. And one that has Python's lock while another one
// calls.
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

int cudaEventCreate(void **event);
int cudaEventDestroy(void *event);
int cudaEventQuery(void *event);
int ncclCommGetAsyncError(void *comm, int *error);
int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op,
                  void *comm, void *stream);
int PyGILState_Ensure(void);
void *PyEval_SaveThread(void);

static void *comm;
static volatile int ended;
static pthread_t thread;

static void *looks(void *event) {
    int error;
    for (void *other; !ended;) {
        cudaEventQuery(event);
        ncclCommGetAsyncError(comm, &error);
        if (cudaEventCreate(&other) == 0)
            cudaEventDestroy(other);
        usleep(100000);
    }
    return 0;
}

void watchdog(void *event, void *its) {
    comm = its;
    pthread_create(&thread, NULL, looks, event);
}

void watchdog_ends(void) {
    ended = 1;
    pthread_join(thread, 0);
}

static void *memory, *on;
static volatile size_t wanted; // count; 0: nothing

static void *computes(void *unused) {
    PyGILState_Ensure();
    PyEval_SaveThread();
    for (;; usleep(100))
        if (wanted) {
            ncclAllReduce(memory, memory, wanted, 7, 0, comm, on);
            wanted = 0;
        }
    return unused;
}

void autograd(void *buffer, void *its, void *stream) {
    memory = buffer, comm = its, on = stream;
    pthread_create(&thread, NULL, computes, NULL);
}

void backward(size_t count) {
    wanted = count;
    while (wanted)
        usleep(100);
}

static volatile int asked, holds, over;

// Called with Python's lock; hold_asked without it.
void hold(void) {
    for (holds = 1; !over;)
        usleep(100);
}

void hold_asked(void) {
    while (!asked)
        usleep(100);
}

// The last calls are made while the other thread has the lock.
void many(void *buffer, void *its, void *stream, size_t last, int nlast) {
    for (int i = 0; i < 40 && nlast == 1; i++)
        ncclAllReduce(buffer, buffer, 1024, 7, 0, its, stream);
    for (asked = 1; !holds;)
        usleep(100);
    for (int i = 0; i < nlast; i++)
        ncclAllReduce(buffer, buffer, last, 7, 0, its, stream);
    over = 1;
}
