# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of a bundle, run one after another within a time limit. For check.py and bench.py; standard library only."""

import argparse
import json
import os
import subprocess
import time
from pathlib import Path

BACKENDS = ("cuda", "hip", "emulator")


class Failed(Exception):
    """A step that failed, with the reason in one line, and the output of the program that ended with an error."""

    def __init__(self, reason, output=""):
        super().__init__(reason)
        self.output = output


def options(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", choices=BACKENDS, required=True)
    parser.add_argument("--programs", type=Path, required=True, help="folder with bin/ and lib/")
    parser.add_argument("--libraries", default="", help="LD_LIBRARY_PATH of the programs")
    parser.add_argument("--table", type=Path, required=True, help="Markdown file that gets the table appended")
    parser.add_argument("--seconds", type=float, required=True, help="for all steps together")
    return parser


class Bundle:
    """Starts programs of the folder with what is left of the time."""

    def __init__(self, arguments):
        self.programs, self.libraries, self.backend = arguments.programs, arguments.libraries, arguments.backend
        self.emulated = self.backend == "emulator"
        self.end = time.monotonic() + arguments.seconds
        self.messages = ""  # standard error of the last program that succeeded

    def left(self):
        return self.end - time.monotonic()

    def environment(self, backend):
        """Operators run on `backend`; None: on the processor."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADSCOPE_")}
        if self.libraries:
            environment["LD_LIBRARY_PATH"] = self.libraries
        if backend is not None:
            environment["HEADSCOPE_KERNELS"] = backend
        if self.emulated:
            environment["HEADSCOPE_EMULATOR"] = "1"
        return environment

    def run(self, program, arguments, backend=None, longest=300, tool=()):
        """The standard output of a program, started by the command `tool` if given. Throws Failed."""
        limit = min(longest, self.left())
        if limit < 1:
            raise Failed("no time left")
        command = [*tool, str(self.programs / "bin" / program), *map(str, arguments)]
        try:
            done = subprocess.run(command, env=self.environment(backend), stdin=subprocess.DEVNULL, capture_output=True,
                                  text=True, errors="replace", timeout=limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"{program} took more than {limit:.0f} s") from None
        except OSError as error:
            raise Failed(f"{program} cannot be started: {error.strerror}") from None
        if done.returncode != 0:
            text = (done.stderr.strip() or done.stdout.strip())[-4000:]
            print(f"$ {' '.join(command)}\n{text}\nstatus {done.returncode}", flush=True)
            last = text.splitlines()[-1] if text else "no output"
            raise Failed(f"{program} ended with status {done.returncode}: {last[:200]}", done.stdout + done.stderr)
        self.messages = done.stderr
        return done.stdout

    def names(self, what):
        """The names that `headscope list` prints."""
        return [row["name"] for row in json.loads(self.run("headscope", ["list", what, "--json"], longest=60))]

    def headscope(self, arguments, on_gpu, longest=300):
        """The standard output of a command that computes, on the card or on the processor. The emulator has the kernels
        alone, no device."""
        if self.emulated:
            return self.run("headscope", arguments, self.backend if on_gpu else None, longest)
        return self.run("headscope", [*arguments, "--device", self.backend if on_gpu else "cpu"], None, longest)


def append_table(path, header, rows, texts=1):
    """A Markdown table; the first `texts` columns are text, the others numbers."""
    lines = [header, ["---"] * texts + ["---:"] * (len(header) - texts), *rows]
    text = "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)
    with open(path, "a", encoding="utf-8") as file:
        file.write(text + "\n\n")
