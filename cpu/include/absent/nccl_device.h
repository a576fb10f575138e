/* nccl_device.h of the CPU build, for what is not compiled by cpu-nvcc: there is none. */
// clang-format off
#error "CPU build: nccl_device.h is for kernels; compile this file with kernels/cpu-nvcc"
