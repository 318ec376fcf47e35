#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes segment_tables.inc. Run by hand when the reference moves; the build never runs it.

    pip install tokenizers==0.23.3 regex
    python3 generate_segments.py > segment_tables.inc

Scripts as UnicodeScripts sees them, and the classes of characters that bound grapheme clusters, which Precompiled
rewrites as a whole. The reference (the `tokenizers` library) is asked code point by code point for whatever shows in
its results; `regex` (a newer Unicode) tells apart what does not.
"""
import base64
import json
import struct
import sys

import regex
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


class DoubleArray:
    """Rules {bytes: string} as sentencepiece stores them: units of a darts-clone trie, then the texts, each ended by
    NUL. One block of 256 units a node: large, but made in no time."""

    def __init__(self, rules):
        self.texts = b""
        self.places = {}
        self.units = [0] * 512  # the root's children, then free ones
        root = {}
        for key, text in rules.items():
            node = root
            for byte in key:
                node = node.setdefault(byte, {})
            node[-1] = self.place(text)
        self.blocks = {}
        self.put(0, root, first=True)

    def place(self, text):
        if text not in self.places:
            self.places[text] = len(self.texts)
            self.texts += text.encode() + b"\0"
        return self.places[text]

    def block(self):
        self.units += [0x1FF] * 256  # a label that no byte has
        return len(self.units) - 256

    def put(self, position, node, first=False):
        """Gives the unit at `position` its children."""
        value = node.get(-1)
        labels = sorted(label for label in node if label >= 0)
        if not labels:  # a leaf: one block for all leaves of a value
            if value not in self.blocks:
                self.blocks[value] = base = self.block()
                self.units[base:base + 256] = [value | 1 << 31] * 256
            base = self.blocks[value] | position & 0xFF
        else:
            base = self.block() | position & 0xFF
            if value is not None:
                self.units[base] = value | 1 << 31
        offset = position ^ base
        assert offset % 256 == 0 and offset >> 8 < 1 << 21
        label = self.units[position] & 0xFF
        self.units[position] = (offset >> 8) << 10 | 1 << 9 | (value is not None) << 8 | (0 if first else label)
        for label in labels:
            self.units[base ^ label] = label
        for label in labels:
            self.put(base ^ label, node[label])

    def charsmap(self):
        trie = struct.pack(f"<{len(self.units)}I", *self.units)
        return struct.pack("<I", len(trie)) + trie + self.texts


def precompiled(rules):
    blob = base64.b64encode(DoubleArray({k.encode(): v for k, v in rules.items()}).charsmap()).decode()
    tokenizer = Tokenizer.from_str(json.dumps({
        "version": "1.0", "added_tokens": [], "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""},
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": blob}}))
    return tokenizer.normalizer.normalize_str


def gcb(value):
    pattern = regex.compile(r"\p{GCB=%s}" % value)
    return {c for c in POINTS if pattern.match(chr(c))}


def property_of(name):
    pattern = regex.compile(r"\p{%s}" % name)
    return {c for c in POINTS if pattern.match(chr(c))}


def lines(normalise, text_of):
    """What becomes of one short text for every code point; line ends keep clusters apart."""
    skip = {0x0A, 0x0D}
    result = {}
    for first in range(0, len(POINTS), 50_000):
        part = [c for c in POINTS[first:first + 50_000] if c not in skip]
        out = normalise("\n".join(text_of(chr(c)) for c in part)).split("\n")
        assert len(out) == len(part)
        result.update(zip(part, out))
    return result


def break_classes():
    """Class of a code point -> the code points. What shows only in clusters of 6 bytes and more never matters: the
    reference takes those apart again."""
    # "a" becomes X, and with it whatever else its cluster holds.
    joins = {c for c, out in lines(precompiled({"a": "X"}), lambda c: "a" + c).items() if out == "X" and c != ord("a")}
    every = precompiled({chr(c): "X" for c in POINTS if c not in (0, 0x0A, 0x0D, 0x301)})
    prepend = {c for c, out in lines(every, lambda c: c + "a").items() if out == "X"}
    marked = {c for c, out in lines(every, lambda c: c + "\u0301").items() if out == "X"}
    control = gcb("Control") - {0x0A, 0x0D, 0}
    assert all((c in control) == (c not in marked) for c in POINTS if 0x0D < c < 0x10000 and c != 0x301)
    # A cluster above 5 bytes goes character by character: its joiner survives.
    copyright_sign = precompiled({"\u00A9": "X"})
    pictograph = {c for c, out in lines(copyright_sign, lambda c: "\u00A9\u200D" + c).items()
                  if out == "X\u200D" + chr(c)}
    pictograph = pictograph - joins | {0xA9}
    # Consonants of Devanagari and similar scripts join over a virama (rule GB9c).
    second = precompiled({"\u0958": "X"})
    linker = {c for c, out in lines(second, lambda c: "\u0915" + c + "\u0958\u0301").items() if out.endswith("X\u0301")}
    between = {c for c, out in lines(second, lambda c: "\u0915" + c + "\u094D\u0958\u0301").items()
               if out.endswith("X\u0301")}
    consonant = {c for c, out in lines(second, lambda c: c + "\u094D\u0958\u0301").items() if out.endswith("X\u0301")}
    consonant -= joins
    spacing = gcb("SpacingMark")
    assert joins <= gcb("Extend") | spacing | {0x200D} and prepend <= gcb("Prepend")
    return {
        "control": control | {0}, "prepend": prepend, "spacing": joins & spacing,
        "regional": gcb("Regional_Indicator"), "pictograph": pictograph,
        "leading": gcb("L"), "vowel": gcb("V"), "trailing": gcb("T"), "consonant": consonant,
        "linker": linker & joins, "extend": (joins & between) - spacing - linker - {0x200D},
        "extend_apart": joins - between - spacing - linker - {0x200D},
    }


def scripts():
    """Scripts by number, as far as splits distinguish them; 0 goes with every script. [(first, last, number)]"""
    split = pre_tokenizers.UnicodeScripts().pre_tokenize_str

    def pieces(text):
        return len(split(text))

    latin, cyrillic = "A", "\u0416"
    anything = {c for c in POINTS if pieces(latin + chr(c) + latin) == 1 == pieces(cyrillic + chr(c) + cyrillic)}
    members, numbers, representatives = [], {}, []
    for c in POINTS:
        if c in anything:
            numbers[c] = 0
            continue
        # Mostly the script of the last one.
        tries = ([numbers[c - 1]] if numbers.get(c - 1) else []) + list(range(1, len(representatives) + 1))
        numbers[c] = next((n for n in tries if pieces(representatives[n - 1] + chr(c)) == 1), len(representatives) + 1)
        if numbers[c] > len(representatives):
            representatives.append(chr(c))
    for c in POINTS:
        if members and members[-1][1] == c - 1 and members[-1][2] == numbers[c]:
            members[-1][1] = c
        else:
            members.append([c, c, numbers[c]])
    assert len(representatives) < 256
    return [m for m in members if m[2] != 0]


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


def runs(classes):
    """(first, last, class), by code point."""
    kind = {c: name for name, points in classes.items() for c in points}
    assert len(kind) == sum(map(len, classes.values())), "classes overlap"
    result = []
    for c in sorted(kind):
        if result and result[-1][1] == c - 1 and result[-1][2] == kind[c]:
            result[-1][1] = c
        else:
            result.append([c, c, kind[c]])
    return result


def main():
    print("// SPDX-License-Identifier: GPL-3.0-or-later")
    print("// Written by generate_segments.py: do not edit.")
    emit("What bounds grapheme clusters, in Unicode 16: {first, last, class}.", "BreakRun", "break_runs",
         [f"{{{a:#x}, {b:#x}, {kind}}}" for a, b, kind in runs(break_classes())])
    emit("Scripts, by numbers of our own: {first, last, script}.", "ScriptRun", "script_runs",
         [f"{{{a:#x}, {b:#x}, {n}}}" for a, b, n in scripts()])


if __name__ == "__main__":
    sys.exit(main())
