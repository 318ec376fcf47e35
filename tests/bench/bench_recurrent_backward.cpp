// SPDX-License-Identifier: GPL-3.0-or-later
// Training through the gated delta rule: bench_recurrent_backward [length] [heads] [key size] [value size] [threads]
// [rounds].
//
// The fused kernels (trained_recurrence) beside LibTorch's autograd through the same sums in chunks of 64 tokens, in
// two forms: chunk after chunk (recur_in_pieces), and with all that needs no state done for all chunks at once, as
// PyTorch's models have it. In turns, one round each; medians of milliseconds and of the rounds' ratios, forward
// (recording), backward and both, and how far the gradients are apart, relative to the largest.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "core/mixers/shared/recurrence.h"
#include "core/mixers/shared/tensor_views.h"
#include "core/mixers/shared/trained_recurrence.h"
#include "kernels/parallel.h"

using namespace headscope;
using headscope::mixers::Recurrence;

namespace {

double now() {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(since).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// [1, H, L, dv]; the length a multiple of the piece.
at::Tensor chunks_at_once(const Recurrence& what) {
    constexpr std::int64_t piece = kernels::kRecurrentPiece;
    const auto chunked = [](const at::Tensor& x) { return x.unflatten(2, {-1, piece}); };
    const at::Tensor q = chunked(what.query) * what.rule.scale, k = chunked(what.key), v = chunked(what.value);
    const at::Tensor w = chunked(what.write.unsqueeze(3)), sums = chunked(what.log_decay.unsqueeze(3)).cumsum(3);
    const at::Tensor below = at::ones({piece, piece}, q.options().dtype(at::kBool)).tril();
    const at::Tensor decay = (sums - sums.transpose(3, 4)).masked_fill(below.logical_not(), -1e4).exp();
    const at::Tensor system = (k.matmul(k.transpose(3, 4)) * decay * w).tril(-1) + at::eye(piece, q.options());
    const at::Tensor grown = sums.exp();
    const at::Tensor solved =
        at::linalg_solve_triangular(system, at::cat({v * w, k * grown * w}, 4), false, true, true);
    const at::Tensor own = solved.narrow(4, 0, v.size(4)), of_state = solved.narrow(4, v.size(4), k.size(4));
    const at::Tensor reads = q.matmul(k.transpose(3, 4)) * decay, query = q * grown;
    const at::Tensor all = sums.narrow(3, piece - 1, 1), left = (k * (all - sums).exp()).transpose(3, 4);
    const at::Tensor kept = all.exp();
    at::Tensor state = at::zeros({q.size(0), q.size(1), q.size(4), v.size(4)}, q.options());
    std::vector<at::Tensor> outputs;
    for (std::int64_t n = 0; n < q.size(2); ++n) {
        const auto part = [n](const at::Tensor& x) { return x.select(2, n); };
        const at::Tensor written = part(own) - part(of_state).matmul(state);
        outputs.push_back(part(query).matmul(state) + part(reads).matmul(written));
        state = state * part(kept) + part(left).matmul(written);
    }
    return at::stack(outputs, 2).flatten(2, 3);
}

struct Way {
    const char* name;
    std::function<at::Tensor(const Recurrence&)> forward;  ///< -> [1, H, L, dv]
    std::vector<double> read, back, both;
    std::vector<at::Tensor> gradients;
};

void run(Way& way, const Recurrence& what, const at::Tensor& outer) {
    const std::vector<at::Tensor> inputs{what.query, what.key, what.value, what.write, what.log_decay};
    for (const at::Tensor& x : inputs) x.mutable_grad() = at::Tensor();
    const double begin = now();
    const at::Tensor output = way.forward(what);
    const double middle = now();
    output.backward(outer);
    const double end = now();
    way.read.push_back(middle - begin);
    way.back.push_back(end - middle);
    way.both.push_back(end - begin);
    way.gradients.clear();
    for (const at::Tensor& x : inputs) way.gradients.push_back(x.grad());
}

}  // namespace

int main(int count, char** arguments) {
    const auto argument = [&](int n, std::int64_t usual) { return count > n ? std::atoll(arguments[n]) : usual; };
    const std::int64_t length = argument(1, 4096), heads = argument(2, 6), keys = argument(3, 128);
    const std::int64_t values = argument(4, 256), threads = argument(5, 2), rounds = argument(6, 7);
    if (length % kernels::kRecurrentPiece != 0) {
        std::fprintf(stderr, "the length: a multiple of %lld\n", static_cast<long long>(kernels::kRecurrentPiece));
        return 2;
    }
    at::set_num_threads(static_cast<int>(threads));
    kernels::set_threads(static_cast<int>(threads));
    const auto unit = [](const at::Tensor& x) { return x / x.square().sum(-1, true).add(1e-6).sqrt(); };
    // [B, L, heads, size] in memory, as a model's projections are.
    const auto draw = [&](std::int64_t size) { return at::randn({1, length, heads, size}).transpose(1, 2); };
    Recurrence what;
    what.query = unit(draw(keys));
    what.key = unit(draw(keys));
    what.value = draw(values);
    what.write = at::sigmoid(at::randn({1, heads, length}));
    what.log_decay = -0.2 * at::rand({1, heads, length});
    what.rule.scale = 0.1;
    what.rule.decay = kernels::Decay::head;
    for (const at::Tensor* x : {&what.query, &what.key, &what.value, &what.write, &what.log_decay})
        x->set_requires_grad(true);
    const at::Tensor outer = draw(values);
    std::vector<Way> ways{
        {"fused",
         [heads](const Recurrence& r) { return mixers::as_heads(mixers::trained_recurrence(r, nullptr), heads); },
         {},
         {},
         {},
         {}},
        {"chunk after chunk", [](const Recurrence& r) { return mixers::recur_in_pieces(r, nullptr); }, {}, {}, {}, {}},
        {"chunks at once", chunks_at_once, {}, {}, {}, {}}};
    for (std::int64_t round = -1; round < rounds; ++round) {
        for (Way& way : ways) {
            run(way, what, outer);
            if (round < 0) way.read = way.back = way.both = {};  // warming up
        }
    }
    std::printf("%lld tokens, %lld heads of %lld x %lld, %lld threads, medians of %lld rounds, ms\n%-18s %9s %9s %9s\n",
                static_cast<long long>(length), static_cast<long long>(heads), static_cast<long long>(keys),
                static_cast<long long>(values), static_cast<long long>(threads), static_cast<long long>(rounds), "",
                "forward", "backward", "both");
    for (const Way& way : ways)
        std::printf("%-18s %9.1f %9.1f %9.1f\n", way.name, median(way.read), median(way.back), median(way.both));
    const Way& ours = ways.front();
    for (std::size_t n = 1; n < ways.size(); ++n) {
        const auto ratio = [&](std::vector<double> Way::*of) {
            std::vector<double> ratios;
            for (std::size_t r = 0; r < (ours.*of).size(); ++r) ratios.push_back((ways[n].*of)[r] / (ours.*of)[r]);
            return median(ratios);
        };
        double apart = 0.0;
        for (std::size_t g = 0; g < ours.gradients.size(); ++g) {
            const at::Tensor& wanted = ways[n].gradients[g];
            const at::Tensor error = (ours.gradients[g] - wanted).abs().max() / wanted.abs().max();
            apart = std::max(apart, error.item<double>());
        }
        std::printf("%-18s %8.2fx %8.2fx %8.2fx  gradients %.1e apart\n", ways[n].name, ratio(&Way::read),
                    ratio(&Way::back), ratio(&Way::both), apart);
    }
    return 0;
}
