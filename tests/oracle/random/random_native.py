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
from native_options import BASELINES, HEAD_VARIANTS, LEARNERS, RECURRENT
from native_shapes import NGRAMS, TABLE, shapes
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
    """Encoders, and decoders in GPT-2's manner; random_encoder_decoders.py has both together."""
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
