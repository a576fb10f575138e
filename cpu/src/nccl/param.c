/*
 * param.c has the calls about NCCL's settings. NCCL User Guide, "NCCL Parameter API".
 * None of them has an effect here: there are no parameters, and every question is
 * answered so.
 */
#include "nccl/calls.h"

#define NOT_THERE(name, ...)                                                             \
    ncclResult_t name(__VA_ARGS__) {                                                     \
        return nccl_error(ncclInvalidArgument,                                           \
                          "%s: no such key, the CPU build has no parameters", __func__); \
    }
#define GETTER(name, type) \
    NOT_THERE(name, ncclParamHandle_t handle UNUSED, type *out UNUSED)
#define UNUSED __attribute__((unused))
NOT_THERE(ncclParamBind, ncclParamHandle_t *out UNUSED, const char *key UNUSED)
GETTER(ncclParamGetI8, int8_t)
GETTER(ncclParamGetI16, int16_t)
GETTER(ncclParamGetI32, int32_t)
GETTER(ncclParamGetI64, int64_t)
GETTER(ncclParamGetU8, uint8_t)
GETTER(ncclParamGetU16, uint16_t)
GETTER(ncclParamGetU32, uint32_t)
GETTER(ncclParamGetU64, uint64_t)
GETTER(ncclParamGetStr, const char *)
NOT_THERE(ncclParamGet, ncclParamHandle_t handle UNUSED, void *out UNUSED,
          int room UNUSED, int *length UNUSED)
NOT_THERE(ncclParamGetParameter, const char *key UNUSED, const char **value UNUSED,
          int *length UNUSED)

ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *length) {
    static const char *none[1];
    if (!table || !length)
        return nccl_error(ncclInvalidArgument, "%s: table or tableLen is NULL", __func__);
    *table = none;
    *length = 0;
    return ncclSuccess;
}

void ncclParamDumpAll(void) {
}

/* MPI carries the data here, and whether it encrypts is not for us to say. */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config) {
    NCCL_CALL;
    if (!config || config->magic != NCCL_API_MAGIC)
        return nccl_error(ncclInvalidArgument, "%s: %s", __func__,
                          config
                              ? "config was not set to NCCL_ENCRYPTION_CONFIG_INITIALIZER"
                              : "config is NULL");
    if (config->mode != NCCL_ENCRYPTION_MODE_NONE &&
        config->mode != NCCL_ENCRYPTION_MODE_PSK)
        return nccl_error(ncclInvalidArgument, "%s: %s", __func__,
                          "config.mode is unknown");
    if (config->mode == NCCL_ENCRYPTION_MODE_PSK && !config->psk)
        return nccl_error(ncclInvalidArgument, "%s: %s", __func__, "config.psk is NULL");
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
