/*
 * messages.c: messages to the judges of other ranks, and to this one itself, which come
 * when it looks.
 */
#include "base/messages.h"

#include "base/self.h"

void message_send(struct judge *j, int to, const void *data, size_t bytes) {
    if (to != j->rank) {
        j->outside.send(j->outside.self, to, data, bytes);
        return;
    }
    struct messages *own = j->messages;
    if (own->first == own->end)
        own->first = own->end = 0;
    ROOM(own->at, own->end, &own->size);
    struct letter *letter = &own->at[own->end++];
    letter->data = must_alloc(bytes);
    letter->bytes = bytes;
    memcpy(letter->data, data, bytes);
}

const void *message_take(struct judge *j, size_t *bytes) {
    struct messages *own = j->messages;
    free(own->taken);
    own->taken = NULL;
    if (own->first == own->end)
        return NULL;
    *bytes = own->at[own->first].bytes;
    return own->taken = own->at[own->first++].data;
}

void messages_free(struct messages *own) {
    free(own->taken);
    for (size_t i = own->first; i < own->end; i++)
        free(own->at[i].data);
    free(own->at);
    free(own);
}
