/*
 * channels.c: word from one process to another that is no call of MPI or NCCL.
 *
 * A file, a lock, a socket, a signal, memory that both have mapped: all of them can put
 * two ranks' uses of the same memory in order, and what they say is not known. A program
 * that calls one of these functions is not accused of such a race from then on.
 *
 * What these functions, and others that bring no word, are given may lie on a page of
 * pinned memory beside what is in use (guard.c).
 *
 * They only pass on what they are given, at most six integers and pointers. So one form
 * does for all, under their names; a program may have functions of these names itself.
 */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include "front.h"
#include "tasks.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef long function(long, ...);

/* A sanitizer calls some of these functions before it is there itself. */
#define EARLY __attribute__((no_sanitize("address", "undefined")))

bool channels_shared;
static atomic_bool opened, told;

/* Before memory is shared it is enough to remember it. */
void channels_opened(void) {
    int error = errno;
    atomic_store(&opened, true);
    if (channels_shared && !front_passes() && !front_is_inside() &&
        !atomic_exchange(&told, true)) {
    }
    errno = error;
}

bool channels_matter(void) {
    return channels_shared && !atomic_load(&told);
}

void channels_sharing(struct judge *j) {
    channels_shared = true;
    (void)j;
}

static bool the_program(void *return_address) {
    return front_depth == 0 && !front_is_inside() && !atomic_load(&told) &&
           tasks_is_own(return_address);
}

static bool is_pipe(long file) {
    struct stat what;
    return fstat((int)file, &what) == 0 && S_ISFIFO(what.st_mode);
}

static bool is_word(int number) { // not of a fault of its own
    return number != SIGSEGV && number != SIGBUS && number != SIGFPE &&
           number != SIGILL && number != SIGABRT && number != SIGTRAP;
}

void channels_handler(int number, void (*handler)(int), void *return_address) {
    if (is_word(number) && handler != SIG_DFL && handler != SIG_IGN &&
        the_program(return_address))
        channels_opened();
}

static bool locks(long command) {
    return (command >= F_GETLK && command <= F_SETLKW) ||
           (command >= F_OFD_GETLK && command <= F_OFD_SETLKW);
}

void (*channels_given)(long argument);

/* What the program gives to the system may lie beside something that is in use. Libraries
 * must not wait for the judge here, who may be waiting for them. */
static EARLY void give(void *return_address, long a, long b, long c, long d, long e,
                       long f) {
    if (!channels_given || front_passes() || !tasks_is_own(return_address))
        return;
    const long given[] = {a, b, c, d, e, f};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        channels_given(given[i]);
}

#define CHANNEL(name, before, after)                                        \
    FIND_BELOW(name, function *)                                            \
    __attribute__((visibility("default"), weak)) EARLY long channel_##name( \
        long a, long b, long c, long d, long e, long f) __asm__(#name);     \
    long channel_##name(long a, long b, long c, long d, long e, long f) {   \
        bool own = false;                                                   \
        if (!below_##name)                                                  \
            find_##name();                                                  \
        if (!below_##name) {                                                \
            errno = ENOSYS;                                                 \
            return -1;                                                      \
        }                                                                   \
        if ((before) && (own = the_program(__builtin_return_address(0))))   \
            channels_opened();                                              \
        give(__builtin_return_address(0), a, b, c, d, e, f);                \
        long result = below_##name(a, b, c, d, e, f);                       \
        if (!own && (after) && the_program(__builtin_return_address(0)))    \
            channels_opened();                                              \
        return result;                                                      \
    }

#define WRITES(flags) (channels_shared || ((flags)&O_ACCMODE) != O_RDONLY)
#define LASTS(name) CHANNEL(name, true, false)
#define ONCE(name) CHANNEL(name, channels_shared, false)
#define OPENS(name) CHANNEL(name, WRITES(b), (int)result >= 0 && is_pipe((int)result))
#define OPENS_AT(name) CHANNEL(name, WRITES(c), (int)result >= 0 && is_pipe((int)result))
#define OPENS_FILE(name)                                              \
    CHANNEL(name, channels_shared || strpbrk((const char *)b, "wa+"), \
            result && is_pipe(fileno((FILE *)result)))
#define LOCKS(name) CHANNEL(name, channels_shared &&locks(b), false)
#define MAPS(name) CHANNEL(name, (d & MAP_SHARED) && (int)e >= 0, false)
#define GIVES(name) CHANNEL(name, false, false)
#include "channels.list"
