#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of fine-tuning and translation by sklearn, scipy and sacrebleu: task_metrics.json.

    pip install scikit-learn scipy sacrebleu==2.6.0
    python task_metrics.py

SQuAD's normalisation and F1 are nobody's package: here they stand in Python's str and re, from their definition.
"""

import collections
import json
import pathlib
import re
import string

import numpy as np
import sacrebleu
from scipy import stats
from sklearn import metrics

SENTENCES = (
    "The cat sat on the mat.", "the cat sat on the mat", "The cat, sat on a mat!", "", ".", " \t", "a", "a b",
    "a b c",
    "On 3.14 and 1,000.5, about 2-3 % (or 1980-1990).", "On 3.14 and 1,000.5, about 2 - 3 % (or 1980-1990).",
    "He said: &quot;5 &lt; 6 &amp;amp; 7 &gt; 2&quot; <skipped>twice.", 'He said: "5 < 6 &amp; 7 > 2" twice.',
    "a hyphen-\nated line\nend", "a hyphenated line end", "Zürich, naïve café.",
    "Zu\u0308rich, nai\u0308ve cafe\u0301.",
    "東京は、大きい。とても.", "東京は、大きい。とても。", "«quoted» — „so“ …", "no\u00a0break\u2003space\u200bzero\u3000wide",
    "no break space\u200bzero wide", "...", "1.", ".5", "5.,5", "a.b,c", "é.è", "10-x -10 3--4",
    "it's o'clock 'til five",
    "[a]{b}|~`^_\\/@#$*+=;?", "١٢.٣٤ and ٥-٦", "😀. 😀, 😀-😀", "trailing \u2028\n", "\u001funit\u001cmark",
)
ANSWERS = (
    "The Beatles", "beatles", "a an the", "", "U.S.A.", "usa", "theatre", "The the", "l'an", "an\u0301 a\u0301",
    "\u00c9cole, the \u00c9COLE", "école", "İstanbul", "i\u0307stanbul", "ΟΔΟΣ the", "οδος", "a-b the-c", "ab thec",
    "1,000", "1 000", "1000", "the_a", "thea", "“the” answer", "answer answer other", "answer", "東 the 京", "a東", "…",
    "\u00a0a\u2003b ", "ß STRASSE", "²a a²",
)


def normalized(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def span(said, truths):
    wanted = [text for text in map(normalized, truths) if text] or [""]
    said = normalized(said)
    best = [0.0, 0.0]
    for truth in wanted:
        mine, theirs = said.split(), truth.split()
        same = sum((collections.Counter(mine) & collections.Counter(theirs)).values())
        f1 = float(mine == theirs) if not mine or not theirs else 2 * same / (len(mine) + len(theirs))
        best = [max(best[0], f1), max(best[1], float(said == truth))]
    return best


def classes(random, count, kinds, constant=False):
    truth = random.integers(0, kinds, count)
    said = np.where(random.random(count) < 0.6, truth, random.integers(0, kinds, count))
    if constant:
        said[:] = kinds - 1
    return {
        "said": said.tolist(), "truth": truth.tolist(), "accuracy": metrics.accuracy_score(truth, said),
        "f1": metrics.f1_score(truth, said, labels=[1], average="macro", zero_division=0),
        "f1_macro": metrics.f1_score(truth, said, average="macro", zero_division=0),
        "matthews": float(metrics.matthews_corrcoef(truth, said)),
    }


def numbers(random, count, steps):
    truth = random.integers(0, steps, count) / 4
    said = np.float32(truth + random.normal(0, 1, count)).astype(float)
    said[::3] = np.round(said[::3])
    return {"said": said.tolist(), "truth": truth.tolist(), "ranks": stats.rankdata(said).tolist(),
            "spearman": float(stats.spearmanr(said, truth).statistic)}


def corpora(random):
    pairs = [(a, b) for a in SENTENCES for b in SENTENCES]
    for number in range(60):
        size = 1 if number < 20 else int(random.integers(1, 8))
        if number >= 40:  # mostly right
            said = [SENTENCES[i] for i in random.integers(0, len(SENTENCES), size)]
            yield said, [text if random.random() < 0.8 else text[::-1] for text in said]
            continue
        yield tuple(zip(*(pairs[i] for i in random.integers(0, len(pairs), size))))


def main():
    random = np.random.default_rng(28)
    bleu = sacrebleu.metrics.BLEU(force=True)
    scores = []
    for said, truth in corpora(random):
        found = bleu.corpus_score(list(said), [list(truth)])
        scores.append({"said": list(said), "truth": list(truth), "score": found.score, "brevity": found.bp})
    data = {
        "classes": [classes(random, count, kinds) for count, kinds in ((1, 2), (2, 2), (40, 2), (33, 3), (101, 7))] +
                   [classes(random, 9, 2, constant=True), classes(random, 9, 3, constant=True)],
        "numbers": [numbers(random, count, steps) for count, steps in ((3, 5), (20, 6), (77, 21))],
        "tokens": [[text, bleu.tokenizer(text.rstrip()).split()] for text in SENTENCES],
        "bleu": scores,
        "normalized": [[text, normalized(text)] for text in ANSWERS],
        "spans": [[said, truths, *span(said, truths)] for said in ANSWERS
                  for truths in ([], [ANSWERS[int(random.integers(len(ANSWERS)))]],
                                 [ANSWERS[i] for i in random.integers(0, len(ANSWERS), 3)])],
    }
    path = pathlib.Path(__file__).parent / "data/task_metrics.json"
    path.write_text(json.dumps(data, separators=(",", ":")).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
