/*
 * start.c has the start and the end of MPI, and what the library says at its own start.
 */
#define _GNU_SOURCE
#include "data/exchange.h"
#include "standin.h"
#include "clock/clock.h"
#include "start/missing.h"
#include "cuda/device.h"
#include "base/helper.h"
#include "base/hosts.h"
#include "start/meet.h"
#include "data/puts.h"
#include "start/join.h"
#include "clock/mpi_time.h"

#include <limits.h>
#include <pthread.h>

static bool ours; // MPI was started here, for a program that does not
static bool settled, over;
static bool finalized; // by the program; MPI goes on while NCCL needs it

/* --- MPI -------------------------------------------------------------------------- */

static void abort_job(void) {
    int started, ended;
    PMPI_Initialized(&started);
    PMPI_Finalized(&ended);
    join_leave(JOIN_SAID);
    if (started && !ended)
        PMPI_Abort(MPI_COMM_WORLD, 1);
}

/* The modelled clock is rank 0's, for all of them. */
static void settle_clock(MPI_Comm host) {
    char asked[PATH_MAX];
    const char *mine = getenv("NCCL_CPU_CLOCK");
    int rank, nranks, node;
    snprintf(asked, sizeof asked, "%s", mine ? mine : "");
    PMPI_Bcast(asked, sizeof asked, MPI_CHAR, 0, MPI_COMM_WORLD);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (rank > 0)
        clock_start(asked, true);
    if (!clock_on)
        return;
    if (hosts_told) {
        int *nodes = base_alloc((size_t)nranks * sizeof *nodes);
        node = rank;
        PMPI_Bcast(&node, 1, MPI_INT, 0, host);
        PMPI_Allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, MPI_COMM_WORLD);
        clock_nodes(nodes, nranks);
        free(nodes);
    }
    mpi_time_open();
}

void standin_mpi_ends(void) {
    LOCKED;
    if (over)
        return;
    mpi_time_close();
    wire_close();
    over = true;
}

/* MPI is there: the library takes its part of it. */
static void settle(void) {
    int level, ranks;
    MPI_Comm host;
    settled = true;
    PMPI_Query_thread(&level);
    helper_allow(level == MPI_THREAD_MULTIPLE);
    fail_everywhere = abort_job;
    hosts_find();
    hosts_split(MPI_COMM_WORLD, 0, MPI_INFO_NULL, &host);
    PMPI_Comm_size(host, &ranks);
    device_ranks_on_host(ranks);
    settle_clock(host);
    PMPI_Comm_free(&host);
    wire_open();
    comm_numbered(job_rank);
    meet_seated();
}

static int start_mpi(int *argc, char ***argv, int *provided) {
    int level, result = MPI_SUCCESS;
    LOCKED;
    if (ours) { // and now the program does, too
        ours = false;
        PMPI_Query_thread(&level);
    } else {
        // Waits, host functions and the thread of last resort take turns with the
        // program.
        result = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
        if (result == MPI_SUCCESS)
            settle();
    }
    if (provided)
        *provided = level;
    return result;
}

int MPI_Init(int *argc, char ***argv) {
    return start_mpi(argc, argv, NULL);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    (void)required;
    return start_mpi(argc, argv, provided);
}

double MPI_Wtime(void) {
    if (!clock_on)
        return PMPI_Wtime();
    LOCKED;
    return clock_wtime();
}

double MPI_Wtick(void) {
    return clock_on ? 1e-9 : PMPI_Wtick();
}

int MPI_Abort(MPI_Comm comm, int code) {
    return PMPI_Abort(comm, code);
}

/* --- The end: attributes of MPI_COMM_SELF ------------------------------------------ */

/* What the program has set, in this order. MPI_Finalize calls their functions before
 * anything else (MPI 4.0, 11.2.4), here also where MPI itself does not end yet. */
static struct {
    int *keys;
    size_t n, size;
} of_self;

int MPI_Comm_set_attr(MPI_Comm comm, int key, void *value) {
    if (comm == MPI_COMM_SELF) {
        LOCKED;
        if (of_self.n == of_self.size) {
            of_self.size = of_self.size ? 2 * of_self.size : 8;
            of_self.keys = base_grow(of_self.keys, of_self.size * sizeof *of_self.keys);
        }
        of_self.keys[of_self.n++] = key;
    }
    return PMPI_Comm_set_attr(comm, key, value);
}

