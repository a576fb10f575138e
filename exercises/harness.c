/*
 * The frame around an exercise: starts what the exercise needs, calls its hidden check(),
 * and says in a file what came of it. The runner (lib/Judge.pm) reads that file.
 */
#define _GNU_SOURCE
#include "harness.h"

#include <unistd.h>

enum { SETUP_COMM, SETUP_MPI, SETUP_PROGRAM };
extern const int check_setup; // the runner adds it to the hidden half

int exercise_main(int argc, char **argv) __attribute__((weak));
#pragma weak check

int check_rank = -1, check_nranks = 0;
ncclComm_t check_comm;
cudaStream_t check_stream;

static struct {
    int number;
    char text[256];
} now;

static struct {
    bool is;
    int number;
    char where[256], why[1024];
} failure;

static char times[256]; // what check_time has compared last

static struct {
    void *address;
    bool on_device;
} memory[256];
static int nmemory;

static void know_self(void) {
    int started = 0, ended = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&ended);
    if (check_rank < 0 && started && !ended) {
        MPI_Comm_rank(MPI_COMM_WORLD, &check_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &check_nranks);
    }
}

static void free_memory(void) {
    if (nmemory > 0)
        CHECK_CUDA(cudaDeviceSynchronize());
    while (nmemory > 0) {
        nmemory--;
        if (memory[nmemory].on_device)
            CHECK_CUDA(cudaFree(memory[nmemory].address));
        else
            free(memory[nmemory].address);
    }
}

void check_case(const char *format, ...) {
    know_self();
    free_memory();
    // A rank that has left something out is met here, and not in the next case's calls.
    if (check_setup != SETUP_PROGRAM)
        CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    now.number++;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(now.text, sizeof now.text, format, arguments);
    va_end(arguments);
}

bool check_that(bool right, const char *format, ...) {
    know_self();
    if (!right && !failure.is) {
        failure.is = true;
        failure.number = now.number;
        memcpy(failure.where, now.text, sizeof failure.where);
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(failure.why, sizeof failure.why, format, arguments);
        va_end(arguments);
    }
    return right;
}

int check_data(int rank, size_t i) {
    uint64_t x = (uint64_t)now.number * 1000003 + (uint64_t)rank * 7919 + i + 1;
    x ^= x >> 31;
    x *= 0x9E3779B97F4A7C15u;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9u;
    x ^= x >> 32;
    return (int)(x % 97) + 1;
}

static void *remember(void *address, bool on_device) {
    if (nmemory == sizeof memory / sizeof *memory)
        lesson_fail("the check of this exercise allocates too often");
    memory[nmemory].address = address;
    memory[nmemory++].on_device = on_device;
    return address;
}

void *check_device(size_t bytes) {
    void *address;
    CHECK_CUDA(cudaMalloc(&address, bytes));
    return remember(address, true);
}

void *check_host(size_t bytes) {
    return remember(lesson_malloc(bytes ? bytes : 1), false);
}

void check_put(void *device, const void *host, size_t bytes) {
    CHECK_CUDA(
        cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, check_stream));
    CHECK_CUDA(cudaStreamSynchronize(check_stream));
}

/* In the stream that the solution was given: work that it has queued in another one, with
 * no event between, is a race. */
void check_get(void *host, const void *device, size_t bytes) {
    if (!check_stream)
        CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(
        cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, check_stream));
    CHECK_CUDA(cudaDeviceSynchronize());
}

static size_t size_of(ncclDataType_t type) {
    return type == ncclInt32 || type == ncclFloat32 ? 4 : 8;
}

static struct {
    const char *text;
    const void *elements;
} mistakes[8];
static int nmistakes;

void check_mistake(const char *text, const void *elements) {
    if (nmistakes == sizeof mistakes / sizeof *mistakes)
        lesson_fail("the check of this exercise knows too many mistakes");
    mistakes[nmistakes].text = text;
    mistakes[nmistakes++].elements = elements;
}

/* The text of the mistake that explains all elements; the known mistakes are forgotten.
 */
static const char *explanation(const void *got, size_t count, ncclDataType_t type) {
    const char *text = "";
    for (; nmistakes > 0; nmistakes--) {
        size_t i = 0;
        while (i < count && lesson_value(got, i, type) ==
                                lesson_value(mistakes[nmistakes - 1].elements, i, type))
            i++;
        text = i == count ? mistakes[nmistakes - 1].text : text;
    }
    return text;
}

void check_elements(const char *what, const void *got, const void *expected, size_t count,
                    ncclDataType_t type) {
    size_t wrong = 0, first = 0;
    const bool same = memcmp(got, expected, count * size_of(type)) == 0;
    for (size_t i = 0; i < count && !same; i++) {
        if (lesson_value(got, i, type) == lesson_value(expected, i, type))
            continue;
        first = wrong++ == 0 ? i : first;
    }
    const char *because = explanation(got, count, type);
    if (wrong == 0)
        return;
    char has[LESSON_WIDTH], wants[LESSON_WIDTH], more[80] = "";
    lesson_cell_number(has, lesson_value(got, first, type));
    lesson_cell_number(wants, lesson_value(expected, first, type));
    if (wrong > 1)
        snprintf(more, sizeof more, " (and %zu more of %zu are wrong)", wrong - 1, count);
    check_that(false, "element %zu of %s is %s, expected %s%s%s%s", first, what, has,
               wants, more, *because ? "\n  " : "", because);
}

