#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CPython's random.Random draws (3.8 to 3.12 draw alike): python_random.json.

    python python_random.py

Each method of a seed goes on from where the one before stopped.
"""

import json
import pathlib
import random

SEEDS = (0, 1, 1234, 2**40 + 7)
BITS = (1, 7, 31, 32, 33, 47, 63, 64)
ENDS = (1, 2, 3, 21, 1000, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 + 1)
# (population, size): lists and sets, either side of where sample() goes over from one to the other.
SAMPLES = ((1, 1), (5, 5), (21, 3), (22, 3), (21, 5), (22, 5), (85, 6), (86, 6), (277, 22), (278, 22), (1000, 0), (5153, 7))
CHOICES = ((1, 2), (3, 9), (5153, 11))


def case(seed):
    draw = random.Random(seed)
    return {
        "seed": seed,
        "random": [draw.random() for _ in range(5)],
        "bits": [[count, draw.getrandbits(count)] for count in BITS],
        "below": [[end, draw.randrange(end)] for end in ENDS],
        "sample": [[count, draw.sample(range(count), size)] for count, size in SAMPLES],
        "choices": [[count, draw.choices(range(count), k=size)] for count, size in CHOICES],
        # Past several refills of the generator's 624 words.
        "later": [draw.random() for _ in range(2000)][-1],
    }


def main():
    path = pathlib.Path(__file__).parent / "data/python_random.json"
    path.write_text("[" + ",\n".join(json.dumps(case(seed), separators=(",", ":")) for seed in SEEDS) + "]\n")


if __name__ == "__main__":
    main()
