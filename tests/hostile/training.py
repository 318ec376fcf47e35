# SPDX-License-Identifier: GPL-3.0-or-later
"""What came with training: jobs, texts and lines to train on, run folders with their journals, files of numbers,
snapshots and wishes, native configurations, evaluations - each broken in ways of its own."""

import json
import os
import random
import shutil
import tempfile

from harness import Place, check

JOB = """[data]
text = ["text.txt"]
sequence_length = 16
[model]
hidden_size = 16
intermediate_size = 32
num_attention_heads = 2
num_key_value_heads = 2
num_hidden_layers = 2
layers = ["standard", "mlp"]
[training]
steps = 6
batch = 2
[snapshots]
every = 2
"""
WORDS = "In the beginning God created the heaven and the earth. " * 60


def job(place, text=JOB):
    (place / "text.txt").write_text(WORDS)
    target = place / "job.toml"
    target.write_bytes(text if isinstance(text, bytes) else text.encode())
    return target


def with_data(line):
    return JOB.replace('text = ["text.txt"]', line)


def run(judge, sample, quick):
    with tempfile.TemporaryDirectory() as cache:  # tokens are kept there, and may be
        run_with(judge, quick, cache)


def run_with(judge, quick, cache):
    jobs(judge, quick, cache)
    texts(judge, quick, cache)
    questions(judge, cache)
    with Place() as place:
        done = place / "run"
        outcome = judge.run(["train", job(place), "-o", done], home=cache)
        if outcome.status != 0:
            return judge.fault("a good job", "failed", outcome)
        runs(judge, done, quick, cache)
        snapshots(judge, done, quick, cache)
        evaluations(judge, done, cache)
        results(judge, done, cache)
    native(judge, quick)
    return None


def jobs(judge, quick, cache):
    """Job files: what is no TOML, what is too much of it, and values that cannot be."""
    large = 4_000_000 if quick else 100_000_000
    bad = {
        "empty": b"", "NUL bytes": JOB.encode() + b"\0\0\0", "only NULs": b"\0" * 5000, "invalid UTF-8": JOB.encode() + b'name = "\xff"',
        "UTF-16": JOB.encode("utf-16"), "escape in a key": JOB.encode() + b'"\\u001b[31m" = 1', "large": b"#" * large,
        "a long string": b'name = "' + b"x" * large + b'"', "deep": b"a = " + b"[" * 100_000, "deep tables": b"a = " + b"{b=" * 50_000,
        "deep and closed": b"a = " + b"[" * 100_000 + b"]" * 100_000, "dotted": b".".join([b"a"] * 100_000) + b" = 1",
        "dotted table": b"[" + b".".join([b"a"] * 100_000) + b"]", "many keys": b"".join(b"k%d = 1\n" % i for i in range(200_000)),
        "many tables": b"".join(b"[[t]]\n" for i in range(200_000)), "no end of a string": b'name = "abc', "no end of a text": b'name = """abc',
        "twice": JOB.encode() + b"[training]\nsteps = 7\n", "key twice": JOB.replace("steps = 6", "steps = 6\nsteps = 6").encode(),
        "JSON": b'{"data": {"text": ["text.txt"]}}', "HTML": b"<!DOCTYPE html><html></html>", "a line": b"just words",
        "a wrong date": b"name = 2026-13-45", "a lone surrogate": b'name = "\\ud800"', "a bad escape": b'name = "\\q"',
    }
    for name, content in bad.items():
        with Place() as place:
            check(judge, f"job, {name}", place, ["train", job(place, content), "-o", place / "run"], parts=["job.toml"],
                  home=cache, must_refuse=True)
    values = [
        ("training.steps", ["-1", "1e400", "9" * 400, "1.5", '"6"', "true", "nan", "inf", "9223372036854775808", "0x", "[6]", "{}"]),
        ("training.batch", ["0", "-1", "1000000000000", "9223372036854775807"]),
        ("training.minutes", ["nan", "inf", "-1", "1e308"]),
        ("data.sequence_length", ["0", "1", "-5", "9223372036854775807", "1000000000000"]),
        ("data.validation", ["1.5", "-0.1", "nan", '["absent.txt"]', '"x"']),
        ("data.tokenizer", ['""', '"train:1"', '"train:99999999999999999999"', '"/dev/zero"', '"/"', '"absent"', '"train:-1"', "[]"]),
        ("data.text", ["[]", '[""]', '["/dev/zero"]', '["/"]', '["absent*"]', '["[[[[["]', '["\\u0000"]', '["/dev/stdin"]', "[1]", '"text.txt\\n"']),
        ("data.corpus", ['"absent"', '"../../etc/passwd"', '""', "1"]),
        ("data.generator", ['{ name = "absent" }', '{ name = "copy", length = 1e300 }', "{}", '"x"', "{ name = 1 }"]),
        ("model.preset", ['"absent"', '"../x"', "1"]),
        ("model.layers", ["[]", '["absent"]', "[1]", '"standard"', "[" + ",".join(['"standard"'] * 10_000) + "]"]),
        ("model.hidden_size", ["0", "-16", "17", "1000000000000", "9223372036854775807", "2000000"]),
        ("model.num_attention_heads", ["0", "3", "-1", "1000000"]),
        ("model.vocab_size", ["1", "0", "-1", "9223372036854775807"]),
        ("model.rope_theta", ["0", "nan", "-1", "1e400"]),
        ("model.from", ['"absent"', '"/dev/zero"', '"job.toml"', '""', '"."']),
        ("model.mixers.approximate", ["1", '{ second_order = "absent" }', "{ absent = 1 }"]),
        ("optimizer.learning_rate", ["nan", "-1", "inf", '"x"']),
        ("optimizer.betas", ["[2, 3]", "[0.9]", "[nan, nan]", "0.9"]),
        ("snapshots.keep", ["0", "1", "-1", "1e9"]),
    ]
    for key, texts_of_key in values[:: 4 if quick else 1]:
        for value in texts_of_key:
            with Place() as place:
                check(judge, f"job, {key} = {value[:40]}", place,
                      ["train", job(place, WITHOUT.get(key.split(".")[1], JOB)), "-o", place / "run", "--set", f"{key}={value}"],
                      home=cache)


