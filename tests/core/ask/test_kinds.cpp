// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <ATen/TensorOperators.h>

#include "core/ask/kinds.h"
#include "core/model/generate/generate.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using test::at_cell;

namespace {

using Matrix = std::vector<std::vector<double>>;

store::AskRecord kinds_of(const test::AskedModel& asked, const ask::KindsOptions& options,
                          const std::vector<std::vector<std::int32_t>>& texts = {}) {
    store::AskRecord record;
    record.tool = "kinds";
    record.mixers = asked.model->mixers();
    record.sites = asked.model->sites();
    record.sequences = asked.sequences();
    if (!texts.empty()) record.sequences.clear();
    for (const auto& ids : texts) {
        store::SequenceTokens text;
        text.ids = ids;
        text.pieces.assign(ids.size(), "x");
        record.sequences.push_back(std::move(text));
    }
    store::add_usual_dimensions(record);
    NoProgress progress;
    ask::run_kinds(*asked.model, options, record, progress, Cancellation());
    return record;
}

/// Weights of a head by a recorder of its own.
Matrix pattern_of(const test::AskedModel& asked, const std::vector<std::int64_t>& ids, const model::PointKey& key,
                  std::int64_t head) {
    model::PointRecorder recorder({key});
    model::Batch batch;
    batch.ids = at::tensor(ids, at::kLong).unsqueeze(0);
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(batch, options);
    const at::Tensor weights = recorder.values.at(key)[0][head].to(at::kDouble);
    Matrix rows;
    for (std::int64_t i = 0; i < weights.size(0); ++i) {
        rows.emplace_back();
        for (std::int64_t j = 0; j < weights.size(1); ++j) rows.back().push_back(weights[i][j].item<double>());
    }
    return rows;
}

/// True where a head of the kind attends.
bool attends(const std::string& kind, const std::vector<std::int64_t>& t, std::size_t i, std::size_t j) {
    if (j > i) return false;
    if (kind == "previous") return j + 1 == i;
    if (kind == "duplicate") return j < i && t[j] == t[i];
    if (kind == "induction") return j >= 1 && t[j - 1] == t[i];
    return j == i;
}

struct Scores {
    double share, absolute;
};

Scores expected(const std::string& kind, const std::vector<std::int64_t>& t, const Matrix& a, bool no_first,
                bool no_current) {
    double hit = 0, sum = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        for (std::size_t j = 0; j < a.size(); ++j) {
            if ((no_first && j == 0) || (no_current && i == j)) continue;
            const double there = attends(kind, t, i, j) ? 1 : 0;
            hit += a[i][j] * there;
            sum += a[i][j];
            apart += std::abs(a[i][j] - there);
        }
    return {hit / sum, 1 - apart / static_cast<double>(a.size())};
}

}  // namespace

TEST_CASE("Head scores are sums over the attention matrix", "[ask][kinds]") {
    for (const std::string name : {"gpt2", "llama", "hybrid-qwen3-next"}) {
        INFO(name);
        const test::AskedModel asked(name);
        const std::vector<std::vector<std::int32_t>> texts{{3, 5, 3, 7, 5, 3, 3}, {4}, {2, 9, 2, 9}};
        for (const auto& [no_first, no_current] : {std::pair(false, false), std::pair(true, true)}) {
            ask::KindsOptions options;
            options.exclude_first = no_first;
            options.exclude_current = no_current;
            const store::AskRecord record = kinds_of(asked, options, texts);
            CHECK(record.complete);
            const auto& sites = asked.model->sites();
            for (const model::PointKey& key : model::places_of(model::Point::pattern, asked.model->config(), sites)) {
                for (const std::int64_t s : {0, 2}) {
                    const auto& own = texts[static_cast<std::size_t>(s)];
                    const std::vector<std::int64_t> ids(own.begin(), own.end());
                    const Matrix a = pattern_of(asked, ids, key, 1);
                    for (const std::string kind : {"previous", "duplicate", "induction", "self"}) {
                        const Scores scores = expected(kind, ids, a, no_first, no_current);
                        CHECK(at_cell(record, "/kinds/" + kind, {s, key.site, 1}) == Approx(scores.share).margin(1e-6));
                        CHECK(at_cell(record, "/kinds/" + kind + "_absolute", {s, key.site, 1}) ==
                              Approx(scores.absolute).margin(1e-6));
                    }
                }
                if (!no_first) CHECK(at_cell(record, "/kinds/self", {1, key.site, 0}) == Approx(1));
            }
            for (std::int64_t site = 0; site < std::ssize(sites); ++site)
                if (!sites[static_cast<std::size_t>(site)].has_matrix)
                    CHECK(std::isnan(at_cell(record, "/kinds/self", {0, site, 0})));
        }
    }
}

