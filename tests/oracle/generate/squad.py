# SPDX-License-Identifier: GPL-3.0-or-later
"""SQuAD as transformers' run_qa does it: windows, labels and answers of a tiny BERT, and the official scores.

Windows come from the tokenizers library (truncation "only_second", stride, return_overflowing_tokens), labels and answers from
the rules of run_qa's prepare_train_features and postprocess_qa_predictions, written out below; logits from transformers in
float64, a window at a time. Scores follow evaluate-v1.1.py and evaluate-v2.0.py.

    python tests/oracle/generate/squad.py     writes tests/oracle/generate/data/squad.json
"""

import collections
import json
import random
import re
import string
import sys
from pathlib import Path

import tokenizers
import torch
import transformers as T

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))
from models import case, ids, values

WORDS = ("the a river runs from north to south and sea of old town stands on hill king built tower in year who when where "
         "which what does is it an near by many people live market every week boats carry salt wood was called").split()
TEXTS = [
    "The river Ilm runs from the north to the south, and many boats carry salt and wood to the sea near the old town.",
    "In 1412 King Otto built a tower on the hill. Every week people live by the market; boats carry salt.",
    "A town.",
    "Über dem  Fluss — the “old” town stands on the hill, near naïve people: 🙂 many boats.",
]
QUESTIONS = [
    (0, "Where does the river run?", ["to the south", "from the north to the south"]),
    (0, "  What do the boats carry?", ["salt and wood"]),
    (1, "When was the tower built?", ["1412"]),
    (1, "Who built it, and where does it stand, and when was it built in the old town near the hill by the sea?", ["King Otto"]),
    (2, "Which town?", ["A town"]),
    (3, "Where does the town stand?", ["on the hill", "hill"]),
    (3, "What is called a king?", []),
    (0, "Which year is it?", []),
]


def make_tokenizer():
    letters = sorted(set("".join(TEXTS).lower()) - set(" "))
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *("##" + c for c in letters), *WORDS, "##s", "##n"]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(vocabulary))}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])])
    return made


def questions():
    for number, (text, question, answers) in enumerate(QUESTIONS):
        context = TEXTS[text]
        yield {"id": f"q{number}", "title": "t", "context": context, "question": question,
               "answers": {"text": answers, "answer_start": [context.index(answer) for answer in answers]}}


def windows(tokenizer, item, length, stride):
    """ids, types, offsets of the context (None elsewhere) of each."""
    question = item["question"].lstrip()
    tokenizer.no_truncation()
    room = length - 3 - len(tokenizer.encode(question, add_special_tokens=False).ids)
    context = len(tokenizer.encode(item["context"], add_special_tokens=False).ids)
    if room <= stride and context > room:  # transformers fails; such a question is cut at its end
        kept = tokenizer.encode(question, add_special_tokens=False).offsets[length - 3 - stride - 2]
        question = question[:kept[1]]
    tokenizer.enable_truncation(length, stride=stride, strategy="only_second")
    first = tokenizer.encode(question, item["context"])
    tokenizer.no_truncation()
    for one in [first, *first.overflowing]:
        yield one.ids, one.type_ids, [offset if sequence == 1 else None
                                      for offset, sequence in zip(one.offsets, one.sequence_ids)]


def labels(item, offsets):
    if not item["answers"]["answer_start"]:
        return [0, 0]
    begin = item["answers"]["answer_start"][0]
    end = begin + len(item["answers"]["text"][0])
    places = [i for i, offset in enumerate(offsets) if offset is not None]
    first, last = places[0], places[-1]
    if not (offsets[first][0] <= begin and offsets[last][1] >= end):
        return [0, 0]
    while first <= places[-1] and offsets[first][0] <= begin:
        first += 1
    while last >= places[0] and offsets[last][1] >= end:
        last -= 1
    return [first - 1, last + 1]


def answer(item, found, best, longest):
    """found: (offsets, start logits, end logits) of each window -> text of the best span, and null minus its score."""
    none, spans = None, []
    for offsets, starts, ends in found:
        null = starts[0] + ends[0]
        none = null if none is None else min(none, null)
        order = lambda logits: sorted(range(len(logits)), key=lambda i: -logits[i])[:best]
        for start in order(starts):
            for end in order(ends):
                if offsets[start] is None or offsets[end] is None or end < start or end - start + 1 > longest:
                    continue
                spans.append((starts[start] + ends[end], item["context"][offsets[start][0]:offsets[end][1]]))
    score, text = max(spans, key=lambda one: one[0], default=(0.0, None))
    return text, none - score


