/*
 * refers.h: which functions a program's code names, called or not.
 */
#ifndef REFERS_H
#define REFERS_H

#include <stdbool.h>

/* Whether the program, or a library of its own, calls or points to the function of this
 * name, which is at `address` here. Asked once, it reads the whole program: keep the
 * answer. True where it cannot be told. */
bool refers_to(const char *name, const void *address);

#endif
