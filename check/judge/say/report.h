/*
 * report.h: reports, each said once; places in words.
 */
#ifndef REPORT_H
#define REPORT_H

#include "base/self.h"
#include "say/text.h"

const char *place(struct judge *j, uint64_t site, char out[JUDGE_PLACE]);
/* Says the report and empties it; with `end` the job is to end. What was said before
 * under the same key (0: always new) is not said again. */
void report(struct judge *j, struct text *text, bool end, uint64_t key);

bool reported(const struct judge *j, uint64_t key); // with this key, before

struct reports *reports_new(void);
void reports_free(struct reports *reports);

#endif
