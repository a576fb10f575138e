/*
 * options.h: the command line of a lesson, and its -h.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "check.h"

#include <getopt.h>

/* One option of a lesson; a table of options ends with an empty one. Exactly one of flag,
 * number, text and names is set: it says what kind of option this is, and where the value
 * goes. */
struct lesson_option {
    const char *name;         // as it is typed: "-n", "--max"
    const char *value;        // what the help text calls its value; NULL for a flag
    const char *help;         // what it does
    bool *flag;               // becomes true
    size_t *number;           // takes a whole number, with K, M or G (of 1024) or without
    size_t usual;             // its default, if not 0
    size_t least, most;       // smallest value; largest, if not 0
    bool all;                 // the word "all" is allowed, too, and means SIZE_MAX
    const char **text;        // takes the value unchanged
    const char *const *names; // some of these, separated by commas; ends with NULL
    bool *chosen;             // with `names`: one for each
};

enum { LESSON_OPTIONS = 16 };

/* Ends every rank with the same exit code, after rank 0 has said why. */
static inline _Noreturn void lesson_leave(int exit_code) {
    fflush(NULL);
    if (lesson_mpi_runs())
        MPI_Finalize();
    exit(exit_code);
}

static inline void lesson_usage(FILE *out, const char *program,
                                const struct lesson_option *options) {
    int width = 2, length;
    fprintf(out, "usage: %s", program);
    for (const struct lesson_option *o = options; o->name; o++) {
        length = fprintf(out, " [%s%s%s]", o->name, o->value ? " " : "",
                         o->value ? o->value : "");
        width = length - 3 > width ? length - 3 : width;
    }
    fprintf(out, " [-h]\n");
    for (const struct lesson_option *o = options; o->name; o++) {
        length = fprintf(out, "  %s%s%s", o->name, o->value ? " " : "",
                         o->value ? o->value : "");
        fprintf(out, "%*s%s", width + 4 - length, "", o->help);
        for (int i = 0; o->names && o->names[i]; i++)
            fprintf(out, "%s%s", i ? ", " : "\n    ", o->names[i]);
        if (o->usual > 0)
            fprintf(out, " (default %zu)", o->usual);
        fprintf(out, "\n");
    }
    fprintf(out, "  %-*s  this text\n", width, "-h");
}

/* Rank 0 says what is wrong and prints the usage; every rank ends with exit code 2. */
static inline _Noreturn void lesson_misused(const char *program,
                                            const struct lesson_option *options,
                                            const char *problem) {
    if (lesson_self().rank == 0) {
        fprintf(stderr, "%s: %s\n", lesson_base(program), problem);
        lesson_usage(stderr, lesson_base(program), options);
    }
    lesson_leave(2);
}

/* Sets *o->number from `text`, or describes what is wrong in at most 255 characters. */
static inline void lesson_number(const struct lesson_option *o, const char *text,
                                 char *problem) {
    const long long too_large = 1LL << 50;
    const char *units = "KMG";
    char *end;
    if (o->all && strcmp(text, "all") == 0) {
        *o->number = SIZE_MAX;
        return;
    }
    errno = 0;
    long long value = strtoll(text, &end, 10);
    const char *unit = end > text && *end ? strchr(units, *end) : NULL;
    for (int i = 0; unit && i <= unit - units; i++)
        value = llabs(value) < too_large ? value * 1024 : 2 * too_large;
    if (end == text || (*end && !unit) || (unit && end[1]))
        snprintf(problem, 256, "%s %.99s is not a whole number", o->name, text);
    else if (value < (long long)o->least)
        snprintf(problem, 256, "%s %.99s is less than %zu", o->name, text, o->least);
    else if (o->most && value > (long long)o->most)
        snprintf(problem, 256, "%s %.99s is more than %zu", o->name, text, o->most);
    else if (errno == ERANGE || value > too_large)
        snprintf(problem, 256, "%s %.99s is too large", o->name, text);
    else
        *o->number = (size_t)value;
}

