# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the program on one input at a time and judges what it did: exit status, one line that blames the right thing,
time, memory, and that nothing was left behind or touched."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 20
MEGABYTES = 600
FORM = re.compile(r"headscope: \[[^\]]+.*\] .+; .+")
PROGRESS = re.compile(r"headscope: ( *[0-9]+ %|about [0-9]|at least [0-9]).*")
# Linux counts the memory of the process that starts a program into that program's peak, and this one holds large inputs:
# a small one stands in between and reports status, processor time and peak.
LAUNCHER = """
import os, resource, sys
child = os.fork()
if child == 0:
    space = int(sys.argv[2])
    if space:
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    os.execv(sys.argv[3], sys.argv[3:])
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as report:
    report.write(f"{status} {usage.ru_utime + usage.ru_stime} {usage.ru_maxrss}")
"""
CRASH = ("terminate called", "Sanitizer", "runtime error:", "Assertion", "core dumped")


@dataclass
class Outcome:
    status: int
    out: bytes
    err: str
    seconds: float  # of processor time: what a busy machine does not change
    megabytes: float

    @property
    def messages(self):
        return [line for line in self.err.split("\n") if line and not PROGRESS.fullmatch(line)]


@dataclass
class Judge:
    program: str
    faults: list = field(default_factory=list)
    refused: int = 0
    accepted: int = 0
    slowest: tuple = (0.0, "")
    largest: tuple = (0.0, "")

    def run(self, arguments, *, stdin=None, environment=None, limit=10 * SECONDS, home=None, address_space=0):
        """The outcome, with the peak memory of the process or of its largest child. `address_space`: bytes, 0: any."""
        env = {**os.environ, "XDG_CACHE_HOME": str(home or tempfile.gettempdir()), **(environment or {})}
        env.setdefault("OMP_NUM_THREADS", "2")
        env.setdefault("GOMP_SPINCOUNT", "200")  # as the program sets it, by restarting itself
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, tempfile.NamedTemporaryFile() as report:
            command = [sys.executable, "-IS", "-c", LAUNCHER, report.name, str(address_space),
                       os.path.abspath(self.program)]
            process = subprocess.Popen([*command, *map(os.fspath, arguments)], stdin=stdin or subprocess.DEVNULL,
                                       stdout=out, stderr=err, env=env, start_new_session=True)
            timer = threading.Timer(limit, lambda: os.killpg(process.pid, signal.SIGKILL))
            timer.start()
            process.wait()
            timer.cancel()
            told = report.read().split()  # nothing: it was killed
            status, seconds, kilobytes = (int(told[0]), float(told[1]), int(told[2])) if told else (9, limit, 0)
            out.seek(0)
            err.seek(0)
            code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            return Outcome(code, out.read(1 << 20), err.read(1 << 20).decode("utf-8", "replace"), seconds,
                           kilobytes / 1024)

    def fault(self, name, text, outcome):
        self.faults.append(f"{name}: {text}\n    status {outcome.status}, {outcome.seconds:.2f} s, "
                           f"{outcome.megabytes:.0f} MB, stderr: {outcome.err[:600]!r}")
        print("FAULT", self.faults[-1], flush=True)

    def judge(self, name, outcome, *, may_succeed, must_refuse, parts=(), seconds=SECONDS,
              megabytes=MEGABYTES, may_print=False):
        """`may_print`: it prints while it works, so a failure may come after a part."""
        self.slowest = max(self.slowest, (outcome.seconds, name))
        self.largest = max(self.largest, (outcome.megabytes, name))
        if any(word in outcome.err for word in CRASH):
            return self.fault(name, "a crash shows", outcome)
        if outcome.seconds > seconds:
            return self.fault(name, f"took longer than {seconds} s", outcome)
        if outcome.megabytes > megabytes:
            return self.fault(name, f"took more than {megabytes} MB", outcome)
        if "\x1b" in outcome.err or b"\x1b" in outcome.out:
            return self.fault(name, "an escape character reached the terminal", outcome)
        if outcome.status == 0:
            if must_refuse or not may_succeed:
                return self.fault(name, "was accepted", outcome)
            self.accepted += 1
            return None
        if outcome.status != 1:
            return self.fault(name, "expected exit status 1", outcome)
        if len(outcome.messages) != 1 or not FORM.fullmatch(outcome.messages[0]):
            return self.fault(name, "expected one line of the usual form", outcome)
        if outcome.out and not may_print:
            return self.fault(name, "printed to standard output though it failed", outcome)
        if "expected no error from a library" in outcome.err:
            return self.fault(name, "an error of a library was not understood", outcome)
        for part in parts:
            if part not in outcome.err:
                return self.fault(name, f"expected {part!r} in the line", outcome)
        self.refused += 1
        return None

    def summary(self, what):
        print(f"{what}: {self.refused} refused, {self.accepted} accepted, {len(self.faults)} faults; slowest "
              f"{self.slowest[0]:.2f} s ({self.slowest[1]}), largest {self.largest[0]:.0f} MB ({self.largest[1]})",
              flush=True)
        return not self.faults


def listing(folder):
    """Everything in a folder by name, kind, size, times and link target."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(root) / name
            status = path.lstat()
            found[str(path)] = (status.st_mode, status.st_size if not path.is_dir() else 0, status.st_mtime_ns
                                if not path.is_dir() else 0, os.readlink(path) if path.is_symlink() else "")
    return found


class Place:
    """A new folder for one case; what is in it after the program ran must be what was in it before."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="headscope-hostile-"))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def __truediv__(self, name):
        return self.folder / name


def check(judge, name, place, arguments, *, outputs=(), must_refuse=True, parts=(), seconds=SECONDS, **options):
    """Runs, judges, and compares the folder. `outputs`: what may appear where the program succeeds."""
    before = listing(place.folder)
    outcome = judge.run(arguments, **options)
    judge.judge(name, outcome, may_succeed=not must_refuse, must_refuse=must_refuse, parts=parts, seconds=seconds)
    after = listing(place.folder)
    allowed = {str(place / output) for output in outputs} if outcome.status == 0 else set()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} - allowed
    if changed:
        judge.fault(name, f"left or touched {sorted(changed)[:5]}", outcome)
    for output in allowed:
        if os.path.isfile(output):
            os.unlink(output)
    return outcome


def link_model(place, sample, without=()):
    """The sample's files as links in place/model, but for those that the case writes."""
    model = place / "model"
    model.mkdir()
    for file in sorted(Path(sample).iterdir()):
        if file.name not in without:
            (model / file.name).symlink_to(file)
    return model


def limit_core_dumps():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
