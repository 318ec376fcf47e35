#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads an analysis file with h5py and xarray alone and checks it against docs/file-formats.md.

    read_analysis.py FILE...

Every dataset's path, shape, type, dimension labels and scales; what must be NaN, -1 or 0 and what must not; maps against
dense weights and row sums. Prints OK, or what is wrong, with exit status 1. Partial files are checked as far as their
sites are done.
"""

import json
import sys

import h5py
import numpy as np
import xarray

ATTRIBUTES = {
    "format": str, "format_version": np.int32, "program_version": str, "created": str, "model_name": str,
    "model_type": str, "model_sha256": str, "settings": str, "seed": np.uint64, "max_positions": np.int64,
    "complete": np.int32,
}
OF_IMPLICIT = ("entropy", "entropy_row_mean", "concentration")
PER_HEAD = (
    "entropy", "entropy_row_mean", "concentration", "sink", "density", "sparsity", "zero_fraction", "mean_distance",
    "duplicate", "induction", "virtual_sink",
)
SIZED = ("/maps", "/attention", "/value_products", "/implicit_attention")  # by the site's own sizes
SITE_NUMBERS = ("layer", "heads", "key_value_heads", "key_size", "value_size", "causal", "has_matrix", "measured")
SITE_TEXTS = ("stack", "kind", "branch", "query_stream", "key_stream")
HEADS = ("sequence", "site", "head")
BINS = 166


class Checker:
    def __init__(self, file):
        self.file, self.problems = file, []
        self.seen = set()

    def demand(self, holds, text):
        if not holds:
            self.problems.append(text)

    def dataset(self, path, shape, dtype, dimensions):
        """One dataset as documented; dtype "text" is UTF-8 of variable length."""
        if path not in self.file:
            self.problems.append(f"{path}: absent")
            return None
        dataset = self.file[path]
        self.seen.add(path.lstrip("/"))
        self.demand(dataset.shape == tuple(shape), f"{path}: shape {dataset.shape}, expected {tuple(shape)}")
        if dtype == "text":
            kind = h5py.check_string_dtype(dataset.dtype)
            self.demand(kind is not None and kind.encoding == "utf-8" and kind.length is None,
                        f"{path}: type {dataset.dtype}, expected variable-length UTF-8")
            dataset.asstr()[()]  # every text decodes
        else:
            self.demand(dataset.dtype == np.dtype(dtype), f"{path}: type {dataset.dtype}, expected {dtype}")
        self.demand("long_name" in dataset.attrs, f"{path}: no long_name")
        for axis, wanted in enumerate(dimensions):
            dimension = dataset.dims[axis]
            # If sites differ in a size, the first takes the plain name.
            named = dimension.label == wanted or (path.startswith(SIZED)
                                                  and dimension.label == f"{wanted}_{dataset.shape[axis]}")
            self.demand(named, f"{path}: dimension {axis} labelled {dimension.label!r}, expected {wanted!r}")
            self.demand(len(dimension) == 1, f"{path}: dimension {axis} has {len(dimension)} scales")
            if len(dimension) == 1:
                self.demand(dimension[0].shape == (dataset.shape[axis],), f"{path}: scale of dimension {axis} has another size")
        return dataset

    def finite(self, path, values, wanted):
        """`wanted` says where a value must exist; elsewhere it must be NaN."""
        values = np.asarray(values, dtype=np.float64)
        wrong = np.isnan(values) == np.broadcast_to(wanted, values.shape)
        self.demand(not wrong.any(), f"{path}: {int(wrong.sum())} values are NaN where they exist, or the reverse")


def check_file(path):
    with h5py.File(path, "r") as file:
        check = Checker(file)
        check_attributes(check)
        sizes = check_tokens_and_sites(check)
        if not check.problems:
            check_numbers(check, sizes)
            check_scores(check, sizes)
            check_output(check, sizes)
            if "states" in file:
                check_states(check, sizes)
            if "experts" in file:
                check_experts(check, sizes)
            if "problems" in file:
                check.dataset("/problems", file["problems"].shape[:1], "text", ("problem",))
            if "token_types" in file:
                check_branches(check, sizes)
            for s in range(sizes["S"]):
                check_maps_and_attention(check, sizes, s)
                if "implicit_attention" in file:
                    check_implicit(check, sizes, s)
            check_nothing_else(check)
        groups = ["/"]
        file.visititems(lambda name, item: groups.append(name) if isinstance(item, h5py.Group) else None)
    check_xarray(check, path, groups)
    return check.problems


def check_attributes(check):
    for name, kind in ATTRIBUTES.items():
        value = check.file.attrs.get(name)
        check.demand(isinstance(value, kind), f"attribute {name}: {type(value).__name__}, expected {kind.__name__}")
    check.demand(check.file.attrs.get("format") == "headscope-analysis", "attribute format: another format")
    check.demand(check.file.attrs.get("format_version") == 2, "attribute format_version: not 2")
    for text in (check.file.attrs.get("settings"), check.file["model/config"].asstr()[()]):
        try:
            json.loads(text)
        except (TypeError, ValueError) as error:
            check.problems.append(f"settings or configuration: no JSON: {error}")


def check_tokens_and_sites(check):
    file = check.file
    count, longest = file["tokens/ids"].shape
    layers, sites = file["model/mixer"].shape[0], file["sites/layer"].shape[0]
    check.dataset("/model/config", (), "text", ())
    check.dataset("/model/mixer", (layers,), "text", ("layer",))
    for name in SITE_NUMBERS:
        check.dataset(f"/sites/{name}", (sites,), "int32", ("site",))
    if "has_implicit" in file["sites"]:
        implicit = check.dataset("/sites/has_implicit", (sites,), "int32", ("site",))
        check.demand(not (implicit[()] & file["sites/has_matrix"][()]).any(), "/sites: two matrices at one site")
    for name in SITE_TEXTS:
        check.dataset(f"/sites/{name}", (sites,), "text", ("site",))
    check.dataset("/sites/done", (count, sites), "int8", ("sequence", "site"))
    for group in ("tokens", *(f"streams/{name}" for name in file.get("streams", ()))):
        ids = check.dataset(f"/{group}/ids", (count, longest), "int32", ("sequence", "token"))
        lengths = check.dataset(f"/{group}/length", (count,), "int32", ("sequence",))
        check.dataset(f"/{group}/piece", (count, longest), "text", ("sequence", "token"))
        offsets = check.dataset(f"/{group}/offset", (count, longest, 2), "int32", ("sequence", "token", "bound"))
        texts = check.dataset(f"/{group}/text", (count,), "text", ("sequence",))
        if None in (ids, lengths, offsets, texts):
            continue
        beyond = np.arange(longest) >= lengths[()][:, None]
        check.demand(((ids[()] == -1) == beyond).all(), f"/{group}/ids: -1 elsewhere than past the ends")
        check.demand((offsets[()][beyond] == -1).all(), f"/{group}/offset: not -1 past the ends")
        for s in range(count):
            used = offsets[s, : lengths[s]]
            check.demand((used[:, 0] <= used[:, 1]).all() and used.max(initial=0) <= len(texts.asstr()[s].encode()),
                         f"/{group}/offset: beyond text {s}")
    done = file["sites/done"][()].astype(bool)
    if file.attrs["complete"] == 1:
        check.demand((done == (file["sites/measured"][()] != 0)).all(), "/sites/done: not all measured sites are done")
    heads = file["sites/heads"][()]
    both = [np.array([[stream_length(check, stream, s) for stream in file[f"sites/{side}_stream"].asstr()[()]]
                      for s in range(count)]) for side in ("query", "key")]
    decoders = np.flatnonzero(file["sites/stack"].asstr()[()] == "decoder")
    output = both[0][:, decoders[0]] if len(decoders) else file["tokens/length"][()]
    return {"queries": both[0], "keys": both[1], "output": output, "S": count, "n": sites, "H": int(heads.max(initial=0)), "L": longest, "layers": layers, "done": done,
            "matrix": file["sites/has_matrix"][()] != 0, "heads": np.arange(heads.max(initial=0)) < heads[:, None]}


def stream_length(check, stream, s):
    return int(check.file["tokens/length" if stream == "tokens" else f"streams/{stream}/length"][s])


def check_numbers(check, z):
    shape = (z["S"], z["n"], z["H"])
    exists = z["done"][:, :, None] & z["heads"]
    for name in PER_HEAD:
        dataset = check.dataset(f"/indicators/{name}", shape, "float64", HEADS)
        if dataset is not None and name not in ("virtual_sink", "duplicate", "induction"):
            own = exists if name in OF_IMPLICIT else exists & z["matrix"][:, None]
            check.finite(f"/indicators/{name}", dataset[()], own)
    check.dataset("/indicators/head_diversity", shape[:2], "float64", HEADS[:2])
    exists &= z["matrix"][:, None]  # of an implicit matrix there are the first three alone
    distances = check.file["local_distance"].shape[0]
    focus = check.dataset("/indicators/local_focus", (*shape, distances), "float64", (*HEADS, "local_distance"))
    mass = check.dataset("/indicators/column_mass", (*shape, z["L"]), "float32", (*HEADS, "token"))
    self_sites = check.file["sites/kind"].asstr()[()] == "self"
    tokens = np.arange(z["L"]) < z["keys"][..., None]
    if mass is not None:
        check.finite("/indicators/column_mass", mass[()], exists[..., None] & tokens[:, :, None])
    if focus is not None:
        near = (check.file["local_distance"][()] < z["queries"][..., None]) & self_sites[:, None]
        check.finite("/indicators/local_focus", focus[()], exists[..., None] & near[:, :, None])
    size = min(128, z["L"])
    for name in ("mean", "maximum"):
        thumbnails = check.dataset(f"/thumbnails/{name}", (*shape, size, size), "float32",
                                   (*HEADS, "thumbnail_query", "thumbnail_key"))
        if thumbnails is not None:
            rows, columns = (np.arange(size) < np.minimum(128, z[side])[..., None] for side in ("queries", "keys"))
            blocks = rows[..., :, None] & columns[..., None, :]
            drawn = exists | (z["done"] & ("implicit_attention" in check.file))[:, :, None] & z["heads"]
            check.finite(f"/thumbnails/{name}", thumbnails[()], drawn[..., None, None] & blocks[:, :, None])


def check_scores(check, z):
    shape = (z["S"], z["n"], z["H"])
    edges = check.dataset("/logits/edges", (BINS + 1,), "float64", ("edge",))
    counts = check.dataset("/logits/counts", (*shape, BINS), "uint64", (*HEADS, "bin"))
    above = check.dataset("/logits/above", (*shape, 3), "uint64", (*HEADS, "threshold"))
    for name in ("minimum", "maximum", "mean", "variance"):
        values = check.dataset(f"/logits/{name}", shape, "float64", HEADS)
        if values is not None:
            check.finite(f"/logits/{name}", values[()], (z["done"] & z["matrix"])[:, :, None] & z["heads"])
    if edges is None or counts is None or above is None:
        return
    inner = edges[1:-1]
    check.demand(edges[0] == -np.inf and edges[BINS] == np.inf and (np.diff(inner) > 0).all(), "/logits/edges: not rising")
    tail = 8 * 10 ** (np.arange(51) / 16)
    expected = np.concatenate([-tail[::-1], np.arange(-31, 32) * 0.25, tail])
    check.demand(inner.shape == expected.shape and np.allclose(inner, expected, rtol=1e-14), "/logits/edges: other edges")
    step = int(counts.attrs["row_step"])
    causal = check.file["sites/causal"][()] != 0
    windows = "sliding_window" in check.file["model/config"].asstr()[()]
    for s in range(z["S"]):
        for site in np.flatnonzero(z["done"][s] & z["matrix"]):
            rows = np.arange(step - 1, z["queries"][s, site], step)
            pairs = int((rows + 1).sum() if causal[site] else len(rows) * z["keys"][s, site])
            found = counts[s, site].sum(axis=-1)[z["heads"][site]].astype(np.int64)
            right = (found <= pairs).all() if windows else (found == pairs).all()
            check.demand(right, f"/logits/counts: sequence {s} site {site}: {found} pairs, expected {pairs}")
            ordered = np.diff(above[s, site].astype(np.int64), axis=-1) <= 0
            check.demand(ordered.all(), f"/logits/above: sequence {s} site {site}: not falling")


def check_output(check, z):
    loss = check.dataset("/output/loss", (z["S"], z["L"]), "float32", ("sequence", "token"))
    if loss is not None:
        beyond = np.arange(z["L"]) >= z["output"][:, None] - 1
        check.demand(np.isnan(loss[()][beyond]).all(), "/output/loss: numbers at or past the last token")
    if "logits" in check.file["output"]:
        vocabulary = check.file["vocabulary"].shape[0]
        logits = check.dataset("/output/logits", (z["S"], z["L"], vocabulary), "float32", ("sequence", "token", "vocabulary"))
        if check.file.attrs["complete"] == 1:
            check.finite("/output/logits", logits[:, :, 0], np.arange(z["L"]) < z["output"][:, None])
    if "class_logits" in check.file["output"]:
        classes = check.file["class"].shape[0]
        logits = check.dataset("/output/class_logits", (z["S"], classes), "float32", ("sequence", "class"))
        if logits is not None and check.file.attrs["complete"] == 1:
            check.finite("/output/class_logits", logits[()], np.ones((z["S"], classes), dtype=bool))


def check_states(check, z):
    key_heads = np.arange(z["H"]) < check.file["sites/key_value_heads"][()][:, None]
    for name in "qkv":
        tokens = np.arange(z["L"]) < z["queries" if name == "q" else "keys"][..., None]
        for what in ("norm", "variance"):
            path = f"/states/{name}_{what}"
            values = check.dataset(path, (z["S"], z["n"], z["H"], z["L"]), "float32", (*HEADS, "token"))
            own = z["heads"] if name == "q" else key_heads
            if values is not None:
                done = z["done"] & z["matrix"]
                check.finite(path, values[()], done[:, :, None, None] & own[..., None] & tokens[:, :, None])
    if "hidden_norm" in check.file["states"]:
        for what in ("norm", "variance"):
            check.dataset(f"/states/hidden_{what}", (z["S"], z["layers"] + 1, z["L"]), "float32",
                          ("sequence", "boundary", "token"))


def check_experts(check, z):
    """Checks experts of a decoder. A layer that was not measured has none; of others the first token decides."""
    each = check.file["expert_rank"].shape[0]
    shape, dimensions = (z["S"], z["layers"], z["L"], each), ("sequence", "layer", "token", "expert_rank")
    index = check.dataset("/experts/index", shape, "int16", dimensions)
    weight = check.dataset("/experts/weight", shape, "float32", dimensions)
    if index is None or weight is None:
        return
    count, numbers, weights = index.attrs["experts"], index[()], weight[()]
    check.demand(isinstance(count, np.int64) and each <= count, f"/experts/index: {count} experts, {each} of a token")
    there = (numbers[:, :, :1, :1] >= 0) & (np.arange(z["L"]) < z["output"][:, None])[:, None, :, None]
    measured = np.zeros(z["layers"], bool)
    measured[check.file["sites/layer"][check.file["sites/measured"][()] != 0]] = True
    check.demand(not there[:, ~measured].any(), "/experts/index: of a layer that was not measured")
    check.demand(((numbers == -1) == np.broadcast_to(~there, shape)).all(), "/experts/index: -1 elsewhere than for none")
    check.finite("/experts/weight", weights, there)
    check.demand(numbers.max(initial=-1) < count, "/experts/index: beyond the number of experts")
    taken = numbers[np.broadcast_to(there, shape)].reshape(-1, each)
    check.demand(all(len(set(row)) == each for row in taken), "/experts/index: a token has an expert twice")
    check.demand(not (np.diff(weights, axis=-1) > 0).any(), "/experts/weight: not in order of weight")


def check_maps_and_attention(check, z, s):
    file = check.file
    for site in np.flatnonzero((file["sites/measured"][()] != 0) & z["matrix"]):
        heads, groups, size = (int(file[f"sites/{name}"][site]) for name in ("heads", "key_value_heads", "key_size"))
        queries = stream_length(check, file["sites/query_stream"].asstr()[site], s)
        keys = stream_length(check, file["sites/key_stream"].asstr()[site], s)
        weights = None
        if "attention" in file:
            path = f"/attention/{s}/{site}"
            weights = check.dataset(path, (heads, queries, keys), "float32", ("head", "query_token", "key_token"))
            if weights is not None and z["done"][s, site]:
                check_rows(check, path, weights[()])
        if "value_products" in file:
            path = f"/value_products/{s}/{site}"
            products = check.dataset(path, (keys, heads, heads), "float32", ("key_token", "head", "other_head"))
            if products is not None and z["done"][s, site]:
                values = products[()]
                scale = np.abs(values).max(initial=1)
                check.demand(np.isnan(values).all() or np.abs(values - values.transpose(0, 2, 1)).max() <= 1e-5 * scale,
                             f"{path}: not symmetric")
        if "maps" in file:
            group = f"/maps/{s}/{site}"
            kind = file.attrs["map_type"]
            query = check.dataset(f"{group}/query", (heads, queries, size), kind, ("head", "query_token", "feature"))
            key = check.dataset(f"{group}/key", (groups, keys, size), kind, ("key_value_head", "key_token", "feature"))
            constant = check.dataset(f"{group}/row_constant", (heads, queries), "float32", ("head", "query_token"))
            if None in (query, key, constant):
                continue
            check.demand(query.chunks is None and key.chunks is None, f"{group}: not contiguous")
            if z["done"][s, site] and plain(file[group].attrs):
                again = recomputed(file[group])
                check_rows(check, group, again)
                if weights is not None and kind == "float32":
                    worst = float(np.abs(again - weights[()]).max(initial=0))
                    check.demand(worst < 1e-4, f"{group}: differs from the dense weights by {worst}")


def check_branches(check, z):
    """Types of chunks, their fraction by its definition, and weights that softmax gives two branches."""
    file, shape = check.file, (z["S"], z["n"], z["H"])
    types = check.dataset("/token_types", (*shape, file["chunk"].shape[0]), "int8", (*HEADS, "chunk"))
    fraction = check.dataset("/indicators/softmax_fraction", shape, "float64", HEADS)
    size = types.attrs["chunk_size"]
    check.demand(file["chunk"].shape[0] == -(-z["L"] // size), "/token_types: another number of chunks")
    branch = file["sites/branch"].asstr()[()]
    there = (z["done"] & (branch == "linear"))[:, :, None] & z["heads"]
    chunks = np.arange(file["chunk"].shape[0]) < -(-z["queries"] // size)[..., None]
    own = there[..., None] & chunks[:, :, None]
    check.demand(((types[()] == -1) == ~own).all() and np.isin(types[()], (-1, 0, 1)).all(),
                 "/token_types: -1 elsewhere than for none, or another type")
    with np.errstate(invalid="ignore"):
        expected = (types[()] == 0).sum(-1) / own.sum(-1)
    check.demand(np.array_equal(fraction[()], expected, equal_nan=True), "/indicators/softmax_fraction: another share")
    if "branch_weights" in file:
        weights = check.dataset("/branch_weights", (*shape, z["L"], 2), "float32", (*HEADS, "token", "branch"))
        tokens = (np.arange(z["L"]) < z["queries"][..., None])[:, :, None]
        there = ((z["done"] & (branch == "softmax"))[:, :, None] & z["heads"])[..., None] & tokens
        check.finite("/branch_weights", weights[()], there[..., None])


def check_implicit(check, z, s):
    """The matrix is causal; entropy and concentration are of the rows of its magnitudes over their sums."""
    file = check.file
    for site in np.flatnonzero((file["sites/measured"][()] != 0) & (file["sites/has_implicit"][()] != 0)):
        heads, length = int(file["sites/heads"][site]), z["queries"][s, site]
        path = f"/implicit_attention/{s}/{site}"
        stored = check.dataset(path, (heads, length, length), "float32", ("head", "query_token", "key_token"))
        if stored is None or not z["done"][s, site]:
            continue
        check.demand(isinstance(stored.attrs.get("largest_deviation"), np.float64), f"{path}: no largest_deviation")
        size = np.abs(stored[()].astype(np.float64))
        check.demand((np.triu(size, 1) == 0).all(), f"{path}: a query has a coefficient of a later key")
        sums = size.sum(-1, keepdims=True)
        rows = np.divide(size, sums, out=np.zeros_like(size), where=sums > 0)
        entropy = -(rows * np.log(rows, out=np.zeros_like(rows), where=rows > 0)).sum((-2, -1))
        counted = (sums > 0).sum((-2, -1))
        found = [file[f"indicators/{name}"][s, site, :heads] for name in OF_IMPLICIT]
        # Sums over a row of float32 coefficients, each off by half a unit in its last place.
        close = dict(rtol=1e-5, atol=1e-6 * length)
        with np.errstate(invalid="ignore"):
            for name, own, wanted in zip(OF_IMPLICIT, found, (entropy, entropy / counted, np.sqrt((rows**2).sum((-2, -1))))):
                check.demand(np.allclose(own, wanted, **close), f"/indicators/{name}: not that of {path}")


def check_recurrent(path):
    """What only models with recurrent layers have, of a file whose other numbers are made up."""
    with h5py.File(path, "r") as file:
        check = Checker(file)
        sizes = check_tokens_and_sites(check)
        check_branches(check, sizes)
        for s in range(sizes["S"]):
            check_implicit(check, sizes, s)
        return check.problems


def plain(rule):
    """Only a scale and the causal mask: what recomputed() knows."""
    return (rule["normaliser"] in (b"softmax", "softmax") and rule["soft_cap"] == 0 and rule["window_left"] < 0
            and rule["window_right"] < 0 and rule["block_size"] == 0 and np.isnan(rule["slopes"]).all()
            and np.isnan(rule["sink_logits"]).all() and rule["key_length"] < 0 and rule["bias_origin"] == 0)


def recomputed(group):
    query, key = (group[name][()] * np.float64(group[name].attrs.get("scale_factor", 1)) for name in ("query", "key"))
    key = np.repeat(key, query.shape[0] // key.shape[0], axis=0)
    scores = group.attrs["scale"] * query @ key.transpose(0, 2, 1)
    weights = np.exp(scores - group["row_constant"][()].astype(np.float64)[..., None])
    if group.attrs["causal"]:
        rows = np.arange(query.shape[1])[:, None] + group.attrs["query_offset"]
        weights[:, np.arange(key.shape[1])[None, :] > rows] = 0
    return weights


def check_rows(check, path, weights):
    sums = weights.astype(np.float64).sum(axis=-1)
    check.demand((weights >= 0).all() and (sums < 1 + 1e-3).all(), f"{path}: weights below 0 or rows above 1")


def check_nothing_else(check):
    """What is neither documented above nor a dimension scale."""
    others = []

    def visit(name, item):
        if isinstance(item, h5py.Dataset) and name not in check.seen and not item.is_scale:
            others.append(name)

    check.file.visititems(visit)
    known = ("parameters/", "maps/", "tokens/type", "tokens/region", "indicators/a_to_", "indicators/b_to_", "indicators/special_to_")
    check.demand(all(name.startswith(known) for name in others), f"undocumented datasets: {others}")


def check_xarray(check, path, groups):
    for engine in ("h5netcdf", "netcdf4"):
        for group in groups:
            with xarray.open_dataset(path, group=group, engine=engine) as dataset:
                dataset.load()
                for name, variable in dataset.variables.items():
                    phony = [dimension for dimension in variable.dims if str(dimension).startswith("phony")]
                    check.demand(not phony, f"{engine}: {group}/{name} has dimensions without a scale: {phony}")
        with xarray.open_dataset(path, group="tokens", engine=engine) as tokens:
            check.demand(all(isinstance(text, str) for text in tokens["text"].values), f"{engine}: texts are not str")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    failed = False
    for path in sys.argv[1:]:
        problems = check_file(path)
        for problem in problems:
            print(f"{path}: {problem}")
        failed |= bool(problems)
    if failed:
        sys.exit(1)
    print("OK")


if __name__ == "__main__":
    main()
