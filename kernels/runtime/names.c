/*
 * names.c: a kernel in words, and what it does with its arguments, for whoever stands in
 * front of the library.
 */
#include "kernels.h"
#include "standin.h"

#include "data/comm.h"

/* libstdc++, which C++ programs have, knows what a name means. */
extern char *__cxa_demangle(const char *name, char *out, size_t *size, int *status)
    __attribute__((weak));

/* "void saxpy<float>(int, float, …)" is "saxpy<float>". */
static void shorten(char *words) {
    size_t depth = 0, end = strlen(words);
    for (size_t i = strlen(words); i > 0; i--) { // the last list of parameters
        depth += words[i - 1] == ')';
        if (words[i - 1] == '(' && --depth == 0) {
            end = i - 1;
            break;
        }
    }
    words[end] = '\0';
    if (strncmp(words, "void ", 5) == 0)
        memmove(words, words + 5, end - 4);
}

const char *kernel_words(struct kernel *kernel) {
    if (kernel->words)
        return kernel->words;
    int status = -1;
    char *words =
        __cxa_demangle ? __cxa_demangle(kernel->code->name, NULL, NULL, &status) : NULL;
    if (words)
        shorten(words);
    return kernel->words = words ? words : kernel->code->name;
}

int standin_kernel(const void *function, void **arguments, struct standin_kernel *out) {
    LOCKED;
    struct kernel *kernel = kernel_of(function);
    if (!kernel)
        return -1;
    int n = 0;
    out->name = kernel_words(kernel);
    out->elsewhere = kernel->code->flags & KERNEL_ELSEWHERE;
    for (unsigned i = 0; i < kernel->code->narguments && n < 32; i++) {
        const char use = kernel->code->uses[i];
        if (!strchr("rwRW", use))
            continue;
        const void *at = *(const void **)arguments[i];
        const struct registration *window = comm_window(at);
        out->pointers[n++] =
            window ? (struct standin_pointer){window->buffer, true, false, true}
                   : (struct standin_pointer){at, use == 'w' || use == 'W',
                                              use == 'R' || use == 'W', memory_find(at)};
    }
    return n;
}
