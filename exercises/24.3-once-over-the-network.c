//: kind complete
//: title Once over the network
//: trains a broadcast in two steps: between the nodes, then in each node
//: ranks 4 6 | 1 2 3 8
//: run 6 CPU_HOSTS=2
//: calls ncclBroadcast<=2
//: only ncclBroadcast
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of buf is …, expected
//: wrong all-across s/if \(across\)//: comm is NULL
//: wrong not-inside s/    CHECK_NCCL\(\s*ncclBroadcast\([^;]*inside[^;]*;//: of buf is
//: wrong inside-0 s/root_local, inside/0, inside/: of buf is
//: wrong across-0 s/root_node, across/0, across/: of buf is
//: learned In two steps the data crosses the network once for each node, whatever the number of GPUs there.
//: why Only the ranks with the root's local number take part in the first step, so each node gets the data once; the second step stays in the node.
//: hint Which ranks need the data from the network, if a node's own links carry it to the rest?
//: hint First the ranks that have `across`: the root there is number root_node. Then all ranks of each node: who has the data now?
//: hint if (across) ncclBroadcast(…, root_node, across, …); then ncclBroadcast(…, root_local, inside, …).
//: file

/*
 * Broadcast `buf` to all ranks of all nodes, so that it is sent to each node only once.
 *
 * The root is on node `root_node`, and has the number `root_local` among the ranks of
 * that node. `inside` is the communicator of this rank's node. `across` has one rank of
 * each node, in the order of the nodes: those with the number `root_local` in their node.
 * On all other ranks it is NULL, as ncclCommSplit gives it for NCCL_SPLIT_NOCOLOR. Don't
 * wait.
 */
#include "lesson.h"

void broadcast(int *buf, size_t count, int root_node, int root_local, ncclComm_t inside,
               ncclComm_t across, cudaStream_t stream) {
    //: starter
    // Your two calls.
    //: solution
    if (across)
        CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root_node, across, stream));
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root_local, inside, stream));
    //: wrong inside-first: of buf is
    CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root_local, inside, stream));
    if (across)
        CHECK_NCCL(ncclBroadcast(buf, buf, count, ncclInt32, root_node, across, stream));
    //: end
}
//: check
void broadcast(int *buf, size_t count, int root_node, int root_local, ncclComm_t inside,
               ncclComm_t across, cudaStream_t stream);

void check(void) {
    const int nnodes = check_nranks % 2 ? 1 : 2, nlocal = check_nranks / nnodes;
    const int node = check_rank / nlocal, local = check_rank % nlocal;
    const size_t counts[] = {1, 6, 1001};
    ncclComm_t inside, across;
    CHECK_NCCL(ncclCommSplit(check_comm, node, local, &inside, NULL));
    for (int root = 0; root < check_nranks; root++) {
        const int root_node = root / nlocal, root_local = root % nlocal;
        const size_t count = counts[root % 3], bytes = count * sizeof(int);
        check_case("%d nodes of %d ranks, root %d, count %zu", nnodes, nlocal, root,
                   count);
        CHECK_NCCL(ncclCommSplit(check_comm, local == root_local ? 0 : NCCL_SPLIT_NOCOLOR,
                                 node, &across, NULL));
        int *buf = check_device(bytes), *mine = check_host(bytes);
        int *expected = check_host(bytes);
        for (size_t i = 0; i < count; i++) {
            mine[i] = (int)check_data(check_rank, i);
            expected[i] = (int)check_data(root, i);
        }
        check_put(buf, mine, bytes);
        broadcast(buf, count, root_node, root_local, inside, across, check_stream);
        check_buffer("buf", buf, expected, count, ncclInt32);
        if (across)
            CHECK_NCCL(ncclCommDestroy(across));
    }
    CHECK_NCCL(ncclCommDestroy(inside));
}
