/*
 * strangers.c: whether the program has threads that have called nothing yet.
 *
 * Such a thread may be about to do what others wait for: to send a message, or to abort a
 * communicator. The system lists a process's threads. Those of MPI are there when it has
 * started, those of CUDA and NCCL when a communicator is made; the stand-in's have names
 * of their own, and a thread of the program has the program's, as long as nobody gives it
 * another.
 */
#define _GNU_SOURCE
#include "strangers.h"

#include "base/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static int *known; // their numbers in the system
static size_t nknown, room;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_known(int thread) {
    for (size_t i = 0; i < nknown; i++)
        if (known[i] == thread)
            return true;
    return false;
}

static void add(int thread) {
    if (is_known(thread))
        return;
    ROOM(known, nknown, &room);
    known[nknown++] = thread;
}

void strangers_not_this(void) {
    pthread_mutex_lock(&lock);
    add((int)syscall(SYS_gettid));
    pthread_mutex_unlock(&lock);
}

void strangers_forget_this(void) {
    const int thread = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < nknown; i++)
        if (known[i] == thread)
            known[i--] = known[--nknown];
    pthread_mutex_unlock(&lock);
}

static void name_of(int thread, char name[16]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", thread);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = file >= 0 ? read(file, name, 15) : 0;
    if (file >= 0)
        close(file);
    name[n > 0 ? n : 0] = '\0';
}

/* How many there are beside those that are known; with `adds`, they are from now on. */
static int strangers(bool adds) {
    char program[16], name[16];
    int n = 0;
    DIR *folder = opendir("/proc/self/task");
    name_of((int)getpid(), program);
    pthread_mutex_lock(&lock);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        int thread = atoi(entry->d_name);
        if (thread == 0 || is_known(thread))
            continue;
        if (adds)
            add(thread);
        name_of(thread, name);
        n += strcmp(name, program) == 0;
    }
    pthread_mutex_unlock(&lock);
    if (folder)
        closedir(folder);
    return n;
}

void strangers_of_libraries(void) {
    strangers(true);
}

/* What the program's own file imports tells; what its libraries have is theirs. */
bool strangers_meet(void) {
    static const char *const means[] = {
        "mmap",   "mmap64", "shmat", "sem_open", "semop", "mq_open", "msgget",
        "socket", "mkfifo", "flock", "lockf",    "fcntl", "fcntl64", "access"};
    const char *names = NULL;
    size_t bytes = 0;
    for (const ElfW(Dyn) *one = _r_debug.r_map->l_ld; one->d_tag != DT_NULL; one++) {
        names = one->d_tag == DT_STRTAB ? (const char *)one->d_un.d_ptr : names;
        bytes = one->d_tag == DT_STRSZ ? one->d_un.d_val : bytes;
    }
    for (size_t i = 0; names && i < sizeof means / sizeof *means; i++)
        if (memmem(names, bytes, means[i], strlen(means[i]) + 1))
            return true;
    return false;
}

bool strangers_any(void *self) {
    (void)self;
    return strangers(false) > 0;
}
