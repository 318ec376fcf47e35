// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of attention: odd sizes, every option and normalizer, blocks, bfloat16, SIMD targets, thread counts.
#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/parallel.h"
#include "tests/kernels/attention_case.h"
#include "tests/kernels/backward_case.h"

using namespace headscope::kernels;
using namespace headscope::kernels::testing::backward;
using headscope::kernels::testing::AttentionCase;
using headscope::kernels::testing::Shape;

TEST_CASE("gradients of attention agree with the formulas for odd lengths, heads and sizes", "[backward]") {
    const Option plain = options().front();
    for (const std::int64_t length : {1, 2, 47, 48, 49, 129, 200}) {
        check(make({1, 2, 2, length, length, 64, 64}, plain));
        check(make({2, 4, 2, length, length, 20, 12}, plain));
    }
    check(make({1, 3, 1, 100, 100, 1, 1}, plain));
    check(make({1, 2, 1, 65, 65, 80, 40}, plain));
    check(make({1, 2, 2, 30, 130, 16, 16}, options()[1]));
    check(make({1, 2, 2, 130, 30, 16, 16}, options()[1]));
}

TEST_CASE("gradients of attention agree with the formulas under every option", "[backward]") {
    for (const Option& option : options()) {
        check(make({2, 4, 2, 65, 65, 20, 20}, option));
        check(make({2, 3, 3, 150, 150, 16, 12}, option));
    }
}

TEST_CASE("gradients of blocks agree with the formula, hidden ones too, also where keys are shared out", "[backward]") {
    const std::vector<Option> all = options();
    for (const std::string& backend : available_backends()) {
        const Forced forced(backend);
        INFO(backend);
        for (const Option& option : all) {
            if (option.first.rfind("visible blocks", 0) != 0) continue;
            for (const std::int64_t size : {20, 64}) {
                AttentionCase c = make({2, 4, 2, 150, 150, 16, 12}, option);
                c.rule.blocks = {};
                see_blocks(c, size);
                c.rule.blocks.own = option.first.find("hidden") == std::string::npos;
                INFO(option.first << ", blocks of " << size);
                check(c);
                const Found both = run(c, true);
                check_blocks(c, both, true);
                CHECK(same(both.key.data, run(c).key.data));
            }
        }
    }
    AttentionCase c = make({1, 2, 1, 900, 1700, 8, 8}, all.front());
    c.rule.query_offset = 800;
    see_blocks(c, 70);
    check(c);
    set_threads(1);
    const Found one = run(c, true);
    check_blocks(c, one, true);
    set_threads(3);
    CHECK(same(run(c, true).blocks, one.blocks));
    set_threads(0);
}

TEST_CASE("gradients of bfloat16 inputs are those of their values", "[backward]") {
    for (const std::size_t option : {0U, 3U})
        check(make({2, 4, 2, 129, 129, 20, 20}, options()[option], ElementType::bfloat16));
}

