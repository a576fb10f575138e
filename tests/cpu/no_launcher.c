/*
 * Processes that no launcher has started: this one forks them, and the unique id goes
 * through pipes. They become a job of MPI all the same, whose first process holds rank 0,
 * or are told why not.
 */
#define TAP_ALONE
#include "ints.h"
#include <mpi.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4, FILES = 256, IDS = 1000, N = 3000 };
static int pipes[MOST][2]; // to each process

static void send_id(const ncclUniqueId *id, int from, int to) {
    for (int p = from; p < to; p++)
        if (write(pipes[p][1], id, sizeof *id) != sizeof *id)
            bail("no id can be sent");
}

static ncclUniqueId receive_id(int process) {
    ncclUniqueId id;
    if (read(pipes[process][0], &id, sizeof id) != sizeof id)
        bail("no id comes");
    return id;
}

/* Each process is to return true within its time. */
static void run(bool (*process)(int number, int n), int n, const ncclUniqueId *id) {
    int status;
    pid_t children[MOST];
    for (int p = 0; p < n; p++)
        if (pipe(pipes[p]) != 0)
            bail("no pipe");
    for (int p = 0; p < n; p++)
        if ((children[p] = fork()) == 0) {
            alarm(40);
            exit(process(p, n) ? 0 : 9);
        }
    if (id)
        send_id(id, 0, n);
    for (int p = 0; p < n; p++) {
        // No child but these: what connects them is none of this program's.
        pid_t child = wait(&status);
        int number = 0;
        while (number < n && children[number] != child)
            number++;
        expect(number < n && status == 0, "process %d ends with status %d", number,
               status);
    }
    for (int p = 0; p < n; p++)
        for (int end = 0; end < 2; end++)
            close(pipes[p][end]);
}

static bool adds_up(ncclComm_t comm, int rank, int nranks) {
    int *a = new_ints(N), host[N], wrong = 0;
    set_ints(a, N, rank + 1);
    NCCL(ncclAllReduce(a, a, N, ncclInt32, ncclSum, comm, 0));
    CUDA(cudaStreamSynchronize(0));
    CUDA(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N; i++)
        wrong += host[i] != nranks * (nranks + 1) / 2;
    CUDA(cudaFree(a));
    return wrong == 0;
}

/* --- Two threads in each of two processes --- */

static struct rank {
    int rank, nranks;
    ncclUniqueId id;
    bool right;
} ranks[2];

static void *of_rank(void *argument) {
    struct rank *mine = argument;
    ncclComm_t comm;
    CUDA(cudaSetDevice(mine->rank));
    NCCL(ncclCommInitRank(&comm, mine->nranks, mine->id, mine->rank));
    mine->right = adds_up(comm, mine->rank, mine->nranks);
    NCCL(ncclCommDestroy(comm));
    return NULL;
}

static bool with_threads(int number, int n) {
    ncclUniqueId id;
    pthread_t threads[2];
    if (number == 0) {
        NCCL(ncclGetUniqueId(&id));
        send_id(&id, 1, n);
    } else {
        id = receive_id(number);
    }
    for (int t = 0; t < 2; t++) {
        ranks[t] = (struct rank){2 * number + t, 2 * n, id, false};
        pthread_create(&threads[t], NULL, of_rank, &ranks[t]);
    }
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    return ranks[0].right && ranks[1].right;
}

/* --- The id is a process's that is no rank; there are several communicators --- */

static bool in_a_group(int number, int n) {
    ncclUniqueId id = receive_id(number), second;
    ncclComm_t own, comms[2];
    int device = number;
    CUDA(cudaSetDevice(device));
    NCCL(ncclCommInitAll(&own, 1, &device));
    bool right = adds_up(own, 0, 1);
    if (number == 1) {
        NCCL(ncclGetUniqueId(&second));
        send_id(&second, 0, 1);
        send_id(&second, 2, n);
    }
    NCCL(ncclCommInitRank(&comms[0], n, id, (number + 1) % n));
    if (number != 1)
        second = receive_id(number);
    NCCL(ncclGroupStart());
    NCCL(ncclCommInitRank(&comms[1], n, second, number));
    NCCL(ncclGroupEnd());
    right = right && adds_up(comms[0], (number + 1) % n, n) &&
            adds_up(comms[1], number, n) && adds_up(own, 0, 1);
    NCCL(ncclCommDestroy(comms[0]));
    NCCL(ncclCommDestroy(comms[1]));
    NCCL(ncclCommDestroy(own));
    return right;
}

