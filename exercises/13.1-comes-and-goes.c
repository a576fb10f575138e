//: kind repair
//: title Since the load is uneven
//: trains an all-to-all of blocks of different sizes
//: ranks 2 3 | 1 4 7 8
//: calls ncclSend ncclRecv
//: starter NCCL CHECK: mismatch
//: wrong count-only s/to \+= in/to += out/: two calls of one group use the same memory
//: wrong offset-only s/to, in.peer./to, out[peer]/: NCCL CHECK:
//: wrong skip s/    for .int peer = 0; peer < nranks; peer\+\+. \{/    for (int peer = 0; peer < nranks; peer++) {\n        if (out[peer] == 0)\n            continue;/: NCCL CHECK:
//: wrong no-group s/    CHECK_NCCL.ncclGroup(Start|End)...;\n//g: a send to oneself
//: learned What a rank sends to a peer and what it gets from it are two numbers; only with an even load are they equal.
//: why Block sizes on the receiving side, counts and places alike, are those of in[].
//: hint The report names a send and its receive. Which of the two gives a wrong count?
//: hint How many tokens come from a peer? And where does the next peer's block begin?
//: hint Both lines about `to` need in[peer].
//: file

/*
 * "This all-to-all ran for weeks. Since the tokens are no longer spread evenly, it
 * fails."
 *
 * out[peer] tokens go to a rank, in[peer] come from it; a token is `width` floats. The
 * blocks follow one another in `from`, and should do so in `to`. Repair the function.
 */
#include "lesson.h"

void exchange(const float *from, const size_t *out, float *to, const size_t *in,
              size_t width, ncclComm_t comm, cudaStream_t stream) {
    int nranks;
    CHECK_NCCL(ncclCommCount(comm, &nranks));
    CHECK_NCCL(ncclGroupStart());
    for (int peer = 0; peer < nranks; peer++) {
        CHECK_NCCL(ncclSend(from, out[peer] * width, ncclFloat, peer, comm, stream));
        //: starter
        CHECK_NCCL(ncclRecv(to, out[peer] * width, ncclFloat, peer, comm, stream));
        from += out[peer] * width;
        to += out[peer] * width;
        //: solution
        CHECK_NCCL(ncclRecv(to, in[peer] * width, ncclFloat, peer, comm, stream));
        from += out[peer] * width;
        to += in[peer] * width;
        //: end
    }
    CHECK_NCCL(ncclGroupEnd());
}
//: check
void exchange(const float *from, const size_t *out, float *to, const size_t *in,
              size_t width, ncclComm_t comm, cudaStream_t stream);

static size_t tokens(int load, int from, int to) {
    return load == 0 ? 2 : (size_t)(from * 3 + to * 5 + load) % 4;
}

void check(void) {
    enum { MOST = 64, WIDTH = 3 };
    for (int load = 0; load < 4; load++) {
        check_case("%s load", load == 0 ? "an even" : "an uneven");
        size_t out[MOST], in[MOST], leave = 0, come = 0;
        for (int peer = 0; peer < check_nranks; peer++) {
            leave += out[peer] = tokens(load, check_rank, peer);
            come += in[peer] = tokens(load, peer, check_rank);
        }
        const size_t room = 4 * (size_t)check_nranks * WIDTH,
                     bytes = room * sizeof(float);
        float *from = check_device(bytes), *to = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        float *got = check_host(bytes);
        for (size_t i = 0; i < room; i++)
            expected[i] = -1;
        check_put(to, expected, bytes);
        for (size_t i = 0; i < leave * WIDTH; i++)
            mine[i] = (float)check_data(check_rank, i);
        check_put(from, mine, leave * WIDTH * sizeof(float));
        size_t next = 0;
        for (int peer = 0; peer < check_nranks; peer++) {
            size_t begin = 0;
            for (int before = 0; before < check_rank; before++)
                begin += tokens(load, peer, before);
            for (size_t i = 0; i < in[peer] * WIDTH; i++)
                expected[next++] = (float)check_data(peer, begin * WIDTH + i);
        }
        exchange(from, out, to, in, WIDTH, check_comm, check_stream);
        check_get(got, to, bytes);
        check_elements("to", got, expected, come * WIDTH, ncclFloat);
    }
}
