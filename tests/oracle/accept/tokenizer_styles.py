# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizers in the styles of the families, trained on little text; each is a tokenizer.json document. Styles that
tokenizer_files.py makes for the fast tests are here too."""
import functools
import json
import sys
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
import tokenizer_files
import tokenizer_random
from sentencepiece_rules import charsmap
from tokenizer_files import LLAMA3, TEXT, bpe, byte_level, split_bytes

LINES = TEXT.splitlines()
BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPACE = "\u2581"


def document(tokenizer):
    return json.loads(tokenizer.to_str())


def precompiled(rules="nmt_nfkc"):
    return normalizers.Precompiled(charsmap(rules))


def unigram(size, normalizer, pre, special, unk="<unk>", more=(), byte_fallback=False, scores=0.0):
    """Trains, then puts `special` in front and `more` behind, as converters of sentencepiece models do."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre
    tokenizer.train_from_iterator(LINES, trainers.UnigramTrainer(
        vocab_size=size, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"]))
    data = document(tokenizer)
    pieces = [p for p in data["model"]["vocab"] if p[0] not in ("<unk>", *special)]
    if byte_fallback:
        pieces = [[b, -20.0] for b in BYTES] + pieces
    vocabulary = [[s, scores] for s in special] + pieces + [[m, 0.0] for m in more]
    data["model"] = {"type": "Unigram", "unk_id": special.index(unk), "vocab": vocabulary,
                     "byte_fallback": byte_fallback}
    data["added_tokens"] = [
        {"id": i, "content": s, "single_word": False, "lstrip": s in ("<mask>", "[MASK]"), "rstrip": False,
         "normalized": False, "special": True} for i, (s, _) in enumerate(vocabulary) if s in special or s in more]
    return Tokenizer.from_str(json.dumps(data))


def template(tokenizer, single, *names):
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=f"{single} $B:1", special_tokens=[(n, tokenizer.token_to_id(n)) for n in names])
    return tokenizer


def metaspace_of(tokenizer, **options):
    tokenizer.decoder = decoders.Metaspace(**options)
    return tokenizer


def t5():
    t = unigram(600, precompiled(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                ["<pad>", "</s>", "<unk>"], more=[f"<extra_id_{i}>" for i in range(3)])
    return template(metaspace_of(t), "$A </s>", "</s>")


def albert():
    n = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                              normalizers.StripAccents(), normalizers.Lowercase(), precompiled("nmt_nfkc_cf")])
    t = unigram(500, n, pre_tokenizers.Metaspace(), ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    return template(metaspace_of(t), "[CLS] $A [SEP]", "[CLS]", "[SEP]")


def xlnet():
    n = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                              normalizers.StripAccents(), precompiled(), normalizers.Replace(Regex(" {2,}"), " ")])
    t = unigram(500, n, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"])
    data = document(template(metaspace_of(t), "$A:0 <sep>:0 <cls>:2", "<sep>", "<cls>"))
    del data["model"]["type"]  # as the old file has it
    return data


def xlm_roberta():
    n = normalizers.Sequence([precompiled(), normalizers.Replace(Regex(" {2,}"), " ")])
    t = unigram(700, n, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
                ["<s>", "<pad>", "</s>", "<unk>"], more=["<mask>"])
    return template(metaspace_of(t), "<s> $A </s>", "<s>", "</s>")


def mbart():
    t = unigram(700, precompiled("nfkc"), pre_tokenizers.Metaspace(prepend_scheme="always", split=True),
                ["<s>", "<pad>", "</s>", "<unk>"], more=["en_XX", "de_DE", "<mask>"])
    return template(metaspace_of(t), "$A </s> en_XX", "</s>", "en_XX")


def deberta_v2():
    n = normalizers.Sequence([normalizers.Strip(), precompiled(), normalizers.Replace(Regex(" {2,}"), " ")])
    t = unigram(500, n, pre_tokenizers.Sequence([pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Metaspace()]),
                ["[PAD]", "[CLS]", "[SEP]", "[UNK]"], unk="[UNK]", more=["[MASK]"])
    return template(metaspace_of(t), "[CLS] $A [SEP]", "[CLS]", "[SEP]")


def siglip():
    n = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(Regex(r"[!\"#$%&'()*+,\-.:;=?@\[\]^_`{|}~]"), ""),
                              normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip(), precompiled("nfkc_cf")])
    return template(metaspace_of(unigram(400, n, pre_tokenizers.Metaspace(), ["</s>", "<unk>"])), "$A </s>", "</s>")


