#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models larger than the address space that a process may take: it ends, or stops with one line, and no signal ends it.

    memory_limits.py build/release/bin/headscope resources/samples/llama-kjv-shakespeare [--only NAME]

`analyze` runs 60 combinations of model, residence and length under limits of 2, 4 and 8 GB (RLIMIT_AS), then each small
model in each residence under the limit that its own plan calls just enough, one of them with a LoRA adapter too, and
`generate` runs under 2 GB. Weights are holes in files: zeros that take no space. A run must end with status 0, or with
status 1, one line of [memory] and no output. Exit 0 only if all do. Needs no package; two minutes on two cores.
"""

import argparse
import json
import math
import re
import struct
import sys
import tempfile
import time
from pathlib import Path

import harness

POSITIONS = 131072
RESIDENCES = ("auto", "float32", "file", "stream")
BYTES = {"BF16": 2, "F16": 2, "F32": 4}
UNITS = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
PLAN = re.compile(r"\[memory\] expected ([\d.]+) (\w+) for weights.*; found ([\d.]+) (\w+) free: ")
SHORT = 512  # tokens that every residence has memory for
LOW = 1 << 30  # a limit below which most plans do not fit


def write_sparse(path, head, length):
    """A file that begins with `head` and ends with `length` zeros."""
    path.write_bytes(head)
    with open(path, "r+b") as file:
        file.truncate(len(head) + length)


def write_weights(path, tensors, kind):
    header, at = {}, 0
    for name, shape in tensors:
        size = BYTES[kind] * math.prod(shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_sparse(path, struct.pack("<Q", len(text)) + text, at)


def write_safetensors(folder, config, tensors, kind, sample):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_weights(folder / "model.safetensors", tensors, kind)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).symlink_to(sample / name)
    return folder


def llama(folder, sample, *, hidden, inner, layers, heads, groups, words, head=64, experts=0):
    """Llama, or Mixtral with `experts`, in bfloat16."""
    config = {"model_type": "mixtral" if experts else "llama", "vocab_size": words, "hidden_size": hidden,
              "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads,
              "num_key_value_heads": groups, "head_dim": head, "max_position_embeddings": POSITIONS,
              "tie_word_embeddings": False, "rope_theta": 500000.0, "rms_norm_eps": 1e-5}
    if experts:
        config |= {"num_local_experts": experts, "num_experts_per_tok": 2, "sliding_window": None}
    tensors = [("model.embed_tokens.weight", [words, hidden])]
    for layer in range(layers):
        stem = f"model.layers.{layer}."
        tensors += [(stem + f"self_attn.{name}_proj.weight", [rows * head, hidden])
                    for name, rows in (("q", heads), ("k", groups), ("v", groups))]
        tensors += [(stem + "self_attn.o_proj.weight", [hidden, heads * head])]
        if experts:
            tensors += [(stem + "block_sparse_moe.gate.weight", [experts, hidden])]
        for place in [f"block_sparse_moe.experts.{i}." for i in range(experts)] or ["mlp."]:
            gate, up, down = ("w1", "w3", "w2") if experts else ("gate_proj", "up_proj", "down_proj")
            tensors += [(stem + place + name + ".weight", [inner, hidden]) for name in (gate, up)]
            tensors += [(stem + place + down + ".weight", [hidden, inner])]
        tensors += [(stem + f"{name}_layernorm.weight", [hidden]) for name in ("input", "post_attention")]
    tensors += [("model.norm.weight", [hidden]), ("lm_head.weight", [words, hidden])]
    return write_safetensors(folder, config, tensors, "BF16", sample)


def lora(folder, model, rank=16):
    """An adapter of every matrix in the layers of a model, in float32."""
    with open(model / "model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    tensors = []
    for name, entry in header.items():
        if ".layers." in name and len(entry["shape"]) == 2:
            rows, columns = entry["shape"]
            stem = "base_model.model." + name.removesuffix("weight")
            tensors += [(stem + "lora_A.weight", [rank, columns]), (stem + "lora_B.weight", [rows, rank])]
    folder.mkdir()
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": rank, "lora_alpha": rank}))
    write_weights(folder / "adapter_model.safetensors", tensors, "F32")
    return folder


def gpt2(folder, sample, *, hidden, layers, words):
    """GPT-2 in float16, whose matrices lie the other way round."""
    config = {"model_type": "gpt2", "vocab_size": words, "n_embd": hidden, "n_layer": layers, "n_head": hidden // 64,
              "n_positions": 4096, "layer_norm_epsilon": 1e-5}
    tensors = [("wte.weight", [words, hidden]), ("wpe.weight", [4096, hidden])]
    for layer in range(layers):
        stem = f"h.{layer}."
        for name, shape in (("attn.c_attn", [hidden, 3 * hidden]), ("attn.c_proj", [hidden, hidden]),
                            ("mlp.c_fc", [hidden, 4 * hidden]), ("mlp.c_proj", [4 * hidden, hidden])):
            tensors += [(stem + name + ".weight", shape), (stem + name + ".bias", shape[1:])]
        tensors += [(stem + f"ln_{n}.{part}", [hidden]) for n in (1, 2) for part in ("weight", "bias")]
    tensors += [("ln_f.weight", [hidden]), ("ln_f.bias", [hidden])]
    return write_safetensors(folder, config, tensors, "F16", sample)


def gguf_text(text):
    return struct.pack("<Q", len(text)) + text.encode()


def gguf_llama(path, *, hidden, inner, layers, heads, groups, words, head=64):
    """Llama in a GGUF file of version 3: matrices in Q4_K (256 numbers in 144 bytes), norms in float32."""
    F32, Q4_K, ALIGNMENT = 0, 12, 32
    keys = [gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text("llama")]
    for name, value in (("block_count", layers), ("context_length", POSITIONS), ("embedding_length", hidden),
                        ("feed_forward_length", inner), ("attention.head_count", heads),
                        ("attention.head_count_kv", groups), ("attention.key_length", head),
                        ("attention.value_length", head), ("vocab_size", words)):
        keys.append(gguf_text("llama." + name) + struct.pack("<II", 4, value))
    for name, value in (("attention.layer_norm_rms_epsilon", 1e-5), ("rope.freq_base", 500000.0)):
        keys.append(gguf_text("llama." + name) + struct.pack("<If", 6, value))
    tensors = [("token_embd.weight", [words, hidden]), ("output_norm.weight", [hidden]),
               ("output.weight", [words, hidden])]
    for layer in range(layers):
        for name, shape in (("attn_q", [heads * head, hidden]), ("attn_k", [groups * head, hidden]),
                            ("attn_v", [groups * head, hidden]), ("attn_output", [hidden, heads * head]),
                            ("ffn_gate", [inner, hidden]), ("ffn_up", [inner, hidden]), ("ffn_down", [hidden, inner]),
                            ("attn_norm", [hidden]), ("ffn_norm", [hidden])):
            tensors.append((f"blk.{layer}.{name}.weight", shape))
    listed, at = b"", 0
    for name, shape in tensors:
        kind, size = (F32, 4 * shape[0]) if len(shape) == 1 else (Q4_K, math.prod(shape) // 256 * 144)
        listed += gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, at)
        at += size + -size % ALIGNMENT
    begin = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys)) + b"".join(keys) + listed
    write_sparse(path, begin + b"\0" * (-len(begin) % ALIGNMENT), at)
    return path


class Model:
    """`cases`: limits in GB and lengths in tokens. `small`: it fits in every residence, from `enough` GB on."""

    def __init__(self, name, path, cases, small=True, enough=8, adapter=None):
        self.name, self.path, self.cases, self.small, self.enough = name, path, cases, small, enough
        self.adapter = adapter


def models(folder, sample):
    """From 0.3 to 8 billion parameters. The longest text fits with none of them."""
    middle = {"hidden": 2048, "inner": 5632, "heads": 32, "groups": 4, "words": 32000}
    return [
        Model("llama", llama(folder / "llama", sample, layers=8, **middle), ((2, 64), (4, POSITIONS), (8, 256))),
        Model("experts", llama(folder / "experts", sample, hidden=1024, inner=3584, layers=6, heads=16, groups=4,
                               words=32000, experts=8), ((2, 64), (4, 256), (8, POSITIONS)), enough=4),
        Model("gpt2", gpt2(folder / "gpt2", sample, hidden=1280, layers=12, words=50257),
              ((2, 256), (4, SHORT), (8, 16))),
        Model("gguf", gguf_llama(folder / "llama.gguf", layers=16, **middle),
              ((2, POSITIONS), (4, 64), (8, 256))),
        Model("lora", folder / "llama", (), adapter=lora(folder / "adapter", folder / "llama")),
        Model("8b", llama(folder / "8b", sample, hidden=4096, inner=14336, layers=32, heads=32, groups=8, words=128256,
                          head=128), ((2, 16), (4, POSITIONS), (8, 16)), small=False),
    ]


class Runs:
    def __init__(self, program, scratch):
        self.judge, self.scratch, self.count = harness.Judge(program), scratch, 0
        self.output = scratch / "a.headscope.h5"

    def tokens(self, length):
        file = self.scratch / f"{length}.json"
        if not file.exists():
            file.write_text(json.dumps([[i % 997 for i in range(length)]]))
        return file

    def run(self, name, arguments, bytes_, must_end=False, must_refuse=False, may_print=False):
        outcome = self.judge.run(arguments, address_space=int(bytes_), limit=300, home=self.scratch)
        self.judge.judge(name, outcome, may_succeed=True, must_refuse=must_refuse, parts=("[memory]",), seconds=300,
                         megabytes=bytes_ / 1e6, may_print=may_print)
        if must_end and outcome.status != 0:
            self.judge.fault(name, "expected an end", outcome)
        if outcome.status != 0 and self.output.exists():
            self.judge.fault(name, "left an output", outcome)
        self.output.unlink(missing_ok=True)
        self.count += 1
        ended = "ended" if outcome.status == 0 else " ".join(outcome.messages)
        print(f"{name}: {ended} ({outcome.seconds:.1f} s, {outcome.megabytes:.0f} MB)", flush=True)
        return outcome

    def analyze(self, model, residence, length, bytes_, **judged):
        name = f"{model.name}, {residence}, {length} tokens, {bytes_ / 1e9:.2f} GB"
        adapter = ["--adapter", model.adapter] if model.adapter else []
        return self.run(name, ["analyze", model.path, "--tokens", self.tokens(length), "-o", self.output, "--weights",
                               residence, *adapter], bytes_, **judged)

    def fixed(self, model):
        for limit, length in model.cases:
            for residence in RESIDENCES:
                ends = limit >= model.enough and length <= SHORT and (model.small or residence in ("auto", "stream"))
                refused = length == POSITIONS or not model.small and residence in ("float32", "file")
                self.analyze(model, residence, length, limit * 1e9, must_end=ends, must_refuse=refused)

    def tight(self, model):
        """The plan of a process with too little, and one with as much as that plan lacked."""
        for residence in RESIDENCES[1:]:
            planned = PLAN.search(self.analyze(model, residence, 64, LOW).err)
            if planned is None:
                continue  # it fits
            expected, found = (float(planned[i]) * UNITS[planned[i + 1]] for i in (1, 3))
            rounding = 0.006 * (expected + found)  # three digits are printed
            self.analyze(model, residence, 64, LOW + expected - found + rounding)

    def generate(self, model):
        for residence in RESIDENCES:
            self.run(f"generate, {model.name}, {residence}, 2 GB",
                     ["generate", model.path, "--prompt", "In the beginning", "--tokens", "4", "--weights", residence],
                     2e9, may_print=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("sample", type=Path)
    parser.add_argument("--only", help="one model")
    options = parser.parse_args()
    harness.limit_core_dumps()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headscope-memory-") as scratch:
        runs = Runs(options.program, Path(scratch))
        for model in models(Path(scratch), options.sample.resolve()):
            if options.only not in (None, model.name):
                continue
            runs.fixed(model)
            if model.small:
                runs.tight(model)
            if model.name == "llama":
                runs.generate(model)
        good = runs.judge.summary(f"{runs.count} runs ({time.monotonic() - start:.0f} s)")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
