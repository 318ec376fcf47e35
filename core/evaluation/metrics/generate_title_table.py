#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes title_table.inc: characters whose title case is several characters, as CPython's str.capitalize has them.

    python3 generate_title_table.py > title_table.inc

Run by hand when the reference moves; the build never runs it. Title case of one character is utf8proc's.
"""
import sys


def main():
    print("// SPDX-License-Identifier: GPL-3.0-or-later")
    print("// Written by generate_title_table.py: do not edit.")
    print("constexpr LongTitle kLongTitles[] = {")
    line = "   "
    for point in range(sys.maxunicode + 1):
        title = chr(point).title()
        if len(title) == 1:
            continue
        item = " {0x%x, U\"%s\"}," % (point, "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in title))
        if len(line) + len(item) > 120:
            print(line)
            line = "   "
        line += item
    print(line)
    print("};")


if __name__ == "__main__":
    main()
