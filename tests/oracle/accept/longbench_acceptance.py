# SPDX-License-Identifier: GPL-3.0-or-later
"""`headscope evaluate` on LongBench's tasks against lm-eval 0.4.13 and THUDM/LongBench, item by item.

    python longbench_acceptance.py HEADSCOPE [--thudm FOLDER] [--items N]

Needs the files of lm_eval==0.4.13, rouge==1.0.1 and fuzzywuzzy==0.18.0 without python-Levenshtein beside the interpreter's
packages; exits with 77 where one is missing. --thudm is LongBench/ of a checkout of THUDM/LongBench at 2e00731: its
metrics.py and eval.py score, its prompts are asked and its pred.py is written down here a second time (it needs a GPU).

Random answers are scored without a model (--predictions). A random Llama answers items whose prompts are cut; transformers
generates the same texts, the libraries score them.
"""

import argparse
import importlib.util
import json
import random
import subprocess
import sys
import tempfile
import types
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[1] / folder) for folder in ("generate", "accept")]
try:
    import fuzzywuzzy.fuzz
    import rouge  # noqa: F401
    assert importlib.util.find_spec("lm_eval") and not importlib.util.find_spec("Levenshtein")
except (ImportError, AssertionError):
    print("skipped: lm_eval==0.4.13, rouge==1.0.1 and fuzzywuzzy==0.18.0 without python-Levenshtein are needed")
    sys.exit(77)

import longbench as lm_eval_files
import torch
import transformers
from harness_acceptance import Check, llama

TASKS = lm_eval_files.TASKS
CLASSES = lm_eval_files.CLASSES
WORDS = ("the a An cat. dog Cat, yes no unanswerable 42 x.y .. ... . é İ I'm well-known\u00a0here \u3000wide sum(x) # // ` \t two  blanks "
         "\n \n\n end\u2028line \x1c\x85 Number Location Other\u00adsoft Reason. Date ß ﬁ").split(" ") + CLASSES + ["", " ", "\n"]
CLOSE = 1e-9


def text(draw, most):
    return draw.choice(["", " ", "\n"]) + " ".join(draw.choice(WORDS) for _ in range(draw.randint(0, most)))


def code(draw, most):
    return "\n".join("".join(draw.choice("abcdef (){};=é.") for _ in range(draw.randint(0, most))) + draw.choice(["", "", "#", "//"])
                     for _ in range(draw.randint(1, 4)))


def said(draw, task):
    return code(draw, 260) if task in ("lcc", "repobench-p") else text(draw, 30)


def item(draw, task):
    if task == "trec":
        answers = [draw.choice(CLASSES)]
    else:
        answers = [said(draw, task) for _ in range(draw.randint(0, 3))]
    return {"input": " What? {context}\n", "context": text(draw, 60) + "{input} {{ x }}", "answers": answers,
            "length": draw.choice([10, 3999, 4000, 7999, 8000]), "all_classes": CLASSES if task == "trec" else None}


class LmEval:
    rules = "lm-eval"
    length = 700  # of prompt and answer

    def __init__(self):
        self.module = lm_eval_files.metrics()
        self.tasks = {task: lm_eval_files.task(task + "_e") for task in TASKS}

    def score(self, task, one, answer):
        metric = next(name for name in self.tasks[task]["metrics"] if name != "score")
        return getattr(self.module, "get_" + metric)(one, [answer])[metric]

    def generate(self, task, prompt, model, tokenizer):
        most, stops = self.tasks[task]["tokens"], self.tasks[task]["stops"]
        ids = tokenizer.encode(prompt)[-(self.length - most):]
        made = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=most)[0, len(ids):]
        answer = tokenizer.decode(made, skip_special_tokens=True)
        for stop in stops:
            answer = answer.split(stop)[0]
        return answer


class Thudm:
    rules = "thudm"
    length = 480  # of the prompt; 512 tokens of an answer still fit the model's 1024 positions

    def __init__(self, folder):
        sys.modules["jieba"] = types.ModuleType("jieba")  # of the Chinese tasks
        sys.path.insert(0, str(folder))
        import eval as theirs
        self.theirs = theirs
        self.prompts = json.loads((folder / "config/dataset2prompt.json").read_text())
        self.tokens = json.loads((folder / "config/dataset2maxlen.json").read_text())

    def score(self, task, one, answer):
        if task in ("trec", "triviaqa", "samsum"):
            answer = answer.lstrip("\n").split("\n")[0]
        metric = self.theirs.dataset2metric[task]
        return max([0.0] + [metric(answer, truth, all_classes=one["all_classes"]) for truth in one["answers"]])

    def classes(self, task, items, answers):
        return self.theirs.scorer_e(task, answers, [one["answers"] for one in items], [one["length"] for one in items],
                                    items[0]["all_classes"])

    def generate(self, task, prompt, model, tokenizer):
        ids = tokenizer(prompt).input_ids
        if len(ids) > self.length:
            half = self.length // 2
            ids = tokenizer(tokenizer.decode(ids[:half], skip_special_tokens=True)
                            + tokenizer.decode(ids[-half:], skip_special_tokens=True)).input_ids
        more = {}
        if task == "samsum":
            more = {"min_length": len(ids) + 1, "eos_token_id": [tokenizer.eos_token_id,
                                                                 tokenizer.encode("\n", add_special_tokens=False)[-1]]}
        made = model.generate(torch.tensor([ids]), do_sample=False, max_new_tokens=self.tokens[task], **more)[0, len(ids):]
        return tokenizer.decode(made, skip_special_tokens=True)


