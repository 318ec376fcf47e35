#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes unicode_tables.inc. Run by hand when the reference moves; the build never runs it.

    pip install tokenizers==0.23.3 unicodedata2==16.0.0
    python3 generate_unicode.py > unicode_tables.inc

General categories are Unicode 16's. The reference (the `tokenizers` library) mixes tables of several Unicode versions:
its regex engine knows Unicode 16, its BERT parts Unicode 8 or so, its digits and lower case Unicode 17, its
normalisation forms Unicode 9 to 12. Those sets are asked from the reference itself, code point by code point. The
normalisation forms here come from utf8proc (Unicode 15); what it knows and the reference does not is listed, so that
both normalise alike.
"""
import ctypes
import sys

import unicodedata2
from tokenizers import Regex, normalizers, pre_tokenizers

assert unicodedata2.unidata_version == "16.0.0"
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ALL = "".join(map(chr, POINTS))
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co Cn".split()


def in_regex(expression):
    split = pre_tokenizers.Split(Regex(f"(?:{expression})+"), "removed")
    kept = set()
    for _, (begin, end) in split.pre_tokenize_str(ALL):
        kept.update(range(begin, end))
    return {c for i, c in enumerate(POINTS) if i not in kept}


def in_pre_tokenizer(pre_tokenizer, text="a{}", pieces=2):
    return {c for c in POINTS if len(pre_tokenizer.pre_tokenize_str(text.format(chr(c)))) == pieces}


def removed_by(normalizer):
    return {c for c in POINTS if normalizer.normalize_str("a" + chr(c)) == "a"}


def bert(**options):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**{**off, **options})


def ranges(points):
    result = []
    for c in sorted(points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def emit(comment, kind, name, items):
    print(f"\n// {comment}")
    print(f"constexpr {kind} {name}[] = {{")
    line = "   "
    for item in items:
        if len(line) + len(item) > 117:
            print(line)
            line = "   "
        line += " " + item + ","
    print(line)
    print("};")


def emit_ranges(comment, name, points):
    emit(comment, "CodePointRange", name, [f"{{{a:#x}, {b:#x}}}" for a, b in ranges(points)])


def category_table():
    items, last = [], None
    for c in range(0x110000):
        category = unicodedata2.category(chr(c))
        if category != last:
            items.append(f"{{{c:#x}, {category.lower()}}}")
            last = category
    return items


def lower_table():
    single, longer = [], []
    for c in POINTS:
        lowered = normalizers.Lowercase().normalize_str(chr(c))
        if len(lowered) > 1:
            longer.append((c, lowered))
        elif lowered != chr(c):
            single.append((c, ord(lowered) - c))
    assert longer == [(0x130, "i\u0307")], longer  # to_lower() has this one by hand
    runs = []
    for c, delta in single:
        if runs and runs[-1][3] == delta:
            first, last, step, _ = runs[-1]
            if first == last and c - last <= 2:
                runs[-1] = [first, c, c - last, delta]
                continue
            if first != last and c - last == step:
                runs[-1][1] = c
                continue
        runs.append([c, c, 1, delta])
    return [f"{{{a:#x}, {b:#x}, {s}, {d}}}" for a, b, s, d in runs]


def newer_than_reference():
    library = ctypes.CDLL("libutf8proc.so.2")
    library.utf8proc_unicode_version.restype = ctypes.c_char_p
    result = {}
    for form in ("NFD", "NFKD"):
        ours = getattr(library, "utf8proc_" + form)
        ours.restype, ours.argtypes = ctypes.c_void_p, [ctypes.c_char_p]
        theirs = getattr(normalizers, form)()
        result[form] = {
            c for c in POINTS[1:] if ctypes.string_at(ours(chr(c).encode())).decode() != theirs.normalize_str(chr(c))
        }
    # Combining classes: a mark of another class beside it is reordered by those who know the class.
    ours = library.utf8proc_NFD
    theirs = normalizers.NFD()
    result["class"] = set()
    for c in POINTS[1:]:
        for text in (chr(c) + "\u0334", "\u0345" + chr(c)):
            if c in result["NFD"] or unicodedata2.decomposition(chr(c)):
                continue
            if ctypes.string_at(ours(text.encode())).decode() != theirs.normalize_str(text):
                result["class"].add(c)
    result["version"] = library.utf8proc_unicode_version().decode()
    return result


def main():
    category = {c: unicodedata2.category(chr(c)) for c in POINTS}

    def of(*names):
        return {c for c in POINTS if category[c] in names or category[c][0] in names}

    for name in CATEGORIES + ["L", "M", "N", "P", "S", "Z"]:  # the reference's regexes agree with the table
        if name not in ("Cs", "Cn"):
            assert in_regex(r"\p{%s}" % name) == of(name), name
    space = in_pre_tokenizer(pre_tokenizers.WhitespaceSplit(), "a{}b", 2)
    assert in_regex(r"\s") == space
    assert in_regex(r"\d") == of("Nd")

    print("// SPDX-License-Identifier: GPL-3.0-or-later")
    print("// Written by generate_unicode.py: do not edit.")
    emit("General categories of Unicode 16.0: where each run begins.", "CategoryRun", "category_runs", category_table())
    emit_ranges("White space, everywhere.", "white_space", space)
    emit_ranges("Numeric characters of Digits.", "numeric", in_pre_tokenizer(pre_tokenizers.Digits()))

    base = of("L", "M", "Nd", "Nl", "Pc")
    word = in_pre_tokenizer(pre_tokenizers.Whitespace(), "a{}b", 1)
    assert base <= word
    emit_ranges("\\w of Whitespace and of single_word tokens, beyond L, M, Nd, Nl and Pc.", "word_extra", word - base)
    in_class = in_regex(r"[\w]")
    assert base <= in_class
    emit_ranges("[\\w] of split patterns, beyond L, M, Nd, Nl and Pc.", "pattern_word_extra", in_class - base)
    alone = in_regex(r"\w")
    assert in_class <= alone
    emit_ranges("\\w outside brackets has these too.", "pattern_word_alone", alone - in_class)

    emit_ranges("Punctuation as BertPreTokenizer and Punctuation see it.", "old_punctuation",
                in_pre_tokenizer(pre_tokenizers.Punctuation()))
    emit_ranges("Controls that BertNormalizer's clean_text removes.", "bert_removed", removed_by(bert(clean_text=True)))
    emit_ranges("Marks that BertNormalizer's strip_accents removes.", "bert_marks", removed_by(bert(strip_accents=True)))
    emit_ranges("Marks that StripAccents removes.", "combining_marks", removed_by(normalizers.StripAccents()))
    emit("Lower case: {first, last, step, difference}.", "CaseRun", "lower_runs", lower_table())

    newer = newer_than_reference()
    print(f"\n// Compared with utf8proc's Unicode {newer['version']}.")
    emit_ranges("Canonical decompositions that the reference lacks.", "newer_canonical", newer["NFD"])
    emit_ranges("Compatibility decompositions that the reference lacks.", "newer_compatible", newer["NFKD"])
    emit_ranges("Characters without a combining class in the reference.", "newer_class", newer["class"])


if __name__ == "__main__":
    sys.exit(main())
