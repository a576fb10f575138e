/*
 * machines.c: where the machines lie that the modelled clock knows: in the course, or
 * where `make install` has put them. In a file of its own, so that no other file differs
 * from one folder to another.
 */
#include "clock.h"

#include <unistd.h>

#ifndef CPU_MACHINES
#define CPU_MACHINES "cpu/machines"
#define INSTALLED_MACHINES CPU_MACHINES
#endif

const char *machines_folder(void) {
    return access(CPU_MACHINES, X_OK) == 0 ? CPU_MACHINES : INSTALLED_MACHINES;
}
