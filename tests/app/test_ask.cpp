// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <fstream>

#include "core/store/ask/ask_file.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope;
using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

Outcome ask(const std::string& tool, const std::filesystem::path& output, const std::vector<std::string>& more) {
    std::vector<std::string> all{"ask", tool, sample().string(), "-o", output.string()};
    all.insert(all.end(), more.begin(), more.end());
    return run_headscope(all);
}

void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("ask writes a file for each tool, and export draws it", "[app][ask]") {
    const TemporaryFolder folder;
    const std::vector<std::string> text{"--text", "In the beginning God created the heaven"};
    const auto joined = [](std::vector<std::string> all, const std::vector<std::string>& more) {
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    check_success(
        ask("lens", folder / "lens.ask.h5", joined(text, {"--top", "3", "--csv", (folder / "l.csv").string()})));
    check_success(ask("ablate", folder / "ablate.ask.h5", joined(text, {"--rank", (folder / "rank.csv").string()})));
    CHECK(std::filesystem::file_size(folder / "rank.csv") > 100);
    check_success(
        ask("attribution", folder / "attribution.ask.h5", joined(text, {"--answer", "5", "--against", "6,7"})));
    check_success(ask("knockout", folder / "knockout.ask.h5",
                      joined(text, {"--queries", "-1", "--keys", "0-1", "--window", "1"})));
    const Outcome steering = ask("steer", folder / "steer.ask.h5",
                                 joined(text, {"--positive", "In the beginning", "--negative", "God created",
                                               "--factors=-1,2", "--save-vector", (folder / "v.gguf").string()}));
    CHECK(steering.status == 0);
    REQUIRE(steering.messages().size() == 1);
    CHECK(steering.messages().front().find("has no direction for block 0") != std::string::npos);
    check_success(
        ask("kinds", folder / "kinds.ask.h5",
            joined(text, {"--drawn", "2", "--half", "6", "--seed", "3", "--needle", "0-2", "--generate", "2"})));
    check_success(ask("kinds", folder / "drawn.ask.h5", {"--half", "4", "--exclude-first"}));
    const store::AskRecord kinds = store::read_ask(folder / "kinds.ask.h5");
    REQUIRE(kinds.sequences.size() == 3);
    CHECK(kinds.sequences[1].ids.back() == kinds.sequences[1].ids.at(kinds.sequences[1].ids.size() - 7));
    CHECK(store::read_ask(folder / "drawn.ask.h5").sequences.size() == 4);
    check_success(ask("circuits", folder / "circuits.ask.h5", {"--pairs", "2", "--heads", "1.0"}));
    const store::AskRecord circuits = store::read_ask(folder / "circuits.ask.h5");
    for (const double score : circuits.table("/circuits/copying_score").values)
        CHECK((score >= -1.0001 && score <= 1.0001));
    const auto plan = folder / "steer.toml";
    write(plan, "[[intervention]]\npoint = \"hidden\"\nwhat = \"add\"\nfactor = 0\nvector = \"v.gguf\"\n");
    check_success(ask(
        "steer", folder / "stored.ask.h5",
        joined(text, {"--vector", (folder / "v.gguf").string(), "--factors=-1,2", "--interventions", plan.string()})));
    const store::AskRecord steered = store::read_ask(folder / "steer.ask.h5");
    const store::AskRecord stored = store::read_ask(folder / "stored.ask.h5");
    const std::vector<double>& first = steered.table("/steer/value").values;
    for (std::size_t i = 2; i < first.size(); ++i)  // block 0 has no direction in the file
        CHECK(stored.table("/steer/value").values.at(i) == Approx(first[i]).margin(1e-4));
    check_success(ask("patch", folder / "patch.ask.h5",
                      {"--clean", "In the beginning", "--corrupted", "In the beginning", "--sites",
                       "hidden,head_output", "--answer", "5", "--against", "6"}));
    const store::AskRecord lens = store::read_ask(folder / "lens.ask.h5");
    CHECK(lens.complete);
    CHECK(lens.tool == "lens");
    CHECK(lens.sequences.at(0).text == "In the beginning God created the heaven");
    CHECK(std::filesystem::file_size(folder / "l.csv") > 100);
    // Equal texts: no patch changes anything.
    const store::AskRecord patch = store::read_ask(folder / "patch.ask.h5");
    for (const double value : patch.table("/patch/value/hidden").values)
        CHECK(value == Approx(patch.table("/patch/clean").values.at(0)).margin(1e-4));
    for (const auto& [file, figure] :
         {std::pair("lens", "lens"), std::pair("patch", "patch-layers"), std::pair("patch", "patch-heads"),
          std::pair("ablate", "ablation-heads"), std::pair("attribution", "attribution"),
          std::pair("knockout", "knockout"), std::pair("steer", "steering"), std::pair("kinds", "head-kinds"),
          std::pair("circuits", "circuits")}) {
        INFO(figure);
        const auto output = folder / (std::string(figure) + ".csv");
        check_success(run_headscope({"export", (folder / (std::string(file) + ".ask.h5")).string(), "--figure", figure,
                                     "-o", output.string()}));
        CHECK(std::filesystem::file_size(output) > 20);
    }
    check_refusal(run_headscope({"export", (folder / "lens.ask.h5").string(), "--figure", "attribution", "-o",
                                 (folder / "x.csv").string()}),
                  "expected a file of headscope ask attribution");
    check_refusal(ask("patch", folder / "p.ask.h5",
                      {"--clean", "In the beginning", "--corrupted", "In the beginning God", "--sites", "hidden",
                       "--answer", "5", "--against", "6"}),
                  "use --align edges");
    check_refusal(ask("patch", folder / "p.ask.h5", {"--corrupted", "In", "--sites", "hidden", "--answer", "5"}),
                  "[--clean] expected texts, here or as --clean-tokens");
    check_refusal(ask("patch", folder / "p.ask.h5", {"--clean", "In", "--sites", "hidden", "--answer", "5"}),
                  "[--corrupted] expected texts");
    check_refusal(ask("attribution", folder / "a.ask.h5", text), "--answer");
    check_refusal(ask("attribution", folder / "a.ask.h5", joined(text, {"--answer", "5", "--dtype", "bfloat16"})),
                  "[--dtype] expected float32 for ask attribution");
    check_usage_error(ask("kinds", folder / "a.ask.h5", joined(text, {"--half", "4"})));
    check_usage_error(ask("kinds", folder / "a.ask.h5", joined(text, {"--drawn", "0", "--seed", "3"})));
    check_refusal(ask("knockout", folder / "a.ask.h5", joined(text, {"--queries", "0", "--keys", "1"})), "--queries");
    check_refusal(ask("knockout", folder / "a.ask.h5", joined(text, {"--queries", "1"})), "--keys");
    check_refusal(ask("circuits", folder / "a.ask.h5", {"--heads", "1.0"}), "--pairs");
    check_usage_error(ask("circuits", folder / "a.ask.h5", {"--length", "4"}));
    check_refusal(ask("circuits", folder / "a.ask.h5", {"--pairs", "1", "--heads", "99.0"}), "[--heads]");
    check_refusal(ask("kinds", folder / "a.ask.h5", joined(text, {"--generate", "2"})), "--needle");
    check_refusal(ask("generate", folder / "a.ask.h5", joined(text, {"--generate", "2", "--replace", "1=5,1=6"})),
                  "[--replace] expected each step once");
    check_refusal(ask("steer", folder / "a.ask.h5", text), "either positive and negative texts or --vector");
    check_refusal(
        ask("steer", folder / "a.ask.h5", joined(text, {"--positive", "In", "--negative", "the", "--factors", "1,x"})),
        "--factors");
    check_usage_error(ask("lens", folder / "a.ask.h5", joined(text, {"--how", "zero"})));
    check_usage_error(ask("tree", folder / "a.ask.h5", text));
}

TEST_CASE("ask generate and ask series write files that resume, and export draws them", "[app][ask]") {
    const TemporaryFolder folder;
    const std::vector<std::string> text{"--text", "In the beginning"};
    const auto with = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all = text;
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    for (const bool resumes : {false, true}) {
        std::vector<std::string> steps{"--generate", "3", "--top", "2", "--record", "maps"};
        std::vector<std::string> models{"ask", "series", sample().string(), sample().string()};
        models.insert(models.end(), {"-o", (folder / "series.ask.h5").string()});
        models.insert(models.end(), text.begin(), text.end());
        if (resumes) {
            steps.emplace_back("--resume");
            models.emplace_back("--resume");
        }
        check_success(ask("generate", folder / "generate.ask.h5", with(steps)));
        check_success(run_headscope(models));
    }
    const store::AskRecord generated = store::read_ask(folder / "generate.ask.h5");
    CHECK(generated.complete);
    CHECK(generated.table("/generate/token").values.size() == 3);
    const store::AskRecord series = store::read_ask(folder / "series.ask.h5");
    CHECK(series.complete);
    REQUIRE(series.names.size() == 1);
    CHECK(series.names[0].values == std::vector<std::string>{sample().string(), sample().string()});
    const std::vector<double>& losses = series.table("/series/loss").values;
    REQUIRE(losses.size() == 2);
    CHECK(losses[0] == losses[1]);
    std::filesystem::create_directory(folder / "run");
    for (const char* step : {"step-20", "step-3"})
        std::filesystem::create_directory_symlink(sample(), folder / "run" / step);
    check_success(run_headscope({"ask", "series", (folder / "run").string(), "-o", (folder / "steps.ask.h5").string(),
                                 "--text", "In the beginning"}));
    const store::AskRecord steps = store::read_ask(folder / "steps.ask.h5");
    CHECK(steps.table("/series/step").values == std::vector<double>{3, 20});
    CHECK(steps.table("/series/loss").values == losses);
    for (const auto& [file, figure] : {std::pair("generate", "generation"), std::pair("series", "timeline")}) {
        INFO(figure);
        const auto output = folder / (std::string(figure) + ".csv");
        check_success(run_headscope({"export", (folder / (std::string(file) + ".ask.h5")).string(), "--figure", figure,
                                     "-o", output.string()}));
        CHECK(std::filesystem::file_size(output) > 20);
    }
}

TEST_CASE("ask series has more checkpoints than a process may open files", "[app][ask]") {
    const TemporaryFolder folder;
    constexpr std::size_t checkpoints = 40;
    fs::create_directory(folder / "run");
    for (std::size_t step = 1; step <= checkpoints; ++step)
        fs::create_directory_symlink(sample(), folder / "run" / ("step-" + std::to_string(step)));
    const auto file = folder / "steps.ask.h5";
    check_success(
        run_headscope({"ask", "series", (folder / "run").string(), "-o", file.string(), "--text", "In the beginning"},
                      {.shell_prefix = "ulimit -n 32;", .seconds = 60 * kSlowness}));
    const store::AskRecord steps = store::read_ask(file);
    CHECK(steps.complete);
    const std::vector<double>& losses = steps.table("/series/loss").values;
    REQUIRE(losses.size() == checkpoints);
    CHECK(losses.back() == losses.front());
}

TEST_CASE("An error leaves the numbers ahead of it in the file of ask, which resumes", "[app][ask]") {
    const TemporaryFolder folder;
    const auto other = sample_with_config(folder / "step-2", [](nlohmann::json& config) {
        config["num_hidden_layers"] = 5;  // of which the file has 4
    });
    const auto file = folder / "series.ask.h5";
    std::vector<std::string> words{"ask", "series", sample().string(), other.string(), "-o", file.string()};
    words.insert(words.end(), {"--text", "In the beginning"});
    check_refusal(run_headscope(words));
    const store::AskRecord partial = store::read_ask(file);
    CHECK_FALSE(partial.complete);
    CHECK(partial.table("/series/done").values.at(0) == 1);
    CHECK_FALSE(partial.table("/series/done").values.at(1) == 1);
    CHECK(partial.table("/series/loss").values.at(0) > 0);
    fs::copy_file(sample() / "config.json", other / "config.json", fs::copy_options::overwrite_existing);
    words.emplace_back("--resume");
    check_success(run_headscope(words));
    const store::AskRecord whole = store::read_ask(file);
    CHECK(whole.complete);
    CHECK(whole.table("/series/loss").values.at(0) == partial.table("/series/loss").values.at(0));
    CHECK(whole.table("/series/loss").values.at(1) == partial.table("/series/loss").values.at(0));
}

TEST_CASE("A file of ask resumes with the texts that it was begun with alone", "[app][ask]") {
    const TemporaryFolder folder;
    const auto source = folder / "text.txt", file = folder / "ablate.ask.h5";
    write(source, "In the beginning God created the heaven");
    const std::vector<std::string> first{"--file", source.string()}, again{"--file", source.string(), "--resume"};
    check_success(ask("ablate", file, first));
    check_success(ask("ablate", file, again));
    write(source, "In the beginning God created the earth");
    check_refusal(ask("ablate", file, again),
                  "expected a file of the same command, texts and model; found one with another texts_sha256, \"");
}

TEST_CASE("analyze, generate and ask take interventions from a file", "[app][ask]") {
    const TemporaryFolder folder;
    const auto plan = folder / "plan.toml";
    write(plan, "[[intervention]]\npoint = \"attention_output\"\nlayer = 0\nwhat = \"zero\"\n");
    const std::vector<std::string> text{"--text", "In the beginning", "--interventions", plan.string()};
    check_success(ask("ablate", folder / "a.ask.h5", text));
    const store::AskRecord edited = store::read_ask(folder / "a.ask.h5");
    CHECK(edited.interventions.find("attention_output") != std::string::npos);
    // A zero that is zero already makes no difference.
    CHECK(edited.table("/ablate/attention").values.at(0) ==
          Approx(edited.table("/ablate/baseline").values.at(0)).margin(1e-5));
    check_success(run_headscope({"analyze", sample().string(), "--text", "In the beginning", "--interventions",
                                 plan.string(), "-o", (folder / "a.headscope.h5").string()}));
    check_success(run_headscope({"generate", sample().string(), "--prompt", "In the beginning", "--tokens", "3",
                                 "--interventions", plan.string()}));
    write(plan, "[[intervention]]\npoint = \"hidden\"\nhead = 1\nwhat = \"zero\"\n");
    check_refusal(ask("lens", folder / "b.ask.h5", text), "[plan.toml: intervention 1] unknown key \"head\"");
    write(plan, "[[intervention]]\npoint = \"hidden\"\nwhat = \"mean\"\n");
    check_refusal(run_headscope({"generate", sample().string(), "--prompt", "In the beginning", "--interventions",
                                 plan.string()}),
                  "mean, which needs all of it");
    write(plan, "[[intervention]]\npoint = \"hidden\"\nwhat = \"zero\"\npositions = \"500-600\"\n");
    constexpr const char* kNone = "[intervention 1] expected positions of a text";
    check_refusal(ask("lens", folder / "c.ask.h5", text), kNone);
    check_refusal(run_headscope({"analyze", sample().string(), "--text", "In the beginning", "--interventions",
                                 plan.string(), "-o", (folder / "c.headscope.h5").string()}),
                  kNone);
    CHECK_FALSE(std::filesystem::exists(folder / "c.ask.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "c.headscope.h5"));
    check_refusal(run_headscope({"generate", sample().string(), "--prompt", "In the beginning", "--tokens", "3",
                                 "--interventions", plan.string()}),
                  kNone);
    // The first generated token, which is read for the second.
    write(plan, "[[intervention]]\npoint = \"hidden\"\nwhat = \"zero\"\npositions = \"" +
                    std::to_string(edited.sequences.at(0).ids.size()) + "\"\n");
    const auto generate = [&](const char* tokens) {
        return ask("generate", folder / "d.ask.h5",
                   {"--text", "In the beginning", "--generate", tokens, "--interventions", plan.string()});
    };
    check_refusal(generate("1"), kNone);
    CHECK_FALSE(std::filesystem::exists(folder / "d.ask.h5"));
    check_success(generate("2"));
}

TEST_CASE("ask refuses an output that is another output, an input or a file of the model, and writes nothing",
          "[app][ask][output]") {
    const TemporaryFolder folder;
    const fs::path model = folder / "model", tokens = folder / "tokens.json", plan = folder / "plan.toml";
    fs::create_directory(model);
    for (const auto& entry : fs::directory_iterator(sample()))
        fs::copy_file(entry.path(), model / entry.path().filename());
    write(tokens, "[[20, 21, 22, 23]]");
    write_tokens(folder / "other.json", {5});
    const Outcome steering_vector =
        ask("steer", folder / "v.ask.h5",
            {"--tokens", tokens.string(), "--positive-tokens", tokens.string(), "--negative-tokens",
             (folder / "other.json").string(), "--factors", "1", "--save-vector", (folder / "v.gguf").string()});
    CHECK(steering_vector.status == 0);  // it warns that block 0 has no direction
    write(plan, "[[intervention]]\npoint = \"hidden\"\nwhat = \"add\"\nvector = \"v.gguf\"\n");
    fs::create_symlink(model / "model.safetensors", folder / "weights");
    const std::vector<std::string> names = folder.names();
    const auto refused = [&](const std::string& tool, const fs::path& output, std::vector<std::string> more,
                             const std::string& part) {
        INFO(tool << " " << output);
        std::vector<std::string> all{"ask", tool, model.string(), "--tokens", tokens.string(), "-o", output.string()};
        all.insert(all.end(), more.begin(), more.end());
        check_refusal(run_headscope(all), part);
        CHECK(folder.names() == names);
        CHECK(read_file(tokens) == "[[20, 21, 22, 23]]");
        CHECK(fs::file_size(model / "model.safetensors") == fs::file_size(sample() / "model.safetensors"));
        CHECK(fs::file_size(model / "config.json") == fs::file_size(sample() / "config.json"));
    };
    const fs::path fresh = folder / "x.ask.h5";
    refused("lens", fresh, {"--csv", fresh.string()}, "[--csv] expected an output of its own");
    refused("ablate", fresh, {"--rank", (folder / "." / "x.ask.h5").string()}, "found the same file as --output");
    refused("ablate", fresh, {"--csv", (folder / "a").string(), "--rank", (folder / "a").string()},
            "found the same file as --csv");
    refused("ablate", fresh, {"--rank", tokens.string()}, "an output that is not an input");
    refused("lens", tokens, {}, "an output that is not an input");
    refused("lens", folder / "weights", {}, "an output that is not an input");
    for (const std::string option : {"--csv", "--rank"})
        for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"})
            refused("ablate", fresh, {option, (model / name).string()}, "an output that is not an input");
    const std::vector<std::string> steering{"--positive-tokens", tokens.string(), "--negative-tokens",
                                            (folder / "other.json").string(), "--save-vector"};
    const auto saved = [&](const fs::path& path) {
        std::vector<std::string> all = steering;
        all.push_back(path.string());
        return all;
    };
    refused("steer", fresh, saved(fresh), "found the same file as --output");
    refused("steer", fresh, saved(folder / "other.json"), "an output that is not an input");
    refused("steer", fresh, saved(model / "model.safetensors"), "an output that is not an input");
    refused("lens", plan, {"--interventions", plan.string()}, "an output that is not an input");
    refused("lens", folder / "v.gguf", {"--interventions", plan.string()}, "an output that is not an input");
    check_refusal(run_headscope({"ask", "series", sample().string(), model.string(), "--tokens", tokens.string(), "-o",
                                 (model / "model.safetensors").string()}),
                  "an output that is not an input");
    CHECK(folder.names() == names);
}
