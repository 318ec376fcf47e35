#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Token files, made by the program's own code, read with h5py: the tokens are those that the `tokenizers` package gives
with the tokenizer.json that belongs to them, documents, sources, split and hashes are right, sequences are windows of
them, or what encoders and translations read; and a text of hundreds of megabytes takes little memory.

    python3 tests/oracle/accept/token_files.py build/release/bin/data_lines [--megabytes 200]
"""
import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from tokenizers import Tokenizer

SEPARATOR = "<|endoftext|>"


class Program:
    def __init__(self, path, cache):
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def random_document(rng):
    words = ["the", "cat", "été", "東京", "🙂", "don't", "12345", "\n\n", "  ", "\t", "x" * 40, "«»", "e\u0301"]
    return " ".join(rng.choice(words) for _ in range(rng.randint(0, 200)))


def write_corpus(folder, rng):
    """Files with their documents, in the order that a folder is read in."""
    files = {}
    for name in ["a.txt", "b.jsonl", "c.txt", "d/e.txt"]:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if name.endswith(".jsonl"):
            documents = [random_document(rng) for _ in range(rng.randint(1, 20))]
            lines = [json.dumps({"id": i, "text": d}, ensure_ascii=rng.random() < 0.5)
                     for i, d in enumerate(documents)]
            path.write_text(rng.choice(["\n", "\r\n"]).join(lines), newline="")
        else:
            documents = [random_document(rng)]
            path.write_bytes(rng.choice([b"", b"\xef\xbb\xbf"]) + documents[0].encode())
        files[name] = documents
    return files


def expected_tokens(tokenizer, documents):
    separator = tokenizer.token_to_id(SEPARATOR)
    tokens, begins = [], []
    for document in documents:
        ids = tokenizer.encode(document, add_special_tokens=False).ids
        if ids:
            begins.append(len(tokens))
            tokens += ids + [separator]
    return tokens, begins + [len(tokens)]


def check_case(program, folder, rng):
    files = write_corpus(folder, rng)
    length = rng.choice([1, 7, 32])
    by_file = rng.random() < 0.3
    share = rng.choice([0, 0.1, 0.25])
    tokenizer_name = rng.choice(["bytes", "train:257", "train:300", "train:1000"])
    answer = program.ask(text=["."], tokenizer=tokenizer_name, length=length, base=str(folder),
                         validation=["c.txt"] if by_file else share)
    order = ["a.txt", "b.jsonl", "d/e.txt", "c.txt"] if by_file else sorted(files)
    if "error" in answer:
        assert "expected" in answer["error"] and "found" in answer["error"], answer
        return False
    tokenizer = Tokenizer.from_str(answer["tokenizer"])
    tokens, begins = expected_tokens(tokenizer, [d for name in order for d in files[name]])
    with h5py.File(answer["token_file"]) as file:
        found = file["tokens"]
        assert found.dtype == (np.uint16 if file.attrs["vocabulary"] <= 65536 else np.uint32)
        assert found.chunks is None and found.compression is None
        assert found[:].tolist() == tokens
        assert file["documents/begin"][:].tolist() == begins
        assert len(file["documents/source"]) == file.attrs["documents"] == len(begins) - 1
        assert file.attrs["format"] == "headscope-tokens" and file.attrs["format_version"] == 2
        assert file.attrs["vocabulary"] == tokenizer.get_vocab_size()
        assert file.attrs["separator"] == tokenizer.token_to_id(SEPARATOR)
        assert file.attrs["tokens_sha256"] == sha256(found[:].tobytes())
        paths = file["sources/path"].asstr()[:].tolist()
        assert [Path(p) for p in paths] == [folder / name for name in order]
        for path, digest, size in zip(paths, file["sources/sha256"].asstr()[:], file["sources/bytes"][:]):
            data = Path(path).read_bytes()
            assert sha256(data) == digest and len(data) == size
        boundary = int(file.attrs["validation_begin"])
        if by_file:
            assert tokens[boundary:] == expected_tokens(tokenizer, files["c.txt"])[0]
        else:
            assert boundary == len(tokens) - int(len(tokens) * share)
        # Contiguous: the bytes lie in the file unchanged.
        offset = found.id.get_offset()
        assert Path(answer["token_file"]).read_bytes()[offset:offset + found.nbytes] == found[:].tobytes()
    assert answer["windows"] == (boundary - 1) // length
    for ids, targets in zip(answer["ids"], answer["targets"]):
        windows = [w for w in range(answer["windows"]) if tokens[w * length:w * length + length] == ids]
        assert any(tokens[w * length + 1:w * length + length + 1] == targets for w in windows)
    return True


def check_ends(tokenizer, config):
    """<s> <pad> </s> <unk> <mask> behind the other tokens, around texts and pairs; and transformers reads the same."""
    import transformers

    count = tokenizer.get_vocab_size()
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    assert [tokenizer.token_to_id(name) for name in names] == list(range(count - 5, count))
    text = tokenizer.encode("a", add_special_tokens=False).ids
    begin, end = [count - 5], [count - 3]
    assert tokenizer.encode("a").ids == begin + text + end
    assert tokenizer.encode("a", "a").ids == begin + text + end + end + text + end
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "tokenizer.json").write_text(tokenizer.to_str())
        (Path(name) / "tokenizer_config.json").write_text(config)
        theirs = transformers.AutoTokenizer.from_pretrained(name)
    assert theirs("a", "a").input_ids == begin + text + end + end + text + end
    assert [theirs.bos_token_id, theirs.pad_token_id, theirs.sep_token_id, theirs.unk_token_id,
            theirs.mask_token_id] == list(range(count - 5, count))


def check_encoder(program, folder, rng):
    files = write_corpus(folder, rng)
    length = rng.choice([3, 8, 32])
    answer = program.ask(text=["."], tokenizer=rng.choice(["bytes", "train:300"]), length=length, base=str(folder),
                         validation=0, objective="shuffle_random", shares=0)
    if "error" in answer:
        assert "expected" in answer["error"] and "found" in answer["error"], answer
        return
    tokenizer = Tokenizer.from_str(answer["tokenizer"])
    check_ends(tokenizer, answer["config"])
    tokens = [id for name in sorted(files) for d in files[name]
              for id in tokenizer.encode(d, add_special_tokens=False).ids]
    with h5py.File(answer["token_file"]) as file:
        assert file["tokens"][:].tolist() == tokens
        assert file.attrs["separator"] == -1
    inner = length - 2
    assert answer["windows"] == len(tokens) // inner
    windows = [tokens[w * inner:w * inner + inner] for w in range(answer["windows"])]
    for ids, targets in zip(answer["ids"], answer["targets"]):
        assert ids[0] == tokenizer.token_to_id("<s>") and ids[-1] == tokenizer.token_to_id("</s>")
        assert ids[1:-1] in windows
        assert targets == [-1] + inner * [0] + [-1]


def check_translation(program, folder, rng):
    items = [(random_document(rng), random_document(rng)) for _ in range(rng.randint(1, 20))]
    lines = [json.dumps({"target": target, "source": source}) for source, target in items]
    (folder / "items.jsonl").write_text("\n".join(lines))
    share = rng.choice([0, 0.25])
    answer = program.ask(text=["items.jsonl"], tokenizer=rng.choice(["bytes", "train:300"]), length=16,
                         base=str(folder), validation=share, objective="translation")
    if "error" in answer:
        assert "expected" in answer["error"] and "found" in answer["error"], answer
        return
    tokenizer = Tokenizer.from_str(answer["tokenizer"])
    check_ends(tokenizer, answer["config"])
    documents = [tokenizer.encode(text, add_special_tokens=False).ids for item in items for text in item]
    with h5py.File(answer["token_file"]) as file:
        begins, labels = file["documents/begin"][:], file["documents/label"][:]
        assert file["tokens"][:].tolist() == sum(documents, [])
        assert np.diff(begins).tolist() == [len(d) for d in documents]
        assert labels.dtype == np.float32 and labels.tolist() == len(items) * [0, 1]
        assert file.attrs["documents_per_item"] == 2
        assert file.attrs["documents_sha256"] == sha256((sha256(begins.tobytes()) + sha256(labels.tobytes())).encode())
    sources, targets = documents[0::2], documents[1::2]
    begin, end = tokenizer.token_to_id("<s>"), tokenizer.token_to_id("</s>")
    for ids, said in zip(answer["ids"], answer["targets"]):
        assert any(ids == [begin, *source[:14], end] and said == [*target[:15], end]
                   for source, target in zip(sources, targets))


def check_memory(program, folder, megabytes):
    with open(folder / "big.txt", "w") as file:
        line = "".join(f"word{i} and {i * 7919 % 1000} more. " for i in range(2000)) + "\n"
        while file.tell() < megabytes * 1_000_000:
            file.write(line)
    answer = program.ask(text=["big.txt"], tokenizer="train:1000", length=256, base=str(folder), validation=0.01)
    with h5py.File(answer["token_file"]) as file:
        part = file["tokens"][:200000]
    tokenizer = Tokenizer.from_str(answer["tokenizer"])
    text = (folder / "big.txt").read_bytes()[:3_000_000].decode()
    assert tokenizer.encode(text).ids[:len(part)] == part.tolist()
    print(f"{megabytes} MB of text: {answer['peak']} MiB at most")
    # A megabyte of text as tokens with their places, the list of words, buffers; the rest is the program itself.
    assert answer["peak"] < 400, answer["peak"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # First: what is started later counts the memory of this process too, before it is another program.
        check_memory(Program(arguments.program, folder / "cache"), folder, arguments.megabytes)
        done = 0
        for case in range(arguments.cases):
            (folder / str(case)).mkdir()
            program = Program(arguments.program, folder / "cache")
            done += check_case(program, folder / str(case), rng)
            for check in (check_encoder, check_translation):
                own = folder / f"{case}-{check.__name__}"
                own.mkdir()
                check(program, own, rng)
        assert done > arguments.cases // 2, done
        print(f"{done} of {arguments.cases} corpora, seed {arguments.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
