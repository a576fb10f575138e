/*
 * memory.c has the allocations, each mapped twice.
 *
 * The program sees device memory at an address that it cannot read or write, as on a GPU.
 * The bytes lie at another address, the shadow, which only this library knows. Pinned and
 * managed memory has both addresses for the same bytes.
 *
 * Small allocations share an arena: a process may have some 65,000 mappings only.
 *
 * What other processes may open lies in a file without a name, mapped where the shadow
 * was before; in an arena over the pages that are the allocation's own.
 */
#define _GNU_SOURCE
#include "cuda/memory.h"
#include "standin.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct memory **table; // sorted by user address
static size_t used, capacity;

enum { SMALL = 1 << 20 };     // bytes, up to which an allocation is put into an arena
enum { HUGE_PAGE = 4 << 20 }; // from here on large pages are asked for: two of them
enum { NEAR = 1 << 30 };      // what is further away is another matter
enum { FILLED = 64 << 20 };   // of fresh memory; the rest takes no time until it is used

static size_t position_of(const char *address) {
    size_t low = 0, high = used;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle]->user <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low; // of the first allocation that starts after address
}

struct memory *memory_find(const void *address) {
    size_t i = position_of(address);
    if (i == 0 || (const char *)address >= table[i - 1]->user + table[i - 1]->mapped ||
        table[i - 1]->freed)
        return NULL;
    return table[i - 1];
}

struct memory *memory_range(const void *start, size_t bytes) {
    struct memory *memory = memory_find(start);
    if (!memory)
        return NULL;
    size_t offset = (size_t)((const char *)start - memory->user);
    return offset <= memory->bytes && bytes <= memory->bytes - offset ? memory : NULL;
}

void *shadow(const void *address) {
    struct memory *memory = memory_find(address);
    return memory ? memory->shadow + ((const char *)address - memory->user)
                  : (void *)(uintptr_t)address;
}

/* --- Mapping ---------------------------------------------------------------------- */

struct mapping {
    char *user, *shadow;
    int file; // that both map; -1: none
};

/* Memory that is there when it is first touched. */
static const int apart = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/* All addresses lie in one stretch, and their shadows in one as long that follows it: so
 * a kernel, which follows any pointer, needs one addition to find the bytes. */
uint64_t standin_reach_start, standin_reach_size;
static size_t reach_next;
static struct hole { // given back
    size_t at, bytes;
} * holes;
static size_t nholes;

static char *address_at(size_t offset) {
    return (char *)(uintptr_t)(standin_reach_start + offset);
}

static void reserve(void) {
    for (int bits = 43; bits >= 32; bits--) {
        size_t size = (size_t)1 << bits;
        void *start = mmap(NULL, 2 * size, PROT_NONE, apart, -1, 0);
        if (start == MAP_FAILED)
            continue;
        standin_reach_start = (uintptr_t)start;
        standin_reach_size = size;
        return;
    }
    fail("no room for the addresses of device memory");
}

/* Addresses are given in turn, and a page between two is nobody's. */
static char *take_addresses(size_t bytes) {
    size_t room = bytes + (size_t)sysconf(_SC_PAGESIZE);
    if (standin_reach_size == 0)
        reserve();
    if (room <= standin_reach_size - reach_next) {
        reach_next += room;
        return address_at(reach_next - room);
    }
    for (size_t i = 0; i < nholes; i++)
        if (holes[i].bytes >= room) {
            holes[i].bytes -= room;
            return address_at(holes[i].at + holes[i].bytes);
        }
    return NULL;
}

static void give_addresses(char *user, size_t bytes) {
    size_t room = bytes + (size_t)sysconf(_SC_PAGESIZE);
    if (mmap(user, bytes, PROT_NONE, apart | MAP_FIXED, -1, 0) == MAP_FAILED ||
        mmap(user + standin_reach_size, bytes, PROT_NONE, apart | MAP_FIXED, -1, 0) ==
            MAP_FAILED)
        return; // never to be used again
    holes = base_grow(holes, (nholes + 1) * sizeof *holes);
    holes[nholes++] =
        (struct hole){(size_t)((uintptr_t)user - standin_reach_start), room};
}

