# SPDX-License-Identifier: GPL-3.0-or-later
"""What transformers (5.23, with jinja2 3.1.6) makes of chat templates: chat_templates.json, for
tests/core/tokenizer/test_chat_template.cpp.

The templates are in chat/, each in the manner of a family, so that what these use is used. Beside them a table of
expressions and statements, each rendered by itself; null where the reference raises.

    python chat_templates.py            writes data/chat_templates.json
"""
import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils

sys.path.append(str(pathlib.Path(__file__).resolve().parent / "chat"))
from family_templates import TEMPLATES

DATE = datetime.datetime(2026, 3, 7, 9, 5, 2)


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return DATE


chat_template_utils.datetime = FixedClock

CHATS = [
    [("user", "Who was the king?")],
    [("system", "  Answer briefly.\n"), ("user", " In the beginning\n\tGod created ")],
    [("user", "1 < 2 & \"3\" > '4'"), ("assistant", "\nyes {{ no }} {% if %}\n"), ("user", "Größe 中文 👍🏽\u200d")],
    [
        ("system", "be kind /no_think"),
        ("user", "<tool_response>x</tool_response>"),
        ("assistant", "<think>\nhm\n</think>\n\nso"),
        ("user", "more"),
        ("assistant", "<think>a</think>b"),
    ],
    [("assistant", "I begin"), ("user", "and you?")],
    [("user", ""), ("user", "twice"), ("system", "late"), ("tool", "42"), ("developer", "new")],
    [("developer", "rules"), ("user", "a<|channel|>b"), ("assistant", "c<|channel|>d")],
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}

CONTEXT = {
    "messages": [
        {"role": "system", "content": "S"},
        {"role": "user", "content": " u <b> "},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
        {"role": "user", "content": "Zwei Größen"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Tells the weather",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "place": {"type": "string", "enum": ["here", "there"]},
                        "days": {"type": "array", "items": {"type": "integer"}},
                        "how": {"oneOf": [{"type": "string"}, {"type": ["number", "null"]}]},
                    },
                    "required": ["place"],
                },
            },
        }
    ],
    "documents": None,
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "eos_token": "</s>",
    "number": 7,
    "real": 2.5,
    "text": "Hello, World of\tÄpfel",
    "words": ["pear", "Apple", "fig", "apple"],
    "mixed": {"b": 1, "A": [1, 2.0, None, True, "x'y"], "c": {"d": "\u00e9\n"}},
    "nothing": None,
    "yes": True,
}

