/*
 * failed.c: calls that failed, and whether the program asked why.
 */
#include "say/failed.h"

#include "say/report.h"

void failures_free(struct failures *failures) {
    for (size_t i = 0; i < failures->n; i++)
        free(failures->at[i].text);
    free(failures->at);
    free(failures);
}

void failed(struct judge *j, const char *text, struct judge_at at) {
    struct failures *f = j->failures;
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].thread == j->thread->number) {
            f->at[i].n++;
            return;
        }
    char *copy = must_alloc(strlen(text) + 1);
    strcpy(copy, text);
    ROOM(f->at, f->n, &f->size);
    f->at[f->n++] = (struct unlooked){j->thread->number, 1, f->serial++, at, copy};
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
    add_unlooked(j, &text);
    text_out(&text, out, bytes);
}
