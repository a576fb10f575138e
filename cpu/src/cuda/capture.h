/* capture.h: what is queued on streams that are being captured. */
#ifndef CPU_CAPTURE_H
#define CPU_CAPTURE_H

#include "cuda/queue.h"

/* Nodes, by their numbers: what a stream's next operation comes after. */
struct point {
    int *nodes;
    int n;
};
void point_add(struct point *point, const struct point *more);

struct node {
    struct op *op;
    struct point after;
    int device;
};

struct nodes { // in an order in which they may be done
    struct node *all;
    int n;
};
void nodes_free(struct nodes *nodes);

cudaError_t capture_begin(struct stream *stream, enum cudaStreamCaptureMode mode);
/* Gives the nodes away if it ended well. */
cudaError_t capture_end(struct stream *stream, struct nodes *out);
bool capture_spoilt(const struct stream *stream);
/* The program did what is not allowed while this stream is captured. */
void capture_spoil(struct stream *stream);

void capture_spoil_number(uint64_t number);
/* What asking for an event that capture `number` recorded last returns; 0: none did. Once
 * the capture is over, or broken off, it is another code (seen on an H200, CUDA 13.0). */
cudaError_t capture_ask(uint64_t number);

uint64_t capture_number(const struct stream *stream); // of its capture; 0: none
const struct point *capture_point(const struct stream *stream);
/* `stream` comes after `point` of the capture with this number. */
cudaError_t capture_wait(struct stream *stream, uint64_t number,
                         const struct point *point);
/* Whether a call that may wait, ask how far something is, or allocate, is forbidden by
 * some capture; spoils it. Which calls these are was seen on an H200. CUDA Runtime API,
 * cudaStreamBeginCapture. */
bool capture_forbids(void);
/* Whether the default stream would have to wait for a stream that is captured. */
bool capture_in_the_way(const struct stream *stream);

/* What is queued on `stream` from now on comes after all that is queued on `other`. Both
 * are captured, or neither. */
cudaError_t stream_join(struct stream *stream, struct stream *other);

/* What stands in the way of any use of the stream; NULL is no stream. */
cudaError_t stream_in_use(const struct stream *stream);

#endif
