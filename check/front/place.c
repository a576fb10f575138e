/*
 * place.c: the line that a call stands in.
 *
 * A call is known by the address that it returns to. As a number that means the same on
 * all ranks it is a tag of the file it is in, the program or a library, and the offset in
 * this file. addr2line, which comes with the compiler, reads the line from the debug
 * information.
 */
#define _GNU_SOURCE
#include "place.h"

#include "python.h"

#include <stdio.h>
#include <fcntl.h>
#include <link.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define OFFSET_MASK ((UINT64_C(1) << FILE_SHIFT) - 1)

struct place_file place_program;
static struct known { // programs of other ranks
    struct place_file file;
    struct known *next;
} * known;

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Ranks may have different programs, and on another machine the path may differ. */
static uint64_t tag_of(const char *path) {
    struct stat file = {0};
    stat(path, &file);
    uint64_t tag = (uint64_t)file.st_size;
    for (const char *name = base_of(path); *name; name++)
        tag = (tag ^ (unsigned char)*name) * UINT64_C(0x9e3779b97f4a7c15);
    return tag >> FILE_SHIFT;
}

void place_begins(void) {
    if (readlink("/proc/self/exe", place_program.path, sizeof place_program.path - 1) < 0)
        place_program.path[0] = '\0';
    place_program.tag = tag_of(place_program.path);
}

void place_knows(const struct place_file *program) {
    struct known *one = malloc(sizeof *one);
    if (!one)
        return;
    *one = (struct known){*program, known};
    known = one;
}

static const char *path_of(const struct dl_phdr_info *info) {
    return info->dlpi_name[0] ? info->dlpi_name : place_program.path;
}

struct found {
    uintptr_t address;
    struct front_caller caller;
};

/* NCCL, MPI, what MPI is made of, or the CUDA runtime itself. */
static bool is_library(const char *path) {
    static const char *const names[] = {
        "libnccl",  "libcudart.so", "libcuda.so", "libmpi",    "libopen-", "libpmi",
        "libprrte", "libevent",     "mca_",       "pmix_mca_", // what MPI is made of
        "libucm",   "libucp",       "libucs",     "libuct"     // UCX, below MPI
    };
    const char *base = base_of(path);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int find_file(struct dl_phdr_info *info, size_t size, void *data) {
    struct found *found = data;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD && found->address >= start &&
            found->address < start + header->p_memsz) {
            found->caller.site = tag_of(path_of(info)) << FILE_SHIFT |
                                 ((found->address - info->dlpi_addr) & OFFSET_MASK);
            found->caller.theirs = is_library(info->dlpi_name);
            return 1;
        }
    }
    return 0;
}

/* Looking through the files takes longer than a call may cost: what was found is kept.
 * The first that takes a place in the table has it for good, without a lock: a signal may
 * have interrupted this very function. */
enum { KEPT = 4096, TRIES = 8 };
static struct kept {
    _Atomic(void *) taken; // by this address
    atomic_bool there;
    struct front_caller caller;
} table[KEPT];

/* Their threads call public functions, too: none of the program's doing. */
struct front_caller front_caller(void *return_address) {
    struct kept *mine = NULL;
    for (size_t i = 0; i < TRIES && !mine; i++) {
        struct kept *kept = &table[((uintptr_t)return_address / 4 + i) % KEPT];
        void *taken = atomic_load(&kept->taken);
        if (!taken &&
            atomic_compare_exchange_strong(&kept->taken, &taken, return_address))
            mine = kept;
        else if (taken == return_address && atomic_load(&kept->there))
            return kept->caller;
    }
    struct found found = {.address = (uintptr_t)return_address};
    dl_iterate_phdr(find_file, &found);
    if (mine) {
        mine->caller = found.caller;
        atomic_store(&mine->there, true);
    }
    return found.caller;
}

uint64_t front_site(void *return_address) {
    return front_caller(return_address).site;
}

bool front_site_in_program(uint64_t site) {
    return site >> FILE_SHIFT == place_program.tag;
}

static int name_file(struct dl_phdr_info *info, size_t size, void *data) {
    struct place_file *file = data;
    (void)size;
    if (tag_of(path_of(info)) != file->tag)
        return 0;
    snprintf(file->path, sizeof file->path, "%s", path_of(info));
    return 1;
}

extern char **environ;

