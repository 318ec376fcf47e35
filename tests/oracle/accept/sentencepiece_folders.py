# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders with a sentencepiece model and no tokenizer.json, against transformers: Marian and M2M100, which it leaves to
the package sentencepiece, and mBART, PEGASUS and T5, which it converts.

    python sentencepiece_folders.py                        writes tokenizer/sentencepiece.json for
                                                           tests/core/tokenizer/test_sentencepiece.cpp
    python sentencepiece_folders.py build/release/bin/tokenizer_lines [--filter NAME]    compares hundreds of texts

Needs sentencepiece and transformers; protobuf, which its conversion asks for, is done without.
"""
import argparse
import json
import pathlib
import random
import struct
import sys
import tempfile
import types

import sentencepiece
import transformers
import transformers.convert_slow_tokenizer as conversion

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "generate"))
import tokenizer_texts
from tokenizer_differential import Ours
from tokenizer_files import TEXT, TEXTS

LINES = [line for line in [*TEXT.splitlines(), *TEXTS] if line.strip() and "\0" not in line]
RULES = {"e\u0301": "\u00E9", "\uFF76": "\u30AB", "\uFF76\uFF9E": "\u30AC", "\t": " ", "\u3000": " ", "\uFDFA": " a b ",
         "\u200B": "", "\uFB01": "fi", "A": "a"}
SMALL = ["he said hello to the whole world", "a cat and a hat = a caf\u00E9", "== the \u30AC \u30AB == fish",
         "hello hello he"]


def fields(message):
    """Every field of a message of Protocol Buffers: (number, value)."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (message[at - 1] & 0x7F) << shift
            shift += 7
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
            continue
        size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else number()
        yield key >> 3, message[at:at + size]
        at += size


def parsed(model):
    """What transformers reads of a ModelProto."""
    proto = types.SimpleNamespace(
        pieces=[], trainer_spec=types.SimpleNamespace(model_type=1, unk_id=0, byte_fallback=False),
        normalizer_spec=types.SimpleNamespace(precompiled_charsmap=b""))
    for part, value in fields(model):
        if part == 1:
            piece = types.SimpleNamespace(piece="", score=0.0, type=1)
            for number, content in fields(value):
                name = {1: "piece", 2: "score", 3: "type"}[number]
                read = {1: bytes.decode, 2: lambda four: struct.unpack("<f", four)[0], 3: int}[number]
                setattr(piece, name, read(content))
            proto.pieces.append(piece)
        for number, content in fields(value) if part in (2, 3) else ():
            if part == 2 and number in (3, 40):
                setattr(proto.trainer_spec, {3: "model_type", 40: "unk_id"}[number], content)
            if part == 3 and number == 2:
                proto.normalizer_spec.precompiled_charsmap = content
    return proto


def extract(self, path):
    self.proto = parsed(pathlib.Path(path).read_bytes())


def trained(lines=LINES, size=400, **options):
    import io
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=size,
                                             hard_vocab_limit=False, minloglevel=2, **options)
    return model.getvalue()


def small(**options):
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        points = lambda text: " ".join(f"{ord(c):X}" for c in text)
        file.write("".join(f"{points(source)}\t{points(result)}\n" for source, result in sorted(RULES.items())))
        file.flush()
        return trained(SMALL, 60, normalization_rule_tsv=file.name, **options)


def vocabulary(model, first, last=(), seed=1, keep=0.95):
    """vocab.json: not in the model's order, and some pieces are missing."""
    pieces = [piece.piece for piece in parsed(model).pieces if piece.type == 1]
    rng = random.Random(seed)
    rng.shuffle(pieces)
    return json.dumps({piece: i for i, piece in enumerate([*first, *pieces[:int(len(pieces) * keep)], *last])},
                      ensure_ascii=False)


T5_IDS = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
M2M_TOKENS = ["<s>", "<pad>", "</s>", "<unk>"]


def marian(source, target, **config):
    return {"source.spm": source, "target.spm": target,
            "vocab.json": vocabulary(source, ["</s>", "<unk>"], [">>de<<", "<pad>"]),
            "tokenizer_config.json": json.dumps({"tokenizer_class": "MarianTokenizer", "source_lang": "en",
                                                 "target_lang": "de", **config})}


def m2m(model, codes="m2m100", **config):
    from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES
    tokens = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES[codes]]
    return {"sentencepiece.bpe.model": model, "vocab.json": vocabulary(model, M2M_TOKENS),
            "tokenizer_config.json": json.dumps({"tokenizer_class": "M2M100Tokenizer", "language_codes": codes,
                                                 "additional_special_tokens": tokens, **config})}


def converted(name, model, config, model_type=None):
    files = {name: model, "tokenizer_config.json": json.dumps(config)}
    return files | ({"config.json": json.dumps({"model_type": model_type})} if model_type else {})


def folders(make):
    """(name, files); `make` trains a model."""
    plain, other, t5 = make(), make(max_sentencepiece_length=4), make(**T5_IDS)
    bpe = make(model_type="bpe")
    yield "marian", marian(plain, other)
    separate = marian(plain, other, separate_vocabs=True)
    target = vocabulary(other, ["</s>", "<unk>"], ["<pad>"], seed=2)
    yield "marian_two_vocabularies", separate | {"target_vocab.json": target}
    yield "m2m_100", m2m(bpe)
    yield "m2m_100_unigram", m2m(plain, "wmt21", src_lang="de", tgt_lang="zh")
    yield "mbart", converted("sentencepiece.bpe.model", plain, {"src_lang": "ro_RO", "tgt_lang": "en_XX"}, "mbart")
    yield "mbart_50", converted("sentencepiece.bpe.model", plain, {"tokenizer_class": "MBart50Tokenizer",
                                                                   "mask_token": "<mask>"})
    yield "pegasus", converted("spiece.model", t5, {"tokenizer_class": "PegasusTokenizer"})
    masks = {"mask_token": "<mask_2>", "mask_token_sent": "<mask_1>", "offset": 9}
    yield "pegasus_named", converted("spiece.model", t5, {"tokenizer_class": "PegasusTokenizer", **masks})
    yield "t5", converted("spiece.model", t5, {"extra_ids": 3}, "mt5")


