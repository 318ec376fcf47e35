// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <set>

#include <ATen/TensorOperators.h>

#include "core/ask/corpus/corpus.h"
#include "core/ask/corpus/head_measures.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/error_matcher.h"

using namespace headscope;
using model::Point;
using test::at_cell;
using test::near;

namespace {

using CorpusIds = std::vector<std::vector<std::int64_t>>;

/// Texts of 1 to 9 ids of the model's vocabulary, with repeats.
CorpusIds corpus_ids(const test::AskedModel& asked, std::size_t count) {
    CorpusIds all;
    std::uint64_t state = 7;
    for (std::size_t text = 0; text < count; ++text) {
        std::vector<std::int64_t> ids;
        for (std::size_t i = 0; i < text % 9 + 1; ++i) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const auto draw = static_cast<std::int64_t>((state >> 33U) % 5);
            ids.push_back(asked.texts[0][static_cast<std::size_t>(draw) % asked.texts[0].size()]);
        }
        all.push_back(std::move(ids));
    }
    return all;
}

store::SequenceTokens sequence_of(const std::vector<std::int64_t>& ids) {
    store::SequenceTokens text;
    text.ids.assign(ids.begin(), ids.end());
    text.pieces.assign(ids.size(), "x");
    return text;
}

ask::corpus::CorpusSource source_of(const CorpusIds& all) {
    return [&all](std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) {
        for (std::int64_t d = first; d < std::min(end, std::ssize(all)); ++d)
            take(d, sequence_of(all[static_cast<std::size_t>(d)]));
    };
}

store::AskRecord begun_record(const test::AskedModel& asked, const CorpusIds& all) {
    store::AskRecord record;
    record.tool = "corpus";
    record.mixers = asked.model->mixers();
    record.sites = asked.model->sites();
    record.sequences = {sequence_of(all[1])};
    store::add_usual_dimensions(record);
    return record;
}

ask::corpus::CorpusOptions corpus_options(const CorpusIds& all, bool two_passes) {
    ask::corpus::CorpusOptions options;
    options.documents = std::ssize(all);
    options.intervals = 3;
    options.two_passes = two_passes;
    return options;
}

store::AskRecord corpus_of(const test::AskedModel& asked, const CorpusIds& all, bool two_passes) {
    store::AskRecord record = begun_record(asked, all);
    NoProgress progress;
    ask::corpus::run_corpus(*asked.model, source_of(all), corpus_options(all, two_passes), record, progress,
                            Cancellation());
    return record;
}

/// Numbers of one head, by the formulas.
struct CorpusReference {
    double self = 0, previous = 0, entropy = 0, distance = 0, square = 0, induction = 0;
    double tokens = 0, pairs = 0, repeats = 0;
    std::vector<double> maxima, sinks;

    void add(const at::Tensor& pattern, const std::vector<std::int64_t>& ids) {
        const auto length = std::ssize(ids);
        double largest = 0, sink = 0;
        for (std::int64_t i = 0; i < length; ++i) {
            bool seen = false;
            for (std::int64_t j = 0; j <= i; ++j) {
                const double weight = pattern[i][j].item<double>(), apart = static_cast<double>(i - j);
                if (j == i) self += weight;
                if (j + 1 == i) previous += weight;
                if (weight > 0) entropy -= weight * std::log(weight);
                distance += weight * apart;
                square += weight * apart * apart;
                const auto before = static_cast<std::size_t>(j - 1);
                if (j > 0 && ids[before] == ids[static_cast<std::size_t>(i)]) induction += weight;
                if (j < i && ids[static_cast<std::size_t>(j)] == ids[static_cast<std::size_t>(i)]) seen = true;
                if (i > 0 && j > 0) largest = std::max(largest, weight);
            }
            repeats += seen;
            sink += pattern[i][0].item<double>();
        }
        tokens += static_cast<double>(length);
        pairs += static_cast<double>(length - 1);
        maxima.push_back(largest);
        sinks.push_back(sink / static_cast<double>(length));
    }
};

CorpusReference reference_of(const test::AskedModel& asked, const CorpusIds& all, std::int64_t site,
                             std::int64_t head) {
    CorpusReference reference;
    for (const auto& ids : all) {
        if (ids.size() < 2) continue;
        const auto values = recorded_values(asked, ids, {Point::pattern});
        reference.add(
            values.at({Point::pattern, asked.model->sites()[static_cast<std::size_t>(site)].layer, site})[0][head],
            ids);
    }
    return reference;
}

}  // namespace

