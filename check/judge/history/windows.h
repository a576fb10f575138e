/*
 * windows.h: puts into windows, and what the other rank does there.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "base/self.h"

/* What was queued last on a slot uses the ranges: perhaps of a window of this rank. */
void windows_use(struct judge *j, int slot, const struct judge_range *ranges, int n,
                 struct judge_at at);
/* A call was queued on a slot (-1: on none). */
void windows_call(struct judge *j, const struct judge_call *call, int slot);
/* All ranks have met (`where`: the same number on all of them, no other meeting's; 0: not
 * all may be there). From now on the host, or what comes after what was queued on a slot
 * last (-1: none), may know what other ranks have done. */
void windows_meet(struct judge *j, uint64_t where, int slot);
void windows_news(struct judge *j, int slot);
void windows_receive(struct judge *j, const void *data, size_t bytes); // MESSAGE_WINDOW
void windows_free(struct judge *j);

#endif
