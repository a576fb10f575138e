/* absent.h: how a call or a type that the CPU build lacks is refused, by its name. */
#ifndef CPU_ABSENT_H
#define CPU_ABSENT_H

#if defined(__has_attribute)
#if __has_attribute(error)
#define CPU_ABSENT_REFUSED(name) \
    __attribute__((error("the CPU build has no " #name " (see cpu/README.md)")))
#endif
#if __has_attribute(unavailable)
#define CPU_ABSENT_TYPE(name)                          \
    typedef struct absent_##name *name __attribute__(( \
        unavailable("the CPU build has no " #name " (see cpu/README.md)")));
#endif
#endif
#ifndef CPU_ABSENT_TYPE
#define CPU_ABSENT_TYPE(name) /* then the compiler does not know it */
#endif
#ifndef CPU_ABSENT_REFUSED
#define CPU_ABSENT_REFUSED(name) /* then the linker says so */
#endif

/* Whatever it is called with. */
#ifdef __cplusplus
#define CPU_ABSENT(name) extern "C" int name(...) CPU_ABSENT_REFUSED(name);
#else
#define CPU_ABSENT(name) int name() CPU_ABSENT_REFUSED(name);
#endif

#endif