static bool map_at(void *address, size_t bytes, int protection, int flags, int file) {
    return mmap(address, bytes, protection, flags | MAP_FIXED, file, 0) != MAP_FAILED;
}

static bool map(struct mapping *out, size_t bytes, bool host_too) {
    const int both = PROT_READ | PROT_WRITE;
    char *user = take_addresses(bytes);
    char *inner = user ? user + standin_reach_size : NULL;
    int file = -1;
    bool there = false;
    if (user && !host_too) {
        // The host may touch nothing there: an address without memory is enough.
        there = map_at(inner, bytes, both, apart, -1);
    } else if (user && (file = memfd_create("nccl-cpu", MFD_CLOEXEC)) >= 0 &&
               ftruncate(file, (off_t)bytes) == 0) {
        there = map_at(user, bytes, both, MAP_SHARED, file) &&
                map_at(inner, bytes, both, MAP_SHARED, file);
    }
    *out = (struct mapping){user, inner, file};
    if (there)
        return true;
    if (user)
        give_addresses(user, bytes);
    if (file >= 0)
        close(file);
    return false;
}

/* Arenas of device memory and of memory that the host uses too. Addresses are given in
 * turn, so that one that was freed is not soon another allocation's. */
struct arena {
    struct mapping map;
    size_t bytes, next;
    bool host_too;
};
static struct arena *arenas;
static int narenas;
static const size_t arena_sizes[] = {(size_t)16 << 30, (size_t)1 << 30, 64 << 20};

static bool make_arena(bool host_too) {
    struct arena arena = {.host_too = host_too};
    for (size_t i = 0; i < sizeof arena_sizes / sizeof *arena_sizes; i++) {
        arena.bytes = arena_sizes[i];
        if (map(&arena.map, arena.bytes, host_too)) {
            arenas = base_grow(arenas, (size_t)(narenas + 1) * sizeof *arenas);
            arenas[narenas++] = arena;
            return true;
        }
    }
    return false;
}

/* A gap of `bytes` between `from` and `to` of the arena; NULL: there is none. */
static char *gap_in(const struct arena *arena, size_t from, size_t to, size_t bytes) {
    char *at = arena->map.user + from, *end = arena->map.user + to;
    size_t i = position_of(at);
    if (i > 0 && table[i - 1]->user + table[i - 1]->mapped > at)
        at = table[i - 1]->user + table[i - 1]->mapped;
    for (; i < used && table[i]->user < end; i++) {
        if ((size_t)(table[i]->user - at) >= bytes)
            return at;
        at = table[i]->user + table[i]->mapped;
    }
    return at <= end && (size_t)(end - at) >= bytes ? at : NULL;
}

static bool find_room(size_t mapped, bool host_too, struct mapping *out, int *number) {
    for (int turn = 0; turn < 2; turn++) {
        for (int a = 0; a < narenas; a++) {
            struct arena *arena = &arenas[a];
            if (arena->host_too != host_too)
                continue;
            char *at = gap_in(arena, arena->next, arena->bytes, mapped);
            if (!at)
                at = gap_in(arena, 0, arena->bytes, mapped);
            if (!at)
                continue;
            size_t offset = (size_t)(at - arena->map.user);
            arena->next = offset + mapped;
            *out = (struct mapping){at, arena->map.shadow + offset, arena->map.file};
            *number = a;
            return true;
        }
        if (turn == 0 && !make_arena(host_too))
            break;
    }
    return false;
}

/* An arena is room: what of it is used is locked when it is. Without this, 16 GiB of it
 * would be filled at once. mlockall(2), MCL_ONFAULT. */
__attribute__((visibility("default"))) int mlockall(int flags) {
    return (int)syscall(SYS_mlockall, flags ? flags | MCL_ONFAULT : 0);
}

/* What the allocations of each device take. */
static size_t *device_bytes;
static int ndevices;

