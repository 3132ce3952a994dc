#!/usr/bin/env python3
"""torch.matmul on the products of a `gemmshim bench` CSV, on the same three clocks.

Reads the plain fp16 products of BENCH.csv and writes microseconds in row-major terms: m, n, k, layout (nn: the second
operand as it is, tn: transposed), gpu (a replayed CUDA graph over operands that go round 3 times the L2 cache), wall
(one call and a synchronise), server (the same after an exponentially distributed idle gap). Results go to tensors
made before (out=). Rows that OUT.csv has are kept and not measured again.

  python3 tests/e2e/torch_matmul.py bench.csv -o torch.csv [--rounds 31] [--rate 1000] [--budget SECONDS]
  gemmshim bench --summary --torch torch.csv bench.csv
"""
import argparse
import csv
import os
import random
import statistics
import sys
import time

CLOCKS = ("gpu", "wall", "server")
COPIES_MAX = 512


def products(path):
    """(m, n, k, layout) of each plain product, in the file's order."""
    with open(path, newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    for row in csv.DictReader(lines):
        word = row["product"].split()
        plain = word[2] == "n" and word[10:16] == ["f16", "f16", "f16", "f16", "32f", "default"] and word[16] == "single"
        for layout in ("nn", "tn"):
            if plain and row["status"] == "ok" and row[layout + "_verdict"]:
                yield int(word[4]), int(word[3]), int(word[5]), layout


def known(path):
    if not os.path.exists(path):
        return set()
    with open(path, newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(int(r["m"]), int(r["n"]), int(r["k"]), r["layout"]) for r in rows}


def operands(torch, m, n, k, layout):
    """Copies of A, B and C that take 3 times the L2 cache in all, B seen as k x n."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = min(COPIES_MAX, 3 * cache // (2 * (m * k + k * n + m * n)) + 1)
    a = torch.randn(count, m, k, device="cuda", dtype=torch.half)
    b = torch.randn(count, k, n, device="cuda", dtype=torch.half)
    if layout == "tn":
        b = b.view(count, n, k).transpose(1, 2)
    return [(a[i], b[i], torch.empty(m, n, device="cuda", dtype=torch.half)) for i in range(count)]


def replays(torch, sets, rounds):
    """Microseconds a call in a replayed graph."""
    graph = torch.cuda.CUDAGraph()
    calls = len(sets) * max(1, 64 // len(sets))
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.graph(graph):
        for i in range(calls):
            a, b, c = sets[i % len(sets)]
            torch.matmul(a, b, out=c)
    times = []
    for _ in range(rounds + 3):  # the first few bring the clocks up
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / calls)
    return times[3:]


def calls(torch, sets, rounds, rate):
    """Microseconds of a call and a synchronise; rate: arrivals a second, None: one after the other."""
    times = []
    for _ in range(rounds):
        a, b, c = random.choice(sets)
        due = time.perf_counter() + (random.expovariate(rate) if rate else 0)
        while time.perf_counter() < due:
            pass
        begin = time.perf_counter()
        torch.matmul(a, b, out=c)
        torch.cuda.synchronize()
        times.append(1e6 * (time.perf_counter() - begin))
    return times


def measure(torch, product, rounds, rate):
    sets = operands(torch, *product)
    a, b, c = sets[0]
    torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    samples = replays(torch, sets, rounds), calls(torch, sets, rounds, None), calls(torch, sets, rounds, rate)
    return [statistics.median(times) for times in samples]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bench", help="a CSV that gemmshim bench wrote")
    arguments.add_argument("-o", "--output", default="torch.csv")
    arguments.add_argument("--rounds", type=int, default=31)
    arguments.add_argument("--rate", type=float, default=1000, help="arrivals a second on the server clock")
    arguments.add_argument("--budget", type=float, default=float("inf"), help="stop after so many seconds")
    arguments.add_argument("--list", action="store_true", help="list the products; measure nothing")
    given = arguments.parse_args()
    wanted = list(products(given.bench))
    if given.list:
        for product in wanted:
            print(*product)
        return 0
    import torch

    if not torch.cuda.is_available():
        print("torch sees no GPU here", file=sys.stderr)
        return 3
    done, begun = known(given.output), time.monotonic()
    with open(given.output, "a", buffering=1) as out:
        if not done:
            out.write(f"# torch {torch.__version__} on {torch.cuda.get_device_name()}; server {given.rate:g} a second\n")
            out.write("m,n,k,layout," + ",".join(CLOCKS) + "\n")
        for i, product in enumerate(wanted):
            if product in done:
                continue
            if time.monotonic() - begun > given.budget:
                print(f"the budget is spent: {len(wanted) - i} of {len(wanted)} are left", file=sys.stderr)
                break
            times = measure(torch, product, given.rounds, given.rate)
            out.write(",".join(map(str, product)) + "," + ",".join(f"{us:.3f}" for us in times) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
