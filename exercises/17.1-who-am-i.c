//: kind complete
//: title Who am I?
//: trains what launchers say in the environment
//: setup mpi
//: ranks 1
//: build cpu
//: starter the rank is -1, expected
//: learned Each launcher sets its own variables; a set counts only if it is whole, and the innermost launcher comes first.
//: why Inside a Slurm job the processes of torchrun and mpirun see Slurm's variables, too, so theirs are asked for first.
//: hint getenv returns NULL if a variable is not set. When does a launcher's set count?
//: hint Go through the sets in the order of the table, and take the first whose two variables are both there.
//: hint for each set: if (getenv(set.rank) && getenv(set.size)) { *rank = atoi(…); *size = atoi(…); return; }
//: file

/*
 * Find out this process's rank and the number of ranks from the environment. Sets of
 * variables, the first that is complete counts:
 *
 *     RANK, WORLD_SIZE
 *     OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
 *     SLURM_PROCID, SLURM_NTASKS
 *
 * If there is none, the process is alone: rank 0 of 1.
 */
#include "lesson.h"

void who_am_i(int *rank, int *size) {
    //: starter
    *rank = -1;
    *size = -1;
    //: solution
    const char *const sets[3][2] = {{"RANK", "WORLD_SIZE"},
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                    {"SLURM_PROCID", "SLURM_NTASKS"}};
    *rank = 0;
    *size = 1;
    for (int i = 0; i < 3; i++)
        if (getenv(sets[i][0]) && getenv(sets[i][1])) {
            *rank = atoi(getenv(sets[i][0]));
            *size = atoi(getenv(sets[i][1]));
            return;
        }
    //: wrong rank-is-enough: in a Slurm job: … the rank is 7
    const char *const sets[3][2] = {{"RANK", "WORLD_SIZE"},
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                    {"SLURM_PROCID", "SLURM_NTASKS"}};
    *rank = 0;
    *size = 1;
    for (int i = 0; i < 3; i++)
        if (getenv(sets[i][0])) {
            const char *all = getenv(sets[i][1]);
            *rank = atoi(getenv(sets[i][0]));
            *size = all ? atoi(all) : 0;
            return;
        }
    //: wrong last-counts: torchrun inside a Slurm job
    const char *const sets[3][2] = {{"RANK", "WORLD_SIZE"},
                                    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                    {"SLURM_PROCID", "SLURM_NTASKS"}};
    *rank = 0;
    *size = 1;
    for (int i = 0; i < 3; i++)
        if (getenv(sets[i][0]) && getenv(sets[i][1])) {
            *rank = atoi(getenv(sets[i][0]));
            *size = atoi(getenv(sets[i][1]));
        }
    //: wrong torchrun-only: started by srun
    *rank = getenv("RANK") ? atoi(getenv("RANK")) : 0;
    *size = getenv("WORLD_SIZE") ? atoi(getenv("WORLD_SIZE")) : 1;
    //: wrong not-asked: started by srun: … getenv returns NULL for a variable that is not set
    *rank = atoi(getenv("RANK"));
    *size = atoi(getenv("WORLD_SIZE"));
    //: end
}
//: check
#include <setjmp.h>
#include <signal.h>

int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
void who_am_i(int *rank, int *size);

static jmp_buf before;
static bool crashed;

static void crash(int signal_number) {
    (void)signal_number;
    crashed = true;
    longjmp(before, 1);
}

static void try(const char *what, const char *set, int rank, int size) {
    const char *const all[] = {
        "RANK",         "WORLD_SIZE",           "SLURM_PROCID",
        "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"};
    for (int i = 0; i < 6; i++) {
        if (set[i] == '-')
            unsetenv(all[i]);
        else
            setenv(all[i], (char[]){set[i], '\0'}, 1);
    }
    check_case("%s", what);
    int got_rank = -2, got_size = -2;
    if (!setjmp(before) && !crashed)
        who_am_i(&got_rank, &got_size);
    check_that(!crashed, "a segmentation fault: getenv returns NULL for a variable that "
                         "is not set, and atoi takes no NULL");
    check_that(got_rank == rank, "the rank is %d, expected %d", got_rank, rank);
    check_that(got_size == size, "the number of ranks is %d, expected %d", got_size,
               size);
}

void check(void) {
    signal(SIGSEGV, crash);
    try("started by torchrun", "25----", 2, 5);
    try("started by srun", "--34--", 3, 4);
    try("started by mpirun", "----68", 6, 8);
    try("started by hand", "------", 0, 1);
    try("torchrun inside a Slurm job", "1201--", 1, 2);
    try("mpirun inside a Slurm job", "--0212", 1, 2);
    try("only RANK is set, by somebody's script, in a Slurm job", "7-23--", 2, 3);
    signal(SIGSEGV, SIG_DFL);
}