/* The output of addr2line, without a shell: the path may have any characters. */
bool place_ask(char *const *arguments, char *out, size_t size) {
    int ends[2];
    size_t n = 0, used = 0;
    while (environ[n])
        n++;
    char **clean = calloc(n + 1, sizeof *clean); // what is loaded here is not for it
    if (!clean || pipe2(ends, O_CLOEXEC) != 0) {
        free(clean);
        return false;
    }
    for (size_t i = 0, kept = 0; i < n; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            clean[kept++] = environ[i];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t child;
    int error = posix_spawnp(&child, "addr2line", &actions, NULL, arguments, clean);
    posix_spawn_file_actions_destroy(&actions);
    free(clean);
    close(ends[1]);
    for (ssize_t got;
         error == 0 && (got = read(ends[0], out + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
    if (error == 0)
        waitpid(child, NULL, 0);
    return error == 0 && used > 0;
}

static bool ask(const char *path, uint64_t offset, char *out, size_t size) {
    char address[32];
    snprintf(address, sizeof address, "0x%llx", (unsigned long long)offset);
    char *arguments[] = {"addr2line", "-C",         "-f",    "-i",
                         "-e",        (char *)path, address, NULL};
    return place_ask(arguments, out, size);
}

/* A header of CUDA, NCCL, MPI or the compiler, whose inline functions call for the
 * program. */
static bool is_theirs(const char *file) {
    static const char *const folders[] = {"/usr/include/", "/usr/lib/", "/cuda/",
                                          "/targets/", "/cpu/include/"};
    const char *version = strstr(file, "/cuda-"); // cuda-13.0, but not cuda-course
    if (version && version[6] >= '0' && version[6] <= '9')
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        if (strstr(file, folders[i]))
            return true;
    return strstr(file, "cuda_runtime") != NULL;
}

/* Of pairs of lines, function and file:line, innermost first: the first that is the
 * program's. False: none is. */
bool place_choose(char *lines, char function[128], char place[JUDGE_PLACE]) {
    function[0] = place[0] = '\0';
    for (char *rest = lines, *name; (name = strsep(&rest, "\n")) && rest;) {
        char *where = strsep(&rest, "\n");
        char *note =
            strstr(where, " (discriminator "); // of addr2line; a path may have blanks
        if (note)
            *note = '\0';
        if (place[0] && is_theirs(where))
            continue;
        snprintf(function, 128, "%.127s", name);
        snprintf(place, JUDGE_PLACE, "%.200s", base_of(where));
        if (!is_theirs(where))
            return true;
    }
    return !place[0];
}

struct place_file place_file_of(uint64_t site) {
    struct place_file file = {.tag = site >> FILE_SHIFT};
    dl_iterate_phdr(name_file, &file);
    for (const struct known *one = known; one && !file.path[0]; one = one->next)
        if (one->file.tag == file.tag)
            file = one->file;
    return file;
}

/* The address is that of the next instruction: one byte back is inside the call. */
uint64_t place_offset(uint64_t site) {
    return (site & OFFSET_MASK) - 1;
}

/* True if the line is the program's, or not known. */
static bool look_up(uint64_t site, char out[JUDGE_PLACE]) {
    if (python_text(site, out))
        return true;
    struct place_file file = place_file_of(site);
    char lines[4096], function[128], place[JUDGE_PLACE];
    uint64_t offset = site & OFFSET_MASK;
    if (!ask(file.path, place_offset(site), lines, sizeof lines))
        lines[0] = '\0';
    bool own = place_choose(lines, function, place);
    const char *in = front_site_in_program(site) ? "" : base_of(file.path);
    if (place[0] && place[0] != '?' && !strstr(place, ":?") && !strstr(place, ":0"))
        snprintf(out, JUDGE_PLACE, "%s", place);
    else if (function[0] && function[0] != '?')
        snprintf(out, JUDGE_PLACE, "%s (%.80s%sbuilt without -g)", function, in,
                 *in ? ", " : "");
    else if (file.path[0])
        snprintf(out, JUDGE_PLACE, "%.200s%s0x%llx", *in ? in : "address ",
                 *in ? "+" : "", (unsigned long long)offset);
    else
        snprintf(out, JUDGE_PLACE, "a library that is not here");
    return own;
}

uint64_t front_program_frame(const char *at, void *const *frames, int n) {
    char place[JUDGE_PLACE];
    int next = 2;
    uint64_t site = front_site((void *)(uintptr_t)(at + 1)), first = site;
    bool any = front_site_in_program(site);
    if (any && look_up(site, place))
        return site;
    for (int i = 0; i < n; i++)
        if (frames[i] == at || frames[i] == at + 1) // interrupted, or called from there
            next = i + 1;
    for (int i = next; i < n; i++) {
        site = front_site(frames[i]);
        if (!front_site_in_program(site))
            continue;
        if (look_up(site, place))
            return site;
        first = any ? first : site;
        any = true;
    }
    return first;
}

/* The judge keeps what it has asked for. */
void front_place(void *self, uint64_t site, char out[JUDGE_PLACE]) {
    (void)self;
    look_up(site, out);
}
