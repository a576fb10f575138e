//: kind build
//: title Two nodes and a slow network
//: trains an all-reduce in three steps, of which one crosses the network
//: clock h200
//: ranks 2
//: run 4 CPU_HOSTS=2
//: run 6 CPU_HOSTS=2
//: only ncclReduceScatter ncclAllReduce ncclAllGather
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter of buf is
//: wrong node-only s/CHECK_NCCL\(\s*ncclAllReduce[^;]*;//: This is the sum of this node's ranks.
//: wrong all-of-it s/ncclAllReduce\(mine, mine, part,/ncclAllReduce(buf, buf, count,/: it takes … times
//: wrong not-back s/CHECK_NCCL\(ncclAllGather[^;]*;//: of buf is
//: wrong rank-of-all s/float \*mine = [^;]*;/int rank;\nCHECK_NCCL(ncclCommUserRank(across, &rank));\nfloat *mine = buf + (size_t)rank * part;/: NCCL CHECK:
//: learned If the GPUs of a node share the work, each of them sends only its part of the buffer over the network.
//: why After the reduce-scatter each rank of a node has one part, its partner on the other node has the same part, and the all-gather stays in the node.
//: hint Which of the two communicators can bring a rank the numbers of the other node? How many of them need to travel there, if
//:   the ranks of a node share the work?
//: hint Lesson 08's two halves, within the node: reduce-scatter at the beginning, all-gather at the end. What is missing
//:   between them?
//: hint part = count / local_n; mine = buf + local_rank * part; ncclReduceScatter(buf, mine, part, …, node), ncclAllReduce(mine, mine,
//:   part, …, across), ncclAllGather(mine, buf, part, …, node).
//: file

/*
 * Two nodes have the same number of GPUs each. Give every rank the sum of the `buf`s
 * of all ranks of both nodes, in place, with little traffic between the nodes: of each
 * rank's buffer, only one part of `count` / (ranks of the node) elements should go there.
 *
 * `node` is the communicator of this rank's node, which has `local_n` ranks; this rank
 * has the number `local_rank` there. `across` has two ranks: this one, and the one with
 * the same number on the other node. `local_n` divides `count`. Don't wait.
 */
#include "lesson.h"

void sum_of_both(float *buf, size_t count, ncclComm_t node, int local_rank, int local_n,
                 ncclComm_t across, cudaStream_t stream) {
    //: starter
    // Your three calls.
    //: solution
    const size_t part = count / (size_t)local_n;
    float *mine = buf + (size_t)local_rank * part;
    CHECK_NCCL(ncclReduceScatter(buf, mine, part, ncclFloat32, ncclSum, node, stream));
    CHECK_NCCL(ncclAllReduce(mine, mine, part, ncclFloat32, ncclSum, across, stream));
    CHECK_NCCL(ncclAllGather(mine, buf, part, ncclFloat32, node, stream));
    //: wrong whole-buffer-crosses: it takes … times
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, node, stream));
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclSum, across, stream));
    //: end
}
//: check
void sum_of_both(float *buf, size_t count, ncclComm_t node, int local_rank, int local_n,
                 ncclComm_t across, cudaStream_t stream);

static void whole(float *buf, size_t count, ncclComm_t node, ncclComm_t across) {
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, node, check_stream));
    CHECK_NCCL(
        ncclAllReduce(buf, buf, count, ncclFloat32, ncclMax, across, check_stream));
}

void check(void) {
    const int local_n = check_nranks / 2, local_rank = check_rank % local_n;
    const int host = check_rank / local_n;
    const size_t parts[] = {5, 1, 350000};
    ncclComm_t node, across;
    CHECK_NCCL(ncclCommSplit(check_comm, host, check_rank, &node, NULL));
    CHECK_NCCL(ncclCommSplit(check_comm, local_rank, check_rank, &across, NULL));
    double theirs = 0, yours = 0;
    for (int c = 0; c < 3; c++) {
        const size_t count = parts[c] * (size_t)local_n, bytes = count * sizeof(float);
        check_case("%d + %d ranks, %zu elements", local_n, local_n, count);
        float *buf = check_device(bytes), *other = check_device(bytes);
        float *mine = check_host(bytes), *here = check_host(bytes);
        float *expected = check_host(bytes);
        memset(expected, 0, bytes);
        memset(here, 0, bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (float)check_data(check_rank, i);
            for (int r = 0; r < check_nranks; r++) {
                expected[i] += (float)check_data(r, i);
                here[i] += r / local_n == host ? (float)check_data(r, i) : 0;
            }
        }
        check_put(buf, mine, bytes);
        check_put(other, mine, bytes);
        check_mistake("This is the sum of this node's ranks.", here);
        sum_of_both(buf, count, node, local_rank, local_n, across, check_stream);
        check_buffer("buf", buf, expected, count, ncclFloat32);
        while (check_measuring(&theirs))
            whole(other, count, node, across);
        while (check_measuring(&yours))
            sum_of_both(other, count, node, local_rank, local_n, across, check_stream);
    }
    // The last case is large enough for the bytes on the network to count.
    check_that(
        !check_modelled() || local_n == 1 || yours <= 0.9 * theirs,
        "it takes %.0f µs, and with the whole buffer on the network %.0f µs: "
        "%.2f times. Which part of the sum does each rank need from the other node?",
        yours * 1e6, theirs * 1e6, yours / theirs);
    CHECK_NCCL(ncclCommDestroy(across));
    CHECK_NCCL(ncclCommDestroy(node));
}
