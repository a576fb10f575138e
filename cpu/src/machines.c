/*
 * machines.c: the folder of the machines that the modelled clock knows, where the library
 * was built. In a file of its own, so that no other file differs from one folder to
 * another.
 */
#include "clock.h"

#ifndef CPU_MACHINES
#define CPU_MACHINES "cpu/machines"
#endif

const char *const machines_folder = CPU_MACHINES;
