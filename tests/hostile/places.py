# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths that end at no regular file, texts that are none, outputs that would destroy something, and stops."""

import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time

from harness import Place, check, link_model, listing
from weights import TEXT, entry, file_of


def odd_things(place):
    """Things that are no regular file, and the words for them."""
    os.mkfifo(place / "pipe")
    yield place / "pipe", "pipe"
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(os.fspath(place / "socket"))
    yield place / "socket", "socket"
    (place / "folder").mkdir()
    yield place / "folder", ""
    (place / "loop").symlink_to("loop")
    yield place / "loop", "circle"
    (place / "dangling").symlink_to("nowhere")
    yield place / "dangling", "nothing there"
    (place / "to-device").symlink_to("/dev/zero")
    yield place / "to-device", "device"
    for device in ("/dev/zero", "/dev/null", "/dev/full", "/dev/tty"):
        yield device, ""
    yield place / "absent", "nothing there"
    yield place / "absent/deeper", ""
    yield place / ("n" * 300), "too long"
    yield place / "line\nend\x1b[31m", "\\x0A"
    yield os.fsencode(place / "x") + b"\xff\xfe", "\\xFF"
    yield "/proc/self/mem", ""
    yield "/proc/cpuinfo", ""
    yield "", ""


def run(judge, sample, quick):
    with Place() as place:
        for path, word in odd_things(place):
            x, parts = place / "x.headscope.h5", [word] if word else []
            for name, arguments in (
                    ("info", ["info", path]), ("model", ["analyze", path, "--text", TEXT, "-o", x]),
                    ("text", ["analyze", sample, "--file", path, "-o", x]), ("ids", ["analyze", sample, "--tokens", path, "-o", x]),
                    ("analysis", ["export", path, "--figure", "radar", "-o", place / "x.csv"]),
                    ("tokenize", ["tokenize", path, "text"]), ("tokenize file", ["tokenize", sample, "--file", path]),
                    ("convert", ["convert", path, place / "copy"]), ("generate", ["generate", path, "--prompt", "a"])):
                if path == "" and name.startswith("tokenize"):
                    continue
                check(judge, f"{name} from {path!r}", place, arguments, seconds=2,
                      parts=parts if name in ("text", "ids", "analysis") else ())
    members(judge, sample)
    texts(judge, sample)
    outputs(judge, sample)
    hub_cache(judge, sample)
    settings(judge, sample)
    at_once(judge, sample, 3 if quick else 20)
    stops(judge, sample)


def members(judge, sample):
    """A model's folder whose files are something else."""
    for name in ("config.json", "model.safetensors", "tokenizer.json", "model.safetensors.index.json"):
        for kind in ("pipe", "folder", "device", "loop", "dangling"):
            with Place() as place:
                model = link_model(place, sample, [name, *(["model.safetensors"] if "index" in name else [])])
                target = model / name
                if kind == "pipe":
                    os.mkfifo(target)
                elif kind == "folder":
                    target.mkdir()
                else:
                    target.symlink_to({"device": "/dev/zero", "loop": name, "dangling": "nowhere"}[kind])
                check(judge, f"{name} is a {kind}", place, ["analyze", model, "--text", TEXT, "-o", place / "x"],
                      seconds=2, parts=["tokenizer" if name == "tokenizer.json" else name] if kind != "dangling" else ())


def texts(judge, sample):
    for name, content, must in (
            ("empty", b"", True), ("invalid UTF-8", b"abc\xff\xfe", True), ("UTF-16", TEXT.encode("utf-16"), True),
            ("Latin-1", "caf\xe9".encode("latin-1"), True), ("NUL bytes", b"a\0b\0" * 100, False),
            ("byte order mark", b"\xef\xbb\xbf" + TEXT.encode(), False), ("surrogates", b"\xed\xa0\x80", True),
            ("only marks", "\u0301".encode() * 200, False), ("control characters", bytes(range(1, 32)), False),
            ("too many tokens", b"word " * 300_000, True), ("one word of 8 MB", b"a" * 8_000_000, True),
            ("100 MB", b"x" * 100_000_000, True)):
        with Place() as place:
            (place / "text").write_bytes(content)
            check(judge, "text, " + name, place, ["analyze", sample, "--file", place / "text", "-o", place / "x.h5"],
                  outputs=["x.h5"], must_refuse=must)
    for name, content in (("ids of brackets", b"[" + b"[]," * 8_000_000 + b"[]]"), ("many ids", b"[[" + b"1," * 9_000_000 + b"1]]"),
                          ("deep", b"[" * 1_000_000), ("a huge number", b"[[" + b"9" * 1_000_000 + b"]]"),
                          ("100 MB", b" " * 100_000_000), ("an object", b'{"a": [1]}'), ("float", b"[[1.5]]")):
        with Place() as place:
            (place / "ids.json").write_bytes(content)
            check(judge, "ids, " + name, place, ["analyze", sample, "--tokens", place / "ids.json", "-o", place / "x.h5"],
                  parts=["ids.json"])
    for device in ("/dev/zero", "/dev/urandom"):
        with Place() as place, open(device, "rb") as endless:
            check(judge, f"standard input from {device}", place, ["analyze", sample, "--file", "-", "-o", place / "x.h5"],
                  stdin=endless, parts=["standard input"])


