# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope evaluate --predictions` on made-up questions against the official scripts of SQuAD 1.1 and 2.0, item by item.

    python squad_acceptance.py HEADSCOPE FOLDER

FOLDER has evaluate-v1.1.py and evaluate-v2.0.py as the data sets' authors publish them; the second needs numpy. Exits with 77
where they are missing.
"""

import contextlib
import importlib.util
import io
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

WORDS = ("the The a An an cat Cats, dog's 42 4,2 X-ray naïve İstanbul ﬁne ß ÉTÉ été १२ ² ½ _ __ a_b the_end theatre · – — “quoted” "
         "non\u00a0breaking \u3000 zero\u200bwidth e\u0301 🙂 . , !? $5 %").split(" ")
QUESTIONS = 400


def script(folder, version):
    spec = importlib.util.spec_from_file_location("squad_" + version.replace(".", "_"), folder / f"evaluate-v{version}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def text(draw, most=4):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def make(draw, may_lack):
    """Articles of the original document, answers by id, and no_answer by id."""
    articles, said, no_answer = [], {}, {}
    for number in range(QUESTIONS):
        truths = [text(draw) for _ in range(draw.choice([0, 0, 1, 2, 3]) if may_lack else draw.randint(1, 3))]
        context = " ".join(truths) + " end"
        name = f"q{number}"
        answers = [{"text": truth, "answer_start": context.index(truth)} for truth in truths]
        if number % 40 == 0:
            articles.append({"title": "t", "paragraphs": []})
        articles[-1]["paragraphs"].append({"context": context, "qas": [{"id": name, "question": "Why?", "answers": answers,
                                                                       "is_impossible": not answers}]})
        said[name] = draw.choice(truths) + draw.choice(["", ".", " the"]) if truths and draw.random() < 0.6 else text(draw)
        no_answer[name] = draw.choice([-1.5, 0.0, 0.5]) if draw.random() < 0.3 else draw.uniform(-3, 3)
    return articles, said, no_answer


def evaluate(program, task, data, answers, folder):
    items = folder / "items.jsonl"
    done = subprocess.run([program, "evaluate", "--predictions", answers, "--task", task, "--data", data, "--json", "--items", items],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{task}: {done.stderr}")
    lines = {line["id"]: line for line in map(json.loads, items.read_text().split("\n")[:-1])}
    return {row["metric"]: row["value"] for row in json.loads(done.stdout)["results"]}, lines


def first(official, articles, said):
    items = {}
    for article in articles:
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                truths, answer = [one["text"] for one in question["answers"]], said[question["id"]]
                best = lambda score: float(official.metric_max_over_ground_truths(score, answer, truths))
                items[question["id"]] = {"exact_match": best(official.exact_match_score), "f1": best(official.f1_score)}
    total = official.compute_score(articles, said) if hasattr(official, "compute_score") else official.evaluate(articles, said)
    return items, {name: value / 100 for name, value in total.items()}


def second(official, articles, said, no_answer):
    exact, f1 = official.get_raw_scores(articles, said)
    has_answer = official.make_qid_to_has_ans(articles)
    total = {}
    for prefix, wanted in (("", None), ("HasAns_", True), ("NoAns_", False)):
        names = [name for name, has in has_answer.items() if wanted is None or has == wanted]
        made = official.make_eval_dict(exact, f1, qid_list=names) if wanted is not None else official.make_eval_dict(exact, f1)
        total |= {prefix + name: made[name] / 100 for name in ("exact", "f1")}
    best = {}
    official.find_all_best_thresh(best, said, exact, f1, no_answer, has_answer)
    for name in ("exact", "f1"):
        total |= {f"best_{name}": best[f"best_{name}"] / 100, f"best_{name}_thresh": best[f"best_{name}_thresh"]}
    return {name: {"exact": float(exact[name]), "f1": float(f1[name])} for name in exact}, total


def main(program, folder):
    if not all((folder / f"evaluate-v{version}.py").exists() for version in ("1.1", "2.0")):
        print(f"skipped: {folder} lacks evaluate-v1.1.py or evaluate-v2.0.py")
        sys.exit(77)
    compared = problems = 0
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stderr(io.StringIO()):
        temporary = Path(temporary)
        for task, version in (("squad", "1.1"), ("squad_v2", "2.0")):
            articles, said, no_answer = make(draw, task == "squad_v2")
            data, answers = temporary / f"{task}.json", temporary / "answers.jsonl"
            data.write_text(json.dumps({"version": version, "data": articles}))
            answers.write_text("".join(json.dumps({"id": name, "generated": said[name], "no_answer": no_answer[name]}
                                                  if task == "squad_v2" else {"id": name, "generated": said[name]}) + "\n"
                                       for name in said))
            official = script(folder, version)
            items, total = (second(official, articles, said, no_answer) if task == "squad_v2" else first(official, articles, said))
            rows, lines = evaluate(program, task, data, answers, temporary)
            pairs = [(f"{task} {name} {metric}, {said[name]!r}", lines[name][metric], value)
                     for name, wanted in items.items() for metric, value in wanted.items()]
            pairs += [(f"{task} {metric}", rows.get(metric, float("nan")), value) for metric, value in total.items()]
            for what, found, wanted in pairs:
                compared += 1
                if not abs(found - wanted) <= 1e-9:
                    problems += 1
                    print(f"BAD {what}: {found}, not {wanted}")
    print(f"{compared} comparisons, {problems} problems")
    sys.exit(1 if problems or compared < 4 * QUESTIONS else 0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
