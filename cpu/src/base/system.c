/*
 * system.c: calls of the system that the library makes without naming them. Ranks can
 * meet by them unseen, so the checks look whether the program imports one (strangers.c);
 * what is linked into it must not. --wrap in check/build.mk brings the library's calls
 * here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

void *standin_mmap(void *at, size_t bytes, int protection, int flags, int file,
                   off_t from) {
    return (void *)syscall(SYS_mmap, at, bytes, (long)protection, (long)flags, (long)file,
                           from);
}

int standin_shm_open(const char *name, int flags, mode_t mode) {
    char path[256];
    snprintf(path, sizeof path, "/dev/shm%s", name);
    return open(path, flags | O_CLOEXEC | O_NOFOLLOW, mode);
}

int standin_socket(int domain, int type, int protocol) {
    return (int)syscall(SYS_socket, (long)domain, (long)type, (long)protocol);
}

int standin_fcntl(int file, int command, long argument) {
    return (int)syscall(SYS_fcntl, (long)file, (long)command, argument);
}

int standin_access(const char *path, int mode) {
    return (int)syscall(SYS_faccessat, (long)AT_FDCWD, path, (long)mode);
}
