/*
 * start.c: settings, the judge of this process, the way between the judges, the end of
 * the job.
 *
 * A helper thread carries what the judges tell one another, over an MPI communicator of
 * their own: no call of the program waits for it. It also looks ten times a second
 * whether those who wait can go on. MPI Standard, "MPI and Threads"
 * (MPI_THREAD_MULTIPLE).
 */
#define _GNU_SOURCE
#include "../base.h"
#include "mpi_front.h"
#include "tasks.h"
#include "timeline.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

__thread int front_depth;
bool front_on, front_checks;
const char *front_host;

static struct judge *judge;
static struct judge_options options = {.mode = JUDGE_ON, .timeout = 5};
static char host[JUDGE_HOST];

static double now(void *self) {
    struct timespec t;
    (void)self;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void pause_for(double seconds) {
    struct timespec t = {(time_t)seconds,
                         (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* --- What lies below ----------------------------------------------------------- */

static int in_library(struct dl_phdr_info *info, size_t size, void *data) {
    const char **name = data;
    (void)size;
    void *file =
        info->dlpi_name[0] ? dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = file ? dlsym(file, *name) : NULL;
    Dl_info mine, theirs;
    if (file)
        dlclose(file);
    if (!found || !dladdr(found, &theirs) ||
        !dladdr((void *)(uintptr_t)front_find, &mine) ||
        mine.dli_fbase == theirs.dli_fbase)
        return 0;
    *name = found;
    return 1;
}

void *front_find(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    const char *what = name;
    // Python loads its libraries where RTLD_NEXT does not look.
    if (!found && dl_iterate_phdr(in_library, &what))
        found = (void *)(uintptr_t)what;
    // An NCCL that was built without its profiling interface: what it calls itself passes
    // through here then, and is known by front_depth.
    if (!found && strncmp(name, "pnccl", 5) == 0)
        found = front_find(name + 1);
    return found;
}

/* --- Threads ------------------------------------------------------------------- */

static atomic_int last_thread;
static __thread int this_thread;
static pthread_key_t at_thread_end;

static __thread bool inside; // this thread has the judge's lock

static void enter(int thread) {
    judge_enter(judge, thread);
    inside = true;
}

static void leave(void) {
    inside = false;
    judge_leave(judge);
}

static void thread_ends(void *number) {
    if (judge && front_on)
        judge_thread_gone(judge, (int)(intptr_t)number);
}

static int thread_number(void) {
    if (this_thread == 0) {
        this_thread = atomic_fetch_add(&last_thread, 1) + 1;
        tasks_told(this_thread);
        pthread_setspecific(at_thread_end, (void *)(intptr_t)this_thread);
        enter(this_thread);
        judge_thread_name(judge, (uint64_t)pthread_self());
        leave();
    }
    return this_thread;
}

struct judge *front_in(void) {
    enter(thread_number());
    return judge;
}

void front_leave(void) {
    leave();
}

void front_out(void) {
    guard_apply(judge);
    front_leave();
}

bool front_is_inside(void) {
    return inside;
}

struct front_own front_function_begins(void) {
    struct front_own before = {front_depth, this_thread};
    front_depth = 0;
    this_thread = atomic_fetch_add(&last_thread, 1) + 1;
    return before;
}

void front_function_ends(struct front_own before) {
    if (judge && front_on)
        judge_thread_gone(judge, this_thread);
    front_depth = before.depth;
    this_thread = before.thread;
}

/* --- What the processes of one machine share ----------------------------------- */

/* It has no name any more when the program runs: nothing to clean up, and no process
 * waits. */
enum { LEFT = 4096 };
struct shared {
    atomic_int speaks;      // somebody has begun to report
    atomic_int gave_up;     // somebody has said that the checks end here
    atomic_int here, ended; // processes
    int job_ranks;          // of the whole job
    struct {
        int rank;
        char left[LEFT], failed[LEFT];
    } of[];
};
static struct shared *shared;
static int my_place; // among the processes of the machine

static void share(void) {
    MPI_Comm machine;
    int n, first, rank;
    char name[64];
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                         &machine);
    PMPI_Comm_rank(machine, &my_place);
    PMPI_Comm_size(machine, &n);
    first = (int)getpid();
    PMPI_Bcast(&first, 1, MPI_INT, 0, machine);
    snprintf(name, sizeof name, "/nccl-check-%d-%d", (int)getuid(), first);
    size_t bytes = sizeof *shared + (size_t)n * sizeof shared->of[0];
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Barrier(machine);
    front_depth++; // not the program's
    int file = shm_open(name, O_CREAT | O_RDWR, 0600);
    front_depth--;
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    PMPI_Barrier(machine);
    if (my_place == 0)
        shm_unlink(name);
    PMPI_Comm_free(&machine);
    if (memory == MAP_FAILED)
        return;
    shared = memory;
    shared->of[my_place].rank = rank;
    atomic_fetch_add(&shared->here, 1);
}

/* --- Giving up ----------------------------------------------------------------- */

static atomic_bool gave_up; // the program goes on unchecked, on all ranks

static const char *const ranks_by[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                       "SLURM_PROCID",         "RANK",      NULL};

/* What the launcher says in the environment; `otherwise`: nothing. */
static int launcher_says(const char *const *names, int otherwise) {
    for (; *names; names++)
        if (getenv(*names))
            return atoi(getenv(*names));
    return otherwise;
}

/* Nothing is reported from here on. A timeline goes on. */
static void checks_end(void) {
    gave_up = true;
    options.mode = JUDGE_OFF;
    judge_set(judge, &options);
    front_checks = false;
    front_on = timeline_on;
}

void front_gives_up(const char *why) {
    if (!front_checks || atomic_exchange(&gave_up, true))
        return;
    checks_end();
    // Without MPI it is the same on all ranks, most likely: one of them speaks.
    if (shared ? atomic_exchange(&shared->gave_up, 1) == 0
               : launcher_says(ranks_by, 0) == 0)
        fprintf(stderr, "NCCL CHECK: not checked from here on: %s\n", why);
}

/* What the judge has to note needs memory: a little is kept for the note at which it
 * ends. */
static void *spare;

static void no_memory(void) {
    free(spare);
    spare = NULL;
    front_gives_up("no memory is left for the checks");
    front_on = false;
}

/* --- The end of the job -------------------------------------------------------- */

static int world, nworld = 1;
static bool helper_runs;        // it carries what the judges tell one another
static bool mpi_up, mpi_ended;  // MPI was started, and not ended; it was ended
static bool ending;             // a report ends the job
static __thread bool in_signal; // MPI may be what was interrupted

void front_in_signal(bool yes) {
    in_signal = yes;
}

/* MPI_Abort has been seen to wait for another thread of this process that is in MPI. */
static void *end_in_any_case(void *unused) {
    pause_for(3);
    _exit(1);
    return unused;
}

static void say(void *self, const char *text, bool end) {
    (void)self;
    if (ending || gave_up)
        return;
    if (end) {
        // What several ranks find is told by one: the first of its machine, machines in
        // turn.
        bool first = !shared || atomic_exchange(&shared->speaks, 1) == 0;
        int here = shared ? atomic_load(&shared->here) : 1;
        if (shared && first && here < nworld && my_place < world)
            pause_for(world / here < 5 ? world / here : 5);
        if (!first) {
            for (int i = 0; i < 1000; i++, pause_for(0.01))
                if (timeline_on && !in_signal)
                    timeline_asked();
            _exit(1);
        }
        ending = true;
    }
    fflush(stdout);
    fprintf(stderr, "NCCL CHECK: %s", text);
    fflush(stderr);
    if (!end)
        return;
    if (timeline_on)
        timeline_dies(helper_runs && !in_signal);
    pause_for(0.1); // the launcher passes on what was printed before it hears of the end
    pthread_t thread;
    if (mpi_up && !in_signal && pthread_create(&thread, NULL, end_in_any_case, NULL) == 0)
        PMPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}

/* --- The way between the judges ------------------------------------------------ */

struct parcel {
    struct parcel *next;
    MPI_Request request;
    int to;
    size_t bytes;
    char data[];
};

enum { PARCEL = 1 }; // the tag
static MPI_Comm control = MPI_COMM_NULL;
static struct parcel *outbox, **outbox_end = &outbox; // not yet given to MPI
static struct parcel *under_way;
static pthread_mutex_t outbox_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t outbox_bytes;
static int *sent,
    *received; // parcels, per rank; those of a rank to itself are not counted

static pthread_t helper;
static bool helper_ends, helper_soon;
static pthread_mutex_t helper_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t helper_wakes;

static void wake_helper(void) {
    pthread_mutex_lock(&helper_lock);
    helper_soon = true;
    pthread_cond_signal(&helper_wakes);
    pthread_mutex_unlock(&helper_lock);
}

/* Called with the judge's lock held: only puts it aside. */
static void send_parcel(void *self, int to, const void *data, size_t bytes) {
    (void)self;
    struct parcel *parcel = malloc(sizeof *parcel + bytes);
    if (!parcel)
        return;
    *parcel = (struct parcel){.to = to, .bytes = bytes};
    memcpy(parcel->data, data, bytes);
    pthread_mutex_lock(&outbox_lock);
    *outbox_end = parcel;
    outbox_end = &parcel->next;
    outbox_bytes += bytes;
    bool many = outbox_bytes > 1 << 20;
    pthread_mutex_unlock(&outbox_lock);
    if (many)
        wake_helper();
}

static struct parcel *take_outbox(void) {
    pthread_mutex_lock(&outbox_lock);
    struct parcel *all = outbox;
    outbox = NULL;
    outbox_end = &outbox;
    outbox_bytes = 0;
    pthread_mutex_unlock(&outbox_lock);
    return all;
}

static void deliver(int from, const void *data, size_t bytes) {
    if (gave_up)
        return;
    enter(0);
    judge_receive(judge, from, data, bytes);
    leave();
}

static void post_parcels(void) {
    for (struct parcel *parcel = take_outbox(), *next; parcel; parcel = next) {
        next = parcel->next;
        if (parcel->to == world) {
            deliver(world, parcel->data, parcel->bytes);
            free(parcel);
        } else if (control == MPI_COMM_NULL) {
            free(parcel);
        } else {
            PMPI_Isend(parcel->data, (int)parcel->bytes, MPI_BYTE, parcel->to, PARCEL,
                       control, &parcel->request);
            sent[parcel->to]++;
            parcel->next = under_way;
            under_way = parcel;
        }
    }
    for (struct parcel **at = &under_way; *at;) {
        struct parcel *parcel = *at;
        int there;
        PMPI_Test(&parcel->request, &there, MPI_STATUS_IGNORE);
        if (!there) {
            at = &parcel->next;
            continue;
        }
        *at = parcel->next;
        free(parcel);
    }
}

/* A rank whose checks have ended says so once: without it nobody can be judged. */
static void pass_on_giving_up(void) {
    static bool told;
    if (!gave_up || told || control == MPI_COMM_NULL)
        return;
    told = true;
    for (int to = 0; to < nworld; to++) {
        MPI_Request request;
        if (to != world) {
            PMPI_Isend(NULL, 0, MPI_BYTE, to, PARCEL, control, &request);
            PMPI_Request_free(&request);
            sent[to]++;
        }
    }
}

/* A parcel on its way here. A long one needs the sender's help, and a thread that waits
 * for that inside MPI takes the program's processor: it is asked for instead. */
struct incoming {
    struct incoming *next;
    MPI_Request request;
    int from, bytes;
    char data[];
};
static struct incoming *coming, **coming_end = &coming;

static void take_parcels(void) {
    while (control != MPI_COMM_NULL) {
        int there, bytes;
        MPI_Message message;
        MPI_Status status;
        PMPI_Improbe(MPI_ANY_SOURCE, PARCEL, control, &there, &message, &status);
        if (!there)
            break;
        PMPI_Get_count(&status, MPI_BYTE, &bytes);
        struct incoming *new = must_alloc(sizeof *new + (size_t)bytes);
        *new = (struct incoming){.from = status.MPI_SOURCE, .bytes = bytes};
        PMPI_Imrecv(new->data, bytes, MPI_BYTE, &message, &new->request);
        *coming_end = new;
        coming_end = &new->next;
    }
    while (coming) { // in their order
        struct incoming *first = coming;
        int there;
        PMPI_Test(&first->request, &there, MPI_STATUS_IGNORE);
        if (!there)
            return;
        if (!(coming = first->next))
            coming_end = &coming;
        received[first->from]++;
        if (first->bytes > 0)
            deliver(first->from, first->data, (size_t)first->bytes);
        else
            checks_end(); // it has said why
        free(first);
    }
}

/* One round: what came, what is to be sent, who can go on. */
static bool round_of_judges(void) {
    take_parcels();
    bool busy = false;
    if (!gave_up) {
        enter(0);
        busy = judge_look(judge);
        leave();
    }
    post_parcels();
    pass_on_giving_up();
    if (timeline_on)
        timeline_asked();
    return busy;
}

static void *help(void *unused) {
    (void)unused;
    front_depth = 1; // it is not the program's
    bool busy = false;
    pthread_mutex_lock(&helper_lock);
    while (!helper_ends) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += coming || under_way ? 1000000 : busy ? 20000000 : 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (!helper_soon)
            pthread_cond_timedwait(&helper_wakes, &helper_lock, &until);
        helper_soon = false;
        if (helper_ends)
            break;
        pthread_mutex_unlock(&helper_lock);
        busy = round_of_judges();
        pthread_mutex_lock(&helper_lock);
    }
    pthread_mutex_unlock(&helper_lock);
    return NULL;
}

static void start_helper(void) {
    if (helper_runs || !front_checks)
        return;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&helper_wakes, &monotonic);
    pthread_condattr_destroy(&monotonic);
    helper_ends = false;
    front_depth++; // not the program's
    helper_runs = pthread_create(&helper, NULL, help, NULL) == 0;
    front_depth--;
}

static void stop_helper(void) {
    if (!helper_runs)
        return;
    pthread_mutex_lock(&helper_lock);
    helper_ends = true;
    pthread_cond_signal(&helper_wakes);
    pthread_mutex_unlock(&helper_lock);
    front_depth++; // not the program's
    pthread_join(helper, NULL);
    front_depth--;
    helper_runs = false;
}

/* --- Start --------------------------------------------------------------------- */

static const char *setting(const char *name, const char *old) {
    return getenv(name) ? getenv(name) : getenv(old);
}

static int ranks_of(const struct mpi_of *of, int *out, int most) {
    MPI_Group group, all;
    int n, inter = 0, *ranks;
    if (!of->grouped) {
        if (of->comm == MPI_COMM_NULL)
            return -1;
        PMPI_Comm_test_inter(of->comm, &inter);
        if (inter)
            PMPI_Comm_remote_group(of->comm, &group);
        else
            PMPI_Comm_group(of->comm, &group);
    }
    MPI_Group theirs = of->grouped ? of->group : group;
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(theirs, &n);
    if (of->peer >= n || n > most) {
        n = -1;
    } else {
        n = of->peer >= 0 ? 1 : n;
        ranks = calloc((size_t)n + 1, sizeof *ranks);
        for (int i = 0; i < n; i++)
            ranks[i] = of->peer >= 0 ? of->peer : i;
        PMPI_Group_translate_ranks(theirs, n, ranks, all, out);
        for (int i = 0, known = n; i < known; i++)
            if (out[i] == MPI_UNDEFINED) // of another job
                n = -1;
        free(ranks);
    }
    if (!of->grouped)
        PMPI_Group_free(&group);
    PMPI_Group_free(&all);
    return n;
}

int front_mpi_ranks(void *self, const void *call, int *out, int most) {
    const struct mpi_whom *whom = call;
    int *more = must_alloc(((size_t)nworld + 1) * sizeof *more), n = mpi_up ? 0 : -1;
    (void)self;
    for (int i = 0; i < whom->n && n >= 0; i++) {
        int found = ranks_of(&whom->of[i], more, nworld);
        for (int r = 0; r < found; r++) {
            bool there = false;
            for (int k = 0; k < n && !there; k++)
                there = out[k] == more[r];
            if (!there && n < most)
                out[n++] = more[r];
        }
        n = found < 0 ? -1 : n;
    }
    free(more);
    return n;
}

static bool asleep(void *self, int thread) {
    return tasks_asleep(thread, now(self));
}

static bool idle(void *self, int thread) {
    return tasks_idle(thread, now(self));
}

static bool others_awake(void *self) {
    return tasks_others_awake(now(self));
}

/* What a process that was forked off does is none of the job's, and the helper is not
 * there. */
static void forked(void) {
    guard_forked();
    timeline_forked();
    front_on = front_checks = mpi_up = helper_runs = false;
    ending = true;
}

/* Once for the job, as far as that is known before MPI's start. */
static void not_known(const char *name, const char *text, const char *instead) {
    if (launcher_says(ranks_by, 0) == 0)
        fprintf(stderr, "NCCL CHECK: %s=%s is not %s is taken\n", name, text, instead);
}

__attribute__((constructor(101))) static void begin(void) {
    const char *mode = setting("NCCL_CHECK", "NCCL_CPU_CHECK");
    const char *timeout = setting("NCCL_CHECK_TIMEOUT", "NCCL_CPU_TIMEOUT");
    if (mode && strcmp(mode, "off") == 0)
        options.mode = JUDGE_OFF;
    else if (mode && strcmp(mode, "warn") == 0)
        options.mode = JUDGE_WARN;
    else if (mode && *mode && strcmp(mode, "on") != 0)
        not_known("NCCL_CHECK", mode, "on, warn or off: on");
    if (timeout && atof(timeout) > 0)
        options.timeout = atof(timeout);
    else if (timeout && *timeout)
        not_known("NCCL_CHECK_TIMEOUT", timeout, "a number of seconds: 5");
    options.kernels = !standin_host_blocks;
    gethostname(host, sizeof host - 1);
    host[strcspn(host, ".")] = '\0';
    front_host = host;
    const struct judge_outside outside = {.now = now,
                                          .send = send_parcel,
                                          .say = say,
                                          .place = front_place,
                                          .mpi_ranks = front_mpi_ranks,
                                          .host_memory = guard_changed,
                                          .asleep = asleep,
                                          .others_awake = others_awake,
                                          .idle = idle};
    tasks_begin();
    pthread_key_create(&at_thread_end, thread_ends);
    pthread_atfork(NULL, NULL, forked);
    spare = malloc(1 << 20);
    memory_ends = no_memory;
    judge = judge_new(&outside, &options);
    judge_world(judge, 0, 1, host);
    timeline_start();
    front_checks = options.mode != JUDGE_OFF;
    front_on = front_checks || timeline_on;
    if (front_checks)
        guard_install();
}

/* --- MPI has started, on all ranks at once ------------------------------------- */

/* A rank that was started without the checks would not take part in anything here, and
 * the others would wait for it: rank 0 asks who is there before. */
struct hello {
    struct judge_options options; // rank 0's are everybody's: mpirun does not bring
                                  // variables to other machines
    int timeline;                 // likewise
    int rank;                     // that says it
    int threads;                  // the least that MPI offers to any rank
    bool all;                     // ranks are there
};

/* A message that may never come; ranks do not leave MPI_Init at the same time. */
static bool receive_in_time(void *data, int bytes, int from, int tag) {
    MPI_Status status;
    int there = 0;
    for (double end = now(NULL) + 2 * options.timeout; !there; pause_for(0.0005)) {
        PMPI_Iprobe(from, tag, MPI_COMM_WORLD, &there, &status);
        if (!there && now(NULL) > end)
            return false;
    }
    PMPI_Recv(data, bytes, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
              MPI_STATUS_IGNORE);
    return true;
}

static struct hello say_hello(void) {
    struct hello hello = {.options = options, .timeline = timeline_on}, other;
    int *highest, any, tag = 32766, n = 1;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world);
    hello.rank = world;
    PMPI_Comm_size(MPI_COMM_WORLD, &nworld);
    PMPI_Query_thread(&hello.threads);
    PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &any);
    tag = any ? *highest - 1 : tag; // no program's, most likely
    if (world > 0) {
        PMPI_Send(&hello, sizeof hello, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
        hello.all = receive_in_time(&other, sizeof other, 0, tag + 1) && other.all;
        return hello.all ? other : hello;
    }
    bool *there = must_alloc((size_t)nworld * sizeof *there);
    while (n < nworld && receive_in_time(&other, sizeof other, MPI_ANY_SOURCE, tag)) {
        hello.threads = other.threads < hello.threads ? other.threads : hello.threads;
        there[other.rank] = true;
        n++;
    }
    hello.all = n == nworld;
    for (int rank = 1; rank < nworld; rank++)
        if (there[rank])
            PMPI_Send(&hello, sizeof hello, MPI_BYTE, rank, tag + 1, MPI_COMM_WORLD);
    free(there);
    if (!hello.all)
        fprintf(stderr,
                "NCCL CHECK: not checked: of %d processes only %d run under nccl-check\n",
                nworld, n);
    return hello;
}

