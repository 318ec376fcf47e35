# SPDX-License-Identifier: GPL-3.0-or-later
"""Small Parquet files by pyarrow, and the same rows as JSON lines.

    python tests/oracle/generate/parquet_files.py     writes tests/oracle/generate/data/parquet

Needs pyarrow (made with 26.0.1), which requirements.txt lacks.
"""

import datetime
import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).parent / "data" / "parquet"
WORDS = "river hill town boat salt wood tower market week north south sea naïve “old” 🙂 Fluß \\ \" \n \t \u0001 \u2028".split(" ")


def write_lines(name, rows):
    with open(FOLDER / f"{name}.jsonl", "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def write(name, table, **options):
    pq.write_table(table, FOLDER / f"{name}.parquet", **{"compression": "none", "row_group_size": 30, **options})


def flat():
    draw = random.Random(38)
    rows = [{"text": " ".join(draw.choices(WORDS, k=i % 23)), "label": i % 3, "other": i * 1.5} for i in range(70)]
    rows[5]["text"] = rows[6]["text"] = "one text twice " * 8
    table = pa.Table.from_pylist(rows, schema=pa.schema(
        [("text", pa.string()), ("label", pa.int64()), ("other", pa.float64())]))
    write_lines("flat", rows)
    for compression in ("none", "snappy", "gzip", "zstd"):
        write(f"flat-{compression}", table, compression=compression)
    write("flat-plain", table, use_dictionary=False, data_page_size=512)
    write("flat-pages-v2", table, data_page_version="2.0", compression="snappy", write_page_checksum=True)
    write("flat-delta", table, use_dictionary=False, data_page_version="2.0",
          column_encoding={"text": "DELTA_BYTE_ARRAY", "label": "DELTA_BINARY_PACKED", "other": "BYTE_STREAM_SPLIT"})
    coded = table.set_column(0, "text", table["text"].dictionary_encode())
    write("flat-dictionary", coded, compression="zstd")
    write("flat-large", table.cast(pa.schema([("text", pa.large_string()), ("label", pa.int8()), ("other", pa.float32())])))
    write("flat-view", table.set_column(0, "text", table["text"].cast(pa.string_view())))


def nested():
    rows = [{"id": i, "translation": {"de": f"Haus {i}", "en": f"house {i}"}, "document": {"text": f"text {i}", "size": i},
             "document.title": f"title {i}"} for i in range(40)]
    write_lines("nested", rows)
    write("nested", pa.Table.from_pylist(rows), compression="snappy")


def questions():
    context = "The river Ilm runs to the süd, where boats carry salt."
    answers = [["to the süd"], [], ["boats", "salt"]]
    rows = [{"id": str(i), "context": context, "question": f"Question {i}?",
             "answers": {"text": texts, "answer_start": [context.index(text) for text in texts]}}
            for i, texts in enumerate(answers)]
    struct = pa.struct([("text", pa.list_(pa.string())), ("answer_start", pa.list_(pa.int32()))])
    write_lines("questions", rows)
    write("questions", pa.Table.from_pylist(rows, schema=pa.schema(
        [("id", pa.string()), ("context", pa.string()), ("question", pa.string()), ("answers", struct)])))


def choices():
    rows = [{"goal": f"Goal {i}", "sol1": f"first {i}", "sol2": f"second {i}", "label": i % 2} for i in range(3)]
    write_lines("piqa", rows)
    write("piqa", pa.Table.from_pylist(rows), compression="snappy")


def types():
    """Values of every type that is read; then values and types that JSON lacks: null, or not in the lines."""
    integers = {f"{sign}int{bits}": [int(np.iinfo(f"{sign}int{bits}").min), int(np.iinfo(f"{sign}int{bits}").max), None]
                for sign in ("", "u") for bits in (8, 16, 32, 64)}
    columns = {name: pa.array(values, getattr(pa, name)()) for name, values in integers.items()}
    columns["float"] = pa.array([0.1, -0.0, None], pa.float32())
    columns["double"] = pa.array([0.1, 1e300, 3.0], pa.float64())
    columns["bool"] = pa.array([True, False, None])
    columns["nothing"] = pa.nulls(3)
    columns["list"] = pa.array([["a", None], [], None], pa.list_(pa.string()))
    columns["deep"] = pa.array([[[1], []], [], [[2, 3]]], pa.list_(pa.list_(pa.int32())))
    columns["three"] = pa.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], pa.list_(pa.int16(), 3))
    columns["objects"] = pa.array([[{"a": 1, "b": "x"}], [], [{"a": None, "b": "y"}, None]])
    columns["object"] = pa.array([{"in": {"a": 1}}, None, {"in": None}])
    lines = pa.table(columns).to_pylist()
    for line, number in zip(lines, (None, None, 1.0)):
        line.update(infinite=number, image={"path": "a.png"})
    write_lines("types", lines)
    columns["infinite"] = pa.array([float("nan"), float("inf"), 1.0])
    columns["bytes"] = pa.array([b"a", b"\xff", None])
    columns["time"] = pa.array([datetime.datetime(2026, 1, 2)] * 3, pa.timestamp("ms"))
    columns["image"] = pa.array([{"bytes": b"x", "path": "a.png"}] * 3)
    write("types", pa.table(columns))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    flat()
    nested()
    questions()
    choices()
    types()
