# SPDX-License-Identifier: GPL-3.0-or-later
"""Random checkpoints as flash-linear-attention saves them, for the acceptance test. See random_models.py.

    python random_fla.py FOLDER        # every case as a folder
"""

import json
import random
import sys
from pathlib import Path

import safetensors.torch
import torch

from fla_oracle import GLA_RANK, attention_of, feed_forward, filled, mamba_sizes, norm_name, sizes
from random_models import Case, with_options

SIZES = dict(vocab_size=97, hidden_size=48, num_hidden_layers=3, norm_eps=1e-4, intermediate_size=67,
             max_position_embeddings=256)
OWN = {
    "gated_deltanet": dict(num_heads=3, head_dim=8, expand_v=1.5),
    "delta_net": dict(num_heads=3, expand_k=0.5, expand_v=0.75),
    "retnet": dict(num_heads=3, expand_k=0.5, expand_v=1.0),
    "gla": dict(num_heads=3),
    "transformer": dict(num_heads=6, num_kv_heads=2, rope_theta=1000.0),
    "mamba2": dict(head_dim=12, state_size=8),
}


def mixer_shapes(config):
    """Of a layer with a state."""
    kind, d = config["model_type"], config["hidden_size"]
    of_query, of_key, of_value, key_size, value_size, taps = sizes(config)
    heads = max(of_query, of_value)
    rows = {"q": of_query * key_size, "k": of_key * key_size, "v": of_value * value_size}
    names = {f"{part}_proj.weight": (count, d) for part, count in rows.items()}
    if taps:
        names |= {f"{part}_conv1d.weight": (count, 1, taps) for part, count in rows.items()}
    if config.get("use_gate", config.get("use_output_gate")):
        names["g_proj.weight"] = (heads * value_size, d)
    if kind in ("gated_deltanet", "delta_net") and config.get("use_beta", True):
        names["b_proj.weight"] = (heads, d)
    if kind == "gated_deltanet":
        names |= {"a_proj.weight": (heads, d), "A_log": (heads,), "dt_bias": (heads,)}
    if kind == "gla":
        names |= {"gk_proj.0.weight": (GLA_RANK, d), "gk_proj.1.weight": (rows["k"], GLA_RANK),
                  "gk_proj.1.bias": (rows["k"],)}
    return names | {norm_name(config) + ".weight": (value_size,), "o_proj.weight": (d, heads * value_size)}


def softmax_shapes(config, said):
    d, size = config["hidden_size"], config["hidden_size"] // said["num_heads"]
    narrow = (said["num_kv_heads"] or said["num_heads"]) * size
    rows = {"q": d, "k": narrow, "v": narrow}
    names = {f"{part}_proj.weight": (count, d) for part, count in rows.items()} | {"o_proj.weight": (d, d)}
    if said["qkv_bias"]:
        names |= {f"{part}_proj.bias": (count,) for part, count in rows.items()}
    if said["qk_norm"]:
        names |= {"q_norm.weight": (size,), "k_norm.weight": (size,)}
    return names


def mamba_shapes(config):
    d, (heads, wide, mixed) = config["hidden_size"], mamba_sizes(config)
    names = {"backbone.embeddings.weight": (config["vocab_size"], d), "backbone.norm_f.weight": (d,)}
    for layer in range(config["num_hidden_layers"]):
        stem = f"backbone.layers.{layer}."
        own = stem + "mixer."
        names |= {stem + "norm.weight": (d,), own + "in_proj.weight": (wide + mixed + heads, d), own + "A_log": (heads,),
                  own + "conv1d.weight": (mixed, 1, config["conv_kernel"]), own + "dt_bias": (heads,),
                  own + "D": (wide if config["D_has_hdim"] else heads,), own + "out_proj.weight": (d, wide)}
        if config["use_conv_bias"]:
            names[own + "conv1d.bias"] = (mixed,)
        if config["use_bias"]:
            names |= {own + "in_proj.bias": (wide + mixed + heads,), own + "out_proj.bias": (d,)}
        if config["rmsnorm"]:
            names[own + "norm.weight"] = (wide,)
    return names if config["tie_word_embeddings"] else names | {"lm_head.weight": (config["vocab_size"], d)}


