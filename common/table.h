/*
 * table.h: buffers as tables, one row for each GPU.
 */
#ifndef TABLE_H
#define TABLE_H

#include "check.h"

enum { LESSON_CELLS = 16, LESSON_EDGE = 4, LESSON_WIDTH = 24 };

/* How a value is written in a cell. */
static inline void lesson_cell_number(char text[LESSON_WIDTH], double value) {
    snprintf(text, LESSON_WIDTH, "%.15g", value);
}

/* Writes the upper half of a 64-bit number as a letter, and the lower half as a number:
 * A0, A1, … if the upper half is 0, B0, B1, … if it is 1, AA0 if it is 26. Memory that
 * nobody has written becomes a question mark: on the CPU build all its bits are set. */
static inline void lesson_cell_letter(char text[LESSON_WIDTH], double value) {
    if (value >= 0x1p63) {
        snprintf(text, LESSON_WIDTH, "?");
        return;
    }
    unsigned long long bits = (unsigned long long)value, upper = bits >> 32;
    char letters[8];
    int used = 0;
    for (upper++; upper > 0 && used < 7; upper = (upper - 1) / 26)
        letters[used++] = (char)('A' + (upper - 1) % 26);
    int length = 0;
    while (used > 0)
        text[length++] = letters[--used];
    snprintf(text + length, (size_t)(LESSON_WIDTH - length), "%llu", bits & 0xffffffff);
}

/* How the last table wrote its values; the verdict writes them in the same way. */
static void (*lesson_cell)(char *text, double value) = lesson_cell_number;

static inline double lesson_value(const void *values, size_t i, ncclDataType_t type) {
    switch (type) {
    case ncclInt32: return ((const int32_t *)values)[i];
    case ncclInt64: return (double)((const int64_t *)values)[i];
    case ncclUint64: return (double)((const uint64_t *)values)[i];
    case ncclFloat32: return (double)((const float *)values)[i];
    case ncclFloat64: return ((const double *)values)[i];
    default: lesson_fail("lesson_value does not know data type %d", (int)type);
    }
}

/* How many cells a buffer gets. */
static inline size_t lesson_shown(size_t count) {
    return count > LESSON_CELLS ? 2 * LESSON_EDGE : count;
}

/* Writes a buffer's cells, LESSON_WIDTH characters each, and returns how many there are:
 * of more than 16 elements the first and the last 4. */
static inline size_t lesson_cells(char *cells, const void *values, size_t count,
                                  ncclDataType_t type) {
    const bool cut = count > LESSON_CELLS;
    const size_t shown = lesson_shown(count);
    lesson_cell = type == ncclUint64 ? lesson_cell_letter : lesson_cell_number;
    for (size_t c = 0; c < shown; c++) {
        size_t i = cut && c >= LESSON_EDGE ? count - shown + c : c;
        lesson_cell(cells + c * LESSON_WIDTH, lesson_value(values, i, type));
    }
    return shown;
}

/* Draws a table: a title and, for each of `nranks` GPUs, a row of lesson_cells' cells. */
static inline void lesson_draw(const char *title, const char *cells, size_t count,
                               int nranks) {
    const bool cut = count > LESSON_CELLS;
    const size_t shown = lesson_shown(count);
    size_t width = 0;
    for (size_t c = 0; c < shown * (size_t)nranks; c++)
        width = strlen(cells + c * LESSON_WIDTH) > width
                    ? strlen(cells + c * LESSON_WIDTH)
                    : width;
    char between[64] = "";
    if (cut)
        snprintf(between, sizeof between, " ... %zu more ... |", count - shown);
    size_t dashes = 1 + shown * (width + 3) + strlen(between);
    printf("%s\n", title);
    for (int r = 0; r < nranks; r++) {
        char rule[1024];
        memset(rule, '-', sizeof rule);
        rule[dashes < sizeof rule ? dashes : sizeof rule - 1] = '\0';
        printf("       %s\nGPU %-3d|", rule, r);
        for (size_t c = 0; c < shown; c++)
            printf("%s %-*s |", cut && c == LESSON_EDGE ? between : "", (int)width,
                   cells + ((size_t)r * shown + c) * LESSON_WIDTH);
        printf("\n       %s\n", rule);
    }
    printf("\n");
    fflush(stdout);
}

/* The same for a process that holds all buffers, `count` elements each, one after the
 * other. */
static inline void lesson_draw_all(const char *title, const void *values, size_t count,
                                   ncclDataType_t type, int nranks) {
    const size_t most = LESSON_CELLS * LESSON_WIDTH;
    char *cells = (char *)lesson_malloc((size_t)nranks * most);
    const size_t size = type == ncclInt32 || type == ncclFloat32 ? 4 : 8; // lesson_value
    const char *row = (const char *)values;
    for (int r = 0; r < nranks; r++)
        lesson_cells(cells + (size_t)r * LESSON_WIDTH * lesson_shown(count),
                     row + (size_t)r * count * size, count, type);
    lesson_draw(title, cells, count, nranks);
    free(cells);
}

/* Prints every rank's buffer as a table, in rank order, whatever order they ran in.
 *   title   the line above the table, for example "Before broadcast:"
 *   values  this rank's buffer, on the host: `count` elements of `type`
 * Of more than 16 elements only the first 4 and the last 4 are shown. Elements of type
 * ncclUint64 are written as letters: see lesson_cell_letter.
 * All ranks must call it; rank 0 prints. */
static inline void lesson_table(const char *title, const void *values, size_t count,
                                ncclDataType_t type) {
    struct lesson_self self = lesson_self();
    char mine[LESSON_CELLS * LESSON_WIDTH];
    int row = LESSON_WIDTH * (int)lesson_cells(mine, values, count, type);
    char *all = (char *)lesson_malloc((size_t)row * (size_t)self.nranks);
    CHECK_MPI(MPI_Gather(mine, row, MPI_CHAR, all, row, MPI_CHAR, 0, MPI_COMM_WORLD));
    if (self.rank == 0)
        lesson_draw(title, all, count, self.nranks);
    free(all);
}

/* Prints one line of text for each rank, in rank order. All ranks must call it. */
static inline void lesson_print_in_order(const char *line) {
    struct lesson_self self = lesson_self();
    int longest, length = (int)strlen(line) + 1;
    CHECK_MPI(MPI_Allreduce(&length, &longest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    char *mine = (char *)lesson_malloc((size_t)longest);
    char *all = (char *)lesson_malloc((size_t)longest * (size_t)self.nranks);
    memcpy(mine, line, (size_t)length);
    CHECK_MPI(
        MPI_Gather(mine, longest, MPI_CHAR, all, longest, MPI_CHAR, 0, MPI_COMM_WORLD));
    for (int r = 0; self.rank == 0 && r < self.nranks; r++)
        printf("%s\n", all + (size_t)r * (size_t)longest);
    fflush(stdout);
    free(all);
    free(mine);
}

#endif
