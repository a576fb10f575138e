/*
 * handles.h: the program's handles, and the judge's numbers for what they stand for.
 *
 * Everything here belongs to the judge's lock: it is used between front_in and front_out
 * only.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include "base/base.h"
#include "enter.h"

/* The names of CUDA are seen by programs, all others are not: the files are compiled with
 * -fvisibility=hidden. */
#pragma GCC visibility push(default)
#include <cuda_runtime.h>
#pragma GCC visibility pop
#define PUBLIC __attribute__((visibility("default")))

/* By handles. */
static inline void *table_get(const struct map *table, const void *handle) {
    return map_get(table, (uintptr_t)handle);
}
static inline void table_put(struct map *table, const void *handle, void *value) {
    if (handle)
        map_put(table, (uintptr_t)handle, value); // NULL: takes it out
}
/* The i-th, for i < table->size; NULL: there is none. */
static inline const void *table_handle(const struct map *table, size_t i) {
    return table->at[i].value ? (const void *)(uintptr_t)table->at[i].key : NULL;
}

int current_device(void); // outside of front_in

/* front_in, and the number of a stream: the default ones are those of `device`, or with
 * -1 of the current one. A stream that was made by unknown means is announced. -1: no
 * stream. */
struct judge *front_in_stream(cudaStream_t handle, int device, int *stream);

/* Between front_in and front_out; `device` is none of -1. False: front_in_stream may know
 * the stream. */
bool stream_is_known(cudaStream_t handle, int device, int *stream);

/* The number alone, and the device that the stream is on. */
int stream_number(cudaStream_t handle, int device, int *on);
int event_number(struct judge *j, cudaEvent_t handle);
bool stream_capturing(cudaStream_t handle); // outside of front_in
/* As cudaStreamSynchronize, for a call that waits for it. */
void stream_waited_for(cudaStream_t handle, struct judge_at at);

void stream_made(struct judge *j, cudaStream_t handle, bool blocking, int device,
                 struct judge_at at);
void stream_gone(struct judge *j, cudaStream_t handle);
// cudaDeviceReset; -1: the end of the process
void streams_reset(struct judge *j, int device);

/* `height` rows of `width` bytes, their starts `pitch` apart: a matrix, a vector with
 * gaps, or all in one. Height 0: where exactly is not known. */
struct rows {
    const void *start;
    size_t pitch, width, height;
};
enum { MOST_ROWS = 64 };
/* Adds up to MOST_ROWS ranges; of more rows the first and the last. What lies in the gaps
 * is not theirs. NO_ROWS: there are none, or nobody knows how many. */
enum which_rows { NO_ROWS, SOME_ROWS, ALL_ROWS };
enum which_rows add_rows(const struct rows *rows, bool write, bool device,
                         struct judge_range *ranges, int *n);
/* Of some rows nobody knows who writes the others. */
void open_rows(struct judge *j, const struct rows *rows, enum which_rows which);

#endif