EXPRESSIONS = """
1 + 2 * 3 - 4 / 2 | 7 // 2 | -7 // 2 | -7 % 3 | 7 % -3 | 2 ** 10 | 2 ** -1 | -2 ** 2 | 7.5 // 2 | -7.5 % 2 | 1e3 | 1e16 | 1.5e-7 | 0.1 + 0.2 | 100000000000000000000.0
1_000 + 0x1f + 0b11 + 0o17 | 10 / 4 | 1 / 3 | 3 * 'ab' | [1] * 3 | (1, 2) + (3,) | 'a' 'b' | "q" ~ 1 ~ none ~ true ~ 2.0 | undefined_name ~ 'x' | 'a' + 1
1 < 2 < 3 | 1 < 2 > 3 | 1 == 1.0 | true == 1 | 'a' < 'b' | [1, 2] < [1, 3] | 'a' < 1 | none == undefined_name | 1 != 2 | not 1 == 2 | not not yes
yes and number or 3 | nothing or 'x' | nothing and 'x' | 'el' in 'hello' | 'z' not in 'hello' | 1 in [1, 2] | 'b' in mixed | 'x' in undefined_name | 1 in 'abc' | 1 in 5
number if yes else 2 | 'a' if nothing | 1 if nothing else 2 if nothing else 3 | ('a' if nothing) is defined | (1, 2) | (1,) | () | [1, 'a', none, 1.5, true] | {'a': 1, 'b': [2]} | {'a': 1, 'a': 2}
text[0] | text[-1] | text[100] is defined | text[1:4] | text[::-1] | text[-5:] | text[:-5] | text[::3] | text[10:2:-2] | words[1:] | words[:-1] | words[::-1] | words[-2:] | words[5:] | words[:100] | words[1:3][0] | words[::0]
mixed.b | mixed['A'] | mixed.A[1] | mixed.A.3 | mixed.zzz | mixed.zzz is defined | mixed.zzz.y | mixed['zzz'] | mixed.items() | list | mixed.keys() | list | mixed.get('q') | mixed.get('q', 5) | mixed.get('b') | nothing.x | number.x is defined
text.upper() | text.lower() | text.title() | text.capitalize() | 'a,b,c'.split(',') | 'a,b,c'.split(',', 1) | 'a,b,c'.rsplit(',', 1) | ' a  b '.split() | ' a  b c'.split(none, 1) | 'a b  c '.rsplit(none, 1) | ''.split() | ''.split(',') | 'ab'.split('')
'  x '.strip() | '  x '.lstrip() | '  x '.rstrip() | 'xxaxx'.strip('x') | 'abcabc'.lstrip('ab') | 'é中é'.strip('é') | text.startswith('Hell') | text.endswith(('x', 'fel')) | text.startswith('') | 'aXbX'.replace('X', '--') | 'aXbX'.replace('X', '-', 1) | 'ab'.replace('', '.')
'hello'.find('l') | 'hello'.rfind('l') | 'hello'.find('z') | 'hello'.index('z') | 'héllo'.find('o') | 'banana'.count('an') | 'banana'.count('') | ','.join(['a', 'b']) | ','.join([1]) | 'a-b-c'.partition('-') | 'abc'.removeprefix('a') | 'abc'.removesuffix('bc') | 'l1\\nl2\\r\\nl3'.splitlines() | 'a\\n'.splitlines(true)
'123'.isdigit() | 'a1'.isalnum() | 'ab'.isalpha() | ' '.isspace() | ''.isspace() | 'AB'.isupper() | 'aB1'.islower() | '1'.islower() | '%s is %d and %s' % ('a', 5, [1]) | '%s' % 'x' | '%05.1f|%-4s|%4d|%%' % (2.25, 'a', 7) | '%x' % 255 | '%d' % 'a' | '%s %s' % 'a'
'{} {}'.format(1, 'b') | '{1}{0}'.format('a', 'b') | '{x}!'.format(x=3) | '{{}}'.format() | '{}'.format() | [1, 2].index(2) | [1, 1].count(1) | [1].append(2) | mixed.update({}) | mixed.pop('b') | text.nosuch() | number()
words | length | text | length | mixed | length | undefined_name | length | nothing | length | words | first | words | last | text | first | [] | first | [] | last | undefined_name | first | words | join(', ') | words | join | [1, none, 2.5] | join('-') | mixed | join(',')
messages | join(',', attribute='role') | text | upper | text | lower | 'ß' | upper | 'hello big-world (foo) [bar' | title | 'hELLO wORLD' | capitalize | '  a ' | trim | 'xax' | trim('x') | 7 | string | 7 | trim | words | string | mixed | string | none | string | undefined_name | upper
words | reverse | list | text | reverse | words | sort | words | sort(reverse=true) | words | sort(case_sensitive=true) | messages | sort(attribute='role') | map(attribute='role') | list | [3, 1, 2] | sort | [3, 'a'] | sort | mixed | dictsort | mixed | dictsort(true) | mixed | dictsort(reverse=true) | {'a': 3, 'b': 1} | dictsort(by='value')
words | unique | list | [1, 1, 2] | unique | list | [3, 1, 2] | min | words | max | [] | min | [1, 2, 3] | sum | messages | map(attribute='content') | list | messages | map(attribute='zz', default='D') | list | words | map('upper') | list | words | map('replace', 'p', 'q') | list | words | map('nosuch') | list
[0, 1, 2, none, 'a', ''] | select | list | [1, 2, 3, 4] | select('odd') | list | [1, 2, 3, 4] | reject('even') | list | [1, 5] | select('>', 2) | list | messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list | messages | rejectattr('role', 'in', ['user', 'system']) | list | length | messages | selectattr('tool_calls', 'defined') | list | length | messages | selectattr('tool_calls') | list | length
mixed | items | list | undefined_name | items | list | undefined_name | default('d') | nothing | default('d') | nothing | default('d', true) | '' | d('e', boolean=true) | number | default | '12' | int | 'x' | int | ' 12 ' | int | '3.7' | int | 3.9 | int | -3.9 | int | 'x' | int(5) | 'ff' | int(0, 16) | '2.5' | float | 'x' | float | 3 | float | none | int
2.567 | round(2) | 2.5 | round | 3.5 | round | 2.1 | round(method='ceil') | 2.15 | round(1) | 1234 | round(-2) | 1250 | round(-2) | 1350 | round(-2) | -1234 | round(-1) | 7 | round | 7 | round(1) | -5 | abs | 'a' | abs | 'a\\nb\\n\\nc' | indent | 'a\\nb' | indent(2, true) | 'a\\n\\nb' | indent('> ', blank=true) | '<a href="x">&\\'' | e | 'x' | safe | '%s-%s' | format(1, 'b')
mixed | tojson | mixed | tojson(indent=2) | words | tojson(indent=0) | [] | tojson(indent=2) | {} | tojson | 'é"\\\\/\\n\\u0001\\x7f' | tojson | 'é😀\\x7f' | tojson(ensure_ascii=true) | mixed | tojson(sort_keys=true) | [1, {'a': 2}] | tojson(separators=(',', ':')) | {'a': [1, 2]} | tojson(indent='\\t') | 1.0 | tojson | undefined_name | tojson | {1: 2, none: 3, true: 4} | tojson | (1, 2) | tojson
undefined_name is defined | number is defined | undefined_name is undefined | nothing is none | yes is true | 1 is true | yes is boolean | number is integer | yes is integer | real is float | real is number | yes is number | text is string | mixed is mapping | words is mapping | words is iterable | number is iterable | text is iterable | words is sequence | mixed is sequence | nothing is iterable | undefined_name is iterable
7 is odd | 8 is even | 9 is divisibleby 3 | 9 is divisibleby(4) | 'a' is in 'abc' | 1 is in [2] | 'abc' is lower | 'ABC' is upper | 3 is eq 3 | 3 is ne 4 | 3 is gt 2 | 3 is lessthan 4 | 3 is sameas 3 | true is sameas 1 | range is callable | number is callable | 'upper' is filter | 'odd' is test | 1 is nosuch | number is not none | not nothing is none | 1 is not odd and true | words is not string and 1 | number is odd is true
range(5) | list | range(1, 10, 3) | list | range(5, 0, -2) | list | range(3) | length | range(0) | list | range(100001) | length | range(0, 5, 0) | namespace(a=1).a | namespace({'a': 2}).a | namespace().b is defined | dict(a=1, b=2) | dict({'c': 3}, a=1) | namespace(a=1) is mapping | strftime_now('%Y-%m-%d') | strftime_now('%d %b %Y %A %H:%M:%S %j') | raise_exception('no')
'a\\tb\\\\n\\'"' | "\\x41\\u00e9\\U0001F600\\101\\q" | 'it''s' | "line\\
go" | {'it': "q'"} | ["a'b\\"c"] | ['\\x00\\x7f\\u200b\\xa0é中'] | [0.1, 1e100, 1e-5, 123456789.125] | [true, none] | 1.0 | 1e22 | 5e-324 | -0.0 | 3.0 * 2 | [[], {}, ()] | (([1])) | 'a'|upper ~ 'b' | -1|abs | -text|length | (-1)|abs | 1 + 2|string|length
messages[1].content | messages[-1]['content'][0:4] | messages[2].tool_calls[0].function.arguments|tojson | messages[9] is defined | messages[9].role | tools[0].function.name | tools[0]['function']['parameters'].properties.place.enum|join('/') | messages|map(attribute='role')|join(',') | messages|map(attribute='tool_calls.0.function.name')|list|length | words[0]|upper|lower|title | mixed.c.d|trim | (words|first)[0] | {'a': {'b': 1}}.a.b | [words, words][1][0]
words|join(d='+') | dict(**{'a': 1}) | range(*[1, 3])|list | 'a'.split(maxsplit=1) | text.split(sep=',') | 'x'|default | 'a'|trim(chars='a') | words|sort(attribute='nosuch')|length | words|batch(3)|list|length | words|batch(3, 'z')|list | (1 if yes) + 1 | 1 if 1 in [1] else 0 | 'a' == 'a' == 'a' | 5 - -5 | +5 | --5 | not true | not(true) | (true) and(true)
""".strip()

