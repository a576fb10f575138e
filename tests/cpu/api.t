#!/usr/bin/env bash
# The headers of the CPU build say what the published ones say: the same names, values, sizes
# and signatures, in C and in C++, and the library defines every function they declare.
# The comparison needs the CUDA Toolkit and NCCL (headers only), and is skipped without.
# shellcheck disable=SC2317  # point calls functions by name
set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
ours=$top/cpu/include
unset MAKEFLAGS MFLAGS MAKELEVEL
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

CC=${CC:-gcc}
CXX=${CXX:-g++}
source "$top/tests/lib.bash"

# --- What our headers declare ----------------------------------------------------------

names_from() {
    sed -nE "$1" "$ours"/{cuda_runtime,driver_types,library_types,nccl,cublas_v2}.h
}
names_from 's/^ +((cuda|nccl|CUBLAS_|NCCL_ENCRYPTION_)[A-Za-z0-9_]+) = .*/\1/p' >enumerators
# ncclScalarDevice and its neighbours stand on one line.
names_from 's/^typedef enum \{ (.*) \}.*/\1/p' | grep -oE '(nccl[A-Za-z0-9_]+) =' |
    sed 's/ =//' >>enumerators
names_from '/_pt(ds|sz)$/d; s/^#define ((cuda|CUDART|NCCL)[A-Za-z0-9_]+) .*/\1/p' |
    grep -vE '^(CUDART_CB|NCCL_(H_|SUFFIX|COMM_NULL|UNDEF_FLOAT|.*_INITIALIZER))$' |
    grep -vE '^(NCCL_CONFIG_UNDEF_PTR|cudaStream(Legacy|PerThread))$' >constants
printf '#include <%s>\n' nccl.h cublas_v2.h | "$CC" -std=c11 -E -P -I"$ours" - | tr '\n' ' ' | tr ';' '\n' |
    sed 's/^ *//; s/  */ /g' |
    grep -E '^(cudaError_t|ncclResult_t|cublasStatus_t|const char \*|void) ?(cuda|nccl|cublas)\w+\(' |
    sed 's/$/;/' >prototypes
sed -E 's/^(const char \*|[A-Za-z_]+ )([A-Za-z0-9_]+)\(.*/\2/' prototypes >functions

# What a program of this kind may call; the header must not lose any of it.
required='
cudaGetDeviceCount cudaSetDevice cudaGetDevice cudaGetDeviceProperties cudaDeviceGetAttribute
cudaDeviceGetPCIBusId cudaDeviceGetByPCIBusId cudaDeviceSynchronize cudaDeviceReset
cudaDeviceGetStreamPriorityRange cudaDeviceCanAccessPeer cudaDeviceEnablePeerAccess
cudaDeviceDisablePeerAccess cudaDeviceGetP2PAttribute
cudaIpcGetMemHandle cudaIpcOpenMemHandle cudaIpcCloseMemHandle cudaMalloc cudaFree cudaMallocHost cudaHostAlloc cudaFreeHost
cudaMallocManaged cudaMallocAsync cudaFreeAsync cudaMemGetInfo cudaMemcpy cudaMemcpyAsync
cudaMemset cudaMemsetAsync cudaMemcpy2D cudaMemcpy2DAsync cudaMemset2D cudaMemset2DAsync cudaMallocPitch cudaMemcpyPeer cudaMemcpyPeerAsync cudaPointerGetAttributes
cudaStreamCreate cudaStreamCreateWithFlags cudaStreamCreateWithPriority cudaStreamDestroy
cudaStreamSynchronize cudaStreamQuery cudaStreamWaitEvent cudaLaunchHostFunc
cudaEventCreate cudaEventCreateWithFlags cudaEventRecord cudaEventQuery cudaEventSynchronize
cudaEventElapsedTime cudaEventDestroy cudaStreamBeginCapture cudaStreamEndCapture
cudaStreamIsCapturing cudaGraphInstantiate cudaGraphLaunch cudaGraphExecDestroy
cudaGraphDestroy cudaDriverGetVersion cudaRuntimeGetVersion cudaGetLastError
cudaPeekAtLastError cudaGetErrorName cudaGetErrorString
cublasCreate_v2 cublasDestroy_v2 cublasSetStream_v2 cublasSetPointerMode_v2 cublasSaxpy_v2
cublasSaxpy_v2_64 cublasSscal_v2 cublasSscal_v2_64 cublasSnrm2_v2 cublasSnrm2_v2_64 cublasSgemm_v2 cublasGetStatusName cublasGetStatusString'

