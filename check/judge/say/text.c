/*
 * text.c: text that grows.
 */
#include "say/text.h"

#include "base/base.h"

#include <stdio.h>

void text_add_list(struct text *text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    size_t bytes = length > 0 ? (size_t)length : 0;
    if (text->used + bytes + 1 > text->size) {
        text->size = 2 * (text->used + bytes + 1);
        text->at = must_grow(text->at, text->size);
    }
    vsnprintf(text->at + text->used, bytes + 1, format, again);
    va_end(again);
    text->used += bytes;
}

void text_add(struct text *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_add_list(text, format, arguments);
    va_end(arguments);
}

void text_out(struct text *text, char *out, size_t bytes) {
    snprintf(out, bytes, "%s", text->at ? text->at : "");
    free(text->at);
}

void add_ranks(struct text *text, const int *ranks, int n) {
    for (int i = 0; i < n; i++)
        text_add(text, "%s%d", i > 0 ? ", " : n == 1 ? "rank " : "ranks ", ranks[i]);
}
