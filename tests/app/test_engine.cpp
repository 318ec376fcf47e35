// SPDX-License-Identifier: GPL-3.0-or-later
// The window's models: a row of snapshots that are opened and analysed one by one keeps the weights of a few alone, and
// one tokenizer for all.
#include <QCoreApplication>
#include <QFile>
#include <QSignalSpy>
#include <QTest>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "app/window/engine.h"
#include "app/window/files/adapter_found.h"
#include "app/window/files/model_place.h"
#include "app/window/text_job.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/catch_with_torch.h"
#include "tests/core/base/bytes_read.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/adapter_files.h"
#include "widgets/plots/figure/offscreen.h"

using namespace headscope;
using namespace headscope::app;
namespace fs = std::filesystem;

namespace {

constexpr int kPatience = 60'000;  // ms

struct Snapshots {
    /// `count` copies of the sample, each in its own folder, all open. Their ids are in `ids`.
    explicit Snapshots(int count) {
        for (int i = 0; i < count; ++i) {
            const fs::path copy = folder / ("step-" + std::to_string(i));
            fs::copy(fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare", copy);
            QSignalSpy opened(&engine, &Engine::model_opened);
            engine.open_model(QString::fromStdString(copy.string()));
            REQUIRE(opened.wait(kPatience));
            ids.push_back(opened.first().first().toInt());
        }
    }

    static widgets::TextChoice choice(int id) {
        widgets::TextChoice choice;
        choice.model = id;
        choice.sources = {{widgets::TextSource::Kind::text, QStringLiteral("In the beginning")}};
        return choice;
    }

    void run(int id) {
        QSignalSpy ended(&engine, &Engine::run_ended);
        engine.run(choice(id), folder / "out");
        REQUIRE(ended.wait(kPatience));
        INFO(ended.first().at(1).toString().toStdString());
        REQUIRE(QFile::exists(ended.first().at(0).toString()));
    }

    /// Ids of those whose card says that the weights are in memory.
    std::set<int> loaded() const {
        std::set<int> loaded;
        for (const auto& card : engine.models())
            if (card.loaded) loaded.insert(card.id);
        return loaded;
    }

    bool application = (widgets::ensure_application(), true);
    test::TemporaryFolder folder;
    Engine engine{1};
    std::vector<int> ids;
};

}  // namespace

TEST_CASE("The three models that ran last keep their weights, and any other gets them again", "[app][engine]") {
    Snapshots snapshots(4);
    const auto& ids = snapshots.ids;
    REQUIRE(std::set<int>(ids.begin(), ids.end()).size() == 4);
    CHECK(snapshots.loaded().empty());
    for (int i = 0; i < 3; ++i) snapshots.run(ids[static_cast<std::size_t>(i)]);
    CHECK(snapshots.loaded() == std::set<int>{ids[0], ids[1], ids[2]});
    snapshots.run(ids[0]);  // so that the second is the one that ran longest ago
    snapshots.run(ids[3]);
    CHECK(snapshots.loaded() == std::set<int>{ids[0], ids[2], ids[3]});
    // Seen from what is held as well: no run is going on, so the weights may be looked at.
    const auto second = snapshots.engine.opened(ids[1]);
    CHECK(second->weights == nullptr);
    snapshots.run(ids[1]);
    CHECK(second->weights != nullptr);
    CHECK(snapshots.loaded() == std::set<int>{ids[0], ids[1], ids[3]});
    // Unreadable weights displace only the oldest model's, however often they are requested.
    fs::resize_file(snapshots.folder / "step-2" / "model.safetensors", 5000);
    for (int i = 0; i < 3; ++i) {
        QSignalSpy ended(&snapshots.engine, &Engine::run_ended);
        snapshots.engine.run(snapshots.choice(ids[2]), snapshots.folder / "out");
        REQUIRE(ended.wait(kPatience));
        CHECK_FALSE(ended.first().at(1).toString().isEmpty());
    }
    CHECK(snapshots.loaded() == std::set<int>{ids[1], ids[3]});
}

TEST_CASE("Snapshots of one run share a tokenizer, and another file's is another", "[app][engine]") {
    Snapshots snapshots(2);
    const auto first = snapshots.engine.opened(snapshots.ids[0]), second = snapshots.engine.opened(snapshots.ids[1]);
    REQUIRE(first->tokenizer);
    CHECK(first->tokenizer == second->tokenizer);

    const fs::path other = snapshots.folder / "other";
    fs::copy(snapshots.folder / "step-0", other);
    QFile file(QString::fromStdString((other / "tokenizer.json").string()));
    REQUIRE(file.open(QIODevice::Append));
    REQUIRE(file.write("\n") == 1);
    file.close();
    QSignalSpy opened(&snapshots.engine, &Engine::model_opened);
    snapshots.engine.open_model(QString::fromStdString(other.string()));
    REQUIRE(opened.wait(kPatience));
    const auto third = snapshots.engine.opened(opened.first().first().toInt());
    REQUIRE(third->tokenizer);
    CHECK(third->tokenizer != first->tokenizer);
}

TEST_CASE("Opening a checkpoint for the window reads none of its weights", "[app][engine]") {
    widgets::ensure_application();
    const test::TemporaryFolder folder;
    fs::copy(fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare", folder / "model");
    const auto weights = fs::file_size(folder / "model" / "model.safetensors");
    REQUIRE(weights > 6'000'000);
    const std::uint64_t before = test::bytes_read();
    const auto open = open_checkpoint(QString::fromStdString((folder / "model").string()));
    const std::uint64_t read = test::bytes_read() - before;
    CHECK(open->card.parameters > 1'000'000);
    CHECK(open->tokenizer != nullptr);
    CHECK(open->weights == nullptr);
    CHECK(read > 100'000);  // tokenizer.json
    CHECK(read < 2'000'000);
}

TEST_CASE("A checkpoint and the same with an adapter are two models", "[app][engine]") {
    Snapshots snapshots(1);
    Engine& engine = snapshots.engine;
    const std::string stem = "base_model.model.model.layers.0.self_attn.q_proj.lora_";
    test::write_adapter(snapshots.folder / "lora", {{stem + "A.weight", {1, 256}}, {stem + "B.weight", {256, 1}}});
    const QString base = engine.models().front().path;
    const ModelPlace place{base, QString::fromStdString((snapshots.folder / "lora").string())};
    CHECK(ModelPlace::of(place.text()).path == base);
    CHECK(ModelPlace::of(place.text()).adapter == place.adapter);
    CHECK(ModelPlace{base, {}}.text() == base);
    QSignalSpy opened(&engine, &Engine::model_opened), failed(&engine, &Engine::model_failed);
    engine.open_model(place.text());
    REQUIRE(opened.wait(kPatience));
    REQUIRE(engine.models().size() == 2);
    const auto& card = engine.models().back();
    CHECK(card.name.endsWith(QLatin1String(" + lora")));
    CHECK(card.note.contains(QLatin1String("is merged into 1 tensor")));
    CHECK(engine.model_at(base) == snapshots.ids[0]);
    CHECK(engine.model_at(place.text()) == card.id);

    const AdapterFound alone = find_adapter(place.adapter), none = find_adapter(base);
    CHECK(alone.alone);
    CHECK(alone.text == QLatin1String("a LoRA adapter of \"some/base\""));
    CHECK(alone.base.isEmpty());
    CHECK(none.text.isEmpty());
    engine.open_model(place.adapter);
    REQUIRE(failed.wait(kPatience));
    CHECK(failed.first().at(1).toString().contains(QLatin1String("found a LoRA adapter of \"some/base\"")));
}

TEST_CASE("A checkpoint that is asked for while it comes is opened once", "[app][engine]") {
    Snapshots snapshots(0);
    Engine& engine = snapshots.engine;
    const fs::path copy = snapshots.folder / "copy", missing = snapshots.folder / "missing";
    fs::copy(fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare", copy);
    const QString path = QString::fromStdString(copy.string());
    QSignalSpy opened(&engine, &Engine::model_opened), failed(&engine, &Engine::model_failed);
    // Wanted twice, and brought back at the same time, by threads of their own.
    engine.open_model(path, true);
    engine.open_model(path);
    engine.open_model(path);
    engine.open_model(path, true);
    REQUIRE(QTest::qWaitFor([&] { return opened.count() == 2; }, kPatience));
    REQUIRE(engine.models().size() == 1);
    const int id = engine.models().front().id;
    CHECK(opened.at(0).first().toInt() == id);
    CHECK(opened.at(1).first().toInt() == id);
    engine.open_model(path);
    CHECK(opened.count() == 3);
    CHECK(engine.models().size() == 1);

    // Closed, or not to be had: it can be asked for again.
    engine.close_model(id);
    engine.open_model(path);
    REQUIRE(QTest::qWaitFor([&] { return opened.count() == 4; }, kPatience));
    CHECK(engine.models().size() == 1);
    for (int i = 1; i <= 2; ++i) {
        engine.open_model(QString::fromStdString(missing.string()));
        REQUIRE(QTest::qWaitFor([&] { return failed.count() == i; }, kPatience));
    }
}

TEST_CASE("A text is cut to the model's positions unless it is to be read whole", "[app][engine]") {
    Snapshots snapshots(1);
    const auto model = snapshots.engine.opened(snapshots.ids[0]);
    const std::int64_t positions = model->inspection.config.max_positions;
    REQUIRE(positions > 0);
    widgets::TextChoice choice = Snapshots::choice(snapshots.ids[0]);
    choice.sources[0].value = QStringLiteral("word ").repeated(static_cast<int>(positions));
    const auto tokens = [&] { return std::ssize(read_choice(*model, choice, {}, {}).sequences.at(0).ids); };
    CHECK(tokens() == positions);
    QSignalSpy previewed(&snapshots.engine, &Engine::previewed);
    snapshots.engine.preview(choice);
    REQUIRE(previewed.wait(kPatience));
    const auto preview = previewed.first().first().value<widgets::TokenPreview>();
    CHECK(preview.failure.toStdString() == "");
    CHECK(preview.sequences.at(0).tokens == positions);
    choice.whole = true;
    const std::int64_t whole = tokens();
    CHECK(whole > positions);
    CHECK(preview.uncut == whole);
    choice.whole = false;
    choice.beyond_positions = true;
    CHECK(tokens() == whole);
    choice.length = 16;
    CHECK(tokens() == 16);
}

TEST_CASE("A run applies the interventions of its choice, and stores them", "[app][engine][interventions]") {
    Snapshots snapshots(1);
    const auto run = [&](const widgets::TextChoice& choice) {
        QSignalSpy ended(&snapshots.engine, &Engine::run_ended);
        snapshots.engine.run(choice, snapshots.folder / "out");
        REQUIRE(ended.wait(kPatience));
        return std::pair(ended.first().at(0).toString(), ended.first().at(1).toString());
    };
    widgets::TextChoice choice = Snapshots::choice(snapshots.ids.front());
    const auto plain = store::AnalysisFile::open(run(choice).first.toStdString());
    choice.interventions.toml = QStringLiteral(
        "[[intervention]]\npoint = \"attention_output\"\nlayer = 0\nwhat = \"run\"\ntext = \"other\"\n"
        "[[text]]\nname = \"other\"\ntext = \"And the king said unto them, Come\"\n");
    const auto edited = store::AnalysisFile::open(run(choice).first.toStdString());
    CHECK(edited->loss(0).data[2] != plain->loss(0).data[2]);
    const auto settings = nlohmann::json::parse(edited->header().settings_json);
    CHECK(settings.at("weights_format") == "bfloat16");
    CHECK(settings.at("weights") == "float32");
    CHECK(settings.at("interventions") == choice.interventions.toml.toStdString());
    choice.interventions.toml =
        QStringLiteral("[[intervention]]\npoint = \"head_output\"\nlayer = 99\nwhat = \"zero\"\n");
    CHECK(run(choice).second.contains("intervention 1"));
    QSignalSpy previewed(&snapshots.engine, &Engine::previewed);
    snapshots.engine.preview(choice);
    REQUIRE(previewed.wait(kPatience));
    CHECK(previewed.first().first().value<widgets::TokenPreview>().failure.contains("intervention 1"));
}

TEST_CASE("An analysis that is run again keeps its segments and edits", "[app][engine]") {
    widgets::TextChoice choice;
    take_settings(R"({"segments": {"tokens": 64, "memory": 128}, "beyond_positions": true, "switch_off": "3.1",
        "switch_off_how": "mean", "interventions": "[[intervention]]", "interventions_file": "/plans/a.toml",
        "dtype": "float32", "labels": "/labels/a.json"})",
                  choice);
    CHECK(choice.labels.toStdString() == "/labels/a.json");
    CHECK(choice.segment == 64);
    CHECK(choice.memory == 128);
    CHECK(choice.beyond_positions);
    CHECK(choice.switch_off.toStdString() == "3.1");
    CHECK(choice.mean);
    CHECK(choice.interventions.toml.toStdString() == "[[intervention]]");
    CHECK(choice.interventions.place.toStdString() == "/plans/a.toml");
    take_settings("{}", choice);
    CHECK((choice == widgets::TextChoice()));
    // The window has no blocks to leave out: without this refusal it would run all of them.
    CHECK_THROWS_AS(take_settings(R"({"skip": "0,2-3"})", choice), Error);
    CHECK_THROWS_AS(take_settings(R"({"dtype": "bfloat16"})", choice), Error);
}

TEST_CASE("The labels of a choice are read into the request", "[app][engine]") {
    Snapshots snapshots(1);
    const auto model = snapshots.engine.opened(snapshots.ids[0]);
    widgets::TextChoice choice = Snapshots::choice(snapshots.ids[0]);
    const fs::path file = snapshots.folder / "labels.json";
    test::write_file(file, "[[1, -100, 2]]");
    choice.labels = QString::fromStdString(file.string());
    analysis::Input input = read_choice(*model, choice, {}, {});
    CHECK(make_request(*model, choice, input, {}).labels == std::vector<std::vector<std::int64_t>>{{1, -100, 2}});
    choice.labels.clear();
    input = read_choice(*model, choice, {}, {});
    CHECK(make_request(*model, choice, input, {}).labels.empty());
}

TEST_CASE("A run that no memory holds is refused before a weight is read", "[app][engine][memory]") {
    Snapshots snapshots(0);
    // The sample with one layer, whose feed-forward is 4 million wide: 1.6 TB that are a hole in a file.
    constexpr std::int64_t kWords = 2048, kHidden = 65'536, kInner = 4'194'304, kHeads = 256, kKeys = 128;
    const fs::path sample = fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare";
    const fs::path huge = snapshots.folder / "huge";
    fs::create_directory(huge);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) fs::copy(sample / name, huge / name);
    std::ifstream read(sample / "config.json");
    nlohmann::json config = nlohmann::json::parse(read), header;
    config.update({{"hidden_size", kHidden}, {"intermediate_size", kInner}, {"num_hidden_layers", 1}});
    test::write_file(huge / "config.json", config.dump());
    std::int64_t bytes = 0;
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
        std::int64_t size = 2;
        for (const std::int64_t one : shape) size *= one;
        header["model." + name + ".weight"] = {
            {"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {bytes, bytes + size}}};
        bytes += size;
    };
    add("embed_tokens", {kWords, kHidden});
    add("norm", {kHidden});
    for (const char* name : {"input", "post_attention"}) add(std::string("layers.0.") + name + "_layernorm", {kHidden});
    for (const char* name : {"gate", "up"}) add(std::string("layers.0.mlp.") + name + "_proj", {kInner, kHidden});
    add("layers.0.mlp.down_proj", {kHidden, kInner});
    for (const char* name : {"k", "v"}) add(std::string("layers.0.self_attn.") + name + "_proj", {kKeys, kHidden});
    add("layers.0.self_attn.q_proj", {kHeads, kHidden});
    add("layers.0.self_attn.o_proj", {kHidden, kHeads});
    const std::string begin = test::safetensors_bytes(header.dump());
    test::write_file(huge / "model.safetensors", begin);
    fs::resize_file(huge / "model.safetensors", begin.size() + static_cast<std::uintmax_t>(bytes));

    QSignalSpy opened(&snapshots.engine, &Engine::model_opened);
    snapshots.engine.open_model(QString::fromStdString(huge.string()));
    REQUIRE(opened.wait(kPatience));
    const widgets::TextChoice choice = Snapshots::choice(opened.first().first().toInt());
    QSignalSpy previewed(&snapshots.engine, &Engine::previewed), ended(&snapshots.engine, &Engine::run_ended);
    snapshots.engine.preview(choice);
    REQUIRE(previewed.wait(kPatience));
    const QString advice = QStringLiteral("nothing fits: shorten --length or record less");
    CHECK(previewed.first().first().value<widgets::TokenPreview>().failure.contains(advice));
    snapshots.engine.run(choice, snapshots.folder / "out");
    REQUIRE(ended.wait(kPatience));
    CHECK(ended.first().at(0).toString().isEmpty());
    CHECK(ended.first().at(1).toString().contains(advice));
    CHECK(snapshots.loaded().empty());
}
