/*
 * lesson.h: what every lesson needs and none teaches.
 *
 * Error checks, the command line, the tables, the verdict. What a lesson is about is in
 * its own program: nothing here starts or ends MPI, chooses a GPU or makes a
 * communicator.
 */
#ifndef LESSON_H
#define LESSON_H

#include <cuda_runtime.h>
#include <mpi.h>
#include <nccl.h>

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Error checks. Each runs a call and, if it fails, ends the whole job with exit code 1.
 * If only this rank ended, the others would wait for it forever. */
#define CHECK_MPI(call)                                              \
    do {                                                             \
        int mpi_error = (call);                                      \
        if (mpi_error != MPI_SUCCESS)                                \
            lesson_mpi_failed(mpi_error, #call, __FILE__, __LINE__); \
    } while (0)

#define CHECK_CUDA(call)                                               \
    do {                                                               \
        cudaError_t cuda_error = (call);                               \
        if (cuda_error != cudaSuccess)                                 \
            lesson_cuda_failed(cuda_error, #call, __FILE__, __LINE__); \
    } while (0)

#define CHECK_NCCL(call)                                               \
    do {                                                               \
        ncclResult_t nccl_error = (call);                              \
        if (nccl_error != ncclSuccess)                                 \
            lesson_nccl_failed(nccl_error, #call, __FILE__, __LINE__); \
    } while (0)

/* For lessons that include cublas_v2.h. */
#define CHECK_CUBLAS(call)                                                   \
    do {                                                                     \
        cublasStatus_t cublas_error = (call);                                \
        if (cublas_error != CUBLAS_STATUS_SUCCESS)                           \
            lesson_fail("%s failed at %s:%d\n  cuBLAS says: %s (%s)", #call, \
                        lesson_base(__FILE__), __LINE__,                     \
                        cublasGetStatusString(cublas_error),                 \
                        cublasGetStatusName(cublas_error));                  \
    } while (0)

/* No lesson calls all functions of this file: the compiler need not warn of the others.
 * An exercise finds them in another object, where they are not static. */
#ifndef LESSON_FUNCTION
#if defined(__GNUC__)
#define LESSON_FUNCTION static __attribute__((unused))
#else
#define LESSON_FUNCTION static
#endif
#endif

/* The CPU build is much slower, so some defaults are smaller there. */
#ifdef CUDA_RUNTIME_H_CPU
enum { LESSON_CPU_BUILD = 1 };
#else
enum { LESSON_CPU_BUILD = 0 };
#endif

/* A rank's number and machine. */
struct lesson_self {
    int rank, nranks;
    char machine[MPI_MAX_PROCESSOR_NAME];
};

/* Who this is while MPI does not run. A lesson without MPI fills it in. */
LESSON_FUNCTION struct lesson_self lesson_alone = {0, 1, "this machine"};

LESSON_FUNCTION bool lesson_mpi_runs(void) {
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    return started && !ended;
}

LESSON_FUNCTION struct lesson_self lesson_self(void) {
    struct lesson_self self = lesson_alone;
    int length;
    if (lesson_mpi_runs()) {
        MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
        MPI_Comm_size(MPI_COMM_WORLD, &self.nranks);
        MPI_Get_processor_name(self.machine, &length);
        self.machine[strcspn(self.machine, ".")] = '\0';
    }
    return self;
}

/* Whether the times are those of a modelled machine (cpu/clock.md). */
LESSON_FUNCTION bool lesson_modelled(void) {
    const char *machine = getenv("NCCL_CPU_CLOCK");
    return LESSON_CPU_BUILD && machine && *machine;
}

/* Says once, on rank 0, what the times of the CPU build are, unless a modelled clock says
 * its own. */
LESSON_FUNCTION void lesson_say_whose_times(void) {
    static bool said;
    if (LESSON_CPU_BUILD && !said && !lesson_modelled() && lesson_self().rank == 0)
        printf("CPU build: these are times of this computer's CPU, not of GPUs.\n");
    said = true;
}

/* Whether this rank is the first of its machine to fail. The first one makes a file, in
 * the folder that the launcher makes for a job and removes after it. */
LESSON_FUNCTION bool lesson_first_to_fail(void) {
    const char *folder = getenv("PMIX_SERVER_TMPDIR");
    char name[512];
    snprintf(name, sizeof name, "%s/lesson-failed", folder ? folder : "");
    FILE *file = folder ? fopen(name, "wx") : NULL;
    if (file)
        fclose(file);
    return file || !folder || errno != EEXIST;
}

LESSON_FUNCTION void lesson_pause(double seconds) {
    poll(NULL, 0, seconds > 0 ? (int)(seconds * 1000) : 0); // -1 would be for ever
}

/* Prints "rank R on MACHINE: " and the message to stderr, and ends the job with exit
 * code 1. If several ranks fail in the same way it is printed once: higher ranks wait a
 * moment, the first of a machine prints, and its MPI_Abort ends the others. */
LESSON_FUNCTION _Noreturn void lesson_fail(const char *format, ...) {
    struct lesson_self self = lesson_self();
    if (self.nranks > 1) {
        lesson_pause(0.1 * (self.rank < 20 ? self.rank : 20));
        if (!lesson_first_to_fail())
            lesson_pause(10);
    }
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "rank %d on %s: %s\n", self.rank, self.machine, text);
    fflush(stderr);
    if (lesson_mpi_runs())
        MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

LESSON_FUNCTION const char *lesson_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

LESSON_FUNCTION _Noreturn void lesson_mpi_failed(int error, const char *call,
                                                 const char *file, int line) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(error, text, &length);
    lesson_fail("%s failed at %s:%d\n  MPI says: %s", call, lesson_base(file), line,
                text);
}

LESSON_FUNCTION _Noreturn void lesson_cuda_failed(cudaError_t error, const char *call,
                                                  const char *file, int line) {
    const char *hint = "";
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver)
        hint =
            "\n  Hint: this machine has no GPU that CUDA can use, or its driver is too old."
            "\n        Run on a node with GPUs, or build for the CPU: make BACKEND=cpu";
    else if (error == cudaErrorMemoryAllocation)
        hint = "\n  Hint: the GPU has too little free memory; choose a smaller -n.";
    else if (error == cudaErrorInvalidValue)
        hint =
            "\n  Hint: too many bytes, or a pointer to the wrong kind of memory, or freed before?";
    lesson_fail("%s failed at %s:%d\n  CUDA says: %s (%s)%s", call, lesson_base(file),
                line, cudaGetErrorString(error), cudaGetErrorName(error), hint);
}

LESSON_FUNCTION _Noreturn void lesson_nccl_failed(ncclResult_t error, const char *call,
                                                  const char *file, int line) {
    const char *hint = "";
    if (error == ncclUnhandledCudaError)
        hint = "\n  Hint: a CUDA call inside NCCL failed; NCCL_DEBUG=INFO names it.";
    else if (strstr(call, "Init") &&
             (error == ncclInvalidUsage || error == ncclInvalidArgument ||
              (LESSON_CPU_BUILD && error == ncclRemoteError)))
        hint =
            "\n  Hint: does each rank have a GPU of its own, a number of its own, and the same unique id?"
            "\n        NCCL_DEBUG=INFO says more.";
    else if (error == ncclInvalidArgument)
        hint =
            "\n  Hint: an argument is out of range, or was not made; NCCL_DEBUG=WARN names it.";
    else if (error == ncclInProgress)
        hint =
            "\n  Hint: this is no error: ask ncclCommGetAsyncError until it says something else.";
    else if (!LESSON_CPU_BUILD && (error == ncclSystemError || error == ncclRemoteError))
        hint =
            "\n  Hint: this is often the network. NCCL_DEBUG=INFO shows which interface NCCL uses,"
            "\n        NCCL_SOCKET_IFNAME=NAME chooses a different one.";
    lesson_fail("%s failed at %s:%d\n  NCCL says: %s\n  Last error: %s%s", call,
                lesson_base(file), line, ncclGetErrorString(error),
                ncclGetLastError(NULL), hint);
}

/* One option of a lesson; a table of options ends with an empty one. Exactly one of flag,
 * number, text and names is set: it says what kind of option this is, and where the value
 * goes. */
struct lesson_option {
    const char *name;         // as it is typed: "-n", "--max"
    const char *value;        // what the help text calls its value; NULL for a flag
    const char *help;         // what it does
    bool *flag;               // becomes true
    size_t *number;           // takes a whole number, with K, M or G (of 1024) or without
    size_t usual;             // its default, if not 0
    size_t least, most;       // smallest value; largest, if not 0
    bool all;                 // the word "all" is allowed, too, and means SIZE_MAX
    const char **text;        // takes the value unchanged
    const char *const *names; // some of these, separated by commas; ends with NULL
    bool *chosen;             // with `names`: one for each
};

enum { LESSON_OPTIONS = 16 };

/* Ends every rank with the same exit code, after rank 0 has said why. */
LESSON_FUNCTION _Noreturn void lesson_leave(int exit_code) {
    fflush(NULL);
    if (lesson_mpi_runs())
        MPI_Finalize();
    exit(exit_code);
}

LESSON_FUNCTION void lesson_usage(FILE *out, const char *program,
                                  const struct lesson_option *options) {
    int width = 2, length;
    fprintf(out, "usage: %s", program);
    for (const struct lesson_option *o = options; o->name; o++) {
        length = fprintf(out, " [%s%s%s]", o->name, o->value ? " " : "",
                         o->value ? o->value : "");
        width = length - 3 > width ? length - 3 : width;
    }
    fprintf(out, " [-h]\n");
    for (const struct lesson_option *o = options; o->name; o++) {
        length = fprintf(out, "  %s%s%s", o->name, o->value ? " " : "",
                         o->value ? o->value : "");
        fprintf(out, "%*s%s", width + 4 - length, "", o->help);
        for (int i = 0; o->names && o->names[i]; i++)
            fprintf(out, "%s%s", i ? ", " : "\n    ", o->names[i]);
        if (o->usual > 0)
            fprintf(out, " (default %zu)", o->usual);
        fprintf(out, "\n");
    }
    fprintf(out, "  %-*s  this text\n", width, "-h");
}

/* Rank 0 says what is wrong and prints the usage; every rank ends with exit code 2. */
LESSON_FUNCTION _Noreturn void lesson_misused(const char *program,
                                              const struct lesson_option *options,
                                              const char *problem) {
    if (lesson_self().rank == 0) {
        fprintf(stderr, "%s: %s\n", lesson_base(program), problem);
        lesson_usage(stderr, lesson_base(program), options);
    }
    lesson_leave(2);
}

/* Sets *o->number from `text`, or describes what is wrong in at most 255 characters. */
LESSON_FUNCTION void lesson_number(const struct lesson_option *o, const char *text,
                                   char *problem) {
    const long long too_large = 1LL << 50;
    const char *units = "KMG";
    char *end;
    if (o->all && strcmp(text, "all") == 0) {
        *o->number = SIZE_MAX;
        return;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    const char *unit = end > text && *end ? strchr(units, *end) : NULL;
    for (int i = 0; unit && i <= unit - units; i++)
        value = llabs(value) < too_large ? value * 1024 : 2 * too_large;
    if (end == text || (*end && !unit) || (unit && end[1]))
        snprintf(problem, 256, "%s %.99s is not a whole number", o->name, text);
    else if (value < (long long)o->least)
        snprintf(problem, 256, "%s %.99s is less than %zu", o->name, text, o->least);
    else if (o->most && value > (long long)o->most)
        snprintf(problem, 256, "%s %.99s is more than %zu", o->name, text, o->most);
    else if (errno == ERANGE || value > too_large)
        snprintf(problem, 256, "%s %.99s is too large", o->name, text);
    else
        *o->number = (size_t)value;
}

/* Marks the names of a list such as "broadcast,reduce". */
LESSON_FUNCTION void lesson_choose(const struct lesson_option *o, const char *text,
                                   char *problem) {
    for (const char *at = text;; at++) {
        int i = 0, length = (int)strcspn(at, ",");
        while (o->names[i] && ((int)strlen(o->names[i]) != length ||
                               strncmp(o->names[i], at, (size_t)length) != 0))
            i++;
        if (!o->names[i]) {
            snprintf(problem, 256, "%s %.*s is none of its values", o->name,
                     length < 99 ? length : 99, at);
            return;
        }
        o->chosen[i] = true;
        at += length;
        if (!*at)
            return;
    }
}

/* Reads the command line, which is the same on every rank. NULL: there is no option but
 * -h. Call it after MPI_Init, so that only rank 0 prints. Wrong usage: exit code 2. */
LESSON_FUNCTION void lesson_options(int argc, char **argv,
                                    const struct lesson_option *options) {
    static const struct lesson_option none[] = {{0}};
    options = options ? options : none;
    // getopt_long identifies an option by a number: the code of its letter, or 256 + its
    // place in the table. The colon in front keeps it silent; a colon after a letter
    // means that the option has a value.
    const struct lesson_option *known[256 + LESSON_OPTIONS] = {0};
    struct option longs[LESSON_OPTIONS + 1] = {{0}};
    char letters[2 * LESSON_OPTIONS + 3] = ":h", problem[256] = "";
    int nlongs = 0, nletters = 2, found;
    for (const struct lesson_option *o = options; o->name; o++) {
        const bool is_long = o->name[1] == '-';
        const int place = (int)(o - options);
        if (place == LESSON_OPTIONS)
            lesson_fail("more than %d options", LESSON_OPTIONS);
        known[is_long ? 256 + place : o->name[1]] = o;
        if (is_long)
            longs[nlongs++] =
                (struct option){o->name + 2, o->flag ? 0 : 1, NULL, 256 + place};
        else
            nletters +=
                snprintf(letters + nletters, 3, "%c%s", o->name[1], o->flag ? "" : ":");
        if (o->number)
            *o->number = o->usual;
    }
    while (!problem[0] && (found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == 'h') {
            if (lesson_self().rank == 0)
                lesson_usage(stdout, lesson_base(argv[0]), options);
            lesson_leave(0);
        }
        const struct lesson_option *o = known[found == ':' ? optopt : found];
        if (found == '?' && optopt > 0 && optopt < 256)
            snprintf(problem, sizeof problem, "unknown option -%c", optopt);
        else if (!o)
            snprintf(problem, sizeof problem, "unknown option %.99s", argv[optind - 1]);
        else if (found == ':')
            snprintf(problem, sizeof problem, "%s needs %s", o->name,
                     o->number ? "a number" : "a value");
        else if (o->flag)
            *o->flag = true;
        else if (o->number)
            lesson_number(o, optarg, problem);
        else if (o->names)
            lesson_choose(o, optarg, problem);
        else
            *o->text = optarg;
    }
    if (!problem[0] && optind < argc)
        snprintf(problem, sizeof problem, "unknown argument %.99s", argv[optind]);
    if (problem[0])
        lesson_misused(argv[0], options, problem);
}

/* For a lesson whose only option is -n. Returns its value, or `count` if it is not given.
 *   what  what -n counts, for the help text */
LESSON_FUNCTION size_t lesson_count(int argc, char **argv, const char *what,
                                    size_t count) {
    char help[128];
    size_t usual = count;
    snprintf(help, sizeof help, "%s, at least 1", what);
    const struct lesson_option options[] = {
        {"-n", "COUNT", help, .number = &count, .usual = usual, .least = 1}, {0}};
    lesson_options(argc, argv, options);
    return count;
}

struct lesson_gpu {
    char machine[MPI_MAX_PROCESSOR_NAME];
    char bus_id[32];
    int device, ndevices;
};

LESSON_FUNCTION bool lesson_same_gpu(const struct lesson_gpu *a,
                                     const struct lesson_gpu *b) {
    return strcmp(a->machine, b->machine) == 0 && strcmp(a->bus_id, b->bus_id) == 0;
}

/* How many ranks share this machine's memory. lesson_one_gpu_per_rank sets it. */
LESSON_FUNCTION int lesson_ranks_here = 1;

/* Ends the job with exit code 1 and one message if two ranks of a machine are bound to
 * the same GPU. ncclCommInitRank would refuse them, too, but only say "invalid usage". */
LESSON_FUNCTION void lesson_one_gpu_per_rank(void) {
    struct lesson_self self = lesson_self();
    struct lesson_gpu mine = {.device = -1}, *all;
    memcpy(mine.machine, self.machine, sizeof mine.machine);
    CHECK_CUDA(cudaGetDevice(&mine.device));
    CHECK_CUDA(cudaGetDeviceCount(&mine.ndevices));
    CHECK_CUDA(cudaDeviceGetPCIBusId(mine.bus_id, sizeof mine.bus_id, mine.device));
    all = calloc((size_t)self.nranks, sizeof *all);
    if (!all)
        lesson_fail("out of host memory");
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));
    lesson_ranks_here = 0;
    for (int i = 0; i < self.nranks; i++)
        lesson_ranks_here += strcmp(all[i].machine, self.machine) == 0;
    // NCCL 2.30 and newer allow it if this variable is set.
    const char *allowed = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int first = -1;
    for (int i = 0; i < self.nranks && first < 0; i++)
        for (int j = i + 1; j < self.nranks && first < 0; j++)
            if (lesson_same_gpu(&all[i], &all[j]))
                first = i;
    if (first >= 0 && !(allowed && strcmp(allowed, "1") == 0)) {
        if (self.rank == 0) {
            const struct lesson_gpu *gpu = &all[first];
            int ranks_there = 0, last = first;
            for (int i = 0; i < self.nranks; i++) {
                ranks_there += strcmp(all[i].machine, gpu->machine) == 0;
                last = lesson_same_gpu(&all[i], gpu) ? i : last;
            }
            fprintf(stderr, "ranks %d", first);
            for (int i = first + 1; i <= last; i++)
                if (lesson_same_gpu(&all[i], gpu))
                    fprintf(stderr, "%s %d", i == last ? " and" : ",", i);
            fprintf(stderr,
                    " on %s are bound to the same GPU, number %d (%s);"
                    " NCCL wants one GPU per rank.\n",
                    gpu->machine, gpu->device, gpu->bus_id);
            if (ranks_there > gpu->ndevices)
                fprintf(
                    stderr,
                    "  Hint: this machine has %d GPU%s: at most -np %d here, or more nodes.\n",
                    gpu->ndevices, gpu->ndevices == 1 ? "" : "s", gpu->ndevices);
            else
                fprintf(
                    stderr,
                    "  Hint: this machine has enough GPUs for its %d ranks. Each rank should call\n"
                    "        cudaSetDevice(rank %% deviceCount). That needs ranks that are placed node by node\n"
                    "        (srun --distribution=block, mpirun --map-by slot), not dealt out in turn.\n",
                    ranks_there);
        }
        free(all);
        lesson_leave(1);
    }
    free(all);
}

