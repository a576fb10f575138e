/*
 * lesson.h as exercises and their hidden halves find it. What the course's own headers
 * read of the system they read by way of the frame: so a file that is handed in for a
 * grade needs nothing that opens files.
 */
#ifndef EXERCISES_LESSON_H
#define EXERCISES_LESSON_H

#include <stdio.h>
#include <stdlib.h>

/* Opens what check.h opens, and nothing else: harness.c has it. */
#ifdef __cplusplus
extern "C" {
#endif
FILE *check_open(const char *name, const char *mode);
/* Sets what check.h sets, and nothing else. */
int check_setenv(const char *name, const char *value, int overwrite);
#ifdef __cplusplus
}
#endif

#define fopen check_open
#define setenv check_setenv
#include "../../common/lesson.h"
#undef fopen
#undef setenv

#endif
