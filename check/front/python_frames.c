/*
 * python_frames.c: where a thread of Python stands, without Python's lock. See
 * python_frames.h.
 */
#define _GNU_SOURCE
#include "python_frames.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>

/* Where CPython keeps it: offsets in bytes (cpython/pystate.h, frameobject.h,
 * internal/pycore_frame.h). */
static const struct layout {
    const char *version;
    int frame;   // in a thread's state: its newest frame
    int through; // that many bytes into what is there first (_PyCFrame); -1: it is there
    int code, previous, position; // in a frame
    int span;                     // all three are in a frame's first bytes
    int begins; // in a code object: where positions begin; 0: they are numbers
} layouts[] = {{"3.9.", 24, -1, 32, 24, 104, 112, 0},
               {"3.10.", 24, -1, 32, 24, 96, 104, 0},
               {"3.11.", 56, 8, 32, 48, 56, 64, 184},
               {"3.12.", 56, 0, 0, 8, 56, 64, 192},
               {"3.13.", 72, -1, 0, 8, 56, 64, 200}};
static const struct layout *_Atomic layout; // NULL: not known, or wrong

/* So many times it is only compared with what CPython says. */
enum { TRIALS = 16 };
static atomic_int trials;

struct stand {
    const char *frame;
    uint64_t code, position;
};

void frames_begin(const char *version) {
    for (size_t i = 0; version && i < sizeof layouts / sizeof *layouts; i++)
        if (strncmp(version, layouts[i].version, strlen(layouts[i].version)) == 0)
            layout = &layouts[i];
}

/* One word, wherever it is: memory of another thread may go at any time. */
static bool read_word(const char *at, uint64_t *out, bool carefully) {
    if (!carefully) {
        memcpy(out, at, sizeof *out);
        return true;
    }
    struct iovec here = {out, sizeof *out}, there = {(char *)(uintptr_t)at, sizeof *out};
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == sizeof *out;
}

static bool newest_frame(const struct layout *l, const char *thread, uint64_t *frame,
                         bool carefully) {
    return read_word(thread + l->frame, frame, carefully) &&
           (l->through < 0 ||
            read_word((const char *)(uintptr_t)*frame + l->through, frame, carefully));
}

static bool read_frame(const struct layout *l, const char *frame, struct stand *out,
                       uint64_t *previous, bool carefully) {
    out->frame = frame;
    return read_word(frame + l->code, &out->code, carefully) &&
           read_word(frame + l->position, &out->position, carefully) &&
           read_word(frame + l->previous, previous, carefully);
}

static uint64_t add(uint64_t key, const struct stand *stand) {
    return mixed(key ^ stand->code, stand->position);
}

/* What is known: from the places of all frames up to the program's own, mixed, to a site.
 * A key stands when its site does. */
enum { KEPT = 8192, TRIES = 8 };
static struct known { _Atomic uint64_t key, site; } known[KEPT];
static int nknown;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t find(uint64_t key) {
    for (size_t i = 0; i < TRIES; i++) {
        const struct known *one = &known[(key + i) % KEPT];
        const uint64_t its = atomic_load_explicit(&one->key, memory_order_acquire);
        if (its == key)
            return atomic_load_explicit(&one->site, memory_order_relaxed);
        if (!its)
            return 0;
    }
    return 0;
}

static bool put(uint64_t key, uint64_t site) {
    for (size_t i = 0; i < TRIES && nknown < KEPT / 2; i++) {
        struct known *one = &known[(key + i) % KEPT];
        if (one->key)
            continue;
        atomic_store_explicit(&one->site, site, memory_order_relaxed);
        atomic_store_explicit(&one->key, key, memory_order_release);
        nknown++;
        return true;
    }
    return false;
}

uint64_t frames_site(const void *thread) {
    const struct layout *l = layout;
    uint64_t at = 0, key = 0;
    if (!l || trials < TRIALS || !newest_frame(l, thread, &at, false))
        return 0;
    for (int depth = 0; at && depth < FRAMES_DEEP; depth++) {
        struct stand stand;
        read_frame(l, (const char *)(uintptr_t)at, &stand, &at, false);
        key = add(key, &stand);
        const uint64_t site = find(key);
        if (site > FRAMES_NOBODYS)
            return site;
    }
    return at ? 0 : find(~key);
}

/* Whether these frames are the ones that CPython speaks of. (There are others, which it
 * leaves out.) */
static bool is_code(const struct layout *l, const struct stand *stand, const void *code) {
    const uint64_t offset = l->begins
                                ? stand->position - stand->code - (uint64_t)l->begins
                                : (uint32_t)stand->position;
    return stand->code == (uintptr_t)code && offset < 1 << 24;
}