TEST_CASE("Retrieval counts tokens of the needle that a head looks at when they are generated", "[ask][kinds]") {
    const test::AskedModel asked("llama");
    std::vector<std::int64_t> ids = asked.texts[0];
    ask::KindsOptions options;
    options.needle = model::PositionRange{0, -1};
    options.generate = 3;
    model::GenerateOptions greedy;
    greedy.tokens = 3;
    const std::vector<std::int64_t> answer = model::generate(*asked.model, ids, greedy);
    REQUIRE(answer.size() == 3);
    const store::AskRecord record = kinds_of(asked, options);
    const auto length = static_cast<double>(ids.size());
    const std::size_t prompt = ids.size();
    std::vector<double> counts(4, 0.0);  // of layer 1
    for (std::size_t t = 0; t < 3; ++t) {
        CHECK(at_cell(record, "/kinds/answer", {static_cast<std::int64_t>(t)}) == static_cast<double>(answer[t]));
        for (std::size_t head = 0; head < 4; ++head) {
            const Matrix a = pattern_of(asked, ids, {model::Point::pattern, 1, 1}, static_cast<std::int64_t>(head));
            const auto& row = a.back();
            const auto key = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
            if (key < prompt && ids[key] == answer[t]) counts[head] += 1 / length;
        }
        ids.push_back(answer[t]);
    }
    for (std::size_t head = 0; head < 4; ++head)
        CHECK(at_cell(record, "/kinds/retrieval", {1, static_cast<std::int64_t>(head)}) == Approx(counts[head]));
    options.needle = model::PositionRange{0, 4096};
    CHECK_THROWS_MATCHES(kinds_of(asked, options), Error, test::IsError(ErrorCode::usage, "--needle"));
    options.needle = model::PositionRange{0, 1};
    options.generate = 0;
    CHECK_THROWS_MATCHES(kinds_of(asked, options), Error, test::IsError(ErrorCode::usage, "--generate"));
}

TEST_CASE("A resumed run of ask kinds computes what is missing", "[ask][kinds]") {
    const test::AskedModel asked("llama");
    ask::KindsOptions options;
    options.needle = model::PositionRange{0, -1};
    options.generate = 3;
    const store::AskRecord whole = kinds_of(asked, options);
    // The editor stops the second text in its last layer.
    struct Stops final : model::Editor {
        struct Stop final : std::exception {};
        explicit Stops(std::int64_t layer) : last(layer) {}
        bool edits(const model::PointKey& key) const override {
            return key == model::PointKey{model::Point::feed_forward_output, last, -1};
        }
        at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override {
            if (++passes == 2) throw Stop();
            return value;
        }
        std::int64_t last;
        int passes = 0;
    } stops(asked.model->config().layers - 1);
    store::AskRecord begun = asked.record("kinds");
    NoProgress progress;
    options.editor = &stops;
    CHECK_THROWS_AS(ask::run_kinds(*asked.model, options, begun, progress, Cancellation()), Error);
    CHECK(!std::isnan(at_cell(begun, "/kinds/self", {0, 0, 0})));
    CHECK(std::isnan(at_cell(begun, "/kinds/self", {1, 0, 0})));
    // As a file has them.
    for (store::AskTable& table : begun.tables)
        if (table.whole)
            for (double& value : table.values) value = std::isnan(value) ? -1 : value;
    options.editor = nullptr;
    ask::run_kinds(*asked.model, options, begun, progress, Cancellation());
    CHECK(begun.complete);
    for (std::size_t t = 0; t < whole.tables.size(); ++t) {
        INFO(whole.tables[t].path);
        REQUIRE(begun.tables[t].values.size() == whole.tables[t].values.size());
        for (std::size_t i = 0; i < whole.tables[t].values.size(); ++i) {
            const double a = whole.tables[t].values[i], b = begun.tables[t].values[i];
            CHECK((a == b || (std::isnan(a) && std::isnan(b))));
        }
    }
}

TEST_CASE("Scores of edited patterns are those of the matrices in memory", "[ask][kinds]") {
    struct Same final : model::Editor {
        bool edits(const model::PointKey& key) const override { return key.point == model::Point::pattern; }
        at::Tensor edit(const model::EditPlace&, const at::Tensor& value) override { return value; }
    } same;
    ask::KindsOptions options;
    options.exclude_first = true;
    ask::KindsOptions edited = options;
    edited.editor = &same;
    const test::AskedModel gpt2("gpt2");
    const std::vector<std::vector<std::int32_t>> texts{{3, 5, 3, 7, 5, 3, 3}};
    const store::AskRecord plain = kinds_of(gpt2, options, texts), other = kinds_of(gpt2, edited, texts);
    for (std::size_t t = 0; t < plain.tables.size(); ++t)
        for (std::size_t i = 0; i < plain.tables[t].values.size(); ++i) {
            INFO(plain.tables[t].path);
            CHECK(plain.tables[t].values[i] == Approx(other.tables[t].values[i]).margin(1e-6));
        }
    // Every row alike: the weight of a key is 1 / (i + 1).
    model::Intervention flat;
    flat.point = model::Point::pattern;
    flat.action = model::Action::uniform;
    model::Interventions uniform({flat}, gpt2.model->config(), gpt2.model->sites());
    edited.editor = &uniform;
    edited.exclude_first = false;
    CHECK(at_cell(kinds_of(gpt2, edited, {{3, 5}}), "/kinds/self", {0, 0, 0}) == Approx(0.75));
    CHECK_THROWS_MATCHES(kinds_of(gpt2, edited, {{1, 2}, std::vector<std::int32_t>(4097, 1)}), Error,
                         test::IsError(ErrorCode::limit, "at most 4096 tokens with edits of scores or pattern"));
}

TEST_CASE("Drawn texts repeat their second half", "[ask][kinds]") {
    const auto texts = ask::repeated_texts(3, 5, 40, 1, 7);
    REQUIRE(texts.size() == 3);
    for (const auto& text : texts) {
        REQUIRE(text.size() == 11);
        CHECK(text[0] == 1);
        for (std::size_t i = 1; i <= 5; ++i) {
            CHECK(text[i] == text[i + 5]);
            CHECK((text[i] >= 0 && text[i] < 40));
        }
    }
    CHECK(texts[0] != texts[1]);
    CHECK(texts == ask::repeated_texts(3, 5, 40, 1, 7));
    CHECK(texts != ask::repeated_texts(3, 5, 40, 1, 8));
    CHECK(ask::repeated_texts(1, 2, 40, std::nullopt, 7)[0].size() == 4);
}
