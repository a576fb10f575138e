/*
 * trace.c: the file that is made of all ranks' notes.
 *
 * Trace Event Format: an object with "traceEvents". A process is a rank, a thread a
 * stream or the rank's host; "X" is an event with a beginning and a length, in
 * microseconds.
 */
#include "trace.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct met { // a note of a call that several make together
    uint64_t comm, order;
    enum { ALL = -1, HOSTS = -2 } from, to; // or the ranks of a send or a receive
    const struct trace_part *part;
    struct trace_note *note;
    struct waited *waited;
};

struct waited {
    double seconds;
    int rank; // -1: for nobody
};

static int compare_met(const void *a, const void *b) {
    const struct met *x = a, *y = b;
#define BY(member)              \
    if (x->member != y->member) \
    return x->member < y->member ? -1 : 1
    BY(comm);
    BY(from);
    BY(to);
    BY(order);
    BY(part->rank);
#undef BY
    return x->note < y->note ? -1 : x->note > y->note;
}

static bool meets(const struct met *x, const struct met *y) {
    return x->comm == y->comm && x->order == y->order && x->from == y->from &&
           x->to == y->to;
}

static bool has_ended(const struct trace_note *note) {
    return note->end >= note->start;
}

/* Each of those that met waited for the last that came before it was done itself: the
 * sender of a broadcast may be gone when others come. What has not ended waits for a rank
 * that did not come. */
static void find_last(const struct met *all, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const struct trace_note *mine = all[i].note;
        const struct met *last = &all[i];
        for (size_t k = 0; k < n; k++)
            if (all[k].note->start > last->note->start && all[k].note->start <= mine->end)
                last = &all[k];
        if (last == &all[i])
            continue;
        all[i].waited->seconds = last->note->start - mine->start;
        all[i].waited->rank =
            last->part == all[i].part ? last->note->rank : last->part->rank;
    }
}

static void find_meetings(struct trace_part *parts, int nparts, struct waited **waited) {
    size_t n = 0, room = 0;
    for (int p = 0; p < nparts; p++)
        room += parts[p].nnotes;
    struct met *all = must_alloc((room + 1) * sizeof *all);
    for (int p = 0; p < nparts; p++)
        for (size_t i = 0; i < parts[p].nnotes; i++) {
            struct trace_note *note = &parts[p].notes[i];
            bool send =
                note->number && !note->collective && strcmp(note->name, "ncclSend") == 0;
            if (!note->comm)
                continue;
            struct met *met = &all[n++];
            *met = (struct met){.comm = note->comm,
                                .order = note->order,
                                .from = note->number ? ALL : HOSTS,
                                .to = note->number ? ALL : HOSTS,
                                .part = &parts[p],
                                .note = note,
                                .waited = &waited[p][i]};
            if (note->number && !note->collective) {
                met->from = send ? note->rank : note->peer;
                met->to = send ? note->peer : note->rank;
            }
        }
    qsort(all, n, sizeof *all, compare_met);
    for (size_t first = 0, end; first < n; first = end) {
        bool same = true; // else they are not what they are taken for
        for (end = first + 1; end < n && meets(&all[first], &all[end]); end++)
            same &= all[first].note->number ||
                    strcmp(all[first].note->name, all[end].note->name) == 0;
        if (same)
            find_last(&all[first], end - first);
    }
    free(all);
}

