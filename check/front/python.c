/*
 * python.c: the line of Python that a call comes from. See python.h.
 *
 * A frame may be read only by a thread that has Python's lock, the GIL. The calling
 * thread has let it go, mostly. It takes it again if it is the only thread that Python
 * knows: then nobody has it. Otherwise somebody might hold it while waiting for this very
 * call. So another thread looks, and this one waits for it only for a moment, and for a
 * hundredth of the time at most. (A thread of Python's that computes gives the lock away
 * every 5 ms.) All this happens once for a place: python_frames.c knows it again.
 */
#define _GNU_SOURCE
#include "python.h"

#include "base/base.h"
#include "enter.h"
#include "python_frames.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Of CPython; all arguments and results that are objects are pointers. */
static struct {
    bool there;
    int (*holds_lock)(void);
    void *(*this_thread)(void), *(*main_interpreter)(void);
    void *(*first_thread)(void *), *(*next_thread)(void *);
    int (*take_lock)(void);
    void (*give_lock)(int);
    void *(*frame_of)(void *), *(*frame_back)(void *), *(*frame_code)(void *);
    int (*frame_line)(void *);
    void *(*attribute)(void *, const char *);
    const char *(*text)(void *);
    void (*release)(void *), (*clear_error)(void);
    const char *(*version)(void);
    void *(*modules)(void), *(*item)(void *, const char *);
} py;

enum { TAG = 0x2507950 };
static const char magic[8] = "\1PYTHON\1";
static struct text {
    uint64_t site;
    bool told;
    char words[JUDGE_PLACE];
} * texts;
static size_t ntexts, texts_size;
static pthread_mutex_t texts_lock = PTHREAD_MUTEX_INITIALIZER;

void python_begins(void) {
    const struct {
        void *at;
        const char *name;
    } all[] = {{&py.holds_lock, "PyGILState_Check"},
               {&py.this_thread, "PyGILState_GetThisThreadState"},
               {&py.main_interpreter, "PyInterpreterState_Main"},
               {&py.first_thread, "PyInterpreterState_ThreadHead"},
               {&py.next_thread, "PyThreadState_Next"},
               {&py.take_lock, "PyGILState_Ensure"},
               {&py.give_lock, "PyGILState_Release"},
               {&py.frame_of, "PyThreadState_GetFrame"},
               {&py.frame_back, "PyFrame_GetBack"},
               {&py.frame_code, "PyFrame_GetCode"},
               {&py.frame_line, "PyFrame_GetLineNumber"},
               {&py.attribute, "PyObject_GetAttrString"},
               {&py.text, "PyUnicode_AsUTF8"},
               {&py.release, "Py_DecRef"},
               {&py.clear_error, "PyErr_Clear"},
               {&py.version, "Py_GetVersion"},
               {&py.modules, "PyImport_GetModuleDict"},
               {&py.item, "PyDict_GetItemString"}};
    py.there = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        void *found = dlsym(RTLD_DEFAULT, all[i].name);
        memcpy(all[i].at, &found, sizeof found);
        py.there &= found != NULL;
    }
    if (py.there)
        frames_begin(py.version());
}

/* The number of a text, which is kept. The same text has the same number on all ranks. */
static uint64_t keep(const char *words, bool told) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (const char *at = words; *at; at++)
        h = (h ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    const uint64_t site =
        (uint64_t)TAG << FILE_SHIFT | (h & ((UINT64_C(1) << FILE_SHIFT) - 1));
    pthread_mutex_lock(&texts_lock);
    size_t i = 0;
    while (i < ntexts && texts[i].site != site)
        i++;
    if (i == ntexts) {
        ROOM(texts, ntexts, &texts_size);
        texts[ntexts].site = site;
        texts[ntexts].told = told;
        snprintf(texts[ntexts++].words, JUDGE_PLACE, "%s", words);
    }
    pthread_mutex_unlock(&texts_lock);
    return site;
}

bool python_text(uint64_t site, char out[JUDGE_PLACE]) {
    if (site >> FILE_SHIFT != TAG)
        return false;
    snprintf(out, JUDGE_PLACE, "a line of Python");
    pthread_mutex_lock(&texts_lock);
    for (size_t i = 0; i < ntexts; i++)
        if (texts[i].site == site)
            snprintf(out, JUDGE_PLACE, "%s", texts[i].words);
    pthread_mutex_unlock(&texts_lock);
    return true;
}