/* Ends the job with exit code 1 unless this rank's GPU has `bytes` bytes free. */
LESSON_FUNCTION void lesson_need_memory(size_t bytes) {
    size_t free_bytes, total_bytes;
    CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (bytes > free_bytes)
        lesson_fail(
            "the buffers need %.5g GB of GPU memory, and the GPU has %.5g GB free of %.5g GB\n"
            "  Hint: choose a smaller -n.",
            (double)bytes / 1e9, (double)free_bytes / 1e9, (double)total_bytes / 1e9);
}

/* Bytes of host memory that are still available, for each rank of the machine. */
LESSON_FUNCTION double lesson_host_memory(void) {
    double kilobytes = 1e15; // not Linux: malloc decides
    char line[128];
    FILE *info = fopen("/proc/meminfo", "r");
    while (info && fgets(line, sizeof line, info))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1)
            break;
    if (info)
        fclose(info);
    return kilobytes * 1024 / lesson_ranks_here;
}

/* malloc that ends the job instead of failing. Release the memory with free(). */
LESSON_FUNCTION void *lesson_malloc(size_t bytes) {
    double there = lesson_host_memory();
    void *memory = (double)bytes < there ? malloc(bytes) : NULL;
    if (!memory)
        lesson_fail(
            "the buffer needs %.5g GB of host memory, and there are %.5g GB for each rank\n"
            "  Hint: choose a smaller -n.",
            (double)bytes / 1e9, there / 1e9);
    return memory;
}

