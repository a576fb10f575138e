/*
 * uses.c: which operation used which bytes last, per slot; who is in order with
 * nobody.
 *
 * The trees are treaps: sorted by address, each node's weight (a random number) above
 * those of its children, so that they stay balanced without further work.
 */
#include "history/uses.h"

struct part { // bytes [from, to), used last by operation `seq`
    uint64_t from, to, seq;
    uint64_t newest; // seq, of all below this one too
    struct use *use;
    uint32_t weight;
    struct part *left, *right;
};

static size_t nparts;
static struct stock parts, uses;

size_t history_parts(void) {
    return nparts;
}

struct use *use_new(struct judge_at at) {
    struct use *use = stock_take(&uses, sizeof *use);
    use->holders = 1;
    use->at = at;
    return use;
}

void use_drop(struct use *use) {
    if (!use || --use->holders > 0)
        return;
    clock_free(&use->behind);
    stock_give(&uses, use);
}

static uint32_t chance(void) {
    static uint32_t state = 2463534242u;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static struct part *part_new(uint64_t from, uint64_t to, struct use *use) {
    struct part *part = stock_take(&parts, sizeof *part);
    *part = (struct part){from, to, use->seq, use->seq, use, chance(), NULL, NULL};
    use->holders++;
    nparts++;
    return part;
}

static void part_free(struct part *part) {
    use_drop(part->use);
    stock_give(&parts, part);
    nparts--;
}

static void tree_free(struct part *tree) {
    if (!tree)
        return;
    tree_free(tree->left);
    tree_free(tree->right);
    part_free(tree);
}

static struct part *summed_up(struct part *tree) {
    tree->newest = tree->seq;
    if (tree->left && tree->left->newest > tree->newest)
        tree->newest = tree->left->newest;
    if (tree->right && tree->right->newest > tree->newest)
        tree->newest = tree->right->newest;
    return tree;
}

/* All of `a` lies before all of `b`. */
static struct part *merged(struct part *a, struct part *b) {
    if (!a || !b)
        return a ? a : b;
    if (a->weight > b->weight) {
        a->right = merged(a->right, b);
        return summed_up(a);
    }
    b->left = merged(a, b->left);
    return summed_up(b);
}

/* Bytes before `at` and bytes from there on; a part that has both is cut in two. */
static void split(struct part *tree, uint64_t at, struct part **before,
                  struct part **behind) {
    if (!tree) {
        *before = *behind = NULL;
    } else if (tree->to <= at) {
        split(tree->right, at, &tree->right, behind);
        *before = summed_up(tree);
    } else if (tree->from >= at) {
        split(tree->left, at, before, &tree->left);
        *behind = summed_up(tree);
    } else {
        struct part *rest = part_new(at, tree->to, tree->use);
        *behind = merged(rest, tree->right);
        tree->to = at;
        tree->right = NULL;
        *before = summed_up(tree);
    }
}

/* Forgets bytes [from, to). If `use` is not NULL, it used them last. */
static void replace(struct part **tree, uint64_t from, uint64_t to, struct use *use) {
    struct part *before, *between, *behind, *only = *tree;
    // Most programs use a buffer the same way again and again.
    bool alone = only && !only->left && !only->right;
    if (use && alone && only->from == from && only->to == to) {
        use->holders++;
        use_drop(only->use);
        only->use = use;
        only->seq = only->newest = use->seq;
        return;
    }
    split(*tree, from, &before, &between);
    split(between, to, &between, &behind);
    tree_free(between);
    *tree = merged(merged(before, use ? part_new(from, to, use) : NULL), behind);
}

typedef bool passing(const struct use *use, void *self);

/* A part of [from, to) that is newer than `after`. */
static const struct part *newer(const struct part *tree, uint64_t from, uint64_t to,
                                uint64_t after, passing *passes, void *self) {
    if (!tree || tree->newest <= after)
        return NULL;
    if (tree->from >= to)
        return newer(tree->left, from, to, after, passes, self);
    if (tree->to <= from)
        return newer(tree->right, from, to, after, passes, self);
    if (tree->seq > after && (!passes || passes(tree->use, self)))
        return tree;
    const struct part *found = newer(tree->left, from, to, after, passes, self);
    return found ? found : newer(tree->right, from, to, after, passes, self);
}

/* Without the parts that `gone` names. */
static struct part *without(struct part *tree, passing *gone, void *self) {
    if (!tree)
        return NULL;
    tree->left = without(tree->left, gone, self);
    tree->right = without(tree->right, gone, self);
    if (!gone(tree->use, self))
        return summed_up(tree);
    struct part *rest = merged(tree->left, tree->right);
    part_free(tree);
    return rest;
}

static uint64_t reach(const struct clock *clock, int slot) {
    return slot < clock->n ? clock->at[slot] : 0;
}

static struct track *track_of(struct history *history, int slot) {
    for (size_t t = 0; t < history->ntracks; t++)
        if (history->tracks[t].slot == slot)
            return &history->tracks[t];
    ROOM(history->tracks, history->ntracks, &history->size);
    history->tracks[history->ntracks] = (struct track){slot, NULL, NULL};
    return &history->tracks[history->ntracks++];
}

const struct use *history_add(struct history *history, uint64_t from, uint64_t to,
                              bool write, struct use *use, const struct clock *clock,
                              bool *its_write) {
    const struct use *found = NULL;
    for (size_t t = history->ntracks; t-- > 0;) {
        struct track *track = &history->tracks[t];
        uint64_t after = reach(clock, track->slot);
        const struct part *part = newer(track->writes, from, to, after, NULL, NULL);
        bool wrote = part != NULL;
        if (!part && write)
            part = newer(track->reads, from, to, after, NULL, NULL);
        if (part && !found) {
            found = part->use;
            *its_write = wrote;
        }
        // Whatever races with a use that comes before this one races with this one too.
        bool mine = track->slot == use->slot; // what it uses follows below
        if (!part &&
            (write || (!mine && !newer(track->reads, from, to, after, NULL, NULL))))
            replace(&track->reads, from, to, NULL);
        if (!part && write && !mine)
            replace(&track->writes, from, to, NULL);
        if (!track->reads && !track->writes)
            *track = history->tracks[--history->ntracks];
    }
    struct track *mine = track_of(history, use->slot);
    replace(write ? &mine->writes : &mine->reads, from, to, use);
    return found;
}

const struct use *history_beyond(const struct history *history, uint64_t from,
                                 uint64_t to, bool write, const struct clock *clock,
                                 passing *passes, void *self, bool *its_write) {
    for (size_t t = 0; t < history->ntracks; t++) {
        const struct track *track = &history->tracks[t];
        uint64_t after = reach(clock, track->slot);
        const struct part *part = newer(track->writes, from, to, after, passes, self);
        *its_write = part != NULL;
        if (!part && write)
            part = newer(track->reads, from, to, after, passes, self);
        if (part)
            return part->use;
    }
    return NULL;
}

static bool is_same(const struct use *use, void *self) {
    return use == self;
}

void history_undo(struct history *history, uint64_t from, uint64_t to, struct use *use) {
    for (size_t t = 0; t < history->ntracks; t++) {
        struct track *track = &history->tracks[t];
        if (track->slot != use->slot)
            continue;
        const struct part *part;
        while ((part = newer(track->writes, from, to, use->seq - 1, is_same, use)))
            replace(&track->writes, part->from, part->to, NULL);
        while ((part = newer(track->reads, from, to, use->seq - 1, is_same, use)))
            replace(&track->reads, part->from, part->to, NULL);
    }
}

static void tell_each(const struct part *tree, uint64_t after, bool write,
                      void (*each)(void *self, const struct use *use, uint64_t from,
                                   uint64_t to, bool write),
                      void *self) {
    if (!tree || tree->newest <= after)
        return;
    tell_each(tree->left, after, write, each, self);
    if (tree->seq > after)
        each(self, tree->use, tree->from, tree->to, write);
    tell_each(tree->right, after, write, each, self);
}

void history_each(const struct history *history, const struct clock *clock,
                  void (*each)(void *self, const struct use *use, uint64_t from,
                               uint64_t to, bool write),
                  void *self) {
    for (size_t t = 0; t < history->ntracks; t++) {
        const struct track *track = &history->tracks[t];
        tell_each(track->writes, reach(clock, track->slot), true, each, self);
        tell_each(track->reads, reach(clock, track->slot), false, each, self);
    }
}

void history_forget(struct history *history, passing *gone, void *self) {
    for (size_t t = history->ntracks; t-- > 0;) {
        struct track *track = &history->tracks[t];
        track->writes = without(track->writes, gone, self);
        track->reads = without(track->reads, gone, self);
        if (!track->reads && !track->writes)
            *track = history->tracks[--history->ntracks];
    }
}

void history_free(struct history *history) {
    for (size_t t = 0; t < history->ntracks; t++) {
        tree_free(history->tracks[t].writes);
        tree_free(history->tracks[t].reads);
    }
    free(history->tracks);
    *history = (struct history){0};
}
