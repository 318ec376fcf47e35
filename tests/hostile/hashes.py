# SPDX-License-Identifier: GPL-3.0-or-later
"""Native stacks: wrong values of every key that says what a stack is, of its embedding and its head; models that read
hashes of words whose ngrams.json or tensors lie."""

import json

from families import ids, tiny_file
from harness import Place, check

SIZE, TEXT = 16, "In the beginning God created."
NGRAMS = ["e", "th", "n", "the", "begi", "\u00e9"]
BASE = {
    "model_type": "headscope", "stack": "encoder", "hidden_size": SIZE, "intermediate_size": 20, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 4, "max_position_embeddings": 64, "norm": "layer",
    "layer_norm_eps": 1e-5, "norm_place": "post", "positions": "learned", "feed_forward": "plain", "hidden_act": "gelu",
    "attention_bias": True, "output_bias": True, "mlp_bias": True, "qk_norm": False, "embedding_norm": True,
    "embedding_scale": 1.0, "type_vocab_size": 1, "vocab_size": 0, "tie_word_embeddings": False,
    "layers": ["standard", "standard"], "mixers": {}, "head": {"kind": "token_classes", "classes": 3},
}
EMBEDDINGS = {
    "emb": {"kind": "emb", "hash": "lsh", "rows": 9}, "emb-md5": {"kind": "emb", "hash": "md5", "key": "en", "rows": 9},
    "pool": {"kind": "pool", "hash": "lsh", "bits": 11, "group_bits": 4}, "add": {"kind": "add", "hash": "lsh", "bits": 11},
    "proj": {"kind": "proj", "hash": "md5", "bits": 128}, "linear": {"kind": "linear", "hash": "lsh", "bits": 11},
    "characters": {"kind": "characters", "hash_functions": 4, "buckets": 13},
}