enum { LESSON_CELLS = 16, LESSON_EDGE = 4, LESSON_WIDTH = 24 };

/* How a value is written in a cell. */
LESSON_FUNCTION void lesson_cell_number(char text[LESSON_WIDTH], double value) {
    snprintf(text, LESSON_WIDTH, "%.15g", value);
}

/* Writes the upper half of a 64-bit number as a letter, and the lower half as a number:
 * A0, A1, … if the upper half is 0, B0, B1, … if it is 1, AA0 if it is 26. Memory that
 * nobody has written becomes a question mark: on the CPU build all its bits are set. */
LESSON_FUNCTION void lesson_cell_letter(char text[LESSON_WIDTH], double value) {
    if (value >= 0x1p63) {
        snprintf(text, LESSON_WIDTH, "?");
        return;
    }
    unsigned long long bits = (unsigned long long)value, upper = bits >> 32;
    char letters[8];
    int used = 0;
    for (upper++; upper > 0 && used < 7; upper = (upper - 1) / 26)
        letters[used++] = (char)('A' + (upper - 1) % 26);
    int length = 0;
    while (used > 0)
        text[length++] = letters[--used];
    snprintf(text + length, (size_t)(LESSON_WIDTH - length), "%llu", bits & 0xffffffff);
}

/* How the last table wrote its values; the verdict writes them in the same way. */
LESSON_FUNCTION void (*lesson_cell)(char *text, double value) = lesson_cell_number;

