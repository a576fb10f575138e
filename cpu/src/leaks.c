/*
 * leaks.c has what a build with AddressSanitizer (SANITIZE=1) says of memory that was
 * never freed: MPI's own is none of the program's.
 *
 * Open MPI unloads its parts at the end, and what they leave behind could then no longer
 * be told by their names; so they stay.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(WITH_SANITIZER)

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
           "leak:libfabric\n"
           // Beyond this function of the C library the sanitizer cannot see who called;
           // this library does not.
           "leak:vasprintf\n";
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
#else
typedef int nothing; // a file of C is not empty
#endif
