/*
 * law.h: the line through the rows of bandwidth, T = alpha + n / beta, by least squares.
 */
#ifndef LAW_H
#define LAW_H

#include "lesson.h"
#include <math.h>

// Each size is at least twice the one before, so a size_t has room for no more.
enum { LAW_ROWS = 64 };

/* Begins with {0}. law_fit sets everything after `nrows`. */
struct law {
    double bytes[LAW_ROWS], seconds[LAW_ROWS];
    int nrows;
    bool fits;    // larger sizes take longer, so there is a bandwidth
    double alpha; // seconds
    double beta;  // bytes per second
    double rms;   // how far rows are from the line, as a part of their time: the mean
    double worst; // the largest distance
    double at;    // and its size
};

static inline void law_add(struct law *law, double bytes, double seconds) {
    if (law->nrows == LAW_ROWS)
        lesson_fail("more than %d sizes", LAW_ROWS);
    law->bytes[law->nrows] = bytes;
    law->seconds[law->nrows++] = seconds;
}

/* Makes the relative error small, the distance divided by the row's time. Otherwise the
 * gigabytes alone would decide, and the small sizes, which show the latency, would not
 * count. */
static inline void law_fit(struct law *law) {
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
    if (law->alpha < 0) { // these sizes show no latency: the best line through zero
        law->alpha = 0;
        slope = xy / xx;
    }
    // A slope that adds less than rounding does is none.
    law->fits = slope * law->bytes[law->nrows - 1] > 1e-9 * law->alpha;
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

/* Rank 0 prints the line. */
static inline void law_print(const struct law *law) {
    if (lesson_self().rank != 0 || law->nrows < 2)
        return;
    const int decimals = law->beta < 1e9 ? 4 : law->beta < 1e11 ? 1 : 0;
    if (law->fits)
        printf(
            "  T = %.2f µs + n / %.*f GB/s, off by %.0f %% (rms), at most %.0f %% (at %.0f B);\n"
            "  from n = %.0f B on, bandwidth costs more than latency\n\n",
            law->alpha * 1e6, decimals, law->beta / 1e9, law->rms * 100, law->worst * 100,
            law->at, law->alpha * law->beta);
    else
        printf("  T = %.2f µs: these sizes show no bandwidth\n\n", law->alpha * 1e6);
    fflush(stdout);
}

#endif
