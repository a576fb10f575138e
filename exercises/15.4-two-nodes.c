//: kind build
//: title An all-reduce over two nodes
//: trains a hierarchical all-reduce: in the node, between the nodes, in the node
//: ranks 4 6 | 2 8
//: calls ncclReduceScatter=1 ncclAllReduce=1 ncclAllGather=1
//: only ncclReduceScatter ncclAllReduce ncclAllGather
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter It is as it was
//: wrong mean s/ncclSum, between/ncclAvg, between/: This is the mean of the two nodes
//: wrong no-between s/    CHECK_NCCL.ncclAllReduce.*?;\n//s: This is the sum of this node alone
//: wrong no-gather s/    CHECK_NCCL.ncclAllGather.*?;\n//s: Only this GPU's part is right
//: learned Between the nodes only a part travels per GPU: the node's fast links do the rest.
//: why After the reduce-scatter each GPU has the node's sum of its part, so it only needs its counterpart in the other node.
//: hint Between the nodes, a GPU should send as little as it can: an N-th of the buffer, where N is the number of GPUs in a node.
//: hint First a reduce-scatter in the node, so that each GPU has the node's sum of one part. What then?
//: hint ncclReduceScatter in the node, ncclAllReduce of the part between the nodes, ncclAllGather
//:   in the node. In place, a GPU's part lies at buf + gpu * count.
//: file

/*
 * Sum `buf` over all GPUs of two nodes, in place. Between the nodes the links are slow,
 * so a GPU may send only its part of the buffer there.
 *
 * in_node has the `ngpus` GPUs of this node, and this one is number `gpu` there.
 * between has this GPU and the one with the same number in the other node. The buffer has
 * ngpus * count floats. Don't wait: the caller does.
 */
#include "lesson.h"

void all_reduce(float *buf, size_t count, int gpu, int ngpus, ncclComm_t in_node,
                ncclComm_t between, cudaStream_t stream) {
    //: starter
    // Your three calls.
    //: solution
    float *part = buf + (size_t)gpu * count; // this GPU's
    CHECK_NCCL(ncclReduceScatter(buf, part, count, ncclFloat, ncclSum, in_node, stream));
    CHECK_NCCL(ncclAllReduce(part, part, count, ncclFloat, ncclSum, between, stream));
    CHECK_NCCL(ncclAllGather(part, buf, count, ncclFloat, in_node, stream));
    //: wrong two-all-reduces: does not call ncclReduceScatter
    const size_t all = count * (size_t)ngpus;
    CHECK_NCCL(ncclAllReduce(buf, buf, all, ncclFloat, ncclSum, in_node, stream));
    CHECK_NCCL(ncclAllReduce(buf, buf, all, ncclFloat, ncclSum, between, stream));
    //: wrong part-0: the buffers of ncclReduceScatter overlap
    CHECK_NCCL(ncclReduceScatter(buf, buf, count, ncclFloat, ncclSum, in_node, stream));
    CHECK_NCCL(ncclAllReduce(buf, buf, count, ncclFloat, ncclSum, between, stream));
    CHECK_NCCL(ncclAllGather(buf, buf, count, ncclFloat, in_node, stream));
    //: end
}
//: check
void all_reduce(float *buf, size_t count, int gpu, int ngpus, ncclComm_t in_node,
                ncclComm_t between, cudaStream_t stream);

void check(void) {
    const int ngpus = check_nranks / 2, node = check_rank / ngpus;
    const int gpu = check_rank % ngpus;
    ncclComm_t in_node, between;
    CHECK_NCCL(ncclCommSplit(check_comm, node, gpu, &in_node, NULL));
    CHECK_NCCL(ncclCommSplit(check_comm, gpu, node, &between, NULL));
    const size_t counts[] = {2, 1, 301};
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], all = count * (size_t)ngpus;
        const size_t bytes = all * sizeof(float);
        check_case("2 nodes, %d GPUs each, parts of %zu", ngpus, count);
        float *buf = check_device(bytes), *mine = check_host(bytes);
        float *of_node = check_host(bytes), *expected = check_host(bytes);
        for (size_t i = 0; i < all; i++) {
            mine[i] = (float)check_data(check_rank, i);
            of_node[i] = expected[i] = 0;
            for (int rank = 0; rank < check_nranks; rank++) {
                expected[i] += (float)check_data(rank, i);
                if (rank / ngpus == node)
                    of_node[i] += (float)check_data(rank, i);
            }
        }
        float *mean = check_host(bytes), *only_part = check_host(bytes);
        for (size_t i = 0; i < all; i++) {
            mean[i] = expected[i] / 2;
            only_part[i] = i / count == (size_t)gpu ? expected[i] : mine[i];
        }
        check_put(buf, mine, bytes);
        all_reduce(buf, count, gpu, ngpus, in_node, between, check_stream);
        check_mistake("It is as it was: nothing has been added.", mine);
        check_mistake("Only this GPU's part is right.", only_part);
        check_mistake("This is the mean of the two nodes' sums.", mean);
        check_mistake("This is the sum of this node alone.", of_node);
        check_buffer("buf", buf, expected, all, ncclFloat);
    }
    CHECK_NCCL(ncclCommDestroy(between));
    CHECK_NCCL(ncclCommDestroy(in_node));
}
