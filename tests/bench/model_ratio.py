# SPDX-License-Identifier: GPL-3.0-or-later
"""What measuring costs: `headscope analyze` beside the plain forward pass, and both beside transformers.

    python model_ratio.py HEADSCOPE [--lengths 2048,4096] [--pairs 5] [--family gpt2|llama] [--threads N] [--check]

A random model of 12 layers, 768 wide, 12 heads. All in one run, paired, medians of the ratios of neighbours in time:

    analysis / plain        `headscope bench`: alternating passes in one process; the analysis writes its file
    plain / sdpa            the program's forward pass and loss, beside transformers' with sdpa
    eager+torch / sdpa      transformers with eager attention, every indicator written in torch on the whole matrix
    file / float32          `analyze --weights file` of the model in bfloat16, against `--weights float32`; no loading
    extra memory            peak of a process that analyses less the peak of one that runs the plain pass

Wants: numpy, torch, transformers (tests/oracle/requirements.txt), an idle machine. --check makes exit status 1 of a
missed bound. --long 16384 adds a length that is timed without transformers, for its memory.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging as transformers_logging

RATIO_BOUNDS = {2048: 1.35, 4096: 1.45}        # analysis / plain
SDPA_BOUND = 1.05                              # plain / sdpa
RESIDENCE_BOUND = 1.05                         # file / float32
MEMORY_BOUNDS = {4096: 100e6, 16384: 200e6}    # bytes over the plain forward
POSITIONS = 16384


def make_model(folder, family, dtype=torch.float32):
    """Random weights; a moderate vocabulary, so that the head does not hide the layers."""
    torch.manual_seed(1)
    sizes = dict(vocab_size=8192, bos_token_id=0, eos_token_id=0)
    if family == "gpt2":
        config = GPT2Config(n_positions=POSITIONS, n_embd=768, n_layer=12, n_head=12, **sizes)
        model = GPT2LMHeadModel(config)
    else:
        config = LlamaConfig(hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
                             max_position_embeddings=POSITIONS, tie_word_embeddings=True, **sizes)
        model = LlamaForCausalLM(config)
    model.to(dtype).save_pretrained(folder)
    return config.vocab_size


def bench(program, model, length, repeat, what, threads):
    # A shell in between: Linux counts the memory of the process that starts a program into that program's peak.
    command = ["/bin/sh", "-c", '"$0" "$@"; exit $?', program, "bench", str(model), "--length", str(length), "--repeat",
               str(repeat), "--what", what, "--threads", str(threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[3:])}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def peaks(program, model, length, threads):
    """Peak memory in bytes of a process that only runs the plain pass, and of one that only analyses."""
    return tuple(bench(program, model, length, 1, what, threads)["peak_memory"] for what in ("plain", "analysis"))


def analysis_seconds(program, model, tokens, residence, threads):
    """Of one analysis, without loading the weights."""
    command = [program, "analyze", str(model), "--tokens", str(tokens), "-o", str(tokens.parent / "a.headscope.h5"),
               "--weights", residence, "--threads", str(threads), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)["seconds"]


def residence_ratio(program, model, length, vocabulary, pairs, threads):
    """Median over pairs of the time with weights as stored to the time with weights in float32."""
    tokens = model.parent / f"{length}.json"
    tokens.write_text(json.dumps([[i * 7919 % vocabulary for i in range(length)]]))
    ratios = []
    for _ in range(pairs):
        stored = analysis_seconds(program, model, tokens, "file", threads)
        ratios.append(stored / analysis_seconds(program, model, tokens, "float32", threads))
    return statistics.median(ratios)


def seconds_of(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class TorchIndicators:
    """The indicators as one writes them first: on the whole matrix, layer by layer."""

    def __init__(self, tokens):
        self.tokens = tokens[0]
        self.edges = torch.cat([-8.0 * 10 ** (torch.arange(50, 0, -1) / 16), torch.arange(-32, 33) * 0.25,
                                8.0 * 10 ** (torch.arange(1, 51) / 16)])
        self.results = []

    def measure(self, scores, weights):
        heads, length = weights.shape[1], weights.shape[2]
        a, s = weights[0], scores[0]
        position = torch.arange(length)
        causal = position[:, None] >= position[None, :]
        apart = position[:, None] - position[None, :]
        same = causal & (self.tokens[:, None] == self.tokens[None, :])
        induction = torch.zeros_like(same)
        induction[:, 1:] = causal[:, 1:] & (self.tokens[:, None] == self.tokens[None, :-1])
        allowed = s[:, causal]
        size = min(128, length)
        blocks = a.reshape(1, heads, length, length)
        self.results.append({
            "entropy": -torch.xlogy(a, a).sum((1, 2)),
            "concentration": a.square().sum((1, 2)).sqrt(),
            "sink": a[:, :, 0].mean(1),
            "local_focus": [torch.diagonal(a, -n, 1, 2).mean(1) for n in range(4)],
            "head_diversity": a.std(0)[causal].mean(),
            "density": a[:, :, 1:].sum((1, 2)) / length,
            "zero_fraction": ((a < 2.0**-126) & causal).sum((1, 2)),
            "mean_distance": (a * apart).sum((1, 2)) / length,
            "column_mass": a.sum(1) / (length - position),
            "duplicate": (a * (same & (apart > 0))).sum((1, 2)) / length,
            "induction": (a * induction).sum((1, 2)) / length,
            "moments": (allowed.min(1), allowed.max(1), allowed.mean(1), allowed.var(1)),
            "above": [(allowed.abs() > bound).sum(1) for bound in (10, 100, 1000)],
            "histogram": torch.stack([torch.bincount(torch.bucketize(row, self.edges), minlength=166) for row in allowed]),
            "thumbnails": (torch.nn.functional.adaptive_avg_pool2d(blocks, size),
                           torch.nn.functional.adaptive_max_pool2d(blocks, size)),
        })


def eager_with_indicators(model, tokens):
    """One pass of transformers' eager attention that measures every softmax."""
    indicators = TorchIndicators(tokens)
    original = torch.nn.functional.softmax

    def softmax(scores, *arguments, **keywords):
        weights = original(scores, *arguments, **keywords)
        if scores.dim() == 4:
            indicators.measure(scores, weights)
        return weights

    torch.nn.functional.softmax = softmax
    try:
        model(tokens, labels=tokens, use_cache=False)
    finally:
        torch.nn.functional.softmax = original
    return indicators.results


