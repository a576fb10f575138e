/*
 * messages.h: messages between the judges of the ranks; the first byte says whose.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "judge.h"

enum {
    MESSAGE_CALLS = 'C',
    MESSAGE_JOIN = 'J',
    MESSAGE_NAME = 'N',
    MESSAGE_STATE = 'S',
    MESSAGE_WINDOW = 'W'
};
/* A message to rank `to`, for judge_receive there; to this one itself it comes when it
 * looks. */
void message_send(struct judge *j, int to, const void *data, size_t bytes);
/* NULL: there is none; until the next. */
const void *message_take(struct judge *j, size_t *bytes);
struct messages {
    struct letter {
        char *data;
        size_t bytes;
    } * at;
    size_t first, end, size;
    char *taken;
};
void messages_free(struct messages *messages);

#endif
