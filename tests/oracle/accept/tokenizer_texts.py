# SPDX-License-Identifier: GPL-3.0-or-later
"""Awkward texts for tokenizers: written by hand, and drawn at random from what breaks things."""
import random
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "generate"))
from tokenizer_files import TEXT, TEXTS

MORE = [
    "\u0000", "\u0000\u0000a", "\u0085", "\u2028\u2029", "\uFEFF", "\uFFFD\uFFFD", "a\rb\r\nc\n\rd", "\x7f\x80\x9f",
    "\u00AD\u200B\u200C\u200D\u2060", "\u202Eabc\u202C", "\U000E0001\U000E0061\U000E007F", "\uFE0F\u20E3 1\uFE0F\u20E3",
    "\u1112", "\u1112\u1161", "\u1100\uAC00\u11A8", "\uAC00\u11A7", "\uD55C\u0301\uAE00", "\u3131\u314F\uFFA1\uFFC2",
    "e\u0301\u0327\u0323 \u0323e", "\u0344\u0374\u037E\u0387", "\u0958\u0959 \u0915\u093C", "\u0DDD \u0DD9\u0DCF\u0DCA",
    "\u2126\u212A\u212B", "\uF900\uFA10\uFA70 \U0002F800", "\u1E9E\u00DF\u0149\u01F0\u0390", "\u03A3 \u03A3\u0391\u03A3",
    "\u0130\u0131Ii\u0307", "\u01C4\u01C5\u01C6 \u1F88\u1FBC", "\uFF21\uFF41\uFF11 \uFF65\uFF9E\uFF76\uFF9E",
    "\u00BC\u2153\u2460\u2474\u3220\u3300\u33A5", "\u2122\u0301\u2122 \u2139\u200D \u00A9\u200D\u2122",
    "\uFDFA \uFDFB\uFEFB\uFE8D", "\u0E33\u0EB3", "\u0F71\u0F72 \u0F73", "\U0001D15E\U0001D1BB", "\u0915\u094D\u0958\u0301",
    "\u0600\u0661\u06DD1", "\u110BD\U000110BD\U00011083", "\U0001F1FA\U0001F1F8\U0001F1E9 \U0001F1E9\U0001F1EA",
    "\U0001F3F4\U000E0067\U000E0062\U000E007F", "\U0001F9D1\U0001F3FB\u200D\U0001F9B0\u2764\uFE0F\u200D\U0001F525",
    "a" * 101 + " " + "b" * 99, "\u00E9" * 50, "\u4E2D" * 40, "\U0001F600" * 12, "ab" * 200, "a\u0301" * 30,
    " a  b   c    d     e", "\t\ta\t\nb \n\n c\u00A0\u00A0d\u3000e", "a \u00A0 \u2003 b", "\n\n\n", "  \n  \n  ",
    "don't DON'T Don\u2019T 'tis rock'n'roll it's' 'S's", "1,234.56 $9.99 50% 3/4 2^10 1e-9 0x1F", "U.S.A. e.g. i.e. etc.",
    "http://example.org/a?b=c&d=%20#e user@example.org @name #tag", "<html><body>&amp;&lt;</body></html>",
    "for (int i = 0; i < n; ++i) { a[i] += \"\\t\\n\"; }  // \u2192", "SELECT * FROM `t` WHERE x='y';--", "$$\\frac{1}{2}$$",
    "\u2581", "\u2581\u2581a \u2581b\u2581", "a\u2581", " \u2581 ", "\u0120the \u010A\u0109", "##ing ##", "</w> a</w>", "@@ a@@",
    "<0x0A><0x41> <0xE2><0x96><0x81>", "<0xZZ>", "<unk>", "a<unk>b", "<unk><unk> <unk>", "[UNK] [CLS] [SEP] [PAD] [MASK]",
    "<s></s><pad><mask>", " <s> </s> <mask> ", "<|endoftext|>", "x<|endoftext|>y", "<|endoftext|> <|endoftext|>",
    "<|im_start|>user\nhi<|im_end|>\n", "<extra_id_0> <extra_id_1>", "<|startoftext|>a<|endoftext|>", "[MASK].", "a[MASK]b",
    "\u0410\u0411\u0412 \u0430\u0431\u0432 \u0451\u0401\u0439", "\u05E9\u05C1\u05DC\u05D5\u05B9\u05DD", "\u0627\u0644\u0639\u0631\u0628\u0650\u064A\u0629",
    "\u0928\u092E\u0938\u094D\u0924\u0947 \u0915\u094D\u0937", "\u0E2A\u0E27\u0E31\u0E2A\u0E14\u0E35", "\u1780\u17D2\u1798\u17C2\u179A", "\u10D0\u10D1 \u1C90\u1C91",
    "\u3053\u3093\u306B\u3061\u306F\u30AB\u30BF\u30AB\u30CA\u30FC\u6F22\u5B57", "\uBE44\uBE54\uBC25 \u314B\u314B", "\U00020000\U0002A6DF\u3007\u3400",
    "\u13A0\uAB70\u13F8", "\U00010400\U00010428", "\U0001E900\U0001E922", "\u2160\u2170 \u24B6\u24D0", "\u1C80\u1C88\u1C89\u1C8A",
    "\uA7CB\uA7DA \U00010D50\U00010D70", "\u0378\u0379 \uFFFF\U0001FFFE\U0010FFFF", "\uE000\U000F0000", "\u00AA\u00BA\u02B0\u1D2C",
    "A\u030A\u0301 \u1EA5\u1ED9 a\u0302\u0301", "\u0340\u0341\u0343", "q\u0307\u0323 q\u0323\u0307", "\u05D0\u05BC\u05B8", "\u0F43 \u0F42\u0FB7",
    "\u2000\u2001\u2002\u2009\u200A\u202F\u205F\u180E", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "\u2018\u2019\u201C\u201D\u00AB\u00BB\u2039",
    "\u061F\u060C\u061B \u3002\uFF0C\uFF01\u3001\u30FB", "\u2E3A\u2E4F\u2E52\u2E5D", "\u00A7\u00B6\u2020\u2030 \u20AC\u00A3\u20BF\u20C0", "~`^_|\\/<>{}[]()=+-*&%$#@!?;:,.\"'",
]

