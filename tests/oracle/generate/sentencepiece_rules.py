# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled normalisation rules ("precompiled_charsmap"), as the sentencepiece package makes them."""
import functools
import io
import tempfile

try:
    import sentencepiece
except ImportError:  # an interpreter of one's own: what needs it is left out, with a word
    sentencepiece = None


def field(message, wanted):
    """The last field of that number in a message of Protocol Buffers; of bytes or messages only."""
    at, found = 0, b""

    def number():
        nonlocal at
        value = shift = 0
        while True:
            at += 1
            value |= (message[at - 1] & 0x7F) << shift
            shift += 7
            if message[at - 1] < 0x80:
                return value

    while at < len(message):
        key = number()
        if key & 7 == 0:
            number()
            continue
        size = {1: 8, 5: 4}[key & 7] if key & 7 != 2 else number()
        if key >> 3 == wanted:
            found = message[at:at + size]
        at += size
    return found


@functools.lru_cache(maxsize=None)
def charsmap(rules):
    """The rules of sentencepiece's own normalisations: nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf."""
    return trained(normalization_rule_name=rules)


def charsmap_of(rules):
    """Rules of one's own, {source: result}."""
    def points(text):
        return " ".join(f"{ord(c):X}" for c in text)

    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write("".join(f"{points(source)}\t{points(result)}\n" for source, result in sorted(rules.items())))
        file.flush()
        return trained(normalization_rule_tsv=file.name)


def trained(**options):
    if sentencepiece is None:
        raise LookupError("the sentencepiece package is missing")
    model = io.BytesIO()
    lines = ["the quick brown fox jumps over the lazy dog", "pack my box with five dozen liquor jugs"]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=60,
                                             hard_vocab_limit=False, minloglevel=2, **options)
    return field(field(model.getvalue(), 3), 2)  # normalizer_spec, precompiled_charsmap
