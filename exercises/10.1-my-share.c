//: kind complete
//: title My share of the batch
//: trains which samples a rank takes in a step
//: ranks 2 3 | 1 4 7 8
//: calls cudaMemcpyAsync=1
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of samples is
//: wrong same-every-step s/step \* batch \+ //: This is this rank's share of step 0.
//: wrong same-on-every-rank s/ \+ \(size_t\)rank \* share//: These are the samples of rank 0.
//: wrong batch-of-each-rank s/step \* batch \+/step * batch * (size_t)nranks +/: if every rank took
//: wrong bytes-forgotten s/share \* width \* sizeof\(float\)/share * width/: cudaMemcpyAsync counts bytes
//: wrong step-of-a-share s/step \* batch \+/step * share +/: but all ranks together take `batch`
//: wrong width-forgotten s/data \+ first \* width/data + first/: a pointer to floats counts floats
//: learned All ranks together take one batch a step: rank r's share begins at step x batch + r x share.
//: why The batches follow one another in the data, and the shares follow one another in a batch.
//: hint How many samples does one rank take in a step? How many do all ranks take together?
//: hint The batch of step s begins at sample s * batch. Which samples of it belong to the ranks before this one?
//: hint first = step * batch + rank * share, with share = batch / nranks. A sample has `width` floats.
//: file

/*
 * `data` is in the host's memory: all samples, one after another, `width` floats each.
 * In each step, numbered from 0, all ranks together take the next `batch` samples, and
 * each rank takes the share with its number. The number of ranks divides `batch`.
 *
 * Copy this rank's share of this step to `samples` in the GPU's memory, with one
 * cudaMemcpyAsync. Don't wait: the caller does.
 */
#include "lesson.h"

void load(const float *data, size_t width, float *samples, size_t step, size_t batch,
          int rank, int nranks, cudaStream_t stream) {
    //: starter
    // Your code.
    //: solution
    const size_t share = batch / (size_t)nranks;
    const size_t first = step * batch + (size_t)rank * share;
    CHECK_CUDA(cudaMemcpyAsync(samples, data + first * width,
                               share * width * sizeof(float), cudaMemcpyHostToDevice,
                               stream));
    //: end
}
//: check
void load(const float *data, size_t width, float *samples, size_t step, size_t batch,
          int rank, int nranks, cudaStream_t stream);

enum { STEPS = 3, WIDTH = 5 };

void check(void) {
    const size_t shares[] = {4, 1, 7};
    for (int c = 0; c < 3; c++) {
        const size_t share = shares[c], batch = share * (size_t)check_nranks;
        const size_t all = STEPS * batch * WIDTH, mine = share * WIDTH;
        // Steps in a different order than 0, 1, 2, as after a restart.
        const size_t step = (size_t)(c + 1) % STEPS;
        check_case("step %zu, %zu samples for each rank", step, share);
        // Larger than it need be: whoever reads further finds something else.
        const size_t room = (size_t)(check_nranks + 1) * all;
        float *data = check_host(room * sizeof *data);
        for (size_t i = 0; i < room; i++)
            data[i] = (float)check_data(0, i);
        float *samples = check_device(mine * sizeof *samples);
        float *none = check_host(mine * sizeof *none);
        memset(none, 0, mine * sizeof *none);
        check_put(samples, none, mine * sizeof *none);
        const float *expected = data + step * batch * WIDTH + (size_t)check_rank * mine;
        check_mistake("These are the samples of rank 0.", data + step * batch * WIDTH);
        check_mistake("This is this rank's share of step 0.",
                      data + (size_t)check_rank * mine);
        check_mistake(
            "Here a step moves on by `share` samples, but all ranks together take `batch`.",
            data + (step + (size_t)check_rank) * mine);
        memcpy(none, expected, mine); // as many bytes as there are floats
        check_mistake("Only the first part has come: cudaMemcpyAsync counts bytes.",
                      none);
        check_mistake("So it would be if every rank took `batch` samples a step.",
                      data + (step * batch * (size_t)check_nranks) * WIDTH +
                          (size_t)check_rank * mine);
        check_mistake(
            "A sample has `width` floats, and a pointer to floats counts floats.",
            data + step * batch + (size_t)check_rank * share);
        load(data, WIDTH, samples, step, batch, check_rank, check_nranks, check_stream);
        check_buffer("samples", samples, expected, mine, ncclFloat32);
    }
}
