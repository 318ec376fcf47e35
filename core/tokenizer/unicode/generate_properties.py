#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes property_tables.inc. Run by hand when the reference moves; the build never runs it.

    pip install tokenizers==0.23.3 unicodedata2==16.0.0 regex
    python3 generate_properties.py > property_tables.inc

What \\p{...} and [[:...:]] stand for in split patterns beside general categories: scripts and the POSIX classes, asked
from the reference, whose regex engine knows a newer Unicode than the Oniguruma that we link.
"""
import sys

from regex import _regex_core
from tokenizers import Regex

from generate_unicode import emit, in_regex, ranges

CLASSES = ["alpha", "lower", "punct", "upper"]  # the other POSIX classes do not change, or follow from these
OTHERS = ["Alphabetic", "Uppercase", "Lowercase", "Emoji", "Emoji_Presentation", "Emoji_Modifier_Base",
          "Extended_Pictographic"]


def plain(name):
    return name.lower().replace("_", "").replace(" ", "").replace("-", "")


def known(name):
    try:
        Regex(r"\p{%s}" % name)
        return True
    except Exception:
        return False


def main():
    scripts = {}
    for name, number in _regex_core.PROPERTIES["SCRIPT"][1].items():
        scripts.setdefault(number, set()).add(plain(name))
    groups = [sorted(names) for names in scripts.values()] + [[name] for name in CLASSES] + [[plain(n)] for n in OTHERS]
    spelled = {plain(n): n for n in OTHERS}
    table, names, seen = [], [], {}
    for group in groups:
        group = [n for n in group if known(spelled.get(n, n))]
        if not group:
            continue
        found = tuple(map(tuple, ranges(in_regex(r"\p{%s}" % spelled.get(group[0], group[0])))))
        if not found:
            continue
        if found not in seen:
            seen[found] = len(table)
            table += found
        names += [(n, seen[found], len(found)) for n in group]
    print("// SPDX-License-Identifier: GPL-3.0-or-later")
    print("// Written by generate_properties.py: do not edit.")
    emit("Sets of characters, one after the other.", "CodePointRange", "property_ranges",
         [f"{{{a:#x}, {b:#x}}}" for a, b in table])
    emit("Names of sets, sorted: {name, first range, ranges}.", "PropertyName", "property_names",
         [f'{{"{n}", {first}, {count}}}' for n, first, count in sorted(names)])


if __name__ == "__main__":
    sys.exit(main())
