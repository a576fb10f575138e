/*
 * queue.c: streams, and what advances them.
 *
 * A call that queues work returns at once; the work happens when the program waits or
 * asks for something: every wait advances all streams, not only the one waited for.
 * CUDA Programming Guide, "Streams"; CUDA Runtime API, "Stream synchronization behavior".
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>

int nstreams;
struct stream **streams;
uint64_t *done, *seen;
static uint64_t *
    *clocks; // clocks[s][t]: stream s comes after operation clocks[s][t] of t
static int capacity;
const struct op *running_function;
static struct stream **legacy;
static int nlegacy;

/* --- Lock, time, memory ----------------------------------------------------------- */

__thread void *called_from;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void lock_library(void) {
    pthread_mutex_lock(&lock);
}

void unlock_library(void) {
    pthread_mutex_unlock(&lock);
}

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void *must_alloc(size_t bytes) {
    void *memory = calloc(1, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "CPU build: out of host memory\n");
        abort();
    }
    return memory;
}

void *must_grow(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (!memory) {
        fprintf(stderr, "CPU build: out of host memory\n");
        abort();
    }
    return memory;
}

size_t threads_here(void) {
    size_t n = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
        return 1;
    for (struct dirent *entry; (entry = readdir(tasks));)
        n += entry->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* --- Streams ---------------------------------------------------------------------- */

static int new_slot(void) {
    for (int s = 0; s < nstreams; s++)
        if (!streams[s])
            return s;
    if (nstreams == capacity) {
        int more = capacity ? 2 * capacity : 16;
        streams = must_grow(streams, (size_t)more * sizeof *streams);
        done = must_grow(done, (size_t)more * sizeof *done);
        seen = must_grow(seen, (size_t)more * sizeof *seen);
        clocks = must_grow(clocks, (size_t)more * sizeof *clocks);
        for (int s = 0; s < more; s++) {
            uint64_t *wider = must_alloc((size_t)more * sizeof *wider);
            if (s < capacity) {
                memcpy(wider, clocks[s], (size_t)capacity * sizeof *wider);
                free(clocks[s]);
            } else {
                streams[s] = NULL;
                done[s] = seen[s] = 0;
            }
            clocks[s] = wider;
        }
        capacity = more;
    }
    return nstreams++;
}

struct stream *stream_create(int device, bool blocking, void *site) {
    struct stream *stream = must_alloc(sizeof *stream);
    stream->slot = new_slot();
    stream->device = device;
    stream->blocking = blocking;
    stream->site = site;
    // A slot that was used before goes on counting: older sequence numbers stay past.
    stream->queued = done[stream->slot];
    memset(clocks[stream->slot], 0, (size_t)capacity * sizeof **clocks);
    streams[stream->slot] = stream;
    return stream;
}

struct stream *legacy_stream(int device) {
    if (device >= nlegacy) {
        legacy = must_grow(legacy, (size_t)(device + 1) * sizeof *legacy);
        while (nlegacy <= device)
            legacy[nlegacy++] = NULL;
    }
    if (!legacy[device]) {
        legacy[device] = stream_create(device, true, NULL);
        legacy[device]->legacy = true;
    }
    return legacy[device];
}

struct stream *stream_of(cudaStream_t handle, int device) {
    static __thread struct stream *per_thread;
    if (!handle || handle == cudaStreamLegacy)
        return legacy_stream(device);
    if (handle == cudaStreamPerThread) {
        if (!per_thread) {
            per_thread = stream_create(device, true, NULL);
            per_thread->legacy = false;
        }
        return per_thread;
    }
    for (int s = 0; s < nstreams; s++)
        if (streams[s] == (struct stream *)handle && !streams[s]->destroyed &&
            !streams[s]->legacy)
            return streams[s];
    return NULL;
}

void stream_retire(struct stream *stream) {
    stream->destroyed = true;
    forget_seen();
}

uint64_t *clock_of(struct stream *stream) {
    return clocks[stream->slot];
}

static void merge_clock(uint64_t *into, const uint64_t *from) {
    for (int s = 0; s < nstreams; s++)
        if (from[s] > into[s])
            into[s] = from[s];
}

bool ordered_before(struct stream *stream, uint64_t seq, struct stream *after) {
    return stream == after || clocks[after->slot][stream->slot] >= seq ||
           seen[stream->slot] >= seq;
}

/* --- Operations ------------------------------------------------------------------- */

struct op *op_create(enum op_kind kind, const char *name, void *site) {
    struct op *op = must_alloc(sizeof *op);
    op->kind = kind;
    op->name = name;
    op->site = site;
    return op;
}

void op_range(struct op *op, const void *start, size_t bytes, bool write,
              const struct call *call) {
    if (bytes == 0 || !memory_find(start))
        return;
    op->ranges = must_grow(op->ranges, (size_t)(op->nranges + 1) * sizeof *op->ranges);
    op->ranges[op->nranges++] =
        (struct range){(char *)(uintptr_t)start, bytes, write, call};
}

void op_depend(struct op *op, int slot, uint64_t seq) {
    if (done[slot] >= seq)
        return;
    op->dependencies = must_grow(op->dependencies, (size_t)(op->ndependencies + 1) *
                                                       sizeof *op->dependencies);
    op->dependencies[op->ndependencies++] = (struct dependency){slot, seq};
}

static void come_after(struct op *op, struct stream *stream, struct stream *before) {
    if (before == stream || before->queued == 0)
        return;
    op_depend(op, before->slot, before->queued);
    merge_clock(clocks[stream->slot], clocks[before->slot]);
}

static void guard_ranges(struct op *op) {
    for (int r = 0; r < op->nranges; r++) {
        struct memory *memory = memory_find(op->ranges[r].start);
        if (memory)
            memory_guard(memory);
    }
}

void op_enqueue(struct op *op, struct stream *stream) {
    if (stream->capturing) {
        struct graph *graph = stream->capturing;
        op->next = NULL;
        if (graph->last)
            graph->last->next = op;
        else
            graph->first = op;
        graph->last = op;
        return;
    }
    // The default stream waits for the blocking streams of its device, and they for it.
    if (stream->legacy) {
        for (int s = 0; s < nstreams; s++)
            if (streams[s] && streams[s]->device == stream->device &&
                streams[s]->blocking)
                come_after(op, stream, streams[s]);
    } else if (stream->blocking) {
        come_after(op, stream, legacy_stream(stream->device));
    }
    check_race(op, stream);
    op->stream = stream;
    op->seq = ++stream->queued;
    clocks[stream->slot][stream->slot] = op->seq;
    for (struct call *call = op->calls; call; call = call->next)
        call->op = op;
    if (stream->last)
        stream->last->next = op;
    else
        stream->first = op;
    stream->last = op;
    if (!stream->head)
        stream->head = op;
    library.activity++;
    guard_ranges(op);
}

void op_free(struct op *op) {
    while (op->calls) {
        struct call *call = op->calls;
        op->calls = call->next;
        call_release(call);
    }
    free(op->dependencies);
    free(op->ranges);
    free(op->staged);
    free(op);
}

void forget_seen(void) {
    for (int s = 0; s < nstreams; s++) {
        struct stream *stream = streams[s];
        if (!stream)
            continue;
        while (stream->first && stream->first->seq <= seen[s] &&
               stream->first->state == OP_DONE) {
            struct op *op = stream->first;
            stream->first = op->next;
            if (!stream->first)
                stream->last = NULL;
            guard_ranges(op);
            op_free(op);
        }
        if (stream->destroyed && !stream->first) {
            streams[s] = NULL;
            free(stream);
        }
    }
}

void mark_clock_seen(const uint64_t *clock, int n) {
    for (int s = 0; s < n; s++)
        if (clock[s] > seen[s])
            seen[s] = clock[s] < done[s] ? clock[s] : done[s];
    forget_seen();
}

void mark_seen(struct stream *stream, uint64_t seq) {
    if (seq > seen[stream->slot])
        seen[stream->slot] = seq;
    mark_clock_seen(clocks[stream->slot], nstreams);
}

/* --- Doing it --------------------------------------------------------------------- */

static bool dependencies_met(struct op *op) {
    for (int d = 0; d < op->ndependencies; d++)
        if (done[op->dependencies[d].slot] < op->dependencies[d].seq)
            return false;
    return true;
}

/* Brings one operation as far as it goes now; true if that was anywhere. */
static bool op_advance(struct op *op) {
    bool further = op->state == OP_QUEUED;
    op->state = OP_STARTED;
    switch (op->kind) {
    case OP_COPY:
        memmove(shadow(op->destination), op->staged ? op->staged : shadow(op->source),
                op->bytes);
        break;
    case OP_SET: memset(shadow(op->destination), op->value, op->bytes); break;
    case OP_FREE: {
        struct memory *memory = memory_find(op->destination);
        op->nranges = 0;
        if (memory)
            memory_destroy(memory, op->site);
        break;
    }
    case OP_HOST_FUNCTION:
        // What comes before it has happened, and it may use the results.
        for (int d = 0; d < op->ndependencies; d++)
            if (op->dependencies[d].seq > seen[op->dependencies[d].slot])
                seen[op->dependencies[d].slot] = op->dependencies[d].seq;
        if (op->seq - 1 > seen[op->stream->slot])
            seen[op->stream->slot] = op->seq - 1;
        forget_seen();
        running_function = op;
        op->function(op->argument);
        running_function = NULL;
        break;
    case OP_COMPUTE: op->function(op->staged); break;
    case OP_EVENT:
        if (op->time)
            *op->time = now();
        break;
    case OP_WAIT: break;
    case OP_NCCL: {
        bool all = true;
        for (struct call *call = op->calls; call; call = call->next) {
            if (call->state != CALL_DONE)
                further |= call_advance(call);
            all &= call->state == CALL_DONE;
        }
        if (!all)
            return further;
        break;
    }
    }
    op->state = OP_DONE;
    return true;
}

bool advance(void) {
    bool any = false;
    for (int s = 0; s < nstreams; s++) {
        struct stream *stream = streams[s];
        while (stream && stream->head && dependencies_met(stream->head)) {
            struct op *op = stream->head;
            any |= op_advance(op);
            if (op->state != OP_DONE)
                break;
            done[s] = op->seq;
            stream->head = op->next;
        }
    }
    if (any)
        library.activity++;
    return any;
}

bool progress(void) {
    bool news = wire_poll();
    return advance() || news;
}

/* --- Waiting ---------------------------------------------------------------------- */

void wait_until(struct stream *stream, uint64_t seq, const char *name, void *site) {
    int slot = stream->slot;
    if (done[slot] < seq) {
        struct wait wait = {.stream = stream, .seq = seq};
        wait_begin(&wait, WAIT_OP, name, site);
        while (advance(), done[slot] < seq) {
            bool news = progress();
            if (done[slot] >= seq)
                break;
            wait_tick(&wait, news);
        }
        wait_end(&wait);
    }
}

void wait_for(struct stream *stream, uint64_t seq, const char *name, void *site) {
    wait_until(stream, seq, name, site);
    mark_seen(stream, seq);
}

static __thread struct wait polling;

void poll_over(void) {
    if (polling.kind != WAIT_NOTHING)
        wait_end(&polling);
}

void poll_once(struct stream *stream, uint64_t seq, const char *name, void *site) {
    if (polling.kind == WAIT_NOTHING || polling.stream != stream ||
        polling.site != site) {
        poll_over();
        polling = (struct wait){.stream = stream, .seq = seq};
        wait_begin(&polling, WAIT_POLL, name, site);
    }
    polling.seq = seq;
    wait_tick(&polling, false);
}

bool poll_for(struct stream *stream, uint64_t seq, const char *name, void *site) {
    progress();
    if (done[stream->slot] >= seq) {
        poll_over();
        return true;
    }
    poll_once(stream, seq, name, site);
    return false;
}
