/* nccl_device.h of the CPU build: there is none. */
// clang-format off
#error "CPU build: nccl_device.h is for kernels, and device code does not run here; the calls of nccl.h do"