def transformers_ratios(program, folder, length, arguments, vocabulary):
    """(plain / sdpa, eager with indicators / sdpa, seconds of sdpa): medians over pairs."""
    tokens = torch.randint(0, vocabulary, (1, length))
    sdpa = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="sdpa").eval()
    eager = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    plain_ratios, eager_ratios, sdpa_seconds = [], [], []
    with torch.inference_mode():
        sdpa(tokens, labels=tokens, use_cache=False)
        for _ in range(arguments.pairs):
            before = seconds_of(lambda: sdpa(tokens, labels=tokens, use_cache=False))
            plain = bench(program, folder, length, 1, "plain", arguments.threads)["plain_median"]
            after = seconds_of(lambda: sdpa(tokens, labels=tokens, use_cache=False))
            sdpa_seconds += [before, after]
            plain_ratios.append(plain / ((before + after) / 2))
        if length <= arguments.eager_limit:
            for _ in range(max(1, arguments.pairs // 2)):
                near = seconds_of(lambda: sdpa(tokens, labels=tokens, use_cache=False))
                eager_ratios.append(seconds_of(lambda: eager_with_indicators(eager, tokens)) / near)
    median = statistics.median
    return median(plain_ratios), median(eager_ratios) if eager_ratios else None, median(sdpa_seconds)


def verdict(value, bound):
    if bound is None:
        return ""
    return f"(at most {bound:g}: {'ok' if value <= bound else 'MISSED'})"


def report(length, measured, memory, residences, plain_ratio, eager_ratio, sdpa_seconds):
    """Prints one length; True if every bound was kept."""
    extra = memory[1] - memory[0]
    ratio = measured["ratio_median"]
    rows = [("plain", f"{measured['plain_median']:.3f} s"), ("analysis", f"{measured['analysis_median']:.3f} s"),
            ("analysis / plain", f"{ratio:.3f} {verdict(ratio, RATIO_BOUNDS.get(length))}"),
            ("file / float32", f"{residences:.3f} {verdict(residences, RESIDENCE_BOUND)}")]
    kept = ratio <= RATIO_BOUNDS.get(length, float("inf")) and residences <= RESIDENCE_BOUND
    if plain_ratio is not None:
        rows += [("transformers sdpa", f"{sdpa_seconds:.3f} s"),
                 ("plain / sdpa", f"{plain_ratio:.3f} {verdict(plain_ratio, SDPA_BOUND)}")]
        kept = kept and plain_ratio <= SDPA_BOUND
    if eager_ratio is not None:
        rows.append(("eager + torch indicators / sdpa", f"{eager_ratio:.2f}"))
    bound = MEMORY_BOUNDS.get(length)
    rows.append(("peak memory, plain", f"{memory[0] / 1e6:.0f} MB"))
    rows.append(("extra memory of the analysis", f"{extra / 1e6:.0f} MB {verdict(extra / 1e6, bound and bound / 1e6)}"))
    print(f"L = {length} ({measured['kernels']}, {measured['threads']} threads, {measured['repeat']} pairs)")
    for name, text in rows:
        print(f"    {name:34} {text}")
    sys.stdout.flush()
    return kept and (bound is None or extra <= bound)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("--lengths", default="2048,4096")
    parser.add_argument("--long", type=int, default=0, help="one more length, without transformers: memory")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--family", choices=("gpt2", "llama"), default="gpt2")
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--eager-limit", type=int, default=2048, help="longest L for eager: it needs L x L many times over")
    parser.add_argument("--no-transformers", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    kept = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / f"random-{arguments.family}"
        stored = Path(temporary) / f"bfloat16-{arguments.family}"
        vocabulary = make_model(folder, arguments.family)
        make_model(stored, arguments.family, torch.bfloat16)

        def residences(length, pairs):
            return residence_ratio(arguments.headscope, stored, length, vocabulary, pairs, arguments.threads)
        for length in [int(part) for part in arguments.lengths.split(",") if part]:
            measured = bench(arguments.headscope, folder, length, arguments.pairs, "both", arguments.threads)
            others = (None, None, None)
            if not arguments.no_transformers:
                others = transformers_ratios(arguments.headscope, folder, length, arguments, vocabulary)
            memory = peaks(arguments.headscope, folder, length, arguments.threads)
            kept = report(length, measured, memory, residences(length, arguments.pairs), *others) and kept
        if arguments.long:
            measured = bench(arguments.headscope, folder, arguments.long, 1, "both", arguments.threads)
            memory = peaks(arguments.headscope, folder, arguments.long, arguments.threads)
            kept = report(arguments.long, measured, memory, residences(arguments.long, 1), None, None, None) and kept
    return 1 if arguments.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
