#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""evaluations.py PROGRAM: results of evaluations in the window, without a screen: a run that is open is evaluated from
it, the three views show the file, what they export is what the command line makes of it, byte for byte; a file is
dropped, a broken one refused; the session brings them back, and a file can be given as an argument; a task that is
chosen in the dialog is asked, its items are looked at, and one is analysed."""
import json
import os
import shutil
import subprocess
import sys

from offscreen import same_figure
from program import Failed, Program, Sent, exit_status_of
from training import corpus

VIEWS = ("context_perplexity", "ablation", "scaling")

def start(program, home, arguments=()):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, [*arguments, "--threads", "2"])
    window.until_visible("main_window")
    return window, Sent(window)


def paths(state):
    """Of the files that are open; which one a session has first depends on which is read first."""
    return sorted(one["path"] for one in state["evaluations"])


def trained(program, home):
    """A run of a few steps, hybrid, so that every figure has something to draw."""
    job = os.path.join(home, "job.toml")
    with open(job, "w", encoding="utf-8") as file:
        file.write(f"""name = "short"
[model]
preset = "nano-100k"
mixer = "mlp"
layout = "even"
[data]
text = ["{corpus(home)}"]
sequence_length = 64
[training]
steps = 6
batch = 2
threads = 1
""")
    run = os.path.join(home, "short")
    subprocess.run([program, "train", job, "-o", run], check=True, stdout=subprocess.DEVNULL)
    return run


def questions(home):
    """A data set of two questions, as the hub's arc_easy has them."""
    folder = os.path.join(home, "data sets", "arc_easy")
    os.makedirs(folder)
    with open(os.path.join(folder, "test.jsonl"), "w", encoding="utf-8") as file:
        for question, right in (("What falls?", "B"), ("What rises?", "A")):
            file.write(json.dumps({"question": question, "answerKey": right, "choices": {
                "text": ["smoke", "rain", "a stone"], "label": ["A", "B", "C"]}}) + "\n")
    return os.path.dirname(folder)


def ask(program, home, run):
    """The run is asked a task that is chosen in the dialog; its items are there."""
    data = questions(home)
    window, hands = start(program, home, [run])
    state = window.until_state("the run", lambda now: len(now["runs"]) == 1 and now["runs"][0]["snapshots"] > 0)
    open_before = paths(state)
    hands.act("evaluate_models")
    hands.click("evaluate_tasks")
    hands.type("arc_easy")  # the list goes to the task of that name
    hands.key("Space")
    hands.click("evaluate_data")
    hands.type(data)
    window.until_visible("evaluate_begin")
    command = window.find("evaluate_command")["text"]
    if f"evaluate {run} --task arc_easy --data '{data}'" not in command:
        raise Failed(f"expected the run, the task and the folder in the command; found {command}")
    hands.click("evaluate_begin")
    state = window.until_state("its results", lambda now: now["front"] == "tasks" and any(
        "/headscope/evaluations/" in path and path not in open_before for path in paths(now)))
    if state["problems"]:
        raise Failed(f"expected no problem; found {state}")
    hands.act("view_items")
    window.until_visible("items_list")
    window.until("two items", lambda: window.find("items_count")["text"].startswith("2 of 2 items"))
    hands.act("items_next")
    window.until("the second item", lambda: ", item 1:" in window.find("items_title")["text"])
    # Its text through the run's snapshot.
    studies = len(state["studies"])
    hands.act("items_analyse")
    window.until_state("its analysis", lambda now: len(now["studies"]) == studies + 1 and not now["running"])
    hands.act("quit")
    window.ended()


def tell(program, home):
    run = trained(program, home)
    window, hands = start(program, home, [run])
    window.until_state("the run", lambda state: len(state["runs"]) == 1 and state["runs"][0]["snapshots"] > 0)
    hands.act("view_ablation")
    window.until_visible("notice_action")
    hands.act("evaluate_runs")
    state = window.until_state("its evaluation", lambda state: len(state["evaluations"]) == 1 and
                               state["front"] in VIEWS)
    file = state["evaluations"][0]["path"]
    if not file.startswith(os.path.join(home, "data", "headscope", "evaluations", "short-")):
        raise Failed(f"expected results in the user's folder; found {file}")
    for view in VIEWS:
        hands.act("view_" + view)
        window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
        window.quiet()
        same_figure(program, window, hands, home, [file, "--figure", view.replace("_", "-")], view)

    copy, broken = os.path.join(home, "copy.evaluation.h5"), os.path.join(home, "broken.evaluation.h5")
    shutil.copy(file, copy)
    with open(file, "rb") as whole, open(broken, "wb") as part:
        part.write(whole.read()[:3000])
    hands.drop(copy, "main_window")
    window.until_state("the dropped file", lambda state: len(state["evaluations"]) == 2)
    before = window.state()["problems"]
    hands.drop(broken, "main_window")
    window.until_state("the broken file to be refused", lambda state: state["problems"] == before + 1)
    hands.act("view_scaling")
    state = window.until_state("scaling in front", lambda state: state["front"] == "scaling")
    if before or len(state["evaluations"]) != 2:
        raise Failed(f"expected two evaluations and no problem before; found {state}")
    stalls = window.stalls()
    hands.act("quit")
    if status := window.ended():
        raise Failed(f"expected status 0 at the end; found {status}")
    with open(os.path.join(home, "data", "headscope", "recent.json"), encoding="utf-8") as recent:
        kinds = {item["path"]: item["kind"] for item in json.load(recent)["items"]}
    if [kinds.get(path) for path in (file, copy, broken)] != ["evaluation", "evaluation", None]:
        raise Failed(f"expected both files among the recent items; found {kinds}")

    window, hands = start(program, home)
    window.until_state("the session", lambda now: paths(now) == paths(state) and
                       now["front"] == "scaling")
    hands.act("close_evaluations")
    window.until_state("no evaluation", lambda now: not now["evaluations"])
    hands.act("quit")
    window.ended()

    window, hands = start(program, home, [copy])
    window.until_state("the given file", lambda now: paths(now) == [copy] and
                       now["front"] in VIEWS)
    hands.act("quit")
    window.ended()
    ask(program, home, run)
    print(f"{len(VIEWS)} views; {stalls}")


if __name__ == "__main__":
    sys.exit(exit_status_of("evaluations", tell))
