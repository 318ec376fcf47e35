# SPDX-License-Identifier: GPL-3.0-or-later
"""RULER's items written down again: the definitions of core/data/ruler and of core/data/random.h in Python.

    python ruler_items.py            # writes ruler_items.json

An item is a pure function of task, seed, length, number and tokenizer. Here the tokenizer takes three bytes for a token,
and the essays are numbered sentences. tests/core/data/test_ruler.cpp makes the same items.
"""

import json
import math
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDE = (1 << 64) - 1
LINE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
ESSAY = [f"Sentence {i} says nothing." for i in range(300)]
SEED, INDEX = 5, 3
LENGTHS = {"ruler_vt": 1600}
LENGTH = 700
ANSWER = {"ruler_vt": 30, "ruler_cwe": 120, "ruler_fwe": 50}
TASKS = ("niah_single_1", "niah_single_2", "niah_single_3", "niah_multikey_1", "niah_multikey_2", "niah_multikey_3",
         "niah_multivalue", "niah_multiquery", "ruler_vt", "ruler_cwe", "ruler_fwe")


def words(name):
    lines = (HERE.parents[2] / "datasets" / "words" / f"{name}.txt").read_text().splitlines()
    return [word for line in lines if not line.startswith("#") for word in line.split()]


ADJECTIVES, NOUNS = words("adjectives"), words("nouns")


def splitmix64(number):
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & WIDE
    number = (number ^ number >> 27) * 0x94D049BB133111EB & WIDE
    return number ^ number >> 31


def key_of(seed, part):
    return splitmix64(splitmix64(seed + 0x9E3779B97F4A7C15 & WIDE) ^
                     (part * 0xD1342543DE82EF95 + 0x2545F4914F6CDD1D & WIDE))


class Random:
    def __init__(self, seed, part):
        self.state = key_of(seed, part)

    def next(self):
        self.state = self.state + 0x9E3779B97F4A7C15 & WIDE
        return splitmix64(self.state)

    def below(self, count):
        product = self.next() * count
        if product & WIDE < count:
            threshold = ((1 << 64) - count) % count
            while product & WIDE < threshold:
                product = self.next() * count
        return product >> 64

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def shuffle(self, items):
        for i in range(len(items), 1, -1):
            other = self.below(i)
            items[i - 1], items[other] = items[other], items[i - 1]

    def different(self, count, of):
        places = list(range(of))
        for i in range(count):
            other = i + self.below(of - i)
            places[i], places[other] = places[other], places[i]
        return places[:count]

    def word(self):
        adjective = ADJECTIVES[self.below(len(ADJECTIVES))]
        return adjective + "-" + NOUNS[self.below(len(NOUNS))]

    def number(self):
        return str(10**6 + self.below(9 * 10**6))

    def uuid(self):
        first, second = self.next(), self.next()
        first = first & ~0xF000 | 0x4000
        second = second & ~(3 << 62) | 2 << 62
        digits = f"{first:016x}{second:016x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def listed(items):
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + ", and " + items[-1]


