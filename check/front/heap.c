/*
 * heap.c: memory of the program's own that is given back while the GPU still needs it.
 *
 * "The memory page-locked by this function must be unregistered with cudaHostUnregister"
 * (CUDA Runtime API, cudaHostRegister), and when the memory is gone, there is no address
 * to do so any more: "The value of a pointer becomes indeterminate when the object it
 * points to … reaches the end of its lifetime" (C17, 6.2.4). What a queued function is
 * given has to live until the function begins, at least.
 *
 * free comes at any time: before the program begins, from a library, with any lock held.
 * So it waits for nobody. It notes what it finds, and who enters the judge next tells it.
 */
#define _GNU_SOURCE
#include "heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

/* A few: of what else there is, nothing is said. A set of them is a number. */
enum { MOST = 64, FRAMES = 32 };

/* `state` counts up: whoever has seen it, and finds it as it was, has seen one need. */
enum { NONE, FILLED, NEEDED, TAKEN, NOTED, BITS = 3 };
static struct heap_need {
    atomic_uint state;
    atomic_uintptr_t from, to;
    enum heap_why why;
    struct judge_at at;
    const char *by; // what gave it back, and where
    void *frames[FRAMES];
    int nframes;
    const char *caller;
} needs[MOST];
static atomic_int nneeds; // that are not NONE

static unsigned state_of(unsigned state) {
    return state & ((1 << BITS) - 1);
}

static bool becomes(struct heap_need *need, unsigned was, unsigned now) {
    unsigned next = now == NONE ? (was >> BITS) + 1 : was >> BITS;
    return atomic_compare_exchange_strong(&need->state, &was, next << BITS | now);
}

static bool goes(struct heap_need *need, unsigned from, unsigned to) {
    unsigned was = atomic_load(&need->state);
    return state_of(was) == from && becomes(need, was, to);
}

/* --- What is needed ------------------------------------------------------------ */

struct heap_need *heap_needs(enum heap_why why, const void *start, size_t bytes,
                             struct judge_at at) {
    for (int i = 0; i < MOST && start && bytes > 0 && front_checks; i++) {
        struct heap_need *need = &needs[i];
        if (!goes(need, NONE, FILLED))
            continue;
        atomic_fetch_add(&nneeds, 1);
        atomic_store(&need->from, (uintptr_t)start);
        atomic_store(&need->to, (uintptr_t)start + bytes);
        need->why = why;
        need->at = at;
        goes(need, FILLED, NEEDED);
        return need;
    }
    return NULL;
}

void heap_done(struct heap_need *need) {
    if (need && (goes(need, NEEDED, NONE) ||
                 (need->why == HEAP_GRAPH && goes(need, NOTED, NONE))))
        atomic_fetch_sub(&nneeds, 1);
}

static struct judge_at given_back_at(const struct heap_need *need) {
    return (struct judge_at){
        need->by, front_program_frame(need->caller, need->frames, need->nframes)};
}

bool heap_given_back(const struct heap_need *need, struct judge_at *at) {
    bool noted = need && state_of(atomic_load(&need->state)) == NOTED;
    if (noted)
        *at = given_back_at(need);
    return noted;
}

struct heap_need *heap_registered(const void *start) {
    for (int i = 0; i < MOST; i++)
        if (state_of(atomic_load(&needs[i].state)) == NEEDED &&
            needs[i].why == HEAP_REGISTERED &&
            atomic_load(&needs[i].from) == (uintptr_t)start)
            return &needs[i];
    return NULL;
}

void heap_forget(void) {
    for (int i = 0; i < MOST; i++)
        if (needs[i].why != HEAP_GRAPH) // whose graph has it still
            heap_done(&needs[i]);
}

/* --- What is given back -------------------------------------------------------- */

/* An allocator of the sanitizers knows more of its memory. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static void look(struct judge *j) {
    for (int i = 0; i < MOST; i++) {
        struct heap_need *need = &needs[i];
        if (state_of(atomic_load(&need->state)) != NOTED || need->why == HEAP_GRAPH)
            continue; // a graph that uses it may not be launched again
        const struct judge_at at = given_back_at(need);
        if (need->why == HEAP_REGISTERED)
            judge_registered_given_back(j, (const void *)atomic_load(&need->from),
                                        need->at, at);
        else
            judge_function_argument_freed(j, need->at, at);
        if (goes(need, NOTED, NONE))
            atomic_fetch_sub(&nneeds, 1);
    }
}

/* What lies in the block as a whole: who has registered more, as from a page's beginning
 * on, has registered others' bytes, too, and they come and go. */