def outputs(judge, sample):
    with Place() as place:
        os.mkfifo(place / "pipe")
        (place / "folder").mkdir()
        (place / "full").mkdir()
        (place / "full" / "file").write_text("x")
        (place / "loop").symlink_to("loop")
        (place / "dangling").symlink_to("nowhere")
        (place / "null").symlink_to("/dev/null")
        (place / "text").write_text(TEXT)
        os.link(place / "text", place / "hard")
        (place / "soft").symlink_to("text")
        for path in ("pipe", "folder", "loop", "dangling", "null", "hard", "soft", "text", "none/x", "text/x", "n" * 260, ".", ".."):
            check(judge, f"output to {path[:20]}", place, ["analyze", sample, "--file", place / "text", "-o", place / path], seconds=2)
        for path in ("/dev/null", "/dev/full", "/dev/zero", "/proc/x.h5", "/sys/x.h5", ""):
            check(judge, f"output to {path!r}", place, ["analyze", sample, "--text", TEXT, "-o", path], seconds=2)
        for path in ("pipe", "loop", "dangling", "null", "full", "text", "none/x", "n" * 260):
            check(judge, f"converted to {path[:20]}", place, ["convert", sample, place / path], seconds=2)


def hub_cache(judge, sample):
    """Hugging Face's cache: snapshots of links into blobs, for models and for what else is read."""
    with Place() as place:
        blobs, snapshot = place / "hub/blobs", place / "hub/snapshots/rev"
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for number, file in enumerate(sorted(sample.iterdir())):
            shutil.copy(file, blobs / str(number))
            (snapshot / file.name).symlink_to(f"../../blobs/{number}")
        (place / "real.txt").write_text(TEXT)
        (place / "text.txt").symlink_to("real.txt")
        x = place / "x.headscope.h5"
        judged = check(judge, "cache of links", place, ["analyze", snapshot, "--file", place / "text.txt", "-o", x],
                       outputs=["x.headscope.h5"], must_refuse=False)
        if judged.status != 0:
            judge.fault("cache of links", "was not opened", judged)
        judge.run(["analyze", snapshot, "--text", TEXT, "-o", place / "real.headscope.h5"])
        x.symlink_to("real.headscope.h5")
        for arguments in (["info", x], ["export", x, "--figure", "radar", "-o", place / "x.csv"],
                          ["tokenize", snapshot, "a text"], ["convert", snapshot, place / "copy"]):
            outcome = judge.run(arguments)
            if outcome.status != 0:
                judge.fault(f"{arguments[0]} through links", "was not opened", outcome)


def settings(judge, sample):
    """Impossible settings are refused before weights are read: here those would be ten gigabytes."""
    with Place() as place:
        config = {"model_type": "llama", "hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 4,
                  "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 32000, "max_position_embeddings": 64,
                  "rms_norm_eps": 1e-5, "tie_word_embeddings": True}
        shapes = {"model.embed_tokens.weight": [32000, 8192], "model.norm.weight": [8192]}
        for layer in range(4):
            stem = f"model.layers.{layer}."
            shapes |= {stem + "input_layernorm.weight": [8192], stem + "post_attention_layernorm.weight": [8192],
                       stem + "self_attn.q_proj.weight": [8192, 8192], stem + "self_attn.k_proj.weight": [1024, 8192],
                       stem + "self_attn.v_proj.weight": [1024, 8192], stem + "self_attn.o_proj.weight": [8192, 8192],
                       stem + "mlp.gate_proj.weight": [28672, 8192], stem + "mlp.up_proj.weight": [28672, 8192],
                       stem + "mlp.down_proj.weight": [8192, 28672]}
        header, at = {}, 0
        for name, shape in shapes.items():
            size = 4
            for dimension in shape:
                size *= dimension
            header[name] = entry("F32", shape, (at, at + size))
            at += size
        model = place / "model"
        model.mkdir()
        (model / "config.json").write_text(json.dumps(config))
        (model / "model.safetensors").write_bytes(file_of(header))
        os.truncate(model / "model.safetensors", (model / "model.safetensors").stat().st_size + at)
        (place / "long.json").write_text(json.dumps([[1] * 65]))
        (place / "id.json").write_text("[[32000]]")
        (place / "good.json").write_text("[[1, 2, 3]]")
        start = ["analyze", model, "-o"]
        for name, arguments, part in (
                ("too long", [*start, place / "x.h5", "--tokens", place / "long.json"], "64"),
                ("a wrong id", [*start, place / "x.h5", "--tokens", place / "id.json"], "32000"),
                ("no tokenizer", [*start, place / "x.h5", "--text", "a"], "tokenizer"),
                ("no such layer", [*start, place / "x.h5", "--tokens", place / "good.json", "--layers", "4"], "--layers"),
                ("no such skip", [*start, place / "x.h5", "--tokens", place / "good.json", "--skip", "9"], "--skip"),
                ("nothing left", [*start, place / "x.h5", "--tokens", place / "good.json", "--layers", "1", "--skip", "1"], "--layers"),
                ("no folder", [*start, place / "none/x.h5", "--tokens", place / "good.json"], "none"),
                ("a device", [*start, "/dev/null", "--tokens", place / "good.json"], "/dev/null"),
                ("the input", [*start, place / "good.json", "--tokens", place / "good.json"], "good.json"),
                ("the weights", [*start, model / "model.safetensors", "--tokens", place / "good.json"], "model.safetensors")):
            check(judge, "ten gigabytes, " + name, place, arguments, parts=[part], seconds=1.5)
        check(judge, "kernels that are none", place, ["analyze", sample, "--text", TEXT, "-o", place / "x.h5"], seconds=2,
              environment={"HEADSCOPE_KERNELS": "frob\x1b"}, parts=["HEADSCOPE_KERNELS", "reference"])
        judge.run(["analyze", sample, "--text", TEXT, "--record", "maps", "-o", place / "maps.h5"])
        for figure in ("attention", "radar"):
            check(judge, f"kernels that are none, {figure}", place,
                  ["export", place / "maps.h5", "--figure", figure, "-o", place / "x.csv"], seconds=2,
                  environment={"HEADSCOPE_KERNELS": "frob"}, parts=["HEADSCOPE_KERNELS"])


