/*
 * report.c: the text of a report, the line of a call, the end of the job.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <time.h>
#include <unistd.h>

/* --- Where a call stands ---------------------------------------------------------- */

/* Put there by the linker: the program's first byte, and the end of its code. */
extern char __executable_start, etext;

static int first_object(struct dl_phdr_info *info, size_t size, void *bias) {
    (void)size;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1; // the program itself comes first
}

/* The address as it stands in the program's file, the same in every process. */
int64_t site_offset(void *site) {
    static uintptr_t bias;
    static bool known;
    if (!known)
        dl_iterate_phdr(first_object, &bias);
    known = true;
    if ((char *)site < &__executable_start || (char *)site >= &etext)
        return -1;
    return (int64_t)((uintptr_t)site - bias);
}

/* addr2line, of binutils, which every gcc brings along, reads the debug information. */
static void look_up(char out[256], const char *file, uint64_t offset) {
    char command[512], function[200] = "", place[1024] = "";
    // The return address is the next instruction: one byte back is inside the call.
    snprintf(command, sizeof command, "addr2line -C -f -e '%s' 0x%llx 2>/dev/null", file,
             (unsigned long long)offset - 1);
    FILE *pipe = popen(command, "r");
    if (pipe) {
        if (!fgets(function, sizeof function, pipe) || !fgets(place, sizeof place, pipe))
            place[0] = '\0';
        pclose(pipe);
    }
    function[strcspn(function, "\n")] = '\0';
    place[strcspn(place, " \n")] = '\0';
    const char *base = strrchr(place, '/');
    base = base ? base + 1 : place;
    if (base[0] && base[0] != '?' && !strstr(base, ":?"))
        snprintf(out, 256, "%.250s", base);
    else if (function[0] && function[0] != '?')
        snprintf(out, 256, "%.180s (built without -g)", function);
    else
        snprintf(out, 256, "address 0x%llx", (unsigned long long)offset);
}

const char *offset_text(char out[256], int64_t offset) {
    char program[400];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (offset < 0 || length <= 0) {
        snprintf(out, 256, "a shared library");
        return out;
    }
    program[length] = '\0';
    look_up(out, program, (uint64_t)offset);
    return out;
}

const char *site_text(char out[256], void *site) {
    Dl_info info;
    if (!site)
        snprintf(out, 256, "an unknown place");
    else if (site_offset(site) >= 0)
        offset_text(out, site_offset(site));
    else if (dladdr(site, &info) && info.dli_fname)
        look_up(out, info.dli_fname, (uint64_t)((char *)site - (char *)info.dli_fbase));
    else
        snprintf(out, 256, "address %p", site);
    return out;
}

/* --- Calls in words --------------------------------------------------------------- */

const char *kind_name(int kind) {
    static const char *const names[NUM_CALL_KINDS] = {
        "ncclBroadcast",     "ncclAllReduce", "ncclReduce", "ncclAllGather",
        "ncclReduceScatter", "ncclAlltoAll",  "ncclGather", "ncclScatter",
        "ncclCommSplit",     "ncclSend",      "ncclRecv"};
    return names[kind];
}

const char *type_name(int type) {
    static const char *const names[ncclNumTypes] = {
        "ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
        "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
        "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
    return names[type];
}

const char *redop_name(int redop) {
    static const char *const names[] = {"ncclSum", "ncclProd", "ncclMax", "ncclMin",
                                        "ncclAvg"};
    return redop == PRE_MUL_SUM ? "a PreMulSum" : names[redop];
}

const char *facts_text(char out[256], const struct facts *f) {
    const char *name = kind_name(f->kind), *type = type_name(f->type);
    unsigned long long count = f->count;
    switch (f->kind) {
    case CALL_BROADCAST:
    case CALL_GATHER:
    case CALL_SCATTER:
        snprintf(out, 256, "%s(count %llu, %s, root %d)", name, count, type, f->root);
        break;
    case CALL_ALL_REDUCE:
    case CALL_REDUCE_SCATTER:
        snprintf(out, 256, "%s(count %llu, %s, %s)", name, count, type,
                 redop_name(f->redop));
        break;
    case CALL_REDUCE:
        snprintf(out, 256, "%s(count %llu, %s, %s, root %d)", name, count, type,
                 redop_name(f->redop), f->root);
        break;
    case CALL_SPLIT: snprintf(out, 256, "%s", name); break;
    case CALL_SEND:
    case CALL_RECV:
        snprintf(out, 256, "%s(count %llu, %s, %s rank %d)", name, count, type,
                 f->kind == CALL_SEND ? "to" : "from", f->root);
        break;
    default: snprintf(out, 256, "%s(count %llu, %s)", name, count, type);
    }
    return out;
}

/* --- Saying it -------------------------------------------------------------------- */

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char line[2048];
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    size_t bytes = length < (int)sizeof line ? (size_t)length : sizeof line - 1;
    if (text->used + bytes + 1 > text->size) {
        text->size = 2 * (text->used + bytes + 1);
        text->at = must_grow(text->at, text->size);
    }
    memcpy(text->at + text->used, line, bytes + 1);
    text->used += bytes;
}

void add_ranks(struct text *text, const int *ranks, int n) {
    for (int i = 0; i < n; i++)
        text_add(text, "%s%d", i > 0 ? ", " : n == 1 ? "rank " : "ranks ", ranks[i]);
}

void report_note(struct text *text) {
    fflush(stdout);
    fprintf(stderr, "NCCL CHECK: %s", text->at);
    fflush(stderr);
    free(text->at);
    *text = (struct text){0};
}

/* Whether this is the first rank of the job on its host that has something to report: it
 * makes a file where the launcher keeps what the job leaves, and removes it at its end.
 */
static bool speak_first(void) {
    const char *folder = getenv("PMIX_SERVER_TMPDIR");
    char name[512];
    snprintf(name, sizeof name, "%s/nccl-check-%016llx", folder ? folder : "",
             (unsigned long long)library.job);
    int file = folder ? open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (file >= 0)
        close(file);
    return file >= 0 || !folder || errno != EEXIST;
}

void report(struct text *text, bool may_go_on) {
    if (library.over) {
        free(text->at);
        *text = (struct text){0};
        return;
    }
    if (library.check == CHECK_WARN && may_go_on) {
        report_note(text);
        return;
    }
    // An error that several ranks find is told by one, which ends the others: the first
    // on its host, and the hosts in turn.
    int turn = ranks_on_host > 0 ? library.world / ranks_on_host : 0;
    struct timespec pause = {turn < 5 ? turn : 5, 0};
    nanosleep(&pause, NULL);
    if (!speak_first()) {
        pause.tv_sec = 10;
        nanosleep(&pause, NULL);
    }
    library.over = true;
    report_note(text);
    if (library.mpi)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}
