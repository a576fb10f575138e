/*
 * machines.c: where the machines lie that the modelled clock knows: in the course, or
 * where `make install` has put them. In a file of its own, so that no other file differs
 * from one folder to another.
 */
#include "clock/clock.h"

#include <unistd.h>

#ifndef CPU_MACHINES
#define CPU_MACHINES "cpu/machines"
#endif
// The folder below PREFIX: make install adds it to the library that it copies.
extern const char cpu_installed_machines[] __attribute__((weak));

const char *machines_folder(void) {
    return access(CPU_MACHINES, X_OK) == 0 || !cpu_installed_machines
               ? CPU_MACHINES
               : cpu_installed_machines;
}
