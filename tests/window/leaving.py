#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""leaving.py PROGRAM: what the frame of the window does, without a screen. Tabs show what an analysis fills; a second view
stands beside the first, and is back in the next session, as is an analysis's name; recent items open from the menu; quitting
during an analysis asks, and its partial file is offered at the next start and can be removed; a checkpoint is converted and
its mixers are swapped from dialogs, by commands that the command line takes too, and the results open."""
import json
import os
import subprocess
import sys
import time

from program import Failed, Program, Sent, exit_status_of
from training import corpus

PLAIN = ["overview", "all_heads", "map", "lines", "on_text", "loss", "logits", "mass", "radar", "stepper", "compare",
         "tensors"]


def start(program, home, arguments=()):
    window = Program(program, home, {"QT_QPA_PLATFORM": "offscreen"}, ["--threads", "2", *arguments])
    window.until_visible("main_window")
    window.until("the session to be read", lambda: window.session().get("process") == window.process.pid)
    return window, Sent(window)


def expect(what, found, wanted):
    if found != wanted:
        raise Failed(f"expected {what} to be {wanted}; found {found}")


def analysed(window, hands, studies=1):
    hands.click("text_run")
    return window.until_state(f"{studies} complete analyses", lambda state: (
        not state["running"] and len(state["studies"]) == studies and
        all(study["complete"] for study in state["studies"])), 180)


def tell_tabs(program, home):
    """Groups, a second view, a name: now and in the next session."""
    window, hands = start(program, home)
    hands.click("start_sample")
    window.until_state("a model", lambda state: state["models"] == 1)
    path = analysed(window, hands)["studies"][0]["path"]
    tabs, shown = window.tabs()
    expect("the tabs of a Llama", tabs, PLAIN)
    expect("the shown view", shown, ["overview"])
    for group, view in (("group_map", "map"), ("group_text", "on_text"), ("group_distributions", "logits"),
                        ("group_layers", "radar"), ("group_compare", "compare"), ("group_heads", "overview")):
        hands.click(group)
        window.until_state(f"the view {view}", lambda state: state["front"] == view)
    hands.click("tab_all_heads")
    window.until_state("all heads", lambda state: state["front"] == "all_heads")
    # Views of data that the analysis lacks open by name all the same.
    hands.act("view_bias")
    expect("the view in front", window.state()["front"], "bias")
    hands.act("view_map")
    hands.click("split_views")
    expect("both views", window.tabs()[1], ["map", "on_text"])
    hands.act("rename_analysis")
    window.until_visible("rename_dialog")
    hands.key("Ctrl+A")
    hands.type("baseline, 4 layers")
    hands.key("Return")
    window.until_state("the new name", lambda state: state["studies"][0]["name"] == "baseline, 4 layers")
    expect("the name in the selection bar", window.find("select_study")["text"], "baseline, 4 layers")
    window.until("the name in the session", lambda: window.session()["names"] == {path: "baseline, 4 layers"})
    hands.act("guide")
    window.until_visible("guide_text")
    hands.key("Escape")
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    window.until_state("the name", lambda state: [one["name"] for one in state["studies"]] == ["baseline, 4 layers"])
    window.until("both views", lambda: window.tabs()[1] == ["map", "on_text"])
    # Closed, and opened again from the menu: it is still called that.
    hands.act("close_analysis")
    window.until_state("no analysis", lambda state: not state["studies"])
    window.ask({"menu": "recent_menu", "entry": "recent_1"})
    window.until_state("the name again", lambda state: [one["name"] for one in state["studies"]] == ["baseline, 4 layers"])
    hands.act("quit")
    window.ended()


def tell_quit(program, home):
    """Quitting asks; the partial file is offered, opened or removed."""
    window, hands = start(program, home)
    hands.click("start_sample")
    window.until_state("a model", lambda state: state["models"] == 1)
    hands.click("text_remove")
    hands.drop(corpus(home), "text_chips")
    hands.click("text_length", (0.3, 0.5))
    hands.key("Ctrl+A")
    hands.type("256")
    hands.key("Return")
    hands.click("text_windows", (0.05, 0.5))
    window.until_visible("text_run")
    hands.click("text_run")
    window.until_state("an analysis that runs", lambda state: state["running"] and state["studies"] and
                       state["studies"][0]["done_sites"] > 2, 180)
    hands.act("quit")
    question = window.until_visible("close_question")
    if not window.find("close_quit")["visible"]:
        raise Failed(f"expected a question that names the analysis; found {question}")
    hands.key("Escape")
    window.until("the question to go", lambda: not window.find("close_question")["visible"])
    if not window.state()["running"]:
        raise Failed("expected the analysis to go on after the question was cancelled")
    hands.act("quit")
    hands.click("close_quit")
    expect("the status", window.ended(), 0)
    folder = os.path.join(home, "data", "headscope", "analyses")
    left = [name for name in os.listdir(folder) if name.endswith(".partial")]
    expect("the number of partial files", len(left), 1)
    # The session brings it back by itself; a window without that session offers it.
    window, hands = start(program, home)
    window.until_state("the partial analysis", lambda state: len(state["studies"]) == 1 and
                       not state["studies"][0]["complete"])
    if window.find("start_leftover_0")["visible"]:
        raise Failed("expected no offer of what the session brings back")
    hands.act("close_analysis")
    window.until("the session without it", lambda: not window.session()["analyses"])
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    window.until_visible("start_leftover_0")
    hands.click("start_leftover_0")
    window.until_state("what was done", lambda state: len(state["studies"]) == 1 and state["studies"][0]["done_sites"] > 2)
    hands.act("close_analysis")
    window.until("the session without it", lambda: not window.session()["analyses"])
    hands.act("quit")
    window.ended()
    window, hands = start(program, home)
    hands.click("start_leftover_remove_0")
    window.until("the file to go", lambda: not os.path.exists(os.path.join(folder, left[0])))
    if window.find("start_leftover_0")["visible"]:
        raise Failed("expected the offer to go with the file")
    hands.act("quit")
    window.ended()


def set_line(window, hands, name, text):
    hands.click(name)
    hands.key("Ctrl+A")
    hands.type(text)
    window.until(f"{text} in {name}", lambda: window.find(name)["text"] == text)


def info(program, folder):
    run = subprocess.run([program, "info", folder, "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def tell_tasks(program, home):
    """Convert and swap: the dialogs' commands, and what they make."""
    window, hands = start(program, home)
    hands.act("convert")
    window.until_visible("convert_dialog")
    if window.find("convert_dialog_start")["enabled"]:
        raise Failed("expected no conversion without a checkpoint")
    hands.key("Escape")
    hands.click("start_sample")
    window.until_state("a model", lambda state: state["models"] == 1)
    half, swapped = os.path.join(home, "half"), os.path.join(home, "swapped")
    hands.act("convert")
    set_line(window, hands, "convert_dialog_destination", half)
    hands.click("convert_dialog_type")
    for _ in range(2):
        hands.key("Down")
    hands.key("Return")
    window.until("bfloat16", lambda: window.find("convert_dialog_type")["text"] == "bfloat16")
    command = window.find("convert_dialog_command")["text"]
    if not command.endswith(f"{half} --dtype bfloat16"):
        raise Failed(f"expected the folder and the type in the command; found {command}")
    hands.click("convert_dialog_start")
    window.until_visible("convert_dialog_open")
    hands.click("convert_dialog_open")
    window.until_state("the converted model", lambda state: state["models"] == 2)
    hands.key("Escape")
    hands.act("swap_mixers")
    window.until_visible("swap_dialog")
    set_line(window, hands, "swap_dialog_destination", swapped)
    hands.click("swap_dialog_layer_2")
    hands.type("mlp")
    hands.key("Return")
    window.until("a layer's mixer", lambda: "--swap 2=mlp" in window.find("swap_dialog_command")["text"])
    hands.click("swap_dialog_start")
    window.until_visible("swap_dialog_open")
    hands.click("swap_dialog_open")
    window.until_state("the swapped model", lambda state: state["models"] == 3)
    expect("the mixers", info(program, swapped)["mixers"], ["standard", "standard", "mlp", "standard"])
    expect("the log", window.state()["problems"], 0)
    hands.key("Escape")
    # The command refuses a folder that exists, and the dialog shows the error.
    hands.act("convert")
    window.until_visible("convert_dialog_start")
    hands.click("convert_dialog_start")
    window.until("the reason", lambda: half in window.find("convert_dialog_message")["text"])
    hands.key("Escape")
    # A replay stops in order.
    hands.act("reproduce")
    set_line(window, hands, "reproduce_dialog_folder", os.path.join(home, "replay"))
    hands.click("reproduce_dialog_start")
    window.until_visible("reproduce_dialog_stop")
    time.sleep(2)
    hands.click("reproduce_dialog_stop")
    window.until("the word that it stopped", lambda: window.find("reproduce_dialog_message")["text"] == "Stopped")
    hands.key("Escape")
    hands.act("quit")
    expect("the status", window.ended(), 0)


def tell(program, home):
    for part in (tell_tabs, tell_quit, tell_tasks):
        place = os.path.join(home, part.__name__)
        os.mkdir(place)
        part(program, place)
    print("tabs, names, partial files and commands are as they should be")


if __name__ == "__main__":
    sys.exit(exit_status_of("leaving", tell))
