// SPDX-License-Identifier: GPL-3.0-or-later
// Questions on contexts as training data: windows, their order, and where answers are.
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/progress.h"
#include "core/data/batch/span_windows.h"
#include "core/data/data_set.h"
#include "core/data/special_tokens.h"
#include "core/data/tokenizer_choice.h"
#include "core/tokenizer/tokenizer.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::data;
using nlohmann::json;
using test::IsError;

namespace {

/// Bytes with <s> A </s></s> B </s>: 4 inserted tokens.
ItemForm form_of_bytes(std::int64_t length, std::int64_t stride) {
    const ChosenTokenizer bytes = with_special_tokens(byte_tokenizer(), "test");
    ObjectiveSettings objective;
    objective.kind = "spans";
    objective.stride = stride;
    return {objective, TokenCode(bytes.tokenizer), special_ids(*bytes.tokenizer, bytes.files),
            frame_of(*bytes.tokenizer), length};
}

std::string question(const std::string& asked, const std::string& context, const std::string& answer) {
    json one{{"id", asked}, {"question", "  " + asked}, {"context", context}};
    one["answers"] = {{"text", json::array()}, {"answer_start", json::array()}};
    if (!answer.empty()) {
        one["answers"]["text"].push_back(answer);
        one["answers"]["answer_start"].push_back(context.find(answer));  // of ASCII
    }
    return one.dump() + "\n";
}

DataSettings settings_of(const test::TemporaryFolder& folder, std::int64_t length, std::int64_t stride) {
    DataSettings settings;
    settings.text = {(folder / "train.jsonl").string()};
    settings.validation = 0;
    settings.sequence_length = length;
    settings.objective.kind = "spans";
    settings.objective.stride = stride;
    return settings;
}

std::shared_ptr<const DataSet> prepare(const test::TemporaryFolder& folder, const DataSettings& settings) {
    NoProgress progress;
    return DataSet::prepare(settings, {folder.path(), folder / "run"}, progress, Cancellation());
}

}  // namespace

TEST_CASE("Windows of a context share the stride and end with it", "[data][questions]") {
    // 4 inserted tokens and 10 of the question leave 32 places.
    const ItemForm form = form_of_bytes(46, 8);
    const SpanCut cut = cut_context(form, 10, 100);
    CHECK(cut.question == 10);
    REQUIRE(cut.windows() == 4);
    for (std::int64_t w = 0; w < 4; ++w) CHECK(cut.window(w).begin == 24 * w);
    CHECK(cut.window(2).end() == 80);
    CHECK(cut.window(3).end() == 100);
    CHECK(cut_context(form, 10, 32).windows() == 1);
    CHECK(cut_context(form, 10, 33).windows() == 2);
    CHECK(cut_context(form, 10, 56).windows() == 2);
    CHECK(cut_context(form, 10, 57).windows() == 3);
    CHECK(cut_context(form, 10, 0).windows() == 1);
    // A question that leaves no more than the stride is cut, unless all of the context fits.
    CHECK(cut_context(form, 33, 100).question == 33);
    CHECK(cut_context(form, 34, 100).question == 33);
    CHECK(cut_context(form, 60, 100).windows() == 92);
    CHECK(cut_context(form, 38, 4).question == 38);
    CHECK(cut_context(form, 38, 4).windows() == 1);
    CHECK_THROWS_MATCHES(check(form_of_bytes(12, 8)), Error, IsError(ErrorCode::usage, "above 12"));
    CHECK_NOTHROW(check(form_of_bytes(13, 8)));
}

TEST_CASE("An answer's tokens are the last that begins and the first that ends around it", "[data][questions]") {
    const std::vector<ByteRange> tokens{{0, 3}, {3, 7}, {7, 8}, {9, 12}};
    CHECK(answer_tokens(tokens, {3, 8}) == TokenSpan{1, 2});
    CHECK(answer_tokens(tokens, {4, 6}) == TokenSpan{1, 1});
    CHECK(answer_tokens(tokens, {8, 10}) == TokenSpan{2, 3});
    CHECK(answer_tokens(tokens, {9, 13}) == TokenSpan{-1, -1});
    CHECK(answer_tokens({}, {0, 1}) == TokenSpan{-1, -1});
}

TEST_CASE("An epoch has each window of each question once, with its answer's places", "[data][questions]") {
    const test::TemporaryFolder folder;
    std::string lines;
    std::map<std::string, std::string> answers;
    for (int i = 0; i < 12; ++i) {
        std::string context;
        for (int w = 0; w < 4 + i; ++w) context += "w" + std::to_string(i * 20 + w) + " ";
        const std::string answer = i % 4 == 3 ? "" : "w" + std::to_string(i * 20 + i % 4);
        const std::string asked = "q" + std::to_string(i) + "?";
        answers[asked] = answer;
        lines += question(asked, context, answer);
    }
    test::write_file(folder / "train.jsonl", lines);
    const auto data = prepare(folder, settings_of(folder, 24, 8));
    const auto source = data->source(Split::training, 7);
    REQUIRE(source->epoch() > 12);
    const DataBatch batch = source->read(0, source->epoch());
    REQUIRE(batch.targets.size() == static_cast<std::size_t>(2 * batch.sequences));
    CHECK(batch.counted == batch.sequences);
    CHECK(batch.cut == 0);
    std::set<std::vector<std::int64_t>> windows;
    std::map<std::string, int> found;
    for (std::int64_t i = 0; i < batch.sequences; ++i) {
        const auto length = batch.lengths.empty() ? batch.length : batch.lengths[static_cast<std::size_t>(i)];
        CHECK(length <= 24);
        const auto row = batch.ids.begin() + i * batch.length;
        windows.insert(std::vector<std::int64_t>(row, row + length));
        const std::vector<std::int32_t> ids(row, row + length);
        const auto text = [&](std::int64_t first, std::int64_t last) {
            return data->tokenizer().decode(
                std::span(ids).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)),
                true);
        };
        const std::string all = text(0, length - 1), asked = all.substr(0, all.find('?') + 1);
        REQUIRE(answers.contains(asked));
        const std::int64_t first = batch.targets[static_cast<std::size_t>(2 * i)];
        const std::int64_t last = batch.targets[static_cast<std::size_t>(2 * i + 1)];
        if (first == 0) {
            CHECK(last == 0);
            continue;
        }
        ++found[asked];
        CHECK(text(first, last) == answers[asked]);
    }
    CHECK(std::ssize(windows) == source->epoch());
    for (const auto& [asked, answer] : answers) CHECK((found[asked] > 0) == !answer.empty());
    // Another epoch, the same windows; another stride, other data.
    CHECK(source->read(source->epoch(), 3).ids != source->read(0, 3).ids);
    CHECK(prepare(folder, settings_of(folder, 24, 4))->hash() != data->hash());
    CHECK_THROWS_MATCHES(prepare(folder, settings_of(folder, 12, 8)), Error, IsError(ErrorCode::usage, "the stride"));
}
