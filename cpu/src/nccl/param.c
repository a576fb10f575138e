/*
 * param.c has what can be asked of NCCL's settings, and the calls that change some.
 * NCCL User Guide, "NCCL Parameter API". A setting is what its environment variable says,
 * and has no effect here. Keys, types and answers are those of NCCL 2.32.3, which answers
 * without a GPU, too.
 */
#include "nccl/calls.h"

#include <ctype.h>
#include <strings.h>

enum kind { TEXT, YES, LEVEL, LEVELS, SUBSYSTEMS };

static const struct param {
    const char *key;
    enum kind kind;
    const char *usual; // where the environment says nothing, or nothing that is known
    bool hidden;       // listed with NCCL_PARAM_DUMP_ALL only
} params[] = {
    {"NCCL_DEBUG_FILE", TEXT, "", false},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", TEXT, "[%F %T] ", false},
    {"NCCL_DEBUG_TIMESTAMP_LEVELS", LEVELS, "WARN,ATTN", false},
    {"NCCL_SET_THREAD_NAME", YES, "FALSE", false},
    {"NCCL_DEBUG_SUBSYS", SUBSYSTEMS, "INIT,ENV,BOOTSTRAP", false},
    {"NCCL_DEBUG_LEVELS", LEVELS, "", false},
    {"NCCL_DEBUG", LEVEL, "<unknown>", false},
    {"NCCL_PARAM_DUMP_ALL", YES, "FALSE", true},
    {"NCCL_NO_CACHE", TEXT, "", true},
    {"NCCL_WARN_ENABLE_DEBUG_INFO", YES, "FALSE", true},
};
enum { PARAMS = sizeof params / sizeof params[0] };

/* A level is a number; a set of them, or of subsystems, is one of bits. */
static const char *const levels[] = {"NONE",  "VERSION", "WARN", "INFO",
                                     "ABORT", "TRACE",   "ATTN", NULL};
static const char *const subsystems[] = {
    "INIT",    "COLL",  "P2P",     "SHM",        "NET",  "GRAPH",     "TUNING",
    "ENV",     "ALLOC", "CALL",    "PROXY",      "NVLS", "BOOTSTRAP", "REG",
    "PROFILE", "RAS",   "DESTROY", "ALLOC_HOST", NULL};

static int number_in(const char *const *names, const char *name, size_t length) {
    for (int i = 0; names[i]; i++)
        if (strncasecmp(names[i], name, length) == 0 && !names[i][length])
            return i;
    return -1;
}

/* What the text says in the parameter's terms. False: nothing that is known. */
static bool number_in_text(const struct param *param, const char *text,
                           uint64_t *number) {
    const char *const *names = param->kind == SUBSYSTEMS ? subsystems : levels;
    if (param->kind == YES) {
        *number = strcmp(text, "1") == 0 || strcasecmp(text, "t") == 0 ||
                  strcasecmp(text, "true") == 0;
        return true;
    }
    if (param->kind == LEVEL) {
        int level = number_in(names, text, strlen(text));
        *number = level > 0 ? (uint64_t)level : 0;
        return level > 0;
    }
    *number = 0;
    while (text[0]) {
        size_t length = strcspn(text, ",");
        int bit = number_in(names, text, length);
        if (length == 3 && strncasecmp(text, "ALL", 3) == 0)
            *number |= param->kind == SUBSYSTEMS ? UINT64_MAX : 0x7e;
        else if (bit < 0 || names[bit] == levels[0])
            return false;
        else
            *number |= UINT64_C(1) << bit;
        text += length + (text[length] == ',');
    }
    return true;
}

static const char *said_of(const struct param *param) {
    const char *text = getenv(param->key);
    uint64_t number;
    bool known = text && (param->kind == TEXT || number_in_text(param, text, &number));
    return known ? text : param->usual;
}

static uint64_t number_of(const struct param *param) {
    uint64_t number = 0;
    number_in_text(param, said_of(param), &number);
    return number;
}

/* Names are large there, and a set of nothing has one, too. */
static const char *text_of(const struct param *param, char *out, size_t bytes) {
    const char *said = said_of(param);
    bool none = param->kind >= LEVELS && !said[0];
    if (param->kind == YES)
        said = number_of(param) ? "TRUE" : "FALSE";
    snprintf(out, bytes, "%s", none ? "NONE" : said);
    for (char *at = out; param->kind >= LEVEL && said != param->usual && *at; at++)
        *at = (char)toupper(*at);
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
GETTER(ncclParamGetI32, int32_t, -1)
GETTER(ncclParamGetI64, int64_t, -1)
GETTER(ncclParamGetU8, uint8_t, -1)
GETTER(ncclParamGetU16, uint16_t, -1)
GETTER(ncclParamGetU32, uint32_t, LEVELS)
GETTER(ncclParamGetU64, uint64_t, SUBSYSTEMS)

ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out) {
    static __thread char text[1024];
    const struct param *param = bound(handle);
    if (!param || !out || param->kind != TEXT)
        return wrong(__func__, !param ? "h is no handle"
                               : !out ? "out is NULL"
                                      : "the parameter is of another type");
    *out = text_of(param, text, sizeof text);
    return ncclSuccess;
}

ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int room, int *length) {
    const struct param *param = bound(handle);
    char text[1024];
    if (!param || !out || !length || room < 1)
        return wrong(__func__, !param     ? "h is no handle"
                               : room < 1 ? "maxLen is less than 1"
                                          : "out or len is NULL");
    uint64_t number = number_of(param);
    text_of(param, text, sizeof text);
    int needed = param->kind == TEXT         ? (int)strlen(text) + 1
                 : param->kind == YES        ? 1
                 : param->kind == SUBSYSTEMS ? 8
                                             : 4;
    *length = needed <= room ? needed : 0;
    if (needed > room)
        return wrong(__func__, "maxLen is too small");
    memcpy(out, param->kind == TEXT ? (const void *)text : &number, (size_t)needed);
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

/* NCCL_DEBUG is read whenever a call fails. */
#undef ncclResetDebugInit
#pragma GCC visibility push(default)
void ncclResetDebugInit(void);
#pragma GCC visibility pop
void ncclResetDebugInit(void) {
}
