# SPDX-License-Identifier: GPL-3.0-or-later
"""Acceptance of encoder-decoders: `headscope analyze` on random checkpoints against transformers in float64, and on
native ones against native_oracle.py.

    python encoder_decoder_acceptance.py HEADSCOPE [--filter TEXT] [--seed N] [--keep FOLDER] [--verbose]

As acceptance.py, for models with two towers: the encoder's sites come first, then each decoder layer's self- and
cross-attention; /streams/target holds what the decoder read, and /output is about it. Logits, dense attention, maps,
every indicator, histograms, thumbnails, states and loss must agree within the tolerances of comparison.py.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import types
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import torch
import transformers

import acceptance
import comparison
import indicators as oracle_indicators
import native_oracle
import oracle
import stored
from random_encoder_decoders import cases


@dataclass
class Pair:
    """One sequence: what comparison.Tolerances and check_output want of a trace. `kinds`: (tower, kind) of each site."""

    source: list
    tokens: list
    sites: list
    kinds: list
    hidden: list
    logits: np.ndarray
    causal: bool = True


def is_t5(model):
    return model.config.model_type in ("t5", "umt5")


def attentions(model):
    """Every attention in the order of the sites: (tower, kind, {q, k, v: module}, heads)."""
    listed = []
    if is_t5(model):
        names = dict(q="q", k="k", v="v")
        for block in model.encoder.block:
            listed.append(("encoder", "self", block.layer[0].SelfAttention))
        for block in model.decoder.block:
            listed += [("decoder", "self", block.layer[0].SelfAttention),
                       ("decoder", "cross", block.layer[1].EncDecAttention)]
    else:
        names = dict(q="q_proj", k="k_proj", v="v_proj")
        for layer in model.model.encoder.layers:
            listed.append(("encoder", "self", layer.self_attn))
        for layer in model.model.decoder.layers:
            listed += [("decoder", "self", layer.self_attn), ("decoder", "cross", layer.encoder_attn)]
    heads = "n_heads" if is_t5(model) else "num_heads"
    return [(tower, kind, {part: getattr(module, name) for part, name in names.items()}, getattr(module, heads))
            for tower, kind, module in listed]


def towers(model):
    if is_t5(model):
        return {"encoder": model.encoder.block, "decoder": model.decoder.block}
    return {"encoder": model.model.encoder.layers, "decoder": model.model.decoder.layers}


def load(folder, precise):
    if json.loads((Path(folder) / "config.json").read_text())["model_type"] == "headscope":
        return native_oracle.load(folder, precise)
    dtype = torch.float64 if precise else torch.float32
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()
    if precise:
        for module in model.modules():
            if type(module).__name__ in ("T5LayerNorm", "UMT5LayerNorm"):
                module.forward = types.MethodType(oracle.precise_norm, module)
    return model


def native_kinds(model):
    first = model.config["num_encoder_layers"]
    return [("encoder", "self")] * first + [("decoder", "self"), ("decoder", "cross")] * (len(model.mixers) - first)


def unchanged(module, inputs, output):
    return (inputs[0], *output[1:]) if isinstance(output, tuple) else inputs[0]


def run(model, source, target, skip):
    """The trace of one pair. Layers in `skip` run, for T5's later ones read the first one's bias, and change nothing."""
    if isinstance(model, native_oracle.Native):
        trace = native_oracle.run(model, source, model.type == torch.float64, target)
        return Pair(source, target, trace.sites, native_kinds(model), trace.hidden, trace.logits)
    sites, states, boundaries, handles = [], [], {"encoder": [], "decoder": []}, []
    listed = attentions(model)

    def record(scores, weights):
        allowed = (scores[0] > torch.finfo(scores.dtype).min / 2).numpy()
        sites.append(oracle.Site(scores.double().numpy(), weights.double().numpy(), allowed))

    for tower, kind, modules, heads in listed:
        kept = {}
        states.append(kept)
        for part, module in modules.items():
            def keep(module, inputs, output, kept=kept, part=part, heads=heads):
                kept[part] = output[0].detach().unflatten(-1, (heads, -1)).transpose(0, 1).double().numpy()
            handles.append(module.register_forward_hook(keep))
    every = [block for blocks in towers(model).values() for block in blocks]
    handles += [every[layer].register_forward_hook(unchanged) for layer in skip]
    for tower, blocks in towers(model).items():
        for number, block in enumerate(blocks):
            def before(module, inputs, tower=tower, number=number):
                if number == 0:
                    boundaries[tower].append(inputs[0][0].detach().double().numpy())

            def after(module, inputs, output, tower=tower):
                value = output[0] if isinstance(output, tuple) else output
                boundaries[tower].append(value[0].detach().double().numpy())
            handles.append(block.register_forward_pre_hook(before))
            handles.append(block.register_forward_hook(after))
    with torch.no_grad(), oracle.watched_softmax(record, model.dtype == torch.float64):
        output = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target]), use_cache=False)
    for handle in handles:
        handle.remove()
    for site, kept in zip(sites, states, strict=True):
        site.states = kept
    kinds = [(tower, kind) for tower, kind, _, _ in listed]
    return Pair(source, target, sites, kinds, boundaries["encoder"] + boundaries["decoder"][1:],
                output.logits[0].double().numpy())


def sequences_of(case, config, seed):
    generator = np.random.default_rng(seed)

    def draw(length, vocabulary):
        tokens = generator.integers(3, vocabulary, length)
        tokens[length // 2:] = tokens[: length - length // 2]
        return [int(token) for token in tokens]
    of_target = config.get("decoder_vocab_size", config["vocab_size"])
    return ([draw(n, config["vocab_size"]) for n in case.sources], [draw(n, of_target) for n in case.targets])


def analyse(program, folder, sources, targets, output, case):
    arguments = [program, "analyze", str(folder), "-o", str(output), "--record", ",".join(acceptance.RECORD)]
    for option, lists in (("--tokens", sources), ("--target-tokens", targets)):
        if lists:
            path = output.with_suffix(f".{option.strip('-')}.json")
            path.write_text(json.dumps(lists))
            arguments += [option, str(path)]
    for option, layers in (("--layers", case.layers), ("--skip", case.skip)):
        if layers:
            arguments += [option, ",".join(map(str, layers))]
    done = subprocess.run(arguments + case.arguments, capture_output=True, text=True, timeout=300)
    verdict = comparison.Verdict()
    if done.returncode != 0:
        verdict.fail("run", f"{' '.join(arguments)}\n    exit {done.returncode}: {done.stderr.strip()[-2000:]}")
    return verdict


def check_map(verdict, file, place, site, path, delta):
    group = file[path]
    query, key = group["query"][()].astype(np.float64), group["key"][()].astype(np.float64)
    key = key.repeat(len(query) // len(key), 0)
    scores = float(group.attrs["scale"]) * query @ key.transpose(0, 2, 1)
    if "distance_bias" in group:
        table = group["distance_bias"][()].astype(np.float64)
        relative = np.arange(scores.shape[2])[None, :] - np.arange(scores.shape[1])[:, None]
        scores = scores + table[:, np.clip(relative + int(group.attrs["bias_origin"]), 0, table.shape[1] - 1)]
    verdict.number("map_scores", place, np.where(site.allowed, scores, 0), np.where(site.allowed, site.scores, 0), delta)
    constants = oracle_indicators.row_constants(site.scores, site.allowed)
    verdict.number("map_row_constant", place, group["row_constant"][()], constants,
                   delta + comparison.FLOOR * comparison.EPSILON * np.maximum(np.abs(constants), 1))


def read_site(file, s, n, heads, key_heads, queries, keys):
    """stored.read_site for a matrix that need not be square."""
    values = stored.read_site(file, s, n, heads, key_heads, max(queries, keys))
    size = oracle_indicators.THUMBNAIL_SIZE
    values["column_mass"] = file["indicators/column_mass"][s, n, :heads, :keys]
    for which in ("mean", "maximum"):
        values[f"thumbnail_{which}"] = file[f"thumbnails/{which}"][s, n, :heads, : min(size, queries),
                                                                   : min(size, keys)].astype(np.float64)
    values["attention"] = file[f"attention/{s}/{n}"][()]
    for part, own, length in (("q", heads, queries), ("k", key_heads, keys), ("v", key_heads, keys)):
        for what in ("norm", "variance"):
            values[f"{part}_{what}"] = file[f"states/{part}_{what}"][s, n, :own, :length]
    return values


def beyond_is_empty(file, s, n, queries, keys):
    size = oracle_indicators.THUMBNAIL_SIZE
    parts = [file["indicators/column_mass"][s, n, :, keys:], file["states/q_norm"][s, n, :, queries:],
             file["states/k_norm"][s, n, :, keys:], file["thumbnails/mean"][s, n, :, min(size, queries):],
             file["thumbnails/maximum"][s, n, :, :, min(size, keys):]]
    return all(np.isnan(part).all() for part in parts)


def compare(path, exact, tolerances, case, layer_of_site):
    verdict = comparison.Verdict()
    with h5py.File(path, "r") as file:
        verdict.same("complete", "file", file.attrs["complete"], 1)
        verdict.same("layers", "file", file["sites/layer"][()], layer_of_site)
        verdict.same("lengths", "file", file["tokens/length"][()], [len(pair.source) for pair in exact])
        verdict.same("target lengths", "file", file["streams/target/length"][()], [len(pair.tokens) for pair in exact])
        for column in ("stack", "kind"):
            expected = [kind[column == "kind"] for kind in exact[0].kinds]
            verdict.same(column, "file", list(file[f"sites/{column}"].asstr()[()]), expected)
        streams = [("tokens", "tokens") if tower == "encoder" else
                   ("target", "tokens" if kind == "cross" else "target") for tower, kind in exact[0].kinds]
        for at, column in enumerate(("query_stream", "key_stream")):
            verdict.same(column, "file", list(file[f"sites/{column}"].asstr()[()]), [pair[at] for pair in streams])
        if verdict.failures:
            return verdict
        longest = max(max(len(pair.source), len(pair.tokens)) for pair in exact)
        row_step = oracle_indicators.default_row_step(longest)
        for s, pair in enumerate(exact):
            place = f"sequence {s} ({len(pair.source)} to {len(pair.tokens)})"
            verdict.same("ids", place, file["tokens/ids"][s, : len(pair.source)], pair.source)
            verdict.same("target ids", place, file["streams/target/ids"][s, : len(pair.tokens)], pair.tokens)
            for n, site in enumerate(pair.sites):
                layer = layer_of_site[n]
                if (case.layers and layer not in case.layers) or layer in case.skip:
                    verdict.same("unmeasured", place, np.isnan(file["indicators/entropy"][s, n]).all(), True)
                    continue
                check_site(verdict, file, f"{place} site {n}", s, n, pair, site, tolerances, row_step)
            check_sequence(verdict, file, place, s, pair, tolerances, case)
    return verdict


def check_site(verdict, file, place, s, n, pair, site, tolerances, row_step):
    tower, kind = pair.kinds[n]
    heads, queries, keys = site.weights.shape
    measured = read_site(file, s, n, heads, len(site.states["k"]), queries, keys)
    cross = kind == "cross"
    tokens = None if cross else pair.source if tower == "encoder" else pair.tokens
    comparison.check_site(verdict, place, site, measured, tokens, tower == "decoder" and not cross,
                          tolerances.score[n], row_step, cross=cross)
    comparison.check_states(verdict, place, site, measured, tolerances.state[n])
    check_map(verdict, file, place, site, f"maps/{s}/{n}", tolerances.score[n])
    verdict.same("empty_beyond", place, beyond_is_empty(file, s, n, queries, keys), True)


def check_sequence(verdict, file, place, s, pair, tolerances, case):
    if not case.layers and not case.skip:
        verdict.same("boundaries", place, file["states/hidden_norm"].shape[1], len(pair.hidden))
        for boundary, hidden in enumerate(pair.hidden):
            comparison.check_vectors(
                verdict, "hidden", f"{place} boundary {boundary}",
                file["states/hidden_norm"][s, boundary, : len(hidden)],
                file["states/hidden_variance"][s, boundary, : len(hidden)],
                oracle_indicators.vector_statistics(hidden), hidden.shape[-1], tolerances.hidden[boundary])
    length = len(pair.tokens)
    comparison.check_output(verdict, place, pair, file["output/loss"][s, :length], file["output/logits"][s, :length],
                            tolerances.logits)
    verdict.same("empty_beyond", place, bool(np.isnan(file["output/loss"][s, length:]).all()
                                             and np.isnan(file["output/logits"][s, length:]).all()), True)


def run_case(case, arguments, folder):
    model_folder = folder / case.name
    case.make(model_folder, arguments.seed)
    config = json.loads((model_folder / "config.json").read_text())
    start = config.get("decoder_start_token_id")
    if start is None:
        start = json.loads((model_folder / "generation_config.json").read_text())["decoder_start_token_id"]
    sources, targets = sequences_of(case, config, arguments.seed)
    decoded = [[start, *target] for target in targets] or [[start]] * len(sources)
    traces = []
    for precise in (True, False):
        model = load(model_folder, precise)
        native = isinstance(model, native_oracle.Native)
        encoder = model.config["num_encoder_layers"] if native else len(towers(model)["encoder"])
        count = len(native_kinds(model)) if native else len(attentions(model))
        layer_of_site = [n if n < encoder else encoder + (n - encoder) // 2 for n in range(count)]
        traces.append([run(model, *pair, case.skip) for pair in zip(sources, decoded)])
    tolerances = comparison.Tolerances(*traces)
    output = folder / f"{case.name}.headscope.h5"
    verdict = analyse(arguments.headscope, model_folder, sources, targets, output, case)
    return verdict if verdict.failures else compare(output, traces[0], tolerances, case, layer_of_site)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    for name, options in (("filter", {"default": ""}), ("seed", {"type": int, "default": 1}), ("keep", {}),
                          ("verbose", {"action": "store_true"})):
        parser.add_argument(f"--{name}", **options)
    arguments = parser.parse_args()
    acceptance.quiet()
    failed = count = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for case in cases():
            if arguments.filter not in case.name:
                continue
            began = time.monotonic()
            verdict = run_case(case, arguments, folder)
            acceptance.report(case, verdict, time.monotonic() - began, arguments.verbose)
            count += 1
            failed += bool(verdict.failures)
    print(f"{count - failed} of {count} encoder-decoders agree with transformers in float64")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