def evaluate(words, rules, folder):
    path = folder / "items.jsonl"
    words = [*words, "--items", path, "--json", "--task-option", f"longbench.rules={rules}"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words}: {done.stderr}")
    return json.loads(done.stdout)["results"], [json.loads(line) for line in path.read_text().split("\n") if line]


def stored(program, side, data, items, folder, check, draw):
    """Random answers without a model."""
    for task in TASKS:
        answers = []
        for one in items[task]:
            answer = said(draw, task)
            if task != "trec" and one["answers"] and draw.random() < 0.4:  # near a right one
                answer = draw.choice(["", "\n", "\n \n"]) + draw.choice(one["answers"]) + draw.choice(["", " more", ".", "\nmore"])
            answers.append(answer)
        file = folder / "answers.jsonl"
        file.write_text("".join(json.dumps({"pred": answer}) + "\n" for answer in answers))
        rows, lines = evaluate([program, "evaluate", "--predictions", file, "--task", f"longbench_{task}_e", "--data", data],
                               side.rules, folder)
        for one, answer, line in zip(items[task], answers, lines, strict=True):
            check.near(line["score"], side.score(task, one, answer), f"{side.rules} {task}: {answer!r} of {one['answers']!r}",
                       CLOSE, 0)
        if side.rules == "thudm":
            wanted = side.classes(task, items[task], answers)
            found = {row["subset"]: row["value"] for row in rows if row["metric"] == "score" and row["subset"]}
            check.that(set(found) == {name for name, value in wanted.items() if value == value}, f"thudm {task}: classes {found}")
            for name in found:
                value = wanted[name]
                check.near(100 * found[name], value, f"thudm {task} {name}", 0.005 + CLOSE, 0)


def asked(program, side, data, items, folder, model_folder, check):
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    tasks = ",".join(f"longbench_{task}_e" for task in TASKS)
    _, lines = evaluate([program, "evaluate", model_folder, "--task", tasks, "--data", data, "--length", side.length], side.rules,
                        folder)
    lines = {task: [line for line in lines if line["task"] == f"longbench_{task}_e"] for task in TASKS}
    environment = lm_eval_files.jinja2.Environment(undefined=lm_eval_files.jinja2.StrictUndefined, keep_trailing_newline=True)
    for task in TASKS:
        for one, line in zip(items[task], lines[task], strict=True):
            if side.rules == "thudm":
                prompt = side.prompts[task].format(**one)
            else:
                loaded = lm_eval_files.yaml.load((lm_eval_files.files() / f"{task}_e.yaml").read_text(), lm_eval_files.Loader)
                prompt = environment.from_string(loaded["doc_to_text"]).render(**{**one, "question": one["input"]})
            wanted = side.generate(task, prompt, model, tokenizer)
            check.that(line["generated"] == wanted, f"{side.rules} {task}: {line['generated']!r}, not {wanted!r}")
            check.near(line["score"], side.score(task, one, wanted), f"{side.rules} {task} of {wanted!r}", CLOSE, 0)


def write(data, items):
    (data / "LongBench").mkdir(parents=True, exist_ok=True)
    for task in TASKS:
        (data / f"LongBench/{task}_e.jsonl").write_text("".join(json.dumps(one) + "\n" for one in items[task]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--thudm", type=Path)
    parser.add_argument("--items", type=int, default=150)
    arguments = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    check, draw = Check(), random.Random(1)
    sides = [LmEval()]
    if arguments.thudm and (arguments.thudm / "eval.py").exists():
        sides.append(Thudm(arguments.thudm))
    else:
        print("skipped THUDM's rules: --thudm names no folder with eval.py")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data, model_folder = folder / "data", folder / "llama"
        items = {task: [item(draw, task) for _ in range(arguments.items)] for task in TASKS}
        write(data, items)
        for side in sides:
            stored(arguments.program, side, data, items, folder, check, draw)
            print(f"{'ok ' if not check.problems else '   '}{side.rules}, stored answers", flush=True)
        torch.manual_seed(1)
        llama(model_folder)
        short = {task: [item(draw, task) for _ in range(2)] for task in TASKS}
        for task in TASKS:
            short[task][1]["context"] = " ".join(draw.choice(WORDS) for _ in range(400))  # its prompt is cut
        write(data, short)
        for side in sides:
            with torch.inference_mode():
                asked(arguments.program, side, data, short, folder, model_folder, check)
            print(f"{'ok ' if not check.problems else '   '}{side.rules}, generated answers", flush=True)
    print(f"{check.compared} comparisons, {check.problems} problems")
    sys.exit(1 if check.problems or check.compared < 11 * arguments.items else 0)


if __name__ == "__main__":
    main()
