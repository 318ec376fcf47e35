// SPDX-License-Identifier: GPL-3.0-or-later
// `evaluate` on models that the program trained: their own tasks, texts and lengths.
#include <catch2/catch.hpp>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/store/evaluation/evaluation_file.h"
#include "tests/app/evaluate/evaluation_case.h"
#include "tests/app/expectations.h"
#include "tests/app/files.h"
#include "tests/app/program.h"
#include "tests/app/training_job.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

TEST_CASE("evaluate asks trained encoders and translators what they were trained for", "[app][evaluate]") {
    const TemporaryFolder folder;
    const auto trained = [&](const std::string& name, const std::string& preset, const std::string& data,
                             const std::string& objective) {
        const auto job = write_file(folder / (name + ".toml"),
                                    "[model]\npreset = \"" + preset + "\"\n[data]\n" + data +
                                        "\nsequence_length = 24\n[objective]\nkind = \"" + objective +
                                        "\"\n[probe]\nevery = 0\n[sample]\nevery = 0\n[training]\nsteps = 2\nbatch = "
                                        "4\nthreads = 1\n");
        check_success(run_headscope({"train", job.string(), "-o", (folder / name).string()}));
        return (folder / name).string();
    };
    const auto evaluated = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", "--json", "--length", "24"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out);
    };
    std::string text;
    for (int i = 0; i < 300; ++i) text += "day " + std::to_string(i * i) + " was long. ";
    write_file(folder / "a.txt", text);

    // The generator's held-out part, or named files.
    const std::string classifier = trained("c", "nano-mhe-encoder", "generator = { name = \"agreement\" }", "classify");
    const json own = evaluated({classifier, "--task", "classify", "--sequences", "9"});
    REQUIRE(row_of(own, "accuracy", 24) != nullptr);
    CHECK(row_of(own, "accuracy", 24)->at("count") == 9);
    CHECK(row_of(own, "matthews", 24) != nullptr);
    write_file(folder / "rte.jsonl",
               "{\"text\": \"a b\", \"label\": 1}\n{\"text\": \"c\", \"pair\": \"d\", \"label\": 0}\n");
    const std::string rte = "rte=" + (folder / "rte.jsonl").string();
    const json named = evaluated({classifier, "--task", "classify", "--data", rte, "-o",
                                  (folder / "a.evaluation.h5").string(), "--items", (folder / "i.jsonl").string()});
    CHECK(row_of(named, "f1", 24)->at("task") == "rte");
    const auto items = store::read_items(folder / "a.evaluation.h5");
    REQUIRE(items.size() == 2);
    CHECK(items[0].gold == 1);
    CHECK(items[1].gold == 0);
    CHECK(items[1].task == "rte");
    check_refusal(run_headscope({"evaluate", classifier, "--task", "classify", "--data", rte, rte}), "found rte twice");
    const auto first_line = [&](const char* file) {
        const std::string lines = read_file(folder / file);
        return json::parse(lines.substr(0, lines.find('\n')));
    };
    CHECK(first_line("i.jsonl").at("gold_class") == "1");
    // With id2label classes have names, in items, their texts, the settings and info.
    const std::vector<std::string> classes{"apart", "alike, all"};
    std::filesystem::path snapshot;
    for (const auto& entry : std::filesystem::directory_iterator(folder / "c" / "snapshots")) {
        if (!std::filesystem::exists(entry.path() / "config.json")) continue;
        snapshot = entry.path();
        json config = json::parse(read_file(snapshot / "config.json"));
        config["id2label"] = {{"0", classes[0]}, {"1", classes[1]}};
        write_file(snapshot / "config.json", config.dump());
    }
    REQUIRE_FALSE(snapshot.empty());
    const json labelled = evaluated({classifier, "--task", "classify", "--data", rte, "-o",
                                     (folder / "b.evaluation.h5").string(), "--items", (folder / "j.jsonl").string()})
                              .at("settings");
    CHECK(labelled.at("class_names") == json{{"0", classes}});
    CHECK(first_line("j.jsonl").at("gold") == 1);
    CHECK(first_line("j.jsonl").at("gold_class") == "alike, all");
    const json texts = json::parse(store::read_item_texts(folder / "b.evaluation.h5", 0));
    CHECK(texts.at("requests").at(1).at("continuation") == "alike, all");
    const Outcome about = run_headscope({"info", snapshot.string(), "--json"});
    check_success(about);
    CHECK(json::parse(about.out).at("classes") == classes);
    // Every form reports cut items. The generator's tokenizer makes one token of each word.
    std::string many;
    for (int i = 0; i < 60; ++i) many += "x ";
    write_file(folder / "long.jsonl",
               "{\"text\": \"" + many + "\", \"label\": 1}\n" + "{\"text\": \"c\", \"pair\": \"d\", \"label\": 0}\n");
    const std::string longer = "long=" + (folder / "long.jsonl").string();
    const json cut =
        evaluated({classifier, "--task", "classify", "--data", longer, "-o", (folder / "cut.evaluation.h5").string()});
    CHECK(row_of(cut, "accuracy", 24)->at("cut") == 1);
    CHECK(row_of(named, "f1", 24)->at("cut") == 0);
    CHECK(store::read_evaluation(folder / "cut.evaluation.h5").results.at(0).cut == 1);
    const Outcome table =
        run_headscope({"evaluate", classifier, "--task", "classify", "--data", longer, "--length", "24"});
    check_success(table);
    CHECK(table.out.find("cut") != std::string::npos);
    write_file(folder / "rte.jsonl", "{\"text\": \"a b\", \"label\": 2}\n");
    check_refusal(run_headscope({"evaluate", classifier, "--task", "classify", "--data", rte}), "rte.jsonl:1");

    const std::string masked = trained("m", "nano-mhe-encoder", "text = [\"a.txt\"]\nvalidation = 0.2", "masked");
    const json held_out = evaluated({masked, "--task", "masked"});
    const json given = evaluated({masked, "--task", "masked", "--data", (folder / "a.txt").string(), "--seed", "3"});
    for (const json* one : {&held_out, &given}) {
        REQUIRE(row_of(*one, "loss", 24) != nullptr);
        CHECK(row_of(*one, "loss", 24)->at("value").get<double>() > 0);
        CHECK(row_of(*one, "accuracy", 24)->at("value").get<double>() <= 1);
    }

    const std::string hashed =
        trained("h", "nano-hashformer-md5-pool", "text = [\"a.txt\"]\nvalidation = 0.2", "shuffle_random");
    const json shuffled = evaluated({hashed, "--task", "shuffle_random"});
    CHECK(row_of(shuffled, "loss", 24)->at("value").get<double>() > 0);
    CHECK(shuffled.at("models").at(0).at("embedding_parameters").get<std::int64_t>() > 0);
    check_refusal(run_headscope({"evaluate", hashed, "--task", "masked"}), "a head for the vocabulary");

    const std::string translator =
        trained("t", "nano-mhe-translation", "generator = { name = \"translation\" }", "translation");
    const json translated = evaluated({translator, "--task", "translation", "--beams", "4", "--sequences", "9"});
    CHECK(row_of(translated, "bleu", 24)->at("count") == 9);
    CHECK(row_of(translated, "loss", 24)->at("value").get<double>() > 0);
    CHECK(translated.at("settings").at("beams") == 4);
    CHECK(translated.at("settings").at("length_penalty_of") == "((5 + length) / 6)^alpha");
    // A snapshot's files agree about the decoder's first token, and what they say of beams is the search.
    const auto last = std::filesystem::canonical(std::filesystem::path(translator) / "snapshots" / "last");
    json generation = json::parse(read_file(last / "generation_config.json"));
    CHECK(generation.at("decoder_start_token_id") ==
          json::parse(read_file(last / "config.json")).at("decoder_start_token_id"));
    const auto copy = folder / "copy";
    std::filesystem::copy(last, copy);
    std::filesystem::remove(copy / "manifest.json");
    generation.update({{"num_beams", 3}, {"length_penalty", 2.0}, {"early_stopping", true}});
    write_file(copy / "generation_config.json", generation.dump());
    const auto asked = write_file(folder / "items.jsonl", R"({"source": "1 2 3", "target": "3 2 1"})");
    const json settings = evaluated({copy.string(), "--task", "translation", "--data", asked.string()}).at("settings");
    CHECK(settings.at("beams") == 3);
    CHECK(settings.at("length_penalty") == 2);
    CHECK(settings.at("length_penalty_of") == "length^alpha");
    CHECK(settings.at("early_stopping") == true);
}

