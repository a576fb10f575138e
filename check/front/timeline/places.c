/*
 * places.c: the lines of all calls of a timeline, with one addr2line for each file.
 */
#include "places.h"

#include "python.h"

#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sites of one file: one addr2line for all of them. Before the lines of each it prints
 * the address. */
static void look_up_all(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]) {
    enum { OPTIONS = 7, ROOM = 1024, ADDRESS = 32 };
    struct place_file name = place_file_of(sites[0]);
    char function[128], **arguments = calloc(n + OPTIONS + 1, sizeof *arguments);
    char *addresses = calloc(n, ADDRESS), *lines = malloc(n * ROOM + ROOM);
    char *const options[OPTIONS] = {"addr2line", "-a", "-C", "-f", "-i", "-e", name.path};
    if (arguments && addresses && lines) {
        memcpy(arguments, options, sizeof options);
        for (size_t i = 0; i < n; i++) {
            arguments[OPTIONS + i] = addresses + i * ADDRESS;
            snprintf(arguments[OPTIONS + i], ADDRESS, "0x%llx",
                     (unsigned long long)place_offset(sites[i]));
        }
        if (!place_ask(arguments, lines, n * ROOM + ROOM))
            lines[0] = '\0';
        char *block = strncmp(lines, "0x", 2) == 0 ? lines : NULL;
        for (size_t i = 0; i < n && block; i++) {
            char *its = strchr(block, '\n'), *next = its ? strstr(its, "\n0x") : NULL;
            if (next)
                *next = '\0';
            if (its)
                place_choose(its + 1, function, out[i]);
            if (!strchr(out[i], ':') || strstr(out[i], ":?") || strstr(out[i], ":0"))
                out[i][0] = '\0';
            block = next ? next + 1 : NULL;
        }
    }
    free(arguments);
    free(addresses);
    free(lines);
}

void places_of(const uint64_t *sites, size_t n, char (*out)[JUDGE_PLACE]) {
    memset(out, 0, n * sizeof *out);
    for (size_t first = 0, end; first < n; first = end) {
        for (end = first + 1;
             end < n && sites[end] >> FILE_SHIFT == sites[first] >> FILE_SHIFT;)
            end++;
        if (python_text(sites[first], out[first])) {
            for (size_t i = first; i < end; i++)
                python_text(sites[i], out[i]);
            continue;
        }
        look_up_all(sites + first, end - first, out + first);
    }
}
