/*
 * glance.c: whether a program looks at what a call has returned.
 *
 * An error that a call returns may be compared, stored, passed on or printed; then the
 * program has it, and what it makes of it is its own affair. Or the next instructions
 * overwrite the register that it came in, and nobody has looked. This file reads the
 * instructions behind the call until one or the other is seen. It knows those that
 * compilers write for C and C++ on x86-64 (Intel's Software Developer's Manual, volume
 * 2); where one is not known, or the register is what the calling function returns,
 * nothing is claimed.
 */
#include "front.h"

#include <string.h>

#if defined(__x86_64__)

enum seen { NOTHING, LOOKED, DROPPED };
enum { RAX = 0, NONE = -1, MOST = 96 }; // MOST: instructions
enum { NOT_READY = 600 };               // cudaErrorNotReady, the answer to a question

struct instruction {
    const unsigned char *at; // behind what was read of it
    bool wide, rex, f3, word;
    int reg, rm;  // of its second byte: registers; rm is NONE if it is memory
    int field;    // reg without its prefix: the rest of some opcodes
    bool address; // RAX is in the address
    unsigned reg_high, index_high, base_high;
};

static int32_t number32(const unsigned char *at) {
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static void operands(struct instruction *i) {
    unsigned byte = *i->at++, mod = byte >> 6, rm = byte & 7;
    i->field = byte >> 3 & 7;
    i->reg = (int)(i->field | i->reg_high);
    if (mod == 3) {
        i->rm = (int)(rm | i->base_high);
        return;
    }
    i->rm = NONE;
    bool displaced = mod == 0 && rm == 5; // from the next instruction
    if (rm == 4) {
        unsigned scaled = *i->at++, base = scaled & 7;
        i->address = (scaled >> 3 & 7) == RAX && !i->index_high;
        displaced = mod == 0 && base == 5;
        i->address |= base == RAX && !i->base_high;
    } else {
        i->address = rm == RAX && !i->base_high;
    }
    i->at += mod == 1 ? 1 : mod == 2 || displaced ? 4 : 0;
}

/* Of an instruction that reads the one and writes the other operand, or reads both. */
static enum seen of(const struct instruction *i, bool reads_reg, bool reads_rm,
                    bool writes_reg, bool writes_rm) {
    if (i->address || (reads_reg && i->reg == RAX) || (reads_rm && i->rm == RAX))
        return LOOKED;
    return (writes_reg && i->reg == RAX) || (writes_rm && i->rm == RAX) ? DROPPED
                                                                        : NOTHING;
}

/* Bytes are parts of a register: who writes one has not overwritten the rest. Without a
 * prefix 4 is the second byte of RAX. */
static bool touches_byte(const struct instruction *i) {
    return i->address || i->reg == RAX || i->rm == RAX ||
           (!i->rex && (i->reg == 4 || i->rm == 4));
}

static enum seen behind(const unsigned char *at, int *left);

static enum seen both(const unsigned char *one, const unsigned char *other, int *left) {
    return behind(one, left) == DROPPED && behind(other, left) == DROPPED ? DROPPED
                                                                          : LOOKED;
}

/* Opcodes of two bytes. LOOKED also stands for: not known. */
static enum seen second_page(struct instruction *i, int *left) {
    unsigned opcode = *i->at++;
    if (opcode >= 0x80 && opcode <= 0x8f) // jump if
        return both(i->at + 4, i->at + 4 + number32(i->at), left);
    if (opcode == 0x0b || opcode == 0x05 || opcode == 0xa2)
        return LOOKED;
    operands(i);
    bool sse = (opcode >= 0x10 && opcode <= 0x17) || opcode == 0x28 || opcode == 0x29 ||
               opcode == 0x2e || opcode == 0x2f || (opcode >= 0x51 && opcode <= 0x6d) ||
               opcode == 0x6f || opcode == 0x7f || opcode == 0xd6 || opcode == 0xef ||
               opcode == 0x70 || opcode == 0xc6 || (opcode == 0x7e && i->f3);
    if (opcode == 0x18 || (opcode >= 0x1e && opcode <= 0x1f))
        return NOTHING; // does nothing with its operands
    if (sse) {
        i->at += opcode == 0x70 || opcode == 0xc6;
        return i->address ? LOOKED : NOTHING;
    }
    if (opcode == 0x6e || opcode == 0x2a)
        return of(i, false, true, false, false);
    if (opcode == 0x7e)
        return of(i, false, false, false, true);
    if (opcode == 0x2c || opcode == 0x2d)
        return i->address ? LOOKED : i->reg == RAX ? DROPPED : NOTHING;
    if ((opcode >= 0x40 && opcode <= 0x4f) || opcode == 0xaf) // move if; a product
        return of(i, true, true, false, false);
    if (opcode >= 0x90 && opcode <= 0x9f) { // set a byte if
        i->reg = NONE;
        return touches_byte(i) ? LOOKED : NOTHING;
    }
    if (opcode == 0xb6 || opcode == 0xbe) // from a byte
        return i->address || i->rm == RAX || (!i->rex && i->rm == 4) ? LOOKED
               : i->reg == RAX                                       ? DROPPED
                                                                     : NOTHING;
    if (opcode == 0xb7 || opcode == 0xbf)
        return of(i, false, true, true, false);
    return LOOKED;
}

/* One instruction: what it does with RAX, and behind it. */
static enum seen look(struct instruction *i, int *left) {
    for (;; i->at++) {
        unsigned prefix = *i->at;
        if (prefix == 0xf3)
            i->f3 = true;
        else if (prefix == 0x66)
            i->word = true;
        else if (prefix != 0xf2 && prefix != 0x64 && prefix != 0x65 && prefix != 0x2e &&
                 prefix != 0x3e)
            break;
    }
    if ((*i->at & 0xf0) == 0x40) {
        unsigned rex = *i->at++;
        i->rex = true;
        i->wide = rex & 8;
        i->reg_high = rex & 4 ? 8 : 0;
        i->index_high = rex & 2;
        i->base_high = rex & 1 ? 8 : 0;
    }
    unsigned opcode = *i->at++;
    int immediate = i->word ? 2 : 4;
    enum seen seen;
    if (opcode == 0x0f)
        return second_page(i, left);
    // Who only asks whether there is more to wait for takes an error for the end.
    if (opcode == 0x3d && !i->wide && !i->word && number32(i->at) == NOT_READY) {
        i->at += 4; // of EAX, a number is compared
        return NOTHING;
    }
    if (opcode < 0x40) { // arithmetic
        if ((opcode & 7) > 3)
            return LOOKED; // with RAX, or not of 64 bits
        operands(i);
        if (!(opcode & 1))
            return touches_byte(i) ? LOOKED : NOTHING;
        // A register less itself, or an exclusive or with itself, is nothing new.
        if (i->rm == i->reg && (opcode >> 3 == 5 || opcode >> 3 == 6))
            return i->reg == RAX ? DROPPED : NOTHING;
        return of(i, true, true, false, false);
    }
    bool rax = (opcode & 7) == RAX && !i->base_high; // of opcodes that have the register
    switch (opcode & 0xf8) {
    case 0x50: return rax ? LOOKED : NOTHING;  // push
    case 0x58: return rax ? DROPPED : NOTHING; // pop
    case 0xb8:                                 // a number
        i->at += i->wide ? 8 : immediate;
        return rax && !i->word ? DROPPED : NOTHING;
    }
    switch (opcode) {
    case 0x63:
    case 0x8b: operands(i); return of(i, false, true, !i->word, false);
    case 0x68: i->at += 4; return NOTHING;
    case 0x6a: i->at++; return NOTHING;
    case 0x69:
    case 0x6b:
        operands(i);
        i->at += opcode == 0x6b ? 1 : immediate;
        return of(i, false, true, true, false);
    case 0x80:
    case 0xc0:
    case 0xd0:
    case 0xd2:
    case 0xf6:
        operands(i);
        i->reg = NONE;
        if (opcode == 0xf6 && i->field > 3)
            return LOOKED; // RAX takes part
        i->at += opcode == 0x80 || opcode == 0xc0 || (opcode == 0xf6 && i->field < 2);
        return touches_byte(i) ? LOOKED : NOTHING;
    case 0x81:
    case 0x83:
    case 0xc1:
    case 0xd1:
    case 0xd3:
    case 0xf7:
        operands(i);
        if (opcode == 0xf7 && i->field > 3)
            return LOOKED;
        i->at += opcode == 0x83 || opcode == 0xc1                     ? 1
                 : opcode == 0x81 || (opcode == 0xf7 && i->field < 2) ? immediate
                                                                      : 0;
        return of(i, false, true, false, false);
    case 0x84:
    case 0x86:
    case 0x88:
    case 0x8a: operands(i); return touches_byte(i) ? LOOKED : NOTHING;
    case 0x85:
    case 0x87: operands(i); return of(i, true, true, false, false);
    case 0x89: operands(i); return of(i, true, false, false, !i->word);
    case 0x8d: operands(i); return of(i, false, false, !i->word, false);
    case 0x90: return i->base_high ? LOOKED : NOTHING;
    case 0xc6:
        operands(i);
        i->at++;
        i->reg = NONE;
        return touches_byte(i) ? LOOKED : NOTHING;
    case 0xc7:
        operands(i);
        i->at += immediate;
        return of(i, false, false, false, !i->word);
    case 0xc9: return NOTHING; // leave
    case 0xe8: return DROPPED; // a call, whose result comes in RAX
    case 0xe9: return behind(i->at + 4 + number32(i->at), left);
    case 0xeb: return behind(i->at + 1 + (signed char)*i->at, left);
    case 0xff:
        operands(i);
        seen = of(i, false, true, false, false);
        return seen != NOTHING                 ? seen
               : i->field == 2                 ? DROPPED // a call
               : i->field == 6 || i->field < 2 ? NOTHING
                                               : LOOKED;
    default:
        if (opcode >= 0x70 && opcode <= 0x7f) // jump if
            return both(i->at + 1, i->at + 1 + (signed char)*i->at, left);
        return LOOKED;
    }
}

static enum seen behind(const unsigned char *at, int *left) {
    while ((*left)-- > 0) {
        struct instruction i = {.at = at, .reg = NONE, .rm = NONE};
        enum seen seen = look(&i, left);
        if (seen != NOTHING)
            return seen;
        at = i.at;
    }
    return LOOKED;
}

bool front_drops(uint64_t site) {
    const unsigned char *at = front_address(site);
    int left = MOST;
    return at && behind(at, &left) == DROPPED;
}

#else
bool front_drops(uint64_t site) {
    (void)site;
    return false;
}
#endif
