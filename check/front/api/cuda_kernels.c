/*
 * cuda_kernels.c: launches of kernels that cpu-nvcc has compiled, on the CPU build.
 *
 * A kernel is an operation on its stream. Of each pointer among its arguments it is known
 * whether the kernel may write what it points to; and of some that their first element is
 * used, whatever the rest. Only that takes part in races: where else a kernel reads and
 * writes depends on its numbers.
 */
#include "cuda_front.h"

#if OVER_STANDIN
/* Not in the headers of C programs. */
typedef struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} configuration;
PUBLIC cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                                    void **arguments, size_t shared, cudaStream_t stream);
PUBLIC cudaError_t cudaLaunchKernelExC(const configuration *c, const void *function,
                                       void **arguments);
PUBLIC unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                            cudaStream_t stream);

/* kernel<<<…>>>(…) becomes this call, and one of a function of clang's that launches. */
static __thread uint64_t launch_site;

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream) {
    if (!NOT_THE_PROGRAM)
        launch_site = front_site(__builtin_return_address(0));
    return BELOW(__cudaPushCallConfiguration)(grid, block, shared, stream);
}

static struct judge_at launch_at(const char *call, void *returns_to) {
    const struct judge_at at = {call, launch_site ? launch_site : front_site(returns_to)};
    launch_site = 0;
    return at;
}

static void tell_kernel(struct judge *j, int stream, const struct standin_kernel *kernel,
                        int n, struct judge_at at) {
    struct judge_range ranges[sizeof kernel->pointers / sizeof *kernel->pointers];
    struct judge_memory memory;
    int used = 0;
    for (int i = 0; i < n; i++) {
        const struct standin_pointer *p = &kernel->pointers[i];
        bool found = judge_memory_find(j, p->at, &memory);
        if (found && p->write)
            judge_memory_written(j, p->at);
        if (p->at && p->first && (found || !p->known))
            ranges[used++] = (struct judge_range){p->at, 1, p->write, true};
    }
    judge_op(j, stream, ranges, used,
             kernel->meets       ? JUDGE_KERNEL_MEETS
             : kernel->elsewhere ? JUDGE_KERNEL
                                 : JUDGE_COMPUTES,
             at);
}

static struct timeline_op kernel_begins(const void *function, void **arguments,
                                        cudaStream_t stream, struct judge_at *at) {
    struct standin_kernel kernel;
    int number, n = STANDIN(kernel)(function, arguments, &kernel);
    if (n < 0)
        return (struct timeline_op){.name = "kernel", .at = *at};
    at->call = kernel.name;
    struct judge *j = front_in_stream(stream, -1, &number);
    tell_kernel(j, number, &kernel, n, *at);
    front_out();
    return (struct timeline_op){.name = kernel.name, .at = *at};
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block,
                             void **arguments, size_t shared, cudaStream_t stream) {
    FRONT_PASS(cudaLaunchKernel, function, grid, block, arguments, shared, stream);
    struct judge_at at = launch_at("cudaLaunchKernel", __builtin_return_address(0));
    const struct timeline_op op = kernel_begins(function, arguments, stream, &at);
    return answer(ON_TIMELINE(&op, stream, -1,
                              CALL(BELOW(cudaLaunchKernel), function, grid, block,
                                   arguments, shared, stream)),
                  at);
}

cudaError_t cudaLaunchKernelExC(const configuration *c, const void *function,
                                void **arguments) {
    FRONT_PASS(cudaLaunchKernelExC, c, function, arguments);
    struct judge_at at = launch_at("cudaLaunchKernelEx", __builtin_return_address(0));
    cudaStream_t stream = c ? c->stream : NULL;
    const struct timeline_op op = kernel_begins(function, arguments, stream, &at);
    return answer(ON_TIMELINE(&op, stream, -1,
                              CALL(BELOW(cudaLaunchKernelExC), c, function, arguments)),
                  at);
}
#endif
