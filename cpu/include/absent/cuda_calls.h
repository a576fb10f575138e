/*
 * cuda_calls.h: calls and types of CUDA that are not here.
 *
 * The CPU build has what the course and other programs use. A program that calls one of
 * these is told so by the compiler, with its name. cpu/README.md says what is there.
 */
#include "absent.h"

// clang-format off
#pragma GCC system_header
/* Arrays, textures, surfaces, pools and memory of other libraries */
CPU_ABSENT_TYPE(cudaArray_t) CPU_ABSENT_TYPE(cudaMipmappedArray_t) CPU_ABSENT_TYPE(cudaTextureObject_t)
CPU_ABSENT_TYPE(cudaSurfaceObject_t) CPU_ABSENT_TYPE(cudaMemPool_t) CPU_ABSENT_TYPE(cudaMemPoolProps)
CPU_ABSENT_TYPE(cudaExternalMemory_t) CPU_ABSENT_TYPE(cudaMemLocation) CPU_ABSENT(cudaMallocArray)
/* Graphs put together node by node, changed, or asked about */
CPU_ABSENT_TYPE(cudaGraphExecUpdateResultInfo) CPU_ABSENT_TYPE(cudaUserObject_t) CPU_ABSENT_TYPE(cudaKernelNodeParams)
CPU_ABSENT(cudaGraphCreate) CPU_ABSENT(cudaGraphClone) CPU_ABSENT(cudaGraphAddEmptyNode)
CPU_ABSENT(cudaGraphAddMemcpyNode) CPU_ABSENT(cudaGraphAddMemcpyNode1D) CPU_ABSENT(cudaGraphAddMemsetNode)
CPU_ABSENT(cudaGraphAddHostNode) CPU_ABSENT(cudaGraphAddEventRecordNode) CPU_ABSENT(cudaGraphAddEventWaitNode)
CPU_ABSENT(cudaGraphAddChildGraphNode) CPU_ABSENT(cudaGraphAddDependencies) CPU_ABSENT(cudaGraphGetNodes)
CPU_ABSENT(cudaGraphGetRootNodes) CPU_ABSENT(cudaGraphNodeGetType) CPU_ABSENT(cudaGraphExecUpdate)
CPU_ABSENT(cudaUserObjectCreate) CPU_ABSENT(cudaUserObjectRetain) CPU_ABSENT(cudaUserObjectRelease)
CPU_ABSENT(cudaGraphRetainUserObject) CPU_ABSENT(cudaGraphReleaseUserObject) CPU_ABSENT(cudaStreamGetCaptureInfo)
CPU_ABSENT(cudaStreamGetCaptureInfo_v2) CPU_ABSENT(cudaThreadExchangeStreamCaptureMode)
CPU_ABSENT(cudaGraphAddKernelNode)
/* Memory pools, and advice about managed memory */
CPU_ABSENT(cudaDeviceGetDefaultMemPool) CPU_ABSENT(cudaDeviceGetMemPool) CPU_ABSENT(cudaDeviceSetMemPool)
CPU_ABSENT(cudaMemPoolCreate) CPU_ABSENT(cudaMemPoolDestroy) CPU_ABSENT(cudaMemPoolSetAttribute)
CPU_ABSENT(cudaMemPoolGetAttribute) CPU_ABSENT(cudaMemPoolTrimTo) CPU_ABSENT(cudaMemPoolSetAccess)
CPU_ABSENT(cudaMemPoolGetAccess) CPU_ABSENT(cudaMallocFromPoolAsync) CPU_ABSENT(cudaMemPrefetchAsync)
CPU_ABSENT(cudaMemAdvise) CPU_ABSENT(cudaMemPoolAttrReleaseThreshold)
/* Three dimensions */
CPU_ABSENT_TYPE(cudaExtent) CPU_ABSENT_TYPE(cudaPitchedPtr) CPU_ABSENT_TYPE(cudaMemcpy3DParms)
CPU_ABSENT(cudaMalloc3D) CPU_ABSENT(cudaMemcpy3D) CPU_ABSENT(cudaMemcpy3DAsync) CPU_ABSENT(cudaMemset3D)
CPU_ABSENT(cudaMemset3DAsync)
/* Events of several processes, or recorded by each launch of a graph */
CPU_ABSENT_TYPE(cudaIpcEventHandle_t) CPU_ABSENT(cudaIpcGetEventHandle) CPU_ABSENT(cudaIpcOpenEventHandle)
CPU_ABSENT(cudaEventRecordWithFlags)
/* Settings and questions */
CPU_ABSENT(cudaInitDevice) CPU_ABSENT(cudaChooseDevice) CPU_ABSENT(cudaDeviceSetCacheConfig)
CPU_ABSENT(cudaDeviceGetCacheConfig) CPU_ABSENT(cudaHostGetFlags) CPU_ABSENT(cudaGetDeviceFlags)
CPU_ABSENT(cudaDeviceSetLimit) CPU_ABSENT(cudaDeviceGetLimit) CPU_ABSENT(cudaStreamAddCallback)
CPU_ABSENT(cudaStreamGetDevice) CPU_ABSENT(cudaStreamGetId)
/* The driver */
CPU_ABSENT(cuInit) CPU_ABSENT(cuDriverGetVersion) CPU_ABSENT(cuGetErrorString) CPU_ABSENT(cuDeviceGetCount)
CPU_ABSENT(cuDeviceGet) CPU_ABSENT(cuDeviceGetName) CPU_ABSENT(cuDeviceGetAttribute) CPU_ABSENT(cuCtxGetCurrent)
CPU_ABSENT(cuCtxSetCurrent) CPU_ABSENT(cuCtxGetDevice) CPU_ABSENT(cuDevicePrimaryCtxRetain)
CPU_ABSENT(cuDevicePrimaryCtxRelease) CPU_ABSENT(cuMemGetAddressRange) CPU_ABSENT(cudaGetDriverEntryPoint)
CPU_ABSENT(cudaGetDriverEntryPointByVersion)
/* Questions about kernels: those that cpu-nvcc compiles have them. */
#ifndef __CUDACC__
CPU_ABSENT_TYPE(cudaFuncAttributes) CPU_ABSENT(cudaFuncGetAttributes)
CPU_ABSENT(cudaOccupancyMaxActiveBlocksPerMultiprocessor) CPU_ABSENT(cudaOccupancyMaxPotentialBlockSize)
#endif
