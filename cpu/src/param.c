/*
 * param.c has what can be asked of NCCL's settings, and the calls that change some.
 * NCCL User Guide, "NCCL Parameter API". A setting is what its environment variable says;
 * those of the real NCCL's network and kernels have no effect here.
 */
#include "calls.h"

#include <strings.h>

enum kind { I32, I64, U32, BOOL, STRING };

static const struct param {
    const char *key;
    enum kind kind;
    int64_t value; // unless the environment says another one
    const char *text;
    bool hidden; // listed with NCCL_PARAM_DUMP_ALL only
} params[] = {
    {"NCCL_DEBUG", STRING, 0, NULL, false},
    {"NCCL_DEBUG_SUBSYS", STRING, 0, NULL, false},
    {"NCCL_DEBUG_FILE", STRING, 0, NULL, false},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", STRING, 0, "[%F %T] ", false},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", U32, 4, NULL, false},
    {"NCCL_COMM_ID", STRING, 0, NULL, false},
    {"NCCL_MULTI_RANK_GPU_ENABLE", I64, 0, NULL, false},
    {"NCCL_IB_ROCE_VERSION_NUM", I32, 2, NULL, false},
    {"NCCL_SET_THREAD_NAME", BOOL, 0, NULL, false},
    {"NCCL_PARAM_DUMP_ALL", BOOL, 0, NULL, true},
    {"NCCL_NO_CACHE", STRING, 0, NULL, true},
};
enum { PARAMS = sizeof params / sizeof params[0] };

static bool says_yes(const char *text) {
    return strcmp(text, "1") == 0 || strcasecmp(text, "t") == 0 ||
           strcasecmp(text, "true") == 0;
}

static int64_t number_of(const struct param *param) {
    const char *text = getenv(param->key);
    if (!text || !text[0])
        return param->value;
    if (param->kind == BOOL)
        return says_yes(text);
    char *end;
    long long value = strtoll(text, &end, 0);
    return *end ? param->value : value;
}

static const char *text_of(const struct param *param, char *out, size_t bytes) {
    const char *text = getenv(param->key);
    if (param->kind == STRING)
        snprintf(out, bytes, "%s", text ? text : param->text ? param->text : "<unset>");
    else if (param->kind == BOOL)
        snprintf(out, bytes, "%s", number_of(param) ? "TRUE" : "FALSE");
    else
        snprintf(out, bytes, "%lld", (long long)number_of(param));
    return out;
}

static const struct param *param_of(const char *key) {
    for (int i = 0; key && i < PARAMS; i++)
        if (strcmp(params[i].key, key) == 0)
            return &params[i];
    return NULL;
}

static bool listed(const struct param *param) {
    return !param->hidden || number_of(param_of("NCCL_PARAM_DUMP_ALL"));
}

static ncclResult_t wrong(const char *name, const char *what) {
    return nccl_error(ncclInvalidArgument, "%s: %s", name, what);
}

ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key) {
    const struct param *param = param_of(key);
    if (!out || !param)
        return wrong(__func__, out ? "no such key" : "out is NULL");
    *out = (ncclParamHandle_t)(uintptr_t)param;
    return ncclSuccess;
}

static const struct param *bound(ncclParamHandle_t handle) {
    for (int i = 0; i < PARAMS; i++)
        if ((const void *)handle == &params[i])
            return &params[i];
    return NULL;
}

/* NCCL gives a number as the type that it has, and no other. */
#define GETTER(name, type, mine)                                                 \
    ncclResult_t name(ncclParamHandle_t handle, type *out) {                     \
        const struct param *param = bound(handle);                               \
        if (!param || !out || (int)param->kind != (mine))                        \
            return wrong(__func__, !param ? "h is no handle"                     \
                                   : !out ? "out is NULL"                        \
                                          : "the parameter is of another type"); \
        *out = (type)number_of(param);                                           \
        return ncclSuccess;                                                      \
    }
GETTER(ncclParamGetI8, int8_t, -1)
GETTER(ncclParamGetI16, int16_t, -1)
GETTER(ncclParamGetI32, int32_t, I32)
GETTER(ncclParamGetI64, int64_t, I64)
GETTER(ncclParamGetU8, uint8_t, -1)
GETTER(ncclParamGetU16, uint16_t, -1)
GETTER(ncclParamGetU32, uint32_t, U32)
GETTER(ncclParamGetU64, uint64_t, -1)

ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out) {
    static __thread char text[1024];
    const struct param *param = bound(handle);
    if (!param || !out || param->kind != STRING)
        return wrong(__func__, !param ? "h is no handle"
                               : !out ? "out is NULL"
                                      : "the parameter is of another type");
    *out = text_of(param, text, sizeof text);
    return ncclSuccess;
}

static int bytes_of(const struct param *param, void *value) {
    switch (param->kind) {
    case I32:
    case U32: *(int32_t *)value = (int32_t)number_of(param); return 4;
    case BOOL: *(bool *)value = number_of(param); return 1;
    case STRING: *(const char **)value = getenv(param->key); return sizeof(char *);
    default: *(int64_t *)value = number_of(param); return 8;
    }
}

ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int room, int *length) {
    const struct param *param = bound(handle);
    union {
        int64_t number;
        const char *text;
    } value;
    if (!param || !out || !length)
        return wrong(__func__, param ? "out or len is NULL" : "h is no handle");
    *length = bytes_of(param, &value);
    if (*length > room)
        return wrong(__func__, "maxLen is too small");
    memcpy(out, &value, (size_t)*length);
    return ncclSuccess;
}

ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *length) {
    static __thread char text[1024];
    const struct param *param = param_of(key);
    if (!value || !length)
        return wrong(__func__, "value or valueLen is NULL");
    *value = param ? text_of(param, text, sizeof text) : NULL;
    *length = param ? (int)strlen(text) : 0;
    return param ? ncclSuccess : wrong(__func__, "no such key");
}

ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *length) {
    static __thread const char *keys[PARAMS];
    if (!table || !length)
        return wrong(__func__, "table or tableLen is NULL");
    *length = 0;
    for (int i = 0; i < PARAMS; i++)
        if (listed(&params[i]))
            keys[(*length)++] = params[i].key;
    *table = keys;
    return ncclSuccess;
}

void ncclParamDumpAll(void) {
    char text[1024];
    for (int i = 0; i < PARAMS; i++)
        if (listed(&params[i]))
            printf("%s=%s\n", params[i].key, text_of(&params[i], text, sizeof text));
}

/* MPI carries the data here, and whether it encrypts is not for us to say. */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config) {
    NCCL_CALL;
    if (!config || config->magic != NCCL_API_MAGIC)
        return wrong(__func__,
                     config ? "config was not set to NCCL_ENCRYPTION_CONFIG_INITIALIZER"
                            : "config is NULL");
    if (config->mode != NCCL_ENCRYPTION_MODE_NONE &&
        config->mode != NCCL_ENCRYPTION_MODE_PSK)
        return wrong(__func__, "config.mode is unknown");
    if (config->mode == NCCL_ENCRYPTION_MODE_PSK && !config->psk)
        return wrong(__func__, "config.psk is NULL");
    if (config->mode == NCCL_ENCRYPTION_MODE_PSK)
        fprintf(stderr, "CPU build: ncclSetEncryption has no effect here: MPI carries the"
                        " data.\n");
    return ncclSuccess;
}

/* NCCL_DEBUG has no effect here. */
#undef ncclResetDebugInit
#pragma GCC visibility push(default)
void ncclResetDebugInit(void);
#pragma GCC visibility pop
void ncclResetDebugInit(void) {
}