/* All frames up to the program's own, and their number; 0: it can't be learned. */
static int read_frames(const struct layout *l, const void *thread, void *const *codes,
                       int ncodes, bool all, struct stand *stands) {
    uint64_t at;
    int n = 0, matched = 0;
    if (!newest_frame(l, thread, &at, true))
        return -1;
    while (at && n < FRAMES_DEEP && (all || matched < ncodes)) {
        if (!read_frame(l, (const char *)(uintptr_t)at, &stands[n], &at, true))
            return -1;
        matched += matched < ncodes && is_code(l, &stands[n], codes[matched]);
        n++;
    }
    return matched == ncodes && (!all || !at) ? n : -1;
}

bool frames_learn(const void *thread, void *const *codes, int n, uint64_t site) {
    const struct layout *l = layout;
    struct stand stands[FRAMES_DEEP];
    if (!l)
        return false;
    const bool nobodys = site == FRAMES_NOBODYS;
    int nstands = read_frames(l, thread, codes, n, nobodys, stands);
    if (nstands < 0) {
        if (n < FRAMES_DEEP / 2) // it is not as it should be
            layout = NULL;
        return false;
    }
    uint64_t key = 0;
    for (int i = 0; i < nstands; i++)
        key = add(key, &stands[i]);
    key = nobodys ? ~key : key;
    pthread_mutex_lock(&lock);
    const uint64_t before = find(key);
    if (before && before != site)
        layout = NULL;
    else if (n > 0 || trials >= TRIALS)
        trials++;
    const bool added = !before && put(key, site);
    pthread_mutex_unlock(&lock);
    return added;
}

/* Where the main thread stood when it was looked at: its frames, and what led to the
 * newest one. */
enum { MAIN_DEEP = 24, SPAN = 112 };
static struct {
    const char *thread; // NULL: not known
    uint64_t site, newest;
    struct stand stands[MAIN_DEEP];
    int n;
} of_main;

bool frames_learn_main(const void *thread, void *const *codes, int n, uint64_t site) {
    const struct layout *l = layout;
    struct stand stands[FRAMES_DEEP];
    int nstands = l ? read_frames(l, thread, codes, n, false, stands) : -1;
    pthread_mutex_lock(&lock);
    of_main.thread = NULL;
    bool learned = nstands > 0 && nstands <= MAIN_DEEP &&
                   read_word((const char *)thread + l->frame, &of_main.newest, true);
    if (learned) {
        of_main.thread = thread;
        of_main.site = site;
        of_main.n = nstands;
        memcpy(of_main.stands, stands, (size_t)nstands * sizeof *stands);
    }
    pthread_mutex_unlock(&lock);
    return learned;
}

/* In one call of the system, since the frames may go meanwhile. Frames that are not as
 * before are others, whatever they are. */
static bool main_stands_still(const struct layout *l) {
    struct iovec there[MAIN_DEEP + 2], here[MAIN_DEEP + 2];
    uint64_t newest, frame;
    char frames[MAIN_DEEP][SPAN];
    int n = 0;
    here[n] = (struct iovec){&newest, sizeof newest};
    there[n++].iov_base = (char *)(uintptr_t)of_main.thread + l->frame;
    if (l->through >= 0) {
        here[n] = (struct iovec){&frame, sizeof frame};
        there[n++].iov_base = (char *)(uintptr_t)of_main.newest + l->through;
    }
    for (int i = 0; i < of_main.n; i++) {
        here[n] = (struct iovec){frames[i], (size_t)l->span};
        there[n++].iov_base = (char *)(uintptr_t)of_main.stands[i].frame;
    }
    ssize_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += (ssize_t)(there[i].iov_len = here[i].iov_len);
    if (process_vm_readv(getpid(), here, (size_t)n, there, (size_t)n, 0) != bytes ||
        newest != of_main.newest)
        return false;
    frame = l->through >= 0 ? frame : newest;
    for (int i = 0; i < of_main.n; i++) {
        const struct stand *was = &of_main.stands[i];
        struct stand is;
        if (frame != (uintptr_t)was->frame)
            return false;
        read_frame(l, frames[i], &is, &frame, false);
        if (is.code != was->code || is.position != was->position)
            return false;
    }
    return true;
}

uint64_t frames_site_of_main(void) {
    const struct layout *l = layout;
    uint64_t site = 0;
    if (!l || trials < TRIALS)
        return 0;
    pthread_mutex_lock(&lock);
    if (of_main.thread && main_stands_still(l))
        site = of_main.site;
    pthread_mutex_unlock(&lock);
    return site;
}
