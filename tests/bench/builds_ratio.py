# SPDX-License-Identifier: GPL-3.0-or-later
"""Two builds of the program beside each other: is the newer one as fast, and are its results the same?

    python builds_ratio.py OLDER NEWER [--length 2048] [--pairs 9] [--threads 2]

OLDER and NEWER are build folders with bin/headscope and bin/bench_train_step. All in one run, the builds in turns,
medians over pairs of newer / older, with the smallest and the largest:

    plain, analysis      `headscope bench` of a random model of 12 layers, 768 wide (model_ratio.py)
    train                a step of bench_train_step, float32 and bfloat16

Then the analyses of both are compared number by number, and the losses of training step by step: equal or not.

Wants: numpy, h5py, torch, transformers (tests/oracle/requirements.txt), an idle machine. Exit status 1: results differ.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy
from model_ratio import bench, make_model
from train_ratio import Ours


def line_of(name, pairs):
    ratios = [newer / older for older, newer in pairs]
    older, newer = (statistics.median(times) for times in zip(*pairs))
    print(f"{name}: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f}); "
          f"{older * 1e3:.0f} ms, {newer * 1e3:.0f} ms", flush=True)


def in_turns(count, older, newer):
    """Pairs of seconds, each build first in half of them."""
    pairs = []
    for n in range(count):
        if n % 2 == 0:
            first = older()
            pairs.append((first, newer()))
        else:
            first = newer()
            pairs.append((older(), first))
    return pairs


def compare_passes(builds, folder, arguments):
    for what in ("plain", "analysis"):
        one = [lambda program=build / "bin/headscope": bench(program, folder, arguments.length, 1, what,
                                                             arguments.threads)[f"{what}_median"] for build in builds]
        line_of(what, in_turns(arguments.pairs, *one))


def compare_training(builds, arguments):
    """Returns whether all losses are equal."""
    equal = True
    for half in ("float32", "bfloat16"):
        programs = [Ours(build / "bin/bench_train_step", "--type", half, "--threads", arguments.threads)
                    for build in builds]
        losses = [[], []]

        def step(number, programs=programs, losses=losses):
            seconds, _, loss = programs[number].ask("step")
            losses[number].append(loss)
            return float(seconds)

        for number in (0, 1):
            step(number)
        line_of(f"train {half}", in_turns(2 * arguments.pairs, lambda: step(0), lambda: step(1)))
        equal = equal and losses[0] == losses[1]
        print(f"losses of {len(losses[0])} steps: {'equal' if losses[0] == losses[1] else losses}")
        for program in programs:
            program.process.stdin.close()
            program.process.wait()
    return equal


def numbers_of(path):
    """Every dataset of an analysis file by name."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def same(one, other):
    if one.dtype.kind == "f":
        return numpy.array_equal(one, other, equal_nan=True)
    return numpy.array_equal(one, other)


def compare_results(builds, model, vocabulary, folder, arguments):
    """Returns whether all numbers of the analyses are equal."""
    tokens = folder / "tokens.json"
    tokens.write_text(json.dumps([[i * 7919 % vocabulary for i in range(length)] for length in (1, 65, 700)]))
    equal = True
    for half in ("float32", "bfloat16"):
        files = []
        for number, build in enumerate(builds):
            files.append(folder / f"{half}-{number}.headscope.h5")
            subprocess.run([build / "bin/headscope", "analyze", model, "--tokens", tokens, "-o", files[-1], "--dtype", half,
                            "--threads", str(arguments.threads)], check=True, stdout=subprocess.DEVNULL)
        older, newer = (numbers_of(path) for path in files)
        differing = [name for name in older if name not in newer or not same(numpy.asarray(older[name]),
                                                                             numpy.asarray(newer[name]))]
        more = sorted(set(newer) - set(older))
        print(f"analysis {half}: {len(older)} datasets, {len(differing)} differ {differing[:9]}, {len(more)} are new")
        equal = equal and not differing
    return equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path)
    parser.add_argument("newer", type=Path)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    builds = [arguments.older, arguments.newer]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vocabulary = make_model(folder / "model", "llama")
        equal = compare_results(builds, folder / "model", vocabulary, folder, arguments)
        compare_passes(builds, folder / "model", arguments)
    equal = compare_training(builds, arguments) and equal
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