def unigram_bytes():
    """One word a text, bytes for what is unknown; as Gemma's and Persimmon's conversions."""
    n = normalizers.Replace(" ", SPACE)
    t = unigram(500, n, None, ["<pad>", "</s>", "<s>", "<unk>"], byte_fallback=True)
    t.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return template(t, "<s> $A", "<s>")


def unigram_some_bytes():
    """Too few bytes to spell everything: the unknown piece again."""
    data = document(unigram_bytes())
    data["model"]["vocab"] = [p for p in data["model"]["vocab"] if p[0] not in ("<0xE4>", "<0xF0>")]
    return data


def unigram_ties():
    """Equal scores, pieces twice, positive scores, an empty piece: who wins is the order's choice."""
    pieces = ["<unk>", "", "a", "b", "ab", "ba", "abab", "aba", "bab", "a", "aa", "aaaa", SPACE, SPACE + "a", "e", "\u0301",
              "e\u0301", "in", "t", "the", "he", "th", " ", "\u4E2D\u6587", "\u4E2D", "<", ">", "unk", "\U0001F600"]
    vocabulary = [[p, [-1.0, -1.0, -2.0, -3.0, 0.5][i % 5]] for i, p in enumerate(pieces)]
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "decoder": None, "post_processor": None,
            "pre_tokenizer": None, "model": {"type": "Unigram", "unk_id": 0, "vocab": vocabulary}}


def unigram_without_unknown():
    data = unigram_ties()
    data["model"]["unk_id"] = None
    return data


def gemma():
    alphabet = ["<pad>", "<eos>", "<bos>", "<unk>"] + BYTES
    t = bpe(700, pre=pre_tokenizers.Split(" ", "merged_with_previous"), normalizer=normalizers.Replace(" ", SPACE),
            special=alphabet, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    data = document(t)
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    data["model"]["ignore_merges"] = False
    t = Tokenizer.from_str(json.dumps(data))
    t.add_tokens([AddedToken("\n" * n, normalized=False) for n in range(2, 6)] + [AddedToken(SPACE * 2, normalized=False)])
    t.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()])
    return template(t, "<bos> $A", "<bos>")


def phi3():
    t = tokenizer_files.llama2()
    t.add_tokens([AddedToken("</s>", rstrip=True, normalized=False, special=False),
                  AddedToken("<|end|>", rstrip=True, special=True), AddedToken("<|user|>", rstrip=True, special=True)])
    return t


def tinyllama_legacy():
    data = tokenizer_files.sentences(normalizer=normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)]))
    data["model"]["merges"] = [" ".join(m) if isinstance(m, list) else m for m in data["model"]["merges"]]
    data["decoder"] = {"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    return data


DEEPSEEK_V3 = [
    (r"\p{N}{1,3}", "isolated"), (r"[一-龥぀-ゟ゠-ヿ]+", "isolated"),
    ("[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
     "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+", "isolated")]
DEEPSEEK_CODER = [
    ("[\r\n]", "isolated"), ("\\s?\\p{L}+", "isolated"), ("\\s?\\p{P}+", "isolated"), ("[一-龥ࠀ-一가-퟿]+", "isolated")]
PATTERNS = {
    "o200k": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
             r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "llama4": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$"
              r"|\s*[\r\n]|\s+(?!\S)|\s",
    "kimi": r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
            r"(?i:'s|'t)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "olmo": r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "bloom": r" ?[^(\s|[.,!?…。，、।۔،])]+",
    "word_boundary": r"\b\w+\b|\W", "posix": r"[[:alpha:]]+|[[:digit:]]|[[:space:]]+|[[:punct:]]", "dot": r".", "start": r"^\s*|\s*$",
    "look_behind": r"(?<=[a-z])(?=[A-Z])", "anything": r"(?m).+?", "back": r"(\p{L})\1", "greek": r"\p{Greek}+|\p{Cyrillic}+|\p{Latin}+",
    "negated": r"[^\w\s]+|\P{L}", "hex": r"[\x{4E00}-\x{9FFF}]|\h+", "not_newline": r"\N+|\R", "x": r"\X",
}


def deepseek(patterns, digits):
    parts = [pre_tokenizers.Split(Regex(p), b) for p, b in patterns]
    if digits:
        parts.append(pre_tokenizers.Digits(individual_digits=True))
    t = bpe(420, alphabet=pre_tokenizers.ByteLevel.alphabet(),
            pre=pre_tokenizers.Sequence(parts + [pre_tokenizers.ByteLevel(False, use_regex=False)]))
    t.decoder = decoders.ByteLevel()
    t.add_tokens([AddedToken("<｜begin▁of▁sentence｜>", normalized=True, special=True), AddedToken("<｜User｜>", normalized=True)])
    return template(t, "<｜begin▁of▁sentence｜> $A", "<｜begin▁of▁sentence｜>")


def of_bytes(parts, **options):
    t = bpe(420, alphabet=pre_tokenizers.ByteLevel.alphabet(), pre=pre_tokenizers.Sequence(parts), **options)
    t.decoder = decoders.ByteLevel()
    return t


def falcon():
    return of_bytes([pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False), pre_tokenizers.Digits(False),
                     pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])


