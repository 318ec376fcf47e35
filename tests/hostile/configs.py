# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations and indexes that lie."""

import json
import random

from harness import Place, check, link_model
from weights import TEXT, entry, file_of

WRONG = [None, True, "256", "", [], {}, [1], -1, 0, 1, 2, 3, 7, 0.5, -0.5, 1e18, 2**31, 2**31 + 1, 2**63, 2**64, 2**70,
         1e308, -1e308, 5e-324, "\x1b[31mred\n", "x" * 10000]
# Values that are right, or play no part in these texts: then the analysis succeeds.
MAY_DO = {
    "rms_norm_eps", "rope_theta", "max_position_embeddings", "tie_word_embeddings", "attention_bias", "mlp_bias",
    "hidden_act", "head_dim", "num_key_value_heads", "rope_parameters", "rope_scaling", "partial_rotary_factor",
    "bos_token_id", "eos_token_id", "pad_token_id", "torch_dtype", "dtype", "architectures", "initializer_range",
    "transformers_version", "use_cache", "attention_dropout", "pretraining_tp", "layer_types", "sliding_window",
}
SIZES = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "model_type")
TEXTS = [
    ("empty", ""), ("white space", "  \n"), ("an array", "[]"), ("a number", "1"), ("null", "null"),
    ("cut", '{"model_type": "llama",'), ("a comment", '{"model_type": "llama"} // x'), ("two", "{}{}"),
    ("a trailing comma", '{"model_type": "llama",}'), ("single quotes", "{'model_type': 'llama'}"),
    ("NaN", '{"model_type": "llama", "rope_theta": NaN}'), ("Infinity", '{"rope_theta": Infinity}'),
    ("a key twice", '{"model_type": "llama", "model_type": "gpt2"}'), ("1e999", '{"rope_theta": 1e999}'),
    ("deep arrays", '{"a":' + "[" * 200000), ("deep objects", '{"a":' * 200000), ("65 levels", "[" * 65 + "]" * 65),
    ("a NUL", "{}\0"), ("a lone surrogate", '{"model_type": "\\udc00"}'), ("a control character", '{"a": "\x01"}'),
]


def config_cases(sample, quick):
    base = json.loads((sample / "config.json").read_text())
    for name, text in TEXTS:
        yield name, text.encode("utf-8", "surrogatepass"), ["config.json"], True
    yield "a byte order mark", b"\xef\xbb\xbf" + json.dumps(base).encode(), ["byte order mark"], True
    for encoding in ("utf-16", "utf-16-le", "utf-32"):
        yield encoding, json.dumps(base).encode(encoding), ["config.json"], True
    yield "Latin-1", '{"name": "caf\xe9"}'.encode("latin-1"), ["UTF-8"], True
    yield "20 MB of white space", b"{" + b" " * 20_000_000 + b"}", ["config.json"], True
    keys = sorted(set(base) | {"head_dim", "num_key_value_heads", "rope_theta", "rope_scaling", "layer_types",
                               "sliding_window", "attention_bias", "mlp_bias", "partial_rotary_factor"})
    for key in keys:
        for value in WRONG if not quick else WRONG[::4]:
            if key in base and base[key] == value and not isinstance(value, bool):
                continue
            must = key in SIZES and value != base.get(key)
            yield f"{key} = {str(value)[:30]!r}", json.dumps({**base, key: value}).encode(), [], must
    for key in SIZES:
        yield f"no {key}", json.dumps({k: v for k, v in base.items() if k != key}).encode(), ["config.json"], True
    for rope in ({"rope_type": "yarn"}, {"rope_type": "yarn", "factor": 0}, {"rope_type": "yarn", "factor": -1},
                 {"rope_type": "linear"}, {"rope_type": "linear", "factor": "2"}, {"rope_type": "frob", "factor": 2},
                 {"rope_type": 5}, {"rope_type": "dynamic", "factor": 1e308}, {"rope_type": "llama3", "factor": 8},
                 {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]},
                 {"rope_type": "longrope", "short_factor": [1] * 16, "long_factor": [0] * 16},
                 {"rope_type": "longrope", "short_factor": "x", "long_factor": {}},
                 {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 0},
                 {"rope_type": "yarn", "factor": 4, "beta_fast": -1}, {"full_attention": {}, "sliding_attention": {}},
                 {"rope_theta": 0}, {"rope_theta": -1}, {"rope_theta": 1e308}, {"rope_theta": "10000"}, []):
        yield f"rotary {json.dumps(rope)[:60]}", json.dumps({**base, "rope_parameters": rope}).encode(), [], False
    wanted = {**base, "auto_map": {"AutoModelForCausalLM": "../../evil--modeling.Model"}, "model_type": "evil"}
    yield "code of its own", json.dumps(wanted).encode(), ["model_type", "auto_map"], True
    wanted["model_type"] = "llama"
    yield "code beside a known family", json.dumps(wanted).encode(), [], False