class Niah:
    least = 0

    def __init__(self, task, random):
        self.hay = {"niah_single_1": "lines", "niah_multikey_2": "needles", "niah_multikey_3": "needles"}.get(task, "essays")
        self.kind = "uuid" if task in ("niah_single_3", "niah_multikey_3") else "number"
        self.key = Random.uuid if task == "niah_multikey_3" else Random.word
        self.value = Random.uuid if self.kind == "uuid" else Random.number
        count = 4 if task in ("niah_multikey_1", "niah_multiquery") else 1
        each = 4 if task == "niah_multivalue" else 1
        asked = 4 if task == "niah_multiquery" else 1
        self.keys, self.values, self.needles = [], [], []
        while len(self.keys) < count:
            key = self.key(random)
            if key not in self.keys:
                self.keys.append(key)
        for key in self.keys:
            values = []
            while len(values) < each:
                value = self.value(random)
                if value not in values:
                    values.append(value)
                    self.needles.append(self.needle(key, value))
            self.values.append(values)
        random.shuffle(self.needles)
        if self.hay == "essays":
            self.places = sorted(random.different(len(self.needles), 40))
        else:
            self.places = sorted(random.uniform() for _ in self.needles)
        self.asked = random.different(asked, count)
        self.seed = random.next()

    def needle(self, key, value):
        return f"One of the special magic {self.kind}s for {key} is: {value}."

    def unit(self, place):
        if self.hay == "lines":
            return LINE
        if self.hay == "essays":
            return ESSAY[place % len(ESSAY)]
        random = Random(self.seed, place)
        key = self.key(random)
        while key in self.keys:
            key = self.key(random)
        return self.needle(key, self.value(random))

    def text(self, units):
        essays = self.hay == "essays"
        places = [units * p // 39 if essays else int(p * (units + 1)) for p in self.places]
        parts = []
        for unit in range(units + 1):
            parts += [needle for needle, place in zip(self.needles, places) if place == unit]
            if unit < units:
                parts.append(self.unit(unit))
        one = len(self.asked) * len(self.values[0]) == 1
        what = self.kind if one else self.kind + "s"
        query = listed([self.keys[i] for i in self.asked])
        return ((f"A special magic {what} is" if one else f"Some special magic {what} are") +
                " hidden within the following text. Make sure to memorize it. I will quiz you about the "
                f"{what} afterwards.\n{(' ' if essays else chr(10)).join(parts)}\nWhat {'is' if one else 'are all'} "
                f"the special magic {what} for {query} mentioned in the provided text?",
                f"The special magic {what} for {query} mentioned in the provided text {'is' if one else 'are'}",
                [value for i in self.asked for value in self.values[i]])


class Chain:
    def __init__(self, letters, random):
        self.names = []
        while len(self.names) < 5:
            name = "".join(chr(ord("A") + random.below(26)) for _ in range(letters))
            if name not in self.names:
                self.names.append(name)
        self.value = str(10000 + random.below(89999))
        self.statements = [f"VAR {self.names[0]} = {self.value}"]
        self.statements += [f"VAR {b} = VAR {a} " for a, b in zip(self.names, self.names[1:])]
        self.places = sorted(random.uniform() for _ in self.statements)

    def question(self, lines):
        parts = []
        for line in range(lines + 1):
            parts += [s for s, place in zip(self.statements, self.places) if int(place * (lines + 1)) == line]
            if line < lines:
                parts.append(LINE + "\n")
        return ("Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n" + " ".join(parts) +
                f"\nQuestion: Find all variables that are assigned the value {self.value} in the text above.")

    def prefix(self):
        return ("Answer: According to the chain(s) of variable assignment in the text above, 5 variables are assgined the "
                f"value {self.value}, they are:")


def example(lines, random):
    chain = Chain(3, random)
    return chain.question(lines) + " " + chain.prefix() + "  " + " ".join(chain.names) + "\n\n\n\n"


class Tracing:
    least = 0

    def __init__(self, lines, random):
        self.chain = Chain(5, random)
        self.example = example(lines, random)

    def text(self, units):
        return self.example + self.chain.question(units), self.chain.prefix(), self.chain.names


def in_order(counts, key, first):
    """Words by random numbers of their occurrences."""
    found = []
    for place, (word, count) in enumerate(counts, first):
        random = Random(key, place)
        found += [(random.next(), word) for _ in range(count)]
    return [word for _, word in sorted(found)]


class CommonWords:
    least = 0

    def __init__(self, random):
        self.key = random.next()
        self.words = ADJECTIVES + NOUNS
        random.shuffle(self.words)
        random.next()

    def text(self, units):
        counts = [(word, 6 if i < 10 else 1) for i, word in enumerate(self.words[:10 + units])]
        numbered = " ".join(f"{i}. {word}" for i, word in enumerate(in_order(counts, self.key, 0), 1))
        return ("Below is a numbered list of words. In these words, some appear more often than others. Memorize the ones that "
                f"appear most often.\n{numbered}\nQuestion: What are the 10 most common words in the above list?",
                "Answer: The top 10 words that appear most often in the list are:", self.words[:10])


class FrequentWords:
    least = 53

    def __init__(self, vocabulary, random):
        self.key = random.next()
        self.words = []
        while len(self.words) < vocabulary:
            word = "".join(chr(ord("a") + random.below(26)) for _ in range(6))
            if word not in self.words:
                self.words.append(word)
        self.words[0] = "..."

    def text(self, units):
        counts = [(word, int(units / (rank * rank) / (math.pi * math.pi / 6))) for rank, word in enumerate(self.words, 1)]
        return ("Read the following coded text and track the frequency of each coded word. Find the three most frequently "
                "appeared coded words. " + " ".join(in_order(counts, self.key, 1)) +
                "\nQuestion: Do not provide any explanation. Please ignore the dots '....'. What are the three most frequently "
                "appeared words in the above coded text?",
                "Answer: According to the coded text above, the three most frequently appeared words are:", self.words[1:4])


def tokens(text):
    return (len(text.encode()) + 2) // 3


def item(task):
    length, answer = LENGTHS.get(task, LENGTH), ANSWER.get(task, 128)
    key = key_of(SEED, length)
    for letter in task:
        key = key_of(key, ord(letter))
    random = Random(key, INDEX + 1)
    if task == "ruler_vt":
        lines = 0
        while tokens(example(lines + 5, Random(key, 0))) <= min(470, length // 4):
            lines += 5
        draw = Tracing(lines, random)
    elif task == "ruler_cwe":
        draw = CommonWords(random)
    elif task == "ruler_fwe":
        draw = FrequentWords(max(5, length // 50), random)
    else:
        draw = Niah(task, random)
    between = "\n\n" if task == "ruler_cwe" else " "

    def needed(units):
        text, prefix, _ = draw.text(units)
        return tokens(text + between + prefix) + answer

    units = draw.least
    assert needed(units) <= length
    while needed(units + 1) <= length:
        units += 1
    text, prefix, outputs = draw.text(units)
    return {"task": task, "seed": SEED, "index": INDEX, "input": text, "gen_prefix": prefix, "outputs": outputs,
            "length": needed(units), "max_length": length}


def main():
    items = [item(task) for task in TASKS]
    (HERE / "data/ruler_items.json").write_text(json.dumps(items, indent=1) + "\n")


if __name__ == "__main__":
    main()
