# SPDX-License-Identifier: GPL-3.0-or-later
"""Models on the GPU against the processor: analyses, an answer, training. For check.py; standard library only."""

import csv
import io
import json
import re
import struct
from pathlib import Path

from differences import Comparison, bfloat16_tolerance, float32_tolerance
from steps import Failed

EMULATED_LENGTHS = [1, 21]
LENGTHS = [1, 21, 65, 200, 1000]
TIMES = {"output", "seconds"}  # of an analysis's JSON, differ between runs
PROMPT = "In the beginning"

# The emulator is too slow for all: attention, its gradients and a recurrence.
EMULATED_MIXERS = ["standard", "gated_deltanet"]
# Mixers that read the whole text, which no decoder has.
ENCODER_MIXERS = ["fnet", "linear"]
PRESET = {"layers": 2, "widest": 128}  # of nano-100k
JOB = """[model]
preset = "nano-100k"
mixer = "{mixer}"
stack = "{stack}"
max_position_embeddings = {length}
[objective]
kind = "{objective}"
[data]
text = ["{text}"]
sequence_length = {length}
validation = 0.2
[training]
steps = 2
batch = 2
[optimizer]
learning_rate = 1e-3
[schedule]
warmup_steps = 0
[evaluation]
every = 2
batches = 1
[snapshots]
every = 0
[probe]
every = 0
[sample]
every = 0
"""
# The journal of a run (docs/file-formats.md): a header, and frames of marker, type, zero, length and checksum. A step
# has time, step, tokens, loss, rate and norm of the gradients.
JOURNAL_HEADER, FRAME, MARKER, STEP_TYPE, STEP = 16, "<IHHII", 0xFF4E5648, 2, "<dqqddd"


def random_numbers(state):
    """Pseudo-random 16-bit numbers."""
    while True:
        state = (state * 1103515245 + 12345) % 2**32
        yield state >> 16


def write_tokens(path, lengths):
    """Texts of ids of the sample's vocabulary."""
    numbers = random_numbers(7)
    path.write_text(json.dumps([[2 + next(numbers) % 2000 for _ in range(length)] for length in lengths]),
                    encoding="utf-8")


def write_text(path):
    """Words of a small language, enough for a few steps."""
    numbers = random_numbers(11)
    words = ["".join(chr(97 + next(numbers) % 26) for _ in range(1 + next(numbers) % 7)) for _ in range(200)]
    path.write_text(" ".join(words[next(numbers) % 200] for _ in range(4000)) + "\n", encoding="utf-8")


class Sample:
    """The checkpoint, and the texts that it reads."""

    def __init__(self, bundle, path, folder):
        self.path, self.folder, self.tokens = path, folder, folder / "tokens.json"
        self.lengths = EMULATED_LENGTHS if bundle.emulated else LENGTHS
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
        self.layers, self.widest = config["num_hidden_layers"], config["intermediate_size"]
        write_tokens(self.tokens, self.lengths)

    def figures(self, dtype):
        """(figure, its sequence, length of the text) of the compared CSV files; in bfloat16 of the last text alone."""
        yield "indicators", "all", max(self.lengths)
        for sequence, length in list(enumerate(self.lengths))[-1 if dtype == "bfloat16" else 0:]:
            for figure in ["indicators", "column-mass"] + (["loss"] if length > 1 else []):
                yield figure, sequence, length

    def tolerance(self, length):
        return float32_tolerance(max(length, self.widest), self.layers)


class Analysis:
    """An analysis of the sample: its summary and CSV files, numbers with all digits."""

    def __init__(self, bundle, sample, name, on_gpu, dtype="float32"):
        output = sample.folder / f"{name}.headscope.h5"
        arguments = ["analyze", sample.path, "--tokens", sample.tokens, "--dtype", dtype, "--json", "-o", output]
        summary = json.loads(bundle.headscope(arguments, on_gpu))
        self.messages, self.device, self.kernels = bundle.messages, summary["device"], summary["kernels"]
        self.part = summary["settings"].get("on_device")
        if on_gpu and self.kernels.split()[0] != bundle.backend:
            raise Failed(f"expected an analysis by {bundle.backend}; found one by {self.kernels}")
        self.texts = {"summary": json.dumps({k: v for k, v in summary.items() if k not in TIMES}, sort_keys=True)}
        self.tables = {}
        for figure, sequence, length in sample.figures(dtype):
            table, path = f"{figure} of text {sequence}", output.with_suffix(f".{figure}.{sequence}.csv")
            bundle.run("headscope", ["export", output, "--figure", figure, "--sequence", sequence, "-o", path],
                       longest=60)
            self.texts[table] = path.read_text(encoding="utf-8")
            self.tables[table] = (length, list(csv.reader(io.StringIO(self.texts[table]))))


def check_part(bundle, analysis, operators):
    """The whole model ran on the card, unless single operators were asked for; the emulator is no device."""
    expected = [None] if bundle.emulated else ["model", "operators"] if operators else ["model"]
    if analysis.part not in expected:
        reason = next((line for line in analysis.messages.splitlines() if "--device" in line), "no reason")
        raise Failed(f"expected on_device {expected[0]}; found {analysis.part}: {reason}")


def compare_analyses(found, expected, tolerance):
    comparison = Comparison()
    for name, (length, table) in expected.tables.items():
        comparison.add_tables(name, found.tables[name][1], table, tolerance(length))
    return comparison.result()


