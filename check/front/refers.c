/*
 * refers.c: whether a program names a function at all. Who never does will not call it.
 *
 * A function of a shared library is named in the relocations of who uses it (System V
 * ABI, "Dynamic Linking"). One that is linked into the program is there as a distance
 * from the instruction behind the call, in the program's code.
 */
#define _GNU_SOURCE
#include "refers.h"

#include "front.h"

#include <link.h>
#include <string.h>

struct search {
    const char *name;
    uint64_t address;
    bool found;
};

/* --- In relocations ---------------------------------------------------------------- */

static bool in_table(const struct search *search, const ElfW(Rela) * rela, size_t bytes,
                     const ElfW(Sym) * symbols, const char *names) {
    for (size_t i = 0; rela && i < bytes / sizeof *rela; i++) {
        size_t symbol = ELF64_R_SYM(rela[i].r_info);
        if (symbol && strcmp(names + symbols[symbol].st_name, search->name) == 0)
            return true;
    }
    return false;
}

/* (The loader has turned the addresses of a library's dynamic section into real ones;
 * those of the system's own, which is no file, it has not.) */
static bool relocated(const struct dl_phdr_info *object, const ElfW(Dyn) * dynamic,
                      const struct search *search) {
    const ElfW(Rela) *plt = NULL, *data = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    size_t plt_bytes = 0, data_bytes = 0;
    for (; dynamic->d_tag != DT_NULL; dynamic++) {
        const void *at = (const void *)(uintptr_t)dynamic->d_un.d_ptr;
        switch (dynamic->d_tag) {
        case DT_JMPREL: plt = at; break;
        case DT_RELA: data = at; break;
        case DT_SYMTAB: symbols = at; break;
        case DT_STRTAB: names = at; break;
        case DT_PLTRELSZ: plt_bytes = dynamic->d_un.d_val; break;
        case DT_RELASZ: data_bytes = dynamic->d_un.d_val; break;
        }
    }
    if (!symbols || !names || (uintptr_t)names < object->dlpi_addr)
        return false;
    return in_table(search, plt, plt_bytes, symbols, names) ||
           in_table(search, data, data_bytes, symbols, names);
}

/* --- In code ------------------------------------------------------------------------ */

#ifdef FRONT_LINKED
#if defined __x86_64__
/* Whether an instruction ends here in a distance of four bytes: a call, a jump, a jump on
 * a condition, the taking of an address (Intel 64 manual, volume 2: CALL, JMP, Jcc, LEA
 * with RIP-relative addressing). Any four bytes may look like the distance, among some
 * hundred thousand, and constants stand beside the code. */
static bool takes_distance(const unsigned char *end, size_t before) {
    return (before >= 1 && (end[-1] == 0xe8 || end[-1] == 0xe9)) ||
           (before >= 2 && end[-2] == 0x0f && (end[-1] & 0xf0) == 0x80) ||
           (before >= 3 && (end[-3] & 0xf8) == 0x48 && end[-2] == 0x8d &&
            (end[-1] & 0xc7) == 0x05);
}
#endif

static bool coded(const unsigned char *code, size_t bytes, const struct search *search) {
#if defined __x86_64__
    for (size_t i = 0; i + 4 <= bytes; i++) {
        int32_t distance;
        memcpy(&distance, code + i, sizeof distance);
        if ((uint64_t)(uintptr_t)(code + i + 4) + (uint64_t)(int64_t)distance ==
                search->address &&
            takes_distance(code + i, i))
            return true;
    }
    return false;
#else
    (void)code;
    (void)bytes;
    (void)search;
    return true;
#endif
}
#endif

static int look(struct dl_phdr_info *object, size_t size, void *data) {
    struct search *search = data;
    bool linked = false; // the function lies in this object
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uint64_t start = object->dlpi_addr + part->p_vaddr;
        linked |= part->p_type == PT_LOAD && search->address >= start &&
                  search->address < start + part->p_memsz;
    }
    for (int i = 0; i < object->dlpi_phnum && !search->found; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        const void *at = (const void *)(uintptr_t)(object->dlpi_addr + part->p_vaddr);
        if (part->p_type == PT_DYNAMIC && !linked)
            search->found = relocated(object, at, search);
#ifdef FRONT_LINKED
        else if (part->p_type == PT_LOAD && (part->p_flags & PF_X) && linked)
            search->found = coded(at, part->p_filesz, search);
#endif
    }
    return search->found;
}

bool refers_to(const char *name, const void *address) {
    struct search search = {.name = name, .address = (uint64_t)(uintptr_t)address};
    dl_iterate_phdr(look, &search);
    return search.found;
}