/* Where the stand-in pretends several hosts, this is not the machine's name. */
static void share_names(void) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Get_processor_name(name, &length);
    name[strcspn(name, ".")] = '\0';
    snprintf(host, sizeof host, "%.*s", JUDGE_HOST - 1, name);
}

void front_mpi_started(void) {
    if (gave_up)
        timeline_on = 0; // the others hear nothing of this rank
    if (mpi_up || gave_up)
        return;
    mpi_up = true;
    tasks_of_libraries();
    struct hello hello = say_hello();
    if (!hello.all) {
        timeline_on = 0; // it would wait for the others
        checks_end();
        return;
    }
    options = hello.options;
    judge_set(judge, &options);
    front_checks = options.mode != JUDGE_OFF;
    share_names();
    if (timeline_on || hello.timeline)
        timeline_world(world, nworld, host, hello.timeline);
    front_on = front_checks || timeline_on;
    if (!front_checks)
        return;
    share();
    if (hello.threads < MPI_THREAD_MULTIPLE && nworld > 1) {
        front_gives_up("this MPI offers no MPI_THREAD_MULTIPLE, which the checks need");
        return;
    }
    PMPI_Comm_dup(MPI_COMM_WORLD, &control);
    PMPI_Comm_set_errhandler(control, MPI_ERRORS_RETURN);
    sent = must_alloc((size_t)nworld * sizeof *sent);
    received = must_alloc((size_t)nworld * sizeof *received);
    enter(0);
    judge_world(judge, world, nworld, host);
    leave();
    if (nworld > 1)
        start_helper();
}

