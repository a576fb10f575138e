/*
 * law.h: the line through the rows of bandwidth, T = alpha + n / beta, by least squares.
 */
#ifndef LAW_H
#define LAW_H

#include "lesson.h"
#include <math.h>

// Each size is at least twice the one before: no more fit a size_t.
enum { LAW_ROWS = 64 };

/* Begins with {0}; law_fit writes what stands below `nrows`. */
struct law {
    double bytes[LAW_ROWS], seconds[LAW_ROWS];
    int nrows;
    bool fits;    // the sizes show both a latency and a bandwidth
    double alpha; // seconds
    double beta;  // bytes per second
    double rms;   // deviation of the line from a row, as a part of the row's time
    double worst; // the largest of them
    double at;    // and the size it is at
};

LESSON_FUNCTION void law_add(struct law *law, double bytes, double seconds) {
    if (law->nrows == LAW_ROWS)
        lesson_fail("more than %d sizes", LAW_ROWS);
    law->bytes[law->nrows] = bytes;
    law->seconds[law->nrows++] = seconds;
}

/* What is made small is the relative error, the difference over the row's time: else the
 * gigabytes would decide alone, and the bytes, which know the latency, not count. */
LESSON_FUNCTION void law_fit(struct law *law) {
    double w = 0, x = 0, xx = 0, y = 0, xy = 0;
    for (int i = 0; i < law->nrows; i++) {
        const double bytes = law->bytes[i], seconds = law->seconds[i];
        const double weight = 1 / (seconds * seconds);
        w += weight;
        x += weight * bytes;
        xx += weight * bytes * bytes;
        y += weight * seconds;
        xy += weight * bytes * seconds;
    }
    const double divisor = w * xx - x * x;
    if (law->nrows < 2 || divisor <= 0)
        return;
    double slope = (w * xy - x * y) / divisor;
    law->alpha = (y - slope * x) / w;
    if (law->alpha < 0) { // no latency to be seen: the best line through nothing
        law->alpha = 0;
        slope = xy / xx;
    }
    law->fits = slope > 0;
    law->beta = law->fits ? 1 / slope : INFINITY;
    for (int i = 0; i < law->nrows; i++) {
        const double line = law->alpha + slope * law->bytes[i];
        const double off = fabs(line / law->seconds[i] - 1);
        law->rms += off * off / law->nrows;
        if (off >= law->worst) {
            law->worst = off;
            law->at = law->bytes[i];
        }
    }
    law->rms = sqrt(law->rms);
}

/* Rank 0 says what an operation's rows have in common. */
LESSON_FUNCTION void law_print(const struct law *law) {
    if (lesson_self().rank != 0 || law->nrows < 2)
        return;
    const int decimals = law->beta < 1e9 ? 4 : law->beta < 1e11 ? 1 : 0;
    if (law->fits)
        printf("  T = %.2f µs + n / %.*f GB/s, off by %.0f %% (rms), at most %.0f %% (at"
               " %.0f B);\n  from n = %.0f B on, bandwidth costs more than latency\n\n",
               law->alpha * 1e6, decimals, law->beta / 1e9, law->rms * 100,
               law->worst * 100, law->at, law->alpha * law->beta);
    else
        printf("  T = %.2f µs: these sizes show no bandwidth\n\n", law->alpha * 1e6);
    fflush(stdout);
}

#endif
