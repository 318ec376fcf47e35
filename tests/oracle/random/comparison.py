# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares an analysis file with what transformers computed in float64.

Tolerances are derived here, once. For each layer the distance between float64 and float32 transformers on the very same
tokens says how far float32 rounding carries on this model; the program may be NOISE times as far, plus FLOOR units of
rounding. Where that one run was lucky, runs whose weights are moved by a unit of rounding say how far, too (moved(),
acceptance.py). That gives delta, the tolerance of a score. Everything else follows from it: softmax turns an error delta of
the scores into a relative error of at most exp(2 delta) - 1 in every weight (for other weights the oracle says how far
it moves each), and so in every sum of weights with non-negative factors; an entropy has the derivative bound 2 delta H; a standard deviation over heads moves by no more
than the norm of the weights' errors; a count in a histogram may differ only by the scores within delta of its edges.
"""

from collections import defaultdict

import numpy as np

import indicators as oracle_indicators

EPSILON = 2.0**-23  # float32
HALF = 2.0**-24  # half a unit of float32: thumbnails are stored so
VANISHING = EPSILON**2  # sums of weights are kept beside others of size 1, in float64: less than this is nothing
NOISE = 4.0
FLOOR = 8.0

STATES = ("q", "k", "v")


class Verdict:
    """Collects, per quantity, the worst error in units of its tolerance. Anything above 1 is a failure."""

    def __init__(self):
        self.worst = {}
        self.error = defaultdict(float)
        self.failures = []

    def number(self, name, place, got, expected, tolerance):
        got, expected = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
        if got.shape != expected.shape:
            return self.fail(name, f"{place}: shape {got.shape}, expected {expected.shape}")
        if not np.array_equal(np.isnan(got), np.isnan(expected)):
            return self.fail(name, f"{place}: NaN in {np.isnan(got).sum()} places, expected in {np.isnan(expected).sum()}")
        error = np.abs(np.nan_to_num(got - expected, posinf=np.inf, neginf=-np.inf))
        tolerance = np.broadcast_to(np.asarray(tolerance, dtype=np.float64), error.shape)
        tolerance = np.where(np.isnan(expected), 1.0, tolerance)
        ratio = np.where(error == 0, 0.0, error / np.maximum(tolerance, np.finfo(np.float64).tiny))
        self.error[name] = max(self.error[name], float(error.max(initial=0.0)))
        self.note(name, float(ratio.max(initial=0.0)))
        if ratio.size and ratio.max() > 1:
            at = np.unravel_index(ratio.argmax(), ratio.shape)
            where = ", ".join(str(int(index)) for index in at)
            self.failures.append(
                f"{name} {place} [{where}]: {got[at]:.9g}, expected {expected[at]:.9g} within {tolerance[at]:.2g}")

    def between(self, name, place, got, low, high):
        """Counts that rounding of the scores may move: low <= got <= high."""
        got = np.asarray(got, dtype=np.float64)
        if got.shape != np.shape(low):
            return self.fail(name, f"{place}: shape {got.shape}, expected {np.shape(low)}")
        outside = ~((got >= low) & (got <= high))
        self.note(name, 2.0 if outside.any() else 0.0)
        if outside.any():
            at = np.unravel_index(outside.argmax(), outside.shape)
            where = ", ".join(str(int(index)) for index in at)
            self.failures.append(f"{name} {place} [{where}]: {got[at]:.12g}, expected {low[at]:.12g} to {high[at]:.12g}")

    def same(self, name, place, got, expected):
        equal = np.array_equal(np.asarray(got), np.asarray(expected))
        self.note(name, 0.0 if equal else 2.0)
        if not equal:
            self.failures.append(f"{name} {place}: {np.asarray(got)}, expected {np.asarray(expected)}")

    def fail(self, name, text):
        self.note(name, float("inf"))
        self.failures.append(f"{name} {text}")

    def note(self, name, ratio):
        self.worst[name] = max(self.worst.get(name, 0.0), ratio)


def distance(first, second):
    return float(np.abs(first - second).max(initial=0.0))


def magnitude(array):
    return float(np.abs(array).max(initial=0.0))


class Tolerances:
    """Of one case: from the float64 and float32 traces of all its sequences."""

    def __init__(self, exact, single):
        sites = [n for n, site in enumerate(exact[0].sites) if site.weights is not None]
        pairs = list(zip(exact, single))
        self.score = {n: self.of([(a.sites[n].scores * a.sites[n].allowed, b.sites[n].scores * a.sites[n].allowed)
                                  for a, b in pairs]) for n in sites}
        self.state = {n: {name: self.of([(a.sites[n].states[name], b.sites[n].states[name]) for a, b in pairs])
                          for name in STATES} for n in sites}
        self.implicit = {n: self.of([(a.sites[n].implicit, b.sites[n].implicit) for a, b in pairs])
                         for n, site in enumerate(exact[0].sites) if site.implicit is not None}
        self.hidden = [self.of([(a.hidden[n], b.hidden[n]) for a, b in pairs]) for n in range(len(exact[0].hidden))]
        self.logits = self.of([(a.logits, b.logits) for a, b in pairs]) if exact[0].logits is not None else 0.0

    def widen(self, other):
        """The larger of each."""
        for name in ("score", "implicit"):
            mine, others = getattr(self, name), getattr(other, name)
            setattr(self, name, {n: max(mine[n], others[n]) for n in mine})
        self.state = {n: {name: max(one, other.state[n][name]) for name, one in states.items()}
                      for n, states in self.state.items()}
        self.hidden = [max(pair) for pair in zip(self.hidden, other.hidden)]
        self.logits = max(self.logits, other.logits)

    @staticmethod
    def of(pairs):
        return max(NOISE * distance(a, b) for a, b in pairs) + FLOOR * EPSILON * max(magnitude(a) for a, _ in pairs)


def counts_between(values, edges, delta):
    """How many of `values` [n] lie surely, and how many possibly, below each edge."""
    ordered = np.sort(values)
    return np.searchsorted(ordered, edges - delta, side="left"), np.searchsorted(ordered, edges + delta, side="right")


def check_implicit(verdict, place, weights, measured, delta):
    """`weights` [H, L, L] signed; `delta`: the tolerance of each. Shares of a row move by that over its sum, and by as much
    more as all of its weights together."""
    expected, shares = oracle_indicators.implicit_indicators(weights), oracle_indicators.implicit_shares(weights)
    length = weights.shape[2]
    total = np.abs(weights).sum(axis=2, keepdims=True)
    total = np.where(total > 0, total, 1)
    seen = np.ones((length, length))
    if not np.triu(weights, 1).any():  # of an encoder's map a token sees what comes after it
        seen = np.tril(seen)
    doubt = seen * delta / total * (1 + length * shares) + FLOOR * EPSILON * shares
    steep = np.abs(np.log(np.maximum(shares, doubt), out=np.zeros_like(shares), where=doubt > 0)) + 1
    entropy = (doubt * steep).sum(axis=(1, 2)) + FLOOR * EPSILON * length
    verdict.number("implicit_entropy", place, measured["entropy"], expected["entropy"], entropy)
    verdict.number("implicit_entropy_row_mean", place, measured["entropy_row_mean"], expected["entropy_row_mean"],
                   entropy / length)
    verdict.number("implicit_concentration", place, measured["concentration"], expected["concentration"],
                   np.sqrt((doubt**2).sum(axis=(1, 2))))
    verdict.number("implicit_attention", place, measured["implicit"], weights, delta)


def check_site(verdict, place, site, measured, tokens, causal, delta, row_step, cross=False):
    """`measured`: name -> array of one sequence and site, cut to its heads and length."""
    weights, allowed = site.weights, site.allowed
    expected = oracle_indicators.indicators(weights, allowed, causal, tokens, cross, site.virtual_sink)
    heads, length, keys = weights.shape
    relative = np.expm1(2 * delta) + FLOOR * EPSILON
    error = relative * weights
    if site.unit_error is not None:
        error = 2 * delta * site.unit_error + FLOOR * EPSILON * (np.abs(weights) + np.abs(weights).sum(axis=2, keepdims=True))
        error = np.where(allowed, error, 0)
    errors = oracle_indicators.indicators(error, allowed, causal, tokens, cross)
    queries = oracle_indicators.live_queries(allowed)
    rows = FLOOR * EPSILON * queries
    flushed = oracle_indicators.SMALLEST_NORMAL_FLOAT32 * length * keys  # weights that float32 may take for 0

    for name in ("sink", "local_focus", "column_mass", "duplicate", "induction"):
        verdict.number(name, place, measured[name], expected[name], errors[name] + VANISHING + flushed)
    # A softmax row sums to 1 in float32 only: what the first key leaves is known to that.
    verdict.number("density", place, measured["density"], expected["density"], errors["density"] + EPSILON)
    verdict.number("sparsity", place, measured["sparsity"], expected["sparsity"],
                   relative if site.unit_error is None else errors["density"] + errors["sink"] + EPSILON)
    doubt = relative * expected["entropy"]
    if site.unit_error is not None:
        steep = np.abs(np.log(np.abs(weights), out=np.zeros_like(weights), where=weights != 0)) + 1
        doubt = (error * steep).sum(axis=(1, 2))
    verdict.number("entropy", place, measured["entropy"], expected["entropy"], doubt + rows)
    verdict.number("entropy_row_mean", place, measured["entropy_row_mean"], expected["entropy_row_mean"],
                   (doubt + rows) / queries)
    verdict.number("concentration", place, measured["concentration"], expected["concentration"], errors["concentration"])
    spread = np.sqrt((error**2).sum(axis=0) / max(heads - 1, 1))
    pairs = queries * (queries + 1) / 2 if causal else queries * keys
    verdict.number("head_diversity", place, measured["head_diversity"], expected["head_diversity"], spread.sum() / pairs)
    apart = np.abs(np.arange(length)[:, None] - np.arange(keys)[None, :])
    verdict.number("mean_distance", place, measured["mean_distance"], expected["mean_distance"],
                   (error * apart).sum(axis=(1, 2)) / queries + length * flushed)
    # NaN without sink logits: there nothing else will do.
    verdict.number("virtual_sink", place, measured["virtual_sink"], expected["virtual_sink"],
                   relative * np.nan_to_num(expected["virtual_sink"]) + VANISHING)

    if site.unit_error is None:
        with np.errstate(divide="ignore"):
            logarithm = np.log(weights)
        edge, margin = np.log(oracle_indicators.SMALLEST_NORMAL_FLOAT32), 2 * delta + FLOOR * EPSILON * 128
        surely, perhaps = logarithm < edge - margin, logarithm < edge + margin
    else:
        surely, perhaps = weights + error < 0, weights - error < oracle_indicators.SMALLEST_NORMAL_FLOAT32
    surely, perhaps = ((found & allowed).sum(axis=(1, 2)) for found in (surely, perhaps))
    total = allowed.sum(axis=(-2, -1))
    verdict.between("zero_fraction", place, measured["zero_fraction"] * total, surely - 1e-6, perhaps + 1e-6)

    check_scores(verdict, place, site, measured, delta, row_step)
    small, doubts = oracle_indicators.thumbnails(weights), oracle_indicators.thumbnails(error)
    for which in ("mean", "maximum"):
        verdict.number(f"thumbnail_{which}", place, measured[f"thumbnail_{which}"], small[which],
                       doubts[which] + HALF * np.abs(small[which]) + 2.0**-25)
    if "attention" in measured:
        verdict.number("attention", place, measured["attention"], weights,
                       error + oracle_indicators.SMALLEST_NORMAL_FLOAT32)
        if site.unit_error is None and site.virtual_sink is None:  # however large the scores are
            verdict.number("attention_rows", place, measured["attention"].astype(float).sum(axis=2), weights.sum(axis=2),
                           FLOOR * EPSILON)


def check_scores(verdict, place, site, measured, delta, row_step):
    scores, allowed = site.scores, site.allowed
    expected = oracle_indicators.score_statistics(scores, allowed)
    for name in ("minimum", "maximum", "mean"):
        verdict.number(f"score_{name}", place, measured[f"score_{name}"], expected[name], delta)
    variance = expected["variance"]
    verdict.number("score_variance", place, measured["score_variance"], variance,
                   4 * delta * np.sqrt(variance) + 4 * delta**2 + 2 * FLOOR * EPSILON * variance)
    queries = scores.shape[1]
    edges = oracle_indicators.histogram_edges()
    rows = oracle_indicators.sampled_rows(queries, row_step)
    bounds = np.asarray(oracle_indicators.OUTLIER_BOUNDS)
    for h, seen in enumerate(np.broadcast_to(allowed, scores.shape)):
        low, high = counts_between(np.abs(scores[h][seen]), bounds, delta)
        every = np.count_nonzero(seen)
        verdict.between("score_above", f"{place} head {h}", measured["score_above"][h], every - high, every - low)
        sampled = scores[h][rows][seen[rows]]
        low, high = counts_between(sampled, edges[1:], delta)
        verdict.between("histogram", f"{place} head {h}", np.cumsum(measured["histogram"][h].astype(np.int64)), low, high)


def check_states(verdict, place, site, measured, tolerances):
    for name in STATES:
        expected = oracle_indicators.vector_statistics(site.states[name])
        size = site.states[name].shape[-1]
        check_vectors(verdict, name, place, measured[f"{name}_norm"], measured[f"{name}_variance"], expected, size,
                      tolerances[name])


def check_vectors(verdict, name, place, norm, variance, expected, size, tolerance):
    """An error `tolerance` of each component moves a norm by at most sqrt(size) times that, and so a variance."""
    verdict.number(f"{name}_norm", place, norm, expected["norm"],
                   np.sqrt(size) * tolerance + FLOOR * EPSILON * expected["norm"])
    bound = 2 * np.sqrt(size / max(size - 1, 1)) * tolerance * np.sqrt(expected["variance"]) + size * tolerance**2
    verdict.number(f"{name}_variance", place, variance, expected["variance"],
                   2 * bound + FLOOR * EPSILON * expected["variance"])


def check_map(verdict, place, site, stored, delta):
    """Scores and row constants from the stored q and k: what any tile is recomputed from."""
    query, key = stored["query"].astype(np.float64), stored["key"].astype(np.float64)
    key = np.repeat(key, query.shape[0] // key.shape[0], axis=0)
    scores = stored["scale"] * query @ key.transpose(0, 2, 1)
    if stored.get("far_distance", -1) >= 0:
        near = stored["near_begin"]
        common = query[..., :near] @ key[..., :near].transpose(0, 2, 1) + query[..., -1:]
        apart = np.arange(scores.shape[1])[:, None] - np.arange(scores.shape[2])
        scores = np.where(apart > stored["far_distance"], stored["scale"] * common, scores)
    if stored["slopes"] is not None:
        apart = np.arange(scores.shape[1])[:, None] - np.arange(scores.shape[2])
        scores = scores - stored["slopes"].astype(np.float64)[:, None, None] * apart
    if stored.get("distance_bias") is not None:
        table = stored["distance_bias"].astype(np.float64)
        relative = np.arange(scores.shape[2])[None, :] - np.arange(scores.shape[1])[:, None]
        column = relative + stored["bias_origin"]
        inside = np.clip(column, 0, table.shape[1] - 1)
        scores = scores + table[:, inside] * ((column == inside) | (stored["beyond_table"] != "zero"))
    if stored["soft_cap"]:
        scores = stored["soft_cap"] * np.tanh(scores / stored["soft_cap"])
    if site.sink_logits is not None:
        verdict.number("map_sink_logits", place, stored["sink_logits"], site.sink_logits,
                       EPSILON * np.abs(site.sink_logits))
    verdict.number("map_scores", place, np.where(site.allowed, scores, 0), np.where(site.allowed, site.scores, 0), delta)
    if site.row_constant is not None:
        verdict.number("map_row_constant", place, stored["row_constant"], site.row_constant,
                       2 * delta * site.constant_error + FLOOR * EPSILON * np.maximum(np.abs(site.row_constant), 1))
        return
    constants = oracle_indicators.row_constants(site.scores, site.allowed, site.sink_logits)
    verdict.number("map_row_constant", place, stored["row_constant"], constants,
                   delta + FLOOR * EPSILON * np.maximum(np.abs(constants), 1))


def check_output(verdict, place, trace, loss, logits, tolerance):
    if trace.logits is None:
        if logits is not None and not np.isnan(logits).all():
            verdict.fail("logits", f"{place}: present, but the model has no head")
    elif logits is None:
        verdict.fail("logits", f"{place}: absent")
    else:
        verdict.number("logits", place, logits, trace.logits, tolerance)
    if trace.causal and trace.logits is not None:
        expected = oracle_indicators.next_token_loss(trace.logits, trace.tokens)
        verdict.number("loss", place, loss, expected, 2 * tolerance + FLOOR * EPSILON * np.abs(np.nan_to_num(expected)))
    elif loss is not None:
        verdict.number("loss", place, loss, np.full(len(trace.tokens), np.nan), 1)