LESSON_FUNCTION double lesson_value(const void *values, size_t i, ncclDataType_t type) {
    switch (type) {
    case ncclInt32: return ((const int32_t *)values)[i];
    case ncclInt64: return (double)((const int64_t *)values)[i];
    case ncclUint64: return (double)((const uint64_t *)values)[i];
    case ncclFloat32: return (double)((const float *)values)[i];
    case ncclFloat64: return ((const double *)values)[i];
    default: lesson_fail("lesson_value does not know data type %d", (int)type);
    }
}

/* How many cells a buffer gets. */
LESSON_FUNCTION size_t lesson_shown(size_t count) {
    return count > LESSON_CELLS ? 2 * LESSON_EDGE : count;
}

/* Writes a buffer's cells, LESSON_WIDTH characters each, and returns how many there are:
 * of more than 16 elements the first and the last 4. */
LESSON_FUNCTION size_t lesson_cells(char *cells, const void *values, size_t count,
                                    ncclDataType_t type) {
    const bool cut = count > LESSON_CELLS;
    const size_t shown = lesson_shown(count);
    lesson_cell = type == ncclUint64 ? lesson_cell_letter : lesson_cell_number;
    for (size_t c = 0; c < shown; c++) {
        size_t i = cut && c >= LESSON_EDGE ? count - shown + c : c;
        lesson_cell(cells + c * LESSON_WIDTH, lesson_value(values, i, type));
    }
    return shown;
}

