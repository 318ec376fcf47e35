#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Set-up, build, and all fast tests. test.sh [PRESET [ctest options]]; e.g. `test.sh release -L slow` for the slow ones,
# `test.sh asan`. HEADSCOPE_CMAKE_ARGS is handed to cmake.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
[ $# -eq 0 ] || shift
if [ "$preset" = core-only ]; then installer/setup.sh --no-window; else installer/setup.sh; fi
installer/build.sh "$preset"
selection=("$@")
[ ${#selection[@]} -gt 0 ] || selection=(-L '^fast$')
report=$PWD/build/$preset/tests.xml
rm -f "$report"
status=0
ctest --test-dir "build/$preset" -j "$(nproc)" --output-on-failure --output-junit "$report" "${selection[@]}" || status=$?
python3 - "$report" "$status" <<'PY'
import sys, xml.etree.ElementTree as tree
try:
    suite = tree.parse(sys.argv[1]).getroot()
except (OSError, tree.ParseError):
    print("0 passed, 1 failed")
    sys.exit(1)
total, failed = int(suite.get("tests")), int(suite.get("failures"))
skipped = int(suite.get("skipped") or 0) + int(suite.get("disabled") or 0)
print(f"{total - failed - skipped} passed, {failed} failed, {skipped} skipped")
sys.exit(1 if failed or total == 0 or sys.argv[2] != "0" else 0)
PY