static bool two_at_once(int number, int n) {
    ncclUniqueId ids[2];
    ncclComm_t comms[2];
    for (int i = 0; i < 2; i++)
        if (number == 0) {
            NCCL(ncclGetUniqueId(&ids[i]));
            send_id(&ids[i], 1, n);
        } else {
            ids[i] = receive_id(number);
        }
    CUDA(cudaSetDevice(number));
    NCCL(ncclGroupStart());
    for (int i = 0; i < 2; i++)
        NCCL(ncclCommInitRank(&comms[i], n, ids[i], number));
    NCCL(ncclGroupEnd());
    bool right = adds_up(comms[0], number, n) && adds_up(comms[1], number, n);
    NCCL(ncclCommDestroy(comms[0]));
    NCCL(ncclCommDestroy(comms[1]));
    return right;
}

/* --- With NCCL_COMM_ID all make the same id, for every communicator --- */

static bool by_name(int number, int n) {
    char name[32];
    ncclUniqueId id;
    ncclComm_t comms[2];
    bool right = true;
    snprintf(name, sizeof name, "127.0.0.1:%d", (int)getppid());
    setenv("NCCL_COMM_ID", name, 1);
    CUDA(cudaSetDevice(number));
    for (int i = 0; i < 2; i++) {
        int rank = i == 0 ? number : n - 1 - number;
        NCCL(ncclGetUniqueId(&id));
        NCCL(ncclCommInitRank(&comms[i], n, id, rank));
        right = adds_up(comms[i], rank, n) && right;
    }
    for (int i = 0; i < 2; i++)
        NCCL(ncclCommDestroy(comms[i]));
    return right;
}

/* --- Those who cannot meet --- */

static bool is_told(const ncclUniqueId *id, int rank, int nranks, ncclResult_t result,
                    const char *what) {
    ncclComm_t comm = NULL;
    bool failed = ncclCommInitRank(&comm, nranks, *id, rank) == result && !comm;
    return failed && strstr(ncclGetLastError(NULL), what);
}

/* One more rank is waited for, and the last process does not stay. */
static bool without_one(int number, int n) {
    ncclUniqueId id = receive_id(number);
    pthread_t thread;
    if (number < n - 1)
        return is_told(&id, number, n + 1, ncclSystemError, "ended before");
    ranks[0] = (struct rank){number, n + 1, id, false};
    pthread_create(&thread, NULL, of_rank, &ranks[0]);
    usleep(300000);
    _exit(0);
}

static bool one_rank_twice(int number, int n) {
    ncclUniqueId id = receive_id(number);
    return is_told(&id, 0, n, ncclInvalidUsage,
                   "two processes call themselves rank 0 of 2");
}

static bool different_nranks(int number, int n) {
    ncclUniqueId id = receive_id(number);
    return is_told(&id, number, n + number, ncclInvalidUsage,
                   "as nranks, and another one");
}

static const char *refusal;

static void *is_refused(void *argument) {
    struct rank *mine = argument;
    mine->right = is_told(&mine->id, mine->rank, mine->nranks, ncclInvalidUsage, refusal);
    return NULL;
}

static bool are_refused(struct rank one, struct rank other, const char *what) {
    pthread_t threads[2];
    refusal = what;
    for (int t = 0; t < 2; t++) {
        ranks[t] = t ? other : one;
        pthread_create(&threads[t], NULL, is_refused, &ranks[t]);
    }
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    return ranks[0].right && ranks[1].right;
}

static bool of_threads(int number, int n) {
    ncclUniqueId id = receive_id(number);
    return are_refused((struct rank){0, n + 1, id, false},
                       (struct rank){IDS, n + 1 + IDS, id, false},
                       "as nranks, and another one");
}

static bool rank_of_two_threads(int number, int n) {
    ncclUniqueId id = receive_id(number);
    struct rank mine = {0, n + 1, id, false};
    return are_refused(mine, mine, "two threads call themselves rank 0 of 2");
}

/* The last rank comes when it has been said that it is missing. */
static const char *said; // a file

static void wait_until_said(const char *what) {
    char text[1000] = "";
    while (!strstr(text, what)) {
        FILE *file = fopen(said, "r");
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        usleep(10000);
    }
}

static bool comes_late(int number, int n) {
    ncclUniqueId id = receive_id(number);
    ncclComm_t comm;
    if (number == n - 1) {
        wait_until_said("2 of 3 ranks wait in ncclCommInitRank; missing: 2");
        wait_until_said("A thread that makes several ranks"); // and waits in the first
    }
    CUDA(cudaSetDevice(number));
    NCCL(ncclCommInitRank(&comm, n, id, number));
    bool right = adds_up(comm, number, n);
    NCCL(ncclCommDestroy(comm));
    return right;
}

/* A communicator of one rank grows by one that comes late. */
static bool grows_late(int number, int n) {
    ncclUniqueId id;
    ncclComm_t comm, grown = NULL;
    CUDA(cudaSetDevice(number));
    if (number > 0) {
        id = receive_id(number);
        wait_until_said("1 of 2 ranks wait in ncclCommGrow; missing: 1");
        NCCL(ncclCommGrow(NULL, n, &id, number, &grown, NULL));
    } else {
        NCCL(ncclGetUniqueId(&id));
        NCCL(ncclCommInitRank(&comm, 1, id, 0));
        NCCL(ncclCommGetUniqueId(comm, &id));
        send_id(&id, 1, n);
        NCCL(ncclCommGrow(comm, n, NULL, -1, &grown, NULL));
        NCCL(ncclCommDestroy(comm));
    }
    bool right = adds_up(grown, number, n);
    NCCL(ncclCommDestroy(grown));
    return right;
}