# The expressions above stand between bars that filters do not use; see split_expressions.
STATEMENTS = [
    "{% for a in [1,2,3] %}{{ a }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for a in [1,2,3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for a in [] %}x{% else %}empty{% endfor %}",
    "{% for a in [1,2,3,4] if a is even %}{{ loop.index }}:{{ a }} {% else %}none{% endfor %}",
    "{% for a in [1] if a > 5 %}x{% else %}none{% endfor %}",
    "{% for k, v in mixed.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in mixed %}{{ k }}{% endfor %}{% for c in 'aé' %}[{{ c }}]{% endfor %}{% for x in undefined_name %}x{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1,2,3)] %}{% endfor %}",
    "{% for a in 5 %}{% endfor %}",
    "{% for a in [1,2,3] %}{% if a == 2 %}{% continue %}{% endif %}{{ a }}{% endfor %}|{% for a in [1,2,3] %}{% if a == 2 %}{% break %}{% endif %}{{ a }}{% endfor %}",
    "{% for a in [1,2] %}{% for b in [3,4] %}{{ loop.depth }}{{ loop.index }}{% if b == 3 %}{% break %}{% endif %}{% endfor %}{{ loop.cycle('x', 'y') }}{% endfor %}",
    "{% set x = 1 %}{% for a in [1,2] %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(x=1) %}{% for a in [1,2] %}{% set ns.x = ns.x + a %}{% endfor %}{{ ns.x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, %}{{ c }}",
    "{% set x %}<{{ number }}>{% endset %}{{ x }}{% set y | upper | trim %} abc {% endset %}[{{ y }}]",
    "{% set x.y = 1 %}",
    "{% macro m(a, b=2, c='q') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, c='z') }}{{ m() }}{{ m(b=3, a=4) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=1) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}{{ x }}{% endmacro %}{% set x = 5 %}{{ f() }}{% for x in [6] %}{{ f() }}{% endfor %}",
    "{% macro f(l) %}{% for i in l %}{{ i }}{% endfor %}{% endmacro %}{% for i in [1,2] %}{{ f([7,8]) }}{{ i }}{% endfor %}",
    "{% macro f() %} a {% endmacro %}[{{ f() | trim }}]{{ f() == ' a ' }}{{ f is defined }}{{ f is string }}{{ f() is string }}",
    "{% with a = 1, b = number %}{{ a + b }}{% set a = 5 %}{% endwith %}{{ a is defined }}",
    "{% filter upper %}a{{ 'b' }}{% endfilter %}{% filter replace('a', 'x') | trim %} aba {% endfilter %}",
    "{% print 1, 'a' %}{% print number %}",
    "{% raw %}{{ a }}{% b %}{% endraw %}x{%- raw -%}  {{ q }}  {%- endraw -%}  y",
    "{% generation %}a{% set q = 1 %}{% endgeneration %}{{ q is defined }}",
    "a {# comment #} b{#- c -#} d\n{# whole line #}\ne {##}",
    "  {% if true %}\n  a\n  {% endif %}\n  b",
    "  {%+ if true %}\n  a\n  {%- endif +%}\n  b",
    "a\n   {%- if true -%}   \n  b {{- 1 -}}  c\n {{ 2 }} \n {%- endif %}\n\n",
    "x{% if true %}\n\ny{% endif %}\n",
    "\n\n{{ 1 }}\n\n",
    "a\r\nb{% if true %}\r\nc{% endif %}\rd",
    "\t {% set a = 1 %}  \n{{ a }}",
    " {{ 1 }} {% set a = 1 %} {{ 2 }}",
    "{{ 1 }}\n  {# c #}  \n  {% set b = 1 %}\nz",
    "{{'{{'}} {% if '%}' %}x{% endif %} {{ {'a': {'b': 1}}['a']['b'] }}",
    "{{ {'a': 1}}}",
    "{% if number > 5 and number < 10 %}a{% elif number %}b{% else %}c{% endif %}",
    "{% if undefined_name %}a{% elif nothing %}b{% elif '' %}b{% elif [] %}b{% elif 0.0 %}b{% else %}c{% endif %}",
    "{% if undefined_name.x %}a{% endif %}",
    "{% if not undefined_name is defined %}a{% endif %}",
    "{% if 1 %}",
    "{% endif %}",
    "{% for %}",
    "{{ 1 + }}",
    "{{ 'a }}",
    "{{ a",
    "{% if true }}x{% endif %}",
    "{{ [1, 2 }}",
    "{# open",
    "{% nosuch %}",
    "{% break %}",
    "{{ a b }}",
    "{{ 'a' | nosuch }}",
    "{% set 1 = 2 %}",
    "{{ loop.index }}",
    "{{ 1 / 0 }}",
    "{{ none + 'a' }}",
    "{{ messages[0].role.nosuch.deeper }}",
    "{% set d = {'a': 1} %}{% for k, v in d | dictsort %}{{ k }}{{ v }}{% endfor %}{% for i in d | items %}{{ i[0] }}{% endfor %}",
    "{% for m in messages | reverse %}{{ m.role }} {% endfor %}{% for m in messages[1:] %}{{ loop.previtem.role if loop.previtem is defined else '-' }}{{ loop.nextitem.role if not loop.last }};{% endfor %}",
    "{%- for m in messages -%}\n  {{- m.role -}}\n{%- endfor -%}",
    "{% set l = [] %}{% for i in range(3) %}{% set l = l + [i] %}{% endfor %}{{ l }}",
    "{% set ns = namespace(l=[]) %}{% for i in range(3) %}{% set ns.l = ns.l + [i] %}{% endfor %}{{ ns.l }}",
    "{% set x = x | default('new') %}{{ x }}{% set messages = messages[1:] %}{{ messages | length }}",
    "{% if messages[0]['role'] == 'system' and (messages | length) > 1 %}{{ messages[0]['content'] }}{% endif %}",
    "{{ -7 | abs }} {{ not 'a' in 'b' }} {{ 'x' ~ 1 + 2 }} {{ 1 ~ 2 * 3 }} {{ 2 * 3 ~ 1 }}",
    "{% macro out() %}{{ caller is defined }}{% endmacro %}{{ out() }}",
    "{% set f = 'abc'.upper %}{{ f() }}",
    "{% for a in [1, 2, 3] %}{{ a }}{% else %}x{% endfor -%}   \n z",
]


