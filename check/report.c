/*
 * report.c: a report's text; what was said once is not said again.
 */
#include "inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct reports {
    struct map said;   // keys of reports
    struct map places; // sites in words: to find one may take a program
};

struct reports *reports_new(void) {
    return must_alloc(sizeof(struct reports));
}

void reports_free(struct reports *reports) {
    for (size_t i = 0; i < reports->places.size; i++)
        free(reports->places.at[i].value);
    map_free(&reports->places);
    map_free(&reports->said);
    free(reports);
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    size_t bytes = length > 0 ? (size_t)length : 0;
    if (text->used + bytes + 1 > text->size) {
        text->size = 2 * (text->used + bytes + 1);
        text->at = must_grow(text->at, text->size);
    }
    vsnprintf(text->at + text->used, bytes + 1, format, again);
    va_end(again);
    text->used += bytes;
}

void add_ranks(struct text *text, const int *ranks, int n) {
    for (int i = 0; i < n; i++)
        text_add(text, "%s%d", i > 0 ? ", " : n == 1 ? "rank " : "ranks ", ranks[i]);
}

const char *place(struct judge *j, uint64_t site, char out[JUDGE_PLACE]) {
    char *known = map_get(&j->reports->places, site);
    if (!site) {
        snprintf(out, JUDGE_PLACE, "an unknown place");
    } else if (known) {
        snprintf(out, JUDGE_PLACE, "%s", known);
    } else {
        known = must_alloc(JUDGE_PLACE);
        j->outside.place(j->outside.self, site, known);
        map_put(&j->reports->places, site, known);
        snprintf(out, JUDGE_PLACE, "%s", known);
    }
    return out;
}

static void empty(struct text *text) {
    free(text->at);
    *text = (struct text){0};
}

static void say(struct judge *j, struct text *text, bool end, uint64_t key) {
    bool again = key && map_get(&j->reports->said, key);
    if (key)
        map_put(&j->reports->said, key, j);
    if (!j->over && j->options.mode != JUDGE_OFF && !again) {
        j->over = end;
        j->outside.say(j->outside.self, text->at, end);
    }
    empty(text);
}

void report(struct judge *j, struct text *text, bool may_go_on, uint64_t key) {
    say(j, text, j->options.mode == JUDGE_ON || !may_go_on, key);
}

void report_and_go_on(struct judge *j, struct text *text, uint64_t key) {
    say(j, text, false, key);
}
