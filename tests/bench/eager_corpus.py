# SPDX-License-Identifier: GPL-3.0-or-later
"""The statistics of `ask corpus` in torch on transformers' eager attention, as one writes them first.

Weights of a text are one float32 tensor [heads of all layers, L, L]; sums over texts are float64.
    headvis_measures   the seven measures of HeadVis alone
    EagerCorpus        all that the command stores of heads: these measures, indicators with their spread, the histogram
                       of largest weights, intervals, kept texts, and their tokens and distances by weight
"""

import bisect

import torch

SMALLEST = 2.0**-126  # normal float32
CELLS, BINS, TOP = 50, 14, 20  # of largest weights, of distances, tokens by weight
BY_CHANCE, HIGHEST = 3, 10  # kept texts of an interval, and of the highest one
FEWEST_SETTING, MOST_SETTING = 50, 2000  # texts that set the intervals
WORD = 2**64 - 1


def weights_of(model, tokens):
    """[layers, heads, L, L]"""
    return torch.stack(model(tokens[None], output_attentions=True, use_cache=False).attentions)[:, 0]


def patterns_of(tokens):
    """[L, L] each: distance of query and key, earlier copies of the query's token, keys behind such copies."""
    places = torch.arange(len(tokens))
    apart = (places[:, None] - places[None]).abs()
    copies = (tokens[:, None] == tokens[None]).float().tril(-1)
    follows = torch.zeros_like(copies)
    follows[:, 1:] = copies[:, :-1]
    return apart, copies, follows


def sums_of(maps, apart, follows):
    """Sums over all pairs of one text, by head."""
    distance = apart.float()
    return {"self": maps.diagonal(dim1=-2, dim2=-1).sum(-1),
            "previous": maps.diagonal(-1, -2, -1).sum(-1),
            "entropy": -(maps * maps.clamp_min(SMALLEST).log()).sum((-2, -1)),
            "distance": (maps * distance).sum((-2, -1)),
            "square": (maps * distance**2).sum((-2, -1)),
            "induction": (maps * follows).sum((-2, -1))}


def measures_of(sums, texts, tokens, repeats):
    """The measures of HeadVis from sums over texts; `repeats`: tokens with an earlier copy."""
    mean = sums["distance"] / tokens
    return {"self_attention_score": sums["self"] / tokens, "prev_token_score": sums["previous"] / (tokens - texts),
            "pattern_entropy": sums["entropy"] / tokens, "qk_distance": mean,
            "qk_distance_variance": sums["square"] / tokens - mean**2, "induction_score": sums["induction"] / repeats,
            "maximum_mean": sums["maximum"] / texts}


def add_to(sums, own):
    for name, value in own.items():
        sums[name] = sums.get(name, 0) + value.double()


def headvis_measures(model, texts):
    sums, repeats = {}, 0
    with torch.inference_mode():
        for ids in texts:
            tokens = torch.tensor(ids)
            maps = weights_of(model, tokens)
            apart, copies, follows = patterns_of(tokens)
            add_to(sums, sums_of(maps, apart, follows))
            add_to(sums, {"maximum": maps[..., 1:, 1:].amax((-2, -1))})
            repeats += int(copies.any(-1).sum())
    return measures_of(sums, len(texts), sum(map(len, texts)), repeats)


def splitmix64(number):
    """As core/base/splitmix64.h: the same texts are kept."""
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & WORD
    return number ^ (number >> 31)


def top_tokens(tokens, masses):
    """The tokens with most weight and their weights, of lists of tensors."""
    if not tokens:
        return [], []
    each, place = torch.cat(tokens).unique(return_inverse=True)
    sums = torch.zeros(len(each), dtype=torch.float64).index_add_(0, place, torch.cat(masses).double())
    sums, order = sums.sort(descending=True, stable=True)
    count = min(TOP, int((sums > 0).sum()))
    return each[order[:count]].tolist(), sums[:count].tolist()