/* Draws a table: a title and, for each of `nranks` GPUs, a row of lesson_cells' cells. */
LESSON_FUNCTION void lesson_draw(const char *title, const char *cells, size_t count,
                                 int nranks) {
    const bool cut = count > LESSON_CELLS;
    const size_t shown = lesson_shown(count);
    size_t width = 0;
    for (size_t c = 0; c < shown * (size_t)nranks; c++)
        width = strlen(cells + c * LESSON_WIDTH) > width
                    ? strlen(cells + c * LESSON_WIDTH)
                    : width;
    char between[64] = "";
    if (cut)
        snprintf(between, sizeof between, " ... %zu more ... |", count - shown);
    size_t dashes = 1 + shown * (width + 3) + strlen(between);
    printf("%s\n", title);
    for (int r = 0; r < nranks; r++) {
        char rule[1024];
        memset(rule, '-', sizeof rule);
        rule[dashes < sizeof rule ? dashes : sizeof rule - 1] = '\0';
        printf("       %s\nGPU %-3d|", rule, r);
        for (size_t c = 0; c < shown; c++)
            printf("%s %-*s |", cut && c == LESSON_EDGE ? between : "", (int)width,
                   cells + ((size_t)r * shown + c) * LESSON_WIDTH);
        printf("\n       %s\n", rule);
    }
    printf("\n");
    fflush(stdout);
}

