# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that make_seeds.py reads and writes, and JSON as its seeds spell it."""
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
ORACLE = HERE.parent / "oracle"
GOLDEN = ORACLE / "generate" / "data"


def text_of(document):
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
