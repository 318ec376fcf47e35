#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records what the `tokenizers` library (0.23) makes of the corpus of the target tokenizer_text: ids, byte offsets and
the decoded text, in tests/fuzz/recorded_tokenizers.json. The target compares its own with it whenever it meets such a
text. Run it when the corpus or a tokenizer of tests/oracle/generate/data/tokenizer changed.

    pip install tokenizers==0.23.3
    python3 tests/fuzz/record_tokenizers.py
"""
import json
from pathlib import Path

from tokenizers import Tokenizer

HERE = Path(__file__).resolve().parent


def byte_offsets(text, offsets):
    places = [0]
    for c in text:
        places.append(places[-1] + len(c.encode()))
    return [places[i] for pair in offsets for i in pair]


def main():
    names = (HERE / "tokenizers.txt").read_text().split()
    loaded = {name: Tokenizer.from_file(str(HERE.parent / "oracle" / "generate" / "data" / "tokenizer" / f"{name}.json")) for name in names}
    records = {}
    for folder in ("corpus", "regressions"):
        for path in sorted((HERE / folder / "tokenizer_text").glob("*")):
            content = path.read_bytes()
            number = content[0] % (len(names) + 1) if content else len(names)
            if number == len(names):
                continue  # plain bytes, which the library does not know
            text = content[1:].decode("utf-8", "replace")
            encoding = loaded[names[number]].encode(text)
            records[names[number], text] = {
                "tokenizer": names[number], "text": text, "ids": encoding.ids,
                "offsets": byte_offsets(text, encoding.offsets),
                "decoded": loaded[names[number]].decode(encoding.ids, skip_special_tokens=False)}
    lines = ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in records.values())
    (HERE / "recorded_tokenizers.json").write_text(f"[{lines}]\n")
    print(f"{len(records)} encodings")


if __name__ == "__main__":
    main()
