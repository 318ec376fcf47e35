// SPDX-License-Identifier: GPL-3.0-or-later
// The window's generation, step by step with the sample: its file is that of `headscope ask generate`.
#include <ATen/ops/tensor.h>

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/generation.h"
#include "core/ask/settings.h"
#include "core/model/edits/editor.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
namespace fs = std::filesystem;

namespace {

constexpr qint64 kStepPatience = 60'000;  // ms

struct SteppedSample {
    SteppedSample() {
        QSignalSpy opened(&engine, &Engine::model_opened);
        engine.open_model(QString::fromStdString(
            (fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare").string()));
        REQUIRE(opened.wait(kStepPatience));
        choice.model = opened.first().first().toInt();
        choice.sources = {{widgets::TextSource::Kind::text, QStringLiteral("In the beginning")}};
    }
    void finish() {
        QElapsedTimer clock;
        clock.start();
        while (service.busy() && clock.elapsed() < kStepPatience) QTest::qWait(5);
        REQUIRE_FALSE(service.busy());
    }
    void begin(widgets::StepOptions options = {}) {
        service.begin(options);
        finish();
    }
    std::vector<std::int64_t> tokens() const {
        std::vector<std::int64_t> ids;
        for (const auto& step : service.generation()->steps) ids.push_back(step->token.id);
        return ids;
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    Engine engine{1};
    widgets::TextChoice choice;
    StepService service{&engine, [this] { return choice; }};
    QSignalSpy failures{&service, &widgets::StepSource::failed};
};

/// A steer file with a vector for each layer.
store::AskRecord vectors_for(const model::ModelConfig& config) {
    store::AskRecord record;
    record.tool = "steer";
    record.add_dimension("/layer", config.all_layers(), "layer");
    record.add_dimension("/channel", config.hidden, "channel");
    test::fill_ask_table(record, "/steer/vector", {"/layer", "/channel"});
    return record;
}

/// Adds factor times its vector to the output of a layer; -1: of each.
class VectorEditor final : public model::Editor {
public:
    VectorEditor(const store::AskRecord& file, std::int64_t layer, double factor)
        : file_(&file), layer_(layer), factor_(factor) {}
    bool edits(const model::PointKey& key) const override {
        return key.point == model::Point::hidden && (layer_ < 0 || key.layer == layer_);
    }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        const std::int64_t size = value.size(2);
        std::vector<float> row;
        for (std::int64_t i = 0; i < size; ++i) {
            const auto cell = static_cast<std::size_t>(place.key.layer * size + i);
            row.push_back(static_cast<float>(factor_ * file_->table("/steer/vector").values[cell]));
        }
        return value.add(at::tensor(row));
    }

private:
    const store::AskRecord* file_;
    std::int64_t layer_;
    double factor_;
};

/// Probabilities of the token after a text, by a pass without a cache.
std::vector<double> next_by_pass(model::Model& model, const std::vector<std::int64_t>& text, model::Editor* editor) {
    model::Batch batch;
    batch.ids = at::tensor(text, at::kLong).unsqueeze(0);
    model::ForwardOptions options;
    options.editor = editor;
    const at::Tensor hidden = model.forward(batch, options).select(0, 0);
    const at::Tensor row = model.logits(hidden.narrow(0, hidden.size(0) - 1, 1)).contiguous();
    const float* logits = row.const_data_ptr<float>();
    std::vector<double> found;
    double sum = 0;
    for (std::int64_t i = 0; i < row.numel(); ++i) {
        found.push_back(std::exp(static_cast<double>(logits[i])));
        sum += found.back();
    }
    for (double& one : found) one /= sum;
    return found;
}

}  // namespace

TEST_CASE("Steps, a replaced token and steps back end in the file of the command", "[app][stepper]") {
    SteppedSample sample;
    CHECK_FALSE(sample.service.model().isEmpty());
    sample.begin();
    REQUIRE(sample.service.generation());
    CHECK(sample.service.generation()->steps.size() == 1);
    CHECK(sample.service.generation()->steps.front()->top.size() == 5);
    sample.service.step(4);
    sample.finish();
    const auto greedy = sample.tokens();
    REQUIRE(greedy.size() == 5);
    sample.service.keep(3);
    sample.service.step(2);
    sample.finish();
    CHECK(sample.tokens() == greedy);
    const auto second = sample.service.generation()->steps[1]->top[1].id;
    const auto first_step = sample.service.generation()->steps.front();
    sample.service.replace(1, QString::number(second));
    sample.service.step(2);
    sample.finish();
    REQUIRE(sample.tokens().size() == 4);
    CHECK(sample.tokens()[1] == second);
    CHECK(sample.service.generation()->steps[1]->replaced);
    CHECK(sample.service.generation()->steps.front() == first_step);

    QSignalSpy saved(&sample.service, &StepService::saved);
    const fs::path file = sample.folder / "steps.ask.h5";
    sample.service.save(QString::fromStdString(file.string()));
    sample.finish();
    REQUIRE(saved.size() == 1);
    CHECK(sample.failures.isEmpty());
    const store::AskRecord stepped = store::read_ask(file);
    CHECK(stepped.complete);
    CHECK(stepped.tool == "generate");
    const auto settings = nlohmann::json::parse(stepped.settings_json);
    CHECK(settings.at("generate") == 4);
    CHECK(settings.at("replace") == nlohmann::json{"1=" + std::to_string(second)});

    const auto open = sample.engine.opened(sample.choice.model);
    REQUIRE(open->weights);
    // --resume takes the file: settings are those of ask generate --text .. --generate 4 --replace 1=ID --record maps.
    ask::AskOptions command;
    command.tool = "generate";
    command.job.model = open->file->path().string();
    command.job.texts = {"In the beginning"};
    command.models = {command.job.model};
    command.generate = 4;
    ask::GenerateChoice own;
    own.replaced = {"1=" + std::to_string(second)};
    own.record = "maps";
    ask::TextsHash texts;
    texts.add(stepped.sequences.front());
    nlohmann::json wanted = ask::ask_settings(command, texts.finish());
    own.store(wanted);
    CHECK(stepped.settings_json == ask::stored_settings(wanted));

    // The same by the function of the command, with the weights that no work uses now.
    ask::GenerationOptions options;
    options.tokens = 4;
    options.maps = true;
    options.replaced[1] = second;
    store::AskRecord whole;
    whole.tool = "generate";
    whole.mixers = open->weights->mixers();
    whole.sites = open->weights->sites();
    whole.sequences = stepped.sequences;
    store::add_usual_dimensions(whole);
    NoProgress progress;
    ask::run_generation(*open->weights, options, whole, progress, Cancellation());
    REQUIRE(whole.tables.size() == stepped.tables.size());
    for (const store::AskTable& table : whole.tables) {
        INFO(table.path);
        const auto& values = stepped.table(table.path).values;
        REQUIRE(values.size() == table.values.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool none = std::isnan(table.values[i]);
            const bool none_stored = std::isnan(values[i]) || (table.whole && values[i] == -1);
            if (!(none && none_stored)) CHECK(values[i] == Approx(table.values[i]).margin(1e-4));
        }
    }
}

TEST_CASE("Without a prompt the first ticked text of the panel is continued", "[app][stepper]") {
    SteppedSample sample;
    const fs::path file = sample.folder / "king.txt";
    std::ofstream(file) << "The king";
    using Kind = widgets::TextSource::Kind;
    sample.choice.sources = {{Kind::text, QStringLiteral("left out"), false},
                             {Kind::file, QString::fromStdString(file.string())},
                             {Kind::text, QStringLiteral("In the beginning")}};
    const auto prompt = [&] {
        std::vector<std::int64_t> ids;
        for (const auto& word : sample.service.generation()->prompt) ids.push_back(word.id);
        return ids;
    };
    sample.begin();
    REQUIRE(sample.service.generation());
    const std::vector<std::int64_t> first = prompt();
    sample.begin({QStringLiteral("The king")});
    REQUIRE(sample.service.generation());
    CHECK(first == prompt());
    CHECK(sample.failures.isEmpty());
}

TEST_CASE("A model that lost its weights continues with fresh ones, and goes with its text when closed",
          "[app][stepper]") {
    SteppedSample sample;
    sample.begin({QStringLiteral("The king"), 3, 0, 0, false});
    sample.service.step(5);
    sample.finish();
    const auto whole = sample.tokens();
    sample.service.keep(2);
    sample.finish();
    // As the engine does for another model.
    const auto open = std::const_pointer_cast<OpenModel>(sample.engine.opened(sample.choice.model));
    open->weights.reset();
    sample.service.step(4);
    sample.finish();
    CHECK(open->weights != nullptr);
    CHECK(sample.tokens() == whole);
    CHECK(sample.service.generation()->steps.back()->rows.front().weights.empty());
    sample.engine.close_model(sample.choice.model);
    CHECK(sample.service.generation() == nullptr);
    CHECK(sample.service.model().isEmpty());
}

TEST_CASE("Refused prompts and tokens leave the text as it was", "[app][stepper]") {
    SteppedSample sample;
    sample.choice.sources = {{widgets::TextSource::Kind::text, QString()}};
    sample.begin();
    CHECK(sample.failures.size() == 1);
    CHECK(sample.service.generation() == nullptr);
    sample.begin({QStringLiteral("In the beginning"), 5, 0, 0, true});
    sample.service.step(2);
    sample.finish();
    const auto before = sample.tokens();
    for (const char* token : {"\"In the beginning God\"", "12345678", "\"open"}) {
        sample.service.replace(1, QLatin1String(token));
        sample.finish();
        CHECK(sample.tokens() == before);
    }
    CHECK(sample.failures.size() == 4);
    sample.service.step(10'000'000);
    sample.service.stop();
    sample.finish();
    CHECK(sample.tokens().size() >= before.size());
    CHECK(sample.failures.size() <= 5);
}

TEST_CASE("Candidates by a steer file's vectors are those of a pass with the vectors added", "[app][stepper]") {
    SteppedSample sample;
    sample.begin({QStringLiteral("The king"), 3, 0, 0, true});
    sample.service.step(2);
    sample.finish();
    const auto open = sample.engine.opened(sample.choice.model);
    REQUIRE(open->weights);
    const auto file = std::make_shared<const store::AskRecord>(vectors_for(open->inspection.config));
    const std::vector<std::int64_t> whole = sample.tokens();
    std::vector<std::int64_t> text;
    for (const auto& word : sample.service.generation()->prompt) text.push_back(word.id);
    text.push_back(whole.front());
    for (const int layer : {1, -1}) {
        INFO(layer);
        const widgets::StepVector by{file, layer, 2};
        sample.service.steer(1, by);
        sample.finish();
        const auto shown = sample.service.steering();
        REQUIRE(shown);
        CHECK(shown->step == sample.service.generation()->steps[1]);
        CHECK(shown->by == by);
        VectorEditor editor(*file, layer, 2);
        const std::vector<double> without = next_by_pass(*open->weights, text, nullptr);
        const std::vector<double> with = next_by_pass(*open->weights, text, &editor);
        REQUIRE(shown->words.size() >= 3);
        std::vector<std::int64_t> ids;
        double change = 0;
        for (const widgets::SteeredWord& one : shown->words) {
            const auto id = static_cast<std::size_t>(one.word.id);
            CHECK(one.without == Approx(without.at(id)).margin(1e-4));
            CHECK(one.with == Approx(with.at(id)).margin(1e-4));
            change = std::max(change, std::abs(one.with - one.without));
            ids.push_back(one.word.id);
        }
        CHECK(change > 1e-3);
        const auto likeliest = std::max_element(with.begin(), with.end()) - with.begin();
        CHECK(std::count(ids.begin(), ids.end(), likeliest) == 1);
    }
    CHECK(sample.failures.isEmpty());
    // Eight channels.
    sample.service.steer(1, {std::make_shared<const store::AskRecord>(test::sample_ask("steer")), 0, 1});
    sample.finish();
    REQUIRE(sample.failures.size() == 1);
    CHECK(sample.failures.first().first().toString().contains(QLatin1String("steer file")));
    sample.service.steer(7, {file, 0, 1});
    sample.finish();
    CHECK(sample.failures.size() == 2);
    CHECK(sample.tokens() == whole);
}

TEST_CASE("An edit of a position beyond the prompt and the planned steps is refused by name", "[app][stepper]") {
    SteppedSample sample;
    sample.choice.interventions.toml =
        QStringLiteral("[[intervention]]\npoint = \"hidden\"\nlayer = 1\nwhat = \"zero\"\npositions = \"40\"\n");
    sample.begin({QStringLiteral("In the beginning"), 5, 0, 0, false, 4});
    REQUIRE(sample.failures.size() == 1);
    const QString message = sample.failures.first().first().toString();
    INFO(message.toStdString());
    CHECK(message.contains(QLatin1String("intervention 1")));
    CHECK(message.contains(QLatin1String("positions of a text")));
    CHECK(message.contains(QLatin1String("40")));
    CHECK(sample.service.generation() == nullptr);
    sample.begin({QStringLiteral("In the beginning"), 5, 0, 0, false, 60});
    CHECK(sample.failures.size() == 1);
    CHECK(sample.service.generation() != nullptr);
}
