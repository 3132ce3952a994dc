#!/usr/bin/env python3
"""A Llama-shaped decode loop in plain torch: what serving a small model does for every token.

Random weights, hidden 2048, 16 layers, grouped-query attention over a cache of 256 tokens, gated MLP, a
vocabulary of 32,000; fp16. Eager, or, with --graph, one CUDA graph replayed per token. Knows nothing of
gemmshim. Prints the speed in one line, for `gemmshim compare --metric`:

  tokens/s 1234.5

  python3 tests/e2e/llama_decode.py [--graph] [--batch 8] [--layers 16] [--steps 200]
"""
import argparse
import time

import torch
import torch.nn.functional as F

HIDDEN, HEADS, KV_HEADS, HEAD, FFN, CACHE, WORDS = 2048, 32, 8, 64, 8192, 256, 32000


def draw(*size):
    return (torch.randn(*size, device="cuda") / size[-1] ** 0.5).half()


def norm(x):
    return F.rms_norm(x, (HIDDEN,))


class Layer:
    def __init__(self, batch):
        self.qkv = draw((HEADS + 2 * KV_HEADS) * HEAD, HIDDEN)
        self.o = draw(HIDDEN, HEADS * HEAD)
        self.gate_up = draw(2 * FFN, HIDDEN)
        self.down = draw(HIDDEN, FFN)
        self.keys = draw(batch, KV_HEADS, CACHE, HEAD)
        self.values = draw(batch, KV_HEADS, CACHE, HEAD)

    def __call__(self, x):
        batch = x.shape[0]
        q, k, v = F.linear(norm(x), self.qkv).split((HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD), -1)
        self.keys[:, :, -1] = k.view(batch, KV_HEADS, HEAD)
        self.values[:, :, -1] = v.view(batch, KV_HEADS, HEAD)
        attended = F.scaled_dot_product_attention(
            q.view(batch, HEADS, 1, HEAD), self.keys, self.values, enable_gqa=True
        )
        x = x + F.linear(attended.reshape(batch, HEADS * HEAD), self.o)
        gate, up = F.linear(norm(x), self.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--graph", action="store_true", help="replay one CUDA graph per token")
    arguments.add_argument("--batch", type=int, default=8)
    arguments.add_argument("--layers", type=int, default=16)
    arguments.add_argument("--steps", type=int, default=200)
    given = arguments.parse_args()
    torch.manual_seed(0)
    layers = [Layer(given.batch) for _ in range(given.layers)]
    head, embedding = draw(WORDS, HIDDEN), draw(WORDS, HIDDEN)
    tokens = torch.zeros(given.batch, dtype=torch.long, device="cuda")

    def step():
        x = embedding[tokens]
        for layer in layers:
            x = layer(x)
        tokens.copy_(F.linear(norm(x), head).argmax(-1))

    with torch.inference_mode():
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(10):
                step()
            run = step
            if given.graph:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    step()
                run = graph.replay
            stream.synchronize()
            begun = time.perf_counter()
            for _ in range(given.steps):
                run()
            stream.synchronize()
    print(f"tokens/s {given.batch * given.steps / (time.perf_counter() - begun):.1f}")


if __name__ == "__main__":
    main()
