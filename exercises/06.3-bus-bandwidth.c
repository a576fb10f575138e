//: kind complete
//: title How well is the link used?
//: trains bus bandwidth
//: setup mpi
//: ranks 1
//: starter bus bandwidth of
//: learned Bus bandwidth counts what really crosses the links, so it can be compared with the link's own speed.
//: why The factors say what part of `bytes` one rank sends: all of it, one round of a ring, or two.
//: hint The table in "Algorithm bandwidth and bus bandwidth" has a factor for each operation.
//: hint An all-reduce sends two rounds of (N-1)/N, a reduce-scatter or an all-gather only one. Integers divide
//:   without a remainder: 3 / 4 is 0.
//: hint bytes / seconds / 1e9, times 1, 2.0 * (n - 1) / n or 1.0 * (n - 1) / n.
//: file

/*
 * Complete it: the bus bandwidth in GB/s (10^9 bytes per second) of an operation that
 * took `seconds` on `n` ranks. `bytes` is the buffer, as in lesson 06: for ALL_GATHER and
 * REDUCE_SCATTER that of all parts together.
 */
#include "lesson.h"

enum operation { BROADCAST, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND_RECV };

double bus_bandwidth(enum operation operation, size_t bytes, double seconds, int n) {
    //: starter
    return (double)bytes / seconds / 1e9;
    //: solution
    const double algbw = (double)bytes / seconds / 1e9, round = (n - 1.0) / n;
    if (operation == ALL_REDUCE)
        return algbw * 2 * round;
    if (operation == REDUCE_SCATTER || operation == ALL_GATHER)
        return algbw * round;
    return algbw;
    //: wrong two-rounds: bus bandwidth of reduce_scatter … The two halves of an all-reduce
    const double algbw = (double)bytes / seconds / 1e9, round = (n - 1.0) / n;
    if (operation == BROADCAST || operation == SEND_RECV)
        return algbw;
    return algbw * 2 * round;
    //: wrong integers: is 0 … Integers
    const double algbw = (double)bytes / seconds / 1e9;
    if (operation == ALL_REDUCE)
        return algbw * (2 * ((n - 1) / n));
    if (operation == REDUCE_SCATTER || operation == ALL_GATHER)
        return algbw * ((n - 1) / n);
    return algbw;
    //: wrong integers-from-the-left: In C, 6 / 4 is 1
    const double algbw = (double)bytes / seconds / 1e9;
    if (operation == ALL_REDUCE)
        return algbw * (2 * (n - 1) / n);
    if (operation == REDUCE_SCATTER || operation == ALL_GATHER)
        return algbw * (n - 1) / n;
    return algbw;
    //: wrong upside-down: The factor is upside down
    const double algbw = (double)bytes / seconds / 1e9, round = (n - 1.0) / n;
    if (operation == ALL_REDUCE)
        return algbw / (2 * round);
    if (operation == REDUCE_SCATTER || operation == ALL_GATHER)
        return algbw / round;
    return algbw;
    //: wrong bits: In bits
    const double algbw = 8 * (double)bytes / seconds / 1e9, round = (n - 1.0) / n;
    if (operation == ALL_REDUCE)
        return algbw * 2 * round;
    if (operation == REDUCE_SCATTER || operation == ALL_GATHER)
        return algbw * round;
    return algbw;
    //: end
}
//: check
#include <math.h>

enum operation { BROADCAST, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND_RECV };

double bus_bandwidth(enum operation operation, size_t bytes, double seconds, int n);

static bool same(double a, double b) {
    return fabs(a - b) <= 1e-9 * fabs(b);
}

void check(void) {
    const char *names[] = {"broadcast", "all_reduce", "reduce_scatter", "all_gather",
                           "send_recv"};
    const int numbers[] = {4, 2, 8, 1000, 3};
    for (int k = 0; k < 25; k++) {
        const int op = k % 5, n = numbers[k / 5];
        check_case("%s on %d ranks", names[op], n);
        const size_t bytes = 1000000 * (size_t)check_data(op, (size_t)k);
        const double seconds = 1e-6 * check_data(op + 1, (size_t)k);
        const double round = (n - 1.0) / n, algbw = (double)bytes / seconds / 1e9;
        const double factors[] = {1, 2 * round, round, round, 1};
        const double expected = algbw * factors[op];
        const double got = bus_bandwidth((enum operation)op, bytes, seconds, n);
        const char *why = "";
        if (same(got, 8 * expected))
            why = "\n  In bits? A byte has eight, and GB are bytes.";
        else if (got == 0)
            why = "\n  Integers divide without a remainder: (4 - 1) / 4 is 0.";
        else if (same(got, algbw / factors[op]))
            why =
                "\n  The factor is upside down: it says what part of the bytes is sent.";
        else if (same(got, 2 * expected))
            why = "\n  The two halves of an all-reduce have one round each.";
        else if (same(got, algbw))
            why =
                "\n  This is the algorithm bandwidth. What part of it does a rank send?";
        if (same(got, algbw) && op == ALL_REDUCE)
            why =
                "\n  This is the algorithm bandwidth. What part of it does a rank send? "
                "(In C, 6 / 4 is 1.)";
        check_that(same(got, expected), "the bus bandwidth of %s is %g, expected %g%s",
                   names[op], got, expected, why);
    }
}
