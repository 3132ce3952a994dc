#!/usr/bin/env python3
"""An unmodified torch program with and without gemmshim.

The program is a small Llama-like stack (attention and gated MLP, biased query projection) and its products one
by one, in fp16 and bf16, eager, at 1, 8, 64 and 128 tokens. It runs three times, each in its own process:
  off      without the shim; computes the FP64 references too
  count    under the shim, which forwards everything: what is called, and how often
  on       under the shim, with a table
and then its results, and the shim's histogram, are judged. Prints TAP.

Without --table a table is made that gives every product which a kernel can serve to one of them, each shape to
another: that proves right results and right counts, not speed.

  python3 tests/e2e/torch_mlp.py --build build [--table FILE] [--out DIR]
"""
import argparse
import ctypes
import json
import math
import os
import re
import subprocess
import sys
import tempfile

TOKENS = (1, 8, 64, 128)
HIDDEN, HEADS, KV_HEADS, HEAD, FFN, LAYERS = 2048, 16, 4, 128, 8192, 2
# Output and input features of layers that models have: 8B and 70B (a shard of 8) Llama, GPT-2, BERT.
PRODUCTS = ((6144, 4096), (4096, 4096), (4096, 14336), (1280, 8192), (8192, 1024), (2304, 768), (768, 3072))


