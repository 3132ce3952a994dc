/* See advice.h; tests hold every reason to have its line. */
#include "advice.h"

static const char *const advice[GS_REASON_COUNT] = {
    [GS_REASON_SERVED] = "",
    [GS_REASON_OFF] = "unset GEMMSHIM_SERVE",
    [GS_REASON_NOT_READY] = "update the NVIDIA driver: one of CUDA 12.0 or newer is needed",
    [GS_REASON_NO_TABLE] =
        "gemmshim run -o app.calls -- ..., then gemmshim tune app.calls: a table for this GPU",
    [GS_REASON_NO_ROW] = "gemmshim tune app.calls measures these shapes; what does not win stays with cuBLAS",
    [GS_REASON_UNPROVEN] = "gemmshim requalify measures the table's rows here, with this cuBLAS",
    [GS_REASON_TRIAL] = "wait: each shape is decided after some calls",
    [GS_REASON_TRIAL_LOST] = "nothing: cuBLAS is as fast here; gemmshim requalify settles it for later runs",
    [GS_REASON_SKIPPED] = "unset GEMMSHIM_ONLY, GEMMSHIM_SKIP and GEMMSHIM_ROWS",
    [GS_REASON_ENTRY] =
        "nothing: cublasGemmEx, cublasGemmStridedBatchedEx, cublasHgemm and cublasLtMatmul are served",
    [GS_REASON_DEGENERATE] =
        "nothing: there is nothing to multiply, or the call is in error and cuBLAS says so",
    [GS_REASON_TYPE] = "kernels multiply fp16 and bf16: run the model in one of these (autocast, .half())",
    [GS_REASON_RANGE] = "nothing: products of such a size stay with cuBLAS",
    [GS_REASON_ALIGNMENT] =
        "let operands begin at multiples of 16 bytes, leading dimensions too: slices and padding "
        "are the usual cause",
    [GS_REASON_KERNEL] = "gemmshim tune app.calls looks for a kernel that covers it",
    [GS_REASON_SCALARS] = "nothing: alpha 0 multiplies nothing, and vectors of scalars are cuBLAS's",
    [GS_REASON_OVERLAP] = "nothing: a result that lies over an operand is cuBLAS's to define",
    [GS_REASON_MATH_MODE] = "drop the math mode or SM target, if it is not wanted: cublasSetMathMode, "
                            "cublasSetSmCountTarget",
    [GS_REASON_ALGORITHM] = "nothing: the caller names the algorithm that it wants",
    [GS_REASON_AUTOTUNING] = "switch the program's own autotuning off (TunableOp, XLA's autotuner)",
    [GS_REASON_ALGORITHM_REFUSED] = "gemmshim requalify: every build of cuBLAS numbers its algorithms anew",
    [GS_REASON_ATTRIBUTE] = "nothing: scales, aux outputs, fp8 and row order are cuBLAS's",
    [GS_REASON_EPILOGUE] = "gemmshim tune app.calls looks for a kernel with this epilogue",
    [GS_REASON_BATCH_INVARIANT] =
        "nothing, if it is wanted: CUBLAS_WORKSPACE_CONFIG with CUBLASLT_WORKSPACE_SIZE, or "
        "GEMMSHIM_INVARIANT=1, asks for it",
    [GS_REASON_CONTEXT] = "make the stream's own context current before the call",
    [GS_REASON_CAPTURE] = "call the product once before the capture begins, on the same device",
    [GS_REASON_WORKSPACE] = "raise GEMMSHIM_VRAM_MB, or leave more of the GPU's memory free",
    [GS_REASON_LOAD_FAILED] =
        "update the driver, or build gemmshim with an older toolkit; stderr has the driver's words",
    [GS_REASON_WRONG] =
        "gemmshim verify checks the kernels on this GPU; please report it: gemmshim doctor --bundle",
    [GS_REASON_LAUNCH_FAILED] =
        "gemmshim verify checks the kernels on this GPU; stderr has the driver's words",
};

const char *gs_reason_advice(gs_reason_t reason) {
  return advice[reason] ? advice[reason] : "";
}
