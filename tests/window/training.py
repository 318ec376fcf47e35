#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""training.py PROGRAM [--shots FOLDER]: training in the window, without a screen: a job is typed as text, its form
follows; it is started, watched, paused, resumed, evaluated and stopped; the timeline scrubs; the
snapshot's analysis opens, and one of a text that is longer than the model reads; another window finds the run again and
resumes it; one that a crash interrupts is offered; jobs and texts are dropped."""
import argparse
import os
import signal
import sys

from program import Failed, Program, Sent, exit_status

WORDS = "in the beginning god created the heaven and the earth and the earth was without form and void".split()
STEPS = 40000

started = []


def start(program, home):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, ["--threads", "2"])
    started.append(window)
    window.until_visible("main_window")
    return window, Sent(window)


def corpus(home):
    """A text with something to learn, the same every time."""
    number, words = 1, []
    for _ in range(20000):
        number = number * 1103515245 + 12345 & 0x7fffffff
        words.append(WORDS[(number >> 16) % len(WORDS)])
    path = os.path.join(home, "corpus.txt")
    with open(path, "w", encoding="ascii") as file:
        file.write(" ".join(words))
    return path


def job(path):
    return f"""name = "watched"
[model]
preset = "nano-100k"
[data]
text = ["{path}"]
sequence_length = 64
[training]
steps = {STEPS}
batch = 4
threads = 1
[evaluation]
every = 20
batches = 2
[snapshots]
every = 40
[probe]
every = 10
sequences = 2
length = 32
[sample]
every = 40
tokens = 16
"""


def run_of(state):
    return state["runs"][0] if state["runs"] else {"status": "none", "step": 0, "snapshots": 0, "probes": 0}


def press(hands, window, button, what, holds):
    hands.click(button)
    return window.until_state(what, lambda state: holds(run_of(state)))


def tell(program, home, shots):
    window, hands = start(program, home)

    def shot(name):
        if shots:
            window.quiet()
            window.shot(os.path.join(shots, f"training-{name}.png"))

    hands.act("train_new")
    window.until_state("the job in front", lambda state: state["front"] == "train")
    if window.find("text_run")["visible"]:
        raise Failed("expected the text panel to leave its room to the views of training")
    hands.click("job_text")
    hands.key("Ctrl+A")
    for line in job(corpus(home)).splitlines():
        hands.type(line)
        hands.key("Return")
    window.until("the form to follow the text",
                 lambda: window.find("job_training_steps")["text"] == str(STEPS))
    window.until("a summary", lambda: window.find("fact_parameters_value")["text"] not in ("–", ""))
    shot("job")
    hands.act("view_layout")
    window.until_visible("layers")
    shot("layers")
    hands.act("view_train")
    hands.click("job_start")
    window.until_state("a run that has begun", lambda state: run_of(state)["status"] == "running" and
                       run_of(state)["step"] > 40 and state["front"] == "run")
    press(hands, window, "run_pause", "a paused run", lambda run: run["status"] == "paused")
    at = run_of(window.state())["step"]
    shot("run")
    press(hands, window, "run_resume", "a run that goes on", lambda run: run["status"] == "running" and
          run["step"] > at and run["waiting"] == 0)
    hands.click("run_evaluate")
    window.until_state("the evaluation to be done", lambda state: run_of(state)["waiting"] == 0)
    window.until_state("probes and a snapshot", lambda state: run_of(state)["probes"] > 3 and
                       run_of(state)["snapshots"] > 0)
    hands.act("view_timeline")
    hands.click("timeline_scrubber", (0.05, 0.5))
    hands.key("Home")
    window.until("the step before the first", lambda: window.find("timeline_step")["text"].endswith("step 0"))
    shot("timeline")
    hands.act("view_cost")
    shot("cost")
    hands.act("view_run")
    stopped = press(hands, window, "run_stop", "a stopped run", lambda run: run["status"] == "stopped")
    path, last = run_of(stopped)["path"], run_of(stopped)["step"]
    if last >= STEPS:
        raise Failed(f"expected to stop the run before its end; found step {last}")
    hands.act("train_analyse")
    window.until_state("the snapshot's analysis", lambda state: not state["running"] and len(state["studies"]) == 1 and
                       state["studies"][0]["complete"] and state["models"] == 1)
    shot("analysis")
    # All of a text that is longer than what the model reads.
    window.until_visible("text_length")
    hands.click("text_length", (0.3, 0.5))
    hands.key("Ctrl+A")
    hands.type("0")
    hands.key("Return")
    hands.act("train_analyse")
    window.until_state("another analysis", lambda state: not state["running"] and len(state["studies"]) == 2 and
                       state["studies"][1]["complete"])
    names = [study["name"] for study in window.state()["studies"]]
    if not all(name.startswith("watched_step_") for name in names):
        raise Failed(f"expected analyses that are called by their run and step; found {names}")
    problems = window.state()["problems"]
    if problems:
        raise Failed(f"expected no problem; found {problems}")
    stalls = window.stalls()
    hands.act("quit")
    if status := window.ended():
        raise Failed(f"expected status 0 at the end; found {status}")

    # Another window: the run is there, goes on, and goes on without the window.
    window, hands = start(program, home)
    window.until_state("the run again", lambda state: run_of(state).get("path") == path and
                       run_of(state)["status"] == "stopped")
    hands.act("view_run")
    press(hands, window, "run_resume", "a resumed run", lambda run: run["status"] == "running" and run["step"] > last)
    hands.act("quit")
    hands.click("close_leave")
    window.ended()
    window, hands = start(program, home)
    window.until_state("a run that went on", lambda state: run_of(state)["status"] in ("running", "finished"))
    if run_of(window.state())["status"] == "running":
        hands.act("view_run")
        press(hands, window, "run_stop", "a stopped run", lambda run: run["status"] in ("stopped", "finished"))
    hands.act("quit")
    window.ended()
    crash(program, home, path)
    print(f"steps {last} of {STEPS}; {stalls}")


def crash(program, home, path):
    """Both die, the run first: the next window offers the session and the run, one at a time."""
    window, hands = start(program, home)
    hands.act("view_run")
    press(hands, window, "run_resume", "a resumed run", lambda run: run["status"] == "running")
    end_training(home)
    window.until_state("an interrupted run", lambda state: run_of(state)["status"] == "interrupted")
    window.until_visible("banner_action")  # the way to resume it
    window.until("a session of a window that is open", lambda: window.session().get("closed") is False)
    window.kill()
    window, hands = start(program, home)
    window.until_visible("start_run_0")
    hands.click("start_no_session")
    hands.click("start_run_0")
    window.until_state("the interrupted run", lambda state: run_of(state).get("path") == path and
                       run_of(state)["status"] == "interrupted" and state["front"] == "run")
    if window.find("start_run_0")["found"]:
        raise Failed("expected an open run to be offered no more")
    # Dropped files: a job goes into the form, wherever it falls; a text is trained on.
    hands.act("view_train")
    job_file, text = os.path.join(home, "dropped.toml"), os.path.join(home, "corpus.txt")
    with open(job_file, "w", encoding="utf-8") as file:
        file.write('name = "dropped"\n[data]\ncorpus = "kjv"\n')
    hands.drop(job_file, "job_find")
    window.until("the dropped job", lambda: window.find("job_name")["text"] == "dropped")
    hands.drop(text, "job_text")
    window.until("the dropped text", lambda: window.find("job_data_text")["text"] == text)
    if window.find("job_find")["text"] or window.find("job_data_corpus")["text"]:
        raise Failed("expected nothing of the drop in the search, and one source of data")
    hands.act("quit")
    window.ended()


def end_training(home):
    """Whatever went wrong, no process of this test goes on."""
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit():
                continue
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if b"train" in words and any(home.encode() in word for word in words):
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--shots", default="")
    asked = parser.parse_args()
    if asked.shots:
        os.makedirs(asked.shots, exist_ok=True)

    def work(home):
        try:
            tell(os.path.abspath(asked.program), home, asked.shots)
        finally:
            for window in started:
                window.kill()
            end_training(home)

    return exit_status("training", work)


if __name__ == "__main__":
    sys.exit(main())