def analyses(bundle, sample, operators):
    """Rows of the table."""
    first = {}

    def analyze():
        analysis = first["gpu"] = Analysis(bundle, sample, "gpu", True)
        check_part(bundle, analysis, operators)
        return (f"{analysis.device}, on_device {analysis.part or 'nothing'}, kernels {analysis.kernels}, texts of "
                f"{', '.join(map(str, sample.lengths))} tokens")

    def made():
        if not first:
            raise Failed("no analysis to compare with")
        return first["gpu"]

    def repeat():
        expected = made().texts
        again = Analysis(bundle, sample, "again", True)
        changed = [name for name, text in again.texts.items() if text != expected[name]]
        if changed:
            raise Failed(f"different bits of {', '.join(changed)}")
        return f"{sum(map(len, again.texts.values()))} equal bytes"

    def compare():
        return compare_analyses(made(), Analysis(bundle, sample, "cpu", False), sample.tolerance)

    def compare_bfloat16():
        found = Analysis(bundle, sample, "gpu-bfloat16", True, "bfloat16")
        expected = Analysis(bundle, sample, "cpu-bfloat16", False, "bfloat16")
        compared = compare_analyses(found, expected, lambda length: bfloat16_tolerance(sample.layers))
        return f"kernels {found.kernels}, {compared}"

    yield "analysis of the sample", analyze
    yield "the same twice: equal bits", repeat
    yield f"the same on the processor ({processor_name()})", compare
    yield "bfloat16, on both", compare_bfloat16


def processor_name():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else "unknown"


def generation(bundle, sample):
    """The row of a greedy answer."""
    def generate():
        arguments = ["generate", sample.path, "--prompt", PROMPT, "--tokens", 4 if bundle.emulated else 16, "--json"]
        found, expected = (json.loads(bundle.headscope(arguments, on_gpu, 60))["ids"] for on_gpu in (True, False))
        if found != expected or not found:
            raise Failed(f"expected the tokens {expected}; found {found}")
        return f"{len(found)} equal tokens"

    yield "greedy tokens, on both", generate


def steps_of(run):
    """(loss, norm of the gradients) of each step of a run's folder."""
    data, at, steps = (run / "events.log").read_bytes(), JOURNAL_HEADER, []
    while at < len(data):
        marker, kind, _, length, _ = struct.unpack_from(FRAME, data, at)
        if marker != MARKER:
            raise ValueError(f"no frame at byte {at} of {run.name}/events.log")
        at += struct.calcsize(FRAME)
        if kind == STEP_TYPE:
            steps.append(struct.unpack_from(STEP, data, at)[3::2])
        at += length
    return steps


class Training:
    """Two steps of a tiny model with one mixer."""

    def __init__(self, bundle, folder, mixer, length, on_gpu):
        run, job = folder / f"{mixer}-{'gpu' if on_gpu else 'cpu'}", folder / f"{mixer}.toml"
        stack, objective = ("encoder", "masked") if mixer in ENCODER_MIXERS else ("decoder", "next_token")
        job.write_text(JOB.format(mixer=mixer, stack=stack, objective=objective, length=length,
                                  text=folder / "words.txt"), encoding="utf-8")
        outcome = json.loads(bundle.headscope(["train", job, "-o", run, "--json"], on_gpu, 30))
        self.steps, self.validation = steps_of(run), outcome["validation"]
        if len(self.steps) != 2:
            raise Failed(f"expected 2 steps; found {len(self.steps)}")


def compare_training(found, expected, length):
    """AdamW divides each gradient by its size: a rounding where it is near 0 moves a weight by up to the rate."""
    exact = float32_tolerance(max(2 * length, PRESET["widest"]), PRESET["layers"])
    comparison = Comparison()
    pairs = [("loss of step 1", exact, 0, 0), ("gradient of step 1", 20 * exact, 0, 1),
             ("loss of step 2", 3e-4, 1, 0), ("gradient of step 2", 1e-2, 1, 1)]
    numbers = [(name, allowed, found.steps[step][field], expected.steps[step][field])
               for name, allowed, step, field in pairs]
    numbers.append(("validation", 3e-4, found.validation, expected.validation))
    for name, allowed, x, y in numbers:
        if not abs(x - y) < float("inf"):
            raise Failed(f"{name}: expected {y}; found {x}")
        comparison.add(name, abs(x - y) / abs(y), allowed)
    return (f"losses {expected.steps[0][0]:.4f}, {expected.steps[1][0]:.4f}, {expected.validation:.4f}; "
            f"{comparison.result()}")


def trainings(bundle, folder):
    """Rows of two training steps of each mixer."""
    length, names = (20 if bundle.emulated else 130), []

    def list_mixers():
        known = bundle.names("mixers")
        names.extend(name for name in known if not bundle.emulated or name in EMULATED_MIXERS)
        write_text(folder / "words.txt")
        if not names:
            raise Failed("no mixers")
        return f"{len(names)} of {len(known)}"

    def train(mixer):
        found, expected = (Training(bundle, folder, mixer, length, on_gpu) for on_gpu in (True, False))
        return compare_training(found, expected, length)

    yield "mixers to train", list_mixers
    for mixer in names:
        yield f"2 steps of {mixer}, on both", lambda name=mixer: train(name)