def more_folders():
    for rule, options in [("identity", {}), ("nfkc_cf", dict(remove_extra_whitespaces=False)),
                          ("nfkc", dict(size=700))]:
        model = trained(normalization_rule_name=rule, **options)
        yield f"marian_{rule}", marian(model, model)
        yield f"m2m_100_{rule}", m2m(trained(normalization_rule_name=rule, model_type="bpe", **options))
        yield f"mbart_{rule}", converted("sentencepiece.bpe.model", model, {"tokenizer_class": "MBartTokenizer"})
        t5 = trained(normalization_rule_name=rule, **T5_IDS, **options)
        yield f"t5_{rule}", converted("spiece.model", t5, {}, "t5")
    yield "m2m_100_no_prefix", m2m(trained(model_type="bpe", add_dummy_prefix=False))


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def read_by_transformers(folder):
    transformers.utils.logging.set_verbosity_error()
    return transformers.AutoTokenizer.from_pretrained(folder)


def ids_of(tokenizer, text, target=False):
    if target and isinstance(tokenizer, transformers.M2M100Tokenizer) and tokenizer.tgt_lang is None:
        return None   # it fails
    return tokenizer(text_target=text)["input_ids"] if target else tokenizer(text)["input_ids"]


def golden():
    texts = ["", " ", "hello world", "  Hello\tto  the world \u3000", "cafe\u0301 caf\u00E9", "\uFF76\uFF9E \uFF76",
             "a\uFDFAb \uFDFA", "\u200B", "fi\uFB01sh=====hello", ">>de<< hello", ">>xx<<hello", "a >>de<< b",
             "hello</s>world <unk> \u4E2D\u6587 z", "\u2581hello\u2581 \u2581", "a <mask> x", "__en__hello",
             "en_XX <extra_id_1>"]
    models, cases = {}, []
    for name, files in folders(small):
        with tempfile.TemporaryDirectory() as temporary:
            write(pathlib.Path(temporary), files)
            tokenizer = read_by_transformers(temporary)
            answers = [[text, ids_of(tokenizer, text), ids_of(tokenizer, text, True)] for text in texts]
            decoded = [tokenizer.decode(answer[2] or answer[1], skip_special_tokens=True) for answer in answers]
        kept = {}
        for file, content in files.items():
            if isinstance(content, bytes):
                key = next((key for key, model in models.items() if model == content.hex()), f"model {len(models)}")
                models[key] = content.hex()
                content = key
            kept[file] = content
        cases.append({"name": name, "files": kept, "texts": answers, "decoded": decoded})
    path = pathlib.Path(__file__).parents[1] / "generate/data/tokenizer/sentencepiece.json"
    text = json.dumps({"models": models, "folders": cases}, ensure_ascii=False, indent=0)
    path.write_text(text + "\n", encoding="utf-8")
    print(path.stat().st_size, "bytes")


def compare(name, folder, ours):
    tokenizer = read_by_transformers(folder)
    rng = random.Random(name)
    pieces = [*tokenizer.all_special_tokens[:60], ">>de<<", ">>xx<<"] * 3
    pieces += rng.sample(sorted(tokenizer.get_vocab()), 200)
    texts = tokenizer_texts.texts(name, pieces, 300)
    if "two_vocabularies" in name:   # of special tokens in a target transformers takes the source's ids
        texts = [text for text in texts if "<pad>" not in text]
    requests = [{"encode": text, "add": True, "target": target} for text in texts for target in (False, True)]
    requests += [{"decode": ids_of(tokenizer, text, True) or ids_of(tokenizer, text), "skip": True, "target": True}
                 for text in texts]
    answers = ours.ask([{"load": str(folder)}] + requests)
    if "error" in answers[0]:
        return [f"{name}: refused: {answers[0]['error']}"]
    failures = []
    for request, answer in zip(requests, answers[1:]):
        if "encode" in request:
            expected, found = ids_of(tokenizer, request["encode"], request["target"]), answer.get("ids", answer)
        else:
            expected, found = tokenizer.decode(request["decode"], skip_special_tokens=True), answer.get("text", answer)
            if not tokenizer.is_fast:   # Python strips what else it takes for white space
                expected, found = expected.strip(), found.strip()
        if expected is not None and expected != found:
            failures.append(f"{name}: {json.dumps(request)}\n   transformers {expected}\n   ours         {found}")
    print(f"{name}: {len(requests)} compared, {len(failures)} differ", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    conversion.SentencePieceExtractor.__init__ = extract
    if not options.program:
        return golden()
    failed = count = 0
    with tempfile.TemporaryDirectory() as temporary:
        for name, files in [*folders(trained), *more_folders()]:
            if options.filter not in name:
                continue
            folder = pathlib.Path(temporary) / name
            write(folder, files)
            failures = compare(name, folder, Ours(options.program))
            for text in failures[:3]:
                print(text)
            count += 1
            failed += bool(failures)
    print(f"{count} tokenizers, {failed} differ")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
