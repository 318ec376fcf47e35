#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics and errors of random log-likelihoods by lm-eval's own functions: harness_metrics.json.

    pip install lm_eval==0.4.13
    python harness_metrics.py

Items go through ConfigurableTask.process_results with what a task would answer about them, their values through the
aggregations and errors of lm_eval.api.metrics. lm-eval has no error of pages: theirs is the ratio estimator in numpy.
"""

import json
import math
import os
import pathlib
import types

import numpy as np

os.environ["DISABLE_MULTIPROC"] = "1"
from lm_eval.api import metrics  # noqa: E402
from lm_eval.api.registry import get_metric_aggregation  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402
from lm_eval.tasks.fda.task import contains_score  # noqa: E402

OPTIONS = ("Paris", "a", "the city of light", "Zürich", "東京", "e\u0301t\u0301", "seven", "")


def judged(kind, names, doc, results):
    task = types.SimpleNamespace(
        config=types.SimpleNamespace(process_results=None), OUTPUT_TYPE=kind, _metric_fn_list=dict.fromkeys(names),
        multiple_input=False, multiple_target=False, doc_to_choice=lambda doc: doc["options"],
        doc_to_target=lambda doc: doc["gold"] if kind == "multiple_choice" else doc["page"],
        count_words=ConfigurableTask.count_words, count_bytes=ConfigurableTask.count_bytes)
    return ConfigurableTask.process_results(task, doc, results)


def rounded(values):
    return [float(f"{value:.7g}") for value in values]


def choices(random, count):
    items, values = [], {"acc": [], "acc_norm": []}
    for number in range(count):
        options = [OPTIONS[i] for i in random.permutation(len(OPTIONS))[:random.integers(2, 6)]]
        lls = rounded(-random.exponential(4, len(options)) * [1 + len(option) for option in options])
        if number % 5 == 0:  # the first of equal ones
            lls[-1] = lls[0] = max(lls)
            options[-1] = options[0]
        gold = int(random.integers(len(options)))
        found = judged("multiple_choice", values, {"options": options, "gold": gold}, [(ll, False) for ll in lls])
        items.append({"options": options, "gold": gold, "loglikelihoods": lls} | found)
        for name, value in found.items():
            values[name].append(value)
    return {"items": items, "values": {name: [metrics.mean(each), metrics.mean_stderr(each) if count > 1 else None]
                                       for name, each in values.items()}}


def last_word(random, count, resamples):
    lls, greedy = rounded(-random.exponential(2, count)), [bool(value) for value in random.integers(0, 2, count)]
    found = [judged("loglikelihood", ("perplexity", "acc"), {}, [pair]) for pair in zip(lls, greedy)]
    likely, right = [one["perplexity"] for one in found], [one["acc"] for one in found]
    return {"loglikelihoods": lls, "greedy": greedy,
            "perplexity": metrics.perplexity(likely), "acc": [metrics.mean(right), metrics.mean_stderr(right)],
            "errors": [[n, metrics.stderr_for_metric(metrics.perplexity, n)(likely)] for n in resamples]}


def pages(random):
    texts = ("", "One page.", " of three  words\n", "東京 is a city\u3000in Japan", "x" * 301 + " y")
    lls = rounded(-random.exponential(0.3, len(texts)) * [1 + len(text) for text in texts])
    found = [judged("loglikelihood_rolling", ("word_perplexity", "byte_perplexity", "bits_per_byte"), {"page": text}, [ll])
             for text, ll in zip(texts, lls)]
    values, k = {}, len(texts)
    for name in found[0]:
        pairs = [one[name] for one in found]
        value = get_metric_aggregation(name)(pairs)
        nats, sizes = -np.array(pairs).T[0], np.array(pairs).T[1]
        error = math.sqrt(k / (k - 1) * ((nats - nats.sum() / sizes.sum() * sizes)**2).sum()) / sizes.sum()
        values[name] = [value, error / math.log(2) if name == "bits_per_byte" else error * value]
    return {"items": [{"words": one["word_perplexity"][1], "bytes": one["byte_perplexity"][1], "loglikelihood": ll}
                      for one, ll in zip(found, lls)], "values": values}


def said():
    cases = ((" 42 km.", ["42 KM"]), ("It is Zürich", [" ZÜRICH\n"]), ("Zurich", ["Zürich"]), ("a.c", ["abc"]), ("abc", ["a.c"]),
             ("", ["x"]), ("", [" "]), ("Straße", ["STRASSE", "strasse", "STRAẞE"]), ("none of them", ["one more", "two"]))
    values = [contains_score(generated, [answer.strip() for answer in answers]) for generated, answers in cases]
    return {"items": [{"generated": generated, "answers": answers, "contains": value}
                      for (generated, answers), value in zip(cases, values)],
            "values": {"contains": [float(np.mean(values)), metrics.mean_stderr(values)]}}


def main():
    random = np.random.default_rng(26)
    golden = {"choices": [choices(random, 23), choices(random, 1)],
              "last_word": [last_word(random, 7, (100000, 1500, 300)), last_word(random, 31, (2001, 2))],
              "pages": pages(random), "said": said()}
    path = pathlib.Path(__file__).parent / "data/harness_metrics.json"
    path.write_text(json.dumps(golden, ensure_ascii=False, separators=(",", ":")).replace("},{", "},\n{") + "\n")


if __name__ == "__main__":
    main()
