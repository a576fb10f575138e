/*
 * nvToolsExt.h of the CPU build: ranges and marks for Nsight Systems, of which nothing
 * becomes anything here. NVIDIA Tools Extension Library (NVTX), version 3.
 */
#ifndef NVTOOLSEXT_H_CPU_3
#define NVTOOLSEXT_H_CPU_3

#include <stddef.h>
#include <stdint.h>

#define NVTX_VERSION 3
#define NVTX_CPU __attribute__((unused)) static inline

enum { NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1 };
enum { NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1 };
enum {
    NVTX_PAYLOAD_UNKNOWN = 0,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1,
    NVTX_PAYLOAD_TYPE_INT64 = 2,
    NVTX_PAYLOAD_TYPE_DOUBLE = 3,
    NVTX_PAYLOAD_TYPE_UNSIGNED_INT32 = 4,
    NVTX_PAYLOAD_TYPE_INT32 = 5,
    NVTX_PAYLOAD_TYPE_FLOAT = 6
};

typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration_st *nvtxDomainHandle_t;
typedef struct nvtxStringRegistration_st *nvtxStringHandle_t;
typedef union {
    const char *ascii;
    const wchar_t *unicode;
    nvtxStringHandle_t registered;
} nvtxMessageValue_t;

typedef struct {
    uint16_t version, size;
    uint32_t category;
    int32_t colorType;
    uint32_t color;
    int32_t payloadType, reserved0;
    union payload_t {
        uint64_t ullValue;
        int64_t llValue;
        double dValue;
        uint32_t uiValue;
        int32_t iValue;
        float fValue;
    } payload;
    int32_t messageType;
    nvtxMessageValue_t message;
} nvtxEventAttributes_t;
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))

/* 0, where something is returned: no level of nesting, no range, no domain. */
#define NVTX_ZERO(type, name, ...)    \
    NVTX_CPU type name(__VA_ARGS__) { \
        return (type)0;               \
    }
#define NVTX_NOTHING(name, ...)       \
    NVTX_CPU void name(__VA_ARGS__) { \
    }
#define NVTX_OF(type, name) type name __attribute__((unused))
#define NVTX_EVENT NVTX_OF(const nvtxEventAttributes_t *, event)
#define NVTX_DOMAIN NVTX_OF(nvtxDomainHandle_t, domain)
#define NVTX_TEXT NVTX_OF(const char *, text)
NVTX_ZERO(int, nvtxRangePushA, NVTX_TEXT)
NVTX_ZERO(int, nvtxRangePushEx, NVTX_EVENT)
NVTX_ZERO(int, nvtxRangePop, void)
NVTX_ZERO(nvtxRangeId_t, nvtxRangeStartA, NVTX_TEXT)
NVTX_ZERO(nvtxRangeId_t, nvtxRangeStartEx, NVTX_EVENT)
NVTX_NOTHING(nvtxRangeEnd, NVTX_OF(nvtxRangeId_t, range))
NVTX_NOTHING(nvtxMarkA, NVTX_TEXT)
NVTX_NOTHING(nvtxMarkEx, NVTX_EVENT)
NVTX_NOTHING(nvtxNameOsThreadA, NVTX_OF(uint32_t, thread), NVTX_TEXT)
NVTX_NOTHING(nvtxNameCategoryA, NVTX_OF(uint32_t, category), NVTX_TEXT)
NVTX_ZERO(nvtxDomainHandle_t, nvtxDomainCreateA, NVTX_TEXT)
NVTX_NOTHING(nvtxDomainDestroy, NVTX_DOMAIN)
NVTX_ZERO(nvtxStringHandle_t, nvtxDomainRegisterStringA, NVTX_DOMAIN, NVTX_TEXT)
NVTX_ZERO(int, nvtxDomainRangePushEx, NVTX_DOMAIN, NVTX_EVENT)
NVTX_ZERO(int, nvtxDomainRangePop, NVTX_DOMAIN)
NVTX_NOTHING(nvtxDomainMarkEx, NVTX_DOMAIN, NVTX_EVENT)
#undef NVTX_ZERO
#undef NVTX_NOTHING
#undef NVTX_OF
#undef NVTX_EVENT
#undef NVTX_DOMAIN
#undef NVTX_TEXT

/* The published header leaves the choice of characters to a macro, too. */
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxMark nvtxMarkA
#define nvtxNameOsThread nvtxNameOsThreadA
#define nvtxNameCategory nvtxNameCategoryA
#define nvtxDomainCreate nvtxDomainCreateA
#undef NVTX_CPU

#endif
