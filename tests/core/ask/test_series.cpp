// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <filesystem>
#include <fstream>
#include <memory>

#include "core/analysis/request.h"
#include "core/ask/series.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using test::at_cell;

namespace {

/// The first model of a series, and the one that is loaded next.
struct Series {
    test::AskedModel first{"llama"};
    std::unique_ptr<test::AskedModel> other;
    test::TemporaryFolder folder;
    ask::SeriesOptions options;

    explicit Series(const std::string& second) {
        options.models = {"runs/step0", "runs/step512"};
        options.load = [this, second](const std::string&) -> model::Model& {
            other = std::make_unique<test::AskedModel>(second);
            return *other->model;
        };
        options.scratch = folder / "part.headscope.h5";
    }
    store::AskRecord run() {
        store::AskRecord record = first.record("series");
        NoProgress progress;
        ask::run_series(*first.model, options, record, progress, Cancellation());
        return record;
    }
};

}  // namespace

TEST_CASE("A series has the numbers of separate analyses", "[ask][series]") {
    Series series("llama");
    const store::AskRecord record = series.run();
    CHECK(record.complete);
    CHECK_FALSE(std::filesystem::exists(series.options.scratch));
    CHECK(record.names.at(0).values == series.options.models);
    CHECK(at_cell(record, "/series/step", {0}) == 0);
    CHECK(at_cell(record, "/series/step", {1}) == 512);
    analysis::AnalysisRequest request;
    request.sequences = series.first.sequences();
    NoProgress progress;
    analysis::run(*series.first.model, request, series.folder / "a.headscope.h5", {}, progress, Cancellation());
    const auto file = store::AnalysisFile::open(series.folder / "a.headscope.h5");
    std::size_t compared = 0;
    for (const std::string& name : file->indicators()) {
        INFO(name);
        const store::AskTable& table = record.table("/series/" + name);
        const store::Values values = file->indicator(name);
        REQUIRE(table.values.size() == 2 * values.data.size());
        for (std::size_t i = 0; i < values.data.size(); ++i) {
            for (const std::size_t place : {i, values.data.size() + i})
                CHECK((table.values[place] == values.data[i] ||
                       (std::isnan(table.values[place]) && std::isnan(values.data[i]))));
            ++compared;
        }
    }
    CHECK(compared > 50);
    CHECK(std::abs(at_cell(record, "/series/loss", {1, 0}) - series.first.loss(0)) < 1e-5);
}

TEST_CASE("A series of encoder-decoders has the numbers of analyses of sources and targets",
          "[ask][series][encoder-decoder]") {
    const test::AskedModel first("t5");
    test::AskedModel second("t5");
    const test::TemporaryFolder folder;
    ask::SeriesOptions options;
    options.models = {"runs/step0", "runs/step512"};
    options.load = [&](const std::string&) -> model::Model& { return *second.model; };
    options.scratch = folder / "part.headscope.h5";
    store::AskRecord record = first.record("series");
    NoProgress progress;
    ask::run_series(*first.model, options, record, progress, Cancellation());
    CHECK(record.complete);
    analysis::AnalysisRequest request;
    request.sequences = first.sequences();
    for (const store::SequenceTokens& text : first.sequences()) request.targets.push_back(*text.target);
    analysis::run(*first.model, request, folder / "a.headscope.h5", {}, progress, Cancellation());
    const auto file = store::AnalysisFile::open(folder / "a.headscope.h5");
    std::size_t compared = 0;
    for (const std::string& name : file->indicators()) {
        INFO(name);
        const std::vector<double>& found = record.table("/series/" + name).values;
        const store::Values values = file->indicator(name);
        REQUIRE(found.size() == 2 * values.data.size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            const double expected = values.data[i % values.data.size()];
            CHECK((found[i] == expected || (std::isnan(found[i]) && std::isnan(expected))));
            if (!std::isnan(expected)) ++compared;
        }
    }
    CHECK(compared > 50);
    for (std::int64_t s = 0; s < 2; ++s)
        CHECK(std::abs(at_cell(record, "/series/loss", {1, s}) - first.loss(static_cast<std::size_t>(s))) < 1e-5);
}

