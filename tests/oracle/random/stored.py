# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads analysis files with h5py alone, and writes one from a trace: the stand-in for the program in --self-check."""

import h5py
import numpy as np

import indicators as oracle_indicators

PER_HEAD = (
    "entropy", "entropy_row_mean", "concentration", "sink", "density", "sparsity", "zero_fraction", "mean_distance",
    "duplicate", "induction", "virtual_sink",
)
SCORES = ("minimum", "maximum", "mean", "variance")
STATES = ("q", "k", "v")


def read_site(file, s, site, heads, key_heads, length):
    """Everything of one sequence and site by the names that comparison.py uses, cut to its heads and length."""
    indicators = file["indicators"]
    values = {name: indicators[name][s, site, :heads] for name in PER_HEAD}
    values["local_focus"] = indicators["local_focus"][s, site, :heads]
    values["head_diversity"] = indicators["head_diversity"][s, site]
    values["column_mass"] = indicators["column_mass"][s, site, :heads, :length]
    for name in SCORES:
        values[f"score_{name}"] = file[f"logits/{name}"][s, site, :heads]
    values["score_above"] = file["logits/above"][s, site, :heads]
    values["histogram"] = file["logits/counts"][s, site, :heads]
    size = min(oracle_indicators.THUMBNAIL_SIZE, length)
    for which in ("mean", "maximum"):
        values[f"thumbnail_{which}"] = file[f"thumbnails/{which}"][s, site, :heads, :size, :size].astype(np.float64)
    if f"attention/{s}/{site}" in file:
        values["attention"] = file[f"attention/{s}/{site}"][:heads, :length, :length]
    for name in STATES:
        for what in ("norm", "variance"):
            if f"states/{name}_{what}" in file:
                own = heads if name == "q" else key_heads
                values[f"{name}_{what}"] = file[f"states/{name}_{what}"][s, site, :own, :length]
    return values


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def read_map(file, s, site):
    group = file[f"maps/{s}/{site}"]
    return {
        **{name: group[name][()] * np.float32(group[name].attrs.get("scale_factor", 1)) for name in ("query", "key")},
        "row_constant": group["row_constant"][()],
        "scale": float(group.attrs["scale"]), "soft_cap": float(group.attrs["soft_cap"]),
        "sink_logits": group.attrs["sink_logits"],
        "distance_bias": group["distance_bias"][()] if "distance_bias" in group else None,
        "bias_origin": int(group.attrs.get("bias_origin", 0)), "beyond_table": text(group.attrs["beyond_table"]),
        "far_distance": int(group.attrs.get("far_distance", -1)), "near_begin": int(group.attrs.get("near_begin", 0)),
        "slopes": None if np.isnan(group.attrs["slopes"]).any() else group.attrs["slopes"],
    }


def beyond_is_empty(file, s, length):
    """Positions past a sequence's end, and the part of its thumbnails past its own size, are NaN."""
    size = min(oracle_indicators.THUMBNAIL_SIZE, length)
    parts = [file["indicators/column_mass"][s, :, :, length:], file["output/loss"][s, length:],
             file["thumbnails/mean"][s, :, :, size:, :], file["thumbnails/maximum"][s, :, :, :, size:]]
    parts += [file[f"states/{name}"][s, :, :, length:] for name in ("q_norm", "v_variance") if f"states/{name}" in file]
    return all(np.isnan(part).all() for part in parts)


def edges(file):
    return file["logits/edges"][()]


