# SPDX-License-Identifier: GPL-3.0-or-later
"""Seeds of make_seeds.py for training: texts, Debian's packed Bible, and journals of runs."""
import struct


def lzw(text, most_bits=16):
    """What compress writes behind its three first bytes."""
    table = {bytes([i]): i for i in range(256)}
    bits, width, free, out, group = 0, 9, 257, bytearray(), 0
    waiting = count = 0

    def put(code):
        nonlocal waiting, count
        waiting |= code << count
        count += width
        while count >= 8:
            out.append(waiting & 255)
            waiting >>= 8
            count -= 8

    word = b""
    for c in text:
        longer = word + bytes([c])
        if longer in table:
            word = longer
            continue
        put(table[word])
        if free < 1 << most_bits:
            table[longer] = free
            free += 1
        if free > 1 << width and width < most_bits:
            # The decoder is one entry behind, and passes over the rest of eight codes.
            if count:
                out.append(waiting & 255)
                waiting = count = 0
            while (len(out) - group) % width:
                out.append(0)
            group = len(out)
            width += 1
        word = bytes([c])
    if word:
        put(table[word])
    if count:
        out.append(waiting & 255)
    return bytes(out)


def training_text():
    """The first line says what the rest is (targets/training_text.cpp)."""
    verses = "Title\n" + "".join(f"Ge{c}:{v} And it was so.\n" for c in range(1, 4) for v in range(1, 9)) + "1Sm1:1 x\n"

    def bible(text, windows=1, magic=b"\x1f\x9d\x90"):
        parts = [lzw(text.encode()[i::windows]) for i in range(windows)]
        first = 92 + 4 * (windows + 1) + 3
        places = [first + sum(map(len, parts[:i])) for i in range(windows + 1)]
        head = b"EC02Compressed Data File".ljust(84, b"\0") + struct.pack(">II", 65536, windows)
        return b"bible\n" + head + struct.pack(f">{windows + 1}I", *places) + magic + b"".join(parts)

    lines = ['{"text": "one"}', '{"id": 3, "text": "t\\u00e9\\n", "more": [1, {"text": 2}]}', "", '{"text":""}']
    return {
        "text": "text\nIn the beginning\n\u6771\u4eac \U0001f642", "mark": "text\n\ufeffmarked", "empty": "text\n",
        "broken": b"text\nabc\xff", "cut": "text\n\u6771".encode()[:-1],
        "lines": "lines\n" + "\n".join(lines), "windows": "lines\n" + "\r\n".join(lines) + "\r\n",
        "marked-lines": "lines\n\ufeff" + lines[0], "no-text": 'lines\n{"txt": "a"}', "twice": 'lines\n{"text":"a","text":"b"}',
        "array": "lines\n[1]", "null": 'lines\n{"text": null}', "half": 'lines\n{"text": "\\ud800"}',
        "translation": 'translation\n{"source": "a", "target": "b"}\n{"target": "", "source": "\u00e9", "id": [1]}\n',
        "classify": 'classify\n{"text": "a", "pair": "b", "label": 1}\n{"sentence1": "a", "sentence2": "b", "label": 0}\n',
        "labels": 'classify\n{"text": "a", "label": -1}\n', "label": 'classify\n{"sentence": "a", "label": "yes"}\n',
        "bible": bible(verses), "no-verse": bible("Title\nnothing\n"), "two-windows": bible(verses, 2),
        "other-packing": bible(verses, 1, b"\x1f\x8b\x90"),
        "lzw": b"1234567\n" + lzw(b"abababababab" * 90), "lzw-narrow": b"\n" + lzw(b"abcabcabc" * 200, 9),
        "lzw-clear": b"1234567\n" + lzw(b"abc") + b"\x00" * 12,
    }


def journal():
    def text(value):
        return struct.pack("<I", len(value)) + value

    def payload(*parts):
        return struct.pack("<d", 1.75e9) + b"".join(parts)

    def piece(kind, body):
        return struct.pack("<BH", kind, len(body)) + body

    site = struct.pack("<i", 0) + text(b"text") + text(b"self") + text(b"") + struct.pack("<iiii??", 2, 2, 8, 8, True, True)
    site += text(b"tokens") * 2
    started = payload(struct.pack("<q", 0), text(b"name = 1"), text(b"0.1.0"), text(b"headscope"), text(b"{}"),
                      struct.pack("<qI", 1000, 1), text(b"standard"), struct.pack("<I", 1), site,
                      struct.pack("<qq", 2, 1), text(b"cpu"), text(b"hash"), struct.pack("<q", 100))

    def step(n):
        return payload(struct.pack("<qqdddddd", n, 64 * n, 5.0 / n, 1e-3, 1.0, 1e4, 0.1 * n, 1e8))

    def probe(n):
        values = [struct.pack("<I", 3)]
        for name, count in ((b"entropy", 2), (b"head_diversity", 1), (b"local_focus", 8)):
            values += [text(name), struct.pack(f"<I{count}d", count, *[0.5 * n] * count)]
        return payload(struct.pack("<qd", n, 0.1), *values, struct.pack("<qI8e", 2, 8, *[0.25] * 8))

    kinds = {
        "started": piece(1, started), "step": piece(2, step(1)),
        "validation": piece(3, payload(struct.pack("<qdqd", 1, 5.0, 100, 0.1))),
        "snapshot": piece(5, payload(struct.pack("<q", 2), text(b"step-000002"), struct.pack("<Qd?", 9, 0.1, True))),
        "control": piece(6, payload(struct.pack("<q", 2), text(b"pause"), text(b""), text(b"paused"))),
        "sample": piece(7, payload(struct.pack("<q", 2), text(b"In"), text(b" the"))),
        "log": piece(8, payload(struct.pack("<Bq", 1, 2), text(b"a spike"))),
        "state": piece(9, payload(struct.pack("<Bq", 4, 2), text(b"bad"))),
        "rewound": piece(10, payload(struct.pack("<q", 1), text(b"resumed"))), "newer": piece(99, b"what is to come"),
        "torn": piece(2, step(3)[:20]),
    }
    learning = b"".join(piece(2, step(n)) for n in (1, 2, 3)) + piece(4, probe(2)) + piece(4, probe(3))
    seeds = {name: b"f" + kinds["started"] + one for name, one in kinds.items()}
    seeds["probe"] = b"f" + kinds["started"] + learning
    seeds["resumed"] = b"w" + kinds["started"] + learning + kinds["rewound"] + learning + kinds["started"]
    seeds["damaged"] = b"f" + piece(2, step(1)) + piece(240, bytes(40)) + piece(2, step(2)) + piece(241, b"HVN\xff" + bytes(9))
    seeds["all"] = b"w" + b"".join(kinds.values())
    seeds["header"] = b"jHSEVENTS\1\0\0\0\0\0\0\0"
    seeds["empty"] = b"j"
    seeds["other"] = b"jsome other file, longer than a header"
    return seeds
