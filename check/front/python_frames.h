/*
 * python_frames.h: where a thread of Python stands, without Python's lock.
 *
 * To ask CPython for a line takes its lock, and microseconds. But the line is the same
 * when all frames are where they were before, and that can be read: nobody else changes
 * the frames of a thread that is in a call. What is read is learned from CPython's own
 * answers first, and given up for good if one of them contradicts it.
 */
#ifndef PYTHON_FRAMES_H
#define PYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum { FRAMES_DEEP = 96 };
enum { FRAMES_NOBODYS = 1 }; // instead of a site: no frame there is the program's

void frames_begin(const char *version); // Py_GetVersion's

/* The site that was learned for where this thread stands; 0: none. */
uint64_t frames_site(const void *thread);
/* The same for the main thread, which may be running. */
uint64_t frames_site_of_main(void);

/* With the lock. `codes`: the code objects of the thread's innermost frames, as CPython
 * says, up to the one that is the program's; or all, and the site is FRAMES_NOBODYS.
 * True: it is learned, and the code objects must stay. */
bool frames_learn(const void *thread, void *const *codes, int n, uint64_t site);
/* Likewise, of the main thread; what was learned of it before is forgotten. */
bool frames_learn_main(const void *thread, void *const *codes, int n, uint64_t site);

#endif
