#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""The `tokenizers` package's BpeTrainer, byte-level as GPT-2, against ours.

    python3 tests/oracle/generate/bpe_trainer.py                                  writes bpe_trainer.json, for the fast tests
    python3 tests/oracle/generate/bpe_trainer.py --check build/release/bin/tokenizer_lines [--cases 300] [--seed N]
                                                                         compares live, on random texts and settings
"""
import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HERE = Path(__file__).resolve().parent


def train(texts, vocab_size, min_frequency, special_tokens, all_bytes):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=special_tokens, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()) if all_bytes else [])
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    pieces = [piece for piece, _ in sorted(model["vocab"].items(), key=lambda item: item[1])]
    merges = [m.split(" ") if isinstance(m, str) else m for m in model["merges"]]
    return tokenizer, pieces, merges


def golden_cases():
    lantern = (HERE.parents[2] / "resources/texts/lantern.txt").read_text()
    return [
        {"texts": [lantern], "vocab_size": 500, "min_frequency": 0, "special_tokens": ["<|endoftext|>"],
         "all_bytes": True},
        # Ties everywhere, pieces that come about in two ways, repeated letters.
        {"texts": ["aaaa aaaaa aaabaaab abcabc bcabca cabcab", "ab abc bc abcd bcd aabb bbaa abab baba"],
         "vocab_size": 400, "min_frequency": 0, "special_tokens": [], "all_bytes": False},
        {"texts": ["low lower lowest new newer newest wide wider widest " * 3], "vocab_size": 60, "min_frequency": 4,
         "special_tokens": ["<s>", "</s>", "<s>", "er"], "all_bytes": False},
        {"texts": ["naïve café Łódź 東京 🙂🙂 don't we'll I'm  two  spaces\n\n\tlines\r\n", "été été 東 東京都"],
         "vocab_size": 330, "min_frequency": 2, "special_tokens": ["<|endoftext|>"], "all_bytes": True},
    ]


def write_golden():
    cases = []
    for case in golden_cases():
        _, pieces, merges = train(**case)
        cases.append({**case, "pieces": pieces, "merges": merges})
        assert merges
    (HERE / "data/bpe_trainer.json").write_text(json.dumps(cases, ensure_ascii=True, indent=0) + "\n")


def random_text(rng):
    alphabet = rng.choice(["ab", "abc", "abcdefgh", "aAbB é", "01 ,.'st", "東京都市 ", "\n\t \r ab", "🙂é́a "])
    words = ["".join(rng.choice(alphabet) for _ in range(rng.randint(1, rng.choice([3, 8, 30]))))
             for _ in range(rng.randint(1, 12))]
    return rng.choice([" ", "  ", "\n", "", ". "]).join(rng.choice(words) for _ in range(rng.randint(0, 60)))


def random_case(rng):
    return {"texts": [random_text(rng) for _ in range(rng.randint(0, 5))],
            "vocab_size": rng.choice([0, 10, 40, 256, 257, 300, 1000]),
            "min_frequency": rng.choice([0, 0, 1, 2, 3, 10]),
            "special_tokens": rng.choice([[], ["<|endoftext|>"], ["a", "ab"], ["<s>", "<s>", "Ġa"]]),
            "all_bytes": rng.random() < 0.5}


def check(program, count, seed):
    rng = random.Random(seed)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    cases = [random_case(rng) for _ in range(count)] + golden_cases()
    wrong = merged = 0
    for number, case in enumerate(cases):
        tokenizer, pieces, merges = train(**case)
        request = {("train" if key == "texts" else key): value for key, value in case.items()}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        merged += len(merges)
        if answer.get("pieces") != pieces or answer.get("merges") != merges:
            wrong += 1
            print(f"case {number}: {json.dumps(case)}\n  expected {merges}\n  found {answer.get('merges', answer)}")
            continue
        # The package opens our file, which tokenizes alike.
        ours = Tokenizer.from_str(answer["json"])
        for text in case["texts"]:
            if ours.encode(text).ids != tokenizer.encode(text).ids or \
                    ours.decode(ours.encode(text).ids) != tokenizer.decode(tokenizer.encode(text).ids):
                wrong += 1
                print(f"case {number}: our tokenizer.json reads another way: {text!r}")
                break
    process.stdin.close()
    process.wait()
    print(f"{len(cases)} cases, {merged} merges, seed {seed}: {wrong} wrong")
    return 1 if wrong or merged < count else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check")
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    sys.exit(check(arguments.check, arguments.cases, arguments.seed) if arguments.check else write_golden())
