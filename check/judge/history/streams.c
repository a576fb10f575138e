/*
 * streams.c: who has a clock: streams, branches of graphs, events.
 */
#include "history/streams.h"

static void event_free(void *event) {
    clock_free(&((struct event *)event)->clock);
    free(event);
}

void order_free(struct order *order) {
    for (int s = 0; s < order->nslots; s++)
        clock_free(&order->slots[s].clock);
    numbers_clear(&order->streams, free);
    numbers_clear(&order->events, event_free);
    for (struct event *event; (event = order->spare);) {
        order->spare = event->next;
        event_free(event);
    }
    for (int i = 0; i < FEW; i++)
        clock_free(&order->group[i]);
    free(order->slots);
    free(order->gone);
    free(order->legacy);
    free(order);
}

int order_slot(struct judge *j, int device) {
    struct order *order = j->order;
    int slot = -1;
    for (size_t i = 0; i < order->ngone && slot < 0; i++)
        if (clock_covers(&j->known, order->gone[i], order->slots[order->gone[i]].count)) {
            slot = order->gone[i];
            order->gone[i] = order->gone[--order->ngone];
        }
    if (slot < 0) {
        slot = order->nslots++;
        ROOM(order->slots, (size_t)slot, &order->slots_size);
    }
    struct slot *s = &order->slots[slot];
    clock_free(&s->clock);
    s->waited = (struct waited){0};
    s->device = device;
    s->kind = JUDGE_NON_BLOCKING;
    clock_reach(&s->clock, slot, s->count);
    return slot;
}

void order_slot_gone(struct order *order, int slot) {
    ROOM(order->gone, order->ngone, &order->gone_size);
    order->gone[order->ngone++] = slot;
}

struct clock *order_clock(struct order *order, int slot) {
    return &order->slots[slot].clock;
}

uint64_t order_next(struct order *order, int slot) {
    struct slot *s = &order->slots[slot];
    clock_reach(&s->clock, slot, ++s->count);
    return s->count;
}

struct stream *order_stream(struct order *order, int stream) {
    return numbers_get(&order->streams, stream);
}

static struct stream *legacy_of(struct order *order, int device) {
    if (device < 0 || (size_t)device >= order->ndevices || !order->legacy[device])
        return NULL;
    return order_stream(order, order->legacy[device] - 1);
}

int judge_stream_made(struct judge *j, enum judge_stream_kind kind, int device,
                      struct judge_at at) {
    struct order *order = j->order;
    struct stream *stream = must_alloc(sizeof *stream);
    *stream = (struct stream){order_slot(j, device), device, kind, at, NULL, 0};
    int number = numbers_add(&order->streams, stream);
    order->slots[stream->slot].kind = kind;
    if (kind == JUDGE_LEGACY && device >= 0) {
        ROOM(order->legacy, (size_t)device, &order->ndevices);
        order->legacy[device] = number + 1;
    }
    return number;
}

void order_stream_gone(struct judge *j, int number) {
    struct order *order = j->order;
    struct stream *stream = order_stream(order, number);
    if (!stream)
        return;
    if (legacy_of(order, stream->device) == stream)
        order->legacy[stream->device] = 0;
    order_slot_gone(order, stream->slot);
    numbers_drop(&order->streams, number, free);
}

void order_awaited(const struct order *order, const struct stream *stream,
                   struct clock *into) {
    clock_join(into, &order->slots[stream->slot].clock);
    // Also of those that are gone: what was in them still happens.
    for (int s = 0; stream->kind == JUDGE_LEGACY && s < order->nslots; s++)
        if (order->slots[s].kind == JUDGE_BLOCKING &&
            order->slots[s].device == stream->device)
            clock_join(into, &order->slots[s].clock);
}

void order_ready(struct judge *j, const struct stream *stream) {
    struct order *order = j->order;
    struct clock *clock = order_clock(order, stream->slot);
    clock_join(clock, &j->known);
    const struct stream *legacy = legacy_of(order, stream->device);
    if (stream->kind == JUDGE_BLOCKING && legacy)
        clock_join(clock, order_clock(order, legacy->slot));
    if (stream->kind == JUDGE_LEGACY)
        order_awaited(order, stream, clock);
}

struct event *order_event(struct order *order, int event) {
    return numbers_get(&order->events, event);
}

int judge_event_made(struct judge *j, struct judge_at at) {
    struct order *order = j->order;
    struct event *event = order->spare;
    if (event) {
        order->spare = event->next;
        order->nspare--;
        clock_clear(&event->clock);
        *event = (struct event){.made = at, .clock = event->clock};
    } else {
        event = must_alloc(sizeof *event);
        event->made = at;
    }
    return numbers_add(&order->events, event);
}

static void keep(void *event) {
    (void)event;
}

/* Some libraries make an event for each call. */
void judge_event_gone(struct judge *j, int number) {
    enum { KEPT = 64 };
    struct order *order = j->order;
    struct event *event = order_event(order, number);
    const bool spare = event && order->nspare < KEPT;
    numbers_drop(&order->events, number, spare ? keep : event_free);
    if (!spare)
        return;
    event->next = order->spare;
    order->spare = event;
    order->nspare++;
}