def index_cases():
    shard = file_of({"a": entry()}, b"\0" * 4)
    good = '{"weight_map": {"a": "s1.safetensors"}}'
    for name, text, parts in (
            ("empty", "", []), ("array", "[]", []), ("no map", "{}", ["weight_map"]), ("map of list", '{"weight_map":[]}', []),
            ("empty map", '{"weight_map":{}}', []), ("number", '{"weight_map":{"a":1}}', ["weight_map.a"]),
            ("twice", '{"weight_map":{"a":"s1.safetensors","a":"s1.safetensors"}}', []),
            ("missing", '{"weight_map":{"a":"x1","b":"x2","c":"x3"}}', ["x1", "x2", "x3"]),
            ("not in it", '{"weight_map":{"a":"s1.safetensors","z":"s1.safetensors"}}', ['"z"']),
            ("deep", '{"weight_map":' + "[" * 100000, []), ("itself", '{"weight_map":{"a":"model.safetensors.index.json"}}', []),
            ("30 MB of brackets", '{"weight_map":' + "[[]," * 7_500_000, []),
            ("30 MB of names", '{"weight_map":{' + ",".join('"%x":"s1.safetensors"' % i for i in range(1_100_000)) + "}}", [])):
        yield name, text, parts, shard
    for path in ("../s1.safetensors", "/etc/passwd", "sub/s1.safetensors", ".", "..", "", "a\\u0000b", "..\\\\x", "~/x", "\\u001b[2J"):
        yield f"path {path}", '{"weight_map":{"a":"%s"}}' % path, [], shard
    yield "shard of another kind", good, ["s1.safetensors"], b"GGUF\3\0\0\0"
    yield "shard cut", good, ["s1.safetensors"], shard[:-1]


def run(judge, sample, quick):
    random.seed(21)
    for name, content, parts, must in config_cases(sample, quick):
        with Place() as place:
            model = link_model(place, sample, ["config.json"])
            (model / "config.json").write_bytes(content)
            check(judge, "config, " + name, place, ["analyze", model, "--text", TEXT, "-o", place / "x.headscope.h5"],
                  outputs=["x.headscope.h5"], must_refuse=must, parts=parts, seconds=2 if must else 20)
    for name, text, parts, shard in index_cases():
        with Place() as place:
            model = place / "model"
            model.mkdir()
            (model / "model.safetensors.index.json").write_text(text)
            (model / "s1.safetensors").write_bytes(shard)
            check(judge, "index, " + name, place, ["info", model], parts=parts)
    for name in ("tokenizer_config.json", "generation_config.json"):
        for content in (b"[]", b"", b"{", b'{"bos_token": 5, "eos_token_id": "x"}', b'{"bos_token": {"content": 7}}',
                        b'{"eos_token_id": [[[]]]}', b"\xff", b'{"a":' * 100000):
            with Place() as place:
                model = link_model(place, sample, [name])
                (model / name).write_bytes(content)
                for command in (["generate", model, "--prompt", "In the", "--tokens", "2"],
                                ["analyze", model, "--text", TEXT, "--bos", "yes", "-o", place / "x.headscope.h5"]):
                    check(judge, f"{name} {content[:40]!r}, {command[0]}", place, command,
                          outputs=["x.headscope.h5"], must_refuse=False)
