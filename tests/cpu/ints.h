/* Arrays of int in device memory, for the tests that ask where and when, not with which
 * type. */
#ifndef INTS_H
#define INTS_H

#include "tap.h"

/* Element i of what rank r holds under a tag: different for different messages. */
static inline int value_of(int r, int tag, size_t i) {
    return r * 1000003 + tag * 4099 + (int)(i % 4093);
}

static inline int *new_ints(size_t n) {
    void *device = NULL;
    if (cudaMalloc(&device, (n ? n : 1) * sizeof(int)) != cudaSuccess) {
        bail("cudaMalloc of %zu ints failed", n);
    }
    return device;
}

/* Moves n ints of the host to device memory, and frees them there. */
static inline void move_ints(int *device, int *host, size_t n) {
    CUDA(cudaMemcpy(device, host, n * sizeof(int), cudaMemcpyHostToDevice));
    CUDA(cudaStreamSynchronize(0)); // until the data is there
    free(host);
}

/* Puts a constant into all n elements. */
static inline void set_ints(int *device, size_t n, int value) {
    int *host = malloc((n ? n : 1) * sizeof(int));
    for (size_t i = 0; i < n; i++) {
        host[i] = value;
    }
    move_ints(device, host, n);
}

/* Puts the message that rank r sends under the tag into device memory. */
static inline void set_message(int *device, size_t n, int r, int tag) {
    int *host = malloc((n ? n : 1) * sizeof(int));
    for (size_t i = 0; i < n; i++) {
        host[i] = value_of(r, tag, i);
    }
    move_ints(device, host, n);
}

static inline bool expect_message(const int *device, size_t n, int r, int tag,
                                  const char *what) {
    int *host = malloc((n ? n : 1) * sizeof(int));
    CUDA(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = true;
    for (size_t i = 0; i < n && right; i++) {
        right =
            expect(host[i] == value_of(r, tag, i), "%s: element %zu is %d, expected %d",
                   what, i, host[i], value_of(r, tag, i));
    }
    free(host);
    return right;
}

static inline bool expect_all(const int *host, size_t n, int value, const char *what) {
    for (size_t i = 0; i < n; i++) {
        if (host[i] != value) {
            return expect(false, "%s: element %zu is %d, expected %d", what, i, host[i],
                          value);
        }
    }
    return true;
}

/* The caller has synchronised; all n elements must have the value. */
static inline bool expect_ints(const int *device, size_t n, int value, const char *what) {
    int *host = malloc((n ? n : 1) * sizeof(int));
    CUDA(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = expect_all(host, n, value, what);
    free(host);
    return right;
}

#endif