void check_buffer(const char *what, const void *device, const void *expected,
                  size_t count, ncclDataType_t type) {
    void *host = lesson_malloc(count * size_of(type) + 1);
    check_get(host, device, count * size_of(type));
    check_elements(what, host, expected, count, type);
    free(host);
}

bool check_modelled(void) {
    return lesson_modelled();
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool check_measuring(double *seconds) {
    enum { MOST = 7 };
    static double start, sample[MOST];
    static int nsamples = -1;
    const int wanted = check_modelled() ? 1 : MOST;
    if (nsamples >= 0) {
        CHECK_CUDA(cudaDeviceSynchronize());
        double mine = MPI_Wtime() - start;
        CHECK_MPI(MPI_Allreduce(&mine, &sample[nsamples], 1, MPI_DOUBLE, MPI_MAX,
                                MPI_COMM_WORLD));
    }
    if (++nsamples == wanted) {
        qsort(sample, (size_t)wanted, sizeof *sample, ascending);
        *seconds = sample[wanted / 2];
        nsamples = -1;
        return false;
    }
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_MPI(MPI_Barrier(MPI_COMM_WORLD));
    start = MPI_Wtime();
    return true;
}

void check_time(double yours, double most, double theirs, const char *what) {
    snprintf(times, sizeof times,
             "it takes %.1f µs, and %s %.1f µs: %.3f times, at most %.3g is asked",
             yours * 1e6, what, theirs * 1e6, yours / theirs, most);
    check_that(yours <= most * theirs, "%s", times);
}

/* MPI's own barrier keeps a processor busy while it waits, and here most ranks wait most
 * of the time, on few processors. On the CPU build this one soon sleeps; on GPUs, where
 * times are measured after it, it does not. (The checks know MPI_Barrier, and come here
 * from there.) */
int PMPI_Barrier(MPI_Comm comm) {
    MPI_Request request;
    int error = PMPI_Ibarrier(comm, &request), done = 0;
    for (int looks = 0; error == MPI_SUCCESS && !done; looks++) {
        error = PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (LESSON_CPU_BUILD && !done && looks > 100)
            usleep(100);
    }
    return error;
}

/* Where the verdict goes, and the word without which it is none. The word is wiped out:
 * what the reader has written does not find it in the environment, and in a graded
 * program nothing that the reader has written can read or write a file. */
static char folder[4096], token[128];

__attribute__((constructor(101))) static void take_token(void) {
    char *where = getenv("EXERCISE_VERDICT"), *word = getenv("EXERCISE_TOKEN");
    if (!where || !word)
        return;
    snprintf(folder, sizeof folder, "%s", where);
    snprintf(token, sizeof token, "%s", word);
    memset(word, '-', strlen(word));
}

static void write_verdict(void) {
    char name[4200];
    snprintf(name, sizeof name, "%s/verdict.%ld", folder, (long)getpid());
    FILE *file = folder[0] ? fopen(name, "w") : NULL;
    if (file) {
        fprintf(file, "%s\n%d\n%d\n%d\n%s\n%s\n", token, check_rank, now.number,
                failure.is ? failure.number : -1, failure.where,
                failure.is ? failure.why : times);
        fclose(file);
    } else if (failure.is) {
        printf("%s: %s\n", failure.where, failure.why);
    }
}

/* What check.h opens: how much memory is free, and a file that must not be there yet, by
 * which a rank says that it was the first to fail. */
FILE *check_open(const char *name, const char *mode) {
    const bool memory = strcmp(name, "/proc/meminfo") == 0 && strcmp(mode, "r") == 0;
    const char *slash = strrchr(name, '/');
    const bool failed =
        slash && strcmp(slash, "/lesson-failed") == 0 && strcmp(mode, "wx") == 0;
    return memory || failed ? fopen(name, mode) : NULL;
}

int check_setenv(const char *name, const char *value, int overwrite) {
    return strcmp(name, "NCCL_CHECK_NOTES") == 0 ? setenv(name, value, overwrite) : -1;
}

static void start_comm(void) {
    int ndevices;
    CHECK_CUDA(cudaGetDeviceCount(&ndevices));
    CHECK_CUDA(cudaSetDevice(check_rank % ndevices));
    lesson_one_gpu_per_rank();
    ncclUniqueId id;
    if (check_rank == 0)
        CHECK_NCCL(ncclGetUniqueId(&id));
    CHECK_MPI(MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD));
    CHECK_NCCL(ncclCommInitRank(&check_comm, check_nranks, id, check_rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&check_stream, cudaStreamNonBlocking));
}

int main(int argc, char **argv) {
    int exit_code = 0;
    if (check_setup == SETUP_PROGRAM) {
        exit_code = exercise_main(argc, argv);
        if (check)
            check();
        write_verdict();
        return exit_code;
    }
    CHECK_MPI(MPI_Init(&argc, &argv));
    CHECK_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    know_self();
    if (check_setup == SETUP_COMM)
        start_comm();
    check();
    free_memory();
    if (check_setup == SETUP_COMM) {
        CHECK_CUDA(cudaStreamDestroy(check_stream));
        CHECK_NCCL(ncclCommDestroy(check_comm));
    }
    write_verdict();
    CHECK_MPI(MPI_Finalize());
    return exit_code;
}