def shapes(config):
    """Every tensor of the checkpoint and its shape, as the library saves it."""
    config = filled(config)
    if config["model_type"] == "mamba2":
        return mamba_shapes(config)
    d, f, v = config["hidden_size"], feed_forward(config), config["vocab_size"]
    names = {"model.embeddings.weight": (v, d), "model.norm.weight": (d,)}
    if not config["tie_word_embeddings"]:
        names["lm_head.weight"] = (v, d)
    for layer in range(config["num_hidden_layers"]):
        stem, said = f"model.layers.{layer}.", attention_of(config, layer)
        parts = softmax_shapes(config, said) if said else mixer_shapes(config)
        names |= {f"{stem}attn.{part}": shape for part, shape in parts.items()}
        names |= {stem + "attn_norm.weight": (d,), stem + "mlp_norm.weight": (d,), stem + "mlp.gate_proj.weight": (f, d),
                  stem + "mlp.up_proj.weight": (f, d), stem + "mlp.down_proj.weight": (d, f)}
    return names


def values(config, seed, gain):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        last = name.split(".")[-1]
        if "norm" in name:
            tensors[name] = 1.0 + 0.2 * noise
        elif len(shape) == 1:
            # Rates and steps such that states last for a few tokens, and for many.
            tensors[name] = {"A_log": noise, "dt_bias": 2 * noise - 1}.get(last, 0.2 * noise)
        elif "embed" in name:
            tensors[name] = 0.5 * noise
        elif "conv1d" in name:
            tensors[name] = noise / shape[2] ** 0.5
        else:
            tensors[name] = noise / shape[1] ** 0.5 * (gain if ".q_proj" in name or ".k_proj" in name else 1.0)
    return tensors


