/*
 * words.h: calls and communicators in words.
 */
#ifndef WORDS_H
#define WORDS_H

#include "ranks/message_formats.h"
#include "say/text.h"

/* Whether a rank's part of a call of NCCL ends only when the source's has begun, since it
 * gets data from there. `root`: of a receive, the peer. */
bool part_needs(int kind, int root, int rank, int source);

/* How many blocks of `count` elements a buffer of a call has: one, or one for each rank;
 * of the root alone, or of all. */
enum blocks { NO_BLOCK, ONE_BLOCK, ALL_BLOCKS, ROOTS_ONE, ROOTS_ALL };
struct kind {
    enum blocks send, recv;
    bool reduces;
};
const struct kind *kind_of(int kind);
bool pairs(int kind);         // sends and receives
bool moves_nothing(int kind); // all ranks make the call, on no stream
// "ncclReduce(count 4, …)"; until four more were asked for
const char *fact_words(const struct fact *fact);
const char *call_words(const struct judge_call *call);
/* Ranks of one process are told apart by their number in the communicator. */
bool same_process(const int *world, int nranks);
/* "2", or "2 (its name)"; until four more were asked for. */
const char *comm_words(struct judge *j, uint64_t id, int number);
void comm_name_receive(struct judge *j, const void *data, size_t bytes); // MESSAGE_NAME
/* How many ranks a communicator has, and who they are where the numbers differ; by rank,
 * -1: not known. */
void add_size(struct text *text, const char *comm, int nranks, const int *world,
              const int *device);

#endif
