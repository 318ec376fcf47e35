#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the seeds of the fuzz targets, tests/fuzz/corpus/<target>/made-*: small inputs of every kind that a reader
knows, good ones and such that break one rule. What fuzzing added lies beside them under other names and is left alone.
Also their dictionaries, tests/fuzz/dictionaries/<target>.dict.

    python3 tests/fuzz/make_seeds.py

Needs Python alone. Configurations come from tests/oracle/models/data: run it again when a family was added there.
"""
import json
import random
import re

from checkpoint_seeds import PICKLE_WORDS, checkpoint, config, pytorch, safetensors, shard_index
from seed_sources import HERE, text_of
from tokenizer_seeds import (PATTERN_WORDS, TEXT_WORDS, chat_template, chat_words, pattern, sentencepiece,
                             tokenizer_folder, tokenizer_json, tokenizer_text)
from training_seeds import journal, training_text

JSON_WORDS = ("{", "}", "[", "]", ",", ":", "null", "true", "false", "{}", "[]", '""', "-1", "0.5", "1e308", "1e999",
              "-0", "2147483648", "9223372036854775807", "18446744073709551615", "\\u0000", "\\ud800", '"a":')


def write(target, seeds):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("made-*"):
        old.unlink()
    for name, seed in seeds.items():
        (folder / f"made-{name}").write_bytes(seed if isinstance(seed, bytes) else seed.encode())


def words_of(document, words):
    """The keys, short strings and shapes of a JSON document."""
    if isinstance(document, dict):
        for key, value in document.items():
            words.add(text_of(key) + ":")
            words_of(value, words)
    elif isinstance(document, list):
        for value in document:
            words_of(value, words)
    elif isinstance(document, str) and document.isascii() and 2 <= len(document) <= 24:
        words.add(text_of(document))


def dictionary(target, texts, more=()):
    words = set(more)
    for one in texts:
        for part in (one.decode("utf-8", "replace") if isinstance(one, bytes) else one).split("\0"):
            try:
                words_of(json.loads(part[part.find("{"):]), words)
            except ValueError:
                pass
    path = HERE / "dictionaries" / f"{target}.dict"
    path.parent.mkdir(exist_ok=True)
    spelled = sorted({word if isinstance(word, bytes) else word.encode() for word in words})
    quoted = ("".join(chr(b) if 0x20 <= b < 0x7F and b not in b'\\"' else f"\\x{b:02x}" for b in word)
              for word in spelled)
    path.write_text("# made by make_seeds.py\n" + "".join(f'"{word}"\n' for word in quoted))


def spelled_in(folder, pattern):
    """String literals of our sources that look like keys or names of parts: new ones get into the dictionaries."""
    found = set()
    for path in sorted((HERE.parent.parent / "core" / folder).rglob("*.cpp")):
        if folder == "tokenizer" and path.parent.name == "template":
            continue  # another language
        found.update(re.findall(pattern, path.read_text()))
    return {text_of(word) for word in found}


def text():
    return {
        "plain": "Headscope, 12 heads.\n",
        "scripts": "é 中文 العربية हिन्दी 👩‍👩‍👧 \U0010ffff",
        "controls": "\0\a\x1b[31m\x7f\u0085\u2028\u202e\ufeff",
        "broken": b"ok \xc3 \xe4\xb8 \xf0\x9f\x91 \xff\xfe \x80 end",
        "overlong": b"\xc0\x80 \xe0\x80\x80 \xf0\x80\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf8\x88\x80\x80\x80",
    }


def json_seeds():
    return {
        "all-kinds": '{"a":[1,-2,0.5,1e-3,true,false,null,"x\\u00e9\\n"],"b":{"c":{}},"d":[],"":-0}',
        "escapes": '"\\"\\\\\\/\\b\\f\\n\\r\\t\\ud83d\\ude00\\u0000"',
        "lone-surrogate": '["\\ud800"]',
        "numbers": "[0,-0,1.0,1E+2,18446744073709551615,18446744073709551616,-9223372036854775808,"
                   "-9223372036854775809,1e308,4.9e-324,1e-400]",
        "too-large": "[1e309]",
        "bad-number": "[01]",
        "twice": '{"a":1,"a":2}',
        "deepest": "[" * 64 + "]" * 64,
        "too-deep": "[" * 65 + "]" * 65,
        "space": " \t\r\n{ \"a\" : [ 1 , 2 ] } \n",
        "mark": "\ufeff{}",
        "comment": "[1] // no",
        "behind": "{} {}",
        "no-utf8": b'["\xff"]',
    }


def edits(first):
    """Edits are choices, a byte each (targets/hdf5_edits.cpp): any bytes are edits."""
    rng = random.Random(first)
    seeds = {f"{i:02}": bytes([i % 5]) + rng.randbytes(7 + i % 13) for i in range(40)}
    seeds["none"] = b""
    return seeds


def main():
    configuration = spelled_in("model", r'"([a-z][a-z_0-9]{2,39})"')
    parts = spelled_in("tokenizer", r'"([A-Za-z][A-Za-z_]{1,29})"')
    words = {"json": JSON_WORDS, "safetensors": JSON_WORDS, "shard_index": JSON_WORDS, "pytorch": PICKLE_WORDS,
             "config": {*JSON_WORDS, *configuration}, "checkpoint": (*JSON_WORDS, "\0"),
             "tokenizer_json": {*JSON_WORDS, *PATTERN_WORDS, *parts}, "pattern": PATTERN_WORDS + TEXT_WORDS,
             "tokenizer_folder": {*JSON_WORDS, *parts, "\0", "#version: 0.2\n"}, "tokenizer_text": TEXT_WORDS,
             "chat_template": chat_words(),
             "training_text": {*JSON_WORDS, '"text":', "lines\n", "bible\n", "text\n", "translation\n", "classify\n",
                               '"source":', '"target":', '"pair":', '"label":', '"sentence1":', "EC02", "Ge1:1 "}}
    makers = {"text": text, "json": json_seeds, "safetensors": safetensors, "shard_index": shard_index,
              "pytorch": pytorch, "config": config, "checkpoint": checkpoint, "pattern": pattern,
              "tokenizer_json": tokenizer_json, "tokenizer_folder": tokenizer_folder, "sentencepiece": sentencepiece,
              "tokenizer_text": tokenizer_text,
              "chat_template": chat_template, "training_text": training_text, "journal": journal,
              "analysis": lambda: edits(1), "run_file": lambda: edits(2), "evaluation_file": lambda: edits(3)}
    for target, make in makers.items():
        seeds = make()
        write(target, seeds)
        if target in words:
            dictionary(target, seeds.values() if "{" in words[target] else (), words[target])
        size = sum(len(s if isinstance(s, bytes) else s.encode()) for s in seeds.values())
        print(f"{target}: {len(seeds)} seeds, {size} bytes")


if __name__ == "__main__":
    main()
