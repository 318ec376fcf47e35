// SPDX-License-Identifier: GPL-3.0-or-later
// Outputs appear whole or not at all, and never where they would destroy something.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

const std::string kText = "In the beginning God created the heaven and the earth.";

Outcome analyse_to(const fs::path& output, const std::string& model = sample().string(), Settings settings = {}) {
    return run_headscope({"analyze", model, "--text", kText, "-o", output.string()}, std::move(settings));
}

}  // namespace

TEST_CASE("an analysis leaves its file, a table and nothing else", "[app][output]") {
    TemporaryFolder folder;
    const Outcome outcome = analyse_to(folder / "x.headscope.h5");
    check_success(outcome);
    CHECK(folder.names() == std::vector<std::string>{"x.headscope.h5"});
    CHECK(outcome.out.find("entropy") != std::string::npos);
    CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') >= 5);  // a heading and four layers
}

TEST_CASE("several models leave a file each, also when they have one name", "[app][output]") {
    TemporaryFolder folder;
    fs::create_directory(folder / "other");
    fs::copy(sample(), folder / "other" / sample().filename(), fs::copy_options::recursive);
    check_success(run_headscope({"analyze", sample().string(), (folder / "other" / sample().filename()).string(),
                                 "--text", kText, "-o", (folder / "two.headscope.h5").string()}));
    const std::string stem = "two." + sample().filename().string();
    CHECK(folder.names() == std::vector<std::string>{"other", stem + "-2.headscope.h5", stem + ".headscope.h5"});
}

TEST_CASE("an existing output is replaced when the job ends well, and kept when it fails", "[app][output]") {
    TemporaryFolder folder;
    const auto output = write_file(folder / "x.headscope.h5", "an older file");
    check_refusal(run_headscope({"analyze", sample().string(), "--text", "", "-o", output.string()}));
    CHECK(read_file(output) == "an older file");
    check_success(analyse_to(output));
    CHECK(read_file(output).compare(0, 8, "\x89HDF\r\n\x1a\n") == 0);
    CHECK(folder.names() == std::vector<std::string>{"x.headscope.h5"});
}

TEST_CASE("an output in a place that does not exist or cannot be written is refused", "[app][output]") {
    TemporaryFolder folder;
    const auto file = write_file(folder / "file", "content");
    check_refusal(analyse_to(folder / "none" / "x.headscope.h5"));
    check_refusal(analyse_to(file / "x.headscope.h5"));
    check_refusal(analyse_to("/proc/x.headscope.h5"));
    check_refusal(analyse_to(folder / (std::string(300, 'n') + ".h5")));
    CHECK(folder.names() == std::vector<std::string>{"file"});
    CHECK(read_file(file) == "content");
}

TEST_CASE("a folder, a device and a pipe are no outputs, and stay what they are", "[app][output]") {
    TemporaryFolder folder;
    const auto fifo = folder / "pipe";
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    fs::create_directory(folder / "folder");
    fs::create_symlink("/dev/null", folder / "null");
    for (const fs::path& output :
         {folder / "folder", folder / "null", fifo, fs::path("/dev/null"), fs::path("/dev/full")}) {
        INFO(output);
        check_refusal(analyse_to(output, sample().string(), {.seconds = 30}));
    }
    CHECK(fs::is_character_file("/dev/null"));
    CHECK(fs::is_character_file("/dev/full"));
    CHECK(fs::is_fifo(fifo));
    CHECK(fs::is_directory(folder / "folder"));
    CHECK(folder.names() == std::vector<std::string>{"folder", "null", "pipe"});
}

