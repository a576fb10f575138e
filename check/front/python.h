/*
 * python.h: the line of Python that a call comes from, where the program is Python.
 *
 * A program of PyTorch makes its calls of NCCL in a library: the line that its author
 * knows is that of the innermost Python frame outside of PyTorch and the standard
 * library. It is found by CPython's own functions (3.9 to 3.13), which the process has or
 * has not.
 */
#ifndef PYTHON_H
#define PYTHON_H

#include "judge.h"

void python_begins(void); // looks whether there is Python
bool python_there(void);
/* Instead of the place of a call of this thread: that of its Python line; the same again
 * where there is none. If only the main thread has one, as for the calls that autograd's
 * thread makes, it is that one's, and the text says so. */
uint64_t python_site(uint64_t site);
/* Whether there is Python, and this thread is none of its: a library's that only looks
 * how far the work is, as PyTorch's watchdog. It will make no call that others wait for.
 */
bool python_watchdog(void);
/* Whether it is such a place; then its text. */
bool python_text(uint64_t site, char out[JUDGE_PLACE]);

/* Places that this rank has found and not yet told the others: the bytes of one, 0: none;
 * and whether what another rank has sent is one. */
size_t python_tells(char *out, size_t size);
bool python_hears(const void *data, size_t bytes);
void python_forked(void);

#endif
