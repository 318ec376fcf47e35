# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden data of tests/core/figures/test_t_test.cpp: Student's t-tests by scipy.stats. Needs numpy and scipy.

    python tests/oracle/generate/t_test.py            writes tests/oracle/generate/data/t_test.json
    python tests/oracle/generate/t_test.py --check    fails where the committed numbers differ by more than 1e-12
"""

import json
import pathlib
import sys

import numpy
from scipy import stats

FILE = pathlib.Path(__file__).parent / "data/t_test.json"


def samples():
    """Seeds of two models, equal or not in size and spread, near and far."""
    draw = numpy.random.default_rng(20)
    for n, m in [(2, 2), (2, 5), (3, 3), (5, 5), (5, 3), (10, 40)]:
        for shift, spread in [(0, 1), (0.3, 1), (2, 0.1), (20, 5)]:
            yield draw.normal(0, 1, n).round(6), draw.normal(shift, spread, m).round(6)


def pairs():
    """Items of two models: right or wrong, and scores between."""
    draw = numpy.random.default_rng(15)
    for n in [2, 3, 20, 400]:
        for keep in [0.5, 0.9]:
            a = (draw.random(n) < 0.6).astype(float)
            yield a, numpy.where(draw.random(n) < keep, a, 1 - a)
            yield draw.random(n).round(6), draw.random(n).round(6)


def row(result, a, b):
    return {"a": list(a), "b": list(b), "t": float(result.statistic), "degrees": float(result.df),
            "p": float(result.pvalue)}


def made():
    # Below 1e-3 scipy itself is off by 3e-9 (t = 1e-8, one degree: 1 - 2 atan(t) / pi is the exact value).
    tails = [{"t": t, "degrees": d, "p": float(2 * stats.t.sf(abs(t), d))}
             for d in [0.5, 1, 1.7, 2, 4.3, 9, 30, 39.5, 100, 1000, 10041, 200000]
             for t in [0, 1e-3, 0.1, 0.7, 1, 1.96, 2.5, 4, 7, 12, 30, 200]]
    kept = [row(stats.ttest_rel(a, b), a, b) for a, b in pairs() if numpy.ptp(a - b) > 0]
    return {"tails": tails, "welch": [row(stats.ttest_ind(a, b, equal_var=False), a, b) for a, b in samples()],
            "paired": kept}


def numbers(value):
    if isinstance(value, dict):
        return [n for part in value.values() for n in numbers(part)]
    return [n for part in value for n in numbers(part)] if isinstance(value, list) else [value]


if __name__ == "__main__":
    if "--check" in sys.argv:
        ours, theirs = numbers(json.loads(FILE.read_text())), numbers(made())
        if len(ours) != len(theirs) or not numpy.allclose(ours, theirs, rtol=1e-12, atol=1e-15):
            sys.exit(f"{FILE}: expected scipy's numbers; found others")
    else:
        FILE.write_text(json.dumps(made()) + "\n")
