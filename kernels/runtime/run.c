/*
 * run.c runs a kernel: block after block, in the thread that looks after the streams.
 *
 * The threads of a block are a loop in the compiled code. Where they wait for one
 * another, each of them is a coroutine of LLVM's, which rests at a barrier, or at a
 * shuffle, until the others have come so far.
 */
#include "kernels.h"

#include "data/puts.h"
#include "fault.h"

enum { WARP = 32, MOST = 1024 };

/* The thread that runs, of a kernel that waits. */
static struct thread {
    void *frame;
    unsigned kind, mask; // why it rests
} threads[MOST], *running;

uint64_t __kernel_given[MOST], __kernel_got[MOST];

/* The kernel of which a block waits for other processes, and its threads. No other kernel
 * whose threads wait runs meanwhile. */
static const struct launch *resting;
static unsigned nthreads;
/* The last kernel whose threads wait, and where it is. */
static const struct launch *launched;
static struct kernel_where waiting;

static char *frames; // of all threads of a block
static size_t frames_room, frames_used;

void __kernel_waits(unsigned kind, unsigned mask) {
    running->kind = kind;
    running->mask = mask;
    if (kind == KERNEL_OVER)
        __kernel_given[running - threads] = 0; // it does not vote
}

void __kernel_no_barrier(unsigned number, unsigned barriers) {
    fault_no_barrier(launched, &waiting, number, barriers);
}

void *__kernel_frame(size_t bytes) {
    bytes = (bytes + 63) / 64 * 64;
    if (frames_used == 0 && bytes * MOST > frames_room) {
        frames_room = bytes * MOST;
        free(frames);
        if (posix_memalign((void **)&frames, 64, frames_room) != 0)
            fail("no memory for a kernel's threads: %zu bytes", frames_room);
    }
    void *frame = frames + frames_used;
    frames_used += bytes;
    return frame;
}

/* Threads of a warp that ask at one place who is active: all that can have come. */
static bool warp_asks(const struct thread *warp, unsigned n, unsigned *lanes) {
    unsigned place = 0;
    for (unsigned i = 0; i < n; i++)
        if (warp[i].kind == KERNEL_ACTIVE && (!*lanes || warp[i].mask == place)) {
            place = warp[i].mask;
            *lanes |= 1u << i;
        }
    for (unsigned i = 0; i < n; i++)
        if (*lanes >> i & 1)
            __kernel_given[warp - threads + i] = *lanes;
    return *lanes != 0;
}

/* Whether all threads of a warp that one waits for have come to a shuffle: with the same
 * mask; or, if that can't be, with another. */
static bool warp_ready(const struct thread *warp, unsigned n, unsigned *lanes) {
    const unsigned all = n == WARP ? ~0u : (1u << n) - 1;
    for (unsigned turn = 0; turn < 2 * n; turn++) {
        const struct thread *one = &warp[turn % n];
        unsigned here = 0, over = 0;
        for (unsigned i = 0; i < n && one->kind == KERNEL_WARP; i++) {
            bool same = warp[i].mask == one->mask || turn >= n;
            here |= (unsigned)(warp[i].kind == KERNEL_WARP && same) << i;
            over |= (unsigned)(warp[i].kind == KERNEL_OVER) << i; // nobody waits for it
        }
        *lanes = here & one->mask;
        if (*lanes && !(one->mask & all & ~(here | over)))
            return true;
    }
    *lanes = 0;
    return warp_asks(warp, n, lanes);
}

/* A coroutine's frame begins with the function that lets it go on. */
static inline void go_on(struct thread *thread) {
    running = thread;
    (*(void (**)(void *))thread->frame)(thread->frame);
}

/* Whether the next thing that all do is a __syncthreads again, if they have not ended. */
static bool barrier_opens(unsigned n) {
    unsigned over = 0, again = 0;
    for (unsigned i = 0; i < n; i++) {
        if (threads[i].kind == KERNEL_BARRIER)
            go_on(&threads[i]);
        over += threads[i].kind == KERNEL_OVER;
        again += threads[i].kind == KERNEL_BARRIER && !threads[i].mask;
    }
    return again && again + over == n;
}

