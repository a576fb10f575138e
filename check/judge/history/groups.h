/*
 * groups.h: groups of calls that a thread has opened.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include "judge.h"

struct group;
void groups_free(struct group *group);
/* A call returned an error: if it is the one that this thread told of last, it has not
 * happened. */
void groups_call_failed(struct judge *j, struct judge_at at);
/* An operation is queued at once, and the open group uses the same memory. */
void groups_check_op(struct judge *j, const struct judge_range *ranges, int n,
                     struct judge_at at);
/* A group that holds calls for `stream` (-1: any, or none) was not ended. */
void groups_check_open(struct judge *j, int stream, struct judge_at at);

#endif
