/*
 * modules.c: which kernels and device variables the program has.
 *
 * Clang's constructors tell of each compiled file twice: its host half by the names of
 * the CUDA runtime, its kernels by a struct kernel_module. Both have the same id.
 */
#include "kernels.h"

static struct kernel_module *modules;

static struct kernel_module *module_of(const char *id) {
    for (struct kernel_module *module = modules; module; module = module->next)
        if (strcmp(module->id, id) == 0)
            return module;
    return NULL;
}

/* What the host half has told of, until somebody asks. */
static struct told {
    const char *id, *name;
    const void *host;
    size_t bytes;
    bool variable;
    struct kernel kernel;
    struct told *next;
} * told;

static struct told *tell(void **handle, const void *host, const char *name) {
    struct told *new = base_alloc(sizeof *new);
    new->id = *(const char **)handle;
    new->name = name;
    new->host = host;
    new->next = told;
    told = new;
    return new;
}

void kernel_managed(const struct kernel_module *module, bool to_host) {
    for (size_t i = 0; i < module->nvariables; i++) {
        const struct kernel_variable *variable = &module->variables[i];
        for (struct told *at = variable->managed ? told : NULL; at; at = at->next)
            if (at->variable && strcmp(at->id, module->id) == 0 &&
                strcmp(at->name, variable->name) == 0)
                memcpy(to_host ? (void *)at->host : variable->at,
                       to_host ? variable->at : at->host, at->bytes);
    }
}

void __kernel_module(struct kernel_module *module) {
    module->next = modules;
    modules = module;
    memory_guards();
    kernel_managed(module, true); // what they begin with
}

struct wrapper { // clang's __cuda_fatbin_wrapper
    int magic, version;
    const char *id;
    const void *unused;
};

enum { STATIC_SHARED = 48 << 10 };

struct kernel *kernel_of(const void *stub) {
    struct told *at = told;
    while (at && (at->variable || at->host != stub))
        at = at->next;
    if (!at || at->kernel.code)
        return at ? &at->kernel : NULL;
    struct kernel_module *module = module_of(at->id);
    for (size_t i = 0; module && i < module->ncodes; i++)
        if (strcmp(module->codes[i].name, at->name) == 0) {
            const struct kernel_code *code = &module->codes[i];
            at->kernel = (struct kernel){.stub = stub,
                                         .code = code,
                                         .module = module,
                                         .dynamic = code->shared < STATIC_SHARED
                                                        ? STATIC_SHARED - code->shared
                                                        : 0};
        }
    return at->kernel.code ? &at->kernel : NULL;
}

#pragma GCC visibility push(default)

void **__cudaRegisterFatBinary(const void *binary) {
    const char **handle = base_alloc(sizeof *handle);
    *handle = ((const struct wrapper *)binary)->id;
    return (void **)handle;
}

void __cudaRegisterFatBinaryEnd(void **handle) {
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle) {
    (void)handle; // an operation that is still queued may need it
}

int __cudaRegisterFunction(void **handle, const void *host, char *device,
                           const char *name, int limit, void *tid, void *bid, void *bdim,
                           void *gdim, int *size) {
    (void)device, (void)limit, (void)tid, (void)bid, (void)bdim, (void)gdim, (void)size;
    tell(handle, host, name);
    return 0;
}

void __cudaRegisterVar(void **handle, const void *host, char *device, const char *name,
                       int external, size_t bytes, int constant, int global) {
    (void)device, (void)external, (void)constant, (void)global;
    struct told *new = tell(handle, host, name);
    new->bytes = bytes;
    new->variable = true;
}

/* A device variable lies in the program; its address as the program sees it leads
 * nowhere, as that of all device memory. */
cudaError_t cudaGetSymbolAddress(void **pointer, const void *symbol) {
    CUDA_CALL;
    if (!pointer)
        return cuda_error(cudaErrorInvalidValue);
    const struct told *at = told;
    while (at && (!at->variable || at->host != symbol))
        at = at->next;
    const struct kernel_module *module = at ? module_of(at->id) : NULL;
    for (size_t i = 0; module && i < module->nvariables; i++)
        if (strcmp(module->variables[i].name, at->name) == 0) {
            *pointer = module->variables[i].at;
            memory_variable(*pointer, at->bytes, device_now());
            return cudaSuccess;
        }
    return cuda_error(cudaErrorInvalidSymbol);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol) {
    CUDA_CALL;
    for (const struct told *at = told; at && bytes; at = at->next)
        if (at->variable && at->host == symbol) {
            *bytes = at->bytes;
            return cudaSuccess;
        }
    return cuda_error(cudaErrorInvalidSymbol);
}

#pragma GCC visibility pop
