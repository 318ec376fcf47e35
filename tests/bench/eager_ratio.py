# SPDX-License-Identifier: GPL-3.0-or-later
"""An analysis, statistics and its file included, beside transformers' eager forward pass: time and memory.

    python eager_ratio.py HEADSCOPE [--family mixtral|deepseek] [--length 2048] [--pairs 5] [--threads N] [--check]

A random model of 12 layers, 768 wide, 12 heads: a mixture of 8 experts of which a token has 2, or latent attention with 16
experts, 4 a token. In one run, pairs of neighbours in time; the median of their ratios. Memory is the peak of a process
that does nothing else, model included. --check makes exit status 1 of a ratio above 1.

Wants: torch, transformers (tests/oracle/requirements.txt), an idle machine.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from model_ratio import bench, seconds_of
from transformers import AutoModelForCausalLM, DeepseekV3Config, DeepseekV3ForCausalLM, MixtralConfig, MixtralForCausalLM
from transformers.utils import logging as transformers_logging

SIZES = dict(vocab_size=8192, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, max_position_embeddings=16384,
             tie_word_embeddings=True, bos_token_id=0, eos_token_id=0)


def make_model(folder, family):
    torch.manual_seed(1)
    if family == "mixtral":
        model = MixtralForCausalLM(MixtralConfig(**SIZES, intermediate_size=1024, num_key_value_heads=4,
                                                 num_local_experts=8, num_experts_per_tok=2, sliding_window=None))
    else:
        model = DeepseekV3ForCausalLM(DeepseekV3Config(
            **SIZES, num_key_value_heads=12, intermediate_size=2048, moe_intermediate_size=512, n_routed_experts=16,
            num_experts_per_tok=4, n_group=4, topk_group=2, n_shared_experts=1, first_k_dense_replace=1, q_lora_rank=384,
            kv_lora_rank=256, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64))
    model.save_pretrained(folder)


def open_eager(folder):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


def forward(model, tokens):
    with torch.inference_mode():
        model(tokens, labels=tokens, use_cache=False)


def eager_peak(folder, length, threads):
    """Peak memory in bytes of a process of its own that runs one eager pass."""
    command = ["/bin/sh", "-c", '"$0" "$@"; exit $?', sys.executable, __file__, "--alone", str(folder), "--length",
               str(length), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return int(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headscope", nargs="?")
    parser.add_argument("--family", choices=("mixtral", "deepseek"), default="mixtral")
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    tokens = torch.randint(0, SIZES["vocab_size"], (1, arguments.length), generator=torch.Generator().manual_seed(2))
    if arguments.alone:
        forward(open_eager(arguments.alone), tokens)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / f"random-{arguments.family}"
        make_model(folder, arguments.family)
        model = open_eager(folder)
        forward(model, tokens)
        ratios, ours, theirs = [], [], []
        for _ in range(arguments.pairs):
            before = seconds_of(lambda: forward(model, tokens))
            analysis = bench(arguments.headscope, folder, arguments.length, 1, "analysis", arguments.threads)
            after = seconds_of(lambda: forward(model, tokens))
            ours.append(analysis["analysis_median"])
            theirs += [before, after]
            ratios.append(ours[-1] / ((before + after) / 2))
        del model
        memory = analysis["peak_memory"] / eager_peak(folder, arguments.length, arguments.threads)
    ratio = statistics.median(ratios)
    print(f"{arguments.family}, L = {arguments.length}: analysis {statistics.median(ours):.3f} s, transformers' eager forward "
          f"{statistics.median(theirs):.3f} s, ratio {ratio:.3f}; peak memory {analysis['peak_memory'] / 1e6:.0f} MB, "
          f"ratio {memory:.3f}")
    return 1 if arguments.check and max(ratio, memory) > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