TEST_CASE("A file in the place of a series' own is refused by name and kept", "[ask][series]") {
    Series series("llama");
    test::write_file(series.options.scratch, "mine");
    CHECK_THROWS_MATCHES(series.run(), Error, test::IsError(ErrorCode::usage, "part.headscope.h5] expected no file"));
    CHECK(test::read_file(series.options.scratch) == "mine");
}

TEST_CASE("Another shape is refused by name, with the models before it in place", "[ask][series]") {
    Series series("gpt2");
    store::AskRecord record = series.first.record("series");
    NoProgress progress;
    CHECK_THROWS_MATCHES(ask::run_series(*series.first.model, series.options, record, progress, Cancellation()), Error,
                         test::IsError(ErrorCode::mismatch, "runs/step512"));
    CHECK(at_cell(record, "/series/done", {0}) == 1);
    CHECK_FALSE(record.complete);
}

TEST_CASE("A resumed series has the names, tables and numbers of a whole one", "[ask][series]") {
    Series series("llama");
    const store::AskRecord whole = series.run();
    struct Once final : std::exception {};
    store::AskRecord begun = series.first.record("series");
    series.options.saved = [] { throw Once(); };
    NoProgress progress;
    CHECK_THROWS_AS(ask::run_series(*series.first.model, series.options, begun, progress, Cancellation()), Once);
    // A file that is continued gives its tables alone.
    store::AskRecord resumed = series.first.record("series");
    resumed.tables = begun.tables;
    series.options.saved = nullptr;
    ask::run_series(*series.first.model, series.options, resumed, progress, Cancellation());
    CHECK(resumed.complete);
    REQUIRE(resumed.names.size() == 1);
    CHECK(resumed.names[0].values == whole.names.at(0).values);
    const auto path = series.folder / "series.ask.h5";
    store::write_ask(path, resumed, {});
    const store::AskRecord read = store::read_ask(path);
    REQUIRE(read.tables.size() == whole.tables.size());
    for (std::size_t t = 0; t < whole.tables.size(); ++t) {
        INFO(whole.tables[t].path);
        const auto &a = whole.tables[t].values, &b = read.tables[t].values;
        REQUIRE(a.size() == b.size());
        for (std::size_t i = 0; i < a.size(); ++i) CHECK((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
    }
}

TEST_CASE("Edits of later models have the values that were read with them", "[ask][series]") {
    Series series("llama");
    const store::AskRecord plain = series.run();
    // Nothing for the first model; what load() adds holds for the second.
    std::vector<model::Intervention> list;
    series.options.interventions = &list;
    const auto load = series.options.load;
    series.options.load = [&](const std::string& path) -> model::Model& {
        model::Intervention silenced;
        silenced.point = model::Point::attention_output;
        silenced.layers = {0};
        list = {silenced};
        return load(path);
    };
    const store::AskRecord edited = series.run();
    CHECK(at_cell(edited, "/series/loss", {0, 0}) == at_cell(plain, "/series/loss", {0, 0}));
    CHECK(at_cell(edited, "/series/loss", {1, 0}) != at_cell(plain, "/series/loss", {1, 0}));
}

TEST_CASE("The step is the last number of a folder's name", "[ask][series]") {
    CHECK(ask::step_in_name("models/pythia-70m-step143000/") == 143000);
    CHECK(ask::step_in_name("snapshots/step-12.5") == 5);
    CHECK(ask::step_in_name("a1/model") == -1);
    CHECK(ask::step_in_name("checkpoint-99999999999999999999") == 999999999999999);
}

TEST_CASE("A folder of checkpoints stands for those that have a step, by step", "[ask][series]") {
    const test::TemporaryFolder folder;
    const auto make = [&](const char* name, bool configuration) {
        std::filesystem::create_directories(folder / name);
        if (configuration) std::ofstream(folder / name / "config.json") << "{}";
        return (folder / name).string();
    };
    const std::string late = make("run/step-100", true), early = make("run/step-20", true);
    make("run/best", true);
    make("run/step-30", false);
    const std::string run = (folder / "run").string(), empty = make("empty-5", false);
    const std::string one = make("model-7", true);
    make("model-7/step-1", true);
    CHECK(ask::series_checkpoints({run}) == std::vector<std::string>{early, late});
    CHECK(ask::series_checkpoints({one, run, empty, "/absent"}) ==
          std::vector<std::string>{one, early, late, empty, "/absent"});
    CHECK(ask::series_checkpoints({}).empty());
}