# NCCL's, by the version that brought them.
nccl_functions='
2.0 ncclGetVersion ncclGetUniqueId ncclCommInitRank ncclCommInitAll ncclCommDestroy
2.0 ncclCommCount ncclCommCuDevice ncclCommUserRank ncclGetErrorString ncclReduce ncclBcast
2.0 ncclAllReduce ncclReduceScatter ncclAllGather ncclGroupStart ncclGroupEnd
2.2 ncclBroadcast
2.4 ncclCommAbort ncclCommGetAsyncError
2.7 ncclSend ncclRecv
2.11 ncclRedOpCreatePreMulSum ncclRedOpDestroy
2.13 ncclGetLastError
2.14 ncclCommFinalize ncclCommInitRankConfig
2.18 ncclCommSplit
2.19 ncclMemAlloc ncclMemFree ncclCommRegister ncclCommDeregister
2.22 ncclGroupSimulateEnd
2.23 ncclCommInitRankScalable
2.27 ncclCommShrink ncclCommWindowRegister ncclCommWindowDeregister
2.28 ncclAlltoAll ncclGather ncclScatter ncclCommRevoke
2.29 ncclCommGetUniqueId ncclCommGrow ncclPutSignal ncclSignal ncclWaitSignal
2.29 ncclWinGetUserPtr ncclCommSuspend ncclCommResume ncclCommMemStats
2.30 ncclParamBind ncclParamGetI8 ncclParamGetI16 ncclParamGetI32 ncclParamGetI64
2.30 ncclParamGetU8 ncclParamGetU16 ncclParamGetU32 ncclParamGetU64 ncclParamGetStr
2.30 ncclParamGet ncclParamGetParameter ncclParamGetAllParameterKeys ncclParamDumpAll
2.31 ncclAllReduceConfig ncclBroadcastConfig ncclReduceConfig ncclAllGatherConfig
2.31 ncclReduceScatterConfig ncclAlltoAllConfig ncclGatherConfig ncclScatterConfig
2.32 ncclSetEncryption'

# by_version: how many of them are there, a line for each version.
by_version() {
    awk 'NR == FNR { there[$1]; next }
        NF { for (i = 2; i <= NF; i++) { all[$1]++; have[$1] += $i in there } }
        NF && !seen[$1]++ { order[++n] = $1 }
        END { for (i = 1; i <= n; i++) print "# NCCL " order[i] ": " have[order[i]] " of " all[order[i]] " functions" }' \
        functions <(echo "$nccl_functions")
}

# shellcheck disable=SC2086  # one name a line
missing() {
    local lost
    lost=$(printf '%s\n' $required $nccl_functions | grep -v '^[0-9]' | sort | comm -23 - <(sort functions))
    echo "not declared:" $lost
    [ -z "$lost" ]
}

# --- Programs made of those names --------------------------------------------------------

{
    printf '#include <%s>\n' nccl.h cublas_v2.h stdio.h
    echo 'int main(void) {'
    sed 's/.*/    printf("& %lld\\n", (long long)&);/' enumerators constants
    cat <<'C'
    printf("NCCL_SUFFIX \"%s\"\n", NCCL_SUFFIX);
    printf("NCCL_UNDEF_FLOAT %g\n", (double)NCCL_UNDEF_FLOAT);
    printf("NCCL_COMM_NULL %p\n", (void *)NCCL_COMM_NULL);
    printf("cudaStreamLegacy %p\n", (void *)cudaStreamLegacy);
    printf("cudaStreamPerThread %p\n", (void *)cudaStreamPerThread);
    printf("versions %d %d\n", NCCL_VERSION(2, 8, 4), NCCL_VERSION(2, 18, 3));
    return 0;
}
C
} >values.c