static void delete_attributes(void) {
    MPI_Errhandler before;
    PMPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); // it may be gone
    while (of_self.n > 0) {
        int key = of_self.keys[--of_self.n], there = 0;
        void *value;
        if (PMPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &there) == MPI_SUCCESS &&
            there)
            PMPI_Comm_delete_attr(MPI_COMM_SELF, key);
    }
    PMPI_Comm_set_errhandler(MPI_COMM_SELF, before);
    PMPI_Errhandler_free(&before);
    free(of_self.keys);
    of_self.keys = NULL;
    of_self.size = 0;
}

/* The real NCCL goes on without MPI, and a program may have used MPI only to bring the
 * unique id about. Here MPI carries NCCL: its end waits for that of the process. */
int MPI_Finalize(void) {
    bool kept = standin_keeps_mpi();
    delete_attributes();
    finalized = true;
    if (kept)
        return MPI_SUCCESS;
    standin_mpi_ends();
    return PMPI_Finalize();
}

int MPI_Finalized(int *flag) {
    int result = PMPI_Finalized(flag);
    *flag |= finalized;
    return result;
}

bool standin_keeps_mpi(void) {
    LOCKED;
    return settled && !over && (comm_connects() || !comm_any_made());
}

/* What the launcher says in the environment; -1: nothing. */
static int launcher_says(const char *const *names) {
    for (; *names; names++)
        if (getenv(*names))
            return atoi(getenv(*names));
    return -1;
}

static int launched_rank(void) {
    static const char *const names[] = {
        "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK", "SLURM_PROCID", NULL};
    return launcher_says(names);
}

/* How many processes it has started that can meet by MPI; 0: no others. Slurm does that
 * only where its srun and MPI go together (srun --mpi). */
static int launched(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", NULL};
    static const char *const of_slurm[] = {"SLURM_STEP_NUM_TASKS", NULL};
    int n = launcher_says(names);
    if (n <= 1 && getenv("PMIX_NAMESPACE"))
        n = launcher_says(of_slurm);
    return n > 1 ? n : 0;
}

static bool alone(void) {
    int started;
    PMPI_Initialized(&started);
    return settled ? job_size == 1 : !started && !launched();
}

static void need_mpi(void) {
    int started, ended, level;
    if (settled)
        return;
    PMPI_Initialized(&started);
    PMPI_Finalized(&ended);
    if (ended)
        return;
    if (!started && launched()) {
        missing_wait_begins(launched_rank(), launched());
        PMPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        missing_wait_ends();
        ours = true;
    }
    if (started || ours)
        settle();
}

void standin_job_ends(void) {
    join_leave(JOIN_SAID);
}

bool standin_announces(void *comm, const void *id, int rank, int nranks) {
    LOCKED;
    if (comm)
        meet_announce_growth(comm, nranks);
    return comm || !id || meet_announce(id, rank, nranks, true);
}

/* Processes are about to meet. A program that leaves MPI out gets it all the same; of
 * several threads that make communicators the first one starts it. */
void standin_needs_mpi(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (alone()) {
        LOCKED;
        wait_until(join_settled, NULL);
    }
    pthread_mutex_lock(&lock);
    need_mpi();
    pthread_mutex_unlock(&lock);
}

/* --- The library's own start and end ---------------------------------------------- */

static int exit_status;

static void at_exit(int status, void *unused) {
    (void)unused;
    exit_status = status;
}

__attribute__((destructor)) static void end(void) {
    // With an exit code the others may wait for this rank's calls, and not in MPI's end.
    bool ends = exit_status == 0 || (finalized && !comm_any_made());
    if ((ours || finalized) && settled && !over && ends) {
        standin_mpi_ends();
        PMPI_Finalize();
    }
    join_leave(exit_status & 0xff); // as a shell sees it
}

/* Before the constructors of the program, which may make a communicator (the front's are
 * 101 and 102). */
__attribute__((constructor(103))) static void start(void) {
    join_hold();
    if (launched_rank() <= 0)
        clock_start(getenv("NCCL_CPU_CLOCK") ? getenv("NCCL_CPU_CLOCK") : "", true);
    wire_start = standin_needs_mpi;
    wire_alone = alone;
    exchange_start();
    puts_start();
    meet_start();
    on_exit(at_exit, NULL);
    if (launched_rank() <= 0) {
        if (clock_on)
            printf("CPU build: no GPU is used, MPI carries the NCCL calls; times are "
                   "modelled on %s\n",
                   clock_machine());
        else
            printf("CPU build: no GPU is used, MPI carries the NCCL calls.\n");
        fflush(stdout);
    }
}
