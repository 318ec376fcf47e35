#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/tokenizer/: small tokenizer.json files of every style, and what the `tokenizers` library (0.23)
makes of awkward texts with them. Run by hand; its output is committed and tests/core/tokenizer/test_golden.cpp reads it.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3
    python3 tests/oracle/generate/tokenizer_files.py

Training breaks some ties by chance: another run may write other pieces, and then expected.json with them.
"""
import json
import random
from pathlib import Path

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

OUT = Path(__file__).resolve().parent / "data/tokenizer"

# Lewis Carroll, Alice's Adventures in Wonderland (1865), and lines in other scripts from the Universal Declaration of
# Human Rights' first article; all in the public domain.
TEXT = """Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once or
twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it, "and what is
the use of a book," thought Alice "without pictures or conversations?" So she was considering in her own mind (as well
as she could, for the hot day made her feel very sleepy and stupid), whether the pleasure of making a daisy-chain would
be worth the trouble of getting up and picking the daisies, when suddenly a White Rabbit with pink eyes ran close by
her. There was nothing so very remarkable in that; nor did Alice think it so very much out of the way to hear the Rabbit
say to itself, "Oh dear! Oh dear! I shall be late!" (when she thought it over afterwards, it occurred to her that she
ought to have wondered at this, but at the time it all seemed quite natural); but when the Rabbit actually took a watch
out of its waistcoat-pocket, and looked at it, and then hurried on, Alice started to her feet. It's 1865, isn't it? I'd
say we'll see; they've gone, you're here, I'm late and don't care. 10 20 30 1000 2024.
Tous les êtres humains naissent libres et égaux en dignité et en droits. Alle Menschen sind frei und gleich an Würde und
Rechten geboren. Все люди рождаются свободными и равными в своем достоинстве и правах. 人人生而自由,在尊严和权利上一律平等。
すべての人間は、生まれながらにして自由であり。 يولد جميع الناس أحراراً متساوين. Όλοι οι άνθρωποι γεννιούνται ελεύθεροι.
"""

TEXTS = [
    "", " ", "   ", "\t", "\n", "\r\n", " \n \r\n\t x", "a", "Hello, World!", "  leading and trailing  ",
    "It's 12345 o'clock; we'll've DON'T 'S 's I'M 'tis", "'\u017f '\u017fx I'\u017f '\u212a 'LL 'rE",
    "\U0001F469\u200D\U0001F469\u200D\U0001F467 family \U0001F44D\U0001F3FD \U0001F1E9\U0001F1EA",
    "e\u0301 a\u0323\u0302 q\u0302\u0323 A\u030A \u00C5 \uFB01 \u00BD \u00B2 \u1E9B\u0323 \u0344",
    "\uAC01\uD55C\uAE00 \u1112\u1161\u11AB \u1100\u1161 \u11A8",
    "中文,測試。人人生而自由 カタカナ", "العربية أحراراً", "हिन्दी नमस्ते", "ไทย",
    "\u0000nul\u0007bell\u200Bzwsp\uFEFFbom\u00ADshy\uFFFD", "\u1C89\uA7CB\U00010D40\U00010D4A\U00011BC0\U0001FAE9 x",
    "<s>a</s> <unk>b<pad>", "a<s>b  <s> c", "x<|end|>y <|end|>", "  <mask>  and<mask>and <mask>", "[MASK][CLS] [SEP]x",
    "Wonderland wonderland WONDERland", "xx  yy    zz        w", "a\u2581b \u2581 \u2581\u2581x",
    "x" * 40, "ab" * 30, " " * 30, "\n" * 7 + "\r\r\n", "12345678901234567890", "!?" * 12, "A" * 99 + " " + "é" * 101,
    "\uFB00 \u00DF \u0130stanbul ΑΣ ς", "naïve café, cooperate", "f(x):\n    return x**2  # ok\n\n\n",
    "\u3000wide\u3000space\u00A0nbsp\u2003em\u0085next\u2028line", "\U0001D4B3\U0001D4CE \U0001D7D9\U0001D7DA Ⅷ ⅷ ①②",
    "\u0301leading mark", "\U0010FFFF \uFFFE \uE000", "<0x41> <0x0A>", "12 345 ٣٤ ४५ ½¾ \U00011F50\U00016AC0 \U00011DE0",
    "a_b-c?d=e&f=%20 @x #y", "CamelCaseWord HTTPServer iPhone's", "snow\u2603man\u2014dash\u2026 “quoted” ‘s’",
    "the White Rabbit, considering conversations without pictures", "don't can't I'd you're they've we'll it's",
]


def bpe(size, text=TEXT, pre=None, normalizer=None, alphabet=None, special=(), **options):
    tokenizer = Tokenizer(models.BPE(**{k: v for k, v in options.items() if k != "end_of_word_suffix"}))
    if pre is not None:
        tokenizer.pre_tokenizer = pre
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    suffix = {k: v for k, v in options.items() if k in ("end_of_word_suffix", "continuing_subword_prefix")}
    tokenizer.train_from_iterator(text.splitlines(), trainers.BpeTrainer(
        vocab_size=size, show_progress=False, initial_alphabet=alphabet or [], special_tokens=list(special), **suffix))
    return tokenizer


def byte_level(size=420, **options):
    return bpe(size, pre=pre_tokenizers.ByteLevel(**options), alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2():
    t = byte_level(add_prefix_space=False)
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(["<|end|>"])
    return t


def roberta():
    t = byte_level(add_prefix_space=True)
    t.add_special_tokens(["<s>", "</s>", AddedToken("<mask>", lstrip=True, special=True)])
    t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")))
    t.decoder = decoders.ByteLevel()
    return t


LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
CASES = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
         r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")


def split_bytes(pattern, size=420):
    return bpe(size, alphabet=pre_tokenizers.ByteLevel.alphabet(), pre=pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]))


def llama3():
    t = split_bytes(LLAMA3)
    t.add_special_tokens(["<|begin|>", "<|end|>"])
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing("<|begin|> $A", special_tokens=[("<|begin|>", t.token_to_id("<|begin|>"))])])
    t.decoder = decoders.ByteLevel()
    # A piece that merges would not make: ignore_merges takes it whole.
    data = json.loads(t.to_str())
    data["model"]["ignore_merges"] = True
    size = len(data["model"]["vocab"])
    for i, token in enumerate(data["added_tokens"]):
        token["id"] = size + 2 + i
    data["model"]["vocab"]["ĠWonderland"] = size
    data["model"]["vocab"]["xxĠ"] = size + 1
    data["post_processor"]["processors"][1]["special_tokens"]["<|begin|>"]["ids"] = [size + 2]
    return Tokenizer.from_str(json.dumps(data))


def qwen2():
    t = split_bytes(QWEN2)
    t.normalizer = normalizers.NFC()
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens(["<|end|>"])
    t.add_tokens([AddedToken("  ", normalized=True), AddedToken("        ", normalized=False)])
    return t


def cased_pattern():
    t = split_bytes(CASES)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
    return t


def sentences(pre=None, normalizer=None, special=()):
    alphabet = [f"<0x{b:02X}>" for b in range(256)]
    t = bpe(560, pre=pre, normalizer=normalizer, special=["<unk>", "<s>", "</s>"] + alphabet,
            unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    data = json.loads(t.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if not a["content"].startswith("<0x")]
    return data


def llama2():
    lines = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    data = sentences(normalizer=lines)
    for token in data["added_tokens"]:
        token["normalized"] = True
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    return t


def mistral():
    data = sentences(pre=pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    t = Tokenizer.from_str(json.dumps(data))
    t.post_processor = processors.TemplateProcessing("<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
    return t


def metaspace():
    t = bpe(300, pre=pre_tokenizers.Metaspace(), special=["<unk>"], unk_token="<unk>", fuse_unk=False)
    t.decoder = decoders.Metaspace()
    data = json.loads(t.to_str())
    for name in ("pre_tokenizer", "decoder"):  # as old files have it
        data[name] = {"type": "Metaspace", "replacement": "\u2581", "str_rep": "\u2581", "add_prefix_space": True}
    return Tokenizer.from_str(json.dumps(data)), data


def word_piece(lowercase, **options):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **options)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(TEXT.splitlines(), trainers.WordPieceTrainer(
        vocab_size=500, show_progress=False, special_tokens=special))
    t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    t.decoder = decoders.WordPiece()
    return t


def clip():
    t = bpe(420, pre=pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "),
                                         normalizers.Lowercase()]),
        unk_token="<|end|>", special=["<|end|>"], end_of_word_suffix="</w>")
    data = json.loads(t.to_str())
    data["model"]["end_of_word_suffix"] = "</w>"
    t = Tokenizer.from_str(json.dumps(data))
    t.decoder = decoders.BPEDecoder("</w>")
    return t


def words():
    t = Tokenizer(models.WordLevel(unk_token="<unk>"))
    t.normalizer = normalizers.Sequence([
        normalizers.NFKC(), normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(),
        normalizers.Replace("oo", "u"), normalizers.Replace(Regex(r"[\d&&[^0]]+"), "9"), normalizers.Nmt(),
        normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.CharDelimiterSplit("\u2603")])
    t.train_from_iterator(TEXT.splitlines(), trainers.WordLevelTrainer(
        vocab_size=120, show_progress=False, special_tokens=["<unk>", "<pad>"]))
    t.add_tokens([AddedToken("Wonderland", single_word=True, normalized=True),
                  AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False)])
    return t


def splits():
    """Every behaviour of splits, on words of characters."""
    t = bpe(300, special=["<unk>"], unk_token="<unk>", continuing_subword_prefix="##",
            pre=pre_tokenizers.Sequence([
                pre_tokenizers.Split(Regex(r"\W"), "merged_with_next"), pre_tokenizers.Split("e", "merged_with_previous"),
                pre_tokenizers.Punctuation("removed"), pre_tokenizers.Digits(True), pre_tokenizers.Whitespace(),
                pre_tokenizers.FixedLength(7)]),
            normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.ByteLevel()]))
    t.decoder = decoders.CTC(pad_token="##", word_delimiter_token="\u0120", cleanup=True)
    return t


# A few of the rules that sentencepiece's own normalisations have, and some that show how clusters are taken.
RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\u00A0": " ", "\u3000": " ", "\u200B": "", "\u0007": "", "\u00AD": "", "\uFB01": "fi",
    "\uFB00": "ff", "\u2026": "...", "\u2122": "TM", "\u00BD": "1\u20442", "\u00B2": "2", "\u2460": "1", "\u2167": "VIII",
    "e\u0301": "\u00E9", "a\u0323\u0302": "\u1EAD", "A\u030A": "\u00C5", "\uFF21": "A", "\uFF76\uFF9E": "\u30AC",
    "\U0001D4B3": "X", "\u00A9": "(c)", "\u0958": "\u0915\u093C", "\u0344": "\u0308\u0301"}


def sentencepiece(vocabulary, special, normalizer, pre, byte_fallback=False):
    """A unigram model, with the special tokens in front."""
    t = Tokenizer(models.Unigram())
    t.normalizer, t.pre_tokenizer = normalizer, pre
    t.train_from_iterator(TEXT.splitlines(), trainers.UnigramTrainer(
        vocab_size=vocabulary, show_progress=False, unk_token="<unk>", special_tokens=["<unk>"]))
    data = json.loads(t.to_str())
    # Scores of trained models have more digits; a committed file needs fewer.
    pieces = [[p, round(score, 4)] for p, score in data["model"]["vocab"] if p not in special]
    if byte_fallback:
        pieces = [[f"<0x{b:02X}>", -20.0] for b in range(256)] + pieces
    data["model"] |= {"unk_id": special.index("<unk>"), "vocab": [[s, 0.0] for s in special] + pieces,
                      "byte_fallback": byte_fallback}
    data["added_tokens"] = []
    t = Tokenizer.from_str(json.dumps(data))
    t.add_special_tokens(list(special))
    return t


def t5():
    from sentencepiece_rules import charsmap_of
    t = sentencepiece(420, ["<pad>", "</s>", "<unk>"], normalizers.Precompiled(charsmap_of(RULES)),
                      pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))
    t.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 1)])
    t.decoder = decoders.Metaspace()
    return t


def unigram_bytes():
    t = sentencepiece(300, ["<unk>", "<s>"], normalizers.Replace(" ", "\u2581"), None, byte_fallback=True)
    t.post_processor = processors.TemplateProcessing("<s> $A", special_tokens=[("<s>", 1)])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()])
    return t


def scripts():
    t = bpe(300, special=["<unk>"], unk_token="<unk>", fuse_unk=True, normalizer=normalizers.NFKC(),
            pre=pre_tokenizers.Sequence([pre_tokenizers.UnicodeScripts(), pre_tokenizers.Metaspace(prepend_scheme="first")]))
    t.add_tokens([AddedToken(" ", rstrip=True), AddedToken("the", lstrip=True, rstrip=True)])
    t.decoder = decoders.Metaspace(prepend_scheme="first")
    return t


def byte_offsets(text, offsets):
    places = [0]
    for c in text:
        places.append(places[-1] + len(c.encode()))
    return [[places[a], places[b]] for a, b in offsets]


def expected(tokenizer, rng):
    encodings = []
    for text in TEXTS:
        for special in (True, False):
            e = tokenizer.encode(text, add_special_tokens=special)
            if not special and not any(full["special"]):
                continue  # the same again
            pieces = [[i, p] for i, p in enumerate(e.tokens) if p != tokenizer.id_to_token(e.ids[i])]
            full = {"text": TEXTS.index(text), "add": special, "ids": e.ids, "pieces": pieces,
                    "offsets": sum(byte_offsets(text, e.offsets), []), "special": e.special_tokens_mask}
            encodings.append(full)
    size = tokenizer.get_vocab_size()
    decodings = []
    for _ in range(18):  # parts of characters, specials and ids without piece among them
        ids = [rng.randrange(size + 2) for _ in range(rng.randrange(1, 9))]
        decodings += [[ids, skip, tokenizer.decode(ids, skip_special_tokens=skip)] for skip in (False, True)]
    for full in encodings:
        if full["add"]:
            decodings.append([full["text"], True, tokenizer.decode(full["ids"], skip_special_tokens=True)])
    for full in encodings:
        full["special"] = sum(full["special"])
    return {"encodings": encodings, "decodings": decodings}


def main():
    OUT.mkdir(exist_ok=True)
    made = {
        "gpt2": gpt2(), "roberta": roberta(), "llama3": llama3(), "qwen2": qwen2(), "cased_pattern": cased_pattern(),
        "llama2": llama2(), "mistral": mistral(), "metaspace": metaspace(), "bert_uncased": word_piece(True),
        "bert_cased": word_piece(False, strip_accents=False), "clip": clip(), "words": words(), "splits": splits(),
        "t5": t5(), "unigram_bytes": unigram_bytes(), "scripts": scripts(),
    }
    rng = random.Random(1)
    results = {}
    for name, tokenizer in made.items():
        data = None
        if isinstance(tokenizer, tuple):
            tokenizer, data = tokenizer
        data = data or json.loads(tokenizer.to_str())
        if name == "gpt2":  # as old files have them
            data["model"]["merges"] = [" ".join(pair) for pair in data["model"]["merges"]]
            del data["model"]["type"]
            tokenizer = Tokenizer.from_str(json.dumps(data))
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        (OUT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        results[name] = expected(Tokenizer.from_file(str(OUT / f"{name}.json")), rng)
    lines = ['{"texts":' + json.dumps(TEXTS)]
    for name, result in results.items():
        lines.append(f',"{name}":' + json.dumps(result, separators=(",", ":")))
    (OUT / "expected.json").write_text("\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
