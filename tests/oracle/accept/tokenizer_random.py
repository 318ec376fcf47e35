# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizers put together at random from every component, as tokenizer.json documents: combinations that nobody would
train, on which the order of things and the corners of offsets show."""
import base64
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
from tokenizer_files import CASES, LLAMA3, TEXT
from tokenizer_texts import ALPHABETS

CHARACTERS = sorted(set(TEXT)) + list("\u2581\u0120\u0301\u00C3\u00A9\u4E2D\u20AC\U0001F600")
WORDS = sorted(set(TEXT.split()))
SPACE = "\u2581"
SPELLED = [chr(c) for c in range(0x21, 0x7F)] + [chr(c) for c in range(0xA1, 0x144)]


def substring(rng, longest=6):
    word = rng.choice(WORDS)
    begin = rng.randrange(len(word))
    return word[begin:begin + rng.randrange(1, longest + 1)]


def pieces_of(rng, count):
    made = {rng.choice(CHARACTERS) for _ in range(count)} | {substring(rng) for _ in range(count)}
    made |= {rng.choice([SPACE, "\u0120", " ", "##"]) + substring(rng) for _ in range(count // 2)}
    if rng.random() < 0.5:
        made |= set(SPELLED)
    return sorted(made)


def bytes_of(rng):
    chosen = rng.choice([[], range(256), range(256), [b for b in range(256) if b != 0xE4]])
    return [f"<0x{b:02X}>" for b in chosen]


def bpe(rng):
    prefix = rng.choice([None, None, None, "", "##", "@"])
    suffix = rng.choice([None, None, None, "", "</w>", "\u00AC"])
    vocabulary = {}

    def add(piece):
        vocabulary.setdefault(piece, len(vocabulary))
        return piece

    alphabet = rng.sample(CHARACTERS, len(CHARACTERS) * 3 // 4)
    if rng.random() < 0.6:
        alphabet = sorted(set(alphabet) | set(SPELLED))
    firsts, rest = [], []
    for c in alphabet:
        firsts.append(add(c))
        rest.append(add((prefix or "") + c))
        if suffix and rng.random() < 0.8:
            add(c + suffix)
            rest.append(add((prefix or "") + c + suffix))
    merges = []
    for word in rng.choices(WORDS, k=rng.choice([0, 20, 150])) + ["\u00C3\u00A9", "\u00E4\u00B8\u0143", "ab", "aa", "aaa"]:
        parts = [word[0]] + [(prefix or "") + c for c in word[1:]]
        if suffix and len(parts) > 1:
            parts[-1] += suffix
        while len(parts) > 1:
            at = rng.randrange(len(parts) - 1)
            left, right = parts[at], parts[at + 1]
            if left in vocabulary and right in vocabulary and [left, right] not in merges:
                merges.append([left, right])
                add(left + right[len(prefix or ""):])
            parts[at:at + 2] = [left + right[len(prefix or ""):]]
            if rng.random() < 0.3:
                break
    if rng.random() < 0.3:
        rng.shuffle(merges)
    for piece in bytes_of(rng):
        add(piece)
    unknown = rng.choice([None, "<unk>", "<unk>", "<missing>"])
    if unknown == "<unk>":
        add(unknown)
    if rng.random() < 0.3:
        merges = [" ".join(m) for m in merges]
    return {"type": "BPE", "dropout": None, "unk_token": unknown, "continuing_subword_prefix": prefix,
            "end_of_word_suffix": suffix, "fuse_unk": rng.random() < 0.5,
            # Over-long offsets otherwise: the reference counts the bytes of prefixes and suffixes.
            "byte_fallback": not prefix and not suffix and rng.random() < 0.6,
            "ignore_merges": rng.random() < 0.4, "vocab": vocabulary, "merges": merges}


def unigram(rng):
    pieces = ["<unk>"] + bytes_of(rng) + pieces_of(rng, rng.choice([20, 120])) + rng.choice([[], ["a", "the", "<unk>"]])
    scores = rng.choice([lambda: -1.0, lambda: rng.choice([-1.0, -2.0, -4.0]), lambda: -rng.random() * 12, lambda: rng.random() - 0.5])
    if rng.random() < 0.3:
        rng.shuffle(pieces)
    vocabulary = [[p, scores()] for p in pieces]
    unknown = rng.choice([pieces.index("<unk>")] * 5 + [None, max(i for i, p in enumerate(pieces) if not p.startswith("<0x"))])
    return {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary,
            "byte_fallback": rng.random() < 0.5}


def word_piece(rng):
    prefix = rng.choice(["##", "##", "", "_"])
    pieces = ["[UNK]"] + [p for piece in pieces_of(rng, 120) for p in (piece, prefix + piece)]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([100, 100, 12, 3]),
            "vocab": {p: i for i, p in enumerate(dict.fromkeys(pieces))}}


def word_level(rng):
    pieces = ["<unk>"] + pieces_of(rng, 150) + rng.sample(WORDS, 100)
    return {"type": "WordLevel", "unk_token": rng.choice(["<unk>", "<unk>", "<gone>"]),
            "vocab": {p: i for i, p in enumerate(dict.fromkeys(pieces))}}


def pattern(rng):
    if rng.random() < 0.4:
        return {"String": rng.choice([" ", "e", "an", "", "  ", "\u0301", SPACE, "\n", ".", "a*"])}
    return {"Regex": rng.choice([r"\s+", r" ", r"", r"\d", r"\p{N}{1,3}", r"\w+", r"\W", r"[aeiou]", r"(?i)t+", r"\p{M}", r"x*",
                                 r"(?=[A-Z])", r"\p{P}+|\p{S}+", r"[^\p{L}\s]", r".", r"^.", r".$", r"\b", LLAMA3, CASES])}


def behavior(rng):
    return rng.choice(["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"])


def boolean(rng):
    return rng.random() < 0.5


def normalizer(rng, charsmap):
    kind = rng.choice(["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "BertNormalizer", "Prepend", "Replace", "Replace",
                       "Strip", "Nmt", "Precompiled", "ByteLevel", "Sequence"])
    made = {"type": kind}
    if kind == "BertNormalizer":
        made |= {"clean_text": boolean(rng), "handle_chinese_chars": boolean(rng), "lowercase": boolean(rng),
                 "strip_accents": rng.choice([None, True, False])}
    elif kind == "Prepend":
        made["prepend"] = rng.choice([SPACE, " ", "ab", "\u0301", "\u00E9"])
    elif kind == "Replace":
        made |= {"pattern": pattern(rng), "content": rng.choice(["", " ", SPACE, "ab", "\u00E9", "\U0001F600x"])}
    elif kind == "Strip":
        made |= {"strip_left": boolean(rng), "strip_right": boolean(rng)}
    elif kind == "Precompiled":
        rules = rng.choice(["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"])
        made["precompiled_charsmap"] = base64.b64encode(charsmap(rules)).decode()
    elif kind == "Sequence":
        made["normalizers"] = [normalizer(rng, charsmap) for _ in range(rng.randrange(4))]
    return made


def pre_tokenizer(rng):
    kind = rng.choice(["BertPreTokenizer", "ByteLevel", "ByteLevel", "CharDelimiterSplit", "Metaspace", "Metaspace", "Whitespace",
                       "Split", "Split", "Split", "Punctuation", "WhitespaceSplit", "Digits", "UnicodeScripts", "FixedLength",
                       "Sequence", "Sequence"])
    made = {"type": kind}
    if kind == "ByteLevel":
        made |= {"add_prefix_space": boolean(rng), "trim_offsets": boolean(rng), "use_regex": boolean(rng)}
    elif kind == "CharDelimiterSplit":
        made["delimiter"] = rng.choice([" ", "e", "\u4E2D", "\n"])
    elif kind == "Metaspace":
        made |= {"replacement": rng.choice([SPACE, SPACE, "_", "\u00E9"])}
        made |= rng.choice([{"add_prefix_space": True}, {"prepend_scheme": "always", "split": boolean(rng)},
                            {"prepend_scheme": "first", "split": boolean(rng)},
                            {"prepend_scheme": "never", "split": boolean(rng), "add_prefix_space": False}])
    elif kind == "Split":
        made |= {"pattern": pattern(rng), "behavior": behavior(rng), "invert": boolean(rng)}
    elif kind == "Punctuation":
        made["behavior"] = behavior(rng)
    elif kind == "Digits":
        made["individual_digits"] = boolean(rng)
    elif kind == "FixedLength":
        made["length"] = rng.choice([1, 2, 3, 5])
    elif kind == "Sequence":
        made["pretokenizers"] = [pre_tokenizer(rng) for _ in range(rng.randrange(4))]
    return made


def decoder(rng):
    kind = rng.choice(["BPEDecoder", "ByteLevel", "WordPiece", "Metaspace", "CTC", "Sequence", "Sequence", "Replace", "Fuse", "Strip",
                       "ByteFallback"])
    made = {"type": kind}
    if kind == "BPEDecoder":
        made["suffix"] = rng.choice(["</w>", "e", ""])
    elif kind == "ByteLevel":
        made |= {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    elif kind == "WordPiece":
        made |= {"prefix": rng.choice(["##", "", "_"]), "cleanup": boolean(rng)}
    elif kind == "Metaspace":
        made |= {"replacement": SPACE, "prepend_scheme": rng.choice(["always", "first", "never"]), "split": True}
    elif kind == "CTC":
        made |= {"pad_token": rng.choice(["<pad>", "a"]), "word_delimiter_token": rng.choice(["|", SPACE]), "cleanup": boolean(rng)}
    elif kind == "Replace":
        made |= {"pattern": pattern(rng), "content": rng.choice(["", " ", "ab"])}
    elif kind == "Strip":
        made |= {"content": rng.choice([" ", SPACE, "e"]), "start": rng.randrange(3), "stop": rng.randrange(3)}
    elif kind == "Sequence":
        made["decoders"] = [decoder(rng) for _ in range(rng.randrange(5))]
    return made


def post_processor(rng, names):
    kind = rng.choice(["TemplateProcessing", "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"])
    made = {"type": kind}
    if kind == "TemplateProcessing":
        special = {n: {"id": n, "ids": [i, i][:rng.randrange(1, 3)], "tokens": [n, n + "x"]} for i, n in enumerate(names[:3])}
        for entry in special.values():
            entry["tokens"] = entry["tokens"][:len(entry["ids"])]
        single = [{"SpecialToken": {"id": rng.choice(list(special)), "type_id": 0}} for _ in range(rng.randrange(4))]
        single.insert(rng.randrange(len(single) + 1), {"Sequence": {"id": "A", "type_id": 0}})
        made |= {"single": single, "special_tokens": special,
                 "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]}
    elif kind == "ByteLevel":
        made |= {"add_prefix_space": boolean(rng), "trim_offsets": boolean(rng), "use_regex": True}
    elif kind == "Sequence":
        # The reference fails after a template that adds tokens, unless only offsets are trimmed.
        byte_level = {"type": "ByteLevel", "add_prefix_space": boolean(rng), "trim_offsets": True, "use_regex": True}
        adding = [post_processor(rng, names) for _ in range(3)]
        made["processors"] = [byte_level] * rng.randrange(2) + [p for p in adding if p["type"] != "Sequence"][:1]
        made["processors"] += [byte_level] * rng.randrange(3)
    else:
        made |= {"sep": [names[0], 0], "cls": [names[1], 1]}
        if kind == "RobertaProcessing":
            made |= {"trim_offsets": boolean(rng), "add_prefix_space": boolean(rng)}
    return made


def added_tokens(rng, size, vocabulary):
    contents = ["<s>", "</s>", "<mask>", "[MASK]", "<|end|>", "the", " ", "  ", "a b", "\u00C9", "ing", "\n\n", " x", "E\u0301", "A",
                SPACE, "\u4E2D", "...", "1", rng.choice(vocabulary), rng.choice(ALPHABETS[11])]
    made = []
    for content in dict.fromkeys(rng.sample(contents, rng.choice([0, 2, 4, 8]))):
        made.append({"id": size + len(made), "content": content, "single_word": rng.random() < 0.2, "lstrip": rng.random() < 0.3,
                     "rstrip": rng.random() < 0.3, "normalized": boolean(rng), "special": boolean(rng)})
    return made


def told_apart(tokens, normalise):
    """Without tokens that the normaliser makes nothing of, or the same of: the reference's choice is a hash's then."""
    bare = {"version": "1.0", "added_tokens": [], "normalizer": normalise,
            "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""}}
    function = Tokenizer.from_str(json.dumps(bare)).normalizer
    seen, kept = set(), []
    for token in tokens:
        form = token["content"]
        if token["normalized"] and function is not None:
            form = function.normalize_str(form)
        if form and (form, token["normalized"]) not in seen:
            seen.add((form, token["normalized"]))
            kept.append(token)
    return kept


def with_holes(rng, vocabulary):
    """Ids in another order and with holes: what is added is numbered from the count of pieces on all the same."""
    ids = sorted(rng.sample(range(len(vocabulary) * rng.choice([2, 10, 1000])), len(vocabulary)))
    if rng.random() < 0.5:
        rng.shuffle(ids)
    return dict(zip(vocabulary, ids))


# Components that the package accepts without a "type", by their fields.
UNTAGGED = {"BertNormalizer", "Strip", "Sequence", "Replace", "Prepend"}, {"BPEDecoder", "WordPiece", "CTC", "Replace", "Strip"}, \
    {"RobertaProcessing", "BertProcessing", "TemplateProcessing"}


def without_type(rng, part, kinds):
    if part is not None and part["type"] in kinds and rng.random() < 0.3:
        return {key: value for key, value in part.items() if key != "type"}
    return part


def odd_post_processor(rng, names):
    """Templates with the text more often than once or not at all, and several processors that add tokens."""
    def template():
        special = {n: {"id": n, "ids": [i], "tokens": [n]} for i, n in enumerate(names[:3])}
        text = {"Sequence": {"id": "A", "type_id": 0}}
        single = [rng.choice([text, {"SpecialToken": {"id": rng.choice(list(special)), "type_id": 0}}]) for _ in range(rng.randrange(5))]
        return {"type": "TemplateProcessing", "single": single, "special_tokens": special, "pair": [text]}

    if rng.random() < 0.3:
        return template()
    # The reference fails where a template comes after one that made more or less than one part.
    made = [p for p in (post_processor(rng, names) for _ in range(4)) if p["type"] not in ("Sequence", "TemplateProcessing")]
    made.insert(rng.randrange(len(made) + 1), template())
    return {"type": "Sequence", "processors": made}


def oddities(name, made, names):
    """What few files have, drawn from numbers of its own: what else is in a combination stays what it was."""
    rng = random.Random(name + ", oddities")
    if isinstance(made["model"]["vocab"], dict) and rng.random() < 0.3:
        made["model"]["vocab"] = with_holes(rng, made["model"]["vocab"])
    if rng.random() < 0.2:
        made["post_processor"] = odd_post_processor(rng, names)
    if rng.random() < 0.1:
        expression = rng.choice([r"(?<=\ba)\w", r"(?<!\Ba)\w", r"(?<=\s\b.)e\b", r"(?<!\b[aeiou])n"])
        made["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": expression}, "behavior": behavior(rng), "invert": boolean(rng)}
    for part, kinds in zip(("normalizer", "decoder", "post_processor"), UNTAGGED):
        made[part] = without_type(rng, made[part], kinds)
    return made


def combination(name, charsmap):
    rng = random.Random(name)
    model = rng.choice([bpe, bpe, unigram, unigram, word_piece, word_level])(rng)
    vocabulary = [p if isinstance(p, str) else p[0] for p in model["vocab"]]

    def perhaps(make, *arguments):
        return make(*arguments) if rng.random() < 0.75 else None

    normalise = perhaps(normalizer, rng, charsmap)
    made = {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": told_apart(added_tokens(rng, len(vocabulary), vocabulary), normalise),
            "normalizer": normalise, "pre_tokenizer": perhaps(pre_tokenizer, rng),
            "post_processor": perhaps(post_processor, rng, vocabulary), "decoder": perhaps(decoder, rng), "model": model}
    return oddities(name, made, vocabulary)
