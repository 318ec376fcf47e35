#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lm-eval asks of small data sets with each hub data set's columns, for tests/core/evaluation/test_harness_items.cpp.

    python3 tests/oracle/generate/harness_items.py            # writes harness/data and harness/items.json

Needs lm_eval==0.4.13; nothing is fetched. Its own task objects read the files that are written here and build the
requests. Which option it takes for the right one is asked of its scoring: of options each is made the likeliest in turn.
The based_* tasks are not in lm-eval: their rule is written down here.
"""
import gzip
import itertools
import json
import os
import random
import re
import shutil
import tempfile
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_CACHE=tempfile.mkdtemp(), HF_DATASETS_DISABLE_PROGRESS_BARS="1")
import datasets
from lm_eval.api.samplers import FirstNSampler
from lm_eval.tasks import TaskManager, get_task_dict

# Nothing is cached, and tables of some versions of pyarrow cannot be pickled.
NUMBERS = itertools.count()
datasets.arrow_dataset.generate_fingerprint = lambda data_set: f"made{next(NUMBERS)}"

HERE = Path(__file__).resolve().parent / "data/harness"
DATA = HERE / "data"
# A draw's name: its number of examples, seed and rule.
DRAWS = {"0": (0, 1234, "drawn"), "1": (1, 1234, "drawn"), "5": (5, 1234, "drawn"), "1 of seed 7": (1, 7, "drawn"),
         "2 first": (2, 1234, "first")}
# RTE's examples are too few for five.
FEW = {"rte": ("0", "1")}

WORDS = ("lantern river copper owl ladder salt window kettle thread meadow clock harbour straße naïve İzmir Σίσυφος 冬 "
         "coal feather basket ﬁeld").split()
DRAW = random.Random(26)


def words(count):
    return " ".join(DRAW.choice(WORDS) for _ in range(count))


def several(count, make):
    return [make(i) for i in range(count)]


def with_copies(items, examples):
    """Examples among which the items themselves stand, the first one often."""
    mixed = items[:1] * 12 + items[1:3] * 3 + examples
    DRAW.shuffle(mixed)
    return mixed


def keyed(stem, question, texts, labels, key, number):
    return {"id": f"Made_{number}", stem: question, "choices": {"text": texts, "label": labels}, "answerKey": key}


def arc_items():
    return [
        keyed("question", "Which of these glows?", ["a stone", "an ember", "a leaf", "ice "], list("ABCD"), "B", 0),
        keyed("question", "What melts first\u2028in the sun?", ["wax", "iron", ""], ["1", "2", "3"], "1", 1),
        keyed("question", "", ["up", "down", "left", "right", "back\n"], list("ABCDE"), "E", 2),
        keyed("question", "{{question}} is {% raw %}?  ", ["ß", "ǅ", "e\u0301", "👩‍🚀"], ["1", "2", "3", "4"], "4", 3),
        keyed("question", "Which \"quoted\\\" one?", ["same", "same", "'", "['x']"], list("ABCD"), "D", 4)]


def arc_train(count):
    return several(count, lambda i: keyed("question", words(4) + "?", several(3 + i % 3, lambda _: words(2)),
                                          list("ABCDE")[:3 + i % 3], "ABCDE"[DRAW.randrange(3 + i % 3)], 100 + i))


def boolq_items():
    return [{"question": q, "passage": p, "idx": i, "label": label} for i, (q, p, label) in enumerate([
        ("is the owl awake at night", "Owls hunt at dusk.\nThey sleep by day. ", 1), ("does salt burn", "", 0),
        ("", "A passage with no question asked of it\u0085and a control.", 1),
        ("is “冬” a season?", "\t冬 is winter. \u00a0", 1)])]


def copa_items():
    return [{"premise": p, "choice1": a, "choice2": b, "question": q, "idx": i, "label": label}
            for i, (p, a, b, q, label) in enumerate([
                ("The lamp went out.", "The oil was spent.", "İsmet opened the door.", "cause", 1),
                ("  The river rose。 ", "ΣΑΣ said so.", "ÉCOUTEZ was shouted.", "effect", 0),
                ("She laughed", "ǅungla was far.", "Ω", "effect", 1),
                ("The clock stopped.\n", "The spring broke.", "the spring broke.", "cause", 1),
                ("", " Spaces begin it.", "1 began it.", "effect", 1)])]


def piqa_items():
    return [{"goal": g, "sol1": a, "sol2": b, "label": label} for g, a, b, label in [
        ("Keep a kettle clean", "Boil vinegar in it.", "Paint it.", 0), ("", "a", " b ", 1),
        ("Light a lantern\n", "Strike a match", "", 1), ("Say “日本”", "日本", "にほん\u3000", 0)]]


def sciq_items():
    return [{"question": q, "distractor3": c, "distractor1": a, "distractor2": b, "correct_answer": d, "support": s}
            for q, a, b, c, d, s in [
                ("What carries charge?", "neutrons", "light", "heat", "electrons", " \n\u2003Electrons carry charge. "),
                ("What is missing?", "a", "", "c", "the passage", ""), ("", "é", "e\u0301", "ﬁ", "ﬂ\u2028", "No question.")]]


def rte_items(first, second):
    return [{first: a, second: b, "label": label, "idx": i} for i, (a, b, label) in enumerate([
        ("The harbour froze in winter.", "There was ice in the harbour.", 0), ("Nobody came. ", "Somebody came.", 1),
        ("", "True", 1), ("{{x}}\nThe kettle’s lid…", "", 0)])]


def scene(label, a, b, endings, right, number):
    return {"ind": number, "activity_label": label, "ctx_a": a, "ctx_b": b, "ctx": f"{a} {b}", "endings": endings,
            "source_id": f"made~{number}", "split": "val", "split_type": "zeroshot", "label": right}


def hellaswag_items():
    return [
        scene("Lighting a lamp", "A man holds a match.", "he STRIKES it", ["and smiles.", "[step] It  burns.", "x", " y"], "1", 0),
        scene("Baking", "[header] How to bake [title] Warm the oven. [step] Wait [sub[steps] ten   minutes.", "ßalt is added",
              ["A [b] c", "[unclosed", "] [over\ntwo [gone]lines] end", " [title] first [title]"], "0", 1),
        scene(" Riding", "A\u2028line [one\u2028two] here.", "ΑΣ ΣΑΣ", ["İ", "ŉ  now", "e  \u3000", "    four"], "3", 2),
        scene("", "", "ﬁrst WORDS. Second İSTANBUL", ["a", "b", "c", "d"], "2", 3),
        scene("Ǆ", "ends. ", "ǆ begins", ["[]", "[[x]]", "a[1]b", "\n[x\n]", ""], "0", 4)]


def hellaswag_train():
    return several(20, lambda i: {**scene(words(2), words(5) + ".", words(3), several(4, lambda _: words(3) + " [title] " + words(1)),
                                          str(i % 4), 100 + i), "split": "train"})


def winogrande_items():
    return [{"sentence": s, "option1": a, "option2": b, "answer": answer} for s, a, b, answer in [
        ("The owl could not lift the kettle because the _ was too small.", "owl", "kettle", "1"),
        ("The _ sank in the river, and the _ did not.  ", "stone", "", "2"), ("Of wool and salt, what dissolves is _", "wool", "salt", "2"),
        ("_ came first", "İnci", "Ada", "1"), ("A \"_\" is\u2028quoted \u3000.", "“x”", "{{y}}", "2")]]


def openbookqa_items():
    return [
        keyed("question_stem", "A candle in a closed jar", ["goes out", "grows", "sings", "melts the jar"], list("ABCD"), "A", 0),
        keyed("question_stem", "Winter brings  ", ["冬", "", "ice\n", " snow"], list("ABCD"), "\n D", 1),
        keyed("question_stem", "", ["a", "b", "c"], ["A", "B", "C"], "C", 2),
        keyed("question_stem", "12", ["one", "two"], ["1", "2"], " 2", 3)]


def siqa_items():
    return [{"context": c, "question": q, "answerA": a, "answerB": b, "answerC": d, "label": label} for c, q, a, b, d, label in [
        ("Ada lent Noor a ladder.", "How would Noor feel?", "thankful", "asleep", " z ", "1"),
        ("", "What now?", "x", "", "y", "3\n"), ("Noor sang.", "", "“loud”", "ß", "{{c}}", "2")]]


LAST_WORDS = [
    "the lantern fell and nobody saw the lantern", "one", "it ends in a space ", "two  spaces  apart", " begins so",
    "a non-breaking\u00a0space is none", "lines\nare one piece", "", " ", "ΣΑΣ said “yes” \u2028"]

PAGES = [
    " = The Owl = \n \n The owl 's wing is 1 @.@ 5 metres , or 1 @,@ 500 mm , a well @-@ known span . \n",
    " = = Names = = \n \n = = = Other = = = \n = = = = Deep = = = = \n It is ( also ) called \" owl \" ; [ see ] { here } : there ! Where ? ",
    "", "one", " \u2028 N is N and /' 7/ or /' 7/' 8/' x the girls ' kettle ' s lid ' n ' s ( open",
    "20 ° C and ° ( \u3000 a ( b ) c ) [ ] \" \" '' ' x y ' \"unclosed ' s .\n . , , ; \n ; 's s 's",
    "冬\x1f冬\u0085冬\ufeff冬  ,  .  ! N  N @-@ @-@ -  = = = = = = = "]

COMPLETIONS = [
    ("  The device is a lamp.\nIts maker:  ", " Lantern & Co. (Ltd.) "), ("", "a+b*"), ("\u2028冬 is\u3000", "ΣΑΣ"),
    ("no answer", "")]

PASSAGES = [
    ("Owls hunt at night. ..The owl hunts at", "The owl hunts at", ["night", "dusk"]),
    ("[PAR] [TLE] Salt [DOC]\nSalt is white. salt IS salt is ", " salt is ", ["white"]),
    ("... The İ sank. THE i\u0307 SANK", "The İ sank", ["x", "ß"]), ("", "What is it?", ["nothing"]),
    ("No question here..", "", ["a"]), ("The clock[PAR] stopped at The clock[PAR] stopped at ", "the clock stopped at", ["noon", ""])]


def texts(column, rows):
    return [{column: row} for row in rows]


def completions(extra):
    return [{"doc_id": str(i), "text": text, "value": value, **extra} for i, (text, value) in enumerate(COMPLETIONS)]


def passages():
    return [{"doc_id": str(i), "context": context, "question": question, "answers": answers}
            for i, (context, question, answers) in enumerate(PASSAGES)]


def data_sets():
    boolq, copa, piqa, scenes, gaps, social = (boolq_items(), copa_items(), piqa_items(), hellaswag_items(),
                                               winogrande_items(), siqa_items())
    rte, sglue_rte = rte_items("sentence1", "sentence2"), rte_items("premise", "hypothesis")
    return {
        "arc_easy": {"ai2_arc/ARC-Easy/test.jsonl": arc_items(), "ai2_arc/ARC-Easy/train.jsonl": arc_train(30)},
        "arc_challenge": {"arc_challenge/test.json": arc_items()[::-1], "arc_challenge/train.json.gz": arc_train(15)},
        "boolq": {"super_glue/boolq/validation.jsonl": boolq, "super_glue/boolq/train.jsonl": with_copies(boolq, several(
            20, lambda i: {"question": words(4), "passage": words(9), "idx": 100 + i, "label": i % 2}))},
        "copa": {"super_glue/copa/validation.json.gz": copa, "super_glue/copa/train.json": with_copies(copa, several(
            20, lambda i: {"premise": words(4).capitalize() + ".", "choice1": words(3).title() + ".", "choice2": words(3).upper(),
                           "question": ("cause", "effect")[i % 3 % 2], "idx": 100 + i, "label": i % 2}))},
        "piqa": {"piqa/validation.jsonl": piqa, "piqa/train.jsonl.gz": with_copies(piqa, several(
            100, lambda i: {"goal": words(3), "sol1": words(2), "sol2": words(2), "label": i % 2}))},
        "sciq": {"sciq/test.jsonl": sciq_items(), "sciq/train.jsonl": several(
            22, lambda i: {"question": words(3) + "?", "distractor3": words(1), "distractor1": words(1), "distractor2": words(1),
                           "correct_answer": words(2), "support": " " * (i % 3) + words(6)})},
        "rte": {"glue/rte/validation.jsonl": rte, "glue/rte/train.jsonl": rte[:1] * 4 + rte[1:3]},
        "sglue_rte": {"super_glue/rte/validation.jsonl": sglue_rte, "super_glue/rte/train.jsonl": with_copies(sglue_rte, several(
            20, lambda i: {"premise": words(6), "hypothesis": words(3), "label": i % 2, "idx": 100 + i}))},
        "hellaswag": {"hellaswag/validation.jsonl": scenes, "hellaswag/train.jsonl": with_copies(scenes, hellaswag_train())},
        "winogrande": {"winogrande/validation.jsonl": gaps, "winogrande/train.jsonl": with_copies(gaps, several(
            20, lambda i: {"sentence": words(3) + " _ " + words(3) + ".", "option1": words(1), "option2": words(1),
                           "answer": "12"[i % 2]}))},
        "openbookqa": {"openbookqa/main/test.jsonl": openbookqa_items(), "openbookqa/main/train.jsonl.gz": several(
            25, lambda i: keyed("question_stem", words(4), several(4, lambda _: words(2)), list("ABCD"), "ABCD"[i % 4], 100 + i))},
        "social_iqa": {"siqa/validation.jsonl": social, "siqa/train.jsonl": with_copies(social, several(
            20, lambda i: {"context": words(4) + ".", "question": words(2) + "?", "answerA": words(1), "answerB": words(1),
                           "answerC": words(2), "label": "123"[i % 3]}))},
        "lambada_openai": {"lambada_openai/default/test.jsonl.gz": texts("text", LAST_WORDS)},
        "lambada_standard": {"lambada/test.jsonl": [{"text": text.lower(), "domain": "News"} for text in LAST_WORDS[::-1]]},
        "wikitext": {"wikitext_document_level/wikitext-2-raw-v1/test.jsonl": texts("page", PAGES)},
        "fda": {"based-fda/default/validation.jsonl": completions({"key": "device"})},
        "swde": {"swde/validation.jsonl": completions({"file_name": "made"})},
        "squad_completion": {"based-squad/validation.jsonl": completions({"title": "Made"})},
        "based_triviaqa": {"based_triviaqa/validation.jsonl": passages()},
        "based_nq": {"based_nq_2048/validation.jsonl": passages()},
        "based_drop": {"based_drop/validation.jsonl": passages()}}


def file_text(name, rows):
    """Objects a line, with blank lines and carriage returns between some; every other one escaped."""
    lines = [json.dumps(row, ensure_ascii=i % 2 == 1) for i, row in enumerate(rows)]
    if ".jsonl" not in name:
        return "[" + ",\n".join(lines) + "]\n"
    return "\n \t\n".join(lines[:2]) + "".join("\r\n" + line for line in lines[2:])


def write_data(sets):
    shutil.rmtree(DATA, ignore_errors=True)
    for files in sets.values():
        for name, rows in files.items():
            path = DATA / name
            path.parent.mkdir(parents=True, exist_ok=True)
            content = file_text(name, rows).encode()
            path.write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


MANAGER = TaskManager()


def lm_eval_task(name, files, shots, seed, rule):
    splits = {Path(path).name.split(".")[0]: datasets.Dataset.from_list(rows) for path, rows in files.items()}
    for unused in ("train", "validation"):  # some tasks want it to be there
        splits.setdefault(unused, next(iter(splits.values())))
    datasets.load_dataset = lambda path, name=None, **_: splits
    task = get_task_dict([name], MANAGER)[name]
    task.set_config("num_fewshot", shots)
    if rule == "first":
        task.sampler = FirstNSampler(list(task.fewshot_docs()))
    task.set_fewshot_seed(seed)
    task.build_all_requests()
    items = [[] for _ in task.eval_docs]
    for instance in task.instances:
        items[instance.doc_id].append(instance)
    return task, items


def gold_of(task, doc, options):
    """The option that counts as right when it is the likeliest."""
    right = [i for i in range(options)
             if task.process_results(doc, [(-float(j != i), False) for j in range(options)])["acc"] == 1]
    assert len(right) == 1, right
    return right[0]


def describe(task, draws, doc, requests):
    first = requests["0"]
    kind = first[0].request_type
    if kind == "generate_until":
        arguments = first[0].arguments[1]
        return {"prompt": first[0].arguments[0], "answers": [task.doc_to_target(doc)], "tokens": arguments["max_gen_toks"],
                "stops": arguments["until"]}
    if kind == "loglikelihood_rolling":
        counts = task.process_results(doc, (0.0,))
        return {"contexts": {"0": [""]}, "continuations": [first[0].arguments[0]], "words": counts["word_perplexity"][1],
                "bytes": counts["byte_perplexity"][1]}
    item = {"contexts": {}, "continuations": [request.arguments[1] for request in first]}
    for draw in draws:
        assert [request.arguments[1] for request in requests[draw]] == item["continuations"]
        contexts = [request.arguments[0] for request in requests[draw]]
        item["contexts"][draw] = contexts if task.multiple_input else contexts[:1]
        assert task.multiple_input or len(set(contexts)) == 1
    if task.OUTPUT_TYPE == "multiple_choice":
        item["gold"] = gold_of(task, doc, len(first))
        if not task.multiple_input:
            item["characters"] = [len(option) for option in task.doc_to_choice(doc)]
    return item


def lm_eval_items(name, files):
    alone = name.startswith(("lambada", "wikitext", "fda", "swde", "squad"))
    draws = ("0",) if alone else FEW.get(name, tuple(DRAWS))
    built = {draw: lm_eval_task(name, files, *DRAWS[draw]) for draw in draws}
    task = built["0"][0]
    items = [describe(task, draws, doc, {draw: built[draw][1][i] for draw in draws}) for i, doc in enumerate(task.eval_docs)]
    return {"data_set": task.DATASET_PATH.split("/")[1], "configuration": task.DATASET_NAME or "",
            "metrics": list(task.aggregation()), "items": items}


def passage_prompt(name, row):
    """section 5 of the specification: the question, cut from the passage's end, behind a full stop."""
    context, question = row["context"].strip(), row["question"].strip()
    if name == "based_triviaqa":
        context = re.sub(r"\[(PAR|DOC|TLE)\]", "", context)
    if name == "based_nq":
        context = context.removesuffix(question)
    else:
        while question and context.lower().endswith(question.lower()):
            context = context[:-len(question)]
    return context.strip().strip(".") + ". " + question


def passage_items(name, files):
    (rows,) = files.values()
    return {"items": [{"prompt": passage_prompt(name, row), "answers": row["answers"], "tokens": 48, "stops": ["\n"]}
                      for row in rows]}


def main():
    sets = data_sets()
    write_data(sets)
    golden = {name: passage_items(name, files) if name.startswith("based_") else lm_eval_items(name, files)
              for name, files in sets.items()}
    (HERE / "items.json").write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
