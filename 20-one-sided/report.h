/*
 * report.h: the options of one_sided, and what it prints.
 */
#ifndef REPORT_H
#define REPORT_H

#include "lesson.h"

/* Reads the command line. */
LESSON_FUNCTION void report_options(int argc, char **argv, size_t *count, size_t *items) {
    const struct lesson_option options[] = {
        {"-n", "COUNT", "floats that a rank gives", .number = count, .usual = 1024,
         .least = 1},
        {"--items", "N", "items that pass the queue", .number = items, .usual = 10},
        {0}};
    lesson_options(argc, argv, options);
}

LESSON_FUNCTION void report_exchange(const char *name, double seconds) {
    if (lesson_self().rank == 0)
        printf("%-18s %10.2f us an exchange\n", name, seconds * 1e6);
}

LESSON_FUNCTION void report_queue(size_t items) {
    if (lesson_self().rank == 0)
        printf("%-18s %10zu items\n", "queue", items);
}

#endif
