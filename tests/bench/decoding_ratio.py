# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed of decoding with Q4_K_M weights: `headscope generate` against llama.cpp, on the same GGUF file in one run.

    python decoding_ratio.py HEADSCOPE [--tokens 64] [--pairs 3] [--threads 2] [--layers 16] [--file FILE] [--check]

A Llama of about a billion parameters, 2048 wide, with random blocks in the types that llama.cpp's Q4_K_M gives each
tensor, and a byte-level vocabulary. Greedy, in turns, medians of the pairs:

    llama.cpp   Llama.generate of the package llama-cpp-python, from the first new token to the last
    headscope   the process `generate --weights file` less the same process with 8 tokens: starting, reading the file
                and the prompt fall out
    bytes       of the matrices that a token is multiplied with, a second, against a plain copy of a gigabyte on as many
                threads (bytes copied, each read and written once)

Above 1 headscope is faster. Without the package the bytes alone are reported. Wants: gguf, numpy
(tests/oracle/requirements.txt), an idle machine. --check makes exit status 1 of a ratio to llama.cpp below 0.5. --file
keeps the model there, and takes it from there if it exists.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

try:
    from llama_cpp import Llama
except ImportError:
    Llama = None

BOUND = 0.5
HIDDEN, INNER, HEADS, GROUPS, HEAD, WORDS, CONTEXT = 2048, 8192, 32, 8, 64, 32000, 2048
PROMPT, FEW = "the of and to in a is that it was", 8
COPIED = 1 << 30


def byte_characters():
    """The 256 characters of GPT-2's byte-level vocabularies."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte) for byte in shown] + [chr(256 + i) for i in range(len(hidden))]


def vocabulary():
    """Bytes, then pairs of them, each with its merge."""
    single = byte_characters()
    pairs = [(a, b) for a in single for b in single][: WORDS - len(single)]
    return single + [a + b for a, b in pairs], [f"{a} {b}" for a, b in pairs]


def random_blocks(random, kind, count):
    """Blocks whose weights have a deviation of about 0.02 and a mean near 0."""
    values, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)

    def scale(at, number):
        blocks[:, at:at + 2] = np.full(count, number, np.float16).view(np.uint8).reshape(-1, 2)
    if kind == Type.Q4_K:
        scale(0, 8e-5)
        scale(2, 6e-4)
    else:
        scale(208, 1.5e-5)
    return blocks


def more_bits(layer, layers):
    """Layers whose ffn_down and attn_v llama.cpp's Q4_K_M stores in Q6_K."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2


def shapes(layers):
    """Name, shape and type of each matrix."""
    yield "token_embd", (WORDS, HIDDEN), Type.Q4_K
    yield "output", (WORDS, HIDDEN), Type.Q6_K
    for layer in range(layers):
        better = Type.Q6_K if more_bits(layer, layers) else Type.Q4_K
        for name, shape, kind in (("attn_q", (HEADS * HEAD, HIDDEN), Type.Q4_K),
                                  ("attn_k", (GROUPS * HEAD, HIDDEN), Type.Q4_K),
                                  ("attn_v", (GROUPS * HEAD, HIDDEN), better),
                                  ("attn_output", (HIDDEN, HEADS * HEAD), Type.Q4_K),
                                  ("ffn_gate", (INNER, HIDDEN), Type.Q4_K), ("ffn_up", (INNER, HIDDEN), Type.Q4_K),
                                  ("ffn_down", (HIDDEN, INNER), better)):
            yield f"blk.{layer}.{name}", shape, kind


def bytes_of(shape, kind):
    values, size = gguf.GGML_QUANT_SIZES[kind]
    return shape[0] * shape[1] // values * size