/* What the processes say to the user goes to a file meanwhile. */
static void run_late(bool (*process)(int number, int n), int n, const ncclUniqueId *id) {
    char name[] = "no_launcher.XXXXXX";
    int file = mkstemp(name), before = dup(2);
    said = name;
    dup2(file, 2);
    setenv("NCCL_CHECK_TIMEOUT", "0.2", 1);
    run(process, n, id);
    unsetenv("NCCL_CHECK_TIMEOUT");
    dup2(before, 2);
    close(before);
    close(file);
    unlink(name);
}

static bool with_mpi(int number, int n) {
    MPI_Init(NULL, NULL);
    ncclUniqueId id = receive_id(number);
    bool told = is_told(&id, number, n, ncclSystemError, "MPI_Init");
    MPI_Finalize();
    return told;
}

/* Two communicators of half the processes, each a job, and then one of all. */
static bool halves(int number, int n) {
    const int first = number / 2 * 2, rank = number - first;
    ncclUniqueId id;
    ncclComm_t comm;
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&id));
        send_id(&id, number + 1, number + 2);
    } else {
        id = receive_id(number);
    }
    CUDA(cudaSetDevice(number));
    NCCL(ncclCommInitRank(&comm, 2, id, rank));
    bool right = adds_up(comm, rank, 2);
    if (number == n - 1) {
        NCCL(ncclGetUniqueId(&id));
        send_id(&id, 0, n - 1);
    } else {
        id = receive_id(number);
    }
    right = is_told(&id, number, n, ncclSystemError,
                    "the first communicator must have a rank in every process") &&
            right;
    NCCL(ncclCommDestroy(comm));
    return right;
}

static bool too_late(int number, int n) {
    ncclUniqueId id = receive_id(number);
    return is_told(&id, number, n, ncclSystemError,
                   "has ended (an id of an earlier run?)");
}

int main(void) {
    ncclUniqueId id, gone;
    run(with_threads, 2, NULL);
    point("2 processes with 2 threads each");
    run(two_at_once, 3, NULL);
    point("3 processes make two communicators in one group");
    run(by_name, 3, NULL);
    point("NCCL_COMM_ID: 3 processes make two communicators, one after the other");
    NCCL(ncclGetUniqueId(&id));
    run(in_a_group, 3, &id);
    point("the id is made by a process that is no rank; a communicator before and after");
    NCCL(ncclGetUniqueId(&id));
    run(without_one, 3, &id);
    point("a process ends before all ranks have come: the others are told");
    NCCL(ncclGetUniqueId(&id));
    run(one_rank_twice, 2, &id);
    NCCL(ncclGetUniqueId(&id));
    run(different_nranks, 2, &id);
    NCCL(ncclGetUniqueId(&id));
    run(of_threads, 1, &id);
    NCCL(ncclGetUniqueId(&id));
    run(rank_of_two_threads, 1, &id);
    point("one rank twice, and different nranks, of processes or threads: all are told");
    NCCL(ncclGetUniqueId(&id));
    run_late(comes_late, 3, &id);
    run_late(grows_late, 2, NULL);
    point("a rank comes late: it is said that it is missing, and the others wait");
    run(halves, 4, NULL);
    point("halves that have met cannot meet: all are told, and nobody is accused");
    NCCL(ncclGetUniqueId(&id));
    run(with_mpi, 2, &id);
    point("processes that call MPI_Init are told");
    memset(&gone, 0, sizeof gone);
    int ends[2];
    if (pipe(ends) != 0)
        bail("no pipe");
    if (fork() == 0) {
        NCCL(ncclGetUniqueId(&gone));
        _exit(write(ends[1], &gone, sizeof gone) != sizeof gone);
    }
    expect(read(ends[0], &gone, sizeof gone) == sizeof gone, "no id comes");
    wait(NULL);
    run(too_late, 2, &gone);
    point("the process that made the id has ended: the others are told");
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, FILES});
    for (int i = 0; i < IDS; i++)
        NCCL(ncclGetUniqueId(&id));
    FILE *file = fopen("/dev/null", "r");
    expect(file != NULL, "no file can be opened");
    if (file)
        fclose(file);
    point("%d ids that nobody joins with leave room for files", IDS);
    alarm(40);
    NCCL_IS(ncclInvalidArgument, ncclCommInitRank(NULL, 2, id, 0));
    point("a call without a place for the communicator fails, and waits for nobody");
    return finish();
}