def normalized(text):
    text = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1_first(said, truth):
    said, truth = normalized(said).split(), normalized(truth).split()
    same = sum((collections.Counter(said) & collections.Counter(truth)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(said), same / len(truth)
    return 2 * precision * recall / (precision + recall)


def f1_second(said, truth):
    one, other = normalized(said).split(), normalized(truth).split()
    if not one or not other:
        return float(one == other)
    return f1_first(said, truth)


def scores_first(items, said):
    exact = [max(float(normalized(said[i]) == normalized(t)) for t in item["answers"]["text"]) for i, item in enumerate(items)]
    f1 = [max(f1_first(said[i], t) for t in item["answers"]["text"]) for i, item in enumerate(items)]
    return {"exact_match": sum(exact) / len(exact), "f1": sum(f1) / len(f1)}


def best_threshold(items, said, scores, no_answer):
    current = best = sum(not item["answers"]["text"] for item in items)
    threshold = 0.0
    for i in sorted(range(len(items)), key=lambda i: no_answer[i]):
        if items[i]["answers"]["text"]:
            current += scores[i]
        elif said[i]:
            current -= 1
        if current > best:
            best, threshold = current, no_answer[i]
    return best / len(items), threshold


def scores_second(items, said, no_answer):
    exact, f1 = [], []
    for text, item in zip(said, items):
        truths = [t for t in item["answers"]["text"] if normalized(t)] or [""]
        exact.append(max(float(normalized(text) == normalized(t)) for t in truths))
        f1.append(max(f1_second(text, t) for t in truths))
    made = {}
    for part, wanted in (("", None), ("HasAns_", True), ("NoAns_", False)):
        some = [i for i, item in enumerate(items) if wanted is None or bool(item["answers"]["text"]) == wanted]
        if some:
            made |= {f"{part}exact": sum(exact[i] for i in some) / len(some), f"{part}f1": sum(f1[i] for i in some) / len(some)}
    for name, each in (("exact", exact), ("f1", f1)):
        made[f"best_{name}"], made[f"best_{name}_thresh"] = best_threshold(items, said, each, no_answer)
    return made


def model_case():
    tokenizer = make_tokenizer()
    config = T.BertConfig(vocab_size=tokenizer.get_vocab_size(), hidden_size=20, num_hidden_layers=2, num_attention_heads=4,
                          intermediate_size=24, max_position_embeddings=48, type_vocab_size=2, pad_token_id=0)
    stored = case("bert-squad", T.BertForQuestionAnswering, config, [ids(5, config.vocab_size)])[1]
    model = T.BertForQuestionAnswering(config).double().eval()
    model.load_state_dict({name: values(name, shape).double() for name, shape in stored["tensors"].items()}, strict=False)
    items, runs = list(questions()), []
    for length, stride, best, longest in ((24, 5, 20, 30), (40, 12, 20, 6), (48, 8, 3, 2), (20, 4, 1, 1)):
        run = {"length": length, "stride": stride, "best": best, "longest": longest, "items": []}
        for item in items:
            found, made = [], []
            for tokens, types, offsets in windows(tokenizer, item, length, stride):
                with torch.no_grad():
                    out = model(torch.tensor([tokens]), token_type_ids=torch.tensor([types]))
                found.append((offsets, out.start_logits[0].tolist(), out.end_logits[0].tolist()))
                made.append({"ids": tokens, "types": types, "labels": labels(item, offsets)})
            text, no_answer = answer(item, found, best, longest)
            run["items"].append({"windows": made, "text": text, "no_answer": float(f"{no_answer:.9g}")})
        runs.append(run)
    return {"config": stored["config"], "tensors": stored["tensors"], "tokenizer": json.loads(tokenizer.to_str()),
            "questions": items, "runs": runs}


def score_case():
    draw = random.Random(5)
    pool = ["the cat", "A cat.", "cat sat", "", "the", "an", "Cat  sat, on the mat", "mat", "naïve", "42", "4 2", "empty"]
    items, said, no_answer = [], [], []
    for number in range(60):
        truths = [draw.choice(pool) for _ in range(draw.choice([0, 0, 1, 2, 3]))]
        items.append({"id": str(number), "question": "q", "context": " ".join(truths),
                      "answers": {"text": truths, "answer_start": [0 for _ in truths]}})
        for i, truth in enumerate(truths):
            items[-1]["answers"]["answer_start"][i] = items[-1]["context"].index(truth)
        said.append(draw.choice(truths) if truths and draw.random() < 0.6 else draw.choice(pool))
        no_answer.append(draw.choice([-1.5, -0.25, 0.0, 0.5, 2.0]) if draw.random() < 0.3 else
                         round(draw.uniform(-3, 1) if truths else draw.uniform(-0.5, 3), 3))
    first = [i for i, item in enumerate(items) if item["answers"]["text"]]
    return {"items": items, "said": said, "no_answer": no_answer, "squad_v2": scores_second(items, said, no_answer),
            "squad": scores_first([items[i] for i in first], [said[i] for i in first])}


if __name__ == "__main__":
    path = Path(__file__).parent / "data/squad.json"
    made = {"model": model_case(), "scores": score_case()}
    path.write_text(json.dumps(made, separators=(",", ":"), ensure_ascii=True) + "\n")