static uint64_t take(const void *block, size_t bytes) {
    uintptr_t start = (uintptr_t)block;
    uint64_t taken = 0;
    for (int i = 0; i < MOST; i++) {
        struct heap_need *need = &needs[i];
        unsigned state = atomic_load(&need->state);
        if (state_of(state) == NEEDED && atomic_load(&need->from) >= start &&
            atomic_load(&need->to) <= start + bytes && becomes(need, state, TAKEN))
            taken |= UINT64_C(1) << i;
    }
    return taken;
}

static void put_back(uint64_t taken) {
    for (int i = 0; i < MOST; i++)
        if (taken >> i & 1)
            goes(&needs[i], TAKEN, NEEDED);
}

static void note(uint64_t taken, const char *by, void *return_address) {
    int error = errno;
    for (int i = 0; i < MOST; i++) {
        struct heap_need *need = &needs[i];
        if (!(taken >> i & 1))
            continue;
        need->by = by;
        need->caller = (const char *)return_address - 1;
        need->nframes = backtrace(need->frames, FRAMES);
        goes(need, TAKEN, NOTED);
        atomic_store(&front_at_in, look);
    }
    errno = error;
}

static bool nobody_needs(const void *block) {
    return !block || atomic_load_explicit(&nneeds, memory_order_relaxed) == 0 ||
           front_passes() || front_is_inside();
}

/* How large a block is knows only who has made it. */
static size_t (*size_of)(void *);

static size_t block_bytes(void *block, void *below) {
    static atomic_bool asked;
    Dl_info one, other;
    if (!atomic_exchange(&asked, true)) {
        void *found = dlsym(RTLD_NEXT, "malloc_usable_size");
        if (found && dladdr(found, &one) && dladdr(below, &other) &&
            one.dli_fbase == other.dli_fbase)
            size_of = (size_t(*)(void *))found;
    }
    return size_of ? size_of(block) : 0;
}

/* What is below is looked for with dlsym, which may call these functions itself. (The
 * compiler holds it to be a leaf.) */
#define LOOK_FOR(name, otherwise)            \
    if (!below_##name) {                     \
        static __thread volatile bool looks; \
        if (looks)                           \
            return otherwise;                \
        looks = true;                        \
        find_##name();                       \
        looks = false;                       \
    }

#define PUBLIC __attribute__((visibility("default"), weak))

FIND_BELOW(free, void (*)(void *))
FIND_BELOW(realloc, void *(*)(void *, size_t))
FIND_BELOW(munmap, int (*)(void *, size_t))

PUBLIC void free(void *block) {
    LOOK_FOR(free, )
    if (!nobody_needs(block)) {
        uint64_t taken = take(block, block_bytes(block, (void *)below_free));
        if (taken)
            note(taken, "free", __builtin_return_address(0));
    }
    below_free(block);
}

PUBLIC void *realloc(void *block, size_t bytes) {
    LOOK_FOR(realloc, NULL)
    if (nobody_needs(block))
        return below_realloc(block, bytes);
    uintptr_t before = (uintptr_t)block;
    uint64_t taken = take(block, block_bytes(block, (void *)below_realloc));
    void *moved = below_realloc(block, bytes);
    if (taken && (moved || bytes == 0) && (uintptr_t)moved != before)
        note(taken, "realloc", __builtin_return_address(0));
    else if (taken)
        put_back(taken);
    return moved;
}

PUBLIC int munmap(void *start, size_t bytes) {
    LOOK_FOR(munmap, -1)
    uint64_t taken = nobody_needs(start) ? 0 : take(start, bytes);
    int error = below_munmap(start, bytes);
    if (taken && !error)
        note(taken, "munmap", __builtin_return_address(0));
    else if (taken)
        put_back(taken);
    return error;
}

#endif
