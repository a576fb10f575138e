/*
 * failed.c: calls that failed, and whether the program asked why.
 */
#include "say/failed.h"

#include "say/report.h"

static char *copy_of(const char *text) {
    char *copy = must_alloc(strlen(text) + 1);
    strcpy(copy, text);
    return copy;
}

/* Once for each line: a compiler may have made several calls of one. */
static void note(struct judge *j, const char *code, const char *text,
                 struct judge_at at) {
    uint64_t line = 0;
    for (const char *c = place(j, at.site); at.site && *c; c++)
        line = mixed(line, (unsigned char)*c);
    struct finding f = finding(FINDING_note_call_failed, line, 0);
    if (was_said(j, &f))
        return;
    set_at(j, &f, "here", at);
    set(&f, "code", "%s", code);
    set(&f, "why", "%s", text);
    say(j, &f);
}

void failures_free(struct failures *failures) {
    for (size_t i = 0; i < failures->n; i++)
        free(failures->at[i].text);
    free(failures->at);
    free(failures);
}

void failed(struct judge *j, const char *code, const char *text, struct judge_at at) {
    struct failures *f = j->failures;
    bool noted = code && !said_at(j, at.site);
    if (noted)
        note(j, code, text, at);
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].thread == j->thread->number) {
            f->at[i].n++;
            return;
        }
    ROOM(f->at, f->n, &f->size);
    f->at[f->n++] =
        (struct unlooked){j->thread->number, noted, 1, f->serial++, at, copy_of(text)};
}

void judge_looked(struct judge *j) {
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
    const struct failures *f = j->failures;
    if (f->n != 1 || f->at[0].n != 1 || !f->at[0].noted) // else a note has said it
        add_unlooked(j, &text);
    text_out(&text, out, bytes);
}