# ---- the program under test: nothing here knows of gemmshim ----
class Model:
    def __init__(self, torch, dtype, device):
        draw = lambda *size: torch.randn(*size, device=device) / size[-1] ** 0.5
        qkv = HIDDEN + 2 * KV_HEADS * HEAD
        self.torch = torch
        self.layers = [
            {
                "qkv": draw(qkv, HIDDEN).to(dtype),
                "qkv_bias": (0.1 * torch.randn(qkv, device=device)).to(dtype),
                "o": draw(HIDDEN, HIDDEN).to(dtype),
                "gate_up": draw(2 * FFN, HIDDEN).to(dtype),
                "down": draw(HIDDEN, FFN).to(dtype),
            }
            for _ in range(LAYERS)
        ]

    def to_double(self):
        for layer in self.layers:
            for name in layer:
                layer[name] = layer[name].double()

    def norm(self, x):
        return x * self.torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    def forward(self, x):
        linear, torch = self.torch.nn.functional.linear, self.torch
        tokens = x.shape[0]
        for w in self.layers:
            qkv = linear(self.norm(x), w["qkv"], w["qkv_bias"])
            q, k, v = qkv.split([HIDDEN, KV_HEADS * HEAD, KV_HEADS * HEAD], dim=-1)
            q = q.reshape(tokens, HEADS, HEAD).transpose(0, 1)
            k = k.reshape(tokens, KV_HEADS, HEAD).transpose(0, 1).repeat_interleave(HEADS // KV_HEADS, 0)
            v = v.reshape(tokens, KV_HEADS, HEAD).transpose(0, 1).repeat_interleave(HEADS // KV_HEADS, 0)
            scores = torch.matmul(q, k.transpose(1, 2)) / HEAD**0.5
            mixed = torch.matmul(torch.softmax(scores, -1), v)
            x = x + linear(mixed.transpose(0, 1).reshape(tokens, HIDDEN), w["o"])
            gate, up = linear(self.norm(x), w["gate_up"]).chunk(2, dim=-1)
            x = x + linear(torch.nn.functional.silu(gate) * up, w["down"])
        return x


def worker(path, reference, device):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        """Calls of operators that cost cuBLAS one product each."""

        total = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func._schema.name in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"):
                Count.total += 1
            return func(*args, **(kwargs or {}))

    results, references = {}, {}
    with torch.no_grad():
        for dtype in (torch.float16, torch.bfloat16):
            torch.manual_seed(7)
            name = str(dtype).split(".")[1]
            model = Model(torch, dtype, device)
            inputs = {n: torch.randn(n, HIDDEN, device=device).to(dtype) for n in TOKENS}
            with Count():
                for n in TOKENS:
                    results[f"{name} model n={n}"] = model.forward(inputs[n]).cpu()
            for m, k in PRODUCTS:
                w = torch.randn(m, k, device=device).to(dtype)
                for n in TOKENS:
                    x = torch.randn(n, k, device=device).to(dtype)
                    with Count():
                        y = torch.nn.functional.linear(x, w)
                    key = f"{name} product {m}x{n}x{k}"
                    results[key] = y.cpu()
                    if reference:
                        references[key] = torch.nn.functional.linear(x.double(), w.double()).cpu()
            if reference:
                model.to_double()
                for n in TOKENS:
                    references[f"{name} model n={n}"] = model.forward(inputs[n].double()).cpu()
    about = {"calls": Count.total, "torch": str(torch.__version__)}
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        about.update(gpu=properties.name, sms=properties.multi_processor_count, cublas=cublas_version())
        about.update(arch=f"sm_{properties.major}{properties.minor}")
    torch.save({"results": results, "references": references, "about": about}, path)


def cublas_version():
    """Of the library that this process has mapped."""
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if re.search(r"/libcublas\.so\.\d+", line))
    library, parts = ctypes.CDLL(path), []
    for part in range(3):
        value = ctypes.c_int()
        library.cublasGetProperty(part, ctypes.byref(value))
        parts.append(value.value)
    return ".".join(map(str, parts))


# ---- the judge ----
class Tap:
    count = failed = 0

    def ok(self, good, what, *details):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {what}")
        for detail in details:
            print(f"# {detail}")
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def run(path, arguments, environment, reference=False):
    command = [sys.executable, os.path.abspath(__file__), "--worker", path, "--device", arguments.device]
    status = subprocess.run(command + ["--reference"] * reference, env={**os.environ, **environment}).returncode
    if status:
        print(f"Bail out! the program ended with status {status} ({' '.join(environment) or 'no shim'})")
        sys.exit(1)
    import torch

    return torch.load(path)


def gemmshim(arguments, *words):
    return subprocess.run([f"{arguments.build}/gemmshim", *words], check=True, capture_output=True, text=True).stdout


def shim_environment(arguments, folder, **options):
    os.makedirs(folder)
    preload = [os.path.abspath(f"{arguments.build}/libgemmshim.so"), os.environ.get("LD_PRELOAD", "")]
    environment = {"LD_PRELOAD": ":".join(filter(None, preload)), "GEMMSHIM_CALLS": folder}
    environment.update({"GEMMSHIM_" + name: str(value) for name, value in options.items()})
    return environment


def batch_of(shape):
    """As a row says it: single, or strided:12."""
    return shape["batch_kind"] + (f":{shape['batch']}" if shape["batch_kind"] == "strided" else "")


def most_k(kernel):
    """Family strip holds all of k in one k-tile."""
    strip = re.match(r"strip_.*x(\d+)_s", kernel)
    return int(strip[1]) if strip else math.inf


def forced_table(arguments, histogram, about, path):
    """One row for each shape and n that some kernel can serve, kernels taken in turn."""
    kernels = [kernel["kernel"] for kernel in json.loads(gemmshim(arguments, "kernels", "--json"))["kernels"]]
    odd = {}  # by row: whether a call of it is less aligned than most kernels need
    for shape in filter(lambda shape: shape["servable"], histogram["shapes"]):
        row = [shape["transa"].upper(), shape["transb"].upper(), shape["m"], shape["k"], shape["a_type"]]
        row += [shape["d_type"], shape["compute"], shape["epilogue"], batch_of(shape), shape["n"], shape["n"]]
        unaligned = any(2 * shape[name] % 16 for name in ("lda", "ldb", "stride_a", "stride_b")) or shape["align"] < 16
        odd[tuple(row)] = odd.get(tuple(row), False) or unaligned
    header = {"format": 1, "gpu": about["gpu"], "arch": about["arch"], "sms": about["sms"], "cublas": about["cublas"]}
    header.update(method="none: made by a test that wants every product served", date="1970-01-01")
    with open(path, "w") as table:
        table.writelines(f"{name}: {value}\n" for name, value in header.items())
        for number, (row, unaligned) in enumerate(odd.items()):
            infix = f"_{row[4]}_{row[5]}_{row[0]}{row[1]}_".lower()
            fitting = [kernel for kernel in kernels if infix in kernel and (kernel.endswith("_v2") or not unaligned)]
            fitting = [kernel for kernel in fitting if row[3] <= most_k(kernel)]
            table.write("\t".join(map(str, (*row, fitting[number % len(fitting)], 1, 1, 1, 1, 0, 0))) + "\n")
    return len(odd)


def error(result, reference):
    """Relative Frobenius; NaN never passes."""
    return float((result.double() - reference).norm() / reference.norm())


def judge(tap, off, on):
    """Our products: within 1.1 times the error of rounding the reference, or of what cuBLAS did there."""
    faults, worst = [], 0
    for key, reference in off["references"].items():
        of_off, of_on = error(off["results"][key], reference), error(on["results"][key], reference)
        if "model" in key:
            bound = 1.25 * of_off  # two roundings of a whole stack differ by chance
        else:
            bound = 1.1 * max(of_off, error(reference.to(on["results"][key].dtype), reference))
        worst = max(worst, of_on / bound)
        if not of_on <= bound:
            faults.append(f"{key}: error {of_on:.3e}, without the shim {of_off:.3e}, bound {bound:.3e}")
        elif "model" in key:
            print(f"# {key}: error {of_on:.3e}, without the shim {of_off:.3e}")
    tap.ok(not faults, f"{len(off['references'])} results agree with FP64 (worst: {worst:.2f} of the bound)", *faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="folder with gemmshim and libgemmshim.so")
    parser.add_argument("--table", help="the table to serve from, instead of one that serves everything")
    parser.add_argument("--out", help="folder for outputs and histograms (a temporary one)")
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--reference", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments.worker, arguments.reference, arguments.device)

    try:
        import torch
    except ImportError:
        print(f"1..0 # SKIP {sys.executable} has no torch")
        return 0
    if not torch.cuda.is_available():
        print("1..0 # SKIP torch sees no GPU")
        return 0
    out = tempfile.mkdtemp(prefix="torch_mlp.", dir=arguments.out)
    tap = Tap()

    off = run(f"{out}/off.pt", arguments, {}, reference=True)
    print(f"# torch {off['about']['torch']}, {off['about']['gpu']}, cuBLAS {off['about']['cublas']}; details in {out}")

    count = run(f"{out}/count.pt", arguments, shim_environment(arguments, f"{out}/count", SERVE=0))
    calls = count["about"]["calls"]
    histogram = json.loads(gemmshim(arguments, "report", "--json", f"{out}/count"))
    tap.ok(histogram["calls"] == calls, f"forwarding: {histogram['calls']} calls in the histogram, {calls} made")
    tap.ok(histogram["served"] == 0, "forwarding: none served")
    same = [key for key in off["results"] if torch.equal(off["results"][key], count["results"][key])]
    tap.ok(len(same) == len(off["results"]), f"forwarding: {len(same)} of {len(off['results'])} results bit-equal")

    table = arguments.table
    if not table:
        table = f"{out}/forced.table"
        print(f"# {forced_table(arguments, histogram, off['about'], table)} rows in {table}")
    on = run(f"{out}/on.pt", arguments, shim_environment(arguments, f"{out}/on", TABLE=os.path.abspath(table), LOG=1,
                                                         LOG_FILE=f"{out}/log"))
    histogram = json.loads(gemmshim(arguments, "report", "--json", f"{out}/on"))
    calls, served = on["about"]["calls"], histogram["served"]
    verdicts = ", ".join(f"{name} {number}" for name, number in histogram["verdicts"].items())
    tap.ok(histogram["calls"] == calls, f"serving: {histogram['calls']} calls in the histogram, {calls} made")
    tap.ok(served > 0, f"serving: {served} of {calls} calls served", verdicts)
    if not arguments.table:
        able = sum(shape["calls"] for shape in histogram["shapes"] if shape["servable"])
        tap.ok(served == able, f"serving: {served} of the {able} calls that kernels can serve")
    judge(tap, off, on)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
