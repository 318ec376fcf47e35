// SPDX-License-Identifier: GPL-3.0-or-later
// The window's generation, step by step with the sample: its file is that of `headscope ask generate`.
#include <QSignalSpy>
#include <QString>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/generation.h"
#include "core/model/model.h"
#include "core/store/ask/ask_file.h"
#include "tests/app/steps/stepped_sample.h"
#include "tests/catch_with_torch.h"

using namespace headscope;
using namespace headscope::app;
using testing::command_settings;
using testing::SteppedSample;
namespace fs = std::filesystem;

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
