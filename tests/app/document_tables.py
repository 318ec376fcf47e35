#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables in docs/ that are the program's own lists.

    document_tables.py HEADSCOPE            rewrites them
    document_tables.py HEADSCOPE --check    exits with 1 and names the pages where they differ

A table stands between `<!-- table: LIST -->` and `<!-- end -->`; LIST is one of TABLES, and of `headscope list`.
"""
import json
import pathlib
import re
import subprocess
import sys

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"

# Columns of each list: heading, key of `list LIST --json`, and whether it is code.
TABLES = {
    "job-keys": [("key", "name", True), ("meaning", "description", False), ("default", "default", True),
                 ("value", "values", False)],
    "figures": [("figure", "name", True), ("shows", "description", False), ("needs", "needs", False),
                ("options", "options", True)],
    "figure-options": [("option", "name", True), ("value", "values", True), ("meaning", "description", False),
                       ("figures", "figures", False)],
    "tasks": [("task", "name", True), ("measures", "description", False), ("metrics", "metrics", False)],
}
PLACE = re.compile(r"<!-- table: (\S+) -->\n.*?<!-- end -->\n", re.DOTALL)


def cell(text, code):
    """One cell of a row; outside of backticks Markdown's own characters are escaped."""
    if code:
        text = f"`{text}`" if text else ""
    else:
        parts = text.split("`")
        parts[::2] = [re.sub(r"([*\[\]<\\])", r"\\\1", part) for part in parts[::2]]
        text = "`".join(parts)
    return text.replace("|", r"\|")


def table(columns, rows):
    lines = [[heading for heading, _, _ in columns], ["---"] * len(columns)]
    lines += [[cell(row[key], code) for _, key, code in columns] for row in rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main():
    program, check = sys.argv[1], sys.argv[2:] == ["--check"]
    tables = {}
    for name, columns in TABLES.items():
        listed = subprocess.run([program, "list", name, "--json"], stdout=subprocess.PIPE, check=True)
        tables[name] = table(columns, json.loads(listed.stdout))
    written, different = set(), []
    for page in sorted(DOCS.rglob("*.md")):
        before = page.read_text(encoding="utf-8")
        written.update(PLACE.findall(before))
        after = PLACE.sub(lambda place: f"<!-- table: {place[1]} -->\n\n{tables[place[1]]}\n<!-- end -->\n", before)
        if after == before:
            continue
        different.append(str(page))
        if not check:
            page.write_text(after, encoding="utf-8")
    missing = sorted(TABLES.keys() - written)
    for name in missing:
        print(f"no page has <!-- table: {name} -->")
    for page in different:
        print(f"[{page}] " + ("expected the program's tables; rewrite them: " + " ".join(sys.argv[:2]) if check
                              else "rewritten"))
    return 1 if missing or (check and different) else 0


if __name__ == "__main__":
    sys.exit(main())
