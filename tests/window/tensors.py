#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""tensors.py PROGRAM: what cannot be run can be looked at. A checkpoint of an unknown family opens as tensors only, in
the window and on the command line, with words that say why; the numbers of its tensors are those in the file, also in
the figure of one, which the command line makes the same."""
import csv
import json
import math
import os
import struct
import subprocess
import sys

from offscreen import same_figure
from program import Failed, Program, Sent, exit_status

WEIGHT = [0.5, -1.25, 0.0, 3.0, float("nan"), 2.0]
BIAS = [1.0, 2.0, -2.0, 4.0]


def write_safetensors(path, tensors):
    """`tensors`: name to (shape, numbers), as float32."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        block = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(block)]}
        data += block
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"expected {what} {wanted!r}; found {found!r}")


def near(text, wanted):
    """A number as the window writes it, seven digits long."""
    found = float(text.replace("\u2212", "-"))
    if not math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-12):
        raise Failed(f"expected {wanted}; found {text}")


def numbers_of(window, wanted):
    """What the details say of the chosen tensor against its finite numbers and how many are not."""
    finite = [number for number in wanted if not math.isnan(number)]
    value = lambda line: window.find(f"value_1_{line}")["text"]
    near(value(0), min(finite))
    near(value(1), max(finite))
    near(value(2), sum(finite) / len(finite))
    near(value(4), math.sqrt(sum(number * number for number in finite)))
    expect("zeros", value(5).split()[0], str(sum(number == 0 for number in finite)))
    expect("NaN", value(6).split()[0], str(len(wanted) - len(finite)))


def choose(window, hands, end, name):
    """A tensor by the keyboard, and its numbers."""
    hands.key(end)
    window.until(f"the tensor {name}", lambda: window.find("tensor_name")["text"].replace("\u200b", "") == name)
    window.until("its numbers", lambda: window.find("value_1_0")["visible"])


def tell(program, home):
    odd, alone = os.path.join(home, "odd"), os.path.join(home, "alone.safetensors")
    os.makedirs(odd)
    tensors = {"block.0.weight": ([2, 3], WEIGHT), "block.1.bias": ([4], BIAS)}
    write_safetensors(os.path.join(odd, "model.safetensors"), tensors)
    with open(os.path.join(odd, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "nonesuch"}, file)
    write_safetensors(alone, {"only": ([4], BIAS)})

    told = subprocess.run([program, "info", odd, "--json"], capture_output=True, text=True, timeout=60, check=True)
    described = json.loads(told.stdout)
    expect("tensors of info", described["tensor_count"], 2)
    if not any("nonesuch" in problem for problem in described["problems"]):
        raise Failed(f"expected a problem that names the family; found {described['problems']}")

    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, (odd,))
    try:
        hands = Sent(window)
        window.until_state("the tensors in front", lambda state: state["front"] == "tensors")
        words = window.until("words about it", lambda: window.find("banner_text")["text"])
        for part in ("cannot be run", "nonesuch", "look at its tensors"):
            if part not in words:
                raise Failed(f"expected words with “{part}”; found “{words}”")
        window.quiet()  # the rows come after the words
        hands.click("tensors", (0.1, 0.055))  # the first row, where End and arrows begin
        choose(window, hands, "End", "block.1.bias")
        numbers_of(window, BIAS)
        choose(window, hands, "Up", "block.0.weight")
        numbers_of(window, WEIGHT)
        expect("the shape", window.find("value_0_0")["text"], "2 × 3")
        expect("the type", window.find("value_0_1")["text"], "F32")
        with open(same_figure(program, window, hands, home, [odd, "--figure", "tensors", "--tensor", "block.0.weight"],
                              "tensors"), encoding="utf-8") as file:
            figure = list(csv.DictReader(file))
        expect("the values in its bins", sum(float(row["value"]) for row in figure if row["quantity"] == "values"), 5)
        expect("NaN in the figure", [float(row["value"]) for row in figure if row["quantity"] == "nans"], [1])

        # A file that is named instead of a folder, and one that is cut short.
        hands.act("quit")
        window.ended()
        with open(alone, "r+b") as file:
            file.truncate(os.path.getsize(alone) - 4)
        window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, (alone,))
        state = window.until_state("the session and a problem", lambda now: now["problems"] == 1 and now["models"] == 1)
        expect("what is in front", state["front"], "tensors")
    finally:
        window.kill()


if __name__ == "__main__":
    sys.exit(exit_status("tensors", lambda home: tell(os.path.abspath(sys.argv[1]), home)))