TEST_CASE("bfloat16 gradients are the float32 ones rounded", "[backward]") {
    const AttentionCase c = make({1, 4, 2, 70, 70, 24, 18}, options().front());
    const Shape& s = c.shape();
    const Found wide = run(c);
    Found again(s);
    const auto as_half = [](Values& values) {
        MutableView view = values.view();
        view.type = ElementType::bfloat16;
        return view;
    };
    const SoftmaxRows rows{again.shift.data(), again.factor.data()};
    attention_forward(c.input(), as_half(again.output), rows);
    const auto expect_rounded = [&](const Values& half, const Values& single) {
        const auto* found = reinterpret_cast<const std::uint16_t*>(half.data.data());
        for (std::int64_t h = 0; h < half.heads; ++h)
            for (std::int64_t i = 0; i < half.length; ++i)
                for (std::int64_t x = 0; x < half.size; ++x) {
                    const std::uint32_t bits = std::bit_cast<std::uint32_t>(single.data[single.at(0, h, i, x)]);
                    REQUIRE(found[half.at(0, h, i, x)] == (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
                }
    };
    expect_rounded(again.output, wide.output);
    attention_backward(c.input(), wide.output.input(1), output_gradient(s).input(1), rows,
                       {as_half(again.query), as_half(again.key), as_half(again.value)});
    expect_rounded(again.query, wide.query);
    expect_rounded(again.key, wide.key);
    expect_rounded(again.value, wide.value);
}

TEST_CASE("every SIMD target and the reference give the gradients", "[backward][targets]") {
    for (const std::string& name : available_backends()) {
        const Forced forced(name);
        INFO("backend " << name);
        for (const Option& option : options()) check(make({2, 2, 1, 65, 65, 20, 20}, option));
        REQUIRE(last_backend() == name);
    }
}

TEST_CASE("sparsemax gradients agree where keys are shared out, for odd lengths and in bfloat16", "[backward]") {
    const std::vector<Option> all = options();
    const auto sparsemax =
        std::find_if(all.begin(), all.end(), [](const Option& option) { return option.first == "sparsemax"; });
    REQUIRE(sparsemax != all.end());
    for (const std::int64_t length : {1, 2, 63, 64, 65, 200})
        check(make({2, 6, 3, length, length, 20, 12}, *sparsemax));
    check(make({1, 2, 1, 65, 1700, 8, 8}, *(sparsemax + 1)));
    check(make({2, 4, 2, 129, 129, 20, 20}, *sparsemax, ElementType::bfloat16));
}

TEST_CASE("elastic and entmax gradients agree for odd lengths, keys that are shared out, and in bfloat16",
          "[backward]") {
    const std::vector<Option> all = options();
    for (const char* start : {"elastic, offsets", "elastic, a bias", "entmax"}) {
        const auto option =
            std::find_if(all.begin(), all.end(), [&](const Option& one) { return one.first.rfind(start, 0) == 0; });
        REQUIRE(option != all.end());
        for (const std::int64_t length : {1, 2, 63, 64, 65, 300})
            check(make({2, 6, 3, length, length, 20, 12}, *option));
        check(make({1, 2, 1, 65, 1700, 8, 8}, *option));
        check(make({2, 4, 2, 129, 129, 20, 20}, *option, ElementType::bfloat16));
    }
}

TEST_CASE("sigmoid gradients agree where keys are shared out, for odd lengths and in bfloat16", "[backward]") {
    const std::vector<Option> all = options();
    const auto sigmoid =
        std::find_if(all.begin(), all.end(), [](const Option& option) { return option.first == "sigmoid"; });
    REQUIRE(sigmoid != all.end());
    for (const std::int64_t length : {1, 2, 63, 64, 65, 200}) check(make({2, 6, 3, length, length, 20, 12}, *sigmoid));
    check(make({1, 2, 1, 65, 1700, 8, 8}, *sigmoid));
    check(make({2, 4, 2, 129, 129, 20, 20}, *sigmoid, ElementType::bfloat16));
}

TEST_CASE("gradients have the same bits for every thread count, also where keys are shared out", "[backward]") {
    for (const auto& [shape, elastic] :
         {std::pair{Shape{2, 4, 2, 150, 150, 16, 16}, false}, std::pair{Shape{1, 2, 1, 900, 1700, 8, 8}, false},
          std::pair{Shape{2, 4, 2, 150, 150, 16, 16}, true}, std::pair{Shape{1, 2, 1, 900, 1700, 8, 8}, true}}) {
        AttentionCase c = make(shape, options()[1]);
        c.rule.bias_length = 9;
        c.rule.bias_origin = 4;
        c.rule.distance_bias.assign(static_cast<std::size_t>(shape.heads * 9), 0.25F);
        c.rule.sink_logits.assign(static_cast<std::size_t>(shape.heads), 0.5F);
        if (elastic) {
            c.rule.sink_logits.clear();
            c.rule.normaliser = Normaliser::elastic;
            c.rule.offsets.assign(static_cast<std::size_t>(shape.heads), -0.875F);
        }
        set_threads(1);
        const Found one = run(c);
        for (const int number : {2, 5}) {
            set_threads(number);
            const Found more = run(c);
            CHECK(same(more.offsets, one.offsets));
            CHECK(same(more.output.data, one.output.data));
            CHECK(same(more.query.data, one.query.data));
            CHECK(same(more.key.data, one.key.data));
            CHECK(same(more.value.data, one.value.data));
            CHECK(same(more.distance_bias, one.distance_bias));
            CHECK(same(more.sinks, one.sinks));
        }
        set_threads(0);
        if (shape.keys > 1000) check(c);
    }
}

TEST_CASE("the training passes refuse what they do not know", "[backward]") {
    AttentionCase c = make({1, 1, 1, 4, 4, 8, 8}, options().front());
    Found found(c.shape());
    const SoftmaxRows rows{found.shift.data(), found.factor.data()};
    CHECK_THROWS_AS(attention_forward(c.input(), found.output.view(), SoftmaxRows{}), Error);
    CHECK_THROWS_AS(attention_forward(c.input(), MutableView{}, rows), Error);
    const Values wrong(1, 1, 5, 8);
    CHECK_THROWS_AS(attention_backward(c.input(), wrong.input(1), wrong.input(1), rows, {}), Error);
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, found.sinks.data()}),
                      Catch::Contains("[sinks] expected a rule with learned sinks"));
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, nullptr, nullptr, nullptr, false, found.offsets.data()}),
                      Catch::Contains("[offsets] expected a rule with offsets"));
    std::vector<float> blocks(1);
    CHECK_THROWS_WITH(attention_backward(c.input(), found.output.input(1), found.output.input(1), rows,
                                         {{}, {}, {}, nullptr, nullptr, blocks.data()}),
                      Catch::Contains("[blocks] expected a rule with visible blocks"));
    c.rule.normaliser = Normaliser::taylor_diagonal;
    CHECK_THROWS_WITH(
        attention_forward(c.input(), found.output.view(), rows),
        Catch::Contains("[normaliser] expected softmax, sparsemax, taylor, elastic, entmax or sigmoid: ") &&
            Catch::Contains("found taylor_diagonal"));
}
