#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/settings.json: ids of transformers' AutoTokenizer where tokenizer_config.json and
tokenizer.json disagree, and answers.json: what it decodes with clean_up_tokenization_spaces. Each case holds its
tokenizer.json. tests/core/tokenizer/test_settings_keys.cpp reads both.

    python tests/oracle/generate/tokenizer_settings.py
"""

import json
import tempfile
from pathlib import Path

import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

OUTPUT = Path(__file__).resolve().parent / "data/tokenizer" / "settings.json"
BERT_TEXT, BYTES_TEXT = "A é 中国 a", "a b"


def word_pieces(lowercase, strip, chinese):
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "A", "é", "e", "中", "国", "中国"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=strip,
                                                      handle_chinese_chars=chinese)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def bytes_of(prefix, sequence):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "\u0120"]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, []))
    split = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), split]) if sequence else split
    return tokenizer


def llama():
    """As converters wrote it before `legacy`: every part of a text begins with a space."""
    pieces = ["<unk>", "<s>", "</s>", "\u2581", "a", "\u2581a"]
    tokenizer = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, [("\u2581", "a")], unk_token="<unk>",
                                     fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.add_special_tokens(["<s>"])
    return tokenizer


def case(tokenizer, settings, config, text):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        (folder / "config.json").write_text(json.dumps(config))
        ids = transformers.AutoTokenizer.from_pretrained(folder)(text, add_special_tokens=False)["input_ids"]
    return {"tokenizer": json.loads(tokenizer.to_str()), "tokenizer_config": settings, "config": config, "text": text,
            "ids": ids}


def cases():
    for name in ("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast", "MPNetTokenizer",
                 "PreTrainedTokenizerFast", "FNetTokenizer"):
        for lowercase in (True, False):
            yield case(word_pieces(lowercase, None, True), {"tokenizer_class": name, "do_lower_case": not lowercase}, {},
                       BERT_TEXT)
        yield case(word_pieces(False, False, True), {"tokenizer_class": name, "do_lower_case": False,
                                                     "strip_accents": True, "tokenize_chinese_chars": False}, {}, BERT_TEXT)
    for kind in ("bert", "electra", "distilbert", "modernbert", "headscope"):
        yield case(word_pieces(True, None, True), {"do_lower_case": False}, {"model_type": kind}, BERT_TEXT)
    yield case(word_pieces(True, None, True), {"do_lower_case": False, "tokenizer_class": "BertTokenizer"},
               {"model_type": "modernbert"}, BERT_TEXT)
    for name in ("GPT2Tokenizer", "RobertaTokenizer", "BartTokenizer", "GPTNeoXTokenizer", "Qwen2Tokenizer",
                 "BlenderbotTokenizer", "CohereTokenizer", "PreTrainedTokenizerFast"):
        for prefix in (True, False):
            for sequence in {False, name == "Qwen2Tokenizer"}:
                yield case(bytes_of(prefix, sequence), {"tokenizer_class": name, "add_prefix_space": not prefix}, {},
                           BYTES_TEXT)
    for name in ("LlamaTokenizer", "LlamaTokenizerFast", "PreTrainedTokenizerFast"):
        for settings in ({}, {"legacy": False}, {"legacy": True}, {"add_prefix_space": False}):
            yield case(llama(), {"tokenizer_class": name} | settings, {"model_type": "llama"}, "a<s>a a<s> a")


def answers():
    """Decoded texts with clean_up_tokenization_spaces."""
    words = ["[UNK]", "it", "is", "n", "'", "t", "n't", "'s", ".", ",", "?", "!", "'ve", "so"]
    ids = [1, 2, 6, 13, 9, 13, 4, 13, 7, 12, 11, 10, 8]
    forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"
    unigram = models.Unigram([(("\u2581" if word.isalpha() else "") + word, -1.0) for word in words], unk_id=0)
    makers = {"WordLevel": models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"),
              "BPE": models.BPE({word: i for i, word in enumerate(words)}, []), "Unigram": unigram}
    for model in makers.values():
        for settings in ({}, {"clean_up_tokenization_spaces": True}, {"clean_up_tokenization_spaces": False, forced: True},
                         {"clean_up_tokenization_spaces": True, forced: True}):
            tokenizer = Tokenizer(model)
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                tokenizer.save(str(folder / "tokenizer.json"))
                (folder / "tokenizer_config.json").write_text(json.dumps(settings))
                text = transformers.AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True)
            yield {"tokenizer": json.loads(tokenizer.to_str()), "tokenizer_config": settings, "ids": ids, "text": text}


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    for path, found in ((OUTPUT, list(cases())), (OUTPUT.with_name("answers.json"), list(answers()))):
        path.write_text("[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in found) + "\n]\n")
        print(path.name, len(found), "cases")
