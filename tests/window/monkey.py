#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""monkey.py PROGRAM [--seconds N] [--seed N]: lets the window click and type at random, and judges its report: no
crash, no stall of the window's own doing, every action, view and often possible command reached, memory kept within what
caches take. A run that trains is open,
and an evaluation of it, so that there is something to pause, stop and look at. HEADSCOPE_MONKEY_SECONDS: for how long
(120). HEADSCOPE_MONKEY_SEED: repeats one."""
import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

from training import corpus, end_training, job

PATIENCE = 180  # seconds, of each step before the window and of its end


def begin_run(program, home, environment):
    """A run that goes on for as long as the monkey needs, on one thread; its folder once it has begun."""
    path, run = os.path.join(home, "job.toml"), os.path.join(home, "run")
    with open(path, "w", encoding="utf-8") as file:
        file.write(job(corpus(home)))
    command = [program, "train", path, "-o", run, "--nice", "10"]
    # In a session of its own, as the window starts it: then it gives way to the window's as a group.
    process = subprocess.Popen(command, env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, errors="replace", start_new_session=True)
    end = time.monotonic() + PATIENCE
    while not os.path.exists(os.path.join(run, "snapshots", "last")):
        if process.poll() is not None:
            raise RuntimeError(f"expected {' '.join(command)} to train; found {process.stderr.read().strip()}")
        if time.monotonic() > end:
            raise RuntimeError(f"expected {' '.join(command)} to take a snapshot; found none after {PATIENCE} s")
        time.sleep(0.1)
    return run


def evaluate(program, home, environment, run):
    """An evaluation of the run as it is now: there is something to show and to close."""
    scores = os.path.join(home, "run.evaluation.h5")
    command = [program, "evaluate", run, "--task", "next_token_accuracy", "--tokens", "500", "-o", scores]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, errors="replace",
                          timeout=PATIENCE)
    if done.returncode != 0:
        raise RuntimeError(f"expected {' '.join(command)} to succeed; found {done.stderr.strip()}")
    return scores


def told(command, seconds, **keywords):
    """As subprocess.run of text that is captured, with each line of the output shown when it comes: an hour that
    is ended early has told what it saw. A child that keeps the output open holds up nothing."""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace",
                                   start_new_session=True, **keywords)
        lines = []

        def show():
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)

        reader = threading.Thread(target=show, daemon=True)
        reader.start()
        try:
            process.wait(seconds)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        reader.join(10)
        if reader.is_alive():
            raise RuntimeError(f"expected the output to end with the window; found it kept open by {holders(process)}")
        errors.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, "".join(lines), errors.read())


def holders(process):
    """The command lines of the processes that have the other end of its output."""
    pipe = os.readlink(f"/proc/self/fd/{process.stdout.fileno()}")
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            folder = f"/proc/{number}/fd/"
            if int(number) != os.getpid() and any(os.readlink(folder + end) == pipe for end in os.listdir(folder)):
                with open(f"/proc/{number}/cmdline", "rb") as file:
                    found.append(file.read().replace(b"\0", b" ").decode(errors="replace").strip())
        except OSError:
            pass
    return found


def named(program, lines):
    """The lines with the place of the window's thread in a stall, with the names of the program's own functions."""
    stacks = [line[len("  at "):].split(" < ") for line in lines if line.startswith("  at ")]
    own = os.path.basename(program) + "+"
    places = sorted({place for stack in stacks for place in stack if place.startswith(own)})
    names = {}
    try:
        for begin in range(0, len(places), 1000):
            some = places[begin:begin + 1000]
            done = subprocess.run(["addr2line", "-fCs", "-e", program] + [place[len(own):] for place in some],
                                  capture_output=True, text=True, errors="replace", timeout=PATIENCE)
            names.update(zip(some, (name.split("(")[0] for name in done.stdout.splitlines()[::2])))
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"monkey.py: places have no names: {error}")
    counts = collections.Counter(" < ".join(names.get(place, place) for place in stack) for stack in stacks)
    return [f"{count} x {stack}" for stack, count in counts.most_common()]


def judge(run, seconds):
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
        failures.append(f"expected a report of {seconds} s; found {run.stdout[-300:]!r}, {run.stderr[-300:]!r}")
    if run.returncode and not failures:
        failures.append(f"status {run.returncode}: stalls of the window's own doing, memory, or a view's command that was often possible and never done, see the report")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("HEADSCOPE_MONKEY_SECONDS", "120")))
    parser.add_argument("--seed", type=int, default=int(os.environ.get("HEADSCOPE_MONKEY_SEED", time.time())))
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with all that it began
    with tempfile.TemporaryDirectory(prefix="headscope-monkey-") as home:
        environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home + "/data", XDG_CONFIG_HOME=home + "/config",
                           XDG_CACHE_HOME=home + "/cache", QT_QPA_PLATFORM="offscreen")
        try:
            training = begin_run(program, home, environment)
            command = [program, "--monkey", str(options.seconds), "--seed", str(options.seed), training,
                       evaluate(program, home, environment, training)]
            print(" ".join(command), flush=True)
            run = told(command, options.seconds + PATIENCE, env=environment, cwd=home)
        except subprocess.TimeoutExpired as late:
            print(f"monkey.py: expected an end of {' '.join(late.cmd)}; found none after {late.timeout:.0f} s")
            return 1
        except RuntimeError as error:
            print(f"monkey.py: {error}")
            return 1
        finally:
            end_training(home)
    for line in named(program, run.stdout.splitlines()):
        print(line)
    failures = judge(run, options.seconds)
    for failure in failures:
        print("monkey.py: " + failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
