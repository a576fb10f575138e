//: kind build
//: title A gather of uneven parts
//: instead in the order of the ranks and => in the opposite order of the ranks and ; count[0] + … + count[r - 1] elements => count[r + 1] + … + count[nranks - 1] elements ; int peer = 0; peer < nranks; all += count[peer++] => int peer = nranks - 1; peer >= 0; all += count[peer--] ; size_t r = 0, at = 0; r < (size_t)check_nranks; at += count[r++] => size_t r = (size_t)check_nranks, at = 0; r-- > 0; at += count[r]
//: trains sends and receives with counts of their own
//: ranks 2 3 | 1 4 7 8
//: only ncclSend ncclRecv
//: no cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize
//: starter element 0 of all is 0, expected
//: learned A loop of receives on one rank and a send on each is a gather, with any counts.
//: why Each part begins where the parts of the ranks before it end; the root's own part is sent to itself or copied.
//: hint Who sends, and to whom? Who receives, how often, and to which places?
//: hint The part of rank r begins after count[0] + … + count[r - 1] elements. The root has a part, too.
//: hint In a group: every rank sends its part to the root; the root, in a loop that adds up the counts, receives from
//:   every rank, also from itself.
//: file

/*
 * Gather: rank r has count[r] floats in `part`, and every rank knows all counts. Bring
 * them to rank `root`, into `all`, in the order of the ranks and without gaps. On the
 * other ranks `all` is NULL. Some counts may be 0.
 *
 * Use sends and receives of NCCL, on `stream`. Don't wait: the caller does.
 */
#include "lesson.h"

void gather(const float *part, float *all, const size_t *count, int root, int rank,
            int nranks, ncclComm_t comm, cudaStream_t stream) {
    //: starter
    // Yours: about ten lines.
    //: solution
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    if (rank == root) {
        for (int peer = 0; peer < nranks; all += count[peer++])
            CHECK_NCCL(ncclRecv(all, count[peer], ncclFloat32, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong even-places: NCCL CHECK: race: two calls of one group
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    if (rank == root) {
        for (int peer = 0; peer < nranks; peer++)
            CHECK_NCCL(ncclRecv(all + (size_t)peer * count[0], count[peer], ncclFloat32,
                                peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong own-count: NCCL CHECK: mismatch
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    if (rank == root) {
        for (int peer = 0; peer < nranks; all += count[peer++])
            CHECK_NCCL(ncclRecv(all, count[rank], ncclFloat32, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong no-group: invalid usage
    CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    if (rank == root) {
        for (int peer = 0; peer < nranks; all += count[peer++])
            CHECK_NCCL(ncclRecv(all, count[peer], ncclFloat32, peer, comm, stream));
    }
    //: wrong without-own: of all is 0, expected
    CHECK_NCCL(ncclGroupStart());
    if (rank != root)
        CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    for (int peer = 0; rank == root && peer < nranks; all += count[peer++]) {
        if (peer != root)
            CHECK_NCCL(ncclRecv(all, count[peer], ncclFloat32, peer, comm, stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    //: wrong root-forgets-to-send: a receive from oneself, without the other half
    CHECK_NCCL(ncclGroupStart());
    if (rank != root)
        CHECK_NCCL(ncclSend(part, count[rank], ncclFloat32, root, comm, stream));
    for (int peer = 0; rank == root && peer < nranks; all += count[peer++])
        CHECK_NCCL(ncclRecv(all, count[peer], ncclFloat32, peer, comm, stream));
    CHECK_NCCL(ncclGroupEnd());
    //: end
}
//: check
void gather(const float *part, float *all, const size_t *count, int root, int rank,
            int nranks, ncclComm_t comm, cudaStream_t stream);

void check(void) {
    for (int c = 0; c < 3; c++) {
        const int root = c == 0 ? 0 : c == 1 ? check_nranks - 1 : check_nranks / 2;
        check_case("root %d", root);
        size_t count[check_nranks], total = 0;
        for (int r = 0; r < check_nranks; r++) {
            count[r] = c == 1 ? (size_t)((r + 1) % 2 * 5) : (size_t)(3 + 2 * r + 40 * c);
            total += count[r];
        }
        float *part = check_device(count[check_rank] * sizeof *part);
        float *mine = check_host(count[check_rank] * sizeof *mine), *all = NULL;
        for (size_t i = 0; i < count[check_rank]; i++)
            mine[i] = (float)check_data(check_rank, i);
        check_put(part, mine, count[check_rank] * sizeof *mine);
        float *expected = check_host(total * sizeof *expected);
        if (check_rank == root) {
            all = check_device(total * sizeof *all);
            check_put(all, memset(expected, 0, total * sizeof *all), total * sizeof *all);
        }
        gather(part, all, count, root, check_rank, check_nranks, check_comm,
               check_stream);
        if (check_rank != root)
            continue;
        for (size_t r = 0, at = 0; r < (size_t)check_nranks; at += count[r++])
            for (size_t i = 0; i < count[r]; i++)
                expected[at + i] = (float)check_data((int)r, i);
        check_buffer("all", all, expected, total, ncclFloat32);
    }
}