TEST_CASE("evaluate of a model of generated data on no text names the task that fits", "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "job.toml", R"([model]
preset = "nano-100k"
hidden_size = 16
intermediate_size = 16
num_attention_heads = 2
[data]
sequence_length = 16
[data.generator]
name = "induction"
symbols = 8
[training]
steps = 2
batch = 2
threads = 1
[evaluation]
every = 0
[probe]
every = 0
)");
    const std::string run = (folder / "run").string();
    check_success(run_headscope({"train", (folder / "job.toml").string(), "-o", run}));
    check_refusal(run_headscope({"evaluate", run, "--task", "perplexity"}), "expected the task induction");
    check_success(run_headscope({"evaluate", run, "--task", "induction", "--sequences", "4"}));
}

TEST_CASE("evaluate of a run reads as long a text as its training did, behind the token that ends texts",
          "[app][evaluate]") {
    const TemporaryFolder folder;
    write_file(folder / "a.txt", kText);
    const std::string job = write_tiny_job(folder.path(), 2).string(), run = (folder / "run").string();
    check_success(run_headscope({"train", job, "-o", run, "--set", "model.max_position_embeddings=128"}));
    const auto evaluated = [&](const std::string& model, const std::vector<std::string>& more) {
        std::vector<std::string> all{"evaluate", model, "--task", "perplexity", "--data", (folder / "a.txt").string(),
                                     "--json"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_headscope(all);
        check_success(outcome);
        return json::parse(outcome.out);
    };
    const json automatic = evaluated(run, {});
    CHECK(automatic.at("models").at(0).at("training_length") == 32);
    const json* loss = row_of(automatic, "loss", 32);
    REQUIRE(loss != nullptr);
    const std::int64_t tokens = std::string(kText).size();
    CHECK(loss->at("count") == tokens);  // the first one is predicted, too
    CHECK(row_of(evaluated(run, {"--prefix", "256"}), "loss", 32)->at("value") == loss->at("value"));
    CHECK(row_of(evaluated(run, {"--prefix", "none"}), "loss", 32)->at("count") == tokens - 1);
    CHECK(row_of(evaluated(run, {"--length", "128"}), "loss", 128) != nullptr);

    // One of before knows its end token by the tokenizer alone; and what is known of no job is the positions.
    const auto older = folder / "older";
    std::filesystem::copy(std::filesystem::canonical(folder / "run" / "snapshots" / "last"), older);
    std::filesystem::remove(older / "generation_config.json");
    std::filesystem::remove(older / "manifest.json");
    json config = json::parse(read_file(older / "config.json"));
    config.erase("eos_token_id");
    write_file(older / "config.json", config.dump());
    const json before = evaluated(older.string(), {"--length", "32"});
    CHECK(before.at("models").at(0).at("training_length") == 128);
    CHECK(row_of(before, "loss", 32)->at("value") == loss->at("value"));
}
