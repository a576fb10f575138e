/*
 * mpi.c: what a program does with MPI, beside waiting: its collective calls, passed on to
 * whoever compares them with the other ranks' (compare.c); which of its threads call; and
 * requests that it never completes.
 */
#include "facts.h"

#include <stdio.h>
#include <string.h>

/* --- Collective calls ------------------------------------------------------------- */

static struct fact fact_of(const struct judge *j,
                           const struct judge_mpi_collective *call) {
    struct fact fact = {.what = FACT_CALL,
                        .comm = call->comm,
                        .index = call->seq,
                        .seq = call->seq,
                        .count = call->bytes,
                        .site = call->at.site,
                        .rank = call->rank,
                        .nranks = call->nranks,
                        .world = j->rank,
                        .device = -1,
                        .number = call->world ? MPI_WORLD : MPI_OTHER,
                        .kind = JUDGE_MPI,
                        .type = call->type,
                        .redop = call->reduction,
                        .root = call->root};
    snprintf(fact.name, sizeof fact.name, "%s", call->at.call);
    return fact;
}

void judge_mpi_collective(struct judge *j, const struct judge_mpi_collective *call) {
    struct fact fact = fact_of(j, call);
    calls_pass_on(j, &fact);
}

void judge_mpi_part(struct judge *j, const struct judge_mpi_collective *call, bool gives,
                    int peer, uint64_t bytes) {
    struct fact fact = fact_of(j, call);
    fact.kind = gives ? JUDGE_SEND : JUDGE_RECV;
    fact.count = bytes;
    fact.type = fact.redop = -1;
    fact.root = peer;
    calls_pass_on(j, &fact);
}

void judge_mpi_collective_failed(struct judge *j,
                                 const struct judge_mpi_collective *call) {
    struct fact fact = fact_of(j, call);
    calls_take_back(j, &fact);
}

void judge_mpi_comm_gone(struct judge *j, uint64_t comm, int rank, int nranks) {
    struct fact fact = {.what = FACT_ENDED,
                        .comm = comm,
                        .rank = rank,
                        .nranks = nranks,
                        .world = j->rank};
    calls_pass_on(j, &fact);
}

/* --- Threads ---------------------------------------------------------------------- */

static void say_thread(struct judge *j, const char *what, const struct judge_at *other,
                       const char *level, struct judge_at at) {
    const struct judge_at *function = function_runs(j);
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: %s calls %s, and MPI was started with %s\n"
             "  rank %d on %s: %s at %s\n",
             function ? "a function of cudaLaunchHostFunc" : what, at.call, level,
             j->rank, j->host, at.call, place(j, at.site, where));
    if (function)
        text_add(&text, "  the function: queued at %s\n",
                 place(j, function->site, where));
    if (other)
        text_add(&text, "  meanwhile in another thread: %s at %s\n", other->call,
                 place(j, other->site, where));
    text_add(&text, "  Hint: ask for more, and look at what you get:"
                    " MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided).\n");
    report_and_go_on(j, &text, mixed(at.site, 21));
}

void judge_mpi_thread(struct judge *j, bool one, const char *level, struct judge_at at) {
    struct judge_at other;
    if (one)
        say_thread(j, "a thread that did not start MPI", NULL, level, at);
    else if (waits_in_mpi(j, &other))
        say_thread(j, "a second thread", &other, level, at);
}

void judge_mpi_collective_twice(struct judge *j, struct judge_at other,
                                struct judge_at at) {
    char here[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "setup: two threads are in collective calls of one MPI communicator at the "
             "same time\n"
             "  rank %d on %s: %s at %s\n"
             "  meanwhile in another thread: %s at %s\n"
             "  Hint: MPI matches these calls by their order, which two threads do not "
             "keep: each gets a"
             " communicator\n"
             "        of its own, by MPI_Comm_dup. MPI hangs here, or gives one the "
             "other's data.\n",
             j->rank, j->host, at.call, place(j, at.site, here), other.call,
             place(j, other.site, there));
    report(j, &text, true, mixed(at.site, 26));
}

void judge_mpi_after_end(struct judge *j, struct judge_at finalize, struct judge_at at) {
    char here[JUDGE_PLACE], there[JUDGE_PLACE];
    struct text text = {0};
    text_add(
        &text,
        "setup: %s comes after MPI_Finalize\n"
        "  rank %d on %s: %s at %s\n"
        "  %s at %s\n"
        "  Hint: MPI_Finalize comes behind the last call of MPI, those in other threads "
        "and in functions on"
        " streams\n"
        "        included: wait for these first. MPI may end the job here, or crash.\n",
        at.call, j->rank, j->host, at.call, place(j, at.site, here), finalize.call,
        place(j, finalize.site, there));
    report(j, &text, true, mixed(at.site, 27));
}

/* --- Buffers ---------------------------------------------------------------------- */

void judge_mpi_overlap(struct judge *j, struct judge_at at) {
    static const char both[] = "MPI_Sendrecv";
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: what %s sends and what it receives overlap\n"
             "  rank %d on %s: %s at %s\n"
             "  Hint: %s\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where),
             strcmp(at.call, both) == 0
                 ? "MPI_Sendrecv_replace has one buffer for both; here MPI may send what"
                   " has just arrived."
                 : "MPI_IN_PLACE in the place of sendbuf says that the data lies in"
                   " recvbuf already. Without\n"
                   "        it MPI may fail, or read what it has just written.");
    report_and_go_on(j, &text, mixed(at.site, 26));
}

void judge_mpi_parts_overlap(struct judge *j, struct judge_at at) {
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "memory: parts that %s receives overlap\n"
             "  rank %d on %s: %s at %s\n"
             "  Hint: counts and displs are both in elements of recvtype: a part begins"
             " where the last one ends,\n"
             "        or behind that. MPI may leave the data of either rank there.\n",
             at.call, j->rank, j->host, at.call, place(j, at.site, where));
    report_and_go_on(j, &text, mixed(at.site, 28));
}

void judge_mpi_dead_buffer(struct judge *j, struct judge_at made, struct judge_at at) {
    char what[JUDGE_PLACE];
    snprintf(what, sizeof what,
             "the buffer of %s is a variable of a function that has returned", made.call);
    report_gone(
        j, what, made, at, "",
        "a buffer belongs to MPI until its request is completed: it has to live as"
        " long.",
        27);
}

/* --- Requests --------------------------------------------------------------------- */

void judge_mpi_request_left(struct judge *j, struct judge_at at) {
    if (j->requests_left++ == 0)
        j->request_left = at;
}

/* "The sender should not modify any part of the send buffer after a nonblocking send
 * operation is called, until the send completes" (MPI 4.1, 3.7.2). */
void judge_mpi_sent_changed(struct judge *j, struct judge_at made) {
    char where[JUDGE_PLACE];
    struct text text = {0};
    text_add(&text,
             "race: what %s sends was changed before its request was completed\n"
             "  rank %d on %s: %s at %s\n"
             "  Hint: MPI_Wait, or an MPI_Test that says so, completes a request: change"
             " the buffer behind it,\n"
             "        or let each send have a buffer of its own.\n",
             made.call, j->rank, j->host, made.call, place(j, made.site, where));
    report(j, &text, true, mixed(made.site, 25));
}