# Keys that exclude others are set in jobs that lack those.
WITHOUT = {"minutes": JOB.replace("steps = 6\n", ""), "corpus": with_data(""), "generator": with_data(""),
           "from": JOB.split("[model]")[0] + JOB[JOB.index("[training]"):]}


def texts(judge, quick, cache):
    size = 4_000_000 if quick else 20_000_000
    line = '{"text": "' + WORDS + '"}\n'
    cases = {
        "text.txt": {
            "empty": b"", "invalid UTF-8": WORDS.encode() + b"\xff\xfe", "UTF-16": WORDS.encode("utf-16"), "cut": WORDS.encode() + "é".encode()[:1],
            "surrogates": b"\xed\xa0\x80" * 100},
        "lines.jsonl": {
            "empty": b"", "no JSON": b"words\n", "a number": b"1\n", "a list": b"[" + line.encode().strip() + b"]\n", "no text": b'{"content": "x"}\n',
            "text of a number": b'{"text": 1}\n', "text twice": b'{"text": "a", "text": "b"}\n', "cut": line.encode() + b'{"text": "abc',
            "a NUL": b'{"text": "a\0b"}\n', "half a surrogate": b'{"text": "\\ud800"}\n', "invalid UTF-8": b'{"text": "\xff"}\n',
            "deep": b'{"a": ' + b"[" * 1_000_000 + b"\n", "an open string": b'{"text": "' + b"a" * size, "one line of brackets": b"[" * size,
            "two in a line": line.encode().strip() * 2, "only spaces": b" " * size, "a huge number": b'{"text": ' + b"9" * size + b"}",
            "many keys": b'{"k": ' + b'{"k": 1}, "l": [' + b"1," * (size // 2)}}
    for file, contents in cases.items():
        for name, content in contents.items():
            with Place() as place:
                path = job(place, with_data(f'text = ["{file}"]'))
                (place / file).write_bytes(content)
                check(judge, f"{file}, {name}", place, ["train", path, "-o", place / "run"], home=cache, parts=[file])
    # Good files, and large ones.
    for name, file, content in (("one word", "text.txt", b"a" * size), ("lines without words", "text.txt", b"\n" * size),
                                ("one line", "lines.jsonl", b'{"text": "' + b"a" * size + b'"}\n'),
                                ("spelled in escapes", "lines.jsonl", b'{"text": "' + b"\\u0061" * (size // 6) + b'"}\n'),
                                ("many documents", "lines.jsonl", b'{"text": "a"}\n' * (size // 14))):
        for tokenizer in ("bytes", "train:300"):
            with Place() as place:
                path = job(place, with_data(f'text = ["{file}"]\ntokenizer = "{tokenizer}"').replace("steps = 6", "steps = 1"))
                (place / file).write_bytes(content)
                outcome = judge.run(["train", path, "-o", place / "run"], home=cache)
                judge.judge(f"{file}, {name}, {tokenizer}", outcome, may_succeed=True, must_refuse=False)


QUESTIONS = """[data]
text = ["questions.json"]
sequence_length = 32
[model]
preset = "nano-mhe-encoder"
[objective]
kind = "spans"
stride = 4
[training]
steps = 1
"""


def questions(judge, cache):
    def one(**changes):
        return {"id": "1", "question": "who", "context": "a b c", "answers": {"text": ["b"], "answer_start": [2]}} | changes

    def whole(paragraph):
        return {"data": [{"paragraphs": [paragraph]}]}

    cases = {
        "no context": {key: value for key, value in one().items() if key != "context"}, "no answers": one(answers=None),
        "a number": one(question=1), "behind the context": one(answers={"text": ["b"], "answer_start": [5]}),
        "far away": one(answers={"text": ["b"], "answer_start": [2**62]}),
        "before it": one(answers={"text": ["b"], "answer_start": [-1]}), "too few places": one(answers={"text": ["b"], "answer_start": []}),
        "a long context": one(context="a b c " * 400_000), "data of a number": {"data": 1}, "no paragraphs": {"data": [{}]},
        "no questions": whole({"context": "a", "qas": []}), "questions of a text": whole({"context": "a", "qas": "b"}),
        "no context of a paragraph": whole({"qas": [one()]}),
    }
    for name, content in cases.items():
        with Place() as place:
            path = job(place, QUESTIONS)
            (place / "questions.json").write_text(json.dumps(content) + "\n")
            parts = [] if name in ("a long context", "no questions") else ["questions.json"]
            check(judge, f"questions, {name}", place, ["train", path, "-o", place / "run"], home=cache, parts=parts)


def broken(content, rng):
    """Copies of a file's bytes, each damaged elsewhere."""
    yield "empty", b""
    yield "cut", content[: len(content) // 2]
    yield "zeros", b"\0" * len(content)
    yield "noise", rng.randbytes(4096)
    yield "twice", content + content
    for i in range(4):
        at = rng.randrange(len(content))
        yield f"bytes at {at}", content[:at] + rng.randbytes(min(8, len(content) - at)) + content[at + 8:]
    yield "ones", content[:16] + b"\xff" * 64 + content[80:]


def runs(judge, done, quick, cache):
    """A run's folder whose journal, numbers, job or requests are damaged: info and export report it, resume continues or refuses."""
    rng = random.Random(3)
    for file in ("events.log", "run.h5", "job.toml"):
        content = (done / file).read_bytes()
        for name, damaged in broken(content, rng):
            with Place() as place:
                copy = place / "run"
                shutil.copytree(done, copy, symlinks=True)
                (copy / file).write_bytes(damaged)
                check(judge, f"info of a run, {file} {name}", place, ["info", copy], must_refuse=False, home=cache)
                check(judge, f"export of a run, {file} {name}", place, ["export", copy, "--figure", "run-loss", "-o", place / "x.csv"],
                      must_refuse=False, outputs=["x.csv"])
                outcome = judge.run(["train", "-o", copy, "--resume"], home=cache)
                judge.judge(f"resume, {file} {name}", outcome, may_succeed=True, must_refuse=False)
    for name in ("events.log", "run.h5", "job.toml", "snapshots", "control"):
        for kind in ("pipe", "folder", "device", "loop"):
            with Place() as place:
                copy = place / "run"
                shutil.copytree(done, copy, symlinks=True)
                target = copy / name
                shutil.rmtree(target, ignore_errors=True) if target.is_dir() else target.unlink(missing_ok=True)
                if kind == "pipe":
                    os.mkfifo(target)
                elif kind == "folder":
                    target.mkdir()
                else:
                    target.symlink_to("/dev/zero" if kind == "device" else name)
                check(judge, f"info, {name} is a {kind}", place, ["info", copy], must_refuse=False)
                check(judge, f"control, {name} is a {kind}", place, ["control", copy, "pause", "--wait", "0"], must_refuse=False,
                      outputs=[f"run/{name}", "run/control"])
    with Place() as place:  # a journal that says that it is large, and one that is
        copy = place / "run"
        shutil.copytree(done, copy, symlinks=True)
        content = (copy / "events.log").read_bytes()
        (copy / "events.log").write_bytes(content * (200_000_000 // len(content) // (20 if quick else 1)))
        check(judge, "info, a long journal", place, ["info", copy], must_refuse=False)
    for request in ("pause", "rate nan", "rate 1e400", "absent", "rate", "", "rate -1", "\x1b[31m"):
        with Place() as place:
            copy = place / "run"
            shutil.copytree(done, copy, symlinks=True)
            outcome = judge.run(["control", copy, *request.split(" "), "--wait", "0.1"])
            if outcome.status not in (0, 1, 2) or "\x1b" in outcome.err:
                judge.fault(f"control {request!r}", "expected a status of 0 to 2", outcome)


def snapshots(judge, done, quick, cache):
    """Snapshots with lies in training.json, and with files that their manifest does not know."""
    step = sorted((done / "snapshots").glob("step-*"))[-1].name
    state = json.loads((done / "snapshots" / step / "training.json").read_text())
    cases = {"no JSON": b"{", "a list": b"[]", "nothing": b"{}", "deep": b"[" * 1_000_000, "NULs": b"\0" * 100, "large": b" " * 100_000_000}
    for key in state:
        for value in (None, -1, 1e300, "x", [], {}, 2**63, True):
            cases[f"{key} = {value}"] = json.dumps({**state, key: value}).encode()
    for name, content in list(cases.items())[:: 7 if quick else 1]:
        with Place() as place:
            fork = place / "fork"
            copy = place / "run"
            shutil.copytree(done, copy, symlinks=True)
            folder = copy / "snapshots" / step
            (folder / "training.json").write_bytes(content)
            outcome = judge.run(["train", "--from", folder, "-o", fork, "--set", "training.steps=7"], home=cache)
            judge.judge(f"fork, training.json {name}", outcome, may_succeed=False, must_refuse=True)
            if fork.exists():
                judge.fault(f"fork, training.json {name}", "left a run's folder", outcome)


def evaluations(judge, done, cache):
    for name, content in (("empty", b""), ("no UTF-8", b"\xff" * 100), ("NULs", b"\0" * 100), ("one word", b"a" * 20_000_000)):
        with Place() as place:
            (place / "text.txt").write_bytes(content)
            check(judge, f"evaluate on {name}", place, ["evaluate", done, "--task", "perplexity", "--data", place / "text.txt", "--length", "16",
                                                        "--tokens", "200"], must_refuse=name in ("empty", "no UTF-8"), home=cache)
    for arguments in (["--length", "0"], ["--length", "9" * 30], ["--length", "a,b"], ["--task-option", "mqar.pairs=1e300"], ["--skip", "99"],
                      ["--prefix", "-5"], ["--stride", "99999999999999999999"]):
        with Place() as place:
            outcome = judge.run(["evaluate", done, "--task", "mqar", *arguments], home=cache)
            if outcome.status not in (1, 2) or len(outcome.messages) < 1:
                judge.fault(f"evaluate {arguments}", "expected a refusal", outcome)


def results(judge, done, cache):
    """Evaluation files that came from elsewhere."""
    rng = random.Random(4)
    with Place() as place:
        target = place / "x.evaluation.h5"
        outcome = judge.run(["evaluate", done, "--task", "perplexity", "--length", "16", "--tokens", "200", "-o", target], home=cache)
        if outcome.status != 0:
            return judge.fault("a good evaluation", "failed", outcome)
        for name, damaged in broken(target.read_bytes(), rng):
            with Place() as other:
                (other / "y.evaluation.h5").write_bytes(damaged)
                check(judge, f"info of an evaluation, {name}", other, ["info", other / "y.evaluation.h5"], must_refuse=False)
                check(judge, f"export of an evaluation, {name}", other, ["export", other / "y.evaluation.h5", "--figure", "context-perplexity", "-o",
                                                                         other / "x.csv"], must_refuse=False, outputs=["x.csv"])
    return None


def native(judge, quick):
    """config.json of model_type headscope."""
    good = {"model_type": "headscope", "vocab_size": 64, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 8, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
            "attention_bias": False, "qk_norm": False, "tie_word_embeddings": True, "max_position_embeddings": 64,
            "layers": ["standard", "mlp"], "mixers": {}}
    cases = []
    for key in good:
        for value in (None, -1, 0, 1e300, 2**62, 2**64, "x", [], {}, True, [[]] * 3):
            cases.append((f"{key} = {value}", {**good, key: value}))
    cases += [(f"layers of {len(names)}", {**good, "layers": names, "num_hidden_layers": len(names)}) for names in
              (["standard"] * 1_000_000, ["absent"] * 2, [1, 2], ["standard", None], ["natsl", "mamba2"])]
    cases += [(f"options {options}", {**good, "mixers": options, "layers": ["approximate", "lazy"]}) for options in
              ({"approximate": []}, {"approximate": {"second_order": 1}}, {"absent": {}}, {"approximate": {"absent": 1}},
               {"lazy": {"window": -1}}, {"approximate": {"normalisation": "x" * 1_000_000}})]
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    for name, config in cases[:: 7 if quick else 1]:
        with Place() as place:
            model = place / "model"
            model.mkdir()
            (model / "config.json").write_text(json.dumps(config))
            (model / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
            (place / "ids.json").write_text("[[1, 2, 3]]")
            check(judge, f"native, {name[:60]}", place, ["analyze", model, "--tokens", place / "ids.json", "-o", place / "x.headscope.h5"])