cat >sizes.c <<'C'
#include <nccl.h>
#include <stdio.h>
#define SIZE(type) printf("sizeof " #type " %zu\n", sizeof(type))
#define FIELD(type, field) \
    printf(#type "." #field " at %zu, %zu bytes\n", offsetof(type, field), \
           sizeof(((type *)0)->field))
#define CONFIG(field) \
    FIELD(ncclConfig_t, field); \
    printf("starts as %lld\n", (long long)config.field)
#define COLL(field) \
    FIELD(ncclCollConfig_t, field); \
    printf("starts as %lld\n", (long long)coll.field)
int main(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclCollConfig_t coll = NCCL_COLLCONFIG_INITIALIZER;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    SIZE(ncclUniqueId);
    SIZE(ncclConfig_t);
    SIZE(ncclRedOp_t);
    SIZE(ncclDataType_t);
    SIZE(cudaUUID_t);
    SIZE(struct cudaPointerAttributes);
    SIZE(cudaIpcMemHandle_t);
    CONFIG(size);
    CONFIG(magic);
    CONFIG(version);
    CONFIG(blocking);
    CONFIG(cgaClusterSize);
    CONFIG(minCTAs);
    CONFIG(maxCTAs);
    CONFIG(netName);
    CONFIG(splitShare);
    CONFIG(trafficClass);
    CONFIG(commName);
    CONFIG(collnetEnable);
    CONFIG(CTAPolicy);
    CONFIG(shrinkShare);
    CONFIG(nvlsCTAs);
    CONFIG(nChannelsPerNetPeer);
    CONFIG(nvlinkCentricSched);
    CONFIG(graphUsageMode);
    CONFIG(numRmaCtx);
    CONFIG(maxP2pPeers);
    CONFIG(graphStreamOrdering);
    CONFIG(launchOrderImplicit);
    CONFIG(numRmaSig);
    CONFIG(rmaEagerInit);
    CONFIG(hostCftMode);
    CONFIG(nvlsHostMode);
    COLL(size);
    COLL(magic);
    COLL(version);
    COLL(ext);
    COLL(minCTAs);
    COLL(maxCTAs);
    COLL(nvlsCTAs);
    COLL(cgaClusterSize);
    COLL(algSelection);
    COLL(forceAlgSelection);
    COLL(CTAPolicy);
    COLL(userProfilerTag);
    COLL(launchCompletionEvent);
    SIZE(ncclConfigExt_t);
    SIZE(ncclSimInfo_t);
    SIZE(ncclWaitSignalDesc_t);
    SIZE(ncclEncryptionConfig_t);
    SIZE(ncclCommMemStat_t);
    FIELD(ncclConfigExt_t, key);
    FIELD(ncclConfigExt_t, val);
    FIELD(ncclSimInfo_t, estimatedTime);
    FIELD(ncclWaitSignalDesc_t, opCnt);
    FIELD(ncclWaitSignalDesc_t, peer);
    FIELD(ncclWaitSignalDesc_t, sigIdx);
    FIELD(ncclWaitSignalDesc_t, ctx);
    FIELD(ncclEncryptionConfig_t, mode);
    FIELD(ncclEncryptionConfig_t, psk);
    printf("%x %g\n", info.magic, (double)info.estimatedTime);
    FIELD(struct cudaPointerAttributes, type);
    FIELD(struct cudaPointerAttributes, device);
    FIELD(struct cudaPointerAttributes, devicePointer);
    FIELD(struct cudaPointerAttributes, hostPointer);
    return 0;
}
C

# The fields of our cudaDeviceProp, each with its size: offsets differ, the types must not.
{
    echo '#include <cuda_runtime.h>'
    echo '#include <stdio.h>'
    echo 'int main(void) {'
    sed -n '/^struct cudaDeviceProp {/,/^};/p' "$ours/driver_types.h" |
        sed -nE 's/^ +[a-zA-Z_ ]+ ([A-Za-z0-9]+)(\[[0-9]+\])?;.*/\1/p' |
        sed 's/.*/    printf("& %zu\\n", sizeof(((struct cudaDeviceProp *)0)->&));/'
    echo '    return 0;'
    echo '}'
} >properties.c