ALPHABETS = [
    "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " ", " \t\n\r", ".,;:!?'\"()[]{}<>-_/\\|@#$%^&*+=~`",
    "\u00E0\u00E9\u00EE\u00F5\u00FC\u00F1\u00E7\u0153\u00E6\u00DF\u00C5\u00C9\u0130\u0131\u017F", "\u0301\u0308\u0323\u0327\u0345\u20DD\u3099\u309A\u1DFA",
    "\u03B1\u03B2\u03A3\u03C3\u03C2\u0410\u0416\u044F\u0451\u0439", "\u05D0\u05B8\u05C1\u0627\u0644\u0650\u0651\u0661\u06F5",
    "\u0915\u094D\u0937\u093F\u0958\u09A1\u09BC\u0E01\u0E33\u0E49\u0F71\u0F72", "\u4E2D\u6587\u3042\u30A2\u30FC\u30AC\u30AB\u3099\uFF76\uFF9E\uAC00\uD55C\u1112\u1161\u11AB",
    "\u3000\u00A0\u2003\u2028\u0085\u1680\u200B\u200C\u200D\u2060\uFEFF\u00AD\u180E", "\u0000\u0001\u0007\u001B\u007F\u009F\uFFFD\uFFFE\uE000",
    "\U0001F600\U0001F44D\U0001F3FD\U0001F468\u200D\U0001F1E9\U0001F1EA\u2764\uFE0F\u00A9\u2122\u20E3", "\uFB01\u2460\u00BD\u00B2\u2126\u212B\uFF21\u3300\uFDFA\u1E9B\u0344\u2163",
    "\u2581\u0120\u010A\u00C3\u00A9\u0100\u0142\u0143", "\U00010400\U0001D4B3\U0002F800\U00011083\U00011099\U000110BA\U0001E900\U00016AC1\U000E0061",
    "\u1C89\uA7CB\u0897\U00010D4A\U00016D63\u0D4E\u0600\u06DD\u0378",
]


def random_character(rng):
    while True:
        limit = rng.choice([0x80, 0x250, 0x3000, 0x10000, 0x20000, 0x110000])
        c = rng.randrange(limit)
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def random_text(rng, pieces):
    """`pieces`: spellings of the tokenizer at hand, added tokens first among them."""
    words = TEXT.split()
    text = ""
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13])):
        kind = rng.randrange(9)
        if kind < 3:
            text += rng.choice(["", " ", " ", "  ", "\n"]) + rng.choice(words)
        elif kind < 6:
            alphabet = rng.choice(ALPHABETS)
            text += "".join(rng.choice(alphabet) for _ in range(rng.randrange(1, 6)))
        elif kind == 6:
            text += random_character(rng)
        elif pieces:
            text += rng.choice(["", "", " ", "  ", "\u00A0"]) + rng.choice(pieces) + rng.choice(["", " ", "x"])
    return text


def texts(seed, pieces=(), count=150):
    """All of the fixed ones and `count` random ones."""
    rng = random.Random(seed)
    chosen = [random_text(rng, list(pieces)) for _ in range(count)]
    return TEXTS + MORE + chosen + TEXT.splitlines()
