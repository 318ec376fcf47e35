#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes grids.inc: the code books of GGUF's IQ types, from the package gguf 0.19.0.

    python3 generate_grids.py > grids.inc

An entry of a grid is 16 bits: eight fields of 2 bits or four of 4 bits, lowest first, each an index into the levels.
"""
import importlib.metadata

from gguf import quants

VERSION = "0.19.0"
GRIDS = [("Iq2Xxs", quants.IQ2_XXS), ("Iq2Xs", quants.IQ2_XS), ("Iq2S", quants.IQ2_S), ("Iq3Xxs", quants.IQ3_XXS),
         ("Iq3S", quants.IQ3_S), ("Iq1", quants.IQ1_S)]


def rows(numbers, digits, per_line):
    for i in range(0, len(numbers), per_line):
        print("    " + ", ".join(f"0x{number:0{digits}x}" for number in numbers[i:i + per_line]) + ",")


def main():
    assert importlib.metadata.version("gguf") == VERSION
    print("// SPDX-License-Identifier: GPL-3.0-or-later")
    print(f"// Written by generate_grids.py from the package gguf {VERSION}.")
    print("// clang-format off")
    for name, quant in GRIDS:
        entries, size = quant.grid_shape
        data = bytes.fromhex(quant.grid_hex.decode())
        assert len(data) == 2 * entries and size in (4, 8)
        words = [data[2 * i] | data[2 * i + 1] << 8 for i in range(entries)]
        levels = ", ".join(str(int(level)) for level in quant.grid_map)
        print(f"\ninline constexpr std::array<std::int8_t, {len(quant.grid_map)}> k{name}Levels = {{{levels}}};")
        print(f"inline constexpr std::array<std::uint16_t, {entries}> k{name}Grid = {{")
        rows(words, 4, 14)
        print("};")
    print("\ninline constexpr std::array<std::uint8_t, 128> kSigns = {")
    rows(list(quants.IQ2_XXS.ksigns), 2, 16)
    print("};")
    print("// clang-format on")


if __name__ == "__main__":
    main()
