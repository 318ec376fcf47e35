// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A model of the window with a text, generated step by step.

#include <QElapsedTimer>
#include <QSignalSpy>
#include <QString>
#include <QTest>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/window/asks/step_service.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/settings.h"
#include "tests/app/files.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/temporary_folder.h"
#include "widgets/plots/figure/offscreen.h"

namespace headscope::testing {

inline constexpr qint64 kStepPatience = 60'000;  // ms

/// A tiny encoder-decoder of a golden file, whose token N is the word "wN" and whose answers do not end.
inline std::filesystem::path answering_model(const std::filesystem::path& folder, const std::string& name) {
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
        QSignalSpy opened(&engine, &app::Engine::model_opened);
        const std::filesystem::path model =
            answering.empty() ? testing::sample() : answering_model(folder / answering, answering);
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
    app::Engine engine{1};
    widgets::TextChoice choice;
    app::StepService service{&engine, [this] { return choice; }};
    QSignalSpy failures{&service, &widgets::StepSource::failed};
};

/// Settings of ask generate --text .. --generate 4 --replace STEP=ID --record maps: --resume takes a file with the
/// same.
inline std::string command_settings(const app::OpenModel& open, const store::SequenceTokens& text,
                                    const std::string& replaced, const std::vector<std::string>& target_texts = {}) {
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

}  // namespace headscope::testing
