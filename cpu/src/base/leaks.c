/*
 * leaks.c has what a build with AddressSanitizer (SANITIZE=1) says of memory that was
 * never freed: MPI's own is none of the program's.
 *
 * Open MPI unloads its parts at the end, and what they leave behind could then no longer
 * be told by their names; so they stay. Nor can the sanitizer see past the C library's
 * vasprintf to who called it, where that has no symbols; so it is made here.
 */
#define _GNU_SOURCE
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WITH_SANITIZER)

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEN __attribute__((visibility("default")))

SEEN const char *__lsan_default_suppressions(void);
SEEN const char *__lsan_default_suppressions(void) {
    return "leak:libmpi\n"
           "leak:libopen-\n"
           "leak:mca_\n"
           "leak:libpmix\n"
           "leak:libevent\n"
           "leak:libhwloc\n"
           "leak:libmpich\n"
           "leak:libuc\n"
           "leak:libfabric\n";
}

SEEN const char *__lsan_default_options(void);
SEEN const char *__lsan_default_options(void) {
    return "print_suppressions=0";
}

SEEN int dlclose(void *handle);
SEEN int dlclose(void *handle) {
    (void)handle;
    return 0;
}

#undef asprintf
#undef vasprintf
SEEN int vasprintf(char **text, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    *text = n < 0 ? NULL : malloc((size_t)n + 1);
    return *text ? vsnprintf(*text, (size_t)n + 1, format, arguments) : -1;
}

SEEN int asprintf(char **text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = vasprintf(text, format, arguments);
    va_end(arguments);
    return n;
}

/* What these are called where programs are compiled with -D_FORTIFY_SOURCE. */
SEEN int __vasprintf_chk(char **text, int flag, const char *format, va_list arguments);
SEEN int __vasprintf_chk(char **text, int flag, const char *format, va_list arguments) {
    (void)flag;
    return vasprintf(text, format, arguments);
}

SEEN int __asprintf_chk(char **text, int flag, const char *format, ...);
SEEN int __asprintf_chk(char **text, int flag, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int n = __vasprintf_chk(text, flag, format, arguments);
    va_end(arguments);
    return n;
}
#else
typedef int nothing; // a file of C is not empty
#endif
