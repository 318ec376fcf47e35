# SPDX-License-Identifier: GPL-3.0-or-later
"""One random model for gguf_files.py: its configuration and weights as transformers has them, and the GGUF file of both.
"""
import zlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES

EPSILON = 2.0 ** -17  # a float32
HIGH_BYTES = {"F32": [3], "F16": [1], "BF16": [1], "Q2_K": [81, 83], "Q3_K": [109], "Q6_K": [209], "TQ1_0": [53],
              "TQ2_0": [65], "IQ1_M": [55]}


class Sizes:
    def __init__(self, tiny):
        self.hidden, self.inner, self.head, self.heads, self.groups = (8, 8, 4, 2, 1) if tiny else (256, 512, 64, 4, 2)
        self.vocabulary, self.layers, self.context = (6, 1, 64) if tiny else (320, 4, 512)
        self.experts, self.per_token = (2, 1) if tiny else (4, 2)
        self.tiny = tiny


class Case:
    """One model: `config` of transformers, `weights` by its names, and a writer of the file."""

    def __init__(self, name, architecture, sizes, types):
        self.name, self.architecture, self.s, self.types = name, architecture, sizes, types
        self.random = np.random.default_rng(zlib.crc32(name.encode()))
        self.writer = gguf.GGUFWriter(None, architecture)
        self.config, self.weights, self.stored = {}, {}, 0

    # Keys of the file.
    def key(self, name, value):
        name = f"{self.architecture}.{name}"
        if isinstance(value, bool):
            self.writer.add_bool(name, value)
        elif isinstance(value, int):
            self.writer.add_uint32(name, value)
        elif isinstance(value, float):
            self.writer.add_float32(name, value)
        elif isinstance(value, str):
            self.writer.add_string(name, value)
        else:
            self.writer.add_array(name, value)

    # Rows as the file's type has them, and their numbers.
    def rows(self, shape, kind):
        values, size = GGML_QUANT_SIZES[kind]
        if kind in (Type.F32, Type.F16, Type.BF16):
            plain = (self.random.integers(-128, 128, shape) / 512).astype(np.float32)  # exact in all three
            data = plain if kind == Type.F32 else quants.quantize(plain, kind)
            return data, plain
        blocks = self.random.integers(0, 256, (int(np.prod(shape)) // values, size), dtype=np.uint8)
        if kind == Type.MXFP4:
            blocks[:, 0] = self.random.integers(118, 122, len(blocks))
        elif kind == Type.NVFP4:
            blocks[:, :4] = self.random.integers(1, 40, (len(blocks), 4))
        elif kind == Type.IQ1_M:  # its float16 in the top nibbles of four words
            blocks[:, 55] = blocks[:, 55] & 0x0F | 0x10
        else:
            low = [high - 1 for high in HIGH_BYTES.get(kind.name, [1])]
            for place in low + ([2] if kind.name in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else []):
                scales = self.random.uniform(1e-4, 2e-3, len(blocks)).astype(np.float16)
                blocks[:, place:place + 2] = scales.view(np.uint8).reshape(-1, 2)
        data = blocks.reshape(*shape[:-1], -1)
        return data, quants.dequantize(data, kind)

    def kind_for(self, shape):
        if len(shape) < 2:
            return Type.F32
        for _ in self.types:
            kind = self.types[self.stored % len(self.types)]
            self.stored += 1
            if shape[-1] % GGML_QUANT_SIZES[kind][0] == 0:
                return kind
        return Type.F16

    def add(self, name, data, kind):
        self.writer.add_tensor(name, np.ascontiguousarray(data), raw_dtype=kind)

    def store(self, stored, name, shape, order=None, stored_shape=None):
        """A tensor whose rows the file has in another `order`."""
        kind = self.kind_for(shape)
        data, numbers = self.rows(shape, kind)
        self.weights[name] = numbers
        if order is not None:
            data = data[order]
        self.add(stored, data if stored_shape is None else data.reshape(stored_shape), kind)

    def linear(self, stored, name, out, inner, order=None, bias=False):
        self.store(stored + ".weight", name + ".weight", (out, inner), order)
        if bias:
            self.store(stored + ".bias", name + ".bias", (out,), order)

    def norm(self, stored, name, size, offset=0.0, bias=False):
        gain = (1 - offset + self.random.integers(-8, 9, size) / 64).astype(np.float32)
        self.weights[name + ".weight"] = gain
        self.add(stored + ".weight", gain + np.float32(offset), Type.F32)
        if bias:
            self.store(stored + ".bias", name + ".bias", (size,))

    # Parts.
    def decoder(self, model_type, ties=False, offset=0.0, layers=None):
        s = self.s
        self.count = layers or s.layers
        self.key("block_count", self.count)
        self.key("context_length", s.context)
        self.key("embedding_length", s.hidden)
        self.key("feed_forward_length", s.inner)
        self.key("attention.head_count", s.heads)
        self.key("attention.head_count_kv", s.groups)
        self.key("attention.key_length", s.head)
        self.key("attention.value_length", s.head)
        self.key("attention.layer_norm_rms_epsilon", EPSILON)
        self.key("rope.freq_base", 10000.0)
        self.config |= {"model_type": model_type, "hidden_size": s.hidden, "intermediate_size": s.inner,
                        "num_hidden_layers": self.count, "num_attention_heads": s.heads, "head_dim": s.head,
                        "num_key_value_heads": s.groups, "vocab_size": s.vocabulary, "rms_norm_eps": EPSILON,
                        "max_position_embeddings": s.context, "rope_theta": 10000.0, "tie_word_embeddings": ties}
        self.store("token_embd.weight", "model.embed_tokens.weight", (s.vocabulary, s.hidden))
        self.norm("output_norm", "model.norm", s.hidden, offset)
        if not ties:
            self.store("output.weight", "lm_head.weight", (s.vocabulary, s.hidden))

    def attention(self, layer, paired=False, bias=False, output_bias=False, head_norms=None):
        s, stored, name = self.s, f"blk.{layer}.attn_", f"model.layers.{layer}.self_attn."

        def order(heads):  # rows of halves to rows of pairs
            return np.arange(heads * s.head).reshape(heads, 2, s.head // 2).swapaxes(1, 2).ravel() if paired else None
        self.linear(stored + "q", name + "q_proj", s.heads * s.head, s.hidden, order(s.heads), bias)
        self.linear(stored + "k", name + "k_proj", s.groups * s.head, s.hidden, order(s.groups), bias)
        self.linear(stored + "v", name + "v_proj", s.groups * s.head, s.hidden, None, bias)
        self.linear(stored + "output", name + "o_proj", s.hidden, s.heads * s.head, None, output_bias)
        if head_norms is not None:
            self.norm(stored + "q_norm", name + "q_norm", s.head, head_norms)
            self.norm(stored + "k_norm", name + "k_norm", s.head, head_norms)

    def norms(self, layer, offset=0.0, second="ffn_norm"):
        self.norm(f"blk.{layer}.attn_norm", f"model.layers.{layer}.input_layernorm", self.s.hidden, offset)
        self.norm(f"blk.{layer}.{second}", f"model.layers.{layer}.post_attention_layernorm", self.s.hidden, offset)

    def feed_forward(self, layer):
        s, stored, name = self.s, f"blk.{layer}.ffn_", f"model.layers.{layer}.mlp."
        self.linear(stored + "gate", name + "gate_proj", s.inner, s.hidden)
        self.linear(stored + "up", name + "up_proj", s.inner, s.hidden)
        self.linear(stored + "down", name + "down_proj", s.hidden, s.inner)

    def experts(self, layer):
        s, stored, name = self.s, f"blk.{layer}.ffn_", f"model.layers.{layer}.mlp."
        self.linear(stored + "gate_inp", name + "gate", s.experts, s.hidden)
        kind = self.kind_for((s.experts, s.inner, s.hidden))
        gate, up = (self.rows((s.experts, s.inner, s.hidden), kind) for _ in range(2))
        self.add(stored + "gate_exps.weight", gate[0], kind)
        self.add(stored + "up_exps.weight", up[0], kind)
        self.weights[name + "experts.gate_up_proj"] = np.concatenate([gate[1], up[1]], axis=1)
        self.store(stored + "down_exps.weight", name + "experts.down_proj", (s.experts, s.hidden, s.inner))

    def expert_keys(self, count_key):
        self.key("expert_count", self.s.experts)
        self.key("expert_used_count", self.s.per_token)
        self.config |= {count_key: self.s.experts, "num_experts_per_tok": self.s.per_token}

    def write(self, path):
        self.writer.add_uint32("tokenizer.ggml.bos_token_id", 1)
        self.writer.add_uint32("tokenizer.ggml.eos_token_id", 2)
        self.config |= {"bos_token_id": 1, "eos_token_id": 2}
        self.writer.write_header_to_file(path)
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
