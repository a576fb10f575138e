/*
 * failed.c: calls that failed, and whether the program asked why.
 */
#include "say/failed.h"

#include "say/report.h"

#include <math.h>

static const double A_MOMENT = 0.15; // seconds: the program may ask why

static char *copy_of(const char *text) {
    char *copy = must_alloc(strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

static void release(struct failed_call *call) {
    free(call->code);
    free(call->text);
    free(call);
}

/* Takes one out that was held back; NULL: there is none. */
static struct failed_call *take_held(struct failures *f, int thread, double before) {
    struct failed_call **at = &f->held, *call;
    while (*at && ((thread && (*at)->thread != thread) || (*at)->since > before))
        at = &(*at)->next;
    if ((call = *at))
        *at = call->next;
    return call;
}

/* Once for each line: a compiler may have made several calls of one. */
static void note(struct judge *j, const struct failed_call *call) {
    uint64_t line = 0;
    for (const char *c = place(j, call->at.site); call->at.site && *c; c++)
        line = mixed(line, (unsigned char)*c);
    struct finding f = finding(FINDING_note_call_failed, line, 0);
    set_at(j, &f, "here", call->at);
    set(&f, "code", "%s", call->code);
    set(&f, "why", "%s", call->text);
    say(j, &f);
}

void failed_said(struct judge *j, int thread, bool later) {
    double before = now(j) - (later ? A_MOMENT : 0);
    struct failed_call *call;
    while ((call = take_held(j->failures, thread, before))) {
        note(j, call);
        release(call);
    }
}

static void say_all(struct judge *j) {
    failed_said(j, 0, false);
}

/* The end of a group returns once more what a call in it has returned. */
static void hold(struct judge *j, bool cuda, const char *code, const char *text,
                 struct judge_at at) {
    struct failures *f = j->failures;
    failed_said(j, j->thread->number, false);
    if (!code || (!cuda && f->noted && strcmp(f->noted, text) == 0) ||
        said_at(j, at.site))
        return;
    free(f->noted);
    f->noted = copy_of(text);
    struct failed_call *call = must_alloc(sizeof *call);
    *call = (struct failed_call){j->thread->number, at,     copy_of(code),
                                 copy_of(text),     now(j), f->held};
    f->held = call;
    j->reports->before = say_all;
}

static void drop_held(struct judge *j) {
    struct failed_call *call;
    while ((call = take_held(j->failures, j->thread->number, now(j))))
        release(call);
}

void failures_free(struct failures *failures) {
    for (struct failed_call *call; (call = take_held(failures, 0, HUGE_VAL));)
        release(call);
    free(failures->noted);
    for (size_t i = 0; i < failures->n; i++)
        free(failures->at[i].text);
    free(failures->at);
    free(failures);
}

void failed(struct judge *j, bool cuda, const char *code, const char *text,
            struct judge_at at) {
    struct failures *f = j->failures;
    hold(j, cuda, code, text, at);
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].thread == j->thread->number) {
            f->at[i].n++;
            return;
        }
    ROOM(f->at, f->n, &f->size);
    f->at[f->n++] =
        (struct unlooked){j->thread->number, 1, f->serial++, at, copy_of(text)};
}

void judge_looked(struct judge *j) {
    drop_held(j);
    judge_looked_at_code(j);
}

void judge_looked_at_code(struct judge *j) {
    struct failures *f = j->failures;
    for (size_t i = f->n; i-- > 0;)
        if (f->at[i].thread == j->thread->number) {
            free(f->at[i].text);
            f->at[i] = f->at[--f->n];
        }
}

size_t failed_unlooked(const struct judge *j, struct judge_at *at, const char **words) {
    const struct failures *f = j->failures;
    const struct unlooked *first = NULL;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        n += f->at[i].n;
        if (!first || f->at[i].serial < first->serial)
            first = &f->at[i];
    }
    *at = first ? first->first : (struct judge_at){0};
    *words = first ? first->text : "";
    return n;
}

void add_failures(struct judge *j, struct text *text, size_t n, struct judge_at first,
                  const char *words) {
    if (n == 1)
        text_add(text, "1 call returned an error: ");
    else
        text_add(text, "%zu calls returned errors, the first: ", n);
    text_add(text, "%s at %s: %s", first.call, place(j, first.site), words);
}

static void add_unlooked(struct judge *j, struct text *text) {
    struct judge_at first;
    const char *words;
    size_t n = failed_unlooked(j, &first, &words);
    if (n > 0)
        add_failures(j, text, n, first, words);
}

void set_failures(struct judge *j, struct finding *f) {
    struct text text = {0};
    add_unlooked(j, &text);
    set_lines(f, "failures", &text);
}

void judge_says_last(struct judge *j, enum judge_last_words what, struct text *ranks) {
    static const enum finding_name names[] = {FINDING_memory_unwritten_everywhere,
                                              FINDING_left_behind, FINDING_note_failed};
    struct finding f = finding(names[what], 0, 0);
    if (!ranks->at)
        return;
    set_lines(&f, what == JUDGE_CALLS_FAILED ? "failed_calls" : "ranks", ranks);
    say(j, &f);
}

void judge_failures(struct judge *j, char *out, size_t bytes) {
    struct text text = {0};
    failed_said(j, 0, false);
    const struct failures *f = j->failures;
    // The only one has a note already.
    if (f->n != 1 || f->at[0].n != 1 || !f->noted || strcmp(f->noted, f->at[0].text) != 0)
        add_unlooked(j, &text);
    text_out(&text, out, bytes);
}