# Declared twice, by the header and by us: a compiler refuses the pair unless both agree.
{
    printf '#include <%s>\n' nccl.h cublas_v2.h
    cat prototypes
} >signatures.c

{
    printf '#include <%s>\n' nccl.h cublas_v2.h
    echo 'typedef void (*any)(void);'
    echo 'any all[] = {'
    sed 's/.*/    (any)&,/' functions
    sed -n 's/^nccl.*/    (any)p&,/p' functions # NCCL's second names
    echo '};'
    echo 'int main(void) {'
    echo '    return all[0] == 0;'
    echo '}'
} >link.c

cat >overloads.cpp <<'CPP'
#include <cublas_v2.h>
#include <nccl.h>
ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
// 2 * 3, once by each call that takes the type of the computation as that of a number.
template <class T> bool product(cudaDataType_t type) {
    T numbers[3] = {2, 3, 0}, one = 1, zero = 0, *a;
    cublasHandle_t blas;
    cudaMalloc(&a, sizeof numbers);
    bool right = cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS;
    for (int call = 0; call < 2; call++) {
        cublasSetVector(3, sizeof(T), numbers, 1, a, 1);
        if (call == 0)
            cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, type, 1, a + 1, type, 1, &zero,
                         a + 2, type, 1, type, CUBLAS_GEMM_DEFAULT);
        if (call == 1)
            cublasGemmStridedBatchedEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, a, type, 1, 1, a + 1,
                                       type, 1, 1, &zero, a + 2, type, 1, 1, 1, type, CUBLAS_GEMM_DEFAULT);
        T result = 0;
        cublasGetMatrix(1, 1, sizeof(T), a + 2, 1, &result, 1);
        right = right && result == 6;
    }
    cublasDestroy(blas);
    cudaFree(a);
    return right;
}
void calls() {
    float *numbers;
    void *bytes;
    cudaEvent_t event;
    cudaStream_t stream;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    cudaMalloc(&numbers, 4);
    cudaMalloc(&bytes, 4);
    cudaMalloc((void **)&numbers, 4);
    cudaMallocHost(&numbers, 4);
    cudaMallocHost(&numbers, 4, cudaHostAllocPortable);
    cudaMallocHost(&bytes, 4);
    cudaMallocHost(&bytes, 4, cudaHostAllocMapped);
    cudaHostAlloc(&numbers, 4, cudaHostAllocDefault);
    cudaMallocManaged(&numbers, 4);
    cudaMallocManaged(&bytes, 4);
    cudaMallocManaged(&numbers, 4, cudaMemAttachHost);
    cudaStreamCreate(&stream);
    cudaMallocAsync(&numbers, 4, stream);
    cudaMallocAsync(&bytes, 4, stream);
    cudaEventCreate(&event);
    cudaEventCreate(&event, cudaEventDisableTiming);
    cudaEventRecord(event);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(stream, event);
    cudaMemcpyAsync(numbers, bytes, 4, cudaMemcpyDefault);
    cudaMemcpyPeerAsync(numbers, 0, bytes, 0, 4);
    cudaMemsetAsync(bytes, 0, 4);
    cudaGraphInstantiate(&exec, graph);
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphInstantiate(&exec, graph, &node, nullptr, 0);
}
CPP

# --- The headers by themselves -----------------------------------------------------------

strict='-Wall -Wextra -pedantic -Werror'
by_version
echo "# $(wc -l <functions) functions, $(cat enumerators constants | wc -l) values"
point 'every function that a program of this kind calls is declared' missing
# shellcheck disable=SC2086  # several options
{
    for header in cuda_runtime.h driver_types.h nccl.h cublas_v2.h; do
        echo "#include <$header>" >one.c
        cp one.c one.cpp
        point "$header by itself is strict C11" "$CC" -std=c11 $strict -I"$ours" -fsyntax-only one.c
        point "$header by itself is strict C++17" \
            "$CXX" -std=c++17 $strict -I"$ours" -fsyntax-only one.cpp
    done
    point 'all values print, C11' "$CC" -std=c11 $strict -I"$ours" values.c -o values.ours
    point 'C++ overloads and default arguments' \
        "$CXX" -std=c++17 $strict -I"$ours" -fsyntax-only overloads.cpp
}