bool front_has_helper(void) {
    return helper_runs;
}

static void communicates(bool all_here) {
    int started = 0;
    if (!mpi_up && !mpi_ended && !standin_host_blocks) {
        PMPI_Initialized(&started);
        if (started)
            front_gives_up("MPI was not started by C's MPI_Init or MPI_Init_thread");
        else if (!all_here)
            front_gives_up("several processes or threads make a communicator, and MPI was"
                           " not started, by which the checks find one another: call"
                           " MPI_Init");
        if (!front_checks)
            return;
    } else if (!all_here && standin_needs_mpi && !mpi_up) {
        standin_needs_mpi();
        PMPI_Initialized(&started);
        if (started)
            front_mpi_started();
    }
    if (!mpi_ended || nworld == 1)
        start_helper();
}

void front_communicates(bool all_here) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // one thread starts it
    if (!front_on)
        return;
    pthread_mutex_lock(&lock);
    communicates(all_here);
    pthread_mutex_unlock(&lock);
}

void front_settles(void) {
    for (int i = 0; i < 50 && helper_runs && nworld > 1 && !ending; i++) {
        wake_helper();
        pause_for(0.02);
    }
}

/* --- The end ------------------------------------------------------------------- */

/* Stays until all ranks are as far, so that those who wait for this one can be told what
 * it did last; and until all that the judges had to tell one another has come. */
