#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hundreds of hostile and broken inputs, each given to the built program in a process of its own.

    hostile_inputs.py build/release/bin/headscope resources/samples/llama-kjv-shakespeare [--quick] [--only weights ...]

Each must end within 20 s (refusals of ordinary sizes within 2) and 600 MB, with status 1 and exactly one line that
blames the right thing, or with status 0 where the input may be accepted; nothing may be left or touched. Exit 0 only
if all do. Needs h5py and numpy (tests/oracle/make_venv.sh) for the analysis files, else nothing.
"""

import argparse
import sys
import time
from pathlib import Path

import archives
import configs
import families
import harness
import hashes
import places
import texts
import training
import weights


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("sample", type=Path)
    parser.add_argument("--quick", action="store_true", help="a part of them, in a minute")
    parser.add_argument("--only", nargs="*", default=[
        "weights", "archives", "configs", "families", "hashes", "places", "texts", "training", "analyses"])
    options = parser.parse_args()
    harness.limit_core_dumps()
    groups = {"weights": weights, "archives": archives, "configs": configs, "families": families, "hashes": hashes,
              "places": places, "texts": texts, "training": training}
    if "analyses" in options.only:
        import analyses  # the one that needs h5py
        groups["analyses"] = analyses
    good = True
    for name in options.only:
        judge = harness.Judge(options.program)
        start = time.monotonic()
        groups[name].run(judge, options.sample.resolve(), options.quick)
        good = judge.summary(f"{name} ({time.monotonic() - start:.0f} s)") and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
