# SPDX-License-Identifier: GPL-3.0-or-later
"""Acceptance: `headscope analyze` against transformers' eager mode in float64, on random checkpoints of every family;
against native_oracle.py on native ones of every mixer, and against fla_oracle.py on those of flash-linear-attention.

    python acceptance.py HEADSCOPE [--filter TEXT] [--seed N] [--keep FOLDER] [--verbose]
    python acceptance.py --self-check      # no program: the comparison itself, with a stand-in and broken stand-ins

For each case of random_models.py: logits, dense attention, maps, every indicator, histograms, extremes, moments,
outlier counts, column mass, thumbnails, loss and states must agree within the tolerances that comparison.py derives.
Prints one line a case; exits with 1 when anything disagreed.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path


import h5py
import numpy as np
import torch
from transformers.utils import logging as transformers_logging

import comparison
import indicators as oracle_indicators
import native_shapes
import oracle
import random_models
import random_native
import stored

IMPLICIT = ("entropy", "entropy_row_mean", "concentration")  # of a layer with a state
RECORD = ("attention", "states", "maps", "logits")   # the last one only of models with a head


def draw_tokens(case, vocabulary, seed):
    """Sequences with repeats, so that duplicate and induction scores are more than noise. None is special."""
    generator = np.random.default_rng(seed)
    result = []
    for length in case.lengths:
        tokens = generator.integers(2, vocabulary, length)
        tokens[length // 2 :] = tokens[: length - length // 2]
        result.append([int(token) for token in tokens])
    return result


def as_analysed(case, sequences):
    """The sequences that the file must hold: windows cut, tokens repeated."""
    if case.windows:
        sequences = [tokens[at : at + case.windows] for tokens in sequences for at in range(0, len(tokens), case.windows)]
    if case.repeat_token:
        sequences = [[tokens[0]] * len(tokens) for tokens in sequences]
    return sequences


def command_line(program, model, tokens, output, case, head, implicit):
    record = ",".join((RECORD if head else RECORD[:-1]) + (("implicit",) if implicit else ()))
    arguments = [program, "analyze", str(model), "--tokens", str(tokens), "-o", str(output), "--record", record]
    if case.windows:
        arguments += ["--length", str(case.windows), "--windows"]
    if case.layers:
        arguments += ["--layers", ",".join(map(str, case.layers))]
    if case.skip:
        arguments += ["--skip", ",".join(map(str, case.skip))]
    if case.repeat_token:
        arguments += ["--repeat-token"]
    return arguments + case.arguments


def compare(path, exact, tolerances, case, layers):
    """Everything in the analysis file against the float64 traces. Returns a Verdict."""
    verdict = comparison.Verdict()
    with h5py.File(path, "r") as file:
        verdict.same("complete", "file", file.attrs["complete"], 1)
        verdict.same("lengths", "file", file["tokens/length"][()], [len(trace.tokens) for trace in exact])
        if verdict.failures:
            return verdict
        verdict.number("edges", "file", stored.edges(file)[1:-1], oracle_indicators.histogram_edges()[1:-1],
                       4 * np.finfo(np.float64).eps * 1e4)
        sites_of_layer = {}
        for site, layer in enumerate(file["sites/layer"][()]):
            sites_of_layer.setdefault(int(layer), []).append(site)
        longest = max(len(trace.tokens) for trace in exact)
        row_step = case.row_step or oracle_indicators.default_row_step(longest)
        verdict.same("row_step", "file", file["logits/counts"].attrs["row_step"], row_step)
        kept = [layer for layer in range(layers) if layer not in case.skip and layer not in exact[0].bare]
        absent = [layer for layer in kept if layer not in sites_of_layer and (not case.layers or layer in case.layers)]
        verdict.same("sites", "file", absent, [])
        if absent:
            return verdict
        for s, trace in enumerate(exact):
            length = len(trace.tokens)
            verdict.same("ids", f"sequence {s}", file["tokens/ids"][s, :length], trace.tokens)
            places = [(layer, site) for layer in kept for site in sites_of_layer.get(layer, [None])]
            for n, (layer, site) in enumerate(places):
                if case.layers and layer not in case.layers:
                    continue
                place = f"sequence {s} (length {length}) layer {layer}"
                check_layer(verdict, file, place, s, site, trace, n, tolerances, row_step)
            verdict.same("empty_beyond", f"sequence {s}", stored.beyond_is_empty(file, s, length), True)
            check_unmeasured(verdict, file, s, sites_of_layer, case, layers)
            check_sequence(verdict, file, s, trace, tolerances, bool(case.skip or case.layers))
    return verdict


def check_layer(verdict, file, place, s, site_index, trace, n, tolerances, row_step):
    site, length = trace.sites[n], len(trace.tokens)
    if site.weights is None:
        check_without_matrix(verdict, file, place, s, site_index, site.implicit is not None)
        if site.implicit is not None:
            check_implicit(verdict, file, place, s, site_index, site.implicit, tolerances.implicit[n])
        return
    heads, key_heads = site.weights.shape[0], site.states["k"].shape[0]
    delta = tolerances.score[n]
    measured = stored.read_site(file, s, site_index, heads, key_heads, length)
    if "attention" not in measured:
        verdict.fail("attention", f"{place}: absent")
    comparison.check_site(verdict, place, site, measured, trace.tokens, trace.causal, delta, row_step)
    comparison.check_states(verdict, place, site, measured, tolerances.state[n])
    if f"maps/{s}/{site_index}" in file:
        comparison.check_map(verdict, place, site, stored.read_map(file, s, site_index), delta)
    elif "maps" in file:
        verdict.fail("map", f"{place}: absent")


def check_implicit(verdict, file, place, s, site_index, weights, delta):
    heads, length = weights.shape[:2]
    name = f"implicit_attention/{s}/{site_index}"
    if name not in file:
        verdict.fail("implicit_attention", f"{place}: absent")
        return
    measured = {key: file[f"indicators/{key}"][s, site_index, :heads] for key in IMPLICIT}
    measured["implicit"] = file[name][:heads, :length, :length]
    comparison.check_implicit(verdict, place, weights, measured, delta)


def check_fraction(verdict, file, place, s, site_index):
    """Of a linear branch of NAtS-L: the share of each head's chunks that are softmax's."""
    types = file["token_types"][s, site_index]
    heads = types.max(1) >= 0
    expected = np.where(heads, (types == 0).sum(1) / np.maximum((types >= 0).sum(1), 1), np.nan)
    verdict.number("softmax_fraction", place, file["indicators/softmax_fraction"][s, site_index], expected, 1e-12)


def check_without_matrix(verdict, file, place, s, site_index, implicit):
    """A layer that mixes no tokens: no number of it, and no part of a matrix. One with a state has those of its implicit
    matrix."""
    verdict.same("no_matrix", place, file["sites/has_matrix"][site_index], 0)
    for group in ("indicators",) if implicit else ("indicators", "thumbnails"):  # its matrix is recorded here
        for name, values in file[group].items():
            if implicit and name in IMPLICIT:
                continue
            if name == "softmax_fraction" and file["token_types"][s, site_index].max() >= 0:
                check_fraction(verdict, file, place, s, site_index)
                continue
            verdict.same("no_matrix", f"{place} {group}/{name}", np.isnan(values[s, site_index]).all(), True)
    for name in ("minimum", "maximum", "mean", "variance"):
        verdict.same("no_matrix", f"{place} {name}", np.isnan(file[f"logits/{name}"][s, site_index]).all(), True)
    verdict.same("no_matrix", f"{place} counts", file["logits/counts"][s, site_index].any(), False)
    for group in ("attention", "maps"):
        verdict.same("no_matrix", f"{place} {group}", f"{group}/{s}/{site_index}" in file, False)


def check_unmeasured(verdict, file, s, sites_of_layer, case, layers):
    """Layers that were skipped or not asked for hold NaN, if the file has a place for them at all."""
    for layer in range(layers):
        asked = (not case.layers or layer in case.layers) and layer not in case.skip
        for site in sites_of_layer.get(layer, []) if not asked else []:
            values = file["indicators/entropy"][s, site]
            verdict.same("unmeasured", f"sequence {s} layer {layer}", np.isnan(values).all(), True)


def check_sequence(verdict, file, s, trace, tolerances, some_layers):
    place, length = f"sequence {s} (length {len(trace.tokens)})", len(trace.tokens)
    if not some_layers:
        for boundary, hidden in enumerate(trace.hidden):
            comparison.check_vectors(
                verdict, "hidden", f"{place} boundary {boundary}", file["states/hidden_norm"][s, boundary, :length],
                file["states/hidden_variance"][s, boundary, :length], oracle_indicators.vector_statistics(hidden),
                hidden.shape[-1], tolerances.hidden[boundary])
    logits = file["output/logits"][s, :length] if "output/logits" in file else None
    loss = file["output/loss"][s, :length] if "output/loss" in file else None
    comparison.check_output(verdict, place, trace, loss, logits, tolerances.logits)


def traces(folder, sequences, skip=()):
    pairs = []
    for precise in (True, False):
        model = oracle.load(folder, precise, skip)
        pairs.append([oracle.run(model, tokens, precise) for tokens in sequences])
    return pairs


def moved(folder, sequences, skip=(), runs=3):
    """Float32 traces of a native model whose weights are off by up to a unit of rounding: one run alone may be lucky where
    roundings grow (loud scores, states that learn)."""
    for salt in range(runs):
        model, generator = oracle.load(folder, False, skip), torch.Generator().manual_seed(salt)
        for name, tensor in model.tensors.items():
            if tensor.dtype == torch.float32:
                shift = 2 * torch.rand(tensor.shape, generator=generator, dtype=torch.float64) - 1
                model.tensors[name] = (tensor.double() * (1 + comparison.EPSILON * shift)).float()
        yield [oracle.run(model, tokens, False) for tokens in sequences]


def analyse(program, model, sequences, output, case, head=True, implicit=False):
    """Runs the program; `head`: the model has one; `implicit`: and layers with a state. None, or a Verdict that says how
    it failed."""
    tokens = output.with_suffix(".json")
    tokens.write_text(json.dumps(sequences))
    command = command_line(program, model, tokens, output, case, head, implicit)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        ended = "no end within 300 s"
    else:
        if done.returncode == 0:
            return None
        ended = f"exit {done.returncode}: {done.stderr.strip()[-2000:]}"
    verdict = comparison.Verdict()
    verdict.fail("run", f"{' '.join(command)}\n    {ended}")
    return verdict


def run_case(case, arguments, folder):
    model = folder / case.name
    case.make(model, arguments.seed)
    config = json.loads((model / "config.json").read_text())
    config = config.get("text_config", config)
    layers = next((config[key] for key in ("num_hidden_layers", "n_layer", "n_layers") if key in config), None)
    if layers is None:  # Nemotron-H counts them by their kinds
        layers = len(config.get("layers_block_type") or config["hybrid_override_pattern"])
    layers *= config.get("inner_group_num", 1)
    hashed = config["model_type"] == "headscope" and config.get("embedding", native_shapes.TABLE) != native_shapes.TABLE
    drawn = (random_native.draw_words(config, case.lengths, arguments.seed) if hashed
             else draw_tokens(case, config["vocab_size"], arguments.seed))
    exact, single = traces(model, as_analysed(case, drawn), case.skip)
    tolerances = comparison.Tolerances(exact, single)
    output = folder / f"{case.name}.headscope.h5"
    if arguments.self_check:
        if case.row_step or case.layers or case.skip or any(site.weights is None for site in exact[0].sites):
            return None
        stored.write_stand_in(output, single)
    elif failed := analyse(arguments.headscope, model, drawn, output, case, exact[0].logits is not None,
                           any(site.implicit is not None for site in exact[0].sites)):
        return failed
    verdict = compare(output, exact, tolerances, case, layers)
    if verdict.failures and config["model_type"] == "headscope":
        for one in moved(model, as_analysed(case, drawn), case.skip):
            tolerances.widen(comparison.Tolerances(exact, one))
        verdict = compare(output, exact, tolerances, case, layers)
    if arguments.self_check and case.name in ("gpt2", "llama", "bert-masked-lm"):
        check_that_it_can_fail(verdict, output, exact, tolerances, case, layers)
    return verdict


def check_that_it_can_fail(verdict, path, exact, tolerances, case, layers):
    """Each dataset in turn is moved by one part in a hundred: the comparison must notice."""
    with h5py.File(path, "r") as file:
        names = []
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    for name in names:
        with h5py.File(path, "r+") as file:
            before = file[name][()]
            if name == "sites/heads" or not np.any(np.nan_to_num(before)):
                continue
            shift = 0.01 if np.nanmax(np.abs(before)) < 1e-6 else 0.0   # sparsity: rounding only
            file[name][...] = before * 1.01 + shift if before.dtype.kind == "f" else before + 1
        noticed = bool(compare(path, exact, tolerances, case, layers).failures)
        with h5py.File(path, "r+") as file:
            file[name][...] = before
        if not noticed:
            verdict.fail("can_fail", f"{name}: a change of 1 % went unnoticed")


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope", nargs="?", help="path of the program")
    parser.add_argument("--filter", default="", help="only cases whose name contains this")
    parser.add_argument("--every", type=int, default=1, help="of these every Nth: a sample of all families")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="folder for checkpoints and analysis files (default: a temporary one)")
    parser.add_argument("--verbose", action="store_true", help="the worst of every quantity, not of every case")
    parser.add_argument("--self-check", action="store_true")
    arguments = parser.parse_args(argv)
    if not arguments.headscope and not arguments.self_check:
        parser.error("the path of the program is needed, unless --self-check")
    return arguments


def report(case, verdict, seconds, verbose):
    if verdict is None:
        return
    worst = max(verdict.worst, key=verdict.worst.get)
    state = "FAILED" if verdict.failures else "ok"
    print(f"{case.name:40} {state:7} {verdict.worst[worst]:9.3f}  {worst:18} {seconds:6.1f} s", flush=True)
    if verbose:
        for name in sorted(verdict.worst):
            print(f"    {name:24} {verdict.worst[name]:9.3f} of tolerance, error {verdict.error[name]:.2e}")
    for failure in verdict.failures[: None if verbose else 6]:
        print(f"    {failure}")
    if len(verdict.failures) > 6 and not verbose:
        print(f"    ... and {len(verdict.failures) - 6} more")


def quiet():
    """No progress bars, no hub, and one thread: the machine is the program's."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    torch.set_num_threads(1)


def main(argv=None):
    arguments = parse(argv)
    quiet()
    failed = count = 0
    print(f"seed {arguments.seed}\n{'case':40} {'result':7} {'worst':>9}  {'quantity':18} {'time':>8}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        chosen = (case for case in random_models.cases() if arguments.filter in case.name)
        for case in itertools.islice(chosen, 0, None, arguments.every):
            began = time.monotonic()
            verdict = run_case(case, arguments, folder)
            report(case, verdict, time.monotonic() - began, arguments.verbose)
            count += 1
            failed += bool(verdict and verdict.failures)
    print(f"{count - failed} of {count} cases agree with float64")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
