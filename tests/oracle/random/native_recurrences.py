# SPDX-License-Identifier: GPL-3.0-or-later
"""Recurrences of mixers with a state, token by token: the definitions that native_oracle.py and fla_oracle.py compute.

ttt_linear() and titans() were compared with the plain operators of flash-linear-attention 0.6.0 (learners_against_fla.py).
"""

import torch


def recurrence(query, key, value, write, log_decay, delta):
    """Token by token. query, key [H, L, dk], value [H, L, dv], write [H, L], log_decay [H, L, 1 or dk]; the state
    S [H, dk, dv] decays, takes in k (w v)^T, or by the delta rule k (w (v - S^T k))^T, and is read by q / sqrt(dk)."""
    state = torch.zeros(*key.shape[::2], value.shape[2], dtype=value.dtype)
    rows = []
    for i in range(key.shape[1]):
        state = log_decay[:, i].exp()[..., None] * state
        news = value[:, i] - torch.einsum("hkv,hk->hv", state, key[:, i]) if delta else value[:, i]
        state = state + torch.einsum("hk,hv->hkv", key[:, i], write[:, i, None] * news)
        rows.append(torch.einsum("hkv,hk->hv", state, query[:, i]) / key.shape[2] ** 0.5)
    return torch.stack(rows, 1)


def in_chunks(query, key, value, write, log_decay, linear, size, decays_dropped, reads_own_chunk):
    """recurrence() by the delta rule with NAtS-L's chunks of `size` tokens: at a chunk's end the state is what it was at
    the start, decayed or not, plus linear [H, chunks] times what the chunk's tokens made of that."""
    state = start = torch.zeros(*key.shape[::2], value.shape[2], dtype=value.dtype)
    since, rows = 0, []
    for i in range(key.shape[1]):
        decay = log_decay[:, i, :, None]
        since = since + decay
        state = decay.exp() * state
        news = write[:, i, None] * (value[:, i] - torch.einsum("hkv,hk->hv", state, key[:, i]))
        state = state + torch.einsum("hk,hv->hkv", key[:, i], news)
        seen = state if reads_own_chunk else since.exp() * start
        rows.append(torch.einsum("hkv,hk->hv", seen, query[:, i]) / key.shape[2] ** 0.5)
        if (i + 1) % size == 0:
            old = since.exp() * start if decays_dropped else start
            start = old + linear[:, i // size, None, None] * (state - old)
            state, since = start, 0
    return torch.stack(rows, 1)


def layer_norm(x):
    """x less its mean, over what is returned beside it."""
    spread = (x.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
    return (x - x.mean(-1, keepdim=True)) / spread, spread


def ttt_linear(query, key, value, gain, offset, rate, memory, bias, size):
    """Token by token, what flash-linear-attention's plain operator computes mini-batch by mini-batch: each token moves a map
    by the gradient of how far the norm of what the map makes of its key is from value - key, all tokens of a mini-batch from
    the map that it began with. query, key, value [H, L, D], gain, offset, bias [H, D], rate [H, L], memory [H, D, D]."""
    query = query / key.shape[2] ** 0.5
    rows, slopes = [], (0, 0)
    for i in range(key.shape[1]):
        with torch.enable_grad():  # autograd says the gradient, not the formula that the operator has of it
            start = memory.detach().requires_grad_(), bias.detach().requires_grad_()
            made = torch.einsum("hkv,hk->hv", start[0], key[:, i]) + start[1]
            apart = gain * layer_norm(made)[0] + offset - (value - key)[:, i]
            own = torch.autograd.grad(apart.pow(2).sum() / 2, start)
        slopes = [sum + slope for sum, slope in zip(slopes, own)]
        now = [begun - rate[:, i].view(-1, *[1] * (begun.dim() - 1)) * sum for begun, sum in zip((memory, bias), slopes)]
        rows.append(torch.einsum("hkv,hk->hv", now[0], query[:, i]) + now[1])
        if (i + 1) % size == 0:
            (memory, bias), slopes = now, (0, 0)
    output = torch.stack(rows, 1)
    return output + layer_norm(output)[0] * gain[:, None] + offset[:, None]


def titans(query, key, value, gain, offset, rate, forgotten, momentum, memory, size):
    """As ttt_linear(): the map forgets, and a surprise that has momentum moves it. What a token adds to the surprise is the
    operator's: D times the norm's slope less two means over its spread, where a gradient would divide the slope, too."""
    start, surprise, rows = memory, torch.zeros_like(memory), []
    for i in range(key.shape[1]):
        normal, spread = layer_norm(torch.einsum("hkv,hk->hv", start, key[:, i]))
        slope = gain * (gain * normal + offset - (value - key)[:, i])
        means = slope.mean(-1, keepdim=True) + normal * (slope * normal).mean(-1, keepdim=True)
        step = torch.einsum("hk,hv->hkv", key[:, i], key.shape[2] * slope - means / spread)
        surprise = momentum[:, i, None, None] * surprise - 2 * rate[:, i, None, None] * step
        memory = (1 - forgotten[:, i, None, None]) * memory + surprise
        rows.append(torch.einsum("hkv,hk->hv", memory, query[:, i]))
        if (i + 1) % size == 0:
            start = memory
    output = torch.stack(rows, 1)
    return output + layer_norm(output)[0] * gain[:, None] + offset[:, None]


def convolved(x, weight):
    """Of each channel, the last taps inputs: x [L, channels], weight [channels, 1, taps]."""
    taps = weight.shape[2]
    padded = torch.cat([torch.zeros(taps - 1, x.shape[1], dtype=x.dtype), x])
    return sum(weight[:, 0, tap] * padded[tap : tap + len(x)] for tap in range(taps))
