#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""monkey.py PROGRAM [--seconds N] [--seed N]: lets the window click and type at random, and judges its report: no
crash, no stall, every action and view reached, memory kept within what caches take. HEADSCOPE_MONKEY_SECONDS: for how
long (120)."""
import argparse
import os
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("HEADSCOPE_MONKEY_SECONDS", "120")))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    command = [os.path.abspath(options.program), "--monkey", str(options.seconds), "--seed", str(options.seed)]
    print(" ".join(command), flush=True)
    with tempfile.TemporaryDirectory(prefix="headscope-monkey-") as home:
        environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config",
                           XDG_CACHE_HOME=home + "/cache", QT_QPA_PLATFORM="offscreen")
        try:
            run = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, errors="replace",
                                 timeout=options.seconds + 180)
        except subprocess.TimeoutExpired:
            print(f"monkey.py: expected an end after {options.seconds} s; found none three minutes later")
            return 1
    print(run.stdout, end="")
    failures = []
    if run.returncode < 0:
        failures.append(f"expected no crash; found signal {-run.returncode}: {run.stderr[-1000:].strip()}")
    if "no error expected" in run.stderr:
        failures.append(f"expected no exception; found {run.stderr[-1000:].strip()}")
    lines = run.stdout.splitlines()
    missed = [line for line in lines if line.split()[:1] in (["action"], ["view"]) and line.endswith(" 0")]
    if missed:
        failures.append(f"expected every action and view to be reached; found none of {missed}")
    if not any(line.startswith("memory ") for line in lines):
        failures.append(f"expected a report; found {run.stdout[-300:]!r}, {run.stderr[-300:]!r}")
    # Whether a window that shares its processors with other programs stalls says nothing about the window.
    busy = os.getloadavg()[0] > 1.5 * (os.cpu_count() or 1)
    if run.returncode and not failures:
        (print if busy else failures.append)(f"status {run.returncode}: stalls or memory, see the report"
                                             + (" (the machine is busy: told, not judged)" if busy else ""))
    for failure in failures:
        print("monkey.py: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
