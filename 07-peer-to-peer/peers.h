/*
 * peers.h: what the CUDA runtime says about this rank's GPU and that of each other rank.
 */
#ifndef PEERS_H
#define PEERS_H

#include "matrix.h"

/* The GPU of another rank, as this process sees it. */
struct peer {
    int device;    // its number here, or -1 if this process does not see it
    int reachable; // whether this rank's GPU can reach its memory
};

/* How all ranks know a GPU: its number may differ between processes, its place does not.
 */
struct place {
    char machine[MPI_MAX_PROCESSOR_NAME];
    char bus_id[32];
};

/* Fills in one peer, and describes it in `cell`.
 *   device  this rank's own GPU;  self  whether the peer is this rank */
static inline void ask_about(int device, bool near, bool self, const char *bus_id,
                             struct peer *peer, char cell[CELL]) {
    int rating, atomics;
    snprintf(cell, CELL, "%s", near ? "not seen" : "far away");
    peer->reachable = near; // if this process does not see the GPU, nobody can say
    if (!near || cudaDeviceGetByPCIBusId(&peer->device, bus_id) != cudaSuccess) {
        peer->device = -1;
        cudaGetLastError(); // this was only a question: forget the error
    }
    if (self && peer->device != device)
        lesson_fail("its own GPU is not where its PCI bus id says");
    if (peer->device == device)
        snprintf(cell, CELL, "%s", self ? "-" : "same GPU");
    if (peer->device < 0 || peer->device == device)
        return;
    CHECK_CUDA(cudaDeviceCanAccessPeer(&peer->reachable, device, peer->device));
    CHECK_CUDA(cudaDeviceGetP2PAttribute(&rating, cudaDevP2PAttrPerformanceRank, device,
                                         peer->device));
    CHECK_CUDA(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported,
                                         device, peer->device));
    snprintf(cell, CELL, "%s/%d/%s", peer->reachable ? "yes" : "no", rating,
             atomics ? "yes" : "no");
}

/* Fills in one peer for each rank, and prints the table of all pairs. All ranks call it.
 */
static inline void ask_runtime(int rank, int nranks, int device, struct peer *peers) {
    struct place mine = {.machine = ""}, places[nranks];
    char row[nranks][CELL];
    int length;
    CHECK_MPI(MPI_Get_processor_name(mine.machine, &length));
    CHECK_CUDA(cudaDeviceGetPCIBusId(mine.bus_id, sizeof mine.bus_id, device));
    CHECK_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, places, sizeof mine, MPI_BYTE,
                            MPI_COMM_WORLD));
    for (int to = 0; to < nranks; to++)
        ask_about(device, strcmp(places[to].machine, mine.machine) == 0, to == rank,
                  places[to].bus_id, &peers[to], row[to]);
    print_table("Peer access / performance rank / atomics", row, rank, nranks);
}

#endif
