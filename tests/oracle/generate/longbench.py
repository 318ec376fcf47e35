#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/longbench.json: lm-eval's prompts and scores of LongBench's tasks, for tests/core/evaluation.

    python tests/oracle/generate/longbench.py

Needs lm_eval==0.4.13 (its files alone), rouge==1.0.1 and fuzzywuzzy==0.18.0 without python-Levenshtein, as
lm_eval[longbench] installs them, jinja2 and PyYAML; nothing is fetched. The prompts are of the task files, rendered as
lm_eval renders them; the scores are those of its metrics.py.
"""

import importlib.util
import json
import random
import sys
import types
from pathlib import Path

import jinja2
import yaml

FOLDER = Path(__file__).resolve().parent
TASKS = ["2wikimqa", "hotpotqa", "multifieldqa_en", "qasper", "multi_news", "gov_report", "trec", "triviaqa", "samsum", "lcc",
         "repobench-p"]
ITEM = {"context": "Text with {braces}, {{ more }} and {input}.\n  Second line é.\n", "question": " What? {context}\n"}
CLASSES = ["Number", "Number of something", "Other number", "Date", "Other location", "Location", "Reason", "Date of birth"]
TEXTS = ["", " ", "The cat.", "a an the", "the cat sat on the mat", "The cat sat. On a mat it sat!", "Ein Bär, ÉTÉ und İstanbul",
         "the the the cat", "One. Two three. One two. ", "one two. three one two", "..", "a..b", "word\tword\nword . next",
         "An answer: 42%", "42", "don't stop", "dont stop", "theatre a", "x.y.z. y", "y z x y x z. x z"]
CODE = ["", "    return x + 1", "```python\n# comment\n    return x + 1\n", "\n\n  \nfoo(bar, baz)", "// no\nint i = 0;", "return x+1",
        "for (int i = 0; i < n; ++i) sum += values[i];", "for (size_t i = 0; i < size; i++) total += value[i];",
        "é = naïve(ü)", "a" * 250 + "bcd", "ab" * 130 + " end of the line", "xyz" + "a" * 260, "`", "#", "x  # y"]


def files():
    spec = importlib.util.find_spec("lm_eval")
    return Path(spec.submodule_search_locations[0]) / "tasks" / "longbench"


def metrics():
    sys.modules["jieba"] = types.ModuleType("jieba")  # of the Chinese tasks
    spec = importlib.util.spec_from_file_location("longbench_metrics", files() / "metrics.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Loader(yaml.SafeLoader):
    """Functions by their names."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def task(name):
    said = yaml.load((files() / f"{name}.yaml").read_text(), Loader)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return {"prompt": environment.from_string(said["doc_to_text"]).render(**ITEM),
            "tokens": said["generation_kwargs"]["max_gen_toks"], "stops": said["generation_kwargs"]["until"],
            "metrics": [one["metric"] for one in said["metric_list"]], "configuration": said["dataset_name"],
            "split": said["test_split"]}


def scored(module, metric, said, answers, classes=None):
    score = getattr(module, "get_" + metric)({"answers": answers, "all_classes": classes}, [said])[metric]
    return {"metric": metric, "said": said, "answers": answers, "classes": classes, "score": score}


def scores(module):
    draw = random.Random(1)
    for metric in ("qa_f1_score", "rouge_score"):
        for said in TEXTS:
            for answer in TEXTS:
                yield scored(module, metric, said, [answer])
        yield scored(module, metric, "the cat", [])
        yield scored(module, metric, "the cat", ["dog", "a cat", "bird"])
        for _ in range(30):  # several longest common subsequences
            made = [" ".join(draw.choice("abcd") + draw.choice([".", ""]) for _ in range(draw.randint(1, 14))) for _ in range(2)]
            yield scored(module, metric, made[0], [made[1]])
    for said in ["Number", "Other number of something", "Date of birth", "Number of something, Date", "nothing", " Location ",
                 "Other location Location Reason"]:
        for answer in CLASSES:
            yield scored(module, "classification_score", said, [answer], CLASSES)
    for said in CODE:
        for answer in CODE:
            yield scored(module, "code_sim_score", said, [answer])
    for _ in range(40):
        made = ["".join(draw.choice("abcde (){};") for _ in range(draw.randint(1, 300))) for _ in range(2)]
        yield scored(module, "code_sim_score", made[0], [made[1], made[0][:50]])


def main():
    module = metrics()
    data = {"item": {"input": ITEM["question"], "context": ITEM["context"], "answers": ["x"], "length": 4000, "all_classes": None},
            "tasks": {name + end: task(name + end) for name in TASKS for end in ("", "_e")}, "scores": list(scores(module))}
    (FOLDER / "data/longbench.json").write_text(json.dumps(data, separators=(",", ":")).replace('{"metric"', '\n{"metric"') + "\n")
    print(len(data["tasks"]), "tasks,", len(data["scores"]), "scores")


if __name__ == "__main__":
    main()
