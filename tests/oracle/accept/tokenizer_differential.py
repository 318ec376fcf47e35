#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares our tokenizers with the `tokenizers` package, live: ids, pieces, byte offsets and decoded text of hundreds of
awkward texts, on tokenizers of every family's style, on random combinations of components, on real files; and on
folders of older files what transformers makes of them.

    python3 tests/oracle/accept/tokenizer_differential.py build/release/bin/tokenizer_lines [--files FOLDER] [--filter NAME]
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

os.environ["RUST_BACKTRACE"] = "0"
from tokenizers import Tokenizer

import tokenizer_folders
import tokenizer_styles
import tokenizer_texts


PANIC = object()


class InPython:
    """A tokenizer that transformers has in Python alone, asked as the package's are. It knows no offsets."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.decode = tokenizer.decode

    def no_truncation(self):
        pass

    no_padding = no_truncation

    def get_added_tokens_decoder(self):
        return self.tokenizer.added_tokens_decoder

    def get_vocab(self, with_added_tokens=True):
        return self.tokenizer.get_vocab()

    def get_vocab_size(self):
        return len(self.tokenizer) - 2  # ids beyond the vocabulary, which are asked for, are <unk> in Python

    def answer(self, text, add):
        return {"ids": self.tokenizer(text, add_special_tokens=add)["input_ids"]}


def byte_places(text):
    places = [0]
    for c in text:
        places.append(places[-1] + len(c.encode()))
    return places


def attempt(function):
    """The result, None for an error of the package, PANIC where it breaks: then anything of ours is right."""
    try:
        return function()
    except Exception:
        return None
    except BaseException as error:  # pyo3's PanicException
        if isinstance(error, KeyboardInterrupt):
            raise
        return PANIC


def expected_encoding(tokenizer, text, add):
    if isinstance(tokenizer, InPython):
        return attempt(lambda: tokenizer.answer(text, add))
    e = attempt(lambda: tokenizer.encode(text, add_special_tokens=add))
    if e is None or e is PANIC:
        return e
    places = byte_places(text)
    offsets = [places[x] for pair in e.offsets for x in pair]
    return {"ids": e.ids, "offsets": offsets, "pieces": e.tokens, "special": e.special_tokens_mask}


def requests_and_answers(tokenizer, texts, rng):
    """What to ask, with what the package says; None where it fails."""
    pairs, encoded = [], []
    for text in texts:
        for add in (True, False):
            answer = expected_encoding(tokenizer, text, add)
            pairs.append(({"encode": text, "add": add}, answer))
            if isinstance(answer, dict) and add:
                encoded.append(answer["ids"])
    size = tokenizer.get_vocab_size()
    samples = encoded + [[rng.randrange(size + 2) for _ in range(rng.randrange(1, 12))] for _ in range(60)]
    samples.append([])
    for ids in samples:
        for skip in (True, False):
            text = attempt(lambda: tokenizer.decode(ids, skip_special_tokens=skip))
            pairs.append(({"decode": ids, "skip": skip}, {"text": text} if isinstance(text, str) else text))
    return pairs


class Ours:
    """The program that answers lines."""

    def __init__(self, program):
        self.program = program

    def ask(self, requests):
        lines = "".join(json.dumps(r) + "\n" for r in requests)
        done = subprocess.run([self.program], input=lines.encode(), stdout=subprocess.PIPE, check=False)
        answers = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
        if done.returncode != 0 or len(answers) != len(requests):
            raise RuntimeError(f"ended with {done.returncode} at {requests[min(len(answers), len(requests) - 1)]}")
        return answers


def difference(expected, found):
    if expected is PANIC:
        return None
    if "error" in found:
        return None if expected is None else f"refused: {found['error']}"
    if expected is None:
        return f"the package fails, ours gives {json.dumps(found)[:200]}"
    for key, value in expected.items():
        if value != found[key]:
            return f"{key}:\n      package {json.dumps(value)[:700]}\n      ours    {json.dumps(found[key])[:700]}"
    return None


def reference(path):
    """The package's own tokenizer of a tokenizer.json; of a folder, what transformers makes of it."""
    if path.is_file():
        return Tokenizer.from_file(str(path))
    import transformers
    transformers.utils.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    reference.kept = tokenizer  # some replace methods of what they wrap
    return tokenizer.backend_tokenizer if tokenizer.is_fast else InPython(tokenizer)


def compare(name, path, ours, options):
    tokenizer = attempt(lambda: reference(path))
    if tokenizer is None or tokenizer is PANIC:
        answer = ours.ask([{"load": str(path)}])[0]
        return [] if "error" in answer else [f"{name}: the package refuses the file, ours does not"]
    tokenizer.no_truncation()
    tokenizer.no_padding()
    rng = random.Random(name)
    special = [t.content for t in tokenizer.get_added_tokens_decoder().values()]
    vocabulary = sorted(tokenizer.get_vocab(with_added_tokens=False))
    pieces = special * 3 + rng.sample(vocabulary, min(len(vocabulary), 300))
    texts = tokenizer_texts.texts(name, pieces, options.texts)
    pairs = requests_and_answers(tokenizer, texts, rng)
    answers = ours.ask([{"load": str(path)}] + [request for request, _ in pairs])
    if "error" in answers[0]:
        return [f"{name}: refused: {answers[0]['error']}"]
    failures = []
    for (request, expected), found in zip(pairs, answers[1:]):
        fault = difference(expected, found)
        if fault:
            failures.append(f"{name}: {json.dumps(request)}\n   {fault}")
    print(f"{name}: {len(pairs)} compared, {len(failures)} differ", flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--files", type=Path, action="append", default=[], help="a folder of real tokenizer.json files")
    parser.add_argument("--filter", default="", help="only names that hold this")
    parser.add_argument("--random", type=int, default=150, help="random combinations")
    parser.add_argument("--texts", type=int, default=150, help="random texts a tokenizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="leave the tokenizers here")
    parser.add_argument("--show", type=int, default=3, help="differences shown a tokenizer")
    options = parser.parse_args()
    ours = Ours(options.program)
    failed = count = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)

        def cases():
            for real in options.files:
                for path in sorted(real.rglob("*.json")):
                    if options.filter in path.stem:
                        yield path.stem, path
            for name, files in tokenizer_folders.folders():
                path = folder / f"folder_{name}"
                if options.filter in path.name:
                    path.mkdir(exist_ok=True)
                    for file, text in files.items():
                        (path / file).write_bytes(text.encode())
                    yield path.name, path
            for name, document in tokenizer_styles.documents(options.filter, options.seed, options.random):
                path = folder / f"{name}.json"
                path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
                yield name, path

        for name, path in cases():
            count += 1
            try:
                failures = compare(name, path, ours, options)
            except Exception:
                failures = [f"{name}: {traceback.format_exc()}"]
            for text in failures[:options.show]:
                print(text)
            failed += bool(failures)
    print(f"{count} tokenizers, {failed} differ")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