static int compare_starts(const void *a, const void *b) {
    const struct trace_note *x = *(struct trace_note *const *)a;
    const struct trace_note *y = *(struct trace_note *const *)b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* How long a host's wait and an operation's wait for another rank fall together. */
static double overlap(const struct trace_note *host, const struct trace_note *op,
                      const struct waited *its) {
    double begin = op->start > host->start ? op->start : host->start;
    double end = op->start + its->seconds;
    if (has_ended(host) && end > host->end)
        end = host->end;
    return end - begin;
}

/* A host that waits for a stream waits for whom the stream's operations waited in this
 * time; if they did not, for whom those of the device's other streams waited, which they
 * came after. */
static void find_hosts_waits(const struct trace_part *part, struct waited *waited) {
    struct trace_note **sorted = must_alloc((part->nnotes + 1) * sizeof *sorted);
    size_t first = 0;
    for (size_t i = 0; i < part->nnotes; i++)
        sorted[i] = &part->notes[i];
    qsort(sorted, part->nnotes, sizeof *sorted, compare_starts);
    for (size_t i = 0; i < part->nnotes; i++) {
        const struct trace_note *host = sorted[i];
        struct waited own = {0, -1}, other = {0, -1};
        if (host->track >= 0 || host->waited == -2)
            continue;
        while (first < i &&
               (sorted[first]->track < 0 ||
                waited[sorted[first] - part->notes].rank < 0 ||
                (has_ended(sorted[first]) && sorted[first]->end < host->start)))
            first++; // what is over now does not meet a later wait, either
        for (size_t k = first; k < part->nnotes; k++) {
            const struct trace_note *op = sorted[k];
            const struct waited *its = &waited[op - part->notes];
            if (has_ended(host) && op->start > host->end)
                break;
            if (op->track < 0 || its->rank < 0 || op->device != host->device)
                continue;
            struct waited *best =
                host->waited < 0 || host->waited == op->track ? &own : &other;
            double length = overlap(host, op, its);
            if (length > best->seconds)
                *best = (struct waited){length, its->rank};
        }
        waited[host - part->notes] = own.rank >= 0 ? own : other;
    }
    free(sorted);
}

/* For whom an MPI call for one rank waits, the call says. */
static void find_named(const struct trace_part *part, struct waited *waited) {
    for (size_t i = 0; i < part->nnotes; i++) {
        const struct trace_note *note = &part->notes[i];
        if (note->track < 0 && note->world >= 0)
            waited[i] = (struct waited){
                (has_ended(note) ? note->end : part->now) - note->start, note->world};
    }
}

static double find_first(const struct trace_part *parts, int nparts) {
    double first = parts[0].now;
    for (int p = 0; p < nparts; p++)
        for (size_t i = 0; i < parts[p].nnotes; i++)
            if (parts[p].notes[i].start < first)
                first = parts[p].notes[i].start;
    return first;
}

/* Whole nanoseconds: what follows something does not begin before its end. */
static long long nanoseconds(double seconds) {
    return (long long)(seconds * 1e9 + (seconds < 0 ? -0.5 : 0.5));
}

static void print_time(FILE *out, const char *name, long long ns) {
    fprintf(out, ",\"%s\":%s%lld.%03lld", name, ns < 0 ? "-" : "", llabs(ns) / 1000,
            llabs(ns) % 1000);
}

static void print_text(FILE *out, const char *text) {
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < ' ' || *c > '~')
            fprintf(out, "\\u%04x", *c);
        else
            putc(*c, out);
    putc('"', out);
}

static void print_name(FILE *out, const char *what, int pid, int tid, const char *name) {
    fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%d,\"tid\":%d,\"args\":", what,
            pid, tid);
    if (strstr(what, "sort")) {
        fprintf(out, "{\"sort_index\":%s}}", name);
    } else {
        fprintf(out, "{\"name\":");
        print_text(out, name);
        fprintf(out, "}}");
    }
}

/* The host is 1, its other threads come after the streams. */
static int tid_of(const struct trace_part *part, int track) {
    return track >= 0 ? 2 + track : track == -1 ? 1 : (int)part->ntracks - track;
}

static bool several_devices(const struct trace_part *part) {
    for (size_t t = 1; t < part->ntracks; t++)
        if (part->tracks[t].device != part->tracks[0].device)
            return true;
    return false;
}

static void name_track(FILE *out, const struct trace_part *part, int track,
                       const char *name) {
    char order[16];
    int tid = tid_of(part, track);
    snprintf(order, sizeof order, "%d", tid);
    print_name(out, "thread_name", part->rank, tid, name);
    print_name(out, "thread_sort_index", part->rank, tid, order);
}

static void name_tracks(FILE *out, const struct trace_part *part) {
    static const char *const kinds[] = {"stream", "default stream", "stream of a thread"};
    char name[JUDGE_HOST + 64], order[16], device[32] = "";
    bool several = several_devices(part);
    if (part->device >= 0 && !several)
        snprintf(device, sizeof device, ", device %d", part->device);
    snprintf(name, sizeof name, "rank %d on %s%s", part->rank, part->host, device);
    print_name(out, "process_name", part->rank, 0, name);
    snprintf(order, sizeof order, "%d", part->rank);
    print_name(out, "process_sort_index", part->rank, 0, order);
    name_track(out, part, -1, "host");
    for (int t = 1; t < part->threads; t++) {
        snprintf(name, sizeof name, "host, thread %d", t + 1);
        name_track(out, part, -1 - t, name);
    }
    for (size_t t = 0; t < part->ntracks; t++) {
        const struct trace_track *track = &part->tracks[t];
        int n = 0;
        if (several)
            n = snprintf(name, sizeof name, "device %d, ", track->device);
        n += snprintf(name + n, sizeof name - (size_t)n, "%s", kinds[track->kind]);
        if (track->kind != 1)
            snprintf(name + n, sizeof name - (size_t)n, " %d", track->number);
        name_track(out, part, (int)t, name);
    }
}

/* Between "args":{ and }. */
struct arguments {
    FILE *out;
    bool any;
};

static FILE *argument(struct arguments *arguments, const char *name) {
    fprintf(arguments->out, "%s\"%s\":", arguments->any ? "," : "", name);
    arguments->any = true;
    return arguments->out;
}

static void number(struct arguments *arguments, const char *name, long long value) {
    fprintf(argument(arguments, name), "%lld", value);
}