# Those that a program may name beside them, and those that there are none of: one clear error each.
others=$(cd "$ours" && printf '%s\n' ./*.h nvtx3/*.h | sed 's|^\./||')
none=$(cd "$ours/absent" && grep -l '^#error' ./*.h | sed 's|^\./||')
# shellcheck disable=SC2086  # several options, several names
{
    for other in $others; do
        echo "#include <$other>"
    done | tee all.c >all.cpp
    point 'all headers together are strict C11' "$CC" -std=c11 $strict -I"$ours" -fsyntax-only all.c
    point 'all headers together are strict C++17' \
        "$CXX" -std=c++17 $strict -I"$ours" -fsyntax-only all.cpp
    # What nvcc offers without std::, before which a program's own goes; and names of CUDA 12.
    cat >>all.cpp <<'CPP'
template <class T> T min(T a, T b) {
    return a < b ? a : b;
}
static_assert(max(1, 2.5) == 2.5 && max(3u, 2u) == 3u, "max");
cudaError_t wait() {
    return min(1, 2) == 1 ? cudaThreadSynchronize() : cudaSuccess;
}
int shown() {
    assert(clock() >= 0);
    return printf("%s", "<assert.h>, <stdio.h> and <time.h> are there");
}
CPP
    point 'max and min without std::, and the headers that nvcc brings' \
        "$CXX" -std=c++17 $strict -I"$ours" -fsyntax-only all.cpp
}
one_error() {
    local name
    for name in $none; do
        printf '#include <nccl.h>\n#include <%s>\n' "$name" >none.c
        ! "$CC" -I"$ours" -I"$ours/absent" -fsyntax-only none.c 2>said || return 1
        [ "$(grep -c ' error: ' said)" -eq 1 ] || { cat said; return 1; }
        grep -q "$name" said
    done
}
point 'a header that we lack gives one error, with its name' one_error
# Calls that are not here: the compiler names each that a program makes, in C and in C++, and no other.
refused() {
    local file name names=(cublasSger cudaMemPoolTrimTo cudaMallocArray cudaGraphAddKernelNode cudaGetDriverEntryPoint
        cudaFuncGetAttributes cudaOccupancyMaxActiveBlocksPerMultiprocessor)
    {
        echo '#include <cublas_v2.h>'
        echo 'int main(void) {'
        printf '    %s(0, 1);\n' "${names[@]}"
        echo '}'
    } | tee refused.c >refused.cpp
    for file in refused.c refused.cpp; do
        ! "$CC" -I"$ours" -c "$file" -o refused.o 2>said || return 1
        cat said
        [ "$(grep -c 'error: ' said)" -eq ${#names[@]} ] || return 1
        for name in "${names[@]}"; do
            grep -q "the CPU build has no $name " said || return 1
        done
    done
}
point 'a call that is not here gives one error, with its name' refused
# Programs that use these were written for CUDA: the compiler stops at the type of an argument before it comes to the call.
refused_type() {
    local file name types=(cudaArray_t cudaMemPool_t cudaMemPoolProps cudaMemLocation cudaExtent cudaPitchedPtr cudaMemcpy3DParms
        cudaIpcEventHandle_t cudaGraphExecUpdateResultInfo cudaUserObject_t cudaKernelNodeParams cudaFuncAttributes)
    {
        echo '#include <cuda_runtime.h>'
        for name in "${types[@]}"; do
            echo "extern $name a_$name;"
        done
    } | tee refused.c >refused.cpp
    for file in refused.c refused.cpp; do
        ! "$CC" -I"$ours" -c "$file" -o refused.o 2>said || return 1
        cat said
        [ "$(grep -c 'error: ' said)" -eq ${#types[@]} ] || return 1
        for name in "${types[@]}"; do
            grep -q "the CPU build has no $name " said || return 1
        done
    done
}
point 'a type that is not here gives one error, with its name' refused_type
# nccl-tests, for one, has a vector_types.h and compiles with -I of its folder.
shadowed() {
    local name
    mkdir -p own/nvtx3
    for name in $others; do
        echo "#error $name of the program itself" >"own/$name"
    done
    sed "s|<|\"$ours/|; s|>|\"|" all.c >shadowed.cpp
    "$CXX" -std=c++17 -Iown -I"$ours" -fsyntax-only shadowed.cpp
}
point "a program's own headers do not stand in for ours" shadowed

# What a half and a bfloat16 are, with all roundings.
cat >halves.cpp <<'CPP'
#include <nccl.h>
#include <stdio.h>
static unsigned long long sum;
static void take(unsigned long long x) { sum = (sum ^ x) * 1099511628211ull; }
static unsigned bits_of(float x) {
    unsigned bits;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? 0 : bits;
}
int main() {
    int lost = 0;
    for (unsigned i = 0; i < 65536; i++) {
        float h = __half2float(__ushort_as_half((unsigned short)i));
        float b = __bfloat162float(__ushort_as_bfloat16((unsigned short)i));
        take(bits_of(h)), take(bits_of(b));
        lost += h == h && __half_as_ushort(__float2half(h)) != i;
        lost += b == b && __bfloat16_as_ushort(__float2bfloat16(b)) != i;
    }
    for (unsigned i = 0; i < 1u << 22; i++) {
        unsigned bits = i * 2654435761u;
        float x;
        memcpy(&x, &bits, sizeof x);
        if (x == x)
            take(__half_as_ushort(__float2half(x))), take(__bfloat16_as_ushort(__float2bfloat16(x))),
                take(__half_as_ushort(__float2half_rz(x))), take(__bfloat16_as_ushort(__float2bfloat16_rz(x)));
    }
    half a = __float2half(1.5f), b = __float2half(0.3333f);
    take(__half_as_ushort(__hadd(a, b))), take(__half_as_ushort(__hmul(a, b)));
    take(__half_as_ushort(a / b)), take(__half_as_ushort(-a)), take(a > b), take(__heq(a, a));
    nv_bfloat16 c(2.5f), d = __float2bfloat16(0.1f);
    take(__bfloat16_as_ushort(c + d)), take(__bfloat16_as_ushort(__hsub(c, d)));
    half2 two = __floats2half2_rn(1, 2);
    take(bits_of(__low2float(__hadd2(two, two)))), take(bits_of(__half22float2(two).y));
    printf("%d lost, %llx\n", lost, sum);
    return lost != 0;
}
CPP
halves() {
    "$CXX" -O1 -std=c++17 -I"$ours" halves.cpp -o halves && ./halves
}
point 'half and bfloat16: each value comes back' halves

# A function that is declared but not defined would show only in the program that needs it.
flags=$(make -s -C "$top" cpu-flags)
# shellcheck disable=SC2086  # several options
{
    point 'the library defines every function that the headers declare' \
        "${MPICC:-mpicc}" -std=c11 link.c $flags -o link
    {
        printf '#include <cuda_runtime.h>\n#include <stdio.h>\nint main(void) {\n'
        grep -E '^cuda(Success|Error)' enumerators | sed 's/.*/    puts(cudaGetErrorName(&));/'
        printf '    return 0;\n}\n'
    } >names.c
    grep -E '^cuda(Success|Error)' enumerators >names.expected
    names() {
        "${MPICC:-mpicc}" -std=c11 names.c $flags -o names &&
            ./names | grep -v '^CPU build' | diff names.expected -
    }
    point 'cudaGetErrorName knows every enumerator' names
    echo 'int main() { return !product<float>(CUDA_R_32F) || !product<double>(CUDA_R_64F); }' >>overloads.cpp
    point 'a C++ program links with the same flags' \
        "${MPICXX:-mpicxx}" -std=c++17 overloads.cpp $flags -o overloads
    point 'and the products are right whose type C++ names as that of a number' timeout 60 ./overloads
}

