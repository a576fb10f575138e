/*
 * cuda_copies.c: copies and sets: what they read and write, and whether the host waits.
 *
 * CUDA Runtime API, "API synchronization behavior".
 */
#include "cuda_front.h"

#include "nccl_comms.h"

struct copy_side copy_linear(const void *start, size_t bytes, bool says_device) {
    return (struct copy_side){{start, bytes, bytes, 1}, says_device, UNKNOWN, 0};
}

bool copies_to_device(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
}

bool copies_from_device(enum cudaMemcpyKind kind) {
    return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
}

static bool find_place(struct judge *j, struct copy_side *side) {
    struct judge_memory memory;
    if (side->place != UNKNOWN)
        return true;
    if (!side->rows.start || !judge_memory_find(j, side->rows.start, &memory))
        return false;
    bool pinned = memory.kind == JUDGE_PINNED || memory.kind == JUDGE_HOST_REGISTERED;
    side->place = pinned ? PINNED : memory.kind == JUDGE_MANAGED ? MANAGED : DEVICE;
    side->device = memory.device;
    return true;
}

static void ask_place(struct copy_side *side) {
    struct cudaPointerAttributes attributes;
    if (side->place != UNKNOWN)
        return;
    side->place = PAGEABLE;
    if (!side->rows.start || CALL(BELOW(cudaPointerGetAttributes), &attributes,
                                  side->rows.start) != cudaSuccess)
        return;
    side->device = attributes.device;
    if (attributes.type == cudaMemoryTypeDevice)
        side->place = DEVICE;
    else if (attributes.type == cudaMemoryTypeManaged)
        side->place = MANAGED;
    else if (attributes.type == cudaMemoryTypeHost)
        side->place = PINNED;
}

/* True if something is wrong with what it would read and write. */
static bool tell_copy(struct judge *j, const struct copy *copy, struct judge_at at) {
    struct judge_range ranges[2 * MOST_ROWS];
    int n = 0;
    bool set = copy->from.place == UNKNOWN;
    enum which_rows to = add_rows(&copy->to.rows, true, copy->to.says_device, ranges, &n),
                    from = set ? ALL_ROWS
                               : add_rows(&copy->from.rows, false, copy->from.says_device,
                                          ranges, &n);
    if (to == NO_ROWS || from == NO_ROWS)
        return judge_op(j, copy->number, NULL, 0, JUDGE_KERNEL, at) && front_checks;
    open_rows(j, &copy->to.rows, to);
    open_rows(j, &copy->from.rows, from);
    enum judge_op_kind kind = set ? JUDGE_SET
                              : copy->to.rows.height == 1 && copy->from.rows.height == 1
                                  ? JUDGE_COPY
                                  : JUDGE_COPY_ROWS;
    return judge_op(j, copy->number, ranges, n, kind, at) && front_checks;
}

/* Memory of the host that is not pinned is copied by the driver through memory of its
 * own. From there to a device the source is read before the call returns, but the data
 * may still be on its way. */
static void find_waits(struct copy *copy) {
    bool set = copy->from.place == UNKNOWN;
    bool to_host = copy->to.place == PAGEABLE || copy->to.place == PINNED;
    bool from_host = copy->from.place == PAGEABLE || copy->from.place == PINNED;
    bool pageable = copy->to.place == PAGEABLE || copy->from.place == PAGEABLE;
    bool managed = copy->to.place == MANAGED || copy->from.place == MANAGED;
    if (set)
        copy->waits = !copy->asynchronous && (to_host || managed) ? ALL : NO;
    else if (copy->asynchronous && pageable && stream_capturing(copy->stream))
        copy->waits = NO;
    else if (copy->to.place == PAGEABLE || (to_host && from_host))
        copy->waits = ALL;
    else if (copy->asynchronous)
        copy->waits = copy->from.place == PAGEABLE && !group_is_open() ? PERHAPS : NO;
    else if (copy->from.place == PAGEABLE && copy->to.place == DEVICE)
        copy->waits = OVER_STANDIN && STANDIN(cuda_aware)() ? ALL : BEFORE;
    else
        copy->waits = to_host || from_host || managed ? ALL : NO;
}

bool copy_begins(struct copy *copy, struct judge_at at) {
    bool set = !copy->from.rows.start && copy->from.place == UNKNOWN;
    struct judge *j = front_in_stream(copy->stream, -1, &copy->number);
    if (copy->number < 0 || copy->to.rows.width == 0) {
        front_out();
        copy->number = -1;
        return true;
    }
    bool found = find_place(j, &copy->to);
    found = (set || find_place(j, &copy->from)) && found;
    if (!found) {
        front_out();
        ask_place(&copy->to);
        if (!set)
            ask_place(&copy->from);
        find_waits(copy);
        j = front_in();
    } else {
        find_waits(copy);
    }
    bool wrong = false;
    if (copy->waits == BEFORE || copy->waits == PERHAPS) {
        judge_wait_stream(j, copy->number, at);
        wrong = tell_copy(j, copy, at);
        if (wrong)
            judge_wait_end(j, false);
    } else {
        wrong = tell_copy(j, copy, at);
        if (copy->waits == ALL && !wrong)
            judge_wait_stream(j, copy->number, at);
    }
    front_out();
    return !wrong;
}

/* The default stream of another device whose memory is copied: such a copy waits for it,
 * too. */
static void other_device(const struct copy_side *side, struct judge_at at) {
    int number;
    if (side->place == UNKNOWN || side->place == PAGEABLE ||
        side->device == current_device())
        return;
    struct judge *j = front_in_stream(cudaStreamLegacy, side->device, &number);
    judge_wait_stream(j, number, at);
    judge_wait_end(j, true);
    front_out();
}

cudaError_t copy_ends(struct copy *copy, cudaError_t error, struct judge_at at) {
    if (copy->number < 0 || copy->waits == NO)
        return answer(error, at);
    error = wait_over(error, copy->waits != PERHAPS, at);
    if (error == cudaSuccess && !copy->asynchronous) {
        other_device(&copy->to, at);
        other_device(&copy->from, at);
    }
    return error;
}

struct copy_side copy_pitched(const void *start, size_t pitch, size_t width,
                              size_t height, bool says_device) {
    return (struct copy_side){
        {start, pitch, height ? width : 0, height}, says_device, UNKNOWN, 0};
}

struct copy_side copy_somewhere(const void *start) {
    return (struct copy_side){.rows = {.start = start, .width = 1},
                              .place = start ? UNKNOWN : DEVICE};
}

/* In order with all work, past and to come, of the devices: as if the host waited for it.
 */
cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                           size_t bytes) {
    ENTER(cudaMemcpyPeer, to, to_device, from, from_device, bytes);
    const int devices[] = {current_device(), to_device, from_device};
    struct copy copy = {.to = copy_linear(to, bytes, true),
                        .from = copy_linear(from, bytes, true)};
    struct judge *j = front_in();
    for (int i = 0; i < 3; i++) {
        judge_wait_device(j, devices[i], at);
        judge_wait_end(j, true);
    }
    front_out();
    if (!copy_begins(&copy, at))
        return cudaErrorInvalidValue;
    if (copy.waits == NO && copy.number >= 0) {
        copy.waits = ALL;
        TELL(judge_wait_stream, copy.number, at);
    }
    struct timeline_op op;
    cudaError_t error =
        ON_TIMELINE(copy_op(&copy, at, &op), copy.stream, -1,
                    CALL(BELOW(cudaMemcpyPeer), to, to_device, from, from_device, bytes));
    return copy_ends(&copy, error, at);
}
