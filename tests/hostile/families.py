# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of every family beside tiny checkpoints of it: values that are wrong, missing or larger than what the
file's bytes bear out. And indexes, shards and vocabularies that are longer than any."""

import itertools
import json
import os
import random
import string
from pathlib import Path

from configs import WRONG
from harness import Place, check
from weights import file_of

GOLDEN = Path(__file__).resolve().parent.parent / "oracle" / "models" / "data"
# Families have their reasons to refuse these; what every one has to refuse is in configs.py.
SIZES = ("hidden_size", "n_embd", "n_embed", "d_model", "dim", "num_hidden_layers", "n_layer", "n_layers", "num_layers",
         "num_attention_heads", "n_head", "n_heads", "num_heads", "vocab_size")
LARGE = (10_000_000, 2**31 - 1, 2**31, 65_536, 100_000)


def tiny_file(tensors):
    header, at = {}, 0
    for name, shape in sorted(tensors.items()):
        size = 4
        for one in shape:
            size *= one
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    return file_of(header, b"\x00\x00\x00\x3c" * (at // 4))


def write_model(folder, config, tensors):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(tiny_file(tensors))
    return folder


def ids(place, row, name="ids.json"):
    (place / name).write_text(json.dumps([row]))
    return place / name


def changes(config, rng, count, quick):
    """(what, configuration, must be refused)."""
    keys = sorted(config)
    for key in keys:
        if key in SIZES:
            for value in LARGE if not quick else [rng.choice(LARGE)]:
                yield f"{key} = {value}", {**config, key: value}, True
    for _ in range(count):
        key, value = rng.choice(keys), rng.choice(WRONG)
        yield f"{key} = {str(value)[:30]!r}", {**config, key: value}, False
    for _ in range(count // 4):
        key = rng.choice(keys)
        yield f"no {key}", {k: v for k, v in config.items() if k != key}, False
    larger = {k: v * rng.choice((3, 1000, 10**6)) if isinstance(v, int) and not isinstance(v, bool) else v for k, v in config.items()}
    yield "all larger", larger, True


def mutations(judge, quick):
    rng = random.Random(41)
    for path in sorted(GOLDEN.glob("*.json")):
        golden = json.loads(path.read_text())
        if "tensors" not in golden or (quick and "-" in path.stem):
            continue
        for what, config, must in changes(golden["config"], rng, 2 if quick else 12, quick):
            with Place() as place:
                model = write_model(place / "model", config, golden["tensors"])
                command = ["analyze", model, "--tokens", ids(place, [1, 2, 3]), "-o", place / "x.headscope.h5"]
                if config.get("model_type") in ("t5", "mt5", "bart"):
                    command += ["--target-tokens", ids(place, [1, 2], "target.json")]
                check(judge, f"{path.stem}, {what}", place, command, outputs=["x.headscope.h5"], must_refuse=must)


def claims(judge):
    """A few bytes of weights whose configuration asks for much."""
    few = {"word_embeddings.weight": [2, 2], "b": [1], "c": [1]}
    for heads in (100_000_000, 2**29, 65_536):
        config = {"model_type": "bloom", "n_embed": heads, "n_head": heads, "n_layer": 3, "vocab_size": 10}
        many = {f"t{i}": [1] for i in range(4096)}
        with Place() as place:
            model = write_model(place / "model", {**config, "n_layer": 4096}, many)
            check(judge, f"bloom, {heads} heads in 4096 layers", place, ["analyze", model, "--tokens", ids(place, [1]), "-o", place / "x.headscope.h5"])
        with Place() as place:
            model = write_model(place / "model", config, few)
            check(judge, f"bloom, {heads} heads", place, ["analyze", model, "--tokens", ids(place, [1]), "-o", place / "x.headscope.h5"])
            check(judge, f"bloom, {heads} heads, info", place, ["info", model], must_refuse=False)
    albert = json.loads((GOLDEN / "albert.json").read_text())
    for layers in (4097, 100_000):
        with Place() as place:
            model = write_model(place / "model", {**albert["config"], "num_hidden_layers": layers}, albert["tensors"])
            check(judge, f"albert, {layers} layers", place, ["analyze", model, "--tokens", ids(place, [1]), "-o", place / "x.headscope.h5"],
                  parts=["num_hidden_layers"], seconds=2)


def words(count):
    letters = string.ascii_letters + string.digits
    return itertools.islice(("".join(t) for size in range(1, 6) for t in itertools.product(letters, repeat=size)), count)


def lists(judge):
    """Lists whose entries take more memory than bytes."""
    with Place() as place:
        empty = "{" + ",".join('"%x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}' % i for i in range(400_000)) + "}"
        (place / "s0.safetensors").write_bytes(file_of(empty))
        for i in range(1, 20):
            os.symlink("s0.safetensors", place / f"s{i}.safetensors")
        index = {"weight_map": {"%x" % i: f"s{i}.safetensors" for i in range(20)}}
        (place / "model.safetensors.index.json").write_text(json.dumps(index))
        check(judge, "20 shards of 400 000 tensors for 20 names", place, ["info", place.folder], parts=["500 000"])
    with Place() as place:
        names = ",".join('"%s":"s"' % word for word in words(3_000_000))[:33_000_000].rsplit(",", 1)[0]
        (place / "model.safetensors.index.json").write_text('{"weight_map":{' + names + "}}")
        check(judge, "an index of 33 MB", place, ["info", place.folder], parts=["500 000"])
    document = '{"version":"1.0","added_tokens":%s,"model":{"type":"BPE","vocab":%s,"merges":%s}}'
    plain = '{"a":0,"b":1,"ab":2}'
    added = ",".join('{"id":0,"content":"%s","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}' % word
                     for word in words(560_000))
    for name, text, must in (
            ("5 million merges", document % ("[]", plain, "[" + '"a b",' * 5_000_000 + '"a b"]'), True),
            ("2 million merges", document % ("[]", plain, "[" + '"a b",' * 1_999_999 + '"a b"]'), False),
            ("5 million pieces", document % ("[]", "{" + ",".join('"%s":%d' % (w, i) for i, w in enumerate(words(5_300_000))) + "}", "[]"), True),
            ("2 million pieces", document % ("[]", "{" + ",".join('"%s":%d' % (w, i) for i, w in enumerate(words(2_000_000))) + "}", "[]"), False),
            ("560 000 added tokens", document % ("[" + added + "]", plain, "[]"), True),
            ("odd merges", document % ("[]", plain, "[" + "[]," * 3_000_000 + "[]]"), True),
            ("odd pieces", document % ("[]", "{" + ",".join('"%s":"x"' % w for w in words(2_000_000)) + "}", "[]"), True)):
        with Place() as place:
            (place / "tokenizer.json").write_text(text)
            check(judge, "tokenizer, " + name, place, ["tokenize", place / "tokenizer.json", "ab"], must_refuse=must)


def run(judge, sample, quick):
    del sample
    claims(judge)
    lists(judge)
    mutations(judge, quick)