# --- Against the published headers -------------------------------------------------------

find_header() {
    local folder
    for folder in "$@"; do
        if [ -n "$folder" ] && [ -e "$folder/$header" ]; then
            echo "$folder"
            return
        fi
    done
}
nvcc=$(command -v nvcc || true)
header=cuda_runtime.h
cuda=$(find_header "${CUDA_HOME:+$CUDA_HOME/include}" "${nvcc%/bin/nvcc}/include" \
    /usr/local/cuda/include /usr/include)
header=nccl.h
nccl=$(find_header "${NCCL_HOME:+$NCCL_HOME/include}" "${cuda:-/none}" /usr/local/include \
    /usr/include)

version_of() {
    echo '#include <nccl.h>' | "$CC" -E -dM "$@" - | sed -nE 's/^#define ((CUDART_VERSION|NCCL_MAJOR|NCCL_MINOR) )/\1/p' | sort
}
reason=
if [ -z "$cuda" ] || [ -z "$nccl" ]; then
    reason='no CUDA Toolkit or no NCCL found (CUDA_HOME, NCCL_HOME)'
elif [ ! -e "$cuda/cublas_v2.h" ]; then
    reason="no cuBLAS in $cuda"
elif ! real=$(version_of -isystem "$nccl" -isystem "$cuda") ||
    [ "$(grep CUDART <<<"$real")" != "$(version_of -I"$ours" | grep CUDART)" ]; then
    reason="the headers in $cuda are of another version"
