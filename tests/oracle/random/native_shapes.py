# SPDX-License-Identifier: GPL-3.0-or-later
"""Names and shapes of a native checkpoint's tensors (docs/file-formats.md, "Native checkpoints"), by its configuration."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import word_hashes
from native_options import GLA_RANK, LAZY, LEARNERS, RECURRENT, recurrent_sizes

TABLE = {"kind": "table"}
NGRAMS = word_hashes.most_frequent(word_hashes.CORPUS, 60)


def shapes(config):
    """Every tensor of the checkpoint and its shape."""
    d, v = config["hidden_size"], config["vocab_size"]
    names = {"model.embed_tokens.weight": (v, d)} if config.get("embedding", TABLE) == TABLE else hash_shapes(config)
    if config.get("type_vocab_size", 0):
        names["model.embed_types.weight"] = (config["type_vocab_size"], d)
    names |= head_shapes(config)
    layers, first = config["layers"], config.get("num_encoder_layers", 0)
    towers = [("encoder.", layers[:first]), ("decoder.", layers[first:])] if first else [("", layers)]
    for tower, mixers in towers:
        names |= tower_shapes(config, f"model.{tower}", mixers, tower == "decoder.")
    if "rnd_emb_qk" in layers:
        names["model.guide"] = (1, config["max_position_embeddings"], d)
    return names


def hash_shapes(config):
    said, d = config["embedding"], config["hidden_size"]
    kind, bits, part = said["kind"], said.get("bits", 0), lambda name: f"model.embed_{name}.weight"
    normal = {"model.hash_normal": (len(NGRAMS),)} if said.get("hash") == "lsh" else {}
    if kind == "emb":
        return normal | {part("tokens"): (said["rows"] + 5, d)}
    groups = -(-bits // said.get("group_bits", 1))
    return normal | {part("special"): (5 if kind in ("linear", "characters") else 6, d)} | {
        "pool": lambda: {part("codes"): (2 ** said["group_bits"], d), part("parts"): (groups, d)},
        "add": lambda: {part("bits"): (bits, 2, d)},
        "proj": lambda: {part("axes"): (d, bits)},
        "linear": lambda: {part("axes"): (d, bits)},
        "characters": lambda: {part("buckets"): (said["hash_functions"], said["buckets"], d // said["hash_functions"])},
    }[kind]()


def norm_shapes(config, name, size):
    return {f"{name}.weight": (size,)} | ({f"{name}.bias": (size,)} if config.get("norm") == "layer" else {})


def head_shapes(config):
    head, d = config.get("head", {"kind": "language"}), config["hidden_size"]
    kind, names = head["kind"], {}
    if kind == "sequence_classes" and config.get("stack", "decoder") == "decoder":
        return {"score.weight": (head["classes"], d)}
    if kind in ("masked_language", "sequence_classes"):
        names |= {"head.dense.weight": (d, d), "head.dense.bias": (d,)}
    if kind in ("token_classes", "sequence_classes"):
        names |= {"classifier.weight": (head["classes"], d), "classifier.bias": (head["classes"],)}
    if kind == "spans":
        names |= {"qa_outputs.weight": (2, d), "qa_outputs.bias": (2,)}
    if kind in ("language", "masked_language") and not config["tie_word_embeddings"]:
        names["lm_head.weight"] = (config["vocab_size"], d)
    if kind == "masked_language":
        names |= norm_shapes(config, "head.norm", d) | {"lm_head.bias": (config["vocab_size"],)}
    elif kind == "language" and config.get("head_bias"):
        names["lm_head.bias"] = (config["vocab_size"],)
    return names


def tower_shapes(config, prefix, mixers, reads_encoder):
    d, f, names = config["hidden_size"], config["intermediate_size"], {}
    if config.get("norm_place", "pre") == "pre":
        names |= norm_shapes(config, prefix + "norm", d)
    if config.get("embedding_norm"):
        names |= norm_shapes(config, prefix + "embed_norm", d)
    if config.get("positions") == "learned":
        names[prefix + "embed_positions.weight"] = (config["max_position_embeddings"], d)
    for layer, mixer in enumerate(mixers):
        stem = f"{prefix}layers.{layer}."
        names |= norm_shapes(config, stem + "input_layernorm", d) | mixer_shapes(config, stem + "self_attn.", mixer)
        if reads_encoder:
            names |= norm_shapes(config, stem + "cross_attention_layernorm", d)
            names |= mixer_shapes(config, stem + "cross_attn.", mixer)
        if f == 0:
            continue
        names |= norm_shapes(config, stem + "post_attention_layernorm", d)
        maps = {"up": (f, d), "down": (d, f)} | ({"gate": (f, d)} if config.get("feed_forward", "gated") == "gated" else {})
        for part, shape in maps.items():
            names[f"{stem}mlp.{part}_proj.weight"] = shape
            if config.get("mlp_bias"):
                names[f"{stem}mlp.{part}_proj.bias"] = shape[:1]
    return names


def mixer_shapes(config, own, mixer):
    """With the output projection."""
    d = config["hidden_size"]
    wide = config["num_attention_heads"] * config["head_dim"]
    narrow = config["num_key_value_heads"] * config["head_dim"]
    if mixer == "fnet":
        return {}
    if mixer == "linear":
        positions = config["max_position_embeddings"]
        return {own + "token_proj.weight": (positions, positions), own + "hidden_proj.weight": (d, d)}
    names = {own + "o_proj.weight": (d, wide)}
    if config.get("output_bias"):
        names[own + "o_proj.bias"] = (d,)
    if mixer in RECURRENT:
        parts, columns = recurrent_shapes(config, mixer)
        return names | {own + part: shape for part, shape in parts.items()} | {own + "o_proj.weight": (d, columns)}
    if mixer == "mlp":
        return names | {own + "gate_proj.weight": (wide, d), own + "up_proj.weight": (wide, d),
                        own + "down_proj.weight": (wide, wide)}
    for part, rows in mapped_rows(mixer, wide, narrow, config["head_dim"]):
        names[f"{own}{part}_proj.weight"] = (rows, d)
        if config["attention_bias"]:
            names[f"{own}{part}_proj.bias"] = (rows,)
    if mixer == "lazy":
        options = LAZY | config["mixers"].get("lazy", {})
        if options["distance_bias"]:
            names[own + "distance_bias"] = (config["num_attention_heads"], options["window"])
        if options["normaliser"] == "elastic" and options["offset"] != "fixed":
            names[own + "offset"] = (config["num_attention_heads"],)
    if mixer.startswith("mhe"):
        names |= {f"{own}{part}_head_embedding": (config["num_attention_heads"], config["head_dim"]) for part in "qkv"}
    if mixer == "sink_logits":
        names[own + "sinks"] = (config["num_attention_heads"],)
    if config["qk_norm"]:
        names |= norm_shapes(config, own + "q_norm", config["head_dim"])
        names |= norm_shapes(config, own + "k_norm", config["head_dim"])
    return names


def mapped_rows(mixer, wide, narrow, size):
    """Rows of the maps to query, key and value, of those that there are."""
    rows = {"sha": (size, size, size), "mqa": (wide, size, size), "skv": (wide, narrow, 0), "el_att": (wide, 0, 0),
            "mhe_add": (size, size, size), "mhe_mul": (size, size, size)}.get(mixer, (wide, narrow, narrow))
    return [(part, count) for part, count in zip("qkv", rows) if count]


def recurrent_shapes(config, mixer):
    """Of a layer with a state, beside its output projection."""
    options, d = recurrent_sizes(config, mixer), config["hidden_size"]
    size, value, heads = options["head_dim"], options["value_dim"], options["num_value_heads"]
    if mixer == "mamba2":
        mixed = heads * size + 2 * options["num_groups"] * options["state_size"]
        names = {"in_proj.weight": (heads * size + mixed + heads, d), "A_log": (heads,), "D": (heads,), "dt_bias": (heads,),
                 "norm.weight": (heads * size,)}
        if options["conv_size"]:
            names |= {"conv1d.weight": (mixed, 1, options["conv_size"]), "conv1d.bias": (mixed,)}
        return names, heads * size
    rows = {"q": options["num_heads"] * size, "k": options["num_heads"] // options["sharing"] * size,
            "v": heads // options["sharing"] * value}
    names = {f"{part}_proj.weight": (count, d) for part, count in rows.items()}
    if options["conv_size"]:
        names |= {f"{part}_conv1d.weight": (count, 1, options["conv_size"]) for part, count in rows.items()}
    if options.get("use_gate", mixer == "natsl") or mixer == "lightning":
        names["g_proj.weight"] = (heads * value, d)
    if mixer == "natsl":
        return names | natsl_shapes(options, d), heads * value
    if mixer == "kda":
        names |= {"f_a_proj.weight": (size, d), "f_b_proj.weight": (rows["q"], size), "g_a_proj.weight": (size, d),
                  "g_b_proj.weight": (heads * value, size), "A_log": (1, 1, heads, 1), "dt_bias": (rows["q"],)}
    if mixer == "kda" or mixer.endswith("deltanet") and options.get("use_beta", True):
        names["b_proj.weight"] = (heads, d)
    if mixer == "gated_deltanet":
        names |= {"a_proj.weight": (heads, d), "A_log": (heads,), "dt_bias": (heads,)}
    if mixer in LEARNERS:
        maps = ("lr",) if mixer == "ttt_linear" else ("lr", "forget", "momentum")
        names |= {f"{name}_proj.weight": (heads, d) for name in maps} | {f"{name}_proj.bias": (heads,) for name in maps}
        names |= {"memory_norm.weight": (heads, size), "memory_norm.bias": (heads, size), "memory": (heads, size, size)}
        if mixer == "ttt_linear":
            names["memory_bias"] = (heads, size)
    if mixer == "gla":
        names |= {"gk_proj.0.weight": (GLA_RANK, d), "gk_proj.1.weight": (rows["k"], GLA_RANK),
                  "gk_proj.1.bias": (rows["k"],)}
    return names | {"o_norm.weight": (heads * value if mixer == "lightning" else value,)}, heads * value


def natsl_shapes(options, d):
    """What a NAtS-L layer has beside projections, convolutions and the gate."""
    heads, wide, keys = options["num_heads"], options["num_softmax_heads"], options["num_heads"] * options["head_dim"]
    value = heads * options["value_dim"] // wide
    names = {"b_proj.weight": (heads, d), "a_proj.weight": (heads, d), "A_log": (heads,), "dt_bias": (heads,),
             "score_proj.weight": (2 * heads, d), "q_norm.weight": (keys // wide,), "k_norm.weight": (keys // wide,)}
    if options["weights"] != "none":
        names["weight_proj.weight"] = (2 * wide, keys if options["weights"] == "query" else d)
    norms = ("linear_norm", "softmax_norm") if options["norm"] == "each" else ("o_norm",)
    return names | {f"{name}.weight": (value,) for name in norms}