def tensors_of(embedding):
    """The shapes of BASE with this embedding."""
    shapes = {"model.embed_positions.weight": [64, SIZE], "model.embed_types.weight": [1, SIZE], "classifier.weight": [3, SIZE],
              "classifier.bias": [3]}
    norms = ["model.embed_norm"]
    for layer in range(2):
        begin = f"model.layers.{layer}."
        norms += [begin + "input_layernorm", begin + "post_attention_layernorm"]
        maps = {f"self_attn.{part}_proj": (SIZE, SIZE) for part in "qkvo"} | {"mlp.up_proj": (20, SIZE), "mlp.down_proj": (SIZE, 20)}
        for name, (rows, columns) in maps.items():
            shapes |= {f"{begin}{name}.weight": [rows, columns], f"{begin}{name}.bias": [rows]}
    shapes |= {f"{norm}.{part}": [SIZE] for norm in norms for part in ("weight", "bias")}
    kind, bits = embedding["kind"], embedding.get("bits", 0)
    if embedding.get("hash") == "lsh":
        shapes["model.hash_normal"] = [len(NGRAMS)]
    if kind == "emb":
        return shapes | {"model.embed_tokens.weight": [embedding["rows"] + 5, SIZE]}
    shapes["model.embed_special.weight"] = [5 if kind in ("linear", "characters") else 6, SIZE]
    if kind == "pool":
        shapes |= {"model.embed_codes.weight": [2 ** embedding["group_bits"], SIZE],
                   "model.embed_parts.weight": [-(-bits // embedding["group_bits"]), SIZE]}
    elif kind == "add":
        shapes["model.embed_bits.weight"] = [bits, 2, SIZE]
    elif kind == "characters":
        functions = embedding["hash_functions"]
        shapes["model.embed_buckets.weight"] = [functions, embedding["buckets"], SIZE // functions]
    else:
        shapes["model.embed_axes.weight"] = [SIZE, bits]
    return shapes


def wrong_stacks():
    """(key, value), each to be refused by its key."""
    for key in ("stack", "norm", "norm_place", "positions", "feed_forward", "hidden_act"):
        for value in ("who", "", 1, True, [], {}, "\x1b[31mred"):
            yield key, value
    for key in ("attention_bias", "output_bias", "mlp_bias", "qk_norm", "embedding_norm", "tie_word_embeddings"):
        for value in (1, 0, "true", [], {}):
            yield key, value
    for key in ("layer_norm_eps", "embedding_scale"):
        for value in ("1", True, [], {}):
            yield key, value
    for value in (0, -1e-5):
        yield "layer_norm_eps", value
    for value in (-1, 0.5, "1", True, [], 2**31, 2**64, 1e18):
        yield "type_vocab_size", value
        yield "vocab_size", value
        yield "num_hidden_layers", value
        yield "max_position_embeddings", value
    yield "vocab_size", 5
    yield "num_encoder_layers", 1
    yield "rotary", True
    for value in ("standard", {}, 1, [], ["standard"], ["standard"] * 3, ["standard", 1], ["standard", "who"], ["standard", ""],
                  ["standard", "lazy"], ["standard", "fixed_seq_qk"], [["standard"], "standard"]):
        yield "layers", value
    for value in ([], 1, "x", {"who": {}}, {"lazy": 1}, {"lazy": {"who": 1}}, {"lazy": {"window": -1}}, {"lazy": {"window": "2"}}):
        yield "mixers", value
    for value in ("language", 1, [], {}, {"kind": 1}, {"kind": "who"}, {"kind": "language"}, {"kind": "masked_language"},
                  {"kind": "token_classes"}, {"kind": "none", "classes": 2}, {"kind": "token_classes", "classes": 3, "who": 1},
                  *({"kind": "token_classes", "classes": count} for count in (0, -1, 2**31, 0.5, "3", True))):
        yield "head", value


def wrong_embeddings():
    """(name, embedding), each to be refused by "embedding"."""
    for value in ("emb", 1, [], {}, {"kind": 1}, {"kind": "who"}, {"kind": None}):
        yield str(value), value
    numbers = {"rows": 2**31, "bits": 65_537, "group_bits": 25, "hash_functions": 9, "buckets": 2**31}
    for name, good in EMBEDDINGS.items():
        for key in good:
            if key in ("kind", "key") or (key == "bits" and good["hash"] == "md5"):
                continue
            yield f"{name} without {key}", {k: v for k, v in good.items() if k != key}
        for key in set(good) & set(numbers):
            for value in (0, -1, 0.5, "4", True, [], 1e18, 2**64, numbers[key]):
                yield f"{name}, {key} = {value}", {**good, key: value}
        yield f"{name} and more", {**good, "who": 1}
        if "hash" in good:
            for value in ("sha1", "", 1, []):
                yield f"{name}, hash = {value}", {**good, "hash": value}
            for value in ("pieces", 1, []):
                yield f"{name}, words = {value}", {**good, "words": value}
    for value in (1, [], {}):
        yield f"key = {value}", {**EMBEDDINGS["emb-md5"], "key": value}
    yield "a key of lsh", {**EMBEDDINGS["emb"], "key": "en"}
    yield "bits of emb", {**EMBEDDINGS["emb"], "bits": 3}
    yield "bits that MD5 has not", {**EMBEDDINGS["proj"], "bits": 127}
    yield "groups longer than the hash", {**EMBEDDINGS["pool"], "group_bits": 12}


def wrong_ngrams():
    """(name, bytes or None, parts of the message)."""
    yield "missing", None, ["ngrams.json"]
    for text in ("", "[]", "{}", "null", '"e"', "[1,2,3,4,5,6]", '["e"', "[" * 100_000, '["e",]', "\ufeff[]", '["\\ud800"]',
                 "[null]", '[["e"]]'):
        yield text[:20], text.encode(), ["ngrams.json"]
    for place, ngram in ((0, ""), (3, "begin"), (5, "th"), (1, "\u00e9" * 5)):
        changed = [*NGRAMS[:place], ngram, *NGRAMS[place + 1:]]
        yield f"{ngram!r} at {place}", json.dumps(changed).encode(), [f"ngrams.json[{place}]"]
    for count in (1, 5, 7):
        yield f"{count} of them", json.dumps([chr(97 + i) for i in range(count)]).encode(), ["ngrams.json", "hash_normal"]
    yield "no UTF-8", b'["\xff"]', ["UTF-8"]
    yield "70 MB", b"[" + b" " * 70_000_000 + b"]", ["ngrams.json"]
    yield "60 MB of n-grams", json.dumps([f"{i:04x}" for i in range(65_536)] + ["e"] * 12_000_000).encode(), ["ngrams.json"]


def wrong_tokens():
    """(what, an item of a sequence that is none)."""
    for value in (5, -1, 2**31, 1.5, True, None, [], {}, {"hash": 5}, {"hash": ""}, {"hash": "fff"}, {"hash": "0011"},
                  {"hash": "gg0"}, {"hash": "FFFF" * 1000}, {"bits": "ff8"}):
        yield str(value)[:20], value


def write(place, config, tensors, ngrams=json.dumps(NGRAMS).encode()):
    folder = place / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(tiny_file(tensors))
    if ngrams is not None:
        (folder / "ngrams.json").write_bytes(ngrams)
    return folder


def run(judge, sample, quick):
    del sample

    def one(name, config, tensors, must=True, parts=(), **more):
        with Place() as place:
            model = write(place, config, tensors, **more)
            check(judge, f"native, {name}", place, ["analyze", model, "--text", TEXT, "-o", place / "x.headscope.h5"],
                  outputs=["x.headscope.h5"], must_refuse=must, parts=parts)

    for name, embedding in EMBEDDINGS.items():
        one(f"a good one, {name}", BASE | {"embedding": embedding}, tensors_of(embedding), must=False)
    pool = EMBEDDINGS["pool"]
    good, tensors = BASE | {"embedding": pool}, tensors_of(pool)
    every = 5 if quick else 1
    for key, value in list(wrong_stacks())[::every]:
        one(f"{key} = {str(value)[:40]!r}", good | {key: value}, tensors, parts=[key])
    for name, embedding in list(wrong_embeddings())[::every]:
        one(f"embedding {name}", BASE | {"embedding": embedding}, tensors, parts=["embedding"])
    for name, text, parts in wrong_ngrams():
        one(f"ngrams.json, {name}", good, tensors, parts=parts, ngrams=text)
    for name, embedding in EMBEDDINGS.items():
        own = tensors_of(embedding)
        for tensor in (each for each in own if "hash" in each or "embed_" in each and "position" not in each):
            for what, shape in (("missing", None), ("of no numbers", [0]), ("longer", [own[tensor][0] + 1, *own[tensor][1:]]),
                                ("flat", [*own[tensor], 1])):
                if what == "longer" and tensor == "model.hash_normal":
                    continue  # refused earlier: more n-grams than ngrams.json has
                changed = {key: size for key, size in own.items() if key != tensor} | ({tensor: shape} if shape else {})
                one(f"{name}, {tensor} {what}", BASE | {"embedding": embedding}, changed, parts=[tensor.split(".")[1]])
    add = EMBEDDINGS["add"]
    good_row = [0, "th", "theth", "", "unknown" * 1000, {"hash": "ffe"}, 2]
    for what, row, must in (("good ones", good_row, False), ("none", [], True),
                            *((what, ["th", value], True) for what, value in wrong_tokens())):
        with Place() as place:
            model = write(place, BASE | {"embedding": add}, tensors_of(add))
            check(judge, f"tokens of hashes, {what}", place,
                  ["analyze", model, "--tokens", ids(place, row), "-o", place / "x.headscope.h5"],
                  outputs=["x.headscope.h5"], must_refuse=must, parts=["ids.json"] if must else [])