/* The same for a process that holds all buffers, `count` elements each, one after the
 * other. */
LESSON_FUNCTION void lesson_draw_all(const char *title, const void *values, size_t count,
                                     ncclDataType_t type, int nranks) {
    const size_t most = LESSON_CELLS * LESSON_WIDTH;
    char *cells = lesson_malloc((size_t)nranks * most);
    const size_t size = type == ncclInt32 || type == ncclFloat32 ? 4 : 8; // lesson_value
    const char *row = values;
    for (int r = 0; r < nranks; r++)
        lesson_cells(cells + (size_t)r * LESSON_WIDTH * lesson_shown(count),
                     row + (size_t)r * count * size, count, type);
    lesson_draw(title, cells, count, nranks);
    free(cells);
}

/* Prints every rank's buffer as a table, in rank order, whatever order they ran in.
 *   title   the line above the table, for example "Before broadcast:"
 *   values  this rank's buffer, on the host: `count` elements of `type`
 * Of more than 16 elements only the first 4 and the last 4 are shown. Elements of type
 * ncclUint64 are written as letters: see lesson_cell_letter.
 * All ranks must call it; rank 0 prints. */
LESSON_FUNCTION void lesson_table(const char *title, const void *values, size_t count,
                                  ncclDataType_t type) {
    struct lesson_self self = lesson_self();
    char mine[LESSON_CELLS * LESSON_WIDTH];
    int row = LESSON_WIDTH * (int)lesson_cells(mine, values, count, type);
    char *all = lesson_malloc((size_t)row * (size_t)self.nranks);
    CHECK_MPI(MPI_Gather(mine, row, MPI_CHAR, all, row, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (self.rank == 0)
        lesson_draw(title, all, count, self.nranks);
    free(all);
}

/* Prints one line of text for each rank, in rank order. All ranks must call it. */
LESSON_FUNCTION void lesson_print_in_order(const char *line) {
    struct lesson_self self = lesson_self();
    int longest, length = (int)strlen(line) + 1;
    CHECK_MPI(MPI_Allreduce(&length, &longest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    char *mine = lesson_malloc((size_t)longest);
    char *all = lesson_malloc((size_t)longest * (size_t)self.nranks);
    memcpy(mine, line, (size_t)length);
    CHECK_MPI(
        MPI_Gather(mine, longest, MPI_CHAR, all, longest, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int r = 0; self.rank == 0 && r < self.nranks; r++)
        printf("%s\n", all + (size_t)r * (size_t)longest);
    fflush(stdout);
    free(all);
    free(mine);
}

LESSON_FUNCTION struct {
    unsigned long long checked, wrong;
    double rank, index, got, expected; // of the first wrong one
} lesson_checks;

/* Records whether element `index` of this rank's result is as expected. */
LESSON_FUNCTION void lesson_expect(size_t index, double got, double expected) {
    lesson_checks.checked++;
    if (got == expected)
        return;
    if (lesson_checks.wrong++ == 0) {
        lesson_checks.rank = lesson_self().rank;
        lesson_checks.index = (double)index;
        lesson_checks.got = got;
        lesson_checks.expected = expected;
    }
}

/* Prints the verdict over all ranks' lesson_expect calls as the last line. Without MPI
 * each rank counts only its own (on the CPU build too, where MPI runs all the same).
 *   what  the word for one checked thing, for example "element"
 * Returns the program's exit code: 0 if some were checked and all were right, else 1. */
LESSON_FUNCTION int lesson_verdict(const char *what) {
    struct lesson_self self = lesson_self();
    unsigned long long sum[2] = {lesson_checks.checked, lesson_checks.wrong};
    double first[4] = {lesson_checks.rank, lesson_checks.index, lesson_checks.got,
                       lesson_checks.expected};
    if (lesson_mpi_runs() && lesson_alone.nranks == 1) {
        // The lowest rank that has a wrong one tells the others about it.
        int candidate = sum[1] ? self.rank : self.nranks - 1, teller;
        CHECK_MPI(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM,
                                MPI_COMM_WORLD));
        CHECK_MPI(
            MPI_Allreduce(&candidate, &teller, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
        CHECK_MPI(MPI_Bcast(first, 4, MPI_DOUBLE, teller, MPI_COMM_WORLD));
    }
    if (self.rank == 0 && sum[0] == 0) {
        printf("FAILED: nothing was checked\n");
    } else if (self.rank == 0 && sum[1] == 0) {
        printf("OK: %d rank%s, all %llu %ss as expected\n", self.nranks,
               self.nranks == 1 ? "" : "s", sum[0], what);
    } else if (self.rank == 0) {
        char got[LESSON_WIDTH], expected[LESSON_WIDTH];
        lesson_cell(got, first[2]);
        lesson_cell(expected, first[3]);
        printf("FAILED: rank %.0f, %s %.0f is %s, expected %s", first[0], what, first[1],
               got, expected);
        if (sum[1] > 1)
            printf(" (and %llu more)", sum[1] - 1);
        printf("\n");
    }
    fflush(stdout);
    return sum[0] > 0 && sum[1] == 0 ? 0 : 1;
}

#endif
