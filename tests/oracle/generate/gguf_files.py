#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small random models as GGUF files, written by the package gguf 0.19.0, and the same models for transformers.

    pip install gguf==0.19.0 safetensors
    python3 gguf_files.py --golden                        gguf/*.gguf and gguf_models.json, tiny, for the fast tests
    python3 gguf_files.py FOLDER [--types Q4_K,Q6_K]      FOLDER/NAME/model.gguf, config.json, model.safetensors
    python3 gguf_files.py --check GGUF_UNPACK             FOLDER's pairs in a temporary folder, read by tests' gguf_unpack

Weights are made as transformers has them, row by row in the file's types; model.safetensors holds what gguf.dequantize
makes of those rows, in float32. The file's order and values are those of llama.cpp's converter, whose rules are written
out here.
"""
import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from gguf import GGMLQuantizationType as Type

from gguf_case import EPSILON, Case, Sizes

DATA = pathlib.Path(__file__).parent / "data"


def llama(case):
    factors = np.linspace(1, 8, case.s.head // 2).astype(np.float32)
    case.decoder("llama", ties=True)
    case.add("rope_freqs.weight", factors, Type.F32)
    case.config["rope_scaling"] = {"rope_type": "longrope", "short_factor": factors.tolist(),
                                   "long_factor": factors.tolist(), "attention_factor": 1.0, "factor": 1.0,
                                   "original_max_position_embeddings": case.s.context}
    case.config |= {"attention_bias": True, "mlp_bias": False}
    for layer in range(case.count):
        case.norms(layer)
        case.attention(layer, paired=True, bias=True, output_bias=True)
        case.feed_forward(layer)


def mixtral(case):
    case.decoder("mixtral")
    case.key("attention.sliding_window", 16)
    case.config["sliding_window"] = 16
    case.expert_keys("num_local_experts")
    for layer in range(case.count):
        case.norms(layer)
        case.attention(layer, paired=True)
        case.experts(layer)


def qwen2(case):
    case.decoder("qwen2")
    case.key("rope.scaling.type", "yarn")
    case.key("rope.scaling.factor", 4.0)
    case.key("rope.scaling.original_context_length", case.s.context // 4)
    case.config["rope_scaling"] = {"rope_type": "yarn", "factor": 4.0,
                                   "original_max_position_embeddings": case.s.context // 4}
    for layer in range(case.count):
        case.norms(layer)
        case.attention(layer, bias=True)
        case.feed_forward(layer)


def qwen3(case):
    case.decoder("qwen3", ties=True)
    for layer in range(case.count):
        case.norms(layer)
        case.attention(layer, head_norms=0.0)
        case.feed_forward(layer)


def qwen3_moe(case):
    case.decoder("qwen3_moe", layers=max(2, case.s.layers))
    case.key("expert_feed_forward_length", case.s.inner)
    case.expert_keys("num_experts")
    case.config |= {"moe_intermediate_size": case.s.inner, "norm_topk_prob": True, "mlp_only_layers": [0]}
    for layer in range(case.count):
        case.norms(layer)
        case.attention(layer, head_norms=0.0)
        case.experts(layer) if layer else case.feed_forward(layer)


def gemma_layers(case, head_norms):
    for layer in range(case.count):
        for stored, name in (("attn_norm", "input_layernorm"), ("post_attention_norm", "post_attention_layernorm"),
                             ("ffn_norm", "pre_feedforward_layernorm"), ("post_ffw_norm", "post_feedforward_layernorm")):
            case.norm(f"blk.{layer}.{stored}", f"model.layers.{layer}.{name}", case.s.hidden, 1.0)
        case.attention(layer, head_norms=head_norms)
        case.feed_forward(layer)


def gemma2(case):
    case.decoder("gemma2", ties=True, offset=1.0, layers=max(2, case.s.layers))
    case.key("attention.sliding_window", 16)
    case.key("attn_logit_softcapping", 50.0)
    case.key("final_logit_softcapping", 30.0)
    case.config |= {"sliding_window": 16, "query_pre_attn_scalar": case.s.head, "attn_logit_softcapping": 50.0,
                    "final_logit_softcapping": 30.0,
                    "layer_types": ["full_attention" if i % 2 else "sliding_attention" for i in range(case.count)]}
    gemma_layers(case, None)


def gemma3(case):
    case.decoder("gemma3_text", ties=True, offset=1.0, layers=1 if case.s.tiny else 6)
    case.key("attention.sliding_window", 16)
    case.key("rope.scaling.type", "linear")
    case.key("rope.scaling.factor", 8.0)
    case.config |= {"sliding_window": 16, "query_pre_attn_scalar": case.s.head, "rope_local_base_freq": 10000.0,
                    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
                    "layer_types": ["full_attention" if i % 6 == 5 else "sliding_attention" for i in range(case.count)]}
    gemma_layers(case, 1.0)


def phi3(case):
    s = case.s
    case.decoder("phi3")
    case.key("attention.sliding_window", 0)
    case.key("rope.dimension_count", s.head)
    case.key("rope.scaling.original_context_length", s.context // 4)
    case.key("rope.scaling.attn_factor", 1.25)
    scaling = {"rope_type": "longrope", "attention_factor": 1.25}
    for which in ("long", "short"):
        factors = np.linspace(1, 4 if which == "long" else 2, s.head // 2).astype(np.float32)
        case.add(f"rope_factors_{which}.weight", factors, Type.F32)
        scaling[which + "_factor"] = factors.tolist()
    case.config |= {"rope_scaling": scaling, "original_max_position_embeddings": s.context // 4, "sliding_window": None,
                    "partial_rotary_factor": 1.0}
    for layer in range(case.count):
        stored, name = f"blk.{layer}.", f"model.layers.{layer}."
        case.norms(layer)
        case.linear(stored + "attn_qkv", name + "self_attn.qkv_proj", (s.heads + 2 * s.groups) * s.head, s.hidden)
        case.linear(stored + "attn_output", name + "self_attn.o_proj", s.hidden, s.heads * s.head)
        case.linear(stored + "ffn_up", name + "mlp.gate_up_proj", 2 * s.inner, s.hidden)
        case.linear(stored + "ffn_down", name + "mlp.down_proj", s.hidden, s.inner)


def gpt_oss(case):
    s = case.s
    case.decoder("gpt_oss")
    case.key("attention.sliding_window", 16)
    case.key("expert_feed_forward_length", s.inner)
    case.key("rope.scaling.type", "yarn")
    case.key("rope.scaling.factor", 8.0)
    case.key("rope.scaling.original_context_length", s.context // 8)
    case.expert_keys("num_local_experts")
    case.config |= {"sliding_window": 16, "attention_bias": True,
                    "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
                                     "truncate": False, "original_max_position_embeddings": s.context // 8}}
    for layer in range(case.count):
        stored, name = f"blk.{layer}.", f"model.layers.{layer}."
        case.norms(layer, second="post_attention_norm")
        case.attention(layer, bias=True, output_bias=True)
        case.store(stored + "attn_sinks.weight", name + "self_attn.sinks", (s.heads,))
        case.linear(stored + "ffn_gate_inp", name + "mlp.router", s.experts, s.hidden, bias=True)
        shape = (s.experts, s.inner, s.hidden)
        kind = case.kind_for(shape)
        both, biases = np.empty((s.experts, 2 * s.inner, s.hidden), np.float32), np.empty((s.experts, 2 * s.inner), np.float32)
        for i, part in enumerate(("gate", "up")):
            data, both[:, i::2] = case.rows(shape, kind)
            case.add(f"{stored}ffn_{part}_exps.weight", data, kind)
            data, biases[:, i::2] = case.rows(shape[:2], Type.F32)
            case.add(f"{stored}ffn_{part}_exps.bias", data, Type.F32)
        case.weights[name + "mlp.experts.gate_up_proj"] = both.swapaxes(1, 2)
        case.weights[name + "mlp.experts.gate_up_proj_bias"] = biases
        kind = case.kind_for((s.experts, s.hidden, s.inner))
        data, numbers = case.rows((s.experts, s.hidden, s.inner), kind)
        case.add(stored + "ffn_down_exps.weight", data, kind)
        case.weights[name + "mlp.experts.down_proj"] = numbers.swapaxes(1, 2)
        data, case.weights[name + "mlp.experts.down_proj_bias"] = case.rows((s.experts, s.hidden), Type.F32)
        case.add(stored + "ffn_down_exps.bias", data, Type.F32)


def mamba2(case):
    s, groups, state, taps = case.s, 1, 4, 4
    inner, heads = 2 * s.hidden, s.heads
    channels = inner + 2 * groups * state
    for name, value in (("block_count", s.layers), ("context_length", 1 << 20), ("embedding_length", s.hidden),
                        ("feed_forward_length", 0), ("attention.head_count", 0), ("ssm.conv_kernel", taps),
                        ("ssm.state_size", state), ("ssm.inner_size", inner), ("ssm.time_step_rank", heads),
                        ("ssm.group_count", groups), ("attention.layer_norm_rms_epsilon", EPSILON)):
        case.key(name, value)
    case.config |= {"model_type": "mamba2", "hidden_size": s.hidden, "num_hidden_layers": s.layers, "num_heads": heads,
                    "head_dim": inner // heads, "state_size": state, "n_groups": groups, "conv_kernel": taps, "expand": 2,
                    "layer_norm_epsilon": EPSILON, "vocab_size": s.vocabulary, "tie_word_embeddings": True,
                    "use_bias": False, "use_conv_bias": True}
    case.store("token_embd.weight", "backbone.embeddings.weight", (s.vocabulary, s.hidden))
    case.norm("output_norm", "backbone.norm_f", s.hidden)
    for layer in range(s.layers):
        stored, name = f"blk.{layer}.", f"backbone.layers.{layer}."
        case.norm(stored + "attn_norm", name + "norm", s.hidden)
        name += "mixer."
        case.linear(stored + "ssm_in", name + "in_proj", inner + channels + heads, s.hidden)
        case.linear(stored + "ssm_out", name + "out_proj", s.hidden, inner)
        taps_of, numbers = case.rows((channels, taps), Type.F32)
        case.add(stored + "ssm_conv1d.weight", taps_of, Type.F32)
        case.weights[name + "conv1d.weight"] = numbers.reshape(channels, 1, taps)
        case.store(stored + "ssm_conv1d.bias", name + "conv1d.bias", (channels,))
        case.store(stored + "ssm_dt.bias", name + "dt_bias", (heads,))
        decay_rates(case, stored + "ssm_a", name + "A_log", heads, (heads, 1))
        case.store(stored + "ssm_d", name + "D", (heads,), stored_shape=(heads, 1))
        gain, case.weights[name + "norm.weight"] = case.rows((inner,), Type.F32)
        case.add(stored + "ssm_norm.weight", gain.reshape(groups, -1), Type.F32)


def decay_rates(case, stored, name, count, shape):
    rates = -np.exp(case.random.uniform(0, 2, count)).astype(np.float32)
    case.add(stored, rates.reshape(shape), Type.F32)
    case.weights[name] = np.log(-rates.astype(np.float64)).astype(np.float32)


def qwen3_next(case):
    s, key_heads, heads, key_size, value_size, taps = case.s, 2, 4, 4, 8, 4
    case.decoder("qwen3_next", offset=1.0, layers=2)
    for name, value in (("full_attention_interval", 2), ("ssm.conv_kernel", taps), ("ssm.state_size", key_size),
                        ("ssm.group_count", key_heads), ("ssm.time_step_rank", heads),
                        ("ssm.inner_size", heads * value_size), ("rope.dimension_count", s.head // 2),
                        ("expert_feed_forward_length", s.inner), ("expert_shared_feed_forward_length", s.inner)):
        case.key(name, value)
    case.expert_keys("num_experts")
    case.config |= {"linear_num_key_heads": key_heads, "linear_num_value_heads": heads, "linear_key_head_dim": key_size,
                    "linear_value_head_dim": value_size, "linear_conv_kernel_dim": taps, "partial_rotary_factor": 0.5,
                    "moe_intermediate_size": s.inner, "shared_expert_intermediate_size": s.inner, "norm_topk_prob": True,
                    "mlp_only_layers": [], "layer_types": ["linear_attention", "full_attention"]}
    keys, values = key_heads * key_size, heads * value_size
    for layer in range(2):
        stored, name = f"blk.{layer}.", f"model.layers.{layer}."
        case.norms(layer, 1.0, "post_attention_norm")
        case.experts(layer)
        for part in ("gate", "up", "down"):
            sizes = (s.hidden, s.inner) if part == "down" else (s.inner, s.hidden)
            case.linear(f"{stored}ffn_{part}_shexp", f"{name}mlp.shared_expert.{part}_proj", *sizes)
        case.store(stored + "ffn_gate_inp_shexp.weight", name + "mlp.shared_expert_gate.weight", (1, s.hidden))
        if layer == 1:
            case.linear(stored + "attn_q", name + "self_attn.q_proj", 2 * s.heads * s.head, s.hidden)
            case.linear(stored + "attn_k", name + "self_attn.k_proj", s.groups * s.head, s.hidden)
            case.linear(stored + "attn_v", name + "self_attn.v_proj", s.groups * s.head, s.hidden)
            case.linear(stored + "attn_output", name + "self_attn.o_proj", s.hidden, s.heads * s.head)
            case.norm(stored + "attn_q_norm", name + "self_attn.q_norm", s.head, 1.0)
            case.norm(stored + "attn_k_norm", name + "self_attn.k_norm", s.head, 1.0)
            continue
        name += "linear_attn."
        kind = case.kind_for((2 * keys + 2 * values, s.hidden))
        data, case.weights[name + "in_proj_qkvz.weight"] = case.rows((2 * keys + 2 * values, s.hidden), kind)
        of_head = data.reshape(key_heads, -1, data.shape[-1])
        ends = np.cumsum([key_size, key_size, values // key_heads])
        query, key, value, gate = (part.reshape(-1, data.shape[-1]) for part in np.split(of_head, ends, axis=1))
        case.add(stored + "attn_qkv.weight", np.concatenate([query, key, value]), kind)
        case.add(stored + "attn_gate.weight", gate, kind)
        case.linear(stored + "ssm_ba", name + "in_proj_ba", 2 * heads, s.hidden)
        case.linear(stored + "ssm_out", name + "out_proj", s.hidden, values)
        taps_of, numbers = case.rows((2 * keys + values, taps), Type.F32)
        case.add(stored + "ssm_conv1d.weight", taps_of, Type.F32)
        case.weights[name + "conv1d.weight"] = numbers.reshape(-1, 1, taps)
        case.store(stored + "ssm_dt.bias", name + "dt_bias", (heads,))
        decay_rates(case, stored + "ssm_a", name + "A_log", heads, (heads,))
        case.norm(stored + "ssm_norm", name + "norm", value_size)


CASES = {"llama": ("llama", llama), "mixtral": ("llama", mixtral), "qwen2": ("qwen2", qwen2), "qwen3": ("qwen3", qwen3),
         "qwen3_moe": ("qwen3moe", qwen3_moe), "gemma2": ("gemma2", gemma2), "gemma3": ("gemma3", gemma3),
         "phi3": ("phi3", phi3), "gpt_oss": ("gpt-oss", gpt_oss), "mamba2": ("mamba2", mamba2),
         "qwen3_next": ("qwen3next", qwen3_next)}


def make(name, path, tiny, types):
    architecture, build = CASES[name]
    case = Case(name, architecture, Sizes(tiny), types)
    build(case)
    case.write(path)
    return case


def write_pair(folder, name, types):
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    case = make(name, folder / "model.gguf", False, types)
    (folder / "config.json").write_text(json.dumps(case.config, indent=1) + "\n")
    save_file({name: np.ascontiguousarray(numbers) for name, numbers in case.weights.items()}, folder / "model.safetensors")
    return case


def write_golden():
    golden = {}
    (DATA / "gguf").mkdir(exist_ok=True)
    for name in CASES:
        case = make(name, DATA / "gguf" / f"{name}.gguf", True, [Type.F16])
        golden[name] = {"config": case.config, "tensors": {
            tensor: [list(numbers.shape), hashlib.sha256(np.ascontiguousarray(numbers).tobytes()).hexdigest()[:16]]
            for tensor, numbers in sorted(case.weights.items())}}
    lines = [f'"{name}": {json.dumps(entry, separators=(",", ":"))}' for name, entry in golden.items()]
    (DATA / "gguf_models.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def check(program, types):
    from safetensors.numpy import load_file

    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in CASES:
            folder = pathlib.Path(scratch) / name
            case = write_pair(folder, name, types)
            subprocess.run([program, folder / "model.gguf", folder / "read"], check=True, stdout=subprocess.DEVNULL)
            config, tensors = json.loads((folder / "read/config.json").read_text()), load_file(folder / "read/model.safetensors")
            wrong = [key for key, value in case.config.items() if config.get(key) != value]
            wrong += sorted(tensors.keys() ^ case.weights.keys())
            wrong += [tensor for tensor, numbers in case.weights.items() if tensor in tensors and
                      (tensors[tensor].shape != numbers.shape or tensors[tensor].tobytes() != numbers.astype(np.float32).tobytes())]
            print(name, "ok" if not wrong else f"differs: {', '.join(wrong)}")
            failures += bool(wrong)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--golden", action="store_true")
    parser.add_argument("--check", metavar="GGUF_UNPACK")
    parser.add_argument("--types", default="Q4_K,Q6_K,Q8_0,F16,BF16,IQ4_XS,MXFP4,NVFP4,Q5_0,Q3_K", help="of matrices, in turn")
    choice = parser.parse_args()
    types = [Type[name] for name in choice.types.split(",")]
    if choice.golden:
        write_golden()
    if choice.folder:
        for name in CASES:
            write_pair(choice.folder / name, name, types)
    return check(choice.check, types) if choice.check else 0


if __name__ == "__main__":
    sys.exit(main())
