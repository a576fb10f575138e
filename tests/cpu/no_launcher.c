/*
 * Processes that no launcher has started: one forks the ranks, and the unique id goes
 * through pipes. Nothing connects them here, so each is told so, the one that made the id
 * and waits for the others, too.
 */
#define TAP_ALONE
#include "ints.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 4, FILES = 256, IDS = 1000 };

static bool has_id(int rank, int pipes[][2], ncclUniqueId *id) {
    if (rank > 0)
        return read(pipes[rank][0], id, sizeof *id) == sizeof *id;
    bool all = ncclGetUniqueId(id) == ncclSuccess;
    for (int r = 1; r < RANKS; r++)
        all &= write(pipes[r][1], id, sizeof *id) == sizeof *id;
    return all;
}

/* Exit code 0: it was told. */
static int be_rank(int rank, int pipes[][2]) {
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    alarm(20);
    if (!has_id(rank, pipes, &id))
        return 1;
    if (ncclCommInitRank(&comm, RANKS, id, rank) != ncclSystemError || comm)
        return 2;
    return strstr(ncclGetLastError(NULL), "mpirun") ? 0 : 3;
}

int main(void) {
    int pipes[RANKS][2], status;
    pid_t ranks[RANKS];
    for (int r = 0; r < RANKS; r++)
        if (pipe(pipes[r]) != 0)
            bail("no pipe");
    for (int r = 0; r < RANKS; r++)
        if ((ranks[r] = fork()) == 0)
            _exit(be_rank(r, pipes));
    for (int r = 0; r < RANKS; r++) {
        waitpid(ranks[r], &status, 0);
        expect(status == 0, "rank %d ends with status %d", r, status);
    }
    point("%d processes without mpirun: each is told", RANKS);
    ncclUniqueId id;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, FILES});
    for (int i = 0; i < IDS; i++)
        NCCL(ncclGetUniqueId(&id));
    FILE *file = fopen("/dev/null", "r");
    expect(file != NULL, "no file can be opened");
    if (file)
        fclose(file);
    point("%d ids that nobody joins with leave room for files", IDS);
    return finish();
}
