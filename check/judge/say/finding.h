/*
 * finding.h: what is wrong, as a row of findings.list and the values of its fields.
 */
#ifndef FINDING_H
#define FINDING_H

#include "judge.h"

enum finding_name {
#define FINDING(name, class, ends, headline, lines, hint) FINDING_##name,
#define HINT(name, hint)
#include "say/findings.list"
#undef FINDING
#undef HINT
    FINDINGS
};

enum hint_name {
    HINT_OF_FINDING,
#define FINDING(name, class, ends, headline, lines, hint)
#define HINT(name, hint) HINT_##name,
#include "say/findings.list"
#undef FINDING
#undef HINT
    HINTS
};

enum { FIELDS = 24, FIELD_NAME = 16 };

struct finding {
    enum finding_name name;
    enum hint_name hint; // where it is not the finding's own
    struct field {
        char name[FIELD_NAME];
        char *value;
    } fields[FIELDS];
    int nfields;
    // It is said once of these two places, in either order. 0, 0: each time.
    uint64_t site, other;
};

/* `struct finding f = finding(FINDING_race_streams, at.site, other.site)`, then its
 * fields, then say(). */
struct finding finding(enum finding_name name, uint64_t site, uint64_t other);
/* Sets {field}, as printf. */
void set(struct finding *f, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets it to several lines, which are taken over. */
void set_lines(struct finding *f, const char *field, struct text *lines);
/* "broadcast.c:57" */
void set_place(struct judge *j, struct finding *f, const char *field, uint64_t site);
/* "cudaFree at broadcast.c:57"; or these words at that place. */
void set_at(struct judge *j, struct finding *f, const char *field, struct judge_at at);
void set_words_at(struct judge *j, struct finding *f, const char *field,
                  const char *words, uint64_t site);

/* {call} and {here}: it is about this call. */
void set_here(struct judge *j, struct finding *f, struct judge_at at);
void set_call(struct judge *j, struct finding *f, const struct judge_call *call);

/* Whether it was said before, or nothing is said any more: then it need not be filled. */
bool was_said(struct judge *j, const struct finding *f);
/* Says it, if it was not said before, and gives its values up. */
void say(struct judge *j, struct finding *f);

#endif
