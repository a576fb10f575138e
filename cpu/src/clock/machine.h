/* machine.h: the machine that is modelled, as its files say; times are in seconds. */
#ifndef CPU_MACHINE_H
#define CPU_MACHINE_H

#include "clock/clock.h"

enum { MOST_POINTS = 16 };

struct row { // measured
    double bytes, seconds;
};

struct table { // of one operation on so many ranks, the smallest size first
    int ranks, n;
    struct row *rows;
};

extern struct machine {
    char name[64];
    struct tables {
        struct table *all;
        int n;
    } tables[2][CLOCK_OPS]; // of plain buffers; of registered ones (see `direct`)
    double law_latency[CLOCK_OPS], law_bandwidth[CLOCK_OPS];
    bool has_law[CLOCK_OPS];
    double slower[CLOCK_OPS]; // so many times the bytes take as long there; 0: not given
    int times_at[CLOCK_OPS], slower_at[CLOCK_OPS]; // see depth; 0: not given
    struct way {                        // that an all-reduce can go: see `enum way`
        int at;                         // see depth; 0: not given
        double more, rate;              // than NCCL's own way, in latency; bytes a second
        struct row points[MOST_POINTS]; // measured on two ranks: seconds more
        int npoints;
    } ways[CLOCK_WAYS];
} modelled;

enum { PLAIN, DIRECT, PROTOCOLS = CLOCK_WAYS / 2 };
extern const char *const clock_algorithms[]; // NCCL's
extern const char *const clock_protocols[];
/* Which of the names it is, however it is spelled; -1: none. */
int clock_find(const char *name, const char *const *names, int n);

enum value {
    GPUS_PER_NODE,
    LAUNCH_US,
    NCCL_US,
    NCCL_MORE_US,
    SEND_US,
    WINDOW_US,
    ONE_SIDED_US,
    GRAPH_US,
    GPU_US,
    EVENT_US,
    WAIT_US,
    ASK_US,
    MPI_US,
    COPY_US,
    HOST_COPY_US,
    SET_US,
    WITHIN_GBS,
    HOST_GBS,
    PEER_GBS,
    STAGED_GBS,
    MEMORY_GBS,
    TFLOPS,
    PRODUCT_US,
    UNITS,
    CTAS,
    CTA_GBS,
    LINK_GBS,
    HOP_US,
    TAIL_US,
    NETWORK_US,
    NETWORK_GBS,
    SCALE, // may be left out: 1
    VALUES
};
extern double clock_value[VALUES];

#endif
