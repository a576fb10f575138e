/* mpi_time.h: how MPI's calls bring the modelled times of the ranks' hosts together. */
#ifndef CPU_MPI_TIME_H
#define CPU_MPI_TIME_H

void mpi_time_open(void); // MPI is there; all ranks of MPI_COMM_WORLD call it
void mpi_time_close(void);

#endif