def fla(folder, seed, kind, dtype=torch.float32, gain=1.7, **options):
    config = {"model_type": kind} | SIZES | OWN[kind] | options
    if kind == "mamba2":   # which has no feed-forward
        config.pop("intermediate_size")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    exact = ("A_log", "dt_bias", ".D")   # the library keeps these in float32
    tensors = {name: value if name.endswith(exact) else value.to(dtype) for name, value in values(config, seed, gain).items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def drawn(folder, seed, kind):
    """Sizes and options at random: another model with each --seed of acceptance.py."""
    draw = random.Random(f"fla {kind} {seed}")
    heads, flag = draw.choice((1, 2, 3, 4)), lambda: draw.random() < 0.5
    layers = draw.randint(1, 4)
    options = dict(vocab_size=draw.randint(40, 120), hidden_size=24 * draw.randint(1, 3), num_hidden_layers=layers,
                   num_heads=heads, norm_eps=draw.choice((1e-6, 1e-2)), tie_word_embeddings=flag(),
                   intermediate_size=draw.choice((None, 51)), hidden_ratio=draw.choice((None, 1, 3)),
                   dtype=draw.choice((torch.float32, torch.bfloat16)), gain=draw.choice((1.0, 1.7)))
    few = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    softmax = dict(num_heads=draw.choice((2, 3, 6)), qkv_bias=flag(), window_size=draw.choice((None, 1, 20)),
                   rope_theta=draw.choice((100.0, 10000.0)))
    if kind == "transformer":
        options |= softmax | dict(qk_norm=flag(), num_kv_heads=draw.choice((None, 1)))
    elif flag():
        options["attn"] = softmax | dict(layers=[layer for layer in range(layers) if flag()], num_kv_heads=1)
    if kind == "gated_deltanet":
        options |= dict(head_dim=draw.choice((4, 6)), expand_v=draw.choice((0.5, 1.0, 2.0)), use_gate=flag(),
                        num_v_heads=draw.choice((None, 2 * heads)), use_short_conv=flag(), conv_size=draw.choice((2, 4)),
                        allow_neg_eigval=flag())
    if kind == "delta_net":
        options |= dict(expand_k=draw.choice((0.5, 1.0)), expand_v=draw.choice((0.5, 1.0)), use_gate=flag(),
                        use_short_conv=flag(), use_beta=flag(), qk_activation=draw.choice(("silu", "relu", "identity")))
    if kind in ("retnet", "gla"):
        options |= dict(expand_k=draw.choice((0.5, 1.0)), expand_v=draw.choice((0.5, 1.0)), num_kv_heads=few,
                        use_output_gate=flag(), fuse_norm=flag(), use_short_conv=flag())
    if kind == "mamba2":
        groups = draw.choice((1, 2))
        options = {key: options[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers", "norm_eps",
                                                 "tie_word_embeddings", "dtype")}
        options |= dict(head_dim=12 // groups, state_size=draw.choice((1, 6, 16)), expand=draw.choice((1, 2)), n_groups=groups,
                        conv_kernel=draw.choice((2, 4)), use_bias=flag(), use_conv_bias=flag())
    fla(folder, seed, kind, **options)


def cases():
    def case(name, kind, lengths=None, **options):
        more = {"lengths": lengths} if lengths else {}
        return Case(f"fla-{name}", with_options(fla, kind=kind, **options), **more)

    few = (1, 65, 130)
    softmax = dict(layers=[1], num_heads=6, num_kv_heads=2, window_size=17)
    listed = []
    for kind in OWN:
        listed += [case(kind, kind), Case(f"fla-{kind}-drawn", with_options(drawn, kind=kind), lengths=(65, 130, 1)),
                   case(f"{kind}-bf16-tied", kind, few, dtype=torch.bfloat16, tie_word_embeddings=True)]
        if kind not in ("transformer", "mamba2"):
            listed.append(case(f"{kind}-hybrid", kind, few, attn=softmax))
    return listed + [
        case("transformer-norms-window", "transformer", few, qk_norm=True, qkv_bias=True, window_size=9),
        case("gated_deltanet-groups-plain", "gated_deltanet", few, num_v_heads=6, use_gate=False, use_short_conv=False,
             allow_neg_eigval=True),
        case("gated_deltanet-two-windows", "gated_deltanet", few,
             attn=[dict(layers=[0], num_heads=4, window_size=5, rope_theta=100.0), dict(layers=[2], num_heads=4)]),
        case("gated_deltanet-sigmoid", "gated_deltanet", few, output_gate_activation="sigmoid"),
        case("gated_deltanet-other-heads", "gated_deltanet", few,
             attn=[dict(layers=[0], num_heads=4, num_kv_heads=2, window_size=5, rope_theta=100.0),
                   dict(layers=[2], num_heads=6, qkv_bias=True)]),
        case("retnet-relu", "retnet", few, feature_map="relu"),
        case("gla-gelu-convolved", "gla", few, feature_map="gelu", use_short_conv=True),
        case("delta_net-sums", "delta_net", few, qk_activation="elu", qk_norm="sum", use_gate=True),
        case("delta_net-plain", "delta_net", few, use_short_conv=False, use_beta=False, allow_neg_eigval=False),
        case("retnet-one-key-head-open", "retnet", few, num_kv_heads=1, use_output_gate=False, use_short_conv=True),
        case("mamba2-no-matrix", "mamba2", few, D_has_hdim=True, norm_before_gate=True, dt_limit=[0.1, 1.0]),
        case("mamba2-no-norm", "mamba2", few, rmsnorm=False, use_conv_bias=False),
        case("mamba2-groups-biases", "mamba2", few, n_groups=2, use_bias=True, conv_kernel=3, norm_eps=1e-2),
        case("gla-groups-convolved", "gla", few, num_kv_heads=1, use_short_conv=True, clamp_min=-0.03, fuse_norm=False),
    ]


if __name__ == "__main__":
    for one in cases():
        one.make(Path(sys.argv[1]) / one.name, 1)
