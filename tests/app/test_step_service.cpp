// SPDX-License-Identifier: GPL-3.0-or-later
// The window's generation, step by step with the sample and with tiny encoder-decoders: its file is that of `headscope
// ask generate`.
#include <ATen/ops/tensor.h>

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/window/asks/step_parts.h"
#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/answers.h"
#include "core/ask/generation.h"
#include "core/ask/settings.h"
#include "core/model/edits/editor.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "files.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/figures/sample_asks.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
namespace fs = std::filesystem;

namespace {

constexpr qint64 kStepPatience = 60'000;  // ms

/// A tiny encoder-decoder of a golden file, whose token N is the word "wN" and whose answers do not end.
fs::path answering_model(const fs::path& folder, const std::string& name) {
    testing::golden_sample(folder, name);
    auto config = nlohmann::json::parse(test::read_file(folder / "config.json"));
    config.erase("eos_token_id");
    test::write_file(folder / "config.json", config.dump());
    nlohmann::json words = nlohmann::json::object();
    for (int i = 0; i < config.at("vocab_size").get<int>(); ++i) words["w" + std::to_string(i)] = i;
    nlohmann::json tokenizer = nlohmann::json::object();
    tokenizer["version"] = "1.0";
    tokenizer["added_tokens"] = nlohmann::json::array();
    tokenizer["pre_tokenizer"] = {{"type", "Whitespace"}};
    tokenizer["model"] = {{"type", "WordLevel"}, {"vocab", words}, {"unk_token", "w2"}};
    for (const char* none : {"truncation", "padding", "normalizer", "post_processor", "decoder"})
        tokenizer[none] = nullptr;
    test::write_file(folder / "tokenizer.json", tokenizer.dump());
    return folder;
}

/// A model with a text of the panel: the sample, or `answering`, an encoder-decoder.
struct SteppedSample {
    explicit SteppedSample(const std::string& answering = {}) {
        QSignalSpy opened(&engine, &Engine::model_opened);
        const fs::path model = answering.empty() ? testing::sample() : answering_model(folder / answering, answering);
        engine.open_model(QString::fromStdString(model.string()));
        REQUIRE(opened.wait(kStepPatience));
        choice.model = opened.first().first().toInt();
        const QString text = answering.empty() ? QStringLiteral("In the beginning") : QStringLiteral("w3 w4 w5 w6 w7");
        choice.sources = {{widgets::TextSource::Kind::text, text}};
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

/// Probabilities of the token after a text, or after the target of an encoder-decoder, by a pass without a cache.
std::vector<double> next_by_pass(model::Model& model, const std::vector<std::int64_t>& text, model::Editor* editor,
                                 const std::vector<std::int64_t>& target = {}) {
    model::Batch batch;
    batch.ids = at::tensor(text, at::kLong).unsqueeze(0);
    if (!target.empty()) batch.target = at::tensor(target, at::kLong).unsqueeze(0);
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

/// Settings of ask generate --text .. --generate 4 --replace STEP=ID --record maps: --resume takes a file with the
/// same.
std::string command_settings(const OpenModel& open, const store::SequenceTokens& text, const std::string& replaced,
                             const std::vector<std::string>& target_texts = {}) {
    ask::AskOptions command;
    command.tool = "generate";
    command.job.model = open.file->path().string();
    command.job.texts = {text.text};
    command.job.targets = target_texts;
    command.models = {command.job.model};
    command.generate = 4;
    ask::GenerateChoice own;
    own.replaced = {replaced};
    own.record = "maps";
    ask::TextsHash texts;
    texts.add(text);
    nlohmann::json settings = ask::ask_settings(command, texts.finish());
    own.store(settings);
    return ask::stored_settings(settings);
}

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
    CHECK(stepped.settings_json == command_settings(*open, stepped.sequences.front(), "1=" + std::to_string(second)));

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

TEST_CASE("Candidates of an encoder-decoder are those of a pass with vectors added in either stack", "[app][stepper]") {
    SteppedSample sample("bart");
    sample.choice.target = QStringLiteral("w8");
    sample.begin({QString(), 3, 0, 0, true});
    sample.service.step(2);
    sample.finish();
    const auto open = sample.engine.opened(sample.choice.model);
    REQUIRE(open->weights);
    const auto file = std::make_shared<const store::AskRecord>(vectors_for(open->inspection.config));
    std::vector<std::int64_t> source, target;
    for (const auto& word : sample.service.generation()->prompt) source.push_back(word.id);
    for (const auto& word : sample.service.generation()->target) target.push_back(word.id);
    const std::vector<std::int64_t> whole = sample.tokens();
    target.push_back(whole.front());
    for (const int layer : {0, 2, -1}) {  // of the encoder, of the decoder, all three
        INFO(layer);
        const widgets::StepVector by{file, layer, 2};
        sample.service.steer(1, by);
        sample.finish();
        const auto shown = sample.service.steering();
        REQUIRE(shown);
        CHECK(shown->by == by);
        CHECK(shown->step == sample.service.generation()->steps[1]);
        VectorEditor editor(*file, layer, 2);
        const std::vector<double> without = next_by_pass(*open->weights, source, nullptr, target);
        const std::vector<double> with = next_by_pass(*open->weights, source, &editor, target);
        double change = 0;
        for (const widgets::SteeredWord& one : shown->words) {
            const auto id = static_cast<std::size_t>(one.word.id);
            CHECK(one.without == Approx(without.at(id)).margin(1e-5));
            CHECK(one.with == Approx(with.at(id)).margin(1e-5));
            change = std::max(change, std::abs(one.with - one.without));
        }
        CHECK(change > 1e-4);
    }
    CHECK(sample.failures.isEmpty());
    CHECK(sample.tokens() == whole);
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