static void meet_the_others(void) {
    MPI_Request request;
    int all = 0, *expected = calloc((size_t)nworld, sizeof *expected);
    int *mine = calloc((size_t)nworld, sizeof *mine);
    if (control == MPI_COMM_NULL || !expected || !mine) {
        free(expected);
        free(mine);
        return;
    }
    if (standin_host_blocks)
        standin_host_blocks(1);
    PMPI_Ibarrier(control, &request);
    while (PMPI_Test(&request, &all, MPI_STATUS_IGNORE), !all)
        pause_for(0.001);
    stop_helper();
    // From here on this thread does what the helper did. Nothing waits any more: what is
    // still to be told are calls, to be compared.
    round_of_judges();
    memcpy(mine, sent, (size_t)nworld * sizeof *mine);
    PMPI_Ialltoall(mine, 1, MPI_INT, expected, 1, MPI_INT, control, &request);
    for (all = 0; PMPI_Test(&request, &all, MPI_STATUS_IGNORE), !all;) {
        take_parcels();
        pause_for(0.0005);
    }
    for (int from = 0; from < nworld; from++)
        while (received[from] < expected[from]) {
            take_parcels();
            pause_for(0.0002);
        }
    // What was compared last is said, if it was wrong.
    if (!gave_up) {
        enter(0);
        judge_last_look(judge);
        leave();
    }
    free(take_outbox());
    PMPI_Ibarrier(control, &request);
    for (all = 0; PMPI_Test(&request, &all, MPI_STATUS_IGNORE), !all;)
        pause_for(0.0002);
    while (under_way) // received by now
        post_parcels();
    if (standin_host_blocks)
        standin_host_blocks(0);
    free(expected);
    free(mine);
}