def write_model(path, layers):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(layers)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(GROUPS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_dimension_count(HEAD)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(WORDS)
    tokens, merges = vocabulary()
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * len(tokens))
    writer.add_token_merges(merges)
    writer.add_add_bos_token(False)
    random = np.random.default_rng(1)
    drawn = {kind: random_blocks(random, kind, 1 << 15) for kind in (Type.Q4_K, Type.Q6_K)}
    for name, shape, kind in shapes(layers):
        count = bytes_of(shape, kind) // drawn[kind].shape[1]
        data = drawn[kind][random.integers(0, len(drawn[kind]), count)].reshape(shape[0], -1)
        writer.add_tensor(name + ".weight", data, raw_dtype=kind)
    ones = np.ones(HIDDEN, np.float32)
    norms = [f"blk.{layer}.{norm}" for layer in range(layers) for norm in ("attn_norm", "ffn_norm")]
    for name in ["output_norm", *norms]:
        writer.add_tensor(name + ".weight", ones)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def seconds_of(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


class Program:
    def __init__(self, program, model, threads):
        self.command = [program, "generate", str(model), "--prompt", PROMPT, "--weights", "file", "--json", "--threads",
                        str(threads)]

    def run(self, tokens):
        done = subprocess.run([*self.command, "--tokens", str(tokens)], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(self.command)}\n{done.stderr.strip()}")
        found = json.loads(done.stdout)
        if len(found["ids"]) != tokens:
            raise SystemExit(f"expected {tokens} tokens; found {len(found['ids'])}")
        return found

    def rate(self, tokens):
        """Tokens a second."""
        few = seconds_of(lambda: self.run(FEW))
        return tokens / (seconds_of(lambda: self.run(FEW + tokens)) - few)


class Other:
    def __init__(self, model, threads, prompt):
        self.llama = Llama(model_path=str(model), n_threads=threads, n_threads_batch=threads, n_ctx=CONTEXT,
                           logits_all=False, verbose=False)
        self.prompt = prompt

    def made(self, tokens):
        """Ids, and tokens a second after the first."""
        self.llama.reset()
        stream = self.llama.generate(self.prompt, top_k=1, temp=0.0, repeat_penalty=1.0)
        ids = [next(stream)]
        seconds = seconds_of(lambda: ids.extend(next(stream) for _ in range(tokens)))
        return ids, tokens / seconds


def copy_rate(threads):
    """Bytes a second."""
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    parts = [slice(COPIED * i // threads, COPIED * (i + 1) // threads) for i in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        def copy():
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))
        copy()
        return COPIED / statistics.median(seconds_of(copy) for _ in range(5))


def machine():
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else 'unknown'}, {os.cpu_count()} processors"


def same_start(mine, theirs):
    """Ids that both have before they part; rounding decides between words of nearly equal logits."""
    return next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b), min(len(mine), len(theirs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        model = arguments.file or Path(scratch) / "q4_k_m.gguf"
        if not model.exists():
            write_model(model, arguments.layers)
        program = Program(arguments.headscope, model, arguments.threads)
        first = program.run(FEW)
        other = Other(model, arguments.threads, first["prompt_ids"]) if Llama else None
        if other:
            ids = other.made(FEW)[0]
        ours, theirs = [], []
        for _ in range(arguments.pairs):
            ours.append(program.rate(arguments.tokens))
            if other:
                theirs.append(other.made(arguments.tokens)[1])
        copied = copy_rate(arguments.threads)
    matrices = sum(bytes_of(shape, kind) for name, shape, kind in shapes(arguments.layers) if name != "token_embd")
    mine = statistics.median(ours)
    print(f"{machine()}; {arguments.threads} threads, {matrices / 1e9:.2f} GB of matrices, {arguments.tokens} tokens")
    print(f"    headscope               {mine:8.2f} tokens a second")
    print(f"    bytes                   {mine * matrices / 1e9:8.2f} GB/s")
    print(f"    plain copy              {copied / 1e9:8.2f} GB/s; bytes / copy {mine * matrices / copied:.2f}")
    if not other:
        print("    llama.cpp                    not measured: the package llama-cpp-python is missing")
        return 0
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    print(f"    llama.cpp               {statistics.median(theirs):8.2f} tokens a second")
    same = same_start(first["ids"], ids)
    print(f"    headscope / llama.cpp   {ratio:8.2f}   the first {same} of {FEW} tokens are equal")
    return 1 if arguments.check and ratio < BOUND else 0


if __name__ == "__main__":
    sys.exit(main())
