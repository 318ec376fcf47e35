# SPDX-License-Identifier: GPL-3.0-or-later
"""Tokenizing beside the PyPI package `tokenizers`: user CPU time on one thread, ours / theirs, in one run.

    python tokenizer_ratio.py BENCH_TOKENIZER TOKENIZER.json... [--text FILE] [--kinds a,b] [--megabytes 4]
                              [--repeat 3] [--check]
    python tokenizer_ratio.py BENCH_TOKENIZER TOKENIZER.json... --growth 20 [--kinds a,b] [--check]

Every kind of text is encoded and decoded by both, ids are compared, and the best of --repeat runs counts. Kinds are
long texts of one sort (words, no-space, letter, cjk, emoji, marks, unicode, spaces, lines, digits, code, special) and
`short`: 100 000 texts of 5 to 50 bytes. --growth N measures the program alone, on a quarter of N MB and on N MB: time
a byte may grow by half at most, and memory must stay below 75 bytes a byte. --check: exit status 1 if something is off.
Wants: numpy, tokenizers (tests/oracle/requirements.txt), an idle machine.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import numpy as np
from tokenizers import Tokenizer

LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
CODE = """def merge(self, left: int, right: int = 0x1F) -> list[int]:
    for i, (a, b) in enumerate(zip(self.items[left:], self.items[right:])):
        if a.rank < b.rank and not (a.name == "x\\t%d" % i):\t# comment
            return [x ** 2 for x in range(10, 2_000, 3)]

