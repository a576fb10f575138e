/*
 * allocations.h: the memory that the judge knows, for the files of this folder.
 */
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include "history/memory.h"
#include "say/failed.h"
#include "say/report.h"
#include "say/words.h"

enum { REMEMBERED = 1024 }; // freed allocations, to name a use after free

struct allocation {
    uint64_t start, end, serial;
    enum judge_memory_kind kind;
    int device;
    struct judge_at made;
    struct history history;
    bool of_graph;
    bool written;               // a byte of it, ever
    bool open;                  // something that the judge does not see may write it
    struct judge_at left_alone; // given to this call, which fills it on another rank
    struct fresh *fresh;        // NULL: nothing
};

struct freed {
    uint64_t start, end;
    enum judge_memory_kind kind;
    struct judge_at made, freed;
};

struct lent { // to MPI, until a request is completed
    uint64_t from, to;
    bool write;
    struct judge_at at;
};

struct uses {
    struct numbers lent;
    struct allocation **table; // sorted by address
    size_t n, size;
    struct freed freed[REMEMBERED];
    size_t nfreed;
    uint64_t serial;
    size_t forget_at; // so many parts in histories: look what can be forgotten
    bool kernels;     // one was launched
    struct access {   // kernels of `device` may use memory of `peer`
        int device, peer;
    } * access;
    size_t naccess, access_size;
    struct judge_at copies_nothing, nothing_made; // the first such copy, and its source
};

static inline uint64_t address_of(const void *pointer) {
    return (uint64_t)(uintptr_t)pointer;
}

static inline const char *does(bool write) {
    return write ? "writes" : "reads";
}

void uses_free(struct uses *uses);
// of the first after `at`
size_t allocation_position(const struct uses *uses, uint64_t at);
struct allocation *allocation_find(const struct uses *uses, uint64_t at); // that has it
const struct freed *allocation_freed(const struct uses *uses, uint64_t at);
void allocation_take_out(struct uses *uses, size_t i);
bool allocation_on_gpu(const struct allocation *a); // the host has no address for it
const char *kind_name(enum judge_memory_kind kind);

/* Fields of findings: {use}, say; {queued}; {bytes}, {kind}, {maker}, {made} and
 * {other_device}; {buffer}. */
void set_use(struct judge *j, struct finding *f, const char *field,
             const struct use *use);
void set_queued(struct judge *j, struct finding *f, const struct use *use);
void set_allocation(struct judge *j, struct finding *f, const struct allocation *a);
void set_freed(struct judge *j, struct finding *f, const struct freed *freed);

/* ranges.c, for buffers.c; true if it was wrong and is reported. */
bool memory_too_long(struct judge *j, const struct allocation *a, uint64_t start,
                     size_t bytes, const char *which, const char *words,
                     const struct judge_call *call, struct judge_at at);
void memory_report_freed(struct judge *j, const char *what, const char *words,
                         struct judge_at at, const struct freed *freed);

/* unwritten.c */
struct fresh;
void fresh_forget(struct allocation *a, uint64_t from, uint64_t to); // it is written anew
bool fresh_left_by(const struct allocation *a, uint64_t site);
void fresh_written(const struct uses *uses, struct allocation *a, uint64_t source);
void fresh_sent(struct judge *j, const struct judge_call *call,
                const struct stream *stream);
bool fresh_copied(struct judge *j, const struct judge_range *ranges, int n,
                  enum judge_op_kind kind, struct judge_at at);

/* lent_to_mpi.c */
// that MPI has; NULL: none
const struct lent *lent_part(const struct uses *uses, uint64_t from, uint64_t to,
                             bool write);
void lent_check(struct judge *j, const struct allocation *a, uint64_t from, uint64_t to,
                bool write, const struct use *use, const struct clock *clock);
void lent_report(struct judge *j, const struct allocation *a, const char *words,
                 const char *verb, struct judge_at at, const struct lent *lent);

#endif