def write_stand_in(path, traces):
    """An analysis file of what `traces` hold (float32 transformers), as the program would write it."""
    sites = len(traces[0].sites)
    heads_of = [site.weights.shape[0] for site in traces[0].sites]  # some mixers have one
    heads = max(heads_of)
    longest = max(len(trace.tokens) for trace in traces)
    size = min(oracle_indicators.THUMBNAIL_SIZE, longest)
    count, bins = len(traces), len(oracle_indicators.histogram_edges()) - 1
    arrays = {f"indicators/{name}": np.full((count, sites, heads), np.nan) for name in PER_HEAD}
    arrays["indicators/local_focus"] = np.full((count, sites, heads, 4), np.nan)
    arrays["indicators/head_diversity"] = np.full((count, sites), np.nan)
    arrays["indicators/column_mass"] = np.full((count, sites, heads, longest), np.nan, dtype=np.float32)
    arrays |= {f"logits/{name}": np.full((count, sites, heads), np.nan) for name in SCORES}
    arrays["logits/above"] = np.zeros((count, sites, heads, 3), dtype=np.uint64)
    arrays["logits/counts"] = np.zeros((count, sites, heads, bins), dtype=np.uint64)
    for which in ("mean", "maximum"):
        arrays[f"thumbnails/{which}"] = np.full((count, sites, heads, size, size), np.nan, dtype=np.float32)
    for what in ("norm", "variance"):
        for name in STATES:
            arrays[f"states/{name}_{what}"] = np.full((count, sites, heads, longest), np.nan, dtype=np.float32)
        arrays[f"states/hidden_{what}"] = np.full((count, sites + 1, longest), np.nan, dtype=np.float32)
    arrays["output/loss"] = np.full((count, longest), np.nan, dtype=np.float32)
    if traces[0].logits is not None:
        arrays["output/logits"] = np.full((count, longest, traces[0].logits.shape[1]), np.nan, dtype=np.float32)
    arrays["tokens/length"] = np.array([len(trace.tokens) for trace in traces], dtype=np.int32)
    arrays["tokens/ids"] = np.full((count, longest), -1, dtype=np.int32)
    arrays["sites/layer"] = np.arange(sites, dtype=np.int32)
    arrays["sites/heads"] = np.array(heads_of, dtype=np.int32)
    arrays["logits/edges"] = oracle_indicators.histogram_edges()
    row_step = oracle_indicators.default_row_step(longest)
    for s, trace in enumerate(traces):
        fill_sequence(arrays, s, trace, row_step)
    with h5py.File(path, "w") as file:
        file.attrs["complete"] = 1
        for name, array in arrays.items():
            file[name] = array
        file["logits/counts"].attrs["row_step"] = row_step


def fill_sequence(arrays, s, trace, row_step):
    length = len(trace.tokens)
    arrays["tokens/ids"][s, :length] = trace.tokens
    for n, site in enumerate(trace.sites):
        found = oracle_indicators.indicators(
            site.weights, site.allowed, trace.causal, trace.tokens, virtual_sink=site.virtual_sink)
        heads = site.weights.shape[0]
        for name in (*PER_HEAD, "local_focus"):
            arrays[f"indicators/{name}"][s, n, :heads] = found[name]
        arrays["indicators/head_diversity"][s, n] = found["head_diversity"]
        arrays["indicators/column_mass"][s, n, :heads, :length] = found["column_mass"]
        scores = oracle_indicators.score_statistics(site.scores, site.allowed)
        for name in (*SCORES, "above"):
            arrays[f"logits/{name}"][s, n, :heads] = scores[name]
        arrays["logits/counts"][s, n, :heads] = oracle_indicators.histogram(site.scores, site.allowed, row_step)
        for which, blocks in oracle_indicators.thumbnails(site.weights).items():
            arrays[f"thumbnails/{which}"][s, n, :heads, : blocks.shape[1], : blocks.shape[2]] = blocks
        for name in STATES:
            for what, value in oracle_indicators.vector_statistics(site.states[name]).items():
                arrays[f"states/{name}_{what}"][s, n, : value.shape[0], :length] = value
        arrays[f"attention/{s}/{n}"] = site.weights.astype(np.float32)
    for what, value in oracle_indicators.vector_statistics(trace.hidden).items():
        arrays[f"states/hidden_{what}"][s, :, :length] = value
    if trace.logits is not None:
        arrays["output/logits"][s, :length] = trace.logits
        if trace.causal:
            arrays["output/loss"][s, :length] = oracle_indicators.next_token_loss(trace.logits, trace.tokens)