"""
BYTES_A_BYTE = 75   # 20 MB stay below 1.5 GB
GROWTH = 1.5        # n log n and the caches' share


def prose(bytes_wanted, source):
    if source:
        text = Path(source).read_bytes().decode()
    else:
        rng = random.Random(3)
        words = ["".join(rng.choices(LETTERS, weights=range(26, 0, -1), k=rng.randrange(1, 11))) for _ in range(20000)]
        weights = [1 / (i + 1) for i in range(len(words))]
        marks = [" "] * 20 + [", ", ". ", "; ", ".\n", "? ", "'s ", " 12 ", " (", ") ", '"', "\n\n"]
        text = "".join(w + m for w, m in zip(rng.choices(words, weights, k=400000), rng.choices(marks, k=400000)))
    return text * (bytes_wanted // len(text) + 1)


def from_ranges(count, ranges, seed=5):
    rng = np.random.default_rng(seed)
    which = rng.integers(0, len(ranges), count)
    low = np.array([a for a, _ in ranges])[which]
    high = np.array([b for _, b in ranges])[which]
    points = low + (rng.random(count) * (high - low)).astype(np.int64)
    return points.astype("<u4").tobytes().decode("utf-32-le")


def texts_of(kind, size, source, tokenizer):
    """About `size` bytes."""
    rng = random.Random(7)
    if kind == "words":
        return prose(size, source)
    if kind == "no-space":
        return "".join(rng.choices(LETTERS, weights=range(26, 0, -1), k=size))
    if kind == "letter":
        return "a" * size
    if kind == "cjk":
        return from_ranges(size // 3, [(0x4E00, 0x6000), (0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A0)])
    if kind == "emoji":
        return from_ranges(size // 4, [(0x1F300, 0x1F650), (0x1F900, 0x1FA00), (0x1F3FB, 0x1F400)])
    if kind == "marks":
        return "e" + from_ranges(size // 2, [(0x300, 0x370), (0x300, 0x334)])
    if kind == "unicode":
        return from_ranges(size // 3, [(1, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)])
    if kind == "spaces":
        return " " * size
    if kind == "lines":
        return "".join(rng.choices([" ", "  ", "\n", "\t", "\r\n", "\u3000"], k=size // 2))
    if kind == "digits":
        return "".join(rng.choices("0123456789", k=size))
    if kind == "code":
        return CODE * (size // len(CODE))
    if kind == "special":
        names = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        words = prose(size, source)[:size].split(" ")
        return " ".join(word if i % 8 else rng.choice(names or ["<s>"]) for i, word in enumerate(words))
    if kind == "short":
        lines, at, text = [], 0, prose(4_000_000, source).replace("\n", " ")
        while len(lines) < 100_000:
            length = rng.randrange(5, 51)
            lines.append(text[at:at + length])
            at = (at + length) % (len(text) - 60)
        return "\n".join(lines)
    raise SystemExit(f"no kind {kind}")


KINDS = "words,no-space,letter,cjk,emoji,marks,unicode,spaces,lines,digits,code,special,short".split(",")


def ours(program, tokenizer, path, lines, repeat):
    command = [program, str(tokenizer), str(path), "--repeat", str(repeat)] + (["--lines"] if lines else [])
    # A shell in between: Linux counts the memory of the process that starts a program into that program's peak.
    done = subprocess.run(["/bin/sh", "-c", '"$0" "$@"; exit $?', *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr.strip()}")
    return json.loads(done.stdout)


def seconds_of(work, repeat):
    best = float("inf")
    for _ in range(repeat):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        result = work()
        best = min(best, resource.getrusage(resource.RUSAGE_SELF).ru_utime - before)
    return best, result


def digest(lists):
    ids = np.concatenate([np.asarray(ids, dtype=np.uint64) for ids in lists])
    places = np.arange(1, len(ids) + 1, dtype=np.uint64) % np.uint64(1_000_003)
    return int(((ids + np.uint64(1)) * places).sum(dtype=np.uint64)), len(ids)


def compare(program, path, tokenizer, kind, text, folder, repeat):
    """Ratios (encode, decode) of one kind of text; prints a row."""
    file = folder / "text"
    file.write_bytes(text.encode())
    texts = text.split("\n") if kind == "short" else [text]
    mine = ours(program, path, file, kind == "short", repeat)
    encode, encodings = seconds_of(lambda: tokenizer.encode_batch(texts), repeat)
    lists = [encoding.ids for encoding in encodings]
    del encodings
    decode, _ = seconds_of(lambda: [tokenizer.decode(ids, skip_special_tokens=False) for ids in lists], repeat)
    same = digest(lists) == (mine["digest"], mine["tokens"])
    ratios = min(mine["encode"]) / max(encode, 1e-6), min(mine["decode"]) / max(decode, 1e-6)
    print(f"  {kind:10}{len(text.encode()) / 1e6:7.2f} MB {mine['tokens']:9d} tokens   encode {min(mine['encode']):7.3f} s"
          f" /{encode:7.3f} s = {ratios[0]:5.2f}   decode {min(mine['decode']):7.3f} s /{decode:7.3f} s = {ratios[1]:5.2f}"
          f"{'' if same else '   IDS DIFFER'}", flush=True)
    return max(ratios) <= 1 and same


def growth(program, path, tokenizer, kind, arguments, folder):
    file = folder / "text"
    results = []
    text = texts_of(kind, int(arguments.growth * 1e6), arguments.text, tokenizer)
    for share in (4, 1):
        file.write_bytes(text[:len(text) // share].encode())
        result = ours(program, path, file, False, 1)
        results.append([result["encode"][0], result["decode"][0], (result["peak"] - result["loaded"]), result["bytes"]])
    small, large = results
    factor = large[3] / small[3]
    grown = [large[i] / max(small[i], 0.05 / factor) / factor for i in (0, 1)]
    memory = large[2] / large[3]
    good = max(grown) <= GROWTH and memory <= BYTES_A_BYTE
    print(f"  {kind:10}{large[3] / 1e6:7.2f} MB   encode {large[0]:7.3f} s, a byte x{grown[0]:5.2f}   decode {large[1]:7.3f} s,"
          f" a byte x{grown[1]:5.2f}   {memory:5.1f} bytes of memory a byte{'' if good else '   OFF'}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("tokenizers", nargs="+")
    parser.add_argument("--text", help="prose for words, special and short")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--megabytes", type=float, default=4)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--growth", type=float, default=0, metavar="MB")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for path in arguments.tokenizers:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            document["truncation"] = document["padding"] = None  # which the program ignores
            plain = folder / "tokenizer.json"
            plain.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
            load, tokenizer = seconds_of(lambda: Tokenizer.from_file(str(plain)), arguments.repeat)
            print(Path(path).name, flush=True)
            if not arguments.growth:
                (folder / "text").write_text("a")
                mine = min(ours(arguments.program, plain, folder / "text", False, arguments.repeat)["load"])
                print(f"  load {mine:7.3f} s /{load:7.3f} s = {mine / load:5.2f}")
                good = good and mine <= load
            for kind in arguments.kinds.split(","):
                if arguments.growth:
                    good = growth(arguments.program, plain, tokenizer, kind, arguments, folder) and good
                    continue
                text = texts_of(kind, int(arguments.megabytes * 1e6), arguments.text, tokenizer)
                good = compare(arguments.program, plain, tokenizer, kind, text, folder, arguments.repeat) and good
    return 1 if arguments.check and not good else 0


if __name__ == "__main__":
    sys.exit(main())
