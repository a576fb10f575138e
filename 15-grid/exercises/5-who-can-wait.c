// 15.5 Who can wait? (fast)
// make exercise N=15.5

/*
 * The backward pass in a grid of ranks. compute(l) makes a layer's gradient, and the
 * numbers that the next product takes. A rank of a row has only a part of each of these
 * numbers, so add_in_row(l) sums them over the row. average_in_column(l) averages the
 * gradient over the column, for the update.
 *
 * Everything waits for everything here. Make it fast: it may take at most 1.1 times as
 * long as the products and the sums of the rows alone. There is a second stream, and
 * there are two events. The caller waits for `computing`.
 */
#include "lesson.h"

/* Each queues its work for layer l. update() takes the gradients of all layers. */
void compute(int l, cudaStream_t stream);
void add_in_row(int l, cudaStream_t stream);
void average_in_column(int l, cudaStream_t stream);
void update(cudaStream_t stream);

void backward(int layers, cudaStream_t computing, cudaStream_t sending,
              const cudaEvent_t *event) {
    for (int l = layers - 1; l >= 0; l--) {
        compute(l, computing);
        average_in_column(l, computing);
        add_in_row(l, computing);
    }
    update(computing);
}