size_t python_tells(char *out, size_t size) {
    size_t bytes = 0;
    pthread_mutex_lock(&texts_lock);
    for (size_t i = 0; i < ntexts && !bytes; i++)
        if (!texts[i].told) {
            texts[i].told = true;
            memcpy(out, magic, sizeof magic);
            bytes = sizeof magic + 1 +
                    (size_t)snprintf(out + sizeof magic, size - sizeof magic, "%s",
                                     texts[i].words);
        }
    pthread_mutex_unlock(&texts_lock);
    return bytes;
}

bool python_hears(const void *data, size_t bytes) {
    const char *words = (const char *)data + sizeof magic;
    if (bytes <= sizeof magic || memcmp(data, magic, sizeof magic) != 0)
        return false;
    if (((const char *)data)[bytes - 1] == '\0')
        keep(words, true);
    return true;
}

/* The file of a module, which is not asked for again; "": there is none. */
enum { PATH = 1024 };
static void find_file(const char *module, char out[PATH]) {
    void *there = out[0] ? NULL : py.item(py.modules(), module);
    void *file = there ? py.attribute(there, "__file__") : NULL;
    const char *path = file ? py.text(file) : NULL;
    if (path)
        snprintf(out, PATH, "%s", path);
    else if (there)
        py.clear_error();
    if (file)
        py.release(file);
}

/* In the other one's folder, or below. */
static bool is_beside(const char *file, const char *other) {
    const char *end = strrchr(other, '/');
    return end && strncmp(file, other, (size_t)(end + 1 - other)) == 0;
}

