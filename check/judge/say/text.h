/*
 * text.h: text that grows.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdarg.h>
#include <stddef.h>

struct text {
    char *at;
    size_t used, size;
};
void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_add_list(struct text *text, const char *format, va_list arguments);
void text_out(struct text *text, char *out, size_t bytes);  // and is given up
void add_ranks(struct text *text, const int *ranks, int n); // "rank 1", "ranks 0, 1, 4"

#endif
