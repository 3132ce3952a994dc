#!/usr/bin/env python3
"""Whether gemmshim reaches products however a program comes to cuBLAS: linked (torch, CuPy), or looked up by handle
(JAX, ctypes). Each program multiplies small whole numbers, checks the exact result itself, and runs under `gemmshim run`
(with --handles where it looks cuBLAS up); then the products that were seen are counted. Prints TAP; a package that is
not installed is skipped.

  python3 tests/e2e/reach.py [--build build] [--cublas FOLDER] [NAME ...]
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

# Exit status 77: not here.
NUMBERS = """
import sys
M, N, K = 256, 64, 1024
def numbers(rows, columns, seed):
    return [[(i * 31 + j * 17 + seed) % 3 - 1 for j in range(columns)] for i in range(rows)]
A, B = numbers(N, K, 1), numbers(K, M, 2)
def check(result):
    columns = list(zip(*B))
    for i in range(0, N, 7):
        for j in range(0, M, 31):
            wanted = sum(x * y for x, y in zip(A[i], columns[j]))
            assert float(result[i][j]) == wanted, (i, j, float(result[i][j]), wanted)
"""
TORCH = """
try:
    import torch
except ImportError:
    sys.exit(77)
a, b = torch.tensor(A).half().cuda(), torch.tensor(B).half().cuda()
check((a @ b).cpu())
"""
CUPY = """
try:
    import cupy
except ImportError:
    sys.exit(77)
a, b = cupy.array(A, dtype=cupy.float16), cupy.array(B, dtype=cupy.float16)
check(cupy.asnumpy(a @ b))
"""
JAX = """
import os
os.environ["XLA_FLAGS"] = "--xla_gpu_enable_triton_gemm=false --xla_gpu_autotune_level=0"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit(77)
if jax.default_backend() != "gpu":
    sys.exit(77)
product = jax.jit(lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.float16))
check(product(jnp.array(A, dtype=jnp.float16), jnp.array(B, dtype=jnp.float16)))
"""
CTYPES = """
import ctypes, glob, os, struct
def load(name):
    for folder in [os.environ.get("GS_CUBLAS", "")] + os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        for path in sorted(glob.glob(os.path.join(folder, name))) if folder else []:
            return ctypes.CDLL(path)
    sys.exit(77)
cuda, cublas = ctypes.CDLL("libcuda.so.1"), load("libcublas.so.1[0-9]")
def must(status):
    assert status == 0, status
context = ctypes.c_void_p()
must(cuda.cuInit(0))
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
must(cuda.cuCtxSetCurrent(context))
def upload(rows):
    flat = [x for row in rows for x in row]
    data = struct.pack("%de" % len(flat), *flat)
    device = ctypes.c_uint64()
    must(cuda.cuMemAlloc_v2(ctypes.byref(device), ctypes.c_size_t(len(data))))
    must(cuda.cuMemcpyHtoD_v2(device, data, ctypes.c_size_t(len(data))))
    return device
a, b, c = upload(A), upload(B), upload([[0] * M] * N)
handle, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
must(cublas.cublasCreate_v2(ctypes.byref(handle)))
HALF, SINGLE, DEFAULT, PLAIN = 2, 68, -1, 0
must(cublas.cublasGemmEx(handle, PLAIN, PLAIN, M, N, K, ctypes.byref(one), b, HALF, M, a, HALF, K, ctypes.byref(zero),
                         c, HALF, M, SINGLE, DEFAULT))
must(cuda.cuCtxSynchronize())
out = ctypes.create_string_buffer(2 * M * N)
must(cuda.cuMemcpyDtoH_v2(out, c, ctypes.c_size_t(2 * M * N)))
flat = struct.unpack("%de" % (M * N), out.raw)
check([flat[i * M:(i + 1) * M] for i in range(N)])
"""
PROGRAMS = {"torch": (TORCH, False), "cupy": (CUPY, False), "jax": (JAX, True), "ctypes": (CTYPES, True)}


def run(name, options):
    text, by_handle = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as folder:
        script, kept = os.path.join(folder, "program.py"), os.path.join(folder, "kept")
        with open(script, "w") as file:
            file.write(NUMBERS + text)
        tool = os.path.join(options.build, "gemmshim")
        command = [tool, "run", "--sample", "0", "--keep", kept, "-o", os.path.join(folder, "calls")]
        command += (["--handles"] if by_handle else []) + ["--", sys.executable, script]
        environment = dict(os.environ, GS_CUBLAS=options.cublas or "")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        if done.returncode == 77:
            return "SKIP not here"
        if done.returncode:
            return "exit status %d: %s" % (done.returncode, done.stderr.strip()[-400:])
        seen = json.loads(subprocess.run([tool, "report", "--json", kept], capture_output=True, text=True).stdout)
        return "%d products seen" % seen["calls"] if seen["calls"] else "its products were not seen"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--cublas", help="folder of the cuBLAS that ctypes loads (LD_LIBRARY_PATH is searched too)")
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], metavar="NAME", help=", ".join(PROGRAMS))
    options = parser.parse_args()
    failed, skipped, names = 0, 0, options.names or list(PROGRAMS)
    for number, name in enumerate(names, 1):
        what = run(name, options)
        if what.startswith("SKIP"):
            print(f"ok {number} - {name} # {what}")
            skipped += 1
            continue
        fine = what.endswith(" products seen")
        failed += not fine
        print(f"{'ok' if fine else 'not ok'} {number} - {name}: {what}", flush=True)
    print(f"1..{len(names)}")
    reached = len(names) - failed - skipped
    print(f"{reached} reached, {skipped} not here, {failed} failed")
    return failed > 0 or reached == 0


if __name__ == "__main__":
    sys.exit(main())