def split_expressions(text):
    """Rows of expressions: " | " parts them too, so a filter that stands alone is joined to what is before it."""
    filters = set(chat_template_utils._compile_jinja_template("x").environment.filters)
    for row in text.replace("\\\n", "\\\0").split("\n"):
        parts = row.replace("\\\0", "\\\n").split(" | ")
        expression = parts[0]
        for part in parts[1:]:
            name = part.split("(")[0].split(" ")[0].split("[")[0].split(".")[0]
            quoted = expression.count("'") % 2 == 1 and expression.count('"') % 2 == 0
            if name in filters or quoted or part.startswith(("-4s", "%4d")):
                expression += " | " + part
            else:
                yield expression
                expression = part
        yield expression


def rendered(template, variables):
    try:
        return chat_template_utils._compile_jinja_template(template).render(**variables)
    except Exception:  # noqa: BLE001 whatever it raises is a refusal
        return None


def main():
    chats = []
    for name in TEMPLATES:
        for number, chat in enumerate(CHATS):
            for prompt in (False, True):
                try:
                    text, _ = chat_template_utils.render_jinja_template(
                        [[{"role": role, "content": content} for role, content in chat]],
                        chat_template=TEMPLATES[name],
                        add_generation_prompt=prompt,
                        **TOKENS,
                    )
                    text = text[0]
                except Exception:  # noqa: BLE001
                    text = None
                chats.append([name, number, prompt, text])
    # The same with tools and all other variables, where only the program's inside can give them.
    full = [[name, rendered(template, CONTEXT)] for name, template in TEMPLATES.items()]
    sources = ["{{ " + expression + " }}" for expression in split_expressions(EXPRESSIONS)] + STATEMENTS
    table = [[source, rendered(source, CONTEXT)] for source in sources]
    document = {
        "templates": TEMPLATES,
        "chats": CHATS,
        "tokens": TOKENS,
        "context": CONTEXT,
        "chat_results": chats,
        "full_results": full,
        "table": table,
    }
    path = pathlib.Path(__file__).parent / "data/tokenizer/chat_templates.json"
    path.write_text(json.dumps(document, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    refused = sum(result is None for _, result in table)
    print(f"{len(chats)} chats, {len(table)} expressions and statements ({refused} refused), {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
