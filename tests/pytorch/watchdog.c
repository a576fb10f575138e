// As PyTorch's watchdog: a thread that Python does not know asks again and again whether
// an event has happened, and looks after others.
#include <pthread.h>
#include <unistd.h>

int cudaEventCreate(void **event);
int cudaEventDestroy(void *event);
int cudaEventQuery(void *event);
int ncclCommGetAsyncError(void *comm, int *error);

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
