# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers of a GPU against the processor's, within rounding. For models.py; standard library only."""

from math import sqrt

from steps import Failed

FLOAT32 = 2.0**-24  # the largest relative error of one rounding
BFLOAT16 = 2.0**-9
# Roundings of single steps grow on their way to an indicator, by cancellation and by exponentials of scores. Measured
# on the sample's texts: other last bits of all weights change no number by more than 8e-7, a thirtieth of the
# tolerance; kernels that sum in another order change numbers in bfloat16 by 5e-3, a third.
GROWTH = 4
# Columns of smaller numbers are compared as if their largest were this: a share that is 0 but for rounding is the
# difference of numbers of size 1.
SMALLEST = 1 / 64


def float32_tolerance(terms, layers):
    """Relative difference of numbers behind `layers` layers with sums of up to `terms` float32 products. Roundings of
    another order of summation are random: they add up to the root of their number."""
    return GROWTH * layers * sqrt(terms) * FLOAT32


def bfloat16_tolerance(layers):
    """The same where results of operations are rounded to bfloat16, and their sums are float32."""
    return GROWTH * sqrt(layers) * BFLOAT16


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def numbers_of(table):
    """(row, column, text, number or None, group) of each cell; the numbers of a group have one unit. `table`: rows of a
    CSV file, names first."""
    names, *rows = table
    at = names.index("indicator") if "indicator" in names else None
    for row, cells in enumerate(rows):
        for name, text in zip(names, cells):
            yield row, name, text, number(text), (name, None if at is None else cells[at])


def largest_difference(found, expected):
    """(numbers compared, largest difference relative to the largest expected number of its group)."""
    if [len(row) for row in found] != [len(row) for row in expected]:
        raise Failed("tables of different sizes")
    sizes = {}
    for _, _, _, value, group in numbers_of(expected):
        if value is not None:
            sizes[group] = max(sizes.get(group, SMALLEST), abs(value))
    count, largest = 0, 0.0
    for (_, _, text, x, _), (row, name, other, y, group) in zip(numbers_of(found), numbers_of(expected)):
        if x is None or y is None:
            if text != other:
                raise Failed(f"row {row}, {name}: expected {other or 'nothing'}; found {text or 'nothing'}")
            continue
        count += 1
        if x != y and text != other:
            difference = abs(x - y) / sizes[group]
            if not difference < float("inf"):
                raise Failed(f"row {row}, {name}: expected {other}; found {text}")
            largest = max(largest, difference)
    return count, largest


class Comparison:
    """The tables or numbers of one step, each with a tolerance of its own."""

    def __init__(self):
        self.count, self.worst = 0, (0.0, "", 0.0, 1.0)

    def add(self, name, difference, allowed, count=1):
        self.count += count
        self.worst = max(self.worst, (difference / allowed, name, difference, allowed))

    def add_tables(self, name, found, expected, allowed):
        try:
            count, difference = largest_difference(found, expected)
        except Failed as error:
            raise Failed(f"{name}: {error}") from None
        self.add(name, difference, allowed, count)

    def result(self):
        """The text of a table. Throws Failed."""
        share, name, difference, allowed = self.worst
        if self.count == 0:
            raise Failed("no numbers")
        text = f"difference {difference:.2g}, {allowed:.2g} allowed" + (f", of {name}" if name else "")
        if not share <= 1:
            raise Failed(text)
        return f"{self.count} numbers, {text}"