TEST_CASE("an output that is an input is refused, by whatever name", "[app][output]") {
    TemporaryFolder folder;
    const auto model = folder / "model";
    fs::create_directory(model);
    for (const auto& entry : fs::directory_iterator(sample()))
        fs::copy_file(entry.path(), model / entry.path().filename());
    const auto ids = write_tokens(folder / "ids.json", {20});
    const std::string before = read_file(model / "model.safetensors"), ids_before = read_file(ids);
    fs::create_symlink(model / "model.safetensors", folder / "symbolic");
    fs::create_hard_link(model / "model.safetensors", folder / "hard");
    for (const fs::path& output :
         {model / "model.safetensors", model / "config.json", model / "tokenizer.json", folder / "symbolic",
          folder / "hard", model / ".." / "model" / "model.safetensors"}) {
        INFO(output);
        check_refusal(analyse_to(output, model.string()));
    }
    check_refusal(run_headscope({"analyze", model.string(), "--tokens", ids.string(), "-o", ids.string()}));
    CHECK(read_file(model / "model.safetensors") == before);
    CHECK(read_file(ids) == ids_before);

    const auto analysis = folder / "x.headscope.h5";
    check_success(analyse_to(analysis, model.string()));
    const std::string whole = read_file(analysis);
    // Before the file is read.
    check_refusal(run_headscope({"export", write_file(folder / "none.h5", "no HDF5").string(), "--figure", "indicators",
                                 "-o", (folder / "x.tex").string()}),
                  "a LaTeX table: ");
    fs::create_symlink(analysis, folder / "x.csv");
    check_refusal(
        run_headscope({"export", analysis.string(), "--figure", "indicators", "-o", (folder / "x.csv").string()}));
    CHECK(read_file(analysis) == whole);
    check_refusal(run_headscope({"convert", model.string(), model.string()}));
    CHECK(read_file(model / "model.safetensors") == before);
}

TEST_CASE("a disk that fills up ends in one line and leaves nothing", "[app][output]") {
    TemporaryFolder folder;
    check_refusal(analyse_to(folder / "x.headscope.h5", sample().string(), {.shell_prefix = "ulimit -f 16;"}));
    CHECK(folder.names().empty());
    const Outcome outcome = run_headscope({"info", sample().string()}, {.standard_output = "/dev/full"});
    check_refusal(outcome);
}

TEST_CASE("a model with other mixers is a checkpoint that names them, and is analyzed", "[app][output][convert]") {
    TemporaryFolder folder;
    const std::string swapped = (folder / "swapped").string();
    check_success(
        run_headscope({"convert", sample().string(), swapped, "--swap", "0=mlp", "--swap", "2-3=rnd_emb_qk"}));
    const Outcome info = run_headscope({"info", swapped});
    check_success(info);
    CHECK(info.out.find("\"mlp\", \"standard\", \"rnd_emb_qk\", \"rnd_emb_qk\"") != std::string::npos);
    check_success(analyse_to(folder / "x.headscope.h5", swapped));
    check_success(run_headscope({"generate", swapped, "--prompt", "And God", "--tokens", "4"}));
    check_refusal(run_headscope({"convert", sample().string(), (folder / "other").string(), "--swap", "0=none"}),
                  "none");
    check_refusal(run_headscope({"convert", sample().string(), (folder / "other").string(), "--swap", "9=mlp"}), "9");
    check_usage_error(run_headscope({"convert", sample().string(), (folder / "other").string(), "--swap", "mlp"}));
    CHECK(folder.names() == std::vector<std::string>{"swapped", "x.headscope.h5"});
}

