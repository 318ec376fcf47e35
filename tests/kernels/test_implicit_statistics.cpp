// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of implicit matrices whose weights are small against those of the matrix itself.
#include <cmath>

#include <catch2/catch.hpp>

#include "kernels/backend.h"
#include "tests/kernels/recurrent_case.h"

using namespace headscope::kernels;
using headscope::kernels::testing::RecurrentCase;

namespace {

struct OfMatrix {
    double entropy = 0, squares = 0;
};

/// Statistics of a matrix of `length` rows.
OfMatrix of_matrix(const float* rows, std::size_t length) {
    OfMatrix found;
    for (std::size_t i = 0; i < length; ++i, rows += length) {
        double sum = 0;
        for (std::size_t j = 0; j < length; ++j) sum += std::abs(double{rows[j]});
        if (sum < 0x1p-126) continue;
        for (std::size_t j = 0; j < length; ++j) {
            const double share = std::abs(double{rows[j]}) / sum;
            if (share > 0) found.entropy -= share * std::log(share);
            found.squares += share * share;
        }
    }
    return found;
}

void check(const RecurrentRule& rule, float log_decay) {
    constexpr std::size_t length = 70, heads = 3;
    RecurrentCase c({1, heads, 1, length, 20, 5}, rule);
    c.decay_all(log_decay);
    INFO((rule.delta ? "delta" : "added") << ", decay " << static_cast<int>(rule.decay) << " of " << log_decay
                                          << ", own chunk " << rule.reads_own_chunk << ", chunk " << rule.chunk_size);
    for (const std::string& name : available_backends()) {
        force_backend(name);
        std::vector<float> dense(heads * length * length);
        ImplicitStatistics found;
        implicit_statistics(c.input(), found, dense.data());
        force_backend("auto");
        for (std::size_t head = 0; head < heads; ++head) {
            const OfMatrix expected = of_matrix(dense.data() + head * length * length, length);
            INFO(name << ", head " << head);
            CHECK(found.concentration[head] == Approx(std::sqrt(expected.squares)).epsilon(1e-5));
            CHECK(found.entropy[head] == Approx(expected.entropy).epsilon(1e-4).margin(1e-3));
        }
    }
}

}  // namespace

TEST_CASE("streamed statistics are those of the stored matrix, however small its weights", "[recurrent][implicit]") {
    RecurrentRule rule;
    rule.scale = 0.7;
    for (const bool delta : {true, false}) {
        rule.delta = delta;
        rule.decay = Decay::none;
        rule.chunk_size = 0;
        check(rule, 0);
        for (const Decay decay : {Decay::head, Decay::channel}) {
            rule.decay = decay;
            // 16 tokens decay from e^-0.5 to e^-60; all weights of a row outside its own chunk have that factor.
            for (const float of_chunk : {-0.5F, -20.0F, -40.0F, -60.0F}) {
                for (const std::int64_t chunk : {0, 16}) {
                    rule.chunk_size = chunk;
                    for (const bool own : {true, false}) {
                        if (chunk == 0 && !own) continue;
                        rule.reads_own_chunk = own;
                        check(rule, of_chunk / 16);
                    }
                    rule.reads_own_chunk = true;
                }
            }
        }
    }
}

TEST_CASE("large weights have finite statistics", "[recurrent][implicit]") {
    RecurrentRule rule;
    rule.delta = false;
    rule.decay = Decay::none;
    for (const double scale : {0x1p80, 0x1p120}) {
        rule.scale = scale;
        check(rule, 0);
    }
}