/* Whether one of those that look for what other processes write has found it. */
static bool look_again(unsigned n) {
    bool found = false;
    for (unsigned i = 0; i < n; i++)
        if (threads[i].kind == KERNEL_OTHERS) {
            go_on(&threads[i]);
            found |= threads[i].kind != KERNEL_OTHERS;
        }
    puts_kernel_runs(found);
    return found;
}

/* To a step of a barrier session all threads of the block come, or none does. */
static void session_whole(unsigned n) {
    unsigned step = 0, together = 0;
    for (unsigned i = 0; i < n; i++)
        if (threads[i].kind == KERNEL_BARRIER && threads[i].mask &&
            (!step || threads[i].mask < step))
            step = threads[i].mask;
    for (unsigned i = 0; i < n; i++)
        together += threads[i].kind == KERNEL_BARRIER && threads[i].mask == step;
    if (step && together < n)
        fault_apart(launched, &waiting, together, n);
}

/* Whether threads of some warp could go on together. */
static bool warps_go_on(unsigned n) {
    bool moved = false;
    for (unsigned first = 0; first < n; first += WARP) {
        unsigned in_warp = n - first < WARP ? n - first : WARP, lanes;
        for (; warp_ready(threads + first, in_warp, &lanes); moved = true) {
            memcpy(__kernel_got + first, __kernel_given + first,
                   in_warp * sizeof *__kernel_got);
            for (unsigned i = 0; i < in_warp; i++)
                if (lanes >> i & 1)
                    go_on(&threads[first + i]);
        }
    }
    return moved;
}

/* Until all of them have ended; false: until some wait for other processes. */
static bool take_turns(unsigned n) {
    for (;;) {
        unsigned over = 0, at_barrier = 0, looking = 0;
        for (unsigned i = 0; i < n; i++) {
            over += threads[i].kind == KERNEL_OVER;
            at_barrier += threads[i].kind == KERNEL_BARRIER;
            looking += threads[i].kind == KERNEL_OTHERS;
        }
        if (over == n)
            return true;
        if (over + at_barrier == n) {
            session_whole(n);
            while (barrier_opens(n))
                ;
        } else if (!(over + at_barrier + looking < n && warps_go_on(n))) {
            if (looking == 0)
                fault_stuck(n - over - at_barrier, at_barrier);
            if (!look_again(n))
                return false;
        }
    }
}

static void start_threads(const struct launch *launch, struct kernel_where *where) {
    void *(*start)(void **, struct kernel_where *) = launch->kernel->code->run;
    nthreads = 0;
    frames_used = 0;
    for (where->thread[2] = 0; where->thread[2] < where->dims[2]; where->thread[2]++)
        for (where->thread[1] = 0; where->thread[1] < where->dims[1]; where->thread[1]++)
            for (where->thread[0] = 0; where->thread[0] < where->dims[0];
                 where->thread[0]++) {
                running = &threads[nthreads++];
                running->frame = start(launch->arguments, where);
            }
}

static void run_loop(const struct launch *launch, struct kernel_where *where) {
    void (*run)(void **, struct kernel_where *) = launch->kernel->code->run;
    run(launch->arguments, where);
}

/* The first thread of the block comes last; before it, those of its row. */
static void run_first_last(const struct launch *launch, struct kernel_where *where) {
    const unsigned *dims = where->dims;
    for (where->thread[2] = dims[2]; where->thread[2]-- > 0;) {
        where->end[2] = where->thread[2] + 1;
        where->thread[0] = 0;
        where->thread[1] = 1;
        where->end[0] = dims[0];
        where->end[1] = dims[1];
        if (dims[1] > 1)
            run_loop(launch, where);
        where->thread[0] = 1;
        where->thread[1] = 0;
        where->end[1] = 1;
        if (dims[0] > 1)
            run_loop(launch, where);
        where->thread[0] = 0;
        where->end[0] = 1;
        run_loop(launch, where);
    }
    where->thread[2] = 0;
}

