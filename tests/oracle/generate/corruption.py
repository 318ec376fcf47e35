#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spoilt sequences, written down anew from thesis.md and core/data/batch/corruption.h: corruption.json.

    python corruption.py

Random numbers are SplitMix64 (Steele, Lea and Flood 2014) begun at a hash of two keys, bounded as Lemire (2019) does.
"""

import json
import pathlib

M = 2**64 - 1


def splitmix64(n):
    n = ((n ^ (n >> 30)) * 0xBF58476D1CE4E5B9) & M
    n = ((n ^ (n >> 27)) * 0x94D049BB133111EB) & M
    return n ^ (n >> 31)


class Random:
    def __init__(self, seed, part):
        first = splitmix64((seed + 0x9E3779B97F4A7C15) & M)
        self.state = splitmix64(first ^ ((part * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D) & M))

    def next(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & M
        return splitmix64(self.state)

    def below(self, count):
        while True:
            product = self.next() * count
            if product & M >= (2**64 - count) % count:
                return product >> 64

    def uniform(self):
        return (self.next() >> 11) / 2**53


def permutation(random, count):
    order = list(range(count))
    for i in range(count):
        other = i + random.below(count - i)
        order[i], order[other] = order[other], order[i]
    return order


def spoil(case, random):
    special = set(case["special"])
    words = [i for i, id in enumerate(case["ids"]) if id not in special]
    free = [id for id in range(case["vocabulary"]) if id not in special]
    ids, labels = list(case["ids"]), [-1] * len(case["ids"])
    bits = [list(b) for b in case.get("bits", [])]
    points = list(case.get("points", []))
    if case["kind"] == "masked":
        for i in words:
            if random.uniform() >= case["mask"]:
                continue
            labels[i] = ids[i]
            way = random.uniform()
            if way < 0.8:
                ids[i] = case["special"][3]
            elif way < 0.9:
                ids[i] = free[random.below(len(free))]
        return {"ids": ids, "labels": labels}
    order = permutation(random, len(words))
    for k, i in enumerate(words):
        if random.uniform() < case["shuffle"]:
            source, labels[i] = words[order[k]], 1
            ids[i] = case["ids"][source]
            if bits:
                bits[i] = list(case["bits"][source])
            if points:
                points[i] = case["points"][source]
        elif random.uniform() < case["random"]:
            labels[i] = 2
            if points:
                points[i] = case["points"][words[random.below(len(words))]]
            elif bits:
                bits[i] = [random.next() >> 63 for _ in bits[i]]
            else:
                ids[i] = free[random.below(len(free))]
        else:
            labels[i] = 0
    return {"ids": ids, "labels": labels, "bits": bits, "points": points}


def cases():
    # special: first, last, padding, mask, others.
    scattered = {"special": [3, 9, 0, 11, 5], "vocabulary": 12, "ids": [3, 1, 2, 4, 6, 7, 8, 10, 5, 1, 2, 9, 0, 0]}
    hashed = {"special": [0, 2, 1, 4, 3], "vocabulary": 6, "ids": [0] + 9 * [5] + [2, 1]}
    bits = [[(i * 7 + b * b) % 3 % 2 for b in range(5)] for i in range(12)]
    points = [0] + [ord(c) for c in "a\u00e9\u4e00\U0001f600 bcb"] + [0, 0]
    rows = {"special": [0, 2, 1, 4, 3], "vocabulary": 30, "ids": [0, 5, 29, 6, 6, 17, 5, 28, 2, 1, 1, 1]}
    often, seldom = {"shuffle": 0.5, "random": 0.5}, {"shuffle": 0.1, "random": 0.1}
    yield {"kind": "masked", "mask": 0.5, **scattered}
    yield {"kind": "masked", "mask": 1.0, **scattered}
    yield {"kind": "masked", "mask": 0.15, **rows}
    for shares in (often, seldom, {"shuffle": 1.0, "random": 0.0}, {"shuffle": 0.0, "random": 1.0}):
        yield {"kind": "shuffle_random", **shares, **scattered}
        yield {"kind": "shuffle_random", **shares, **rows}
        yield {"kind": "shuffle_random", **shares, **hashed, "bits": bits}
        yield {"kind": "shuffle_random", **shares, **hashed, "points": points}
    # Nothing to draw.
    yield {"kind": "shuffle_random", **often, **scattered, "ids": [3, 9, 0]}
    yield {"kind": "masked", "mask": 0.5, **scattered, "ids": []}


def main():
    out = []
    for case in cases():
        for seed, index in ((0, 0), (7, 2**40 + 3)):
            out.append({**case, "seed": seed, "index": index, "spoilt": spoil(case, Random(seed, index))})
    path = pathlib.Path(__file__).parent / "data/corruption.json"
    path.write_text("[" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in out) + "]\n")


if __name__ == "__main__":
    main()
