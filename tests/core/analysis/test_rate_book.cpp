// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/rate_book.h"

#include <catch2/catch.hpp>

#include "core/checkpoint/checkpoint.h"
#include "core/model/model.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using analysis::RateBook;
using analysis::RateShape;

namespace {

/// About a billion parameters on two threads.
RateShape large(std::int64_t tokens = 512) {
    return {16, 2048, 8192, 32, 128'256, tokens, true, false, 2};
}
RateShape small() {
    return {4, 256, 768, 8, 2048, 512, true, false, 2};
}

double rate_of(const RateBook& book, const RateShape& shape) {
    const auto found = book.find(shape);
    return found ? found->multiplications_per_second : 0;
}

}  // namespace

TEST_CASE("An estimate takes the rate of the nearest model that ran", "[analysis][estimate]") {
    RateBook book;
    CHECK_FALSE(book.find(large()));
    book.add(small(), 1e9, 0.5);  // 2e9
    CHECK(rate_of(book, small()) == Approx(2e9));
    // The sample's rate says nothing of a model eight times as wide.
    CHECK_FALSE(book.find(large()));
    book.add(large(), 4e12, 100);  // 4e10
    CHECK(rate_of(book, large()) == Approx(4e10));
    CHECK(rate_of(book, large(4096)) == Approx(4e10));
    CHECK(rate_of(book, small()) == Approx(2e9));
    // Longer texts have a rate of their own once they ran; what lies between takes the nearer one.
    book.add(large(8192), 2e13, 1000);  // 2e10
    CHECK(rate_of(book, large(1024)) == Approx(4e10));
    CHECK(rate_of(book, large(4096)) == Approx(2e10));
    // The latest run counts, and one that was too short says nothing.
    book.add(large(), 4e12, 80);
    CHECK(rate_of(book, large()) == Approx(5e10));
    book.add(large(), 4e12, 0.01);
    CHECK(rate_of(book, large()) == Approx(5e10));
    // Other types and threads are other machines.
    for (auto change :
         {+[](RateShape& shape) { shape.bfloat16 = true; }, +[](RateShape& shape) { shape.threads = 4; }}) {
        RateShape other = large();
        change(other);
        CHECK_FALSE(book.find(other));
    }
}

TEST_CASE("Rates are kept for a processor, the last ones of them", "[analysis][estimate]") {
    const test::TemporaryFolder folder;
    const auto file = folder / "rates.json";
    CHECK_FALSE(RateBook::read(file, "Zen").find(large()));
    RateBook book;
    book.add(large(), 4e12, 100);
    book.add(small(), 1e9, 0.5);
    book.write(file, "Zen");
    const RateBook again = RateBook::read(file, "Zen");
    CHECK(rate_of(again, large()) == Approx(4e10));
    CHECK(rate_of(again, small()) == Approx(2e9));
    CHECK_FALSE(RateBook::read(file, "Xeon").find(large()));
    for (const char* text :
         {"", "[]", "{\"version\": 1, \"processor\": \"Zen\", \"rates\": [{\"rate\": 1}]}", "no JSON"}) {
        INFO(text);
        test::write_file(file, text);
        CHECK_FALSE(RateBook::read(file, "Zen").find(small()));
    }
    // Far more shapes than are kept: the oldest goes.
    RateBook full;
    full.add(small(), 1e9, 0.5);
    for (std::size_t i = 0; i < RateBook::kMost; ++i)
        full.add({4, std::int64_t{1} << 30U, 768, static_cast<std::int64_t>(i), 2048, 512, true, false, 2}, 1e9, 1);
    CHECK_FALSE(full.find(small()));
}

TEST_CASE("The shape of an analysis is its model's, with its longest text", "[analysis][estimate]") {
    const auto checkpoint = checkpoint::Checkpoint::open(std::filesystem::path(HEADSCOPE_SOURCE_DIR) /
                                                         "resources/samples/llama-kjv-shakespeare");
    analysis::AnalysisRequest request;
    for (const std::size_t size : {3, 7, 5}) {
        request.sequences.emplace_back();
        request.sequences.back().ids.resize(size, 3);
    }
    RateShape shape = analysis::rate_shape(model::inspect(*checkpoint), request, true, 3);
    CHECK(shape.hidden == 256);
    CHECK(shape.layers == 4);
    CHECK(shape.tokens == 7);
    CHECK(shape.threads == 3);
    CHECK(shape.bfloat16);
    CHECK_FALSE(shape.recorded);
    request.record.maps = true;
    CHECK(analysis::rate_shape(model::inspect(*checkpoint), request, true, 3).recorded);
}