static bool in_packages(const char *file) {
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

/* PyTorch, the standard library, or code without a file; and other packages, if the
 * program is a script of its author's, and not a package itself or the command of one. */
static bool is_library(const char *file) {
    static char standard[PATH], torch[PATH], program[PATH];
    find_file("os", standard);
    find_file("torch", torch);
    find_file("__main__", program);
    if (file[0] == '<' || is_beside(file, torch))
        return true;
    if (!in_packages(file))
        return is_beside(file, standard);
    const size_t n = strlen(program);
    return !in_packages(program) && (n < 3 || strcmp(program + n - 3, ".py") == 0);
}

/* The text of a frame, if it is the program's. */
static bool describe(void *frame, void *code, const char *whose, char out[JUDGE_PLACE]) {
    void *file = py.attribute(code, "co_filename"), *name = py.attribute(code, "co_name");
    const char *path = file ? py.text(file) : NULL,
               *function = name ? py.text(name) : NULL;
    bool own = path && function && !is_library(path);
    if (own) {
        const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
        if (function[0] == '<')
            snprintf(out, JUDGE_PLACE, "%.120s:%d%s", base, py.frame_line(frame), whose);
        else
            snprintf(out, JUDGE_PLACE, "%.120s:%d in %.80s()%s", base,
                     py.frame_line(frame), function, whose);
    }
    if (!path || !function)
        py.clear_error();
    if (file)
        py.release(file);
    if (name)
        py.release(name);
    return own;
}

typedef bool learning(const void *thread, void *const *codes, int n, uint64_t site);

/* With the lock. The innermost frame that is the program's; 0: there is none. It is
 * learned, so that the same place needs no lock again. */
static uint64_t look(void *thread, const char *whose, learning *learn) {
    char out[JUDGE_PLACE];
    if (!thread)
        return 0;
    void *frame = py.frame_of(thread), *codes[FRAMES_DEEP];
    uint64_t site = 0;
    int n = 0;
    while (frame && !site) {
        void *code = py.frame_code(frame);
        if (describe(frame, code, whose, out))
            site = keep(out, false);
        void *back = site ? NULL : py.frame_back(frame);
        py.release(frame);
        frame = back;
        if (n < FRAMES_DEEP)
            codes[n++] = code;
        else
            py.release(code);
    }
    if (n == FRAMES_DEEP || !learn(thread, codes, n, site ? site : FRAMES_NOBODYS))
        while (n > 0)
            py.release(codes[--n]);
    return site;
}

static void *main_thread(void) {
    void *thread = py.first_thread(py.main_interpreter()), *oldest = NULL;
    for (; thread; thread = py.next_thread(thread))
        oldest = thread;
    return oldest;
}

static uint64_t look_here_or_in_main(void *thread) {
    const uint64_t site = look(thread, "", frames_learn);
    return site ? site
                : look(main_thread(), " (the main thread's line)", frames_learn_main);
}

/* The thread that looks for those who must not wait for the lock. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    bool runs, busy, wanted;
    void *thread;          // whose frame
    uint64_t number, done; // of the question; of the newest that is answered
    uint64_t site;         // found there; 0: none
} looker = {.lock = PTHREAD_MUTEX_INITIALIZER,
            .asked = PTHREAD_COND_INITIALIZER,
            .answered = PTHREAD_COND_INITIALIZER};

static void *look_for_others(void *unused) {
    (void)unused;
    front_depth = 1; // it is not the program's
    pthread_mutex_lock(&looker.lock);
    for (;;) {
        while (!looker.wanted)
            pthread_cond_wait(&looker.asked, &looker.lock);
        looker.wanted = false;
        void *thread = looker.thread;
        uint64_t number = looker.number, site = 0;
        pthread_mutex_unlock(&looker.lock);
        int before = py.take_lock();
        // Whoever asked may have gone on by now, and its thread may have ended.
        if (__atomic_load_n(&looker.number, __ATOMIC_ACQUIRE) == number)
            site = look_here_or_in_main(thread);
        py.give_lock(before);
        pthread_mutex_lock(&looker.lock);
        looker.done = number;
        looker.site = site;
        pthread_cond_broadcast(&looker.answered);
    }
    return unused;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t ask_looker(void *thread) {
    static const double LONGEST = 0.02, MOST = 0.2, PART = 0.01, SHORT = 0.0001;
    static double left = MOST, before; // seconds to wait in, as they were then
    pthread_mutex_lock(&looker.lock);
    const double begun = now();
    left += (begun - before) * PART;
    left = left < MOST ? left : MOST;
    before = begun;
    const double end = begun + (left < LONGEST ? left : LONGEST);
    const struct timespec until = {(time_t)end,
                                   (long)((end - (double)(time_t)end) * 1e9)};
    if (!looker.runs) {
        pthread_t made;
        front_depth++; // not the program's
        looker.runs = pthread_create(&made, NULL, look_for_others, NULL) == 0;
        if (looker.runs)
            pthread_detach(made);
        front_depth--;
    }
    uint64_t site = 0;
    if (looker.runs && !looker.busy && left > 0) {
        looker.busy = looker.wanted = true;
        looker.thread = thread;
        uint64_t number = ++looker.number;
        pthread_cond_signal(&looker.asked);
        while (looker.done < number &&
               pthread_cond_timedwait(&looker.answered, &looker.lock, &until) == 0)
            ;
        if (looker.done == number)
            site = looker.site;
        if (looker.done < number) // it is too late
            __atomic_store_n(&looker.number, number + 1, __ATOMIC_RELEASE);
        looker.busy = false;
        if (now() - begun > SHORT)
            left -= now() - begun;
    }
    pthread_mutex_unlock(&looker.lock);
    return site;
}

bool python_there(void) {
    return py.there;
}

static bool python_runs(void) {
    return py.there && py.main_interpreter() && py.first_thread(py.main_interpreter());
}

bool python_watchdog(void) {
    return py.there && !py.this_thread();
}

/* Without the lock, if all frames are where they once were. */
static uint64_t known_site(const void *mine) {
    const uint64_t site = mine ? frames_site(mine) : 0;
    return site == FRAMES_NOBODYS ? frames_site_of_main() : site;
}

uint64_t python_site(uint64_t site) {
    if (!python_runs())
        return site;
    void *newest = py.first_thread(py.main_interpreter());
    void *mine = py.this_thread();
    uint64_t own = known_site(mine);
    if (own)
        return own;
    if (mine && py.holds_lock()) {
        own = look_here_or_in_main(mine);
    } else if (mine && newest == mine && !py.next_thread(mine)) {
        int before = py.take_lock();
        own = look_here_or_in_main(mine);
        py.give_lock(before);
    } else {
        own = ask_looker(mine);
    }
    return own ? own : site;
}

void python_forked(void) {
    looker.runs = looker.busy = looker.wanted = false;
    pthread_mutex_init(&looker.lock, NULL);
}
