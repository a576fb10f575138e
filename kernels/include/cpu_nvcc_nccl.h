/* cpu_nvcc_nccl.h: what kernels may call of nccl_device.h. */
#ifndef CPU_NVCC_NCCL_H
#define CPU_NVCC_NCCL_H
#pragma GCC system_header

#include <cuda/atomic>

/* --- Teams ------------------------------------------------------------------------ */

struct ncclTeamTagWorld {};
struct ncclTeamTagLsa {};

CPU_DEVICE ncclTeam ncclTeamWorld(ncclDevComm const &comm) { return {comm.nRanks, comm.rank, 1}; }
CPU_DEVICE ncclTeam ncclTeamLsa(ncclDevComm const &comm) { return {comm.lsaSize, comm.lsaRank, 1}; }
CPU_DEVICE int ncclTeamRankToWorld(ncclDevComm const &comm, ncclTeam team, int rank) {
    return comm.rank + (rank - team.rank) * team.stride;
}
CPU_DEVICE int ncclTeamRankToLsa(ncclDevComm const &comm, ncclTeam team, int rank) {
    return comm.lsaRank + (rank - team.rank) * team.stride;
}

/* On the host. */
static inline ncclTeam ncclTeamLsa(ncclComm_t comm) {
    ncclCommProperties_t p = NCCL_COMM_PROPERTIES_INITIALIZER;
    ncclCommQueryProperties(comm, &p);
    const int size = p.nLsaTeams ? p.nRanks / p.nLsaTeams : 0;
    return {size, size ? p.rank % size : 0, 1};
}

/* --- Windows ---------------------------------------------------------------------- */

CPU_DEVICE void *ncclGetLsaPointer(ncclWindow_t window, size_t offset, int peer) {
    return window->lsaParts[peer] + offset;
}
CPU_DEVICE void *ncclGetLocalPointer(ncclWindow_t window, size_t offset) {
    return ncclGetLsaPointer(window, offset, window->lsaRank);
}
CPU_DEVICE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, int peer) {
    return ncclGetLsaPointer(window, offset, window->lsaRank + peer - window->worldRank);
}
CPU_DEVICE void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, ncclTeam team, int peer) {
    return ncclGetLsaPointer(window, offset, window->lsaRank + (peer - team.rank) * team.stride);
}

/* --- Barriers --------------------------------------------------------------------- */

struct ncclCoopCta { // all threads of a block
    __device__ int thread_rank() const { return (int)__cpu_thread(); }
    __device__ int size() const { return (int)__cpu_threads(); }
    __device__ int num_threads() const { return size(); }
    __device__ void sync() { __syncthreads(); }
};

extern "C" __device__ void __kernel_no_barrier(unsigned number, unsigned barriers);

/* In the resource window of each rank: for each barrier how often it was passed; then for
 * each barrier and rank how often that rank has arrived. */
template <class Coop> struct ncclLsaBarrierSession {
    static_assert(std::is_same<Coop, ncclCoopCta>::value, "CPU build: a barrier session is of a block, ncclCoopCta");

    __device__ ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeam team, ncclLsaBarrierHandle handle,
                                     unsigned index, bool multimem = false)
        : window(comm.resourceWindow), team(team), lsa(comm.lsaRank - team.rank),
          inboxes(handle.nBarriers + index * comm.lsaSize), index(index) {
        (void)coop, (void)multimem;
        if (index >= (unsigned)handle.nBarriers)
            __kernel_no_barrier(index, (unsigned)handle.nBarriers);
        epoch = *place(team.rank, index);
    }
    __device__ ncclLsaBarrierSession(Coop coop, ncclDevComm const &comm, ncclTeamTagLsa, unsigned index,
                                     bool multimem = false)
        : ncclLsaBarrierSession(coop, comm, ncclTeamLsa(comm), comm.lsaBarrier, index, multimem) {}
    __device__ ~ncclLsaBarrierSession() {
        if (__cpu_thread() == 0)
            *place(team.rank, index) = epoch;
        __kernel_wait(1, 3);
    }
    ncclLsaBarrierSession(ncclLsaBarrierSession const &) = delete;

    /* The block has come so far, and the others are told. */
    __device__ void arrive(Coop, cuda::memory_order) {
        __kernel_wait(1, 1);
        if (__cpu_thread() == 0)
            for (int r = 0; r < team.nRanks; r++)
                __atomic_store_n(place(r, inboxes + lsa + team.rank), epoch + 1, __ATOMIC_RELEASE);
    }
    /* Until the others' blocks have come so far. One thread looks; while it rests, other
     * work of this process goes on. */
    __device__ void wait(Coop, cuda::memory_order) {
        if (__cpu_thread() == 0)
            for (int r = 0; r < team.nRanks; r++)
                while ((int)(__atomic_load_n(place(team.rank, inboxes + lsa + r), __ATOMIC_ACQUIRE) - (epoch + 1)) < 0)
                    __kernel_wait(3, 0);
        epoch++;
        __kernel_wait(1, 2);
    }
    __device__ void sync(Coop coop, cuda::memory_order order) {
        arrive(coop, order);
        wait(coop, order);
    }

  private:
    ncclWindow_t window;
    ncclTeam team;
    int lsa; // the first rank of the team, in the LSA team
    unsigned inboxes, index, epoch;

    __device__ unsigned *place(int rank, unsigned number) const {
        return (unsigned *)ncclGetLsaPointer(window, 0, lsa + rank) + number;
    }
};

/* --- What is not there ------------------------------------------------------------ */

#define CPU_NO_COOP CPU_NVCC_REFUSED("CPU build: of ncclCoop… only ncclCoopCta is there")

/* ncclDevCommCreate refuses GIN and multimem; programs that can do without may have
 * kernels with them. */
CPU_DEVICE void *ncclGetLsaMultimemPointer(ncclWindow_t, size_t, ncclDevComm const &) {
    assert(!"CPU build: multimem is not there; ncclGetLsaPointer is");
    return nullptr;
}
#define ncclGetMultimemPointer ncclGetLsaMultimemPointer
#define CPU_NO_GIN(type, name)                                       \
    template <class... A> __device__ type name(A &&...) {            \
        assert(!"CPU build: GIN (ncclGin...) is not there; LSA is"); \
        return type();                                               \
    }
struct ncclGin {
    template <class... A> __device__ ncclGin(A &&...) {}
    CPU_NO_GIN(void, put)
    CPU_NO_GIN(void, putValue)
    CPU_NO_GIN(void, signal)
    CPU_NO_GIN(void, flush)
    CPU_NO_GIN(void, waitSignal)
    CPU_NO_GIN(uint64_t, readSignal)
};
enum class ncclGinFenceLevel { None, Relaxed };
struct ncclGin_SignalInc {
    unsigned signal;
};
template <class Coop> struct ncclBarrierSession {
    template <class... A> __device__ ncclBarrierSession(A &&...) {}
    CPU_NO_GIN(void, sync)
};
#undef CPU_NO_GIN
#define ncclGinBarrierSession ncclBarrierSession
#define ncclCoopThread CPU_NO_COOP
#define ncclCoopWarp CPU_NO_COOP
#define ncclCoopTile CPU_NO_COOP
#define ncclCoopLanes CPU_NO_COOP
#define ncclCoopWarpSpan CPU_NO_COOP
#define ncclSymPtr CPU_NVCC_REFUSED("CPU build: ncclSymPtr is not there; ncclGetLsaPointer is")
#define ncclLLA2ASession CPU_NVCC_REFUSED("CPU build: ncclLLA2ASession is not there")

#endif
