#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes tests/oracle/generate/data/longbench_thudm.json: prompts and scores of THUDM/LongBench, for tests/core/evaluation.

    python tests/oracle/generate/longbench_thudm.py FOLDER

FOLDER is LongBench/ of a checkout of THUDM/LongBench at 2e00731. Its eval.py and metrics.py compute the scores, with
numpy, rouge==1.0.1 and fuzzywuzzy==0.18.0 without python-Levenshtein, as its requirements.txt installs them; exits with 77
where one is missing. Of what they import, jieba (Chinese tasks) alone is not needed.
"""

import importlib.util
import json
import random
import sys
import types
from pathlib import Path

missing = [name for name in ("numpy", "rouge", "fuzzywuzzy") if not importlib.util.find_spec(name)]
if missing or importlib.util.find_spec("Levenshtein"):
    print("skipped: numpy, rouge==1.0.1 and fuzzywuzzy==0.18.0 without python-Levenshtein are needed; missing:", missing)
    sys.exit(77)

HERE = Path(__file__).resolve().parent
ITEM = {"context": "Text with {braces} and {input}.\n  Second line é.\n", "input": " What? {context}\n"}
TASKS = ["2wikimqa", "hotpotqa", "multifieldqa_en", "qasper", "multi_news", "gov_report", "trec", "triviaqa", "samsum", "lcc",
         "repobench-p"]
CLASSES = ["Number", "Number of something", "Other number", "Date", "Other location", "Location", "Date of birth"]
QUESTIONS = ["", " ", "\n", "\n\nThe cat.\nAnd more", "  the cat\n", " \nThe cat", "the cat sat", "A cat. The dog", "dog\n\n\ncat"]
TYPES = ["Number", "\nNumber\nDate", " Location ", "Other location, Number", "\n\n Date of birth\nNumber", "", "nothing\nNumber"]
SUMMARIES = ["", " ", "..", "\n\nThe cat sat. On a mat.\nAnd more", "the cat sat on the mat", "One. Two three. One two. ",
             "one two. three one two", " \nword\tword . next", "a..b", "Ein Bär, ÉTÉ. ein Bär"]
CODE = ["", "    return x + 1", "\n\n    return x + 1\n", "   \n    return x + 1", "`\n\nreturn x + 1", "# no\n  \nreturn x", "\n \nfoo(a)",
        "// no\nreturn x + 2;", "```\n# a\n```", "return x+1\nreturn x + 1", "a" * 250 + "bcd", "xyz" + "a" * 260]


def main(folder):
    sys.modules["jieba"] = types.ModuleType("jieba")
    sys.path.insert(0, str(folder))
    import eval as theirs  # noqa: E402

    prompts = json.loads((folder / "config/dataset2prompt.json").read_text())
    tokens = json.loads((folder / "config/dataset2maxlen.json").read_text())

    def scored(task, said, answers, classes=None):
        metric = theirs.dataset2metric[task]
        own = theirs.scorer(task, [said], [answers], classes)
        text = said.lstrip("\n").split("\n")[0] if task in ("trec", "triviaqa", "samsum", "lsht") else said
        exact = max([0.0] + [metric(text, answer, all_classes=classes) for answer in answers])
        assert round(100 * exact, 2) == own
        return {"task": task, "said": said, "answers": answers, "classes": classes, "score": exact}

    scores = []
    for task in ("qasper", "triviaqa"):
        for said in QUESTIONS:
            for answer in ("the cat", "dog", ""):
                scores.append(scored(task, said, [answer]))
    scores.append(scored("triviaqa", "\ncat\ndog", ["bird", "dog", "a cat"]))
    scores.append(scored("triviaqa", "cat", []))
    for said in TYPES:
        for answer in CLASSES:
            scores.append(scored("trec", said, [answer], CLASSES))
    draw = random.Random(1)
    for task in ("gov_report", "samsum"):
        for said in SUMMARIES:
            for answer in SUMMARIES[3:]:
                scores.append(scored(task, said, [answer]))
        scores.append(scored(task, "the cat. a dog", ["bird", "the dog. cat", "a cat"]))
    for _ in range(30):  # several longest common subsequences
        made = [" ".join(draw.choice("abcd") + draw.choice([".", "", "\n"]) for _ in range(draw.randint(1, 14))) for _ in range(2)]
        scores.append(scored("multi_news", made[0], [made[1]]))
    for task in ("lcc", "repobench-p"):
        for said in CODE:
            for answer in CODE[:5]:
                scores.append(scored(task, said, [answer]))
        for _ in range(10):
            made = ["".join(draw.choice("abcde (){};") for _ in range(draw.randint(1, 250))) for _ in range(2)]
            scores.append(scored(task, made[0], [made[1]]))
    data = {"item": {**ITEM, "answers": ["x"], "length": 8000, "all_classes": None},
            "tasks": {task: {"prompt": prompts[task].format(**ITEM), "tokens": tokens[task]} for task in TASKS},
            "scores": scores}
    text = json.dumps(data, separators=(",", ":")).replace('{"task"', '\n{"task"') + "\n"
    (HERE / "data/longbench_thudm.json").write_text(text)
    print(len(data["tasks"]), "tasks,", len(scores), "scores")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
