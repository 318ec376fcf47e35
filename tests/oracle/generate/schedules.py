# SPDX-License-Identifier: GPL-3.0-or-later
"""Learning rates as transformers' schedules have them, for tests/core/training/test_schedule.cpp: shares of the peak
after so many steps. Ours count updates from 1 and have in update n what theirs have in step n.

    python tests/oracle/generate/schedules.py     writes tests/oracle/generate/data/schedules.json
"""

import json
from pathlib import Path

import torch
import transformers


def rates(make, steps):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = make(optimizer)
    return [float(f"{schedule.lr_lambdas[0](step):.12g}") for step in range(1, steps + 1)]


def cases():
    for warmup, steps in ((7, 61), (0, 23), (3, 11)):
        both = dict(num_warmup_steps=warmup, num_training_steps=steps)
        yield "linear", warmup, rates(lambda o: transformers.get_linear_schedule_with_warmup(o, **both), steps)
        yield "cosine", warmup, rates(lambda o: transformers.get_cosine_schedule_with_warmup(o, **both), steps)
        yield "cosine_restarts", warmup, rates(
            lambda o: transformers.get_cosine_with_hard_restarts_schedule_with_warmup(o, num_cycles=5, **both), steps)


if __name__ == "__main__":
    all_of_them = [dict(kind=kind, warmup=warmup, rates=found) for kind, warmup, found in cases()]
    text = "[\n" + ",\n".join(json.dumps(one, separators=(",", ":")) for one in all_of_them) + "\n]\n"
    (Path(__file__).parent / "data/schedules.json").write_text(text)