static void finish(bool finalize, struct judge_at at) {
    enter(thread_number());
    judge_finishes(judge, finalize, at);
    leave();
    wake_helper();
    if (mpi_up)
        meet_the_others();
    else
        stop_helper();
}

/* Before MPI_Finalize is called below. */
void front_mpi_ends(struct judge_at at) {
    if (mpi_up && front_checks && !ending)
        finish(true, at);
    else if (mpi_up && gave_up && !ending)
        meet_the_others();
    if (mpi_up && timeline_on && !ending)
        timeline_gather();
    if (control != MPI_COMM_NULL)
        PMPI_Comm_free(&control);
    control = MPI_COMM_NULL;
    mpi_ended = mpi_up;
    mpi_up = false;
}

/* The program has called MPI_Finalize, and MPI goes on below until the process ends. */
static struct judge_at kept_at;

void front_mpi_kept(struct judge_at at) {
    kept_at = at;
}

static int exit_status = -1;

static void write_timeline(int status) {
    if (!timeline_on || ending)
        return;
    if (status != 0)
        timeline_dies(helper_runs);
    else if (mpi_up && kept_at.call) // all ranks have called MPI_Finalize
        timeline_gather();
    else if ((mpi_up || mpi_ended ? world : launcher_says(ranks_by, 0)) == 0)
        timeline_alone();
}