TEST_CASE("convert averages a run's last snapshots, or checkpoints by name", "[app][output][convert]") {
    TemporaryFolder folder;
    const std::string run = (folder / "run").string();
    const fs::path job = write_tiny_job(folder / ".", 8, "[snapshots]\nevery = 1\nkeep = 5\n");
    check_success(run_headscope({"train", job.string(), "-o", run}));
    const std::string mean = (folder / "mean").string(), two = (folder / "two").string();
    const Outcome five = run_headscope({"convert", "--average", run, mean});
    check_success(five);
    CHECK(five.out.find(R"(mean of 5 checkpoints: "step-000004", "step-000005")") != std::string::npos);
    check_success(run_headscope({"info", mean}));
    check_success(run_headscope({"convert", "--average", "--last", "2", run, two}));
    const std::string named = (folder / "named").string();
    check_success(
        run_headscope({"convert", "--average", run + "/snapshots/step-000007", run + "/snapshots/step-000008", named}));
    CHECK(read_file(folder / "named/model.safetensors") == read_file(folder / "two/model.safetensors"));
    CHECK(read_file(folder / "named/model.safetensors") != read_file(folder / "mean/model.safetensors"));

    // evaluate measures the same mean without writing it.
    const std::string text = write_file(folder / "text.txt", "In the beginning was the word.").string();
    const std::vector<std::string> measure{"--task", "perplexity", "--data", text, "--length", "16", "--json"};
    const auto loss = [&](std::vector<std::string> words) {
        words.insert(words.begin(), "evaluate");
        words.insert(words.end(), measure.begin(), measure.end());
        const Outcome outcome = run_headscope(words);
        check_success(outcome);
        const nlohmann::json document = nlohmann::json::parse(outcome.out);
        return std::pair(document.at("results").at(0).at("value").get<double>(),
                         document.at("models").at(0).at("name").get<std::string>());
    };
    CHECK(loss({run, "--average", "5"}).first == loss({mean}).first);
    CHECK(loss({run, "--average", "2"}).first == loss({two}).first);
    CHECK(loss({run, "--average", "5"}).first != loss({run}).first);
    CHECK(loss({run, "--average", "5"}).second.ends_with(", mean of 5"));
    check_refusal(run_headscope({"evaluate", run, "--average", "6", "--task", "perplexity", "--data", text}),
                  "6 snapshots");
    check_refusal(run_headscope({"evaluate", mean, "--average", "2", "--task", "perplexity", "--data", text}),
                  "--average");

    const std::string none = (folder / "none").string();
    check_refusal(run_headscope({"convert", "--average", "--last", "6", run, none}), "6 snapshots");
    check_refusal(run_headscope({"convert", "--average", sample().string(), run, none}), "tensor \"");
    check_usage_error(run_headscope({"convert", sample().string(), sample().string(), none}));
    check_usage_error(run_headscope({"convert", sample().string(), none, "--last", "2"}));
    check_usage_error(run_headscope({"convert", "--average", "--last", "2", mean, two, none}));
    CHECK_FALSE(fs::exists(none));
}

TEST_CASE("convert names the type that quantized tensors become", "[app][output][convert]") {
    TemporaryFolder folder;
    const fs::path model = fs::path(HEADSCOPE_SOURCE_DIR) / "tests/oracle/generate/data/packed/awq_4";
    const Outcome outcome = run_headscope({"convert", model.string(), (folder / "plain").string()});
    check_success(outcome);
    CHECK(outcome.out.find("tensors, float32 (stored as ") != std::string::npos);
    CHECK(outcome.out.find("as they were") == std::string::npos);
}

TEST_CASE("words are hashed without a model, or by a checkpoint that hashes words", "[app][output]") {
    TemporaryFolder folder;
    const std::string csv = (folder / "words.csv").string();
    check_success(run_headscope({"export", "md5", "lsh", "--figure", "hash", "--words", "Hello there", "-o", csv}));
    const std::string table = read_file(csv);
    CHECK(table.starts_with("model,sequence,hash,word,other,bits,other_bits,differing,cosine\r\n"));
    // The bits of "hello" as the specification prints them.
    CHECK(table.find("MD5,0,MD5,hello,hello,1dec56025892c637efb2601c8e1a3ab4,") != std::string::npos);
    CHECK(table.find("LSH,0,LSH,hello,there,") != std::string::npos);
    check_refusal(run_headscope({"export", "md5", "--figure", "hash", "-o", csv}), "--words");
    check_refusal(run_headscope({"export", sample().string(), "--figure", "hash", "--words", "a", "-o", csv}),
                  "hash embedding");
}
