/*
 * groups.h: groups of calls that a thread has opened.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include "judge.h"

struct group;
void groups_free(struct group *group);
/* Adds a call to the open group of the thread that is in; false: there is none. */
bool groups_add(struct judge *j, const struct judge_call *call);
void groups_makes(struct judge *j, struct judge_at at); // a communicator
void groups_take_back(struct judge *j);                 // the newest call failed
/* An operation is queued at once, and the open group uses the same memory. */
void groups_check_op(struct judge *j, const struct judge_range *ranges, int n,
                     struct judge_at at);
/* A group that holds calls for `stream` (-1: any, or none) was not ended. */
void groups_check_open(struct judge *j, int stream, struct judge_at at);
/* Puts calls behind what their streams hold, or into the graphs that these are captured
 * into. */
struct latest;
void groups_issue(struct judge *j, struct judge_call *calls, size_t n, bool grouped,
                  struct latest *latest);

#endif
