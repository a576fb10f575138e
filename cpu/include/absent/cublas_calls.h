/*
 * cublas_calls.h: calls of cuBLAS that are not here.
 *
 * The CPU build has what the course and other programs use. A program that calls one of
 * these is told so by the compiler, with its name. cpu/README.md says what is there.
 */
#include "absent.h"

// clang-format off
#pragma GCC system_header
/* Settings and copies */
CPU_ABSENT(cublasGetVersion) CPU_ABSENT(cublasSetWorkspace) CPU_ABSENT(cublasSetVectorAsync)
CPU_ABSENT(cublasGetVectorAsync) CPU_ABSENT(cublasSetMatrixAsync) CPU_ABSENT(cublasGetMatrixAsync)
CPU_ABSENT(cublasSetVector_64) CPU_ABSENT(cublasGetVector_64) CPU_ABSENT(cublasSetMatrix_64)
CPU_ABSENT(cublasGetMatrix_64)
/* Float */
CPU_ABSENT(cublasSasum) CPU_ABSENT(cublasSswap) CPU_ABSENT(cublasSrot) CPU_ABSENT(cublasSrotg) CPU_ABSENT(cublasSrotm)
CPU_ABSENT(cublasSrotmg) CPU_ABSENT(cublasSgemvBatched) CPU_ABSENT(cublasSgemvStridedBatched) CPU_ABSENT(cublasSger)
CPU_ABSENT(cublasSgeam) CPU_ABSENT(cublasSgemmBatched) CPU_ABSENT(cublasSgemmStridedBatched) CPU_ABSENT(cublasIsamin)
/* Double */
CPU_ABSENT(cublasDgemv) CPU_ABSENT(cublasDasum) CPU_ABSENT(cublasDswap) CPU_ABSENT(cublasDrot) CPU_ABSENT(cublasDrotg)
CPU_ABSENT(cublasDrotm) CPU_ABSENT(cublasDrotmg) CPU_ABSENT(cublasDgemvBatched) CPU_ABSENT(cublasDgemvStridedBatched)
CPU_ABSENT(cublasDger) CPU_ABSENT(cublasDgeam) CPU_ABSENT(cublasDgemmBatched) CPU_ABSENT(cublasDgemmStridedBatched)
CPU_ABSENT(cublasIdamin)
/* Half */
CPU_ABSENT(cublasHgemm) CPU_ABSENT(cublasHgemmBatched) CPU_ABSENT(cublasHgemmStridedBatched)
/* Types by name */
CPU_ABSENT(cublasAxpyEx) CPU_ABSENT(cublasScalEx) CPU_ABSENT(cublasDotEx) CPU_ABSENT(cublasDotcEx)
CPU_ABSENT(cublasNrm2Ex) CPU_ABSENT(cublasGemmBatchedEx)
/* Sizes and distances of 64 bits */
CPU_ABSENT(cublasScopy_64) CPU_ABSENT(cublasSgemm_64) CPU_ABSENT(cublasDaxpy_64) CPU_ABSENT(cublasDscal_64)
CPU_ABSENT(cublasDcopy_64) CPU_ABSENT(cublasDnrm2_64) CPU_ABSENT(cublasDgemm_64) CPU_ABSENT(cublasSdot_64)
CPU_ABSENT(cublasDdot_64) CPU_ABSENT(cublasIsamax_64) CPU_ABSENT(cublasIdamax_64)