def neox(trim=True):
    t = byte_level(add_prefix_space=False, trim_offsets=trim)
    t.normalizer = normalizers.NFC()
    t.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=True)
    t.post_processor = processors.ByteLevel(add_prefix_space=False, trim_offsets=trim)
    t.add_special_tokens(["<|endoftext|>", "<|padding|>"])
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    return t


def opt():
    t = byte_level(add_prefix_space=False)
    t.add_special_tokens([AddedToken("<pad>", normalized=True, special=True), AddedToken("</s>", normalized=True, special=True)])
    t.decoder = decoders.ByteLevel(trim_offsets=False)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        "</s> $A", special_tokens=[("</s>", t.token_to_id("</s>"))])])
    return t


def bart():
    t = tokenizer_files.roberta()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")), trim_offsets=True,
                                                    add_prefix_space=False)
    return t


def whisper():
    t = byte_level(add_prefix_space=False)
    names = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|notimestamps|>"]
    t.add_special_tokens(names)
    t.add_tokens(["<|0.00|>", "<|0.02|>"])
    t.decoder = decoders.ByteLevel()
    return template(t, "<|startoftranscript|> <|en|> <|notimestamps|> $A <|endoftext|>", *names)


def ctc():
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|"] + list("ETAONIHSRDLUMWCFGYPBVKXJQZ'")
    return {"version": "1.0", "added_tokens": [
        {"id": i, "content": letters[i], "single_word": False, "lstrip": i == 3, "rstrip": i == 3, "normalized": False,
         "special": i != 3} for i in range(4)],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "|"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": ""}, "behavior": "Isolated", "invert": False},
        "post_processor": None, "decoder": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "|", "cleanup": True},
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {c: i for i, c in enumerate(letters)}}}


def clip():
    t = bpe(420, pre=pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
                             "removed", invert=True), pre_tokenizers.ByteLevel(False)]),
        normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        alphabet=pre_tokenizers.ByteLevel.alphabet(), special=["<|startoftext|>", "<|endoftext|>"],
        end_of_word_suffix="</w>")
    data = document(t)
    data["model"] |= {"end_of_word_suffix": "</w>", "continuing_subword_prefix": "", "unk_token": "<|endoftext|>"}
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), False, False)
    return t


def openai_gpt():
    t = bpe(400, pre=pre_tokenizers.BertPreTokenizer(), normalizer=normalizers.BertNormalizer(lowercase=True),
            special=["<unk>"], unk_token="<unk>", end_of_word_suffix="</w>")
    data = document(t)
    data["model"]["end_of_word_suffix"] = "</w>"
    data["decoder"] = {"type": "BPEDecoder", "suffix": "</w>"}
    return data


def word_piece(lower, model=None, **options):
    data = document(tokenizer_files.word_piece(lower, **options))
    data["model"] |= model or {}
    if data["model"]["continuing_subword_prefix"] == "":
        data["decoder"]["prefix"] = ""
    return data


