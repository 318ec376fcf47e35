#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""offscreen.py PROGRAM: the window's story in short, without a screen: open the sample, run, every view, export, quit;
then the session is back."""
import json
import os
import shlex
import subprocess
import sys

from program import Failed, Program, Sent, exit_status_of



def start(program, home):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"})
    window.until_visible("main_window")
    return window, Sent(window)


def export_zoomed_map(program, window, hands, home):
    """The map, zoomed: its part and its color scale are in the command that the page shows, which makes the file."""
    hands.act("view_map")
    for _ in range(6):
        hands.key("+")
    window.quiet()
    hands.act("export")
    command = shlex.split(window.until_visible("export_command")["text"])
    hands.key("Escape")
    for option in ("--from-query", "--to-query", "--from-key", "--to-key", "--scale"):
        if option not in command:
            raise Failed(f"expected {option} in the command of a zoomed map; found {command}")
    files = {}
    for who in ("window", "command"):
        files[who] = os.path.join(home, f"zoomed-{who}.png")
    export(window, hands, files["window"])
    hands.key("Escape")
    subprocess.run([program, *command[1:-1], files["command"]], check=True, stdout=subprocess.DEVNULL)
    with open(files["window"], "rb") as one, open(files["command"], "rb") as other:
        if one.read() != other.read():
            raise Failed("expected the figure of a zoomed map to be what its command makes")
    hands.key("0")


def threads_of(process):
    names = []
    for task in os.listdir(f"/proc/{process}/task"):
        try:
            with open(f"/proc/{process}/task/{task}/comm", encoding="utf-8") as file:
                names.append(file.read().strip())
        except OSError:  # it has ended
            pass
    return names


def export(window, hands, path):
    hands.act("export")
    hands.click("export_save")
    window.until_visible("export_file")
    window.until("the name of the file to have the focus", lambda: window.find("fileNameEdit")["focus"])
    hands.key("Ctrl+A")
    hands.type(path)
    hands.key("Return")
    window.until(f"{path} to be written", lambda: os.path.exists(path) and
                 "Written" in window.find("export_problem")["text"])


def same_figure(program, window, hands, home, words, name):
    """Exports what is in front; the command line's `export WORDS` must make the same bytes. The path of the CSV."""
    for ending in ("svg", "csv"):
        ours, theirs = (os.path.join(home, f"{name}-{who}.{ending}") for who in ("window", "command"))
        export(window, hands, ours)
        hands.key("Escape")
        subprocess.run([program, "export", *words, "-o", theirs], check=True, stdout=subprocess.DEVNULL)
        with open(ours, "rb") as one, open(theirs, "rb") as other:
            if one.read() != other.read():
                raise Failed(f"expected the window's {ours} to be the command line's")
    return ours


def tell(program, home):
    window, hands = start(program, home)
    # How fast this machine is, measured before the first run and kept.
    kept = os.path.join(home, "data", "headscope", "machine.json")
    window.until("the speed to be measured", lambda: os.path.exists(kept))
    with open(kept, encoding="utf-8") as file:
        if json.load(file)["multiplications_per_second"] <= 0:
            raise Failed("expected a speed above 0")
    if [name for name in os.listdir(os.path.dirname(kept)) if name.startswith("calibration")]:
        raise Failed("expected nothing to stay of the measurement")
    hands.click("start_sample")
    window.until_state("a model", lambda state: state["models"] == 1)
    # A checkpoint has tensors; other views say what they lack.
    for view in ("tensors", "map"):
        hands.act("view_" + view)
        window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
    if "No analysis is open" not in window.until_visible("notice_title")["text"]:
        raise Failed(f"expected the map to say that no analysis is open; found {window.find('notice_title')}")
    hands.click("text_run")
    window.until_state("a complete analysis", lambda state: (
        not state["running"] and state["studies"] and state["studies"][0]["complete"]))
    views = window.views()
    if "overview" not in views or "map" not in views:
        raise Failed(f"expected an overview and a map among the views; found {views}")
    hands.act("next_layer")
    hands.act("next_head")
    for view in views[1:] + views[:1]:
        hands.act("view_" + view)
        window.until_state(f"the view {view} in front", lambda state: state["front"] == view)
        window.quiet()
    helpers = [name for name in threads_of(window.process.pid) if "pooled" in name]
    if helpers:
        raise Failed(f"expected the window to paint without a pool of threads; found {helpers}")
    export(window, hands, os.path.join(home, "figure.svg"))
    with open(os.path.join(home, "figure.svg"), encoding="utf-8") as file:
        if "<text" not in file.read():
            raise Failed("expected text in the SVG file")
    hands.key("Escape")
    hands.act("view_map")
    state = window.until_state("the map in front", lambda state: state["front"] == "map")
    if (state["site"], state["head"], state["problems"]) != (1, 1, 0):
        raise Failed(f"expected layer 1, head 1 and no problem; found {state}")
    export_zoomed_map(program, window, hands, home)
    # The palette has the panels, and what the view in front does itself.
    named = [action["name"] for action in window.ask({"actions": True})["actions"]]
    for name in ("panel_project", "panel_text", "panel_log", "map_region_shown", "map_jump_to"):
        if name not in named:
            raise Failed(f"expected {name} among the actions; found {named}")
    stalls = window.stalls()
    hands.act("quit")
    if status := window.ended():
        raise Failed(f"expected status 0 at the end; found {status}")

    window, hands = start(program, home)
    window.until_state("the session", lambda now: all(now[name] == state[name] for name in (
        "front", "site", "head", "models")) and [study["path"] for study in now["studies"]] ==
        [study["path"] for study in state["studies"]])
    # A file is the window's on a panel that floats, too.
    text = os.path.join(home, "dropped.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write("In the beginning")
    hands.click("dock_text", (0.3, 0.01), twice=True)
    window.until("the text panel to float", lambda: window.find("text_chips")["window"] == "dock_text")
    hands.drop(text, "text_chips")
    window.until("the text in the session", lambda: text in [
        source["value"] for source in window.session()["text"]["sources"]])
    hands.act("quit")
    window.ended()
    print(f"{len(views)} views; {stalls}")


if __name__ == "__main__":
    sys.exit(exit_status_of("offscreen", tell))
