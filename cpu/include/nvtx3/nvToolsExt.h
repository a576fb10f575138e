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

/* Each returns 0: no level of nesting, no range, no domain. */
#define NVTX_NOTHING(type, name, ...) \
    NVTX_CPU type name(__VA_ARGS__) { \
        return (type)0;               \
    }
NVTX_NOTHING(int, nvtxRangePushA, const char *message __attribute__((unused)))
NVTX_NOTHING(int, nvtxRangePushEx, const nvtxEventAttributes_t *e __attribute__((unused)))
NVTX_NOTHING(int, nvtxRangePop, void)
NVTX_NOTHING(nvtxRangeId_t, nvtxRangeStartA, const char *message __attribute__((unused)))
NVTX_NOTHING(nvtxRangeId_t, nvtxRangeStartEx,
             const nvtxEventAttributes_t *e __attribute__((unused)))
NVTX_NOTHING(nvtxDomainHandle_t, nvtxDomainCreateA,
             const char *name __attribute__((unused)))
NVTX_NOTHING(nvtxStringHandle_t, nvtxDomainRegisterStringA,
             nvtxDomainHandle_t domain __attribute__((unused)),
             const char *string __attribute__((unused)))
NVTX_NOTHING(int, nvtxDomainRangePushEx,
             nvtxDomainHandle_t domain __attribute__((unused)),
             const nvtxEventAttributes_t *e __attribute__((unused)))
NVTX_NOTHING(int, nvtxDomainRangePop, nvtxDomainHandle_t domain __attribute__((unused)))
#undef NVTX_NOTHING

NVTX_CPU void nvtxMarkA(const char *message) {
    (void)message;
}
NVTX_CPU void nvtxMarkEx(const nvtxEventAttributes_t *attributes) {
    (void)attributes;
}
NVTX_CPU void nvtxRangeEnd(nvtxRangeId_t range) {
    (void)range;
}
NVTX_CPU void nvtxNameOsThreadA(uint32_t thread, const char *name) {
    (void)thread;
    (void)name;
}
NVTX_CPU void nvtxNameCategoryA(uint32_t category, const char *name) {
    (void)category;
    (void)name;
}
NVTX_CPU void nvtxDomainDestroy(nvtxDomainHandle_t domain) {
    (void)domain;
}
NVTX_CPU void nvtxDomainMarkEx(nvtxDomainHandle_t domain,
                               const nvtxEventAttributes_t *e) {
    (void)domain;
    (void)e;
}

/* The published header leaves the choice of characters to a macro, too. */
#define nvtxRangePush nvtxRangePushA
#define nvtxRangeStart nvtxRangeStartA
#define nvtxMark nvtxMarkA
#define nvtxNameOsThread nvtxNameOsThreadA
#define nvtxNameCategory nvtxNameCategoryA
#define nvtxDomainCreate nvtxDomainCreateA
#undef NVTX_CPU

#endif
