# SPDX-License-Identifier: GPL-3.0-or-later
"""ttt_linear() and titans() of native_recurrences.py in float64 against flash-linear-attention's plain operators.

    python learners_against_fla.py LIBRARY     # a folder with its fla/ops/{ttt,titans}/*.py; was run on version 0.6.0

The library's operators compute in float32; the distance of float32's own roundings is that of ours in float32, of which a
distance may be four times, and eight units beside. Lengths and mini-batches of which one does not divide the other, too.
Prints the worst share of that; exits with 1 above 1.
"""

import importlib.util
import sys
import types
from pathlib import Path

import torch

import native_recurrences


def operators(library):
    """Of a library whose packages would want triton: they are left out."""
    made = []
    for name in ("fla", "fla.ops", "fla.ops.titans"):
        sys.modules[name] = types.ModuleType(name)
    for name in ("fla.ops.titans.log_impl", "fla.ops.titans.naive", "fla.ops.ttt.naive"):
        spec = importlib.util.spec_from_file_location(name, Path(library) / (name.replace(".", "/") + ".py"))
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
        made.append(sys.modules[name])
    return made[2].chunk_ttt_linear_ref, made[1].chunk_titans_linear_ref


def share(ours, theirs, numbers):
    exact, single = (ours(*(x.to(kind) for x in numbers)) for kind in (torch.float64, torch.float32))
    units = 8 * torch.finfo(torch.float32).eps * exact.abs().max()
    return float((theirs.double() - exact).abs().max() / (4 * (single.double() - exact).abs().max() + units))


def main(library):
    theirs_ttt, theirs_titans = operators(library)
    generator = torch.Generator().manual_seed(5)
    draw = lambda *shape: torch.randn(shape, generator=generator)
    heads, size, worst = 3, 10, 0.0
    unit = lambda x: x / x.norm(dim=-1, keepdim=True)
    swapped = lambda x: x.transpose(0, 1)[None].clone()  # [1, L, heads, ..]; the library writes into what it is given
    for length in (1, 2, 15, 16, 17, 33, 70):
        for batch in (1, 4, 16, 64):
            query, key, value = unit(draw(heads, length, size)), unit(draw(heads, length, size)), draw(heads, length, size)
            gain, offset = 1 + 0.2 * draw(heads, size), 0.2 * draw(heads, size)
            rate, forgotten, momentum = (torch.sigmoid(draw(heads, length)) for _ in range(3))
            memory, bias = draw(heads, size, size) / size**0.5, draw(heads, size)
            rate = rate / size
            tokens = [swapped(x) for x in (query, key, value)]
            column = lambda x: swapped(x[..., None])
            made = theirs_ttt(*tokens, gain, offset, column(rate), mini_batch_size=batch, initial_state=memory[None].clone(),
                              initial_state_bias=bias[None, :, None].clone())[0][0].transpose(0, 1)
            ours = lambda *x: native_recurrences.ttt_linear(*x, batch)
            worst = max(worst, share(ours, made, (query, key, value, gain, offset, rate, memory, bias)))
            tokens = [swapped(x) for x in (query, key, value)]
            for in_chunks in (False, True):
                made = theirs_titans(*tokens, gain, offset, *map(column, (rate, forgotten, momentum)), chunk_size=batch,
                                     initial_state=memory[None].clone(), use_chunk=in_chunks)[0][0].transpose(0, 1)
                ours = lambda *x: native_recurrences.titans(*x, batch)
                worst = max(worst, share(ours, made, (query, key, value, gain, offset, rate, forgotten, momentum, memory)))
    print(f"worst share of the tolerance: {worst:.3f}")
    return worst > 1


if __name__ == "__main__":
    with torch.no_grad():
        sys.exit(main(sys.argv[1]))