fi

# NCCL's header may be of another version: then what both have is compared, but for what says
# which version it is.
older=
if [ -z "$reason" ] && [ "$real" != "$(version_of -I"$ours")" ]; then
    older="NCCL $(grep -oE '[0-9]+$' <<<"$(grep NCCL <<<"$real")" | paste -sd.)"
    {
        printf '#include <%s>\n' nccl.h cublas_v2.h | "$CC" -E -P -isystem "$nccl" -isystem "$cuda" -
        printf '#include <%s>\n' nccl.h cublas_v2.h | "$CC" -E -dM -isystem "$nccl" -isystem "$cuda" -
    } | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >known
    grep -vxFf known <(cat enumerators constants functions) >unknown || true
    printf '%s\n' NCCL_MINOR NCCL_VERSION_CODE ncclNumResults >>unknown
    grep -vwFf unknown values.c >both.c && mv both.c values.c
    grep -vwFf unknown signatures.c >both.c && mv both.c signatures.c
fi

# Every function of the published header is in ours.
complete() {
    printf '#include <nccl.h>\n' | "$CC" -E -P -isystem "$nccl" -isystem "$cuda" - |
        grep -oE '\bnccl[A-Z][A-Za-z0-9]*\(' | tr -d '(' | sort -u |
        grep -vx ncclResetDebugInit | comm -23 - <(sort functions) >lost
    cat lost
    [ ! -s lost ]
}

# same NAME: the program prints the same with both headers. A patch level may differ.
same() {
    "$CC" -std=c11 -I"$ours" "$1.c" -o "$1.ours" &&
        "$CC" -std=c11 -isystem "$nccl" -isystem "$cuda" "$1.c" -o "$1.real" &&
        "./$1.ours" | grep -vE '^NCCL_(PATCH|VERSION_CODE) ' >"$1.ours.txt" &&
        "./$1.real" | grep -vE '^NCCL_(PATCH|VERSION_CODE) ' >"$1.real.txt" &&
        diff "$1.real.txt" "$1.ours.txt"
}
against_real() {
    if [ -n "$reason" ]; then
        skipped "$1" "$reason"
    else
        point "$@"
    fi
}
against_real 'enumerators and constants have the published values' same values
if [ -n "$older" ]; then
    skipped 'structs and the configuration have the published layout' "the header is of $older"
else
    against_real 'structs and the configuration have the published layout' same sizes
fi
against_real 'every function of the published header is declared' complete
against_real 'the fields of cudaDeviceProp have the published types' same properties
against_real 'functions have the published signatures' \
    "$CC" -std=c11 -Werror -isystem "$nccl" -isystem "$cuda" -fsyntax-only signatures.c
halves_alike() {
    "$CXX" -O1 -std=c++17 -isystem "$cuda" -isystem "$nccl" halves.cpp -o halves.real &&
        diff <(./halves) <(./halves.real)
}
against_real 'half and bfloat16 round as the published headers do' halves_alike
against_real 'the C++ calls are those of the published headers' \
    "$CXX" -std=c++17 -isystem "$nccl" -isystem "$cuda" -fsyntax-only overloads.cpp

finish