TEST_CASE("Bins of distances double", "[ask][corpus]") {
    const std::vector<std::pair<std::int64_t, std::size_t>> places{
        {0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}, {7, 3}, {8, 4}, {4095, 12}, {4096, 13}, {100000, 13}};
    for (const auto& [distance, bin] : places) {
        INFO(distance);
        CHECK(ask::corpus::distance_bin(distance) == bin);
        CHECK(ask::corpus::bin_begin(bin) <= distance);
    }
}

TEST_CASE("Measures of a corpus are those of its patterns", "[ask][corpus]") {
    const test::AskedModel asked("llama");
    const CorpusIds all = corpus_ids(asked, 20);
    const store::AskRecord record = corpus_of(asked, all, false);
    CHECK(record.complete);
    for (const auto& [site, head] : {std::pair<std::int64_t, std::int64_t>(0, 1), {1, 3}}) {
        const CorpusReference own = reference_of(asked, all, site, head);
        const auto found = [&](const char* name) {
            return at_cell(record, std::string("/corpus/") + name, {site, head});
        };
        CHECK(near(found("self_attention_score"), own.self / own.tokens, 1e-5));
        CHECK(near(found("prev_token_score"), own.previous / own.pairs, 1e-5));
        CHECK(near(found("pattern_entropy"), own.entropy / own.tokens, 1e-5));
        const double mean = own.distance / own.tokens;
        CHECK(near(found("qk_distance"), mean, 1e-5));
        CHECK(near(found("qk_distance_variance"), own.square / own.tokens - mean * mean, 1e-5));
        CHECK(near(found("induction_score"), own.induction / own.repeats, 1e-5));
        double sum = 0, sinks = 0, squares = 0;
        std::vector<double> histogram(50, 0);
        for (const double one : own.maxima) sum += one;
        for (const double one : own.sinks) sinks += one / static_cast<double>(own.sinks.size());
        for (const double one : own.sinks) squares += (one - sinks) * (one - sinks);
        CHECK(near(found("maximum_mean"), sum / static_cast<double>(own.maxima.size()), 1e-5));
        CHECK(near(found("mean/sink"), sinks, 1e-5));
        CHECK(near(found("std/sink"), std::sqrt(squares / static_cast<double>(own.sinks.size() - 1)), 1e-4));
        double counted = 0;
        for (std::int64_t cell = 0; cell < 50; ++cell)
            counted += at_cell(record, "/corpus/maximum_histogram", {site, head, cell});
        CHECK(counted == static_cast<double>(own.maxima.size()));
        // Fewer than 50 texts: all set the intervals, and none is kept.
        std::vector<double> sorted = own.maxima;
        std::sort(sorted.begin(), sorted.end());
        const auto count = static_cast<double>(sorted.size());
        for (std::int64_t i = 1; i < 3; ++i)
            CHECK(near(at_cell(record, "/corpus/interval_boundary", {site, head, i - 1}),
                       sorted[static_cast<std::size_t>(std::nearbyint(static_cast<double>(i) * count / 3))], 1e-5));
        CHECK(at_cell(record, "/corpus/kept", {site, head, 0}) == -1);
    }
    CHECK(record.sequences.size() == 1);
}

