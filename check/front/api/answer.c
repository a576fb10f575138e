/*
 * answer.c: what calls have in common with one another: that they fail, that their wait
 * is over.
 */
#include "answer.h"

#include "talk.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

const char *front_code(const char *name, int code) {
    static __thread char text[80];
    snprintf(text, sizeof text, "%s (%d)", name, code);
    return text;
}

/* The program says itself what failed, and where: the lessons do (common/check.h); what
 * Python raises has a line. */
static bool says_itself(void) {
    const char *notes = getenv("NCCL_CHECK_NOTES");
    return (notes && strcmp(notes, "off") == 0) || python_there();
}

void front_failed(bool cuda, const char *code, const char *text, struct judge_at at) {
    struct judge *j = front_in();
    judge_failed(j, cuda, says_itself() ? NULL : code, text, at);
    front_out();
}

/* Answers to a question, and what a program tries in order to see whether it works. Who
 * asks how much time has passed wants a number. */
static bool expected(cudaError_t error, struct judge_at at) {
    switch (error) {
    case cudaErrorNotReady: return strcmp(at.call, "cudaEventElapsedTime") != 0;
    case cudaErrorNotSupported:
    case cudaErrorPeerAccessUnsupported:
    case cudaErrorPeerAccessAlreadyEnabled:
    case cudaErrorPeerAccessNotEnabled:
    case cudaErrorHostMemoryAlreadyRegistered:
    case cudaErrorHostMemoryNotRegistered:
    case cudaErrorCudartUnloading: return true;
    default: return false;
    }
}

struct judge_at capture_broken_by;

/* What is forbidden while a stream is captured breaks the capture. */
static bool breaks_capture(cudaError_t error) {
    return error == cudaErrorStreamCaptureUnsupported ||
           error == cudaErrorStreamCaptureImplicit ||
           error == cudaErrorStreamCaptureIsolation;
}

/* After it no call on this device works any more. */
static bool is_the_end(cudaError_t error) {
    return error == cudaErrorIllegalAddress || error == cudaErrorAssert ||
           error == cudaErrorMisalignedAddress || error == cudaErrorLaunchFailure;
}

/* Something has crashed on the device: a kernel of the program, or one of NCCL's, where
 * ranks do not fit together. Before the program hears of it, which is likely to end it,
 * the judges get a second to see whether what is queued could ever have ended. */
static void crashed(atomic_bool *once) {
    if (front_checks && !atomic_exchange(once, true))
        talk_settles();
}

void cuda_watched(cudaError_t error) {
    static atomic_bool once;
    if (is_the_end(error))
        crashed(&once);
}

cudaError_t cuda_failed(cudaError_t error, struct judge_at at) {
    if (breaks_capture(error))
        capture_broken_by = at;
    if (!expected(error, at))
        front_failed(true,
                     // asked for, mostly; of a capture the end says what has broken it
                     error == cudaErrorNoDevice || error == cudaErrorNotReady ||
                             breaks_capture(error)
                         ? NULL
                         : front_code(CALL(BELOW(cudaGetErrorName), error), (int)error),
                     CALL(BELOW(cudaGetErrorString), error), at);
    return error;
}

cudaError_t wait_over(cudaError_t error, bool happened, struct judge_at at) {
    static atomic_bool once;
    if (is_the_end(error)) // it counts as waiting until then
        crashed(&once);
    TELL(judge_wait_end, happened && error == cudaSuccess);
    return answer(error, at);
}

cudaError_t cuda_passed(cudaError_t error, const char *call, void *return_address) {
    const struct front_caller caller = front_caller(return_address);
    if (caller.theirs || python_watchdog())
        return error;
    front_saw_cuda = true;
    front_thread();
    return answer(error, (struct judge_at){call, caller.site});
}
