# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of 20 MB through tokenizers of every kind: in bounded time and memory, whatever the text is made of. And
tokenizers whose parts are made to make much of little."""

import itertools
import json
import random

from harness import Place, check

MEGABYTES = 20
SPACE = "\u2581"


def document(model, normalizer=None, pre_tokenizer=None, post_processor=None, added=()):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added), "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": post_processor, "decoder": None, "model": model}


def byte_characters():
    """GPT-2's alphabet, by byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


def doubled(pieces, letters):
    """Merges of each letter with itself, up to sixteen times."""
    merges = []
    for letter in letters:
        for n in (1, 2, 4, 8):
            pieces.append(letter * 2 * n)
            merges.append([letter * n] * 2)
    return merges


def models():
    pieces = list(byte_characters().values())
    merges = doubled(pieces, ["a", "e", "\u0120", "!"])
    yield "bytes", {"type": "BPE", "vocab": {p: i for i, p in enumerate(pieces)}, "merges": merges}
    pieces = ["<unk>", *(f"<0x{i:02X}>" for i in range(256)), *"abcdefghijklmnopqrstuvwxyz0123456789 !", SPACE]
    merges = doubled(pieces, ["a", "e", SPACE, " "])
    yield "characters", {"type": "BPE", "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True,
                         "vocab": {p: i for i, p in enumerate(pieces)}, "merges": merges}
    scored = [["<unk>", 0.0], *[[p * n, -3.0 - n / 7] for p in ("a", "e", " ", "!", "0", SPACE, "x") for n in range(1, 12)]]
    yield "unigram", {"type": "Unigram", "unk_id": 0, "vocab": scored}
    yield "wordpiece", {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 1 << 30,
                        "vocab": {p: i for i, p in enumerate(["[UNK]", *"aex0!", *("##" + c for c in "aex0!"), "##aaaa"])}}
    yield "words", {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "a": 1, "!": 2, " ": 3}}


NORMALIZERS = [
    None, {"type": "NFC"}, {"type": "NFD"}, {"type": "NFKC"}, {"type": "NFKD"}, {"type": "Lowercase"}, {"type": "StripAccents"}, {"type": "Nmt"},
    {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    {"type": "Replace", "pattern": {"Regex": "[ae]"}, "content": "ea"}, {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
    {"type": "Prepend", "prepend": SPACE}, {"type": "Strip", "strip_left": True, "strip_right": True}, {"type": "ByteLevel"},
    {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}]}]
PRE_TOKENIZERS = [
    None, {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}, {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always"},
    {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}, {"type": "Digits", "individual_digits": True},
    {"type": "Punctuation", "behavior": "Isolated"}, {"type": "Whitespace"}, {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"},
    {"type": "UnicodeScripts"}, {"type": "CharDelimiterSplit", "delimiter": "a"}, {"type": "FixedLength", "length": 1},
    {"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"String": "a"}, "behavior": "MergedWithNext", "invert": True}]


def added(content):
    return {"id": 0, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def contents():
    size = MEGABYTES * 1_000_000
    rng = random.Random(2)
    points = lambda low, high, bytes_each: "".join(map(chr, rng.choices(range(low, high), k=size // bytes_each)))
    yield "one letter", "a" * size
    yield "letters", "".join(rng.choices("etaoinshrdlucmfwypvbgkjqxz", k=size))
    yield "spaces", " " * size
    yield "letters and spaces", "a " * (size // 2)
    yield "digits", "0" * size
    yield "marks of punctuation", "!" * size
    yield "accents", "\u00e9" * (size // 2)
    yield "marks on one letter", "e" + points(0x300, 0x34F, 2)
    yield "Hangul", points(0xAC00, 0xD7A4, 3)
    yield "Han", points(0x4E00, 0x9FFF, 3)
    yield "emoji", points(0x1F300, 0x1F650, 4)
    yield "ligatures", "\ufdfa" * (size // 3)
    yield "unknown between known", "x\U0001f600" * (size // 5)
    yield "added tokens", "<s>" * (size // 3)
    yield "lines", "\n" * size


def run(judge, sample, quick):
    with Place() as place:
        texts = {}
        for name, text in contents():
            texts[name] = place / name
            texts[name].write_text(text, encoding="utf-8")
        kinds = list(models())
        # Every normaliser and every pre-tokeniser, each with several texts and all models in turn.
        parts = [(n, None) for n in NORMALIZERS] + [(None, p) for p in PRE_TOKENIZERS] + list(zip(NORMALIZERS, PRE_TOKENIZERS))
        turn = itertools.cycle(kinds)
        names = itertools.cycle(texts)
        for i, (normalizer, pre_tokenizer) in enumerate(parts):
            for _ in range(1 if quick else 4):
                kind, model = next(turn)
                name = next(names)
                tokenizer = place / "tokenizer.json"
                tokenizer.write_text(json.dumps(document(model, normalizer, pre_tokenizer, added=[added("<s>")] if i % 3 else [])))
                check(judge, f"{name}, {kind}, {normalizer}, {pre_tokenizer}"[:150], place, ["tokenize", tokenizer, "--file", texts[name], "--json"],
                      must_refuse=False)
            if quick and i % 3:
                next(names)
        for name, file in texts.items():
            check(judge, f"analyze {name}", place, ["analyze", sample, "--file", file, "-o", place / "x.headscope.h5"], must_refuse=True)
            if quick:
                break
    growth(judge)


def growth(judge):
    """Little that is made into much."""
    page = "b" * 1_000_000
    letters = {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}
    replace = {"type": "Replace", "pattern": {"String": "a"}, "content": page}
    cases = {
        "a page for each letter": document(letters, replace),
        "twice, again and again": document(letters, {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 60}),
        "a page for each added token": document(letters, replace, added=[{**added(f"a{i}"), "normalized": True} for i in range(50_000)]),
        "a page before the text, often": document(letters, {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": page[:1000]}] * 50_000}),
    }
    for name, tokenizer in cases.items():
        with Place() as place:
            (place / "tokenizer.json").write_text(json.dumps(tokenizer))
            (place / "text").write_text("a" * 100_000)
            check(judge, name, place, ["tokenize", place / "tokenizer.json", "--file", place / "text"], must_refuse=True)
