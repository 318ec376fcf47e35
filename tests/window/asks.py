#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""asks.py PROGRAM: files of `headscope ask` in the window, without a screen: the dialog runs a tool on the sample, and the
result opens by itself; its views export what the command line draws, byte for byte; a file is dropped, a broken one refused;
the session brings them back; interventions that are typed apply to the next analysis."""
import json
import os
import shutil
import subprocess
import sys

from evaluations import start
from offscreen import same_figure
from program import Failed, exit_status_of

SAMPLE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                      "resources", "samples", "llama-kjv-shakespeare")
TEXT = "In the beginning the king came down from the mountain"


def paths(state):
    return sorted(one["path"] for one in state["asks"])


def story(program, home):
    text = os.path.join(home, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write(TEXT)
    window, hands = start(program, home, [SAMPLE, text])
    window.until_state("the sample", lambda state: state["models"] == 1)
    hands.act("ask")
    window.until_visible("ask_dialog_start")
    window.until("a command", lambda: all(
        part in window.find("ask_dialog_command")["text"] for part in (f"ask lens {SAMPLE}", "/asks/", f"--file {text}")))
    hands.click("ask_dialog_start")
    state = window.until_state("its result", lambda now: len(now["asks"]) == 1 and now["front"] == "lens")
    lens = state["asks"][0]["path"]
    if not lens.startswith(os.path.join(home, "data", "headscope", "asks")) or state["problems"]:
        raise Failed(f"expected a file of the user's folder and no problem; found {state}")
    hands.click("ask_dialog_close")
    same_figure(program, window, hands, home, [lens, "--figure", "lens"], "lens")

    ablate, broken = os.path.join(home, "ablate.ask.h5"), os.path.join(home, "broken.ask.h5")
    subprocess.run([program, "ask", "ablate", SAMPLE, "--text", TEXT, "-o", ablate], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(ablate, "rb") as whole, open(broken, "wb") as part:
        part.write(whole.read()[:3000])
    hands.drop(ablate, "main_window")
    window.until_state("the dropped file", lambda now: len(now["asks"]) == 2 and now["front"] == "ablation_heads")
    window.quiet()
    same_figure(program, window, hands, home, [ablate, "--figure", "ablation-heads"], "ablation_heads")
    before = window.state()["problems"]
    hands.drop(broken, "main_window")
    window.until_state("the broken file to be refused", lambda now: now["problems"] == before + 1)

    hands.act("interventions")
    window.until_visible("intervention_text")
    hands.click("intervention_add")
    hands.click("intervention_apply")
    window.until("one intervention", lambda: window.find("text_interventions")["text"].startswith("1 "))
    hands.act("run")
    state = window.until_state("the analysis", lambda now: len(now["studies"]) == 1 and not now["running"] and
                               now["studies"][0]["complete"])
    settings = json.loads(subprocess.run([program, "info", state["studies"][0]["path"], "--json"], check=True,
                                         capture_output=True, text=True).stdout)
    if settings["problems"]:
        raise Failed(f"expected an analysis without problems; found {settings}")
    hands.act("quit")
    if status := window.ended():
        raise Failed(f"expected status 0 at the end; found {status}")
    with open(os.path.join(home, "data", "headscope", "recent.json"), encoding="utf-8") as recent:
        kinds = {item["path"]: item["kind"] for item in json.load(recent)["items"]}
    if [kinds.get(path) for path in (lens, ablate, broken)] != ["ask", "ask", None]:
        raise Failed(f"expected both files among the recent items; found {kinds}")

    window, hands = start(program, home)
    window.until_state("the session", lambda now: paths(now) == sorted([lens, ablate]))
    window.until("the intervention", lambda: window.find("text_interventions")["text"].startswith("1 "))
    hands.act("close_asks")
    window.until_state("no ask file", lambda now: not now["asks"])
    hands.act("quit")
    window.ended()

    copy = os.path.join(home, "copy.ask.h5")
    shutil.copy(ablate, copy)
    window, hands = start(program, home, [copy])
    window.until_state("the given file", lambda now: copy in paths(now) and now["front"] == "ablation_heads")
    hands.act("quit")
    window.ended()
    print("two tools, one intervention")


if __name__ == "__main__":
    sys.exit(exit_status_of("asks", story))