static void exit_checks(int status) {
    if (gave_up && mpi_up && !ending && status == 0)
        meet_the_others(); // who may still be checked wait for it
    if (!front_checks || ending || status != 0)
        return;
    enter(thread_number());
    judge_exits(judge);
    leave();
    if (mpi_up || nworld == 1)
        finish(kept_at.call != NULL,
               kept_at.call ? kept_at : (struct judge_at){"the end of the program", 0});
}

static void at_exit(int status, void *unused) {
    (void)unused;
    exit_status = status;
    exit_checks(status);
    write_timeline(status);
}

/* It must run behind the destructors of the program's C++ objects, which may still
 * release. */
#ifdef FRONT_LINKED
/* What is registered first runs last. */
__attribute__((constructor(102))) static void watch_exit(void) {
    on_exit(at_exit, NULL);
}
#else
/* What a library registers before the program starts would run too late, when the
 * libraries have ended. So the way into the program is taken: its main and what the
 * loader wants to be called at the end. */
static int (*program)(int, char **, char **);
static void (*loader_ends)(void);

static void note_status(int status, void *unused) {
    (void)unused;
    exit_status = status;
    if (!kept_at.call) // CUDA may be gone when the libraries end
        write_timeline(status);
}

static int run_program(int argc, char **argv, char **environment) {
    on_exit(note_status, NULL);
    return program(argc, argv, environment);
}

