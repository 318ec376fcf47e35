#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CPython 3.11 (Unicode 14) does to texts: python_text.json.

    python python_text.py

Case is that of every code point: "lower" and "title" have all that change, "sigma" what a capital sigma sees of its
neighbours, in runs {first code point, kind}, "ignore_case" all classes that re.IGNORECASE takes for equal.
"""

import json
import pathlib
import re
import unicodedata

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
WORDS = ("", "a", "ABC def", "ΟΔΟΣ", "ὈΔΥΣΣΕΎΣ ΣΑΣ", "ΑΣ.", "ΑΣ.Β", "Α'Σ'", "Σ", "ΣΣ", "1Σ", "ΑΣ1", "Α\u0301Σ\u0301", "ªΣ", "ΑΣª",
         "ΑΣ\u00adΒ", "ⓐΣ", "ʰΣ", "Α:Σ", "aΣ\u02b0", "ßaß", "ẞẞ", "ŉO", "ǆǅǄ", "ﬁNE", "İSTANBUL", "ıI", "ΐΪ́", "ᾳᾼ", "ა Ა", "Ꭰꭰ",
         "ÉCOLE Émile", "e\u0301E\u0301", "I [TITLE] A", "𐐀𐐨𐐀", "中文 ABC", "😀Ab", " ab", "\tAB", "ⅷⅧ", "Kk\u212a", "ſSs")
PAIRS = (("", ""), ("abc", ""), ("", "a"), ("The ANSWER is", "answer"), ("a.c", "A.C"), ("abc", "a.c"), ("1+1=(2)", "+1=(2"),
         ("straße", "STRASSE"), ("straße", "STRAẞE"), ("\u212aelvin", "kelvin"), ("kelvin", "\u212aELVIN"), ("ſame", "SAME"),
         ("İstanbul", "istanbul"), ("istanbul", "İSTANBUL"), ("i\u0307stanbul", "İSTANBUL"), ("ısı", "ISI"), ("ΟΔΟΣ", "οδος"),
         ("οδος", "ΟΔΟΣ"), ("ﬅ", "ﬆ"), ("ﬁ", "FI"), ("é", "e\u0301"), ("µ", "Μ"), ("ϑ", "Θ"), ("ΐ", "\u1fd3"), ("aXbx", "BX"),
         ("aab", "AB"), ("a\nB", "A\nb"), ("𐐀x", "𐐨X"), ("ა", "Ა"), ("ꭰ", "Ꭰ"), ("ᏸ", "Ᏸ"))


def changed(method):
    """All single characters that a method changes, and what becomes of them."""
    pairs = [(chr(c), method(chr(c))) for c in POINTS if method(chr(c)) != chr(c)]
    single = [(c, made) for c, made in pairs if len(made) == 1]
    return {"from": "".join(c for c, _ in single), "to": "".join(made for _, made in single),
            "longer": [pair for pair in pairs if len(pair[1]) > 1]}


def sigma_kind(c):
    """What a sigma sees: "ignorable" looks further, "cased" is a letter, "other" is none, "unassigned" may become one."""
    if unicodedata.category(c) == "Cn":
        return "unassigned"
    if ("A" + c + "Σ").lower().endswith("ς") and (c + "Σ").lower().endswith("σ"):
        return "ignorable"
    return "cased" if (c + "Σ").lower().endswith("ς") else "other"


def runs():
    found = []
    for c in POINTS:
        kind = sigma_kind(chr(c))
        if not found or found[-1][1] != kind:
            found.append([c, kind])
    return found


def equal_classes():
    """By re itself: for each character with a case all that match it."""
    cased = [c for c in map(chr, POINTS) if c.lower() != c or c.upper() != c or c.title() != c]
    everything, classes = "".join(map(chr, POINTS)), set()
    for c in cased:
        if not any(c in known for known in classes):
            classes.add("".join(re.findall(re.escape(c), everything, re.IGNORECASE)))
    return sorted(one for one in classes if len(one) > 1)


def main():
    assert unicodedata.unidata_version == "14.0.0"
    white = [c for c in POINTS if chr(c).strip() == ""]
    kinds = ["unassigned", "other", "cased", "ignorable"]
    golden = {
        "white": white, "lower": changed(str.lower), "title": changed(str.capitalize),
        "sigma": [[c, kinds.index(kind)] for c, kind in runs()], "ignore_case": equal_classes(),
        "words": [{"text": w, "capitalize": w.capitalize(), "lower": w.lower(), "lower_first": w[:1].lower() + w[1:],
                   "characters": len(w)} for w in WORDS],
        "contains": [[text, part, re.search(re.escape(part), text, re.IGNORECASE) is not None] for text, part in PAIRS],
    }
    path = pathlib.Path(__file__).parent / "data/python_text.json"
    lines = (json.dumps(name) + ":" + json.dumps(value, ensure_ascii=False, separators=(",", ":"))
             for name, value in golden.items())
    path.write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main()