TEST_CASE("Kept texts of the highest interval are those with the largest weights", "[ask][corpus]") {
    const test::AskedModel asked("llama");
    const CorpusIds all = corpus_ids(asked, 40);
    const store::AskRecord record = corpus_of(asked, all, true);
    const CorpusReference own = reference_of(asked, all, 1, 2);
    std::vector<double> wanted = own.maxima, kept;
    const double boundary = at_cell(record, "/corpus/interval_boundary", {1, 2, 1});
    wanted.erase(std::remove_if(wanted.begin(), wanted.end(), [&](double one) { return one < boundary - 1e-6; }),
                 wanted.end());
    std::sort(wanted.rbegin(), wanted.rend());
    wanted.resize(std::min<std::size_t>(wanted.size(), 10));
    std::map<std::int32_t, double> keys;
    double weights = 0;
    for (std::int64_t slot = 0; slot < record.size_of("/slot"); ++slot) {
        const double document = at_cell(record, "/corpus/kept", {1, 2, slot});
        const double place = at_cell(record, "/corpus/kept_sequence", {1, 2, slot});
        if (document < 0) continue;
        const auto& ids = all[static_cast<std::size_t>(document)];
        const auto& text = record.sequences.at(static_cast<std::size_t>(place));
        REQUIRE(std::equal(ids.begin(), ids.end(), text.ids.begin(), text.ids.end()));
        const double maximum = at_cell(record, "/corpus/kept_maximum", {1, 2, slot});
        if (slot >= 6) kept.push_back(maximum);
        const at::Tensor pattern = recorded_values(asked, ids, {Point::pattern}).at({Point::pattern, 1, 1})[0][2];
        const auto query = static_cast<std::int64_t>(at_cell(record, "/corpus/kept_query", {1, 2, slot}));
        const auto key = static_cast<std::int64_t>(at_cell(record, "/corpus/kept_key", {1, 2, slot}));
        CHECK(near(pattern[query][key].item<double>(), maximum, 1e-5));
        weights += static_cast<double>(ids.size());
        for (std::int64_t i = 1; i < std::ssize(ids); ++i)
            for (std::int64_t j = 1; j <= i; ++j)
                keys[static_cast<std::int32_t>(ids[static_cast<std::size_t>(j)])] += pattern[i][j].item<double>();
    }
    std::sort(kept.rbegin(), kept.rend());
    REQUIRE(kept.size() == wanted.size());
    for (std::size_t i = 0; i < kept.size(); ++i) CHECK(near(kept[i], wanted[i], 1e-5));
    double best = 0, all_distances = 0;
    for (const auto& [token, mass] : keys) best = std::max(best, mass);
    CHECK(near(at_cell(record, "/corpus/key_mass", {1, 2, 0}), best, 1e-5));
    for (std::int64_t bin = 0; bin < 14; ++bin)
        all_distances += at_cell(record, "/corpus/distance_histogram", {1, 2, bin});
    CHECK(near(all_distances, weights, 1e-5));  // rows sum to 1
    // Each document is kept once.
    const std::vector<double>& documents = record.table("/corpus/document").values;
    CHECK(std::set<double>(documents.begin(), documents.end()).size() == record.sequences.size());
}

TEST_CASE("A corpus that is resumed gives the same numbers", "[ask][corpus]") {
    const test::AskedModel asked("llama");
    const CorpusIds all = corpus_ids(asked, 30);
    const store::AskRecord whole = corpus_of(asked, all, true);
    for (const int stop : {1, 13, 35}) {
        INFO(stop);
        store::AskRecord begun = begun_record(asked, all);
        struct Halt final : std::exception {};
        ask::corpus::CorpusOptions options = corpus_options(all, true);
        int steps = 0;
        options.saved = [&] {
            if (++steps == stop) throw Halt();
        };
        NoProgress progress;
        CHECK_THROWS_AS(ask::corpus::run_corpus(*asked.model, source_of(all), options, begun, progress, Cancellation()),
                        Halt);
        options.saved = nullptr;
        ask::corpus::run_corpus(*asked.model, source_of(all), options, begun, progress, Cancellation());
        REQUIRE(begun.sequences.size() == whole.sequences.size());
        for (std::size_t t = 0; t < whole.tables.size(); ++t) {
            INFO(whole.tables[t].path);
            const auto &a = whole.tables[t].values, &b = begun.tables[t].values;
            REQUIRE(a.size() == b.size());
            for (std::size_t i = 0; i < a.size(); ++i)
                REQUIRE((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
        }
    }
}

TEST_CASE("A corpus that has grown does not fit a file that was begun", "[ask][corpus]") {
    const test::AskedModel asked("llama");
    const CorpusIds all = corpus_ids(asked, 12);
    store::AskRecord record = corpus_of(asked, all, false);
    ask::corpus::CorpusOptions options = corpus_options(all, false);
    options.documents = 600;  // 60 texts set the intervals
    for (store::AskDimension& dimension : record.dimensions)
        if (dimension.path == "/setting_text") dimension.size = 60;
    NoProgress progress;
    CHECK_THROWS_MATCHES(
        ask::corpus::run_corpus(*asked.model, source_of(all), options, record, progress, Cancellation()), Error,
        test::IsError(ErrorCode::usage, "--resume"));
}

TEST_CASE("Recurrent layers have no measures, and encoders are refused", "[ask][corpus]") {
    const test::AskedModel hybrid("hybrid-qwen3-next");
    const CorpusIds all = corpus_ids(hybrid, 12);
    const store::AskRecord record = corpus_of(hybrid, all, true);
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site)
        CHECK(std::isnan(at_cell(record, "/corpus/qk_distance", {site, 0})) ==
              !record.sites[static_cast<std::size_t>(site)].has_matrix);
    const test::AskedModel bert("bert");
    const CorpusIds some = corpus_ids(bert, 3);
    CHECK_THROWS_MATCHES(corpus_of(bert, some, false), Error, test::IsError(ErrorCode::usage, "expected a decoder"));
}
