# SPDX-License-Identifier: GPL-3.0-or-later
"""Seconds in which a Llama of 8B shape opens: in the window, worked from outside, and in `info`.

    python opening_time.py HEADSCOPE SAMPLE [--times 5] [--check]

The checkpoint is 16 GB of holes, which take no space on the disk, with the tokenizer of SAMPLE
(resources/samples/llama-kjv-shakespeare). In the window: from dropping its folder until it is among the models, and until
nothing is left to read; each time in a window of its own. `info`: the whole process. Prints the medians, and the slowest.
--check makes exit status 1 of a median above 1 s.

Wants: an idle machine.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path += [str(TESTS / "hostile"), str(TESTS / "window")]
from memory_limits import llama  # noqa: E402
from program import Failed, Program, Sent, exit_status  # noqa: E402

TARGET = 1.0
SHAPE = {"hidden": 4096, "inner": 14336, "layers": 32, "heads": 32, "groups": 8, "words": 128256, "head": 128}


def seconds_until(window, begin, what, holds):
    while not holds(window.state()):
        if time.monotonic() > begin + Program.PATIENCE:
            raise Failed(f"expected {what} within {Program.PATIENCE:.0f} s; the state is {window.state()}")
    return time.monotonic() - begin


def in_window(program, home, model):
    """Seconds until the model is listed, and until nothing is read."""
    os.makedirs(home)
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"})
    try:
        window.until_visible("main_window")
        window.quiet()
        begin = time.monotonic()
        Sent(window).drop(str(model), "main_window")
        listed = seconds_until(window, begin, "the model", lambda state: state["models"] == 1)
        done = seconds_until(window, begin, "nothing to be read", lambda state: not state["busy"])
        if window.state()["problems"]:
            raise Failed("expected the model to open without a problem")
        window.stalls()
    finally:
        window.kill()
    return listed, done


def in_info(program, model):
    begin = time.monotonic()
    done = subprocess.run([program, "info", str(model)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(f"info: {done.stderr.strip()}")
    return time.monotonic() - begin


def measure(given, home):
    program = os.path.abspath(given.headscope)
    model = llama(Path(home) / "8b", given.sample.resolve(), **SHAPE)
    times = [(*in_window(program, os.path.join(home, f"home-{i}"), model), in_info(program, model))
             for i in range(given.times)]
    medians = []
    for what, seconds in zip(("in the window, listed", "in the window, all read", "info"), zip(*times)):
        medians.append(statistics.median(seconds))
        print(f"{what}: {medians[-1]:.2f} s, at most {max(seconds):.2f} s")
    if given.check and max(medians) > TARGET:
        raise Failed(f"expected medians of at most {TARGET:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("sample", type=Path)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    return exit_status("opening_time", lambda home: measure(given, home))


if __name__ == "__main__":
    sys.exit(main())
