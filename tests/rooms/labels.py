#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""labels.py BUILD: every test of a configured build has one of the labels fast and slow; none of oracle and soak is fast."""
import pathlib
import re
import sys

ADDED = re.compile(r"^add_test\((?:\[=\[(.+?)\]=\]|(\S+)) ")
PROPERTIES = re.compile(r"^set_tests_properties\((?:\[=\[(.+?)\]=\]|(\S+)) PROPERTIES .*?\bLABELS \"([^\"]*)\"")
FOLDER = re.compile(r'^subdirs\("(.+)"\)')


def labels_in(folder):
    """Labels of each test that CMake wrote down for a folder and those in it."""
    found, file = {}, folder / "CTestTestfile.cmake"
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:  # a folder may have no tests
        if added := ADDED.match(line):
            found[added[1] or added[2]] = set()
        if named := PROPERTIES.match(line):
            found[named[1] or named[2]] = set(named[3].split(";")) - {""}
        if inner := FOLDER.match(line):
            found.update(labels_in(folder / inner[1]))
    return found


def main():
    tests = labels_in(pathlib.Path(sys.argv[1]))
    wrong = [name for name, labels in tests.items()
             if len(labels & {"fast", "slow"}) != 1 or ("fast" in labels and labels & {"oracle", "soak"})]
    for name in wrong:
        print(f"[{name}] expected the label fast or slow, slow with oracle and soak; found {sorted(tests[name])}")
    if not tests:
        print("found no test")
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