static bool is_flat(const struct launch *launch) {
    return (launch->kernel->code->flags & KERNEL_FLAT) &&
           (uint64_t)launch->grid.x * launch->block.x <= INT32_MAX;
}

/* The next of the blocks, of which a flat kernel has one in a row; false: there is none.
 */
static bool next_block(struct kernel_where *where, bool flat) {
    for (int i = 0; i < 3; i++) {
        if (++where->block[i] < (flat && i == 0 ? 1 : where->grid[i]))
            return true;
        where->block[i] = 0;
    }
    return false;
}

static void run_blocks(const struct launch *launch, struct kernel_where *where) {
    bool flat = is_flat(launch);
    if (flat)
        where->end[0] = where->grid[0] * where->dims[0];
    do
        if (launch->kernel->code->flags & KERNEL_FIRST_LAST)
            run_first_last(launch, where);
        else
            run_loop(launch, where);
    while (next_block(where, flat));
}

static void run_waiting(const struct launch *launch, struct kernel_where *where) {
    do {
        if (!resting)
            start_threads(launch, where);
        bool over = take_turns(nthreads);
        resting = over ? NULL : launch;
    } while (!resting && next_block(where, false));
}

/* Where a thread went wrong is not known of a loop: its threads run one by one. */
static void one_by_one(const struct launch *launch, struct kernel_where *where) {
    const uint64_t height = where->dims[1],
                   width = where->dims[0] * (is_flat(launch) ? where->grid[0] : 1);
    for (uint64_t n = 0; n < width * height * where->dims[2]; n++) {
        const uint64_t at[] = {n % width, n / width % height, n / width / height};
        for (int i = 0; i < 3; i++) {
            where->thread[i] = (unsigned)at[i];
            where->end[i] = (unsigned)at[i] + 1;
        }
        run_loop(launch, where);
    }
}

static void thread_of_loop(struct kernel_where *where) {
    where->block[0] += where->thread[0] / where->dims[0];
    where->thread[0] %= where->dims[0];
}

static void thread_that_waits(struct kernel_where *where) {
    unsigned n = (unsigned)(running - threads);
    where->thread[0] = n % where->dims[0];
    where->thread[1] = n / where->dims[0] % where->dims[1];
    where->thread[2] = n / where->dims[0] / where->dims[1];
}

static struct kernel_where all_of(const struct launch *launch) {
    const dim3 *grid = &launch->grid, *block = &launch->block;
    return (struct kernel_where){.grid = {grid->x, grid->y, grid->z},
                                 .dims = {block->x, block->y, block->z},
                                 .end = {block->x, block->y, block->z}};
}

enum kernel_end kernel_run(const struct launch *launch) {
    static const struct runner loops = {run_blocks, one_by_one, thread_of_loop},
                               threads_wait = {run_waiting, NULL, thread_that_waits};
    static struct kernel_where loop;
    const struct kernel_module *module = launch->kernel->module;
    if (!resting)
        kernel_managed(module, false);
    if (!(launch->kernel->code->flags & KERNEL_WAITS)) {
        loop = all_of(launch);
        puts_kernel_runs(true);
        bool well = fault_guard(&loops, launch, &loop);
        puts_kernel_runs(false);
        kernel_managed(module, true);
        return well ? KERNEL_ENDED : KERNEL_BROKE;
    }
    if (resting && resting != launch)
        return KERNEL_RESTS;
    if (!resting) {
        launched = launch;
        waiting = all_of(launch);
        puts_kernel_runs(true);
    }
    bool well = fault_guard(&threads_wait, launch, &waiting);
    puts_kernel_runs(false);
    kernel_managed(module, true);
    if (!well)
        resting = NULL;
    return !well ? KERNEL_BROKE : resting ? KERNEL_RESTS : KERNEL_ENDED;
}

void kernel_forget(const struct launch *launch) {
    if (resting == launch)
        resting = NULL;
}
