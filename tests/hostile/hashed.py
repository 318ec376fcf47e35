# SPDX-License-Identifier: GPL-3.0-or-later
"""Models that hash words: settings that are wrong or ask for much, lists of n-grams that lie, tokens of another kind."""

import json

from configs import WRONG
from families import ids, write_model
from harness import Place, check

WIDE, LAYER = 8, "model.layers.0."
NGRAMS = ["a", "ab", "abc", "é", "😀😀"]
BASE = {
    "model_type": "headscope", "stack": "encoder", "layers": ["standard"], "num_hidden_layers": 1, "hidden_size": WIDE,
    "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4, "intermediate_size": 0, "vocab_size": 0,
    "max_position_embeddings": 64, "head": {"kind": "none"}, "tie_word_embeddings": False,
    "embedding": {"kind": "add", "hash": "lsh", "bits": 9},
}
SHARED = {LAYER + "input_layernorm.weight": [WIDE], "model.norm.weight": [WIDE],
          **{f"{LAYER}self_attn.{part}_proj.weight": [WIDE, WIDE] for part in "qkvo"}}
NORMAL = {"model.hash_normal": [len(NGRAMS)]}
ADD = {**SHARED, **NORMAL, "model.embed_special.weight": [6, WIDE], "model.embed_bits.weight": [9, 2, WIDE]}
LARGE = 2**31 - 1


def settings(embedding, **more):
    return {**BASE, "embedding": embedding, **more}


def configurations():
    """(what, configuration, what the line names)."""
    add = BASE["embedding"]
    for key in ("kind", "hash", "bits"):
        for value in WRONG:
            yield f"{key} = {str(value)[:20]!r}", settings({**add, key: value}), []
        yield f"no {key}", settings({name: value for name, value in add.items() if name != key}), ["embedding"]
    for value in (None, [], "add", 5):
        yield f"embedding = {value!r}", settings(value), []
    for key in ("key", "rows", "group_bits", "hash_functions", "buckets", "frob", "\x1b[31m"):
        yield f"{key!r} of another kind", settings({**add, key: 3}), ["embedding"]
    yield "words of no kind", settings({**add, "words": "pieces"}), ["words"]
    yield "a tokenizer that is not there", settings({**add, "words": "tokenizer"}), ["tokenizer.json"]
    yield "md5 of 64 bits", settings({"kind": "add", "hash": "md5", "bits": 64}), ["bits", "128"]
    yield "md5 of all bits, a file of nine", settings({"kind": "add", "hash": "md5"}), []
    yield "groups larger than the hash", settings({"kind": "pool", "hash": "lsh", "bits": 9, "group_bits": 10}), ["group_bits"]
    yield "2^24 code words", settings({"kind": "pool", "hash": "md5", "bits": 128, "group_bits": 24}), ["embed_codes"]
    yield "2^25 code words", settings({"kind": "pool", "hash": "md5", "bits": 128, "group_bits": 25}), ["group_bits"]
    yield "many rows", settings({"kind": "emb", "hash": "lsh", "rows": LARGE - 5}), ["embed_tokens"]
    yield "too many rows", settings({"kind": "emb", "hash": "lsh", "rows": LARGE}), ["rows"]
    yield "many buckets", settings({"kind": "characters", "hash_functions": 8, "buckets": LARGE - 5}), ["embed_"]
    yield "nine functions", settings({"kind": "characters", "hash_functions": 9, "buckets": 5}), ["hash_functions"]
    yield "functions that do not divide", settings({"kind": "characters", "hash_functions": 3, "buckets": 5}), ["hidden_size"]
    yield "a vocabulary", settings(add, vocab_size=100), ["vocab_size"]
    yield "a tied head", settings(add, tie_word_embeddings=True), ["tie_word_embeddings"]
    for kind in ("language", "masked_language"):
        yield f"a head of {kind}", settings(add, head={"kind": kind}), ["head"]
    yield "a guide of a vocabulary's tokens", settings(add, stack="decoder", layers=["fixed_seq_qk"]), ["fixed_seq_qk"]
    yield "an encoder-decoder", settings(add, stack="encoder_decoder", num_hidden_layers=2, num_encoder_layers=1,
                                         layers=["standard"] * 2), ["embedding"]


def lists():
    """(what, ngrams.json or None, what the line names)."""
    yield "none", None, ["ngrams.json"]
    for what, ngrams in (("one too few", NGRAMS[:-1]), ("one too many", [*NGRAMS, "z"]), ("empty", [])):
        yield what, json.dumps(ngrams).encode(), ["ngrams.json"]
    for what, last in (("a number", 5), ("a list", []), ("nothing", None), ("no point", ""), ("five points", "abcde"),
                       ("one twice", "a"), ("an escape, five points", "\x1b[31m")):
        yield what, json.dumps([*NGRAMS[:-1], last]).encode(), ["ngrams.json"]
    for what, content in (("an object", b'{"a": 0}'), ("cut", b'["a", "ab"'), ("no UTF-8", b'["\xff"]'), ("no bytes", b""),
                          ("deep", b"[" * 200_000), ("a lone surrogate", b'["\\udc00"]'), ("a number", b"5"),
                          ("60 MB of n-grams", b'["a"' + b',"a"' * 15_000_000 + b"]"),
                          ("70 MB of white space", b"[" + b" " * 70_000_000 + b"]")):
        yield what, content, ["ngrams.json"]


def tokens():
    """(what, the items of a sequence, what the line names)."""
    for value in (5, -1, 2**31, 1.5, True, None, [], {}, {"hash": 5}, {"hash": ""}, {"hash": "fff"}, {"hash": "0011"},
                  {"hash": "gg0"}, {"hash": "FFFF" * 1000}, {"bits": "ff8"}):
        yield f"{str(value)[:20]}", ["ab", value], ["ids.json"]
    yield "none", [], ["ids.json"]


def judge_one(judge, what, config, tensors, ngrams, row, parts, must=True):
    with Place() as place:
        model = write_model(place / "model", config, tensors)
        if ngrams is not None:
            (model / "ngrams.json").write_bytes(ngrams)
        check(judge, f"hash model, {what}", place,
              ["analyze", model, "--tokens", ids(place, row), "-o", place / "x.headscope.h5"],
              outputs=["x.headscope.h5"], must_refuse=must, parts=parts)


def run(judge, sample, quick):
    del sample
    good, row = json.dumps(NGRAMS).encode(), [0, "ab", "abcab", "", "unknown" * 1000, {"hash": "ff8"}, 2]
    judge_one(judge, "as it should be", BASE, ADD, good, row, [], must=False)
    for what, config, parts in list(configurations())[:: 4 if quick else 1]:
        judge_one(judge, what, config, ADD, good, ["ab"], parts)
    for what, ngrams, parts in lists():
        judge_one(judge, f"n-grams: {what}", BASE, ADD, ngrams, ["ab"], parts)
    for what, items, parts in tokens():
        judge_one(judge, f"token {what}", BASE, ADD, good, items, parts)
    for shape in ([0], [len(NGRAMS), 1], []):
        judge_one(judge, f"normal of {shape}", BASE, {**ADD, "model.hash_normal": shape}, good, ["ab"], [])
    judge_one(judge, "no normal", BASE, {name: shape for name, shape in ADD.items() if "hash_normal" not in name}, good,
              ["ab"], ["hash_normal"])