static size_t in_pages(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static void count(const struct memory *memory, bool comes) {
    if (memory->kind == MEMORY_PINNED || memory->opened)
        return; // another's are counted there
    while (ndevices <= memory->device) {
        device_bytes =
            base_grow(device_bytes, (size_t)(ndevices + 1) * sizeof *device_bytes);
        device_bytes[ndevices++] = 0;
    }
    size_t bytes = in_pages(memory->bytes);
    device_bytes[memory->device] += comes ? bytes : -bytes;
}

/* Behind what the host may write lie some bytes that nobody is to write. */
enum { BEHIND = 64, UNTOUCHED = 0xa5 };

size_t standin_written_behind(const void *pointer) {
    LOCKED;
    const struct memory *memory = memory_find(pointer);
    if (!memory || memory->kind == MEMORY_DEVICE)
        return 0;
    for (size_t i = memory->bytes; i < memory->mapped; i++)
        if ((unsigned char)memory->shadow[i] != UNTOUCHED)
            return i - memory->bytes + 1;
    return 0;
}

/* --- Coming and going ------------------------------------------------------------- */

static struct memory *enter(struct memory new) {
    if (used == capacity) {
        capacity = capacity ? 2 * capacity : 64;
        table = base_grow(table, capacity * sizeof *table);
    }
    struct memory *memory = base_alloc(sizeof *memory);
    *memory = new;
    size_t at = position_of(new.user);
    memmove(table + at + 1, table + at, (used - at) * sizeof *table);
    table[at] = memory;
    used++;
    return memory;
}

void memory_fresh(struct memory *memory) {
    memset(memory->shadow, 0xff, memory->bytes < FILLED ? memory->bytes : FILLED);
}

/* With kernels each allocation has pages around it that lead nowhere, as long as there
 * are not so many. */
enum { GUARDED = 10000 };
static bool guards;
void memory_guards(void) {
    guards = true;
}

bool memory_guarded(void) {
    return guards;
}

struct memory *memory_create(size_t bytes, enum memory_kind kind, int device) {
    bool host_too = kind != MEMORY_DEVICE;
    size_t mapped = in_pages(host_too ? bytes + BEHIND : bytes);
    struct mapping place;
    int arena = -1;
    if (mapped < bytes || (mapped > SMALL || (guards && used < GUARDED) ||
                           !find_room(mapped, host_too, &place, &arena))) {
        if (mapped < bytes || !map(&place, mapped, host_too))
            return NULL;
        if (place.file >= 0)
            close(place.file);
        // Large pages, where there is room for some: MPI moves them much faster.
        if (!host_too && mapped >= HUGE_PAGE)
            madvise(place.shadow, mapped, MADV_HUGEPAGE);
    }
    struct memory *memory = enter((struct memory){.user = place.user,
                                                  .shadow = place.shadow,
                                                  .bytes = bytes,
                                                  .mapped = mapped,
                                                  .kind = kind,
                                                  .device = device,
                                                  .arena = arena,
                                                  .file = -1});
    count(memory, true);
    if (kind == MEMORY_DEVICE)
        memory_fresh(memory);
    else
        memset(memory->shadow + bytes, UNTOUCHED, mapped - bytes);
    return memory;
}

struct memory *memory_register(void *start, size_t bytes, int device) {
    size_t next = position_of(start);
    if (memory_find(start) || (next < used && table[next]->user < (char *)start + bytes))
        return NULL;
    return enter((struct memory){.user = start,
                                 .shadow = start,
                                 .bytes = bytes,
                                 .mapped = bytes,
                                 .kind = MEMORY_PINNED,
                                 .device = device,
                                 .registered = true,
                                 .arena = -1,
                                 .file = -1});
}

struct memory *memory_variable(void *address, size_t bytes, int device) {
    struct memory *memory = memory_find(address);
    if (!memory && (memory = memory_register(address, bytes, device)))
        memory->kind = MEMORY_DEVICE;
    return memory;
}

static void unmap(struct memory *memory) {
    size_t at = position_of(memory->user) - 1;
    memmove(table + at, table + at + 1, (used - at - 1) * sizeof *table);
    used--;
    if (memory->registered) {
        free(memory);
        return;
    }
    count(memory, false);
    if (memory->arena < 0) {
        give_addresses(memory->user, memory->mapped);
    } else if (arenas[memory->arena].host_too) {
        const struct arena *arena = &arenas[memory->arena];
        fallocate(arena->map.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  memory->user - arena->map.user, (off_t)memory->mapped);
    } else if (!memory->moved) {
        madvise(memory->shadow, memory->mapped, MADV_DONTNEED);
    } else if (mmap(memory->shadow, memory->mapped, PROT_READ | PROT_WRITE,
                    apart | MAP_FIXED, -1, 0) == MAP_FAILED) {
        fail("no room to take memory back that other processes could open");
    }
    free(memory);
}

void memory_destroy(struct memory *memory) {
    memory->freed = true;
    // A process that has opened it keeps the file; nobody else can open it any more.
    if (memory->file >= 0)
        close(memory->file);
    memory->file = -1;
    if (memory->pins == 0)
        unmap(memory);
}

void memory_pin(struct memory *memory) {
    memory->pins++;
}

void memory_unpin(struct memory *memory) {
    if (--memory->pins == 0 && memory->freed)
        unmap(memory);
}

/* --- Other processes -------------------------------------------------------------- */

/* The address stays, so what is under way is not disturbed: whoever reads the bytes
 * meanwhile finds them here or there. */
bool memory_share(struct memory *memory) {
    size_t bytes = memory->mapped, at = 0;
    int file = memfd_create("nccl-cpu-shared", MFD_CLOEXEC);
    if (file < 0)
        return false;
    bool there = ftruncate(file, (off_t)bytes) == 0;
    while (there && at < bytes) {
        ssize_t written = pwrite(file, memory->shadow + at, bytes - at, (off_t)at);
        there = written > 0;
        at += there ? (size_t)written : 0;
    }
    if (!there || mmap(memory->shadow, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        close(file);
        return false;
    }
    if (bytes >= HUGE_PAGE)
        madvise(memory->shadow, bytes, MADV_HUGEPAGE);
    memory->moved = true;
    memory->file = file;
    return true;
}

struct memory *memory_open(int file, size_t bytes, int device, uint64_t key) {
    size_t mapped = in_pages(bytes);
    char *user = take_addresses(mapped);
    char *inner = user ? user + standin_reach_size : NULL;
    if (user && map_at(inner, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file))
        return enter((struct memory){.user = user,
                                     .shadow = inner,
                                     .bytes = bytes,
                                     .mapped = mapped,
                                     .kind = MEMORY_DEVICE,
                                     .device = device,
                                     .arena = -1,
                                     .file = -1,
                                     .opened = 1,
                                     .key = key});
    if (user)
        give_addresses(user, mapped);
    return NULL;
}

struct memory *memory_opened(uint64_t key, int device) {
    for (size_t i = 0; i < used; i++)
        if (table[i]->opened && !table[i]->freed && table[i]->key == key &&
            table[i]->device == device)
            return table[i];
    return NULL;
}

/* --- Kernels ---------------------------------------------------------------------- */

const char *memory_user_address(const char *address) {
    // Also a little before the first buffer, where the program has none.
    return (uintptr_t)address - standin_reach_start - standin_reach_size + NEAR <
                   standin_reach_size
               ? address - standin_reach_size
               : address;
}

struct memory *memory_near(const char *address) {
    size_t i = position_of(address);
    const struct memory *before = i > 0 ? table[i - 1] : NULL;
    const struct memory *after = i < used ? table[i] : NULL;
    size_t past = before ? (size_t)(address - before->user) - before->bytes : SIZE_MAX;
    size_t short_of = after ? (size_t)(after->user - address) : SIZE_MAX;
    if (past > NEAR && short_of > NEAR)
        return NULL;
    return table[past <= short_of ? i - 1 : i];
}

bool memory_was_freed(const char *address) {
    size_t at = (size_t)((uintptr_t)address - standin_reach_start), i = 0;
    while (i < nholes && at - holes[i].at >= holes[i].bytes)
        i++;
    return i < nholes;
}

/* --- All of a kind ---------------------------------------------------------------- */

size_t memory_used(int device) {
    return device < ndevices ? device_bytes[device] : 0;
}

void memory_reset_device(int device) {
    for (size_t i = used; i > 0; i--)
        if (table[i - 1]->device == device && table[i - 1]->kind != MEMORY_PINNED &&
            !table[i - 1]->freed)
            memory_destroy(table[i - 1]);
}
