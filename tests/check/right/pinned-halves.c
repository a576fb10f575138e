// One page of pinned memory: while its first half is uploaded, files, sockets, messages,
// locks, a signal handler and the host itself use the second. Nobody touches what the
// copy uses.
#include "../check.h"

#include <aio.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

enum { HALF = 1000 };

static void use_files(char *half) {
    FILE *file = tmpfile();
    int number = fileno(file);
    struct iovec parts[2] = {{half, 10}, {half + 10, HALF - 10}};
    memset(half, 1, HALF);
    EXPECT(write(number, half, HALF), HALF);
    EXPECT(pwrite(number, half, HALF, HALF), HALF);
    EXPECT(writev(number, parts, 2), HALF);
    EXPECT(pread(number, half, HALF, 0), HALF);
    EXPECT(preadv(number, parts, 2, 0), HALF);
    rewind(file);
    memset(half, 0, HALF);
    EXPECT(fread(half, 1, HALF, file), HALF);
    MUST(lseek(number, 0, SEEK_SET));
    EXPECT(read(number, half, HALF), HALF);
    rewind(file);
    EXPECT(fwrite(half, 1, HALF, file), HALF);
    EXPECT(half[HALF - 1], 1);
    struct aiocb later = {.aio_fildes = number, .aio_buf = half, .aio_nbytes = HALF};
    memset(half, 2, HALF);
    for (int i = 0; i < 2; i++) {
        MUST(i ? aio_read(&later) : aio_write(&later));
        while (aio_error(&later) == EINPROGRESS)
            usleep(100);
        EXPECT(aio_return(&later), HALF);
    }
    EXPECT(half[HALF - 1], 2);
    fclose(file);
}

static void use_system(char *half) {
    EXPECT(getrandom(half, HALF, 0), HALF);
    EXPECT(getentropy(half, 256), 0);
    EXPECT(gethostname(half, HALF), 0);
    EXPECT(getcwd(half, HALF) == half, 1);
    EXPECT(stat(half, (struct stat *)(void *)(half + 600)), 0);
    EXPECT(getrusage(RUSAGE_SELF, (struct rusage *)(void *)half), 0);
    *(struct timespec *)(void *)half = (struct timespec){0, 1000};
    EXPECT(nanosleep((struct timespec *)(void *)half, NULL), 0);
    int *ends = (int *)(void *)half;
    EXPECT(pipe(ends), 0);
    struct pollfd *watch = (struct pollfd *)(void *)(half + 16);
    *watch = (struct pollfd){ends[1], POLLOUT, 0};
    EXPECT(poll(watch, 1, 1000), 1);
    close(ends[0]);
    close(ends[1]);
}

/* What threads wait with may lie there as well; the system looks at it. */
struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sem_t asked;
    int answered;
};

static void *answers(void *argument) {
    struct shared *shared = argument;
    sem_wait(&shared->asked);
    pthread_mutex_lock(&shared->lock);
    shared->answered = 1;
    pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->lock);
    return NULL;
}

static void use_locks(char *half) {
    struct shared *shared = (struct shared *)(void *)half;
    pthread_t thread;
    MUST(pthread_mutex_init(&shared->lock, NULL));
    MUST(pthread_cond_init(&shared->changed, NULL));
    MUST(sem_init(&shared->asked, 0, 0));
    shared->answered = 0;
    MUST(pthread_create(&thread, NULL, answers, shared));
    pthread_mutex_lock(&shared->lock);
    sem_post(&shared->asked);
    while (!shared->answered)
        pthread_cond_wait(&shared->changed, &shared->lock);
    pthread_mutex_unlock(&shared->lock);
    MUST(pthread_join(thread, NULL));
}

/* A handler counts there, while nothing else may come to this thread. */
static volatile sig_atomic_t *ticks;
static void tick(int number) {
    (void)number;
    ++*ticks;
}

