/*
 * finding.c: a row of findings.list, with the values of its fields, becomes a report.
 */
#include "say/finding.h"

#include "say/report.h"

#include <stdio.h>

enum ends { GOES_ON, FAILS, MAY_END, ENDS };

static const struct row {
    const char *class;
    enum ends ends;
    const char *headline, *lines, *hint;
} rows[] = {
#define FINDING(name, class, ends, headline, lines, hint) \
    {#class, ends, headline, lines, hint},
#define HINT(name, hint)
#include "say/findings.list"
#undef FINDING
#undef HINT
};

_Static_assert(sizeof rows / sizeof *rows == FINDINGS, "a row for each finding");

static const char *const hints[] = {
    NULL,
#define FINDING(name, class, ends, headline, lines, hint)
#define HINT(name, hint) hint,
#include "say/findings.list"
};

struct finding finding(enum finding_name name, uint64_t site, uint64_t other) {
    return (struct finding){.name = name, .site = site, .other = other};
}

static void set_value(struct finding *f, const char *name, char *value) {
    if (f->nfields == FIELDS)
        abort();
    struct field *field = &f->fields[f->nfields++];
    snprintf(field->name, sizeof field->name, "%s", name);
    field->value = value;
}

void set(struct finding *f, const char *field, const char *format, ...) {
    va_list arguments;
    struct text text = {0};
    va_start(arguments, format);
    text_add_list(&text, format, arguments);
    va_end(arguments);
    set_value(f, field, text.at);
}

void set_lines(struct finding *f, const char *field, struct text *lines) {
    if (lines->at)
        set_value(f, field, lines->at);
    *lines = (struct text){0};
}

void set_place(struct judge *j, struct finding *f, const char *field, uint64_t site) {
    set(f, field, "%s", place(j, site));
}

void set_words_at(struct judge *j, struct finding *f, const char *field,
                  const char *words, uint64_t site) {
    set(f, field, "%s at %s", words, place(j, site));
}

void set_at(struct judge *j, struct finding *f, const char *field, struct judge_at at) {
    set_words_at(j, f, field, at.call, at.site);
}

void set_here(struct judge *j, struct finding *f, struct judge_at at) {
    set(f, "call", "%s", at.call);
    set_at(j, f, "here", at);
}

static const char *value_of(const struct finding *f, const char *name, size_t length) {
    for (int i = f->nfields; i-- > 0;)
        if (strlen(f->fields[i].name) == length &&
            strncmp(f->fields[i].name, name, length) == 0)
            return f->fields[i].value;
    return NULL;
}

/* Adds [from, to), with values for fields and `newline` for line ends. False: a field has
 * no value, and nothing was added. */
static bool add_filled(struct text *text, const struct finding *f, const char *from,
                       const char *to, const char *newline) {
    size_t before = text->used;
    while (from < to) {
        const char *end = from + strcspn(from, "{\n");
        end = end < to ? end : to;
        text_add(text, "%.*s", (int)(end - from), from);
        if (end < to && *end == '\n') {
            text_add(text, "%s", newline);
        } else if (end < to) {
            size_t length = strcspn(end, "}");
            const char *value = value_of(f, end + 1, length - 1);
            if (!value) {
                text->at[text->used = before] = '\0';
                return false;
            }
            text_add(text, "%s", value);
            end += length;
        }
        from = end + 1;
    }
    return true;
}

static void add_text(struct text *text, const struct finding *f, const char *of,
                     const char *newline) {
    add_filled(text, f, of, of + strlen(of), newline);
}

/* A line with a field that has no value is left out. */
static void add_lines(struct text *text, const struct finding *f, const char *lines) {
    for (const char *line = lines; *line;) {
        const char *end = line + strcspn(line, "\n");
        const char *whole = *line == '{' && strcspn(line, "}") == (size_t)(end - line) - 1
                                ? value_of(f, line + 1, (size_t)(end - line) - 2)
                                : NULL;
        if (whole && strchr(whole, '\n')) { // several lines already
            text_add(text, "%s", whole);
        } else {
            size_t before = text->used;
            text_add(text, "  ");
            if (add_filled(text, f, line, end, ""))
                text_add(text, "\n");
            else
                text->at[text->used = before] = '\0';
        }
        line = *end ? end + 1 : end;
    }
}

static uint64_t key_of(const struct finding *f) {
    uint64_t low = f->site < f->other ? f->site : f->other,
             high = f->site ^ f->other ^ low;
    return low || high ? mixed(f->name + 1, mixed(low, high)) : 0;
}

bool was_said(struct judge *j, const struct finding *f) {
    return j->over || reported(j, key_of(f));
}

void say(struct judge *j, struct finding *f) {
    const struct row *row = &rows[f->name];
    struct text text = {0};
    set(f, "rank", "%d", j->rank);
    set(f, "host", "%s", j->host);
    text_add(&text, "%s: ", row->class);
    add_text(&text, f, row->headline, "\n");
    text_add(&text, "\n");
    add_lines(&text, f, row->lines);
    const char *hint = f->hint ? hints[f->hint] : row->hint;
    if (hint[0]) {
        text_add(&text, "  Hint: ");
        add_text(&text, f, hint, "\n        ");
        text_add(&text, "\n");
    }
    for (int i = 0; i < f->nfields; i++)
        free(f->fields[i].value);
    f->nfields = 0;
    bool end = row->ends == ENDS || (row->ends == MAY_END && j->options.mode == JUDGE_ON);
    j->reports->newest = f->site;
    j->reports->other = f->other;
    j->reports->fails |= row->ends == FAILS && j->options.mode == JUDGE_ON;
    report(j, &text, end, key_of(f));
}
