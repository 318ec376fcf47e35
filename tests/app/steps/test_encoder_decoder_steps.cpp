// SPDX-License-Identifier: GPL-3.0-or-later
// The window's generation, step by step with tiny encoder-decoders: its file is that of `headscope ask generate`.
#include <QElapsedTimer>
#include <QSignalSpy>
#include <QString>
#include <QTest>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/window/asks/step_parts.h"
#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/answers.h"
#include "core/ask/generation.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "tests/app/steps/stepped_sample.h"
#include "tests/catch_with_torch.h"

using namespace headscope;
using namespace headscope::app;
using testing::command_settings;
using testing::kStepPatience;
using testing::SteppedSample;
namespace fs = std::filesystem;

namespace {

/// Numbers of the command's function for the texts of a file, computed on the thread of the steps.
store::AskRecord generated_again(SteppedSample& sample, const store::AskRecord& file,
                                 const ask::GenerationOptions& options) {
    struct Shared {
        store::AskRecord record;
        std::atomic<bool> ended = false;
    };
    const auto shared = std::make_shared<Shared>();
    const auto open = sample.engine.opened(sample.choice.model);
    shared->record.tool = "generate";
    shared->record.mixers = open->weights->mixers();
    shared->record.sites = open->weights->sites();
    shared->record.sequences = file.sequences;
    store::add_usual_dimensions(shared->record);
    ModelWork work;
    work.prepare = [](const Cancellation&) {};
    work.bytes = [open](model::Residence residence) {
        return model::resident_bytes(open->inspection, checkpoint::LoadAs::float32, residence);
    };
    work.run = [open, shared, options](const Cancellation& cancellation) {
        NoProgress progress;
        ask::run_generation(*open->weights, options, shared->record, progress, cancellation);
    };
    work.report = [](const QString&) {};
    work.ended = [shared](const QString&) { shared->ended = true; };
    sample.engine.work_with(sample.choice.model, shared.get(), std::move(work));
    QElapsedTimer clock;
    clock.start();
    while (!shared->ended && clock.elapsed() < kStepPatience) QTest::qWait(5);
    REQUIRE(shared->ended.load());
    return shared->record;
}

/// False for a cell without a number, which tables of whole numbers store as -1.
bool has_number(const store::AskTable& table, double value) {
    return !std::isnan(value) && !(table.whole && value == -1);
}

/// A step as the view has it, and as the tables of a file.
void check_shown_step(const widgets::ShownGeneration& shown, std::int64_t t, const store::AskRecord& file) {
    const widgets::ShownStep& step = *shown.steps.at(static_cast<std::size_t>(t));
    CHECK(static_cast<double>(step.token.id) == ask::get(file, "/generate/token", {0, t}));
    CHECK(step.probability == std::exp(ask::get(file, "/generate/log_probability", {0, t})));
    for (std::int64_t k = 0; k < std::ssize(step.top); ++k) {
        const auto at = static_cast<std::size_t>(k);
        CHECK(static_cast<double>(step.top[at].id) == ask::get(file, "/generate/top_id", {0, t, k}));
        CHECK(step.top_probability.at(at) == ask::get(file, "/generate/top_probability", {0, t, k}));
    }
    const std::int64_t source = std::ssize(shown.prompt), read = std::ssize(shown.target) + t;
    for (std::int64_t n = 0; n < std::ssize(shown.sites); ++n) {
        INFO("site " << n << ", step " << t);
        const Site& site = shown.sites[static_cast<std::size_t>(n)];
        const widgets::StepRow& row = step.rows.at(static_cast<std::size_t>(n));
        CHECK(row.first_key == 0);
        CHECK(row.keys == (site.stack == "encoder" ? 0 : site.is_cross() ? source : read));
        for (std::int64_t h = 0; h < site.heads; ++h) {
            const std::vector<std::int64_t> head{0, t, n, h};
            const auto cell = static_cast<std::size_t>(n * shown.heads + h);
            const char* const tables[] = {"/generate/entropy", "/generate/sink", "/generate/mean_distance"};
            for (std::size_t m = 0; m < widgets::kStepMeasures; ++m) {
                const double stored = ask::get(file, tables[m], head), found = step.measures[m].at(cell);
                CHECK((std::isnan(stored) ? std::isnan(found) : found == stored));
            }
            CHECK(std::isnan(step.measures[0].at(cell)) == (site.stack == "encoder"));
            for (std::int64_t j = 0; j < row.keys; ++j)
                CHECK(static_cast<double>(row.weights.at(static_cast<std::size_t>(h * row.keys + j))) ==
                      ask::get(file, "/generate/weights", {0, t, n, h, j}));
        }
    }
}

}  // namespace