static void use_signals(char *half) {
    struct sigaction counts = {.sa_handler = tick, .sa_flags = SA_RESTART}, before;
    sigset_t blocked, alarm;
    ticks = (volatile sig_atomic_t *)(void *)half;
    *ticks = 0;
    sigfillset(&counts.sa_mask);
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    MUST(pthread_sigmask(SIG_UNBLOCK, &alarm, &blocked));
    MUST(sigaction(SIGALRM, &counts, &before));
    struct itimerval every = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    MUST(setitimer(ITIMER_REAL, &every, NULL));
    while (*ticks < 20)
        memset(half + 16, *ticks, HALF - 16);
    MUST(setitimer(ITIMER_REAL, &never, NULL));
    MUST(sigaction(SIGALRM, &before, NULL));
    MUST(pthread_sigmask(SIG_SETMASK, &blocked, NULL));
}

static void use_sockets(char *half) {
    int ends[2];
    struct iovec part = {half, HALF};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    EXPECT(send(ends[0], half, HALF, 0), HALF);
    EXPECT(recv(ends[1], half, HALF, MSG_WAITALL), HALF);
    EXPECT(sendmsg(ends[0], &message, 0), HALF);
    EXPECT(recvmsg(ends[1], &message, MSG_WAITALL), HALF);
    EXPECT(sendto(ends[0], half, HALF, 0, NULL, 0), HALF);
    EXPECT(recvfrom(ends[1], half, HALF, MSG_WAITALL, NULL, NULL), HALF);
    close(ends[0]);
    close(ends[1]);
}

static void use_mpi(char *half) {
    int to = (rank + 1) % nranks, from = (rank + nranks - 1) % nranks;
    MPI_Request requests[2];
    memset(half, rank, HALF);
    MPI_Irecv(half, 400, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(half + 400, 400, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
    half[900]++;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(half[399], from);
    MPI_Recv_init(half, 400, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(half + 400, 400, MPI_BYTE, to, 0, MPI_COMM_WORLD, &requests[1]);
    for (int i = 1; i < 3; i++) {
        memset(half + 400, rank + i, 400);
        MPI_Startall(2, requests);
        for (int there = 0; !there;)
            MPI_Testall(2, requests, &there, MPI_STATUSES_IGNORE);
        EXPECT(half[0], from + i);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void use_itself(char *half) {
    char copy[HALF];
    sigset_t all;
    sigfillset(&all);
    MUST(pthread_sigmask(SIG_BLOCK, &all, NULL));
    for (int i = 0; i < HALF; i++)
        half[i] = (char)(i % 100 + 1);
    half[HALF - 1] = '\0';
    EXPECT(strlen(half), HALF - 1);
    memcpy(copy, half, HALF);
    memset(half, 7, HALF);
    memmove(half, half + 1, HALF - 1);
    EXPECT(copy[99], 100);
    EXPECT(half[0], 7);
}

int main(void) {
    start();
    char *pinned, *managed, *buf;
    MUST(cudaMallocHost((void **)&pinned, 4 * HALF));
    MUST(cudaMallocManaged((void **)&managed, 4 * HALF, cudaMemAttachGlobal));
    MUST(cudaMalloc((void **)&buf, 4 * HALF));
    memset(pinned, 5, 4 * HALF);
    memset(managed, 5, 4 * HALF);
    for (int i = 0; i < 2; i++) {
        char *half = i ? managed : pinned;
        MUST(cudaMemcpyAsync(buf, half, HALF, cudaMemcpyHostToDevice, stream));
        MUST(cudaMemcpyAsync(half + 2 * HALF, buf, HALF, cudaMemcpyDeviceToHost, stream));
        MUST(ncclAllReduce(half, half, HALF, ncclInt8, ncclMax, comm, stream));
        use_files(half + HALF);
        use_system(half + HALF);
        use_sockets(half + HALF);
        use_mpi(half + HALF);
        use_locks(half + HALF);
        use_signals(half + HALF);
        use_itself(half + HALF);
        half[3 * HALF]++;
        MUST(cudaStreamSynchronize(stream));
        EXPECT(half[HALF - 1], 5);
        EXPECT(half[3 * HALF - 1], 5);
    }
    MUST(cudaFreeHost(pinned));
    MUST(cudaFree(managed));
    MUST(cudaFree(buf));
    finish();
    return 0;
}
