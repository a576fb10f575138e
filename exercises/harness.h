/*
 * harness.h: what the hidden half of an exercise is written with.
 *
 * The hidden half defines check(). It calls what the reader has written, for several
 * sizes and data, and says what was expected. README.md beside this file shows how.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include "lesson.h"

/* This rank's number and how many there are; a communicator of all ranks and a
 * non-blocking stream. With `setup mpi` only MPI has been started, with `setup program`
 * nothing. */
extern int check_rank, check_nranks;
extern ncclComm_t check_comm;
extern cudaStream_t check_stream;

/* The exercise's own. With `setup program` it is called after the reader's main has
 * returned, and may be missing. */
void check(void);

/* Begins a case: what it is about, such as "5 elements, root 2". All that the last case
 * got from check_device and check_host is freed. */
void check_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* If `right` is false, this rank has failed in this case, and the text says why. The
 * first failure counts. Returns `right`. */
bool check_that(bool right, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What element i of this rank's data is, in this case: 1 to 97. Any rank can work out
 * what the others have. */
int check_data(int rank, size_t i);

/* Memory until the next case, of the device and of the host. */
void *check_device(size_t bytes);
void *check_host(size_t bytes);

/* Bytes to the device; and from there, after waiting for all that the device has to do.
 */
void check_put(void *device, const void *host, size_t bytes);
void check_get(void *host, const void *device, size_t bytes);

/* Whether count elements in host memory are what was expected; `what` is their name in
 * the task. check_buffer takes them from the device, after waiting for all that it has to
 * do. */
void check_elements(const char *what, const void *got, const void *expected, size_t count,
                    ncclDataType_t type);
void check_buffer(const char *what, const void *device, const void *expected,
                  size_t count, ncclDataType_t type);

/* A mistake that the next comparison can recognise: if all elements are these, its
 * message ends with the text, such as "This is the sum." */
void check_mistake(const char *text, const void *elements);

/* Whether times come from a modelled machine: the same digits everywhere. */
bool check_modelled(void);

/* Measures what the loop does, until the device has done it, on the slowest rank:
 *
 *     for (double seconds; check_measuring(&seconds);)
 *         step(...);
 *
 * and `seconds` is declared before where it is needed afterwards. On a modelled machine
 * it runs once, elsewhere several times, and the median counts. */
bool check_measuring(double *seconds);

/* Whether what took `yours` seconds took at most so many times as long as what it is
 * compared with, such as "in one piece". The reader sees these times, also when the
 * exercise is solved. */
void check_time(double yours, double most, double theirs, const char *what);

#endif