def at_once(judge, sample, rounds):
    """Two processes, one output: it ends whole, and nothing else is left."""
    with Place() as place:
        for number in range(rounds):
            output = place / "x.headscope.h5"
            commands = [[judge.program, "analyze", sample, "--text", text, "-o", output] for text in (TEXT, TEXT * 3)]
            running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for command in commands]
            errors = [process.communicate()[1] for process in running]
            info = judge.run(["info", output, "--json"])
            whole = info.status == 0 and json.loads(info.out)["complete"]
            if any(process.returncode for process in running) or not whole or os.listdir(place.folder) != ["x.headscope.h5"]:
                judge.fault(f"two analyses at once, round {number}", f"{errors} {os.listdir(place.folder)}", info)
            running = [subprocess.Popen([judge.program, "convert", sample, place / "copy"], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE) for _ in range(2)]
            errors = [process.communicate()[1] for process in running]
            info = judge.run(["info", place / "copy", "--json"])
            codes = sorted(process.returncode for process in running)
            if codes not in ([0, 1], [0, 0]) or info.status != 0 or len(os.listdir(place.folder)) != 2:
                judge.fault(f"two conversions at once, round {number}", f"{errors} {os.listdir(place.folder)}", info)
            shutil.rmtree(place / "copy", ignore_errors=True)


def stops(judge, sample):
    """Ctrl-C while something large is opened: within a second, status 130, nothing left."""
    with Place() as place:
        spaces = b"{" + b" " * 99_000_000 + b"}"
        many = "{" + ",".join('"%x":{"dtype":"U8","shape":[],"data_offsets":[0,0]}' % i for i in range(1_500_000))
        (place / "many.safetensors").write_bytes(file_of(many))
        (place / "spaces.safetensors").write_bytes(file_of(spaces))
        (place / "text").write_bytes(b"a bc def ghij " * 4_000_000)
        big = place / "big.safetensors"
        big.write_bytes(file_of({"a": entry("U8", (2**40,), (0, 2**40))}))
        os.truncate(big, big.stat().st_size + 2**40)
        before = listing(place.folder)
        for name, arguments in (("a header of many tensors", ["info", place / "many.safetensors"]),
                                ("a header of spaces", ["info", place / "spaces.safetensors"]),
                                ("a long text", ["tokenize", sample, "--file", place / "text", "--json"]),
                                ("a terabyte to convert", ["convert", big, place / "copy"]),
                                ("a model and a long text", ["analyze", sample, "--file", place / "text", "-o", place / "x.h5"])):
            for delay in (0.3, 0.6, 0.9):
                process = subprocess.Popen([judge.program, *map(os.fspath, arguments)], stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE)
                time.sleep(delay)
                process.send_signal(signal.SIGINT)
                start = time.monotonic()
                killer = threading.Timer(20, process.kill)
                killer.start()
                error = process.communicate()[1].decode("utf-8", "replace")
                killer.cancel()
                seconds = time.monotonic() - start
                ended = process.returncode in (0, 1, 130, -signal.SIGINT)  # before it had started
                if seconds > 1.5 or not ended or listing(place.folder) != before:
                    print(f"FAULT stop of {name} after {delay} s: {seconds:.2f} s, status {process.returncode}, {error[:300]}")
                    judge.faults.append(f"stop of {name}")
