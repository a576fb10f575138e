/*
 * report.h: reports, each said once; places in words.
 */
#ifndef REPORT_H
#define REPORT_H

#include "base/self.h"
#include "say/text.h"

struct reports {
    struct map said;        // keys of reports
    struct map places;      // sites in words: to find one may take a program
    struct map hosts;       // the machines of ranks of the world
    bool fails;             // the program is to end with 1
    uint64_t newest, other; // the sites that the newest report is about
};
void rank_heard(struct judge *j, int world, const char *host);
const char *rank_host(struct judge *j, int world); // "?": not known

const char *place(struct judge *j, uint64_t site);
/* Says the report and empties it; with `end` the job is to end. What was said before
 * under the same key (0: always new) is not said again. */
void report(struct judge *j, struct text *text, bool end, uint64_t key);

bool said_at(const struct judge *j, uint64_t site); // by the newest report
bool reported(const struct judge *j, uint64_t key); // with this key, before

void reports_free(struct reports *reports);

#endif