/* Marks the names of a list such as "broadcast,reduce". */
static inline void lesson_choose(const struct lesson_option *o, const char *text,
                                 char *problem) {
    for (const char *at = text;; at++) {
        int i = 0, length = (int)strcspn(at, ",");
        while (o->names[i] && ((int)strlen(o->names[i]) != length ||
                               strncmp(o->names[i], at, (size_t)length) != 0))
            i++;
        if (!o->names[i]) {
            snprintf(problem, 256, "%s %.*s is none of its values", o->name,
                     length < 99 ? length : 99, at);
            return;
        }
        o->chosen[i] = true;
        at += length;
        if (!*at)
            return;
    }
}

/* Reads the command line, which is the same on every rank. NULL: there is no option but
 * -h. Call it after MPI_Init, so that only rank 0 prints. Wrong usage: exit code 2. */
static inline void lesson_options(int argc, char **argv,
                                  const struct lesson_option *options) {
    static const struct lesson_option none[] = {{0}};
    options = options ? options : none;
    // getopt_long identifies an option by a number: the code of its letter, or 256 + its
    // place in the table. The colon in front keeps it silent; a colon after a letter
    // means that the option has a value.
    const struct lesson_option *known[256 + LESSON_OPTIONS] = {0};
    struct option longs[LESSON_OPTIONS + 1] = {{0}};
    char letters[2 * LESSON_OPTIONS + 3] = ":h", problem[256] = "";
    int nlongs = 0, nletters = 2, found;
    for (const struct lesson_option *o = options; o->name; o++) {
        const bool is_long = o->name[1] == '-';
        const int place = (int)(o - options);
        if (place == LESSON_OPTIONS)
            lesson_fail("more than %d options", LESSON_OPTIONS);
        known[is_long ? 256 + place : o->name[1]] = o;
        if (is_long)
            longs[nlongs++] =
                (struct option){o->name + 2, o->flag ? 0 : 1, NULL, 256 + place};
        else
            nletters +=
                snprintf(letters + nletters, 3, "%c%s", o->name[1], o->flag ? "" : ":");
        if (o->number)
            *o->number = o->usual;
    }
    while (!problem[0] && (found = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (found == 'h') {
            if (lesson_self().rank == 0)
                lesson_usage(stdout, lesson_base(argv[0]), options);
            lesson_leave(0);
        }
        const struct lesson_option *o = known[found == ':' ? optopt : found];
        if (found == '?' && optopt > 0 && optopt < 256)
            snprintf(problem, sizeof problem, "unknown option -%c", optopt);
        else if (!o)
            snprintf(problem, sizeof problem, "unknown option %.99s", argv[optind - 1]);
        else if (found == ':')
            snprintf(problem, sizeof problem, "%s needs %s", o->name,
                     o->number ? "a number" : "a value");
        else if (o->flag)
            *o->flag = true;
        else if (o->number)
            lesson_number(o, optarg, problem);
        else if (o->names)
            lesson_choose(o, optarg, problem);
        else
            *o->text = optarg;
    }
    if (!problem[0] && optind < argc)
        snprintf(problem, sizeof problem, "unknown argument %.99s", argv[optind]);
    if (problem[0])
        lesson_misused(argv[0], options, problem);
}

/* For a lesson whose only option is -n. Returns its value, or `count` if it is not given.
 *   what  what -n counts, for the help text */
static inline size_t lesson_count(int argc, char **argv, const char *what, size_t count) {
    char help[128];
    size_t usual = count;
    snprintf(help, sizeof help, "%s, at least 1", what);
    struct lesson_option options[2];
    memset(options, 0, sizeof options);
    options[0].name = "-n";
    options[0].value = "COUNT";
    options[0].help = help;
    options[0].number = &count;
    options[0].usual = usual;
    options[0].least = 1;
    lesson_options(argc, argv, options);
    return count;
}

#endif
