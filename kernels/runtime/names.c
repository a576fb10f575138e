/*
 * names.c: a kernel in words, and what it does with its arguments, for whoever stands in
 * front of the library.
 */
#include "../include/nccl_device.h"
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

/* What NCCL gave the program for its kernels; NULL: it is not that. */
static const void *handle_of(const struct kernel_code *code, unsigned i, void *argument) {
    if (code->sizes[i] == sizeof(struct ncclDevComm))
        return standin_device_comm(argument);
    const void *at = *(const void **)argument;
    return strchr("rw", code->uses[i]) && comm_is_window(at) ? standin_handle(at) : NULL;
}

int standin_kernel(const void *function, void **arguments, struct standin_kernel *out) {
    LOCKED;
    struct kernel *kernel = kernel_of(function);
    if (!kernel)
        return -1;
    const struct kernel_code *code = kernel->code;
    int n = 0;
    out->name = kernel_words(kernel);
    out->elsewhere = code->flags & KERNEL_ELSEWHERE;
    out->meets = false;
    const uint64_t first = code->first(arguments);
    for (unsigned i = 0; i < code->narguments && n < 32; i++) {
        const char use = code->uses[i];
        const void *handle = handle_of(code, i, arguments[i]);
        if (handle) {
            out->pointers[n++] = (struct standin_pointer){handle, false, true, false};
            out->meets |= code->sizes[i] == sizeof(struct ncclDevComm);
        } else if (strchr("rw", use)) {
            const void *at = *(const void **)arguments[i];
            out->pointers[n++] = (struct standin_pointer){
                at, use == 'w', i < 64 && first >> i & 1, memory_find(at)};
        }
    }
    return n;
}
