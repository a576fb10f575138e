//: kind build
//: title One message to a node
//: trains an all-to-all over several nodes, as NCCL's PXN sends it
//: ranks 4
//: run 4 CPU_HOSTS=2
//: calls ncclSend<=6 ncclRecv<=6
//: only ncclSend ncclRecv
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter NCCL CHECK: memory
//: wrong not-collected s/stage \+ \(size_t\)\(m \* nlocal \+ i\)/stage + (size_t)(i * nnodes + m)/: of recvbuf is
//: wrong not-passed-on s/const float \*out = stage/const float *out = sendbuf/: of recvbuf is
//: learned Collected in the node, what goes to another node travels in one message per GPU, and pays the network's latency once.
//: why After the first step each GPU has what its whole node sends to the GPUs with its own number, ordered by node, so one message to each node is enough.
//: hint A GPU talks only to the GPUs with its own number on other nodes. So who in this node should get the block for GPU j of another
//:   node first?
//: hint GPU j of this node: in the first step, give each GPU j of the node all blocks for the GPUs with number j, of every node.
//:   How must they lie in `stage`, so that what goes to one node lies together?
//: hint stage + (m * nlocal + i) * count: the block from GPU i of this node for node m. The second step sends nlocal * count floats
//:   from stage + m * nlocal * count to node m, and receives as many into recvbuf + m * nlocal * count.
//: file

/*
 * An all-to-all over `nnodes` nodes of `nlocal` GPUs. Rank node * nlocal + local has a
 * block of `count` floats for each rank, in rank order in sendbuf, and gets one from
 * each, in rank order in recvbuf. `stage` has as much room.
 *
 * A GPU should send only one message to each node. This one is number `local` in
 * `inside`, which has the GPUs of its node, and number `node` in `across`, which has
 * those with the same local number, one of each node. A send to itself is allowed. Don't
 * wait.
 */
#include "lesson.h"

void all_to_all(const float *sendbuf, float *stage, float *recvbuf, size_t count,
                int nlocal, int nnodes, ncclComm_t inside, ncclComm_t across,
                cudaStream_t stream) {
    //: starter
    // First in the node, then between the nodes.
    //: solution
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < nlocal; i++)
        for (int m = 0; m < nnodes; m++) {
            CHECK_NCCL(ncclSend(sendbuf + (size_t)(m * nlocal + i) * count, count,
                                ncclFloat32, i, inside, stream));
            CHECK_NCCL(ncclRecv(stage + (size_t)(m * nlocal + i) * count, count,
                                ncclFloat32, i, inside, stream));
        }
    CHECK_NCCL(ncclGroupEnd());
    const float *out = stage;
    const size_t whole = (size_t)nlocal * count;
    CHECK_NCCL(ncclGroupStart());
    for (int m = 0; m < nnodes; m++) {
        CHECK_NCCL(
            ncclSend(out + (size_t)m * whole, whole, ncclFloat32, m, across, stream));
        CHECK_NCCL(
            ncclRecv(recvbuf + (size_t)m * whole, whole, ncclFloat32, m, across, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong block-by-block: calls ncclSend
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < nlocal; i++)
        for (int m = 0; m < nnodes; m++) {
            CHECK_NCCL(ncclSend(sendbuf + (size_t)(m * nlocal + i) * count, count,
                                ncclFloat32, i, inside, stream));
            CHECK_NCCL(ncclRecv(stage + (size_t)(m * nlocal + i) * count, count,
                                ncclFloat32, i, inside, stream));
        }
    CHECK_NCCL(ncclGroupEnd());
    CHECK_NCCL(ncclGroupStart());
    for (int m = 0; m < nnodes; m++)
        for (int i = 0; i < nlocal; i++) {
            const size_t at = (size_t)(m * nlocal + i) * count;
            CHECK_NCCL(ncclSend(stage + at, count, ncclFloat32, m, across, stream));
            CHECK_NCCL(ncclRecv(recvbuf + at, count, ncclFloat32, m, across, stream));
        }
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void all_to_all(const float *sendbuf, float *stage, float *recvbuf, size_t count,
                int nlocal, int nnodes, ncclComm_t inside, ncclComm_t across,
                cudaStream_t stream);

void check(void) {
    const int nnodes = 2, nlocal = check_nranks / nnodes;
    const int node = check_rank / nlocal, local = check_rank % nlocal;
    const size_t counts[] = {1, 5, 301};
    ncclComm_t inside, across;
    CHECK_NCCL(ncclCommSplit(check_comm, node, local, &inside, NULL));
    CHECK_NCCL(ncclCommSplit(check_comm, local, node, &across, NULL));
    for (int c = 0; c < 3; c++) {
        const size_t count = counts[c], all = count * (size_t)check_nranks;
        const size_t bytes = all * sizeof(float);
        check_case("%d nodes of %d GPUs, count %zu", nnodes, nlocal, count);
        float *sendbuf = check_device(bytes), *stage = check_device(bytes);
        float *recvbuf = check_device(bytes);
        float *mine = check_host(bytes), *expected = check_host(bytes);
        for (size_t r = 0; r < (size_t)check_nranks; r++)
            for (size_t i = 0; i < count; i++) {
                mine[r * count + i] = (float)check_data(check_rank, r * count + i);
                expected[r * count + i] =
                    (float)check_data((int)r, (size_t)check_rank * count + i);
            }
        check_put(sendbuf, mine, bytes);
        all_to_all(sendbuf, stage, recvbuf, count, nlocal, nnodes, inside, across,
                   check_stream);
        check_buffer("recvbuf", recvbuf, expected, all, ncclFloat32);
    }
    CHECK_NCCL(ncclCommDestroy(across));
    CHECK_NCCL(ncclCommDestroy(inside));
}
