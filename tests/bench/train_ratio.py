# SPDX-License-Identifier: GPL-3.0-or-later
"""A training step of ours beside PyTorch's: time in turns, and peak memory.

    python train_ratio.py BENCH_TRAIN_STEP [--pairs 9] [--threads 2] [--skip compile,memory] [--processor-time] [--check]

A decoder of Qwen2's kind, 4 layers, 256 wide, vocabulary 8192, 8 texts of 512 tokens; forward, loss, backward, clipping,
AdamW. PyTorch is tuned: its threads set, scaled_dot_product_attention, fused AdamW, the faster of two RMS norms, and an
allocator that keeps what is freed (this script starts itself anew with GLIBC_TUNABLES for that). Ratios are of
neighbours in time, PyTorch / ours, median over --pairs:

    float32 eager, float32 torch.compile (where a C++ compiler works), bfloat16 autocast, bfloat16 autocast compiled

Memory: the peak of a process that trains with 2 texts of 2048 tokens, beyond what it held before the model; PyTorch with
sdpa, and with attention as a matrix. Wants torch (tests/oracle/requirements.txt) and an idle machine; on a busy one,
--processor-time with --threads 1 compares what each of the two uses. --check makes exit status 1 of a missed bound.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

HIDDEN, HEADS, INNER, VOCABULARY, LAYERS = 256, 4, 1024, 8192, 4
BOUNDS = {"float32 eager": 1.2, "float32 compiled": 1.0, "bfloat16 autocast": 1.2}
CLOCK = time.perf_counter
TUNABLES = "glibc.malloc.mmap_threshold=4294967295:glibc.malloc.trim_threshold=4294967295"


class Norm(nn.Module):
    def __init__(self, library):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(HIDDEN))
        self.library = library

    def forward(self, x):
        if self.library:
            return F.rms_norm(x, (HIDDEN,), self.gain, 1e-6)
        wide = x.float()
        return self.gain * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype)


def attention_as_matrix(q, k, v):
    length = q.shape[2]
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    hidden = torch.ones(length, length, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1, dtype=torch.float32).to(q.dtype) @ v


class Layer(nn.Module):
    def __init__(self, library_norm, sdpa):
        super().__init__()
        self.norms = nn.ModuleList([Norm(library_norm), Norm(library_norm)])
        self.query_key_value = nn.Linear(HIDDEN, 3 * HIDDEN)
        self.output = nn.Linear(HIDDEN, HIDDEN, bias=False)
        self.gate_up = nn.Linear(HIDDEN, 2 * INNER, bias=False)
        self.down = nn.Linear(INNER, HIDDEN, bias=False)
        self.sdpa = sdpa

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape

        def turned(heads):
            first, second = heads.chunk(2, -1)
            return heads * cosine + torch.cat([-second, first], -1) * sine

        q, k, v = self.query_key_value(self.norms[0](x)).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k = turned(q), turned(k)
        heads = (F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.sdpa else attention_as_matrix(q, k, v))
        x = x + self.output(heads.transpose(1, 2).reshape(batch, length, HIDDEN))
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, length, library_norm, sdpa):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList([Layer(library_norm, sdpa) for _ in range(LAYERS)])
        self.norm = Norm(library_norm)
        self.head = nn.Linear(HIDDEN, VOCABULARY, bias=False)
        size = HIDDEN // HEADS
        angle = torch.arange(length)[:, None] * 10000.0 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cosine", torch.cat([angle, angle], -1).cos())
        self.register_buffer("sine", torch.cat([angle, angle], -1).sin())

    def forward(self, ids, targets):
        x = self.embedding(ids)
        half = torch.is_autocast_enabled("cpu")
        cosine, sine = (t.bfloat16() if half else t for t in (self.cosine, self.sine))
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1).float(), targets.flatten())


class Training:
    """One step of PyTorch at a time."""

    def __init__(self, half=False, compiled=False, library_norm=False, sdpa=True, batch=8, length=512):
        torch.manual_seed(1)
        self.half = half
        self.model = Decoder(length, library_norm, sdpa)
        self.loss = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.ids = torch.randint(0, VOCABULARY, (batch, length + 1))

    def step(self):
        began = CLOCK()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            loss = self.loss(self.ids[:, :-1], self.ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return CLOCK() - began


class Ours:
    """The other program, one step for each line it is sent."""

    def __init__(self, program, *options):
        self.process = subprocess.Popen([program, "--serve", *map(str, options)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("the bench program ended early")
        return answer.split()

    def step(self):
        return float(self.ask("step")[0 if CLOCK is time.perf_counter else 1])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tuned(half, compiled):
    """PyTorch with the faster of its two norms."""
    candidates = [Training(half, compiled, library_norm) for library_norm in (False, True)]
    for candidate in candidates:
        candidate.step()
        candidate.step()
    return min(candidates, key=lambda candidate: min(candidate.step() for _ in range(3)))


def paired(name, theirs, ours, pairs):
    """Median of theirs / ours; both have warmed up."""
    ours.step()
    ours.step()
    ratios, their_seconds, our_seconds = [], [], []
    for _ in range(pairs):
        a, b, c = ours.step(), theirs.step(), ours.step()
        ratios.append(b / ((a + c) / 2))
        their_seconds.append(b)
        our_seconds += [a, c]
    ratio, bound = statistics.median(ratios), BOUNDS.get(name)
    verdict = "" if bound is None else f"  (at least {bound:g}: {'ok' if ratio >= bound else 'MISSED'})"
    print(f"{name:24} {statistics.median(their_seconds) * 1e3:7.0f} ms, ours {statistics.median(our_seconds) * 1e3:6.0f} ms,"
          f" ratio {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f}){verdict}", flush=True)
    return bound is None or ratio >= bound


def status(field):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def memory_of_torch(sdpa, half):
    """In a process of its own: prints the peak beyond what it held before the model."""
    warm = torch.ones(64, 64, requires_grad=True)
    (warm @ warm).sum().backward()
    before = status("VmRSS")
    training = Training(half, False, False, sdpa, batch=2, length=2048)
    training.step()
    training.step()
    print(json.dumps(status("VmHWM") - before))


def memory(program, threads):
    def of_torch(attention, kind):
        done = subprocess.run([sys.executable, __file__, program, "--memory-of", f"{attention},{kind}", "--threads",
                               str(threads)], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    kept = True
    for kind in ("float32", "bfloat16"):
        ours = Ours(program, "--type", kind, "--length", 2048, "--batch", 2, "--threads", threads)
        ours.step()
        ours.step()
        mine = int(ours.ask("memory")[0])
        ours.close()
        sdpa, matrix = of_torch("sdpa", kind), of_torch("matrix", kind)
        element = 4 if kind == "float32" else 2
        squares, logits = LAYERS * 2 * HEADS * 2048**2 * element, 2 * 2048 * VOCABULARY * element
        good = mine <= matrix - squares - logits
        kept = kept and good
        print(f"peak at L = 2048, {kind}: ours {mine / 1e6:.0f} MB, PyTorch {sdpa / 1e6:.0f} MB with sdpa, "
              f"{matrix / 1e6:.0f} MB with matrices, of which matrices and logits {(squares + logits) / 1e6:.0f} MB  "
              f"({'ok' if good else 'MISSED'}; below sdpa by {(sdpa - mine) / 1e6:.0f} MB)", flush=True)
    return kept


def main():
    global CLOCK
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="build/release/bin/bench_train_step")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--skip", default="", help="of float32, bfloat16, compile, memory")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if "glibc.malloc" not in os.environ.get("GLIBC_TUNABLES", "") and not arguments.memory_of:
        os.environ["GLIBC_TUNABLES"] = TUNABLES
        os.execv(sys.executable, [sys.executable, *sys.argv])
    torch.set_num_threads(arguments.threads)
    if arguments.processor_time:
        CLOCK = time.process_time
    if arguments.memory_of:
        attention, kind = arguments.memory_of.split(",")
        return memory_of_torch(attention == "sdpa", kind == "bfloat16")
    skipped, kept = arguments.skip.split(","), True
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {arguments.threads} threads")
    for kind, name in (("float32", "float32 eager"), ("bfloat16", "bfloat16 autocast")):
        if kind in skipped:
            continue
        ours = Ours(arguments.program, "--type", kind, "--threads", arguments.threads)
        kept = paired(name, tuned(kind == "bfloat16", False), ours, arguments.pairs) and kept
        if "compile" not in skipped:
            name = "float32 compiled" if kind == "float32" else "bfloat16 compiled"
            try:
                theirs = tuned(kind == "bfloat16", True)
            except Exception as error:  # no C++ compiler, or one that torch.compile does not like
                print(f"{name:24} does not work here: {str(error).splitlines()[0]}")
            else:
                kept = paired(name, theirs, ours, arguments.pairs) and kept
        ours.close()
    if "memory" not in skipped:
        kept = memory(arguments.program, arguments.threads) and kept
    return 1 if arguments.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
