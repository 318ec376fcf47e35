# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of requirements-lens.txt, which make_venv.sh --lens installs beside the interpreter's own."""

import argparse
import importlib
import importlib.util
import sys

SKIPPED = 77


def arguments(about, *options):
    """Parsed command line: the program, --packages, and `options` (pairs of a flag and keywords)."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope")
    parser.add_argument("--packages", help="folder that make_venv.sh --lens made")
    for flag, keywords in options:
        parser.add_argument(flag, **keywords)
    return parser.parse_args()


def load(name, folder):
    """The package `name`, of `folder` where the interpreter lacks it. Without it the process ends as skipped; a package
    that is there and cannot be imported is an error."""
    if folder:
        sys.path.append(folder)
    if importlib.util.find_spec(name) is None:
        print(f"skipped: no package {name}; tests/oracle/make_venv.sh --lens FOLDER installs it")
        sys.exit(SKIPPED)
    return importlib.import_module(name)
