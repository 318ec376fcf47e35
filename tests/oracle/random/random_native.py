# SPDX-License-Identifier: GPL-3.0-or-later
"""Random native checkpoints of every mixer, layout and option, for the acceptance test. See random_models.py."""

import json
import random
import sys
from pathlib import Path

import safetensors.torch
import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import word_hashes
from native_options import BASELINES, GLA_RANK, HEAD_VARIANTS, LAZY, LEARNERS, RECURRENT, recurrent_sizes
from random_models import Case, with_options

ATTENTIVE = ("standard", "approximate", "non_approximate", "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk")
MIXERS = ("mlp", *ATTENTIVE)  # those that native_models.py's all-mixers has
APPROXIMATE = [{"second_order": order, "normalisation": sums} for order in ("full", "diagonal")
               for sums in ("joint", "per_order")]
SIZES = dict(
    vocab_size=103, hidden_size=48, intermediate_size=67, num_hidden_layers=3, num_attention_heads=6,
    num_key_value_heads=6, head_dim=8, max_position_embeddings=256, rms_norm_eps=1e-4, rope_theta=1000.0,
    attention_bias=True, qk_norm=False, rotary=True, tie_word_embeddings=False, initializer_range=0.02,
)


def standard_layers(layout, layers):
    """Table 11, counted from 1."""
    return {
        "uniform": [], "even": range(2, layers + 1, 2), "odd": range(1, layers + 1, 2), "top": range(1, layers // 2 + 1),
        "middle": [*range(1, layers // 4 + 1), *range(3 * layers // 4 + 1, layers + 1)],
        "bottom": range(layers // 2 + 1, layers + 1), "quarter": range(4, layers + 1, 4), "first": [1], "last": [layers],
        "bilateral": [1, layers],
    }[layout]


TABLE = {"kind": "table"}
NGRAMS = word_hashes.most_frequent(word_hashes.CORPUS, 60)
HASHES = {
    "md5-emb": dict(kind="emb", hash="md5", rows=97), "lsh-emb": dict(kind="emb", hash="lsh", rows=70),
    "md5-pool": dict(kind="pool", hash="md5", bits=128, group_bits=10, key="de"),
    "lsh-pool": dict(kind="pool", hash="lsh", bits=21, group_bits=4), "md5-add": dict(kind="add", hash="md5", bits=128),
    "lsh-add": dict(kind="add", hash="lsh", bits=90), "md5-proj": dict(kind="proj", hash="md5", bits=128),
    "lsh-proj": dict(kind="proj", hash="lsh", bits=33), "lsh-linear": dict(kind="linear", hash="lsh", bits=420),
    "md5-linear": dict(kind="linear", hash="md5", bits=128),
    "characters": dict(kind="characters", hash_functions=8, buckets=101),
    "one-character": dict(kind="characters", hash_functions=1, buckets=16000),
}
# Keys of the manners that the thesis has beside Qwen2's.
CLASSIC = dict(norm="layer", layer_norm_eps=1e-5, norm_place="post", positions="learned", feed_forward="plain",
               hidden_act="gelu", attention_bias=True, output_bias=True, mlp_bias=True)
MANNERS = {
    "bert": CLASSIC | dict(stack="encoder", layer_norm_eps=1e-12, embedding_norm=True, type_vocab_size=2,
                           tie_word_embeddings=True, head={"kind": "masked_language"}),
    "gpt2": CLASSIC | dict(stack="decoder", norm_place="pre", hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True),
    "bart": CLASSIC | dict(stack="encoder_decoder", embedding_norm=True, tie_word_embeddings=True),
    "vaswani": CLASSIC | dict(stack="encoder_decoder", positions="sinusoidal", hidden_act="relu", attention_bias=False,
                              output_bias=False, embedding_scale=4.5, tie_word_embeddings=True),
}


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


def draw_words(config, lengths, seed):
    """Sequences for hash models: words as they stand, special tokens, and bits where the model reads some."""
    draw, said, result = random.Random(f"words {seed}"), config["embedding"], []
    words = [word for word in word_hashes.WORDS if word.isprintable() and word]
    for length in lengths:
        tokens = [draw.choice(word) if said["kind"] == "characters" else word
                 for word in draw.choices(words, k=length)]
        for place in range(length):
            if draw.random() < 0.1:
                tokens[place] = draw.randrange(5)
            elif said.get("bits") and draw.random() < 0.1:
                tokens[place] = {"hash": word_hashes.hexed([draw.randrange(2) for _ in range(said["bits"])])}
        tokens[length // 2 :] = tokens[: length - length // 2]
        result.append(tokens)
    return result


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


def values(config, seed, gain):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in shapes(config).items():
        noise = torch.randn(shape, generator=generator)
        if "memory_norm" in name or "memory_bias" in name:
            tensors[name] = 0.2 * noise + name.endswith("weight")
        elif "forget_proj.bias" in name:
            tensors[name] = noise - 2
        elif "norm" in name:
            tensors[name] = 0.2 * noise + name.endswith("weight")
            if "_norm" in name and "embed_norm" not in name:
                tensors[name] *= gain
        elif len(shape) == 1:
            # Rates and steps such that states last for a few tokens, and for many.
            tensors[name] = {"A_log": noise, "dt_bias": 2 * noise - 1,
                             "offset": -(0.8 + 0.4 * noise).abs(), "sinks": 2 * noise}.get(name.split(".")[-1], 0.2 * noise)
        elif "distance_bias" in name:
            tensors[name] = 0.5 * noise
        elif "conv1d" in name:
            tensors[name] = noise / shape[2] ** 0.5
        elif "embed" in name or "guide" in name:
            tensors[name] = 0.5 * noise
        else:
            tensors[name] = noise / shape[1] ** 0.5 * (gain if ".q_proj" in name or ".k_proj" in name else 1.0)
    if "fixed_seq_qk" in config["layers"]:
        tensors["model.guide_ids"] = torch.randint(
            config["vocab_size"], (config["max_position_embeddings"],), generator=generator)
    return tensors


def native(folder, seed, layers, dtype=torch.float32, shards=1, gain=1.7, mixers=None, **options):
    config = SIZES | options | {"model_type": "headscope", "layers": list(layers), "mixers": mixers or {}}
    config["num_hidden_layers"] = len(layers)
    if config.get("positions", "rotary") != "rotary":
        del config["rotary"]
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    if config.get("embedding", TABLE).get("hash") == "lsh":
        (folder / "ngrams.json").write_text(json.dumps(NGRAMS))
    tensors = {name: value if value.dtype == torch.int64 or name == "model.hash_normal" else value.to(dtype)
               for name, value in values(config, seed, gain).items()}
    if shards == 1:
        safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names, index = sorted(tensors), {}
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[shard::shards]}
        safetensors.torch.save_file(part, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))


def drawn(folder, seed, mixer):
    """Sizes, layers and options at random: another model with each --seed of acceptance.py."""
    draw = random.Random(f"{mixer} {seed}")
    heads, size = draw.choice((1, 2, 3, 5, 6)), draw.choice((4, 6, 10, 14))
    count = draw.randint(1, 4)
    # Roundings of a state that learns grow by the spread of its keys: what stands behind one is good to fewer digits.
    tame = [name for name in RECURRENT if name not in LEARNERS]
    others = [draw.choice((mixer, mixer, "standard", *MIXERS, *tame)) for _ in range(count - 1)]
    layers = [mixer, *others]
    draw.shuffle(layers)
    native(
        folder, seed, layers, vocab_size=draw.randint(40, 120),
        hidden_size=draw.choice((heads * size, draw.randint(5, 60) if mixer != "el_att" else heads * size)),
        intermediate_size=draw.randint(7, 90), num_attention_heads=heads, head_dim=size,
        num_key_value_heads=draw.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        attention_bias=draw.random() < 0.5, qk_norm=draw.random() < 0.5, rotary=draw.random() < 0.7,
        tie_word_embeddings=draw.random() < 0.5, rope_theta=draw.choice((100.0, 5000.0)),
        dtype=draw.choice((torch.float32, torch.bfloat16, torch.float16)), shards=draw.choice((1, 3)),
        gain=draw.choice((1.0, 1.5, 3.0)),
        mixers={"approximate": draw.choice(APPROXIMATE[:1])} | {name: drawn_options(draw, name) for name in RECURRENT}
        | {"sigmoid": {"bias": draw.choice((-3.0, 0.0, 1.5))},
           "streaming_llm": {"first": draw.choice((0, 1, 5)), "window": draw.choice((1, 8, 40)),
                             "positions": draw.choice(("text", "cache"))}}
        | ({"lazy": {"window": draw.choice((1, 40, 512)), "offset": draw.choice(("per_length", "constant", "fixed"))}}
           if mixer == "lazy" else {}))


def drawn_encoder(folder, seed, number):
    """An encoder of random sizes, mixers, manners, embedding and head: another one with each --seed of acceptance.py."""
    draw = random.Random(f"encoder {number} {seed}")
    heads, size = draw.choice((1, 2, 3, 5)), draw.choice((8, 16))
    hidden = heads * size
    chosen = ("standard", *HEAD_VARIANTS, "mlp", "sigmoid", "sink_logits", "fnet", "linear")
    kind = draw.choice(("table", *HASHES))
    embedding = HASHES[kind] if kind != "table" else TABLE
    head = draw.choice(({"kind": "token_classes", "classes": 3}, {"kind": "none"}))
    native(
        folder, seed, [draw.choice(chosen) for _ in range(draw.randint(1, 4))], stack="encoder", embedding=embedding, head=head,
        vocab_size=draw.randint(40, 120) if kind == "table" else 0, tie_word_embeddings=False, hidden_size=hidden,
        num_attention_heads=heads, head_dim=size, num_key_value_heads=draw.choice([n for n in range(1, heads + 1) if heads % n == 0]),
        intermediate_size=draw.randint(7, 90), norm=draw.choice(("rms", "layer")), norm_place=draw.choice(("pre", "post")),
        layer_norm_eps=1e-5, positions=draw.choice(("rotary", "learned", "sinusoidal", "none")),
        feed_forward=draw.choice(("gated", "plain")), hidden_act=draw.choice(("silu", "gelu", "gelu_pytorch_tanh", "relu")),
        attention_bias=draw.random() < 0.5, output_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5,
        qk_norm=draw.random() < 0.3, embedding_norm=draw.random() < 0.5, embedding_scale=draw.choice((1.0, 2.5)),
        type_vocab_size=draw.choice((0, 1, 2)), dtype=draw.choice((torch.float32, torch.bfloat16, torch.float16)),
        gain=draw.choice((1.0, 1.5)))


def drawn_options(draw, mixer):
    options = {key: draw.random() < 0.5 for key, usual in RECURRENT[mixer].items() if isinstance(usual, bool)}
    heads, size = draw.choice((1, 2, 3, 6)), draw.choice((2, 4, 8))
    options |= {"num_heads": heads, "head_dim": size}
    if "expand_v" in RECURRENT[mixer]:
        options["expand_v"] = draw.choice((0.5, 1.0, 1.5, 2.0))
    for key, usual in RECURRENT[mixer].items():
        if key == "num_value_heads":
            options[key] = heads * draw.choice((1, 2, 3))
        elif key == "num_key_value_heads":
            options[key] = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
        elif key == "num_groups":
            options[key] = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
        elif key == "state_size":
            options[key] = draw.choice((1, 5, 16))
        elif key == "conv_size":
            options[key] = draw.choice((0, 1, 3, 4))
        elif key == "mini_batch_size":
            options[key] = draw.choice((1, 5, 16, 64))
        elif key == "base_lr":
            options[key] = draw.choice((0.2, 1.0))
        elif key == "clamp_min":
            options[key] = draw.choice((0.0, -0.05))
        elif key == "rope_theta":
            options[key] = 50.0 if mixer == "natsl" else draw.choice((0.0, 50.0))
    if mixer == "natsl":
        value = round(size * options["expand_v"])
        group = draw.choice([n for n in (1, 2) if size // n % 2 == 0 and value % n == 0])
        options |= {"num_softmax_heads": heads * group, "chunk_size": draw.choice((3, 16, 64)),
                    "inside_chunk": draw.choice(("both", "softmax")), "norm": draw.choice(("each", "sum")),
                    "weights": draw.choice(("query", "input", "none"))}
    if mixer in LEARNERS:  # the norm of two numbers is little more than a sign
        options["head_dim"] = max(size, 4)
    if "use_beta" in options:  # without it a key replaces all that is like it, and roundings grow: golden models have it
        options["use_beta"] = True
    return options


def stack_cases(case, few):
    """Encoders, and decoders in GPT-2's manner; encoder_decoder_acceptance.py has both together."""
    listed = []
    odd = dict(hidden_size=30, head_dim=10, num_attention_heads=3)
    for mixer in ("standard", *HEAD_VARIANTS, "mlp", "sigmoid", "sink_logits", "fnet", "linear"):
        listed += [
            case(f"encoder-{mixer}", [mixer] * 3, **MANNERS["bert"]),
            case(f"encoder-{mixer}-pre-norm-bf16", [mixer, "standard"], few, stack="encoder", dtype=torch.bfloat16,
                 positions="sinusoidal", embedding_scale=3.0, qk_norm=True, head={"kind": "token_classes", "classes": 5},
                 num_key_value_heads=1, shards=2, **odd),
        ]
    for mixer in ("standard", *HEAD_VARIANTS, "gated_deltanet", "lazy"):
        listed += [
            case(f"classic-{mixer}", [mixer, "standard", mixer], few, **MANNERS["gpt2"]),
            case(f"post-norm-{mixer}", [mixer] * 2, few, norm_place="post", norm="layer", positions="none", head_bias=True,
                 mlp_bias=True, num_key_value_heads=3, **odd),
        ]
    classes = {"head": {"kind": "token_classes", "classes": 4}, "vocab_size": 0, "tie_word_embeddings": False}
    for name, embedding in HASHES.items():
        listed += [
            case(f"hash-{name}", ["standard", "mhe_mul"], few, **MANNERS["bert"] | classes | {"embedding": embedding}),
            case(f"hash-{name}-pre-norm-bf16", ["sha", "linear"], (1, 33), stack="encoder", dtype=torch.bfloat16, shards=2,
                 embedding_scale=0.5, embedding=embedding, **classes | {"head": {"kind": "none"}}),
        ]
    return listed + [
        *(Case(f"native-encoder-drawn-{number}", with_options(drawn_encoder, number=number), lengths=(65, 130, 1))
          for number in range(4)),
        case("encoder-no-head-skipped", ["mhe_mul", "standard", "fnet"], few, skip=(1,),
             **MANNERS["bert"] | {"head": {"kind": "none"}, "type_vocab_size": 0}),
        case("guides-post-norm", ["rnd_emb_qk", "fixed_seq_qk", "static_emb_qk"], few, norm_place="post",
             positions="learned", embedding_norm=True),
    ]


def cases():
    def case(name, layers, lengths=None, skip=(), arguments=(), windows=0, **options):
        more = {"lengths": lengths} if lengths else {}
        return Case(f"native-{name}", with_options(native, layers=layers, **options), skip=skip, windows=windows,
                    arguments=list(arguments), **more)

    few = (1, 65, 130)
    listed = stack_cases(case, few)
    layouts = ("even", "odd", "top", "middle", "bottom", "quarter", "first", "last", "bilateral")
    for number, mixer in enumerate((*MIXERS, *RECURRENT, "lazy", *BASELINES, *HEAD_VARIANTS)):
        mixed = [mixer if layer % 2 == 0 else "standard" for layer in range(3)]
        uniform = [mixer] * 3
        layout = layouts[number % len(layouts)]
        hybrid = ["standard" if n in standard_layers(layout, 5) else mixer for n in range(1, 6)]
        replaced = tuple(layer for layer, name in enumerate(mixed) if name != "standard")
        listed += [
            case(f"{mixer}", uniform),
            case(f"{mixer}-even-groups-norms", mixed, few, num_key_value_heads=2, attention_bias=False, qk_norm=True,
                 gain=1.3),
            case(f"{mixer}-one-key-head-no-rotary-bf16", uniform[:2], few, num_key_value_heads=1, rotary=False,
                 dtype=torch.bfloat16, shards=2, tie_word_embeddings=True),
            case(f"{mixer}-{layout}-small", hybrid, (1, 33), hidden_size=30, head_dim=10, num_attention_heads=3,
                 num_key_value_heads=3),
            case(f"{mixer}-even-skipped", mixed, (65, 2), skip=replaced),
            Case(f"native-{mixer}-drawn", with_options(drawn, mixer=mixer), lengths=(65, 130, 1)),
        ]
    listed += [
        case(f"streaming_llm-{first}-{window}-{positions}", ["streaming_llm", "standard", "streaming_llm"], few,
             num_key_value_heads=2, mixers={"streaming_llm": dict(first=first, window=window, positions=positions)})
        for first, window in ((4, 16), (0, 1), (1, 64)) for positions in ("text", "cache")
    ]
    listed += [
        case("alibi-five-heads", ["alibi"] * 2, few, num_attention_heads=5, num_key_value_heads=1),
        case("sigmoid-no-bias", ["sigmoid"] * 2, few, mixers={"sigmoid": {"bias": 0.0}}),
        *(case(f"{mixer}-loud", [mixer], (7, 40), gain=40.0) for mixer in BASELINES),
    ]
    small = dict(num_heads=3, head_dim=8, expand_v=1.5, num_softmax_heads=6, chunk_size=8)
    listed += [
        case(f"natsl-{name}", ["natsl", "standard", "natsl"], few, mixers={"natsl": small | options})
        for name, options in {
            "small-chunks": {}, "softmax-inside": dict(inside_chunk="softmax"),
            "kept-whole": dict(decay_in_softmax_chunks=False, rotary=False),
            "one-norm": dict(norm="sum", weights="input", softmax_reads_conv=False),
            "no-weights": dict(weights="none", conv_size=0, allow_neg_eigval=True)}.items()
    ]
    listed += [
        case(f"{mixer}-mini-batches-of-{size}", [mixer, "standard", mixer], few,
             mixers={mixer: dict(num_heads=3, head_dim=12, mini_batch_size=size)})
        for mixer in LEARNERS for size in (1, 7, 64)
    ]
    listed += [
        case("mamba2-no-feed-forward", ["mamba2"] * 3, few, intermediate_size=0),
        case("mamba2-standard-no-feed-forward", ["mamba2", "standard"], few, intermediate_size=0, qk_norm=True),
    ]
    listed += [
        case(f"approximate-{'-'.join(options.values())}", ["approximate", "standard"], few, mixers={"approximate": options})
        for options in APPROXIMATE[1:]
    ]
    listed += [
        case(f"{layout}-of-{mixer}", ["standard" if n in standard_layers(layout, 8) else mixer for n in range(1, 9)], (33,),
             hidden_size=20, head_dim=10, num_attention_heads=2, num_key_value_heads=2)
        for layout, mixer in zip(layouts, ("rnd_emb_qk", "non_approximate", "static_emb_qk", "mlp", "fixed_seq_qk",
                                           "approximate", "rnd_emb_qk", "non_approximate", "static_emb_qk"))
    ]
    listed += [
        case(f"lazy-{name}", ["lazy", "standard", "lazy"], few, gain=2.5, mixers={"lazy": options})
        for name, options in {
            "no-bias": dict(distance_bias=False), "small-window": dict(window=16), "constant": dict(offset="constant"),
            "fixed": dict(offset="fixed", window=100), "softmax": dict(normaliser="softmax"),
            "sparsemax": dict(normaliser="sparsemax"), "entmax": dict(normaliser="entmax"),
            "entmax-no-bias": dict(normaliser="entmax", distance_bias=False)}.items()
    ]
    listed += [
        case("lazy-loud", ["lazy"], (7, 40), gain=20.0),
        case("lazy-groups-norms", ["lazy"] * 2, few, num_key_value_heads=2, qk_norm=True, attention_bias=False),
    ]
    sparse = {"mixers": {"standard": {"normaliser": "sparsemax"}}}
    listed += [
        case("sparsemax", ["standard"] * 2, **sparse),
        case("sparsemax-loud", ["standard"], (7, 40), gain=20.0, **sparse),
        case("sparsemax-groups-mlp", ["mlp", "standard"], few, num_key_value_heads=1, qk_norm=True, attention_bias=False,
             **sparse),
    ]
    listed += [
        case("all-mixers", list(MIXERS), num_key_value_heads=3),
        case("both-guides", ["rnd_emb_qk", "fixed_seq_qk", "static_emb_qk", "rnd_emb_qk", "fixed_seq_qk"], few),
        # Scores of thousands, as uniform variants have them: rows of the dense weights still add up to 1.
        *(case(f"{mixer}-loud", [mixer], (7, 40), gain=60.0) for mixer in ATTENTIVE),
        case("windows", ["rnd_emb_qk", "static_emb_qk", "mlp"], (200, 65, 1), windows=64),
    ]
    return listed
