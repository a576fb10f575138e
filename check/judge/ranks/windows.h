/*
 * windows.h: puts into windows that the other rank has deregistered before.
 */
#ifndef WINDOWS_H
#define WINDOWS_H

#include "base/self.h"

void windows_put(struct judge *j, const struct judge_put *put);
void windows_receive(struct judge *j, const void *data, size_t bytes); // MESSAGE_WINDOW

#endif
