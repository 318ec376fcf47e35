#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Vocabularies as GGUF files hold them, and ids of texts: gguf_tokenizers.json.

    pip install sentencepiece regex tokenizers
    python3 gguf_tokenizers.py

Ids of the merges by scores are those of sentencepiece itself. Ids of the byte-level vocabulary come from the module
`regex` with the expressions of the models' tokenizer.json files, and a merge loop written out here.
"""
import io
import json
import pathlib

import regex
import sentencepiece
from tokenizers import pre_tokenizers, trainers, Tokenizer, models

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["", " ", "  two  spaces", "Don't we'LL I'VE", "x = 12345678;", "tab\tand\r\n\n line", "naïve café e\u0301a",
         "中文字 かな가", "😀😀 ok", "(a)[b]{c} <|end|> d", "CamelCase HTTPServer", "١٢٣ ०१२ Ⅷ", "a.b,c!d?e…", "  \n  "]
CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LAST = r"|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+" + LAST
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
BEFORE = r"[^\r\n\p{L}\p{N}]?"


def cased(after):
    return f"{BEFORE}{UPPER}*{LOWER}+{after}|{BEFORE}{UPPER}+{LOWER}*{after}"


SPLITS = {
    "gpt-2": [GPT2],
    "starcoder": [r"\p{N}", GPT2],
    "llama-bpe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+" + LAST],
    "qwen2": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+" + LAST],
    "qwen35": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+" + LAST],
    "tekken": [cased("") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+" + LAST],
    "gpt-4o": [cased(CONTRACTIONS + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+" + LAST],
    "deepseek-v3": [r"\p{N}{1,3}", "[一-龥\u3040-\u309f\u30a0-\u30ff]+",
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
                    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+" + LAST],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥\u0800-一가-\ud7ff]+", r"\p{N}"],
    "falcon": [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"],
    "bloom": [" ?[^(\\s|.,!?…。，、।۔،)]+"],
    "seed-coder": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+" + LAST],
    "exaone-moe": [CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?"
                   r"|\s*[\r\n]" + LAST],
    "bailingmoe": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]" + LAST],
}
ADD_FIRST = {"llama-bpe", "tekken"}
IGNORE_MERGES = {"llama-bpe", "tekken"}


def byte_letters():
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return {byte: chr(byte if byte in plain else next(others)) for byte in range(256)}


def split(expressions, text):
    parts = [text]
    for expression in expressions:
        found = []
        for part in parts:
            end = 0
            for match in regex.finditer(expression, part):
                found += [part[end:match.start()], match.group()]
                end = match.end()
            found.append(part[end:])
        parts = [part for part in found if part]
    return parts


def byte_level(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=330, show_progress=False, initial_alphabet=sorted(
        byte_letters().values())))
    model = json.loads(tokenizer.to_str())["model"]
    merges = [merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"]]
    tokens = sorted(model["vocab"], key=model["vocab"].get) + ["<|end|>", "<s>"]
    ids, ranks = {token: id for id, token in enumerate(tokens)}, {tuple(merge): i for i, merge in enumerate(merges)}
    letters = byte_letters()

    def merged(word, ignore_merges):
        text = "".join(letters[byte] for byte in word.encode())
        if ignore_merges and text in ids:
            return [ids[text]]
        parts = list(text)
        while pairs := [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:])) if pair in ranks]:
            i = min(pairs)[1]
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        return [ids[part] for part in parts]

    def encode(name, text):
        found = [ids["<s>"]] if name in ADD_FIRST else []
        for part in regex.split(r"(<\|end\|>)", text):
            if part == "<|end|>":
                found.append(ids[part])
                continue
            for word in split(SPLITS[name], part):
                found += merged(word, name in IGNORE_MERGES)
        return found
    return {"tokens": tokens, "merges": [" ".join(merge) for merge in merges],
            "ids": {name: [encode(name, text) for text in TEXTS] for name in SPLITS}}


def sentence_piece(corpus, prefix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, model_type="bpe", vocab_size=360, byte_fallback=True,
        remove_extra_whitespaces=False, normalization_rule_name="identity", add_dummy_prefix=prefix, minloglevel=2)
    pieces = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    count = range(pieces.vocab_size())
    types = [2 if pieces.IsUnknown(i) else 3 if pieces.IsControl(i) else 6 if pieces.IsByte(i) else 1 for i in count]
    return {"tokens": [pieces.IdToPiece(i) for i in count], "types": types, "scores": [pieces.GetScore(i) for i in count],
            "add_space_prefix": prefix, "ids": [[1] + (pieces.encode(text) if text else []) for text in TEXTS]}


def main():
    corpus = [line for name in ("prose.txt", "code.txt") for line in
              (HERE.parents[2] / "resources/texts" / name).read_text().splitlines() if line][:400] + TEXTS[2:]
    golden = {"texts": TEXTS, "byte_level": byte_level(corpus),
              "sentence_piece": [sentence_piece(corpus, prefix) for prefix in (True, False)]}
    path = HERE / "data/gguf_tokenizers.json"
    path.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