static void libraries_end(void) {
    at_exit(exit_status, NULL);
    if (loader_ends)
        loader_ends();
}

__attribute__((visibility("default"))) int
__libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                  void (*begins)(void), void (*ends)(void), void (*loader)(void),
                  void *stack);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      void (*begins)(void), void (*ends)(void), void (*loader)(void),
                      void *stack) {
    __typeof__(&__libc_start_main) below =
        (__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main");
    program = main;
    loader_ends = loader;
    return below(run_program, argc, argv, begins, ends, libraries_end, stack);
}
#endif

static void print_shared(bool failed, const char *title, const char *hint) {
    bool any = false;
    int n = atomic_load(&shared->here);
    for (int i = 0; i < n; i++) {
        char *mine = failed ? shared->of[i].failed : shared->of[i].left;
        if (!mine[0])
            continue;
        if (!any)
            fprintf(stderr, "NCCL CHECK: %s\n", title);
        any = true;
        int nsame = 0;
        for (int k = i; k < n; k++)
            nsame +=
                strcmp(mine, failed ? shared->of[k].failed : shared->of[k].left) == 0;
        fprintf(stderr, "  rank%s %d", nsame > 1 ? "s" : "", shared->of[i].rank);
        for (int k = i + 1; k < n; k++) {
            char *other = failed ? shared->of[k].failed : shared->of[k].left;
            if (strcmp(mine, other) == 0) {
                fprintf(stderr, ", %d", shared->of[k].rank);
                other[0] = '\0';
            }
        }
        fprintf(stderr, ": %s\n", mine);
    }
    if (any)
        fprintf(stderr, "  Hint: %s\n", hint);
}

/* The very end of the process. The last of a machine speaks for all of them. */
__attribute__((destructor(101))) static void end(void) {
    if (!front_checks || ending || exit_status != 0)
        return;
    if (!shared) {
        shared = calloc(1, sizeof *shared + sizeof shared->of[0]);
        if (!shared)
            return;
        atomic_store(&shared->here, 1);
    }
    enter(thread_number());
    judge_left_behind(judge, shared->of[my_place].left, LEFT);
    judge_unlooked(judge, shared->of[my_place].failed, LEFT);
    leave();
    if (atomic_fetch_add(&shared->ended, 1) + 1 < atomic_load(&shared->here))
        return;
    print_shared(
        false, "left behind: the program ends and has not released",
        "what was made is released in reverse order: cudaFree, cudaStreamDestroy,"
        " ncclCommDestroy.");
    print_shared(
        true, "failed: the program ends well, though calls failed and it never asked why",
        "every call of CUDA and NCCL returns whether it went well; look at it, and ask"
        " cudaGetLastError,\n        ncclGetLastError.");
    fflush(stderr);
}