TEST_CASE("Steps of an encoder-decoder end in the file of the command, bit for bit", "[app][stepper]") {
    for (const std::string name : {"t5", "bart"})
        for (const std::string target : {"", "w8 w9"}) {
            INFO(name << ", text of the decoder: " << target);
            SteppedSample sample(name);
            sample.choice.target = QString::fromStdString(target);
            sample.begin();
            REQUIRE(sample.service.generation());
            sample.service.step(4);
            sample.finish();
            const auto greedy = sample.tokens();
            REQUIRE(greedy.size() == 5);
            sample.service.keep(3);
            sample.service.step(2);
            sample.finish();
            CHECK(sample.tokens() == greedy);
            const std::int64_t second = sample.service.generation()->steps[1]->top[1].id;
            sample.service.replace(1, QStringLiteral("\"w%1\"").arg(second));
            sample.service.step(2);
            sample.finish();
            REQUIRE(sample.tokens().size() == 4);
            CHECK(sample.tokens()[1] == second);

            const auto open = sample.engine.opened(sample.choice.model);
            REQUIRE(open->weights);
            const auto shown = sample.service.generation();
            std::vector<std::int64_t> source, begun;
            for (const auto& word : shown->prompt) source.push_back(word.id);
            for (const auto& word : shown->target) begun.push_back(word.id);
            CHECK(source == std::vector<std::int64_t>{3, 4, 5, 6, 7});
            std::vector<std::int64_t> wanted{open->inspection.config.decoder_start};
            if (!target.empty()) wanted.insert(wanted.end(), {8, 9});
            CHECK(begun == wanted);
            CHECK(shown->prompt.front().text == QStringLiteral("w3"));
            CHECK(shown->target.back().text == QStringLiteral("w%1").arg(wanted.back()));

            QSignalSpy saved(&sample.service, &StepService::saved);
            const fs::path file = sample.folder / "steps.ask.h5";
            sample.service.save(QString::fromStdString(file.string()));
            sample.finish();
            REQUIRE(saved.size() == 1);
            CHECK(sample.failures.isEmpty());
            const store::AskRecord stepped = store::read_ask(file);
            CHECK(stepped.complete);
            REQUIRE(stepped.sequences.size() == 1);
            REQUIRE(stepped.sequences.front().target);
            const auto& stored = stepped.sequences.front().target->ids;
            CHECK(std::vector<std::int64_t>(stored.begin(), stored.end()) == wanted);
            const std::vector<std::string> targets(target.empty() ? 0U : 1U, target);
            CHECK(stepped.settings_json ==
                  command_settings(*open, stepped.sequences.front(), "1=" + std::to_string(second), targets));
            for (std::int64_t t = 0; t < 4; ++t) check_shown_step(*shown, t, stepped);

            ask::GenerationOptions options;
            options.tokens = 4;
            options.maps = true;
            options.replaced[1] = second;
            const store::AskRecord whole = generated_again(sample, stepped, options);
            CHECK(whole.complete);
            REQUIRE(whole.tables.size() == stepped.tables.size());
            for (const store::AskTable& table : whole.tables) {
                INFO(table.path);
                const auto& values = stepped.table(table.path).values;
                REQUIRE(values.size() == table.values.size());
                for (std::size_t i = 0; i < values.size(); ++i) {
                    const bool number = has_number(table, table.values[i]);
                    CHECK((number ? values[i] == table.values[i] : !has_number(table, values[i])));
                }
            }
        }
}

TEST_CASE("A typed prompt is the encoder's, and another decoder's text changes the answer", "[app][stepper]") {
    SteppedSample sample("bart");
    sample.begin({QStringLiteral("w9 w10"), 43});
    REQUIRE(sample.service.generation());
    const auto plain = sample.service.generation();
    CHECK(plain->prompt.size() == 2);
    CHECK(plain->target.size() == 1);
    sample.choice.target = QStringLiteral("w8");
    sample.begin({QStringLiteral("w9 w10"), 43});
    REQUIRE(sample.service.generation());
    const auto other = sample.service.generation();
    CHECK(other->prompt.size() == 2);
    REQUIRE(other->target.size() == 2);
    CHECK(other->target.back().id == 8);
    CHECK(other->steps.front()->top_probability != plain->steps.front()->top_probability);
    CHECK(sample.failures.isEmpty());
    // Positions: 20 of the decoder, and the last token is not read.
    sample.service.step(100);
    sample.finish();
    CHECK(sample.service.generation()->full);
    CHECK(sample.tokens().size() == 19);
    CHECK(sample.failures.isEmpty());
}

TEST_CASE("Edits of an encoder-decoder are of positions of its source or of the planned steps", "[app][stepper]") {
    SteppedSample sample("t5");
    sample.choice.interventions.toml =
        QStringLiteral("[[intervention]]\npoint = \"hidden\"\nlayer = 2\nwhat = \"zero\"\npositions = \"6\"\n");
    sample.begin({QString(), 5, 0, 0, false, 4});
    REQUIRE(sample.failures.size() == 1);
    const QString message = sample.failures.first().first().toString();
    INFO(message.toStdString());
    CHECK(message.contains(QLatin1String("the longest has 5 tokens")));
    CHECK(sample.service.generation() == nullptr);
    sample.begin({QString(), 5, 0, 0, false, 7});
    CHECK(sample.failures.size() == 1);
    CHECK(sample.service.generation() != nullptr);
}

TEST_CASE("Memory of steps counts rows of the decoder's heads, and keys and values of both texts", "[app][stepper]") {
    const SteppedSample sample("t5");
    const auto open = sample.engine.opened(sample.choice.model);
    const model::Inspection& inspection = open->inspection;
    REQUIRE(inspection.sites.size() == 4);  // two of the encoder, self- and cross-attention of the decoder
    store::SequenceTokens text, target;
    text.ids.assign(50, 3);
    target.ids.assign(4, 3);
    text.target = std::make_shared<const store::SequenceTokens>(target);
    constexpr auto residence = model::Residence::float32;
    const auto reading = [&](double cached) {
        return model::reading_bytes(inspection, 50, cached, checkpoint::LoadAs::float32, residence);
    };
    const double plain = step_bytes(inspection, text, 10, false, false, residence);
    CHECK(plain == Approx(reading(4 * (50 + 14))));
    CHECK(step_bytes(inspection, text, 10, false, true, residence) == Approx(reading(6 * (50 + 14))));
    // Two copies of ten rows of three heads, of 14 and of 50 keys.
    CHECK(step_bytes(inspection, text, 10, true, false, residence) - plain == Approx(2 * 4 * 10 * 3 * (14 + 50)));
}
