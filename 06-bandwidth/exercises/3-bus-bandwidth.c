// 06.3 How well is the link used? (complete)
// make exercise N=06.3

/*
 * Complete it: the bus bandwidth in GB/s (10^9 bytes per second) of an operation that
 * took `seconds` on `n` ranks. `bytes` is the buffer, as in lesson 06: for ALL_GATHER and
 * REDUCE_SCATTER that of all parts together.
 */
#include "lesson.h"

enum operation { BROADCAST, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, SEND_RECV };

double bus_bandwidth(enum operation operation, size_t bytes, double seconds, int n) {
    return (double)bytes / seconds / 1e9;
}