def distilbert():
    data = word_piece(True)
    del data["model"]["type"]
    data["decoder"]["cleanup"] = False
    return data


def scripts():
    t = bpe(400, pre=pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace(prepend_scheme="first")]),
            normalizer=normalizers.NFKC(), special=["<unk>"], unk_token="<unk>", fuse_unk=True)
    return metaspace_of(t, prepend_scheme="first")


def esm():
    letters = ["<cls>", "<pad>", "<eos>", "<unk>"] + list("LAGVSERTIDPKQNFYMHWCXBUZO.-") + ["<mask>"]
    t = Tokenizer(models.WordLevel({c: i for i, c in enumerate(letters)}, "<unk>"))
    t.add_special_tokens(["<cls>", "<eos>", "<pad>", "<unk>", "<mask>"])
    t.add_tokens(letters[4:-1])
    t.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return template(t, "<cls> $A <eos>", "<cls>", "<eos>")


def phi():
    t = byte_level(add_prefix_space=False)
    t.add_special_tokens(["<|endoftext|>"])
    t.add_tokens([AddedToken(" " * n, normalized=False) for n in (7, 6, 5, 4, 3, 2)] + [AddedToken("\t" * n) for n in (4, 3, 2)])
    t.post_processor = processors.ByteLevel(add_prefix_space=True, trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    return t


STYLES = {
    **{name: getattr(tokenizer_files, name) for name in
       ("gpt2", "roberta", "llama3", "qwen2", "cased_pattern", "llama2", "mistral", "words", "splits")},
    "metaspace_old": lambda: tokenizer_files.metaspace()[1], "bert_uncased": lambda: word_piece(True),
    "bert_cased": lambda: word_piece(False, strip_accents=False), "electra": lambda: word_piece(True, strip_accents=True),
    "bert_no_chinese": lambda: word_piece(False, strip_accents=True, handle_chinese_chars=False, clean_text=False),
    "bert_few_characters": lambda: word_piece(True, {"max_input_chars_per_word": 6}),
    "bert_no_prefix": lambda: word_piece(True, {"continuing_subword_prefix": ""}),
    "distilbert": distilbert, "clip": clip, "clip_small": tokenizer_files.clip, "openai_gpt": openai_gpt,
    "t5": t5, "albert": albert, "xlnet": xlnet, "xlm_roberta": xlm_roberta, "mbart": mbart, "deberta_v2": deberta_v2,
    "siglip": siglip, "unigram_bytes": unigram_bytes, "unigram_some_bytes": unigram_some_bytes, "unigram_ties": unigram_ties,
    "unigram_without_unknown": unigram_without_unknown, "gemma": gemma, "phi3": phi3, "tinyllama_legacy": tinyllama_legacy,
    "deepseek_v3": lambda: deepseek(DEEPSEEK_V3, False), "deepseek_coder": lambda: deepseek(DEEPSEEK_CODER, True),
    "falcon": falcon, "starcoder": lambda: of_bytes([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)]),
    "command_r": lambda: of_bytes([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)], normalizer=normalizers.NFC()),
    "neox": neox, "neox_untrimmed": lambda: neox(False), "opt": opt, "bart": bart, "whisper": whisper, "ctc": ctc,
    "scripts": scripts, "esm": esm, "phi": phi,
    **{f"pattern_{name}": functools.partial(split_bytes, pattern) for name, pattern in PATTERNS.items()},
    "pattern_llama3_removed": lambda: of_bytes([pre_tokenizers.Split(Regex(LLAMA3), "removed", invert=True), pre_tokenizers.ByteLevel(
        True, use_regex=False)]),
}


def documents(chosen, seed, random_count):
    """(name, document) of every style and `random_count` random combinations whose name holds `chosen`."""
    for name, make in STYLES.items():
        if chosen not in name:
            continue
        try:
            made = make()
        except LookupError as missing:
            print(f"{name}: left out, {missing}")
            continue
        yield name, made if isinstance(made, dict) else document(made)
    for i in range(random_count):
        name = f"random_{seed}_{i}"
        if chosen not in name:
            continue
        try:
            yield name, tokenizer_random.combination(name, charsmap)
        except LookupError:
            continue  # one with a normalisation of sentencepiece's