static void print_arguments(FILE *out, const struct trace_note *note,
                            const struct waited *waited, const char *place) {
    struct arguments list = {out, false};
    fprintf(out, ",\"args\":{");
    if (strcmp(note->call, note->name) != 0)
        print_text(argument(&list, "call"), note->call);
    if (note->bytes || note->number)
        number(&list, "bytes", (long long)note->bytes);
    if (note->number) {
        number(&list, "count", (long long)note->count);
        print_text(argument(&list, "type"), judge_type_names[note->type]);
        if (note->redop >= 0)
            print_text(argument(&list, "reduction"),
                       note->redop == JUDGE_PRE_MUL_SUM ? "of the program's own"
                                                        : judge_redop_names[note->redop]);
        if (note->root >= 0)
            number(&list, "root", note->root);
        if (note->peer >= 0)
            number(&list, "peer", note->peer);
        number(&list, "communicator", note->number);
        number(&list, note->collective ? "operation" : "message", (long long)note->order);
    }
    if (note->group)
        number(&list, "group", note->group);
    if (!has_ended(note))
        fprintf(argument(&list, "unfinished"), "true");
    if (waited->rank >= 0) {
        fprintf(argument(&list, "waited_ms"), "%.6f", waited->seconds * 1e3);
        number(&list, "for rank", waited->rank);
    }
    if (place[0])
        print_text(argument(&list, "line"), place);
    fprintf(out, "}");
}

/* The lines of all notes' calls. */
struct lines {
    uint64_t *sites;
    char (*text)[JUDGE_PLACE];
    size_t n;
};

static int compare_sites(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct lines find_lines(const struct trace_part *parts, int nparts,
                               trace_places *places) {
    enum { MOST = 2000 };
    struct lines lines = {0};
    size_t n = 0, room = 1;
    for (int p = 0; p < nparts; p++)
        room += parts[p].nnotes;
    lines.sites = must_alloc(room * sizeof *lines.sites);
    for (int p = 0; p < nparts; p++)
        for (size_t i = 0; i < parts[p].nnotes; i++)
            lines.sites[n++] = parts[p].notes[i].site;
    qsort(lines.sites, n, sizeof *lines.sites, compare_sites);
    for (size_t i = 0; i < n && lines.n < MOST; i++)
        if (lines.sites[i] &&
            (lines.n == 0 || lines.sites[i] != lines.sites[lines.n - 1]))
            lines.sites[lines.n++] = lines.sites[i];
    lines.text = must_alloc((lines.n + 1) * sizeof *lines.text);
    places(lines.sites, lines.n, lines.text);
    return lines;
}

static const char *line_of(const struct lines *lines, uint64_t site) {
    const uint64_t *found =
        bsearch(&site, lines->sites, lines->n, sizeof site, compare_sites);
    return found ? lines->text[found - lines->sites] : "";
}

void trace_write(FILE *out, struct trace_part *parts, int nparts, const char *clock,
                 trace_places *places) {
    struct lines lines = find_lines(parts, nparts, places);
    double first = find_first(parts, nparts);
    struct waited **waited = must_alloc((size_t)nparts * sizeof *waited);
    long long lost = 0;
    for (int p = 0; p < nparts; p++) {
        waited[p] = must_alloc((parts[p].nnotes + 1) * sizeof **waited);
        for (size_t i = 0; i < parts[p].nnotes; i++)
            waited[p][i].rank = -1;
        lost += parts[p].lost;
    }
    find_meetings(parts, nparts, waited);
    fprintf(out, "{\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"clock\":");
    print_text(out, clock);
    fprintf(out, ",\"ranks\":%d,\"left_out\":%lld},\n\"traceEvents\":[\n", nparts, lost);
    fprintf(out,
            "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":%d,\"tid\":0,"
            "\"args\":{\"labels\":",
            parts[0].rank);
    print_text(out, clock);
    fprintf(out, "}}");
    for (int p = 0; p < nparts; p++) {
        find_hosts_waits(&parts[p], waited[p]);
        find_named(&parts[p], waited[p]);
        name_tracks(out, &parts[p]);
        for (size_t i = 0; i < parts[p].nnotes; i++) {
            const struct trace_note *note = &parts[p].notes[i];
            long long start = nanoseconds(note->start - first);
            double last = has_ended(note) ? note->end : parts[p].now;
            long long length = nanoseconds(last - first) - start;
            fprintf(out,
                    ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"cat\":\"%s\",\"name\":",
                    parts[p].rank, tid_of(&parts[p], note->track),
                    note->track < 0 ? "host"
                    : note->number  ? "nccl"
                                    : "cuda");
            print_text(out, note->name);
            print_time(out, "ts", start);
            print_time(out, "dur", length > 0 ? length : 0);
            print_arguments(out, note, &waited[p][i], line_of(&lines, note->site));
            fprintf(out, "}");
        }
        free(waited[p]);
    }
    free(waited);
    free(lines.sites);
    free(lines.text);
    fprintf(out, "\n]}\n");
}