class EagerCorpus:
    """One pass over `documents` texts; heads are numbered through all layers."""

    def __init__(self, heads, documents, intervals=5, seed=0):
        self.heads, self.intervals, self.seed = heads, intervals, seed
        self.setting = min(MOST_SETTING, max(FEWEST_SETTING, documents // 10))
        self.sums, self.indicators = {}, {}
        self.texts = self.tokens = self.repeats = 0
        self.histogram = torch.zeros(heads, CELLS, dtype=torch.float64)
        self.maxima, self.boundaries = [], []
        self.counts = [[0] * intervals for _ in range(heads)]
        self.kept = [[None] * (BY_CHANCE * (intervals - 1) + HIGHEST) for _ in range(heads)]

    def add(self, document, maps, tokens):
        length = len(tokens)
        apart, copies, follows = patterns_of(tokens)
        sums = sums_of(maps, apart, follows)
        sums["maximum"], place = maps[..., 1:, 1:].flatten(-2).max(-1)
        add_to(self.sums, sums)

        allowed = torch.ones(length, length, dtype=torch.bool).tril()
        sink, density = maps[..., 0].sum(-1) / length, maps[..., 1:].sum((-2, -1)) / length
        own = {"entropy": sums["entropy"], "entropy_row_mean": sums["entropy"] / length,
               "concentration": (maps**2).sum((-2, -1)).sqrt(), "sink": sink, "density": density,
               "sparsity": 1 - density - sink,
               "zero_fraction": ((maps < SMALLEST) & allowed).sum((-2, -1)) / allowed.sum(),
               "mean_distance": sums["distance"] / length, "duplicate": (maps * copies).sum((-2, -1)) / length,
               "induction": sums["induction"] / length}
        for name, value in own.items():
            self.indicators.setdefault(name, []).append(value.double())

        by_query, by_key = maps[..., 1:].sum(-1), maps.sum(-2)
        by_key[:, 0] = 0
        bin_of = torch.tensor([min(distance.bit_length(), BINS - 1) for distance in range(length)])
        in_bin = torch.nn.functional.one_hot(bin_of[apart], BINS).float()
        by_distance = torch.einsum("hij,ijb->hb", maps, in_bin)

        maximum = sums["maximum"].double()
        self.histogram[torch.arange(self.heads), (maximum * CELLS).long().clamp(0, CELLS - 1)] += 1
        self.repeats += int(copies.any(-1).sum())
        self.tokens += length
        self.texts += 1
        if self.texts <= self.setting:
            self.maxima.append(maximum.tolist())
            if self.texts == self.setting:
                self.set_intervals()
            return
        queries, keys = (place // (length - 1) + 1).tolist(), (place % (length - 1) + 1).tolist()
        for head, largest in enumerate(maximum.tolist()):
            slot = self.slot_for(head, document, largest)
            if slot is not None:
                self.kept[head][slot] = (document, largest, queries[head], keys[head], tokens, by_query[head].clone(),
                                         by_key[head].clone(), by_distance[head].clone())

    def set_intervals(self):
        count = len(self.maxima)
        for head in range(self.heads):
            ordered = sorted(maxima[head] for maxima in self.maxima)
            places = (round(i * count / self.intervals) for i in range(1, self.intervals))
            self.boundaries.append([ordered[min(place, count - 1)] for place in places])

    def slot_for(self, head, document, largest):
        """The place of a text among those that the head keeps; None: it is not kept."""
        interval = bisect.bisect_right(self.boundaries[head], largest)
        before = self.counts[head][interval]
        self.counts[head][interval] += 1
        begin = BY_CHANCE * interval
        if interval == self.intervals - 1:
            if before < HIGHEST:
                return begin + before
            slots = range(begin, begin + HIGHEST)
            slot = min(slots, key=lambda one: self.kept[head][one][1])
            return slot if self.kept[head][slot][1] < largest else None
        if before < BY_CHANCE:
            return begin + before
        draw = splitmix64((splitmix64(self.seed + head) + document) & WORD) % (before + 1)
        return begin + draw if draw < BY_CHANCE else None

    def measures(self):
        """Tables of /corpus whose numbers depend on all texts."""
        if not self.boundaries:
            self.set_intervals()
        found = measures_of(self.sums, self.texts, self.tokens, self.repeats)
        for name, values in self.indicators.items():
            found[f"mean/{name}"], found[f"std/{name}"] = torch.stack(values).mean(0), torch.stack(values).std(0)
        found["maximum_histogram"] = self.histogram
        found["interval_boundary"] = torch.tensor(self.boundaries, dtype=torch.float64)
        found["interval_count"] = torch.tensor(self.counts, dtype=torch.float64)
        return found

    def of_kept_texts(self):
        """Tables of /corpus that depend on the kept texts; -1 where there is none."""
        slots = len(self.kept[0])
        found = {name: torch.full((self.heads, slots), -1.0, dtype=torch.float64)
                 for name in ("kept", "kept_maximum", "kept_query", "kept_key")}
        for name in ("query_token", "query_mass", "key_token", "key_mass"):
            found[name] = torch.full((self.heads, TOP), -1.0, dtype=torch.float64)
        found["distance_histogram"] = torch.zeros(self.heads, BINS, dtype=torch.float64)
        for head, kept in enumerate(self.kept):
            there = [one for one in kept if one is not None]
            for slot, one in enumerate(kept):
                if one is not None:
                    for number, name in enumerate(("kept", "kept_maximum", "kept_query", "kept_key")):
                        found[name][head, slot] = one[number]
            for of, number in (("query", 5), ("key", 6)):
                tokens, masses = top_tokens([one[4] for one in there], [one[number] for one in there])
                found[f"{of}_token"][head, :len(tokens)] = torch.tensor(tokens, dtype=torch.float64)
                found[f"{of}_mass"][head, :len(masses)] = torch.tensor(masses, dtype=torch.float64)
            for one in there:
                found["distance_histogram"][head] += one[7]
        return found


def eager_corpus(model, texts):
    """Both kinds of tables of these texts."""
    with torch.inference_mode():
        heads = model.config.num_hidden_layers * model.config.num_attention_heads
        corpus = EagerCorpus(heads, len(texts))
        for document, ids in enumerate(texts):
            tokens = torch.tensor(ids)
            corpus.add(document, weights_of(model, tokens).flatten(0, 1), tokens)
        return corpus.measures(), corpus.of_kept_texts()
