// SPDX-License-Identifier: GPL-3.0-or-later
// Inputs made to hurt: what they may cost in time and memory, and that nothing outside is touched. A choice; hundreds
// more are in tests/hostile (label slow).
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <thread>

#include "core/checkpoint/checkpoint.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::string kText = "In the beginning God created the heaven and the earth.";
constexpr double kMegabytes = 600;

/// A refusal within `seconds` of processor time (a second, and as much again for a slow machine) and 600 MB, that names
/// `part`.
void refused(const std::vector<std::string>& arguments, const std::string& part, double seconds = 2.0,
             Settings settings = {}) {
    std::string line;
    for (const auto& argument : arguments) line += " " + argument.substr(0, 100);
    INFO("headscope" << line);
    const Outcome outcome = run_headscope(arguments, std::move(settings));
    check_refusal(outcome, part);
    CHECK(outcome.processor_seconds < seconds * kSlowness);
    if (kSlowness == 1.0) CHECK(outcome.megabytes < kMegabytes);
    CHECK(outcome.err.find("no error from a library") == std::string::npos);
}

std::string weights(const std::string& header) {
    std::string bytes(8, '\0');
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
    return bytes + header;
}

/// A Llama of ten gigabytes, all of them holes: reading it would take many seconds.
fs::path huge_model(const fs::path& folder) {
    fs::create_directory(folder);
    const std::int64_t d = 8192, f = 28672, v = 32000, g = 1024;
    const json config = {{"model_type", "llama"},
                         {"hidden_size", d},
                         {"intermediate_size", f},
                         {"num_hidden_layers", 4},
                         {"num_attention_heads", 64},
                         {"num_key_value_heads", 8},
                         {"vocab_size", v},
                         {"rms_norm_eps", 1e-5},
                         {"max_position_embeddings", 64},
                         {"tie_word_embeddings", true},
                         {"torch_dtype", "float32"}};
    write_file(folder / "config.json", config.dump());
    json header;
    std::int64_t at = 0;
    const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
        std::int64_t bytes = 4;
        for (const std::int64_t size : shape) bytes *= size;
        header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
        at += bytes;
    };
    add("model.embed_tokens.weight", {v, d});
    add("model.norm.weight", {d});
    for (int layer = 0; layer < 4; ++layer) {
        const std::string stem = "model.layers." + std::to_string(layer) + ".";
        for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(stem + norm + ".weight", {d});
        for (const char* part : {"q_proj", "o_proj"}) add(stem + "self_attn." + part + ".weight", {d, d});
        for (const char* part : {"k_proj", "v_proj"}) add(stem + "self_attn." + part + ".weight", {g, d});
        for (const char* part : {"gate_proj", "up_proj"}) add(stem + "mlp." + part + ".weight", {f, d});
        add(stem + "mlp.down_proj.weight", {d, f});
    }
    const fs::path file = write_file(folder / "model.safetensors", weights(header.dump()));
    fs::resize_file(file, fs::file_size(file) + static_cast<std::uintmax_t>(at));
    return folder;
}

/// Sends SIGINT after `delay` seconds: the program ends within a second (or twenty where others keep
/// the processors busy), with nothing left in `folder` that was not
/// there before.
void stops(const std::vector<std::string>& arguments, double delay, const TemporaryFolder& folder) {
    INFO(arguments.front() << " after " << delay);
    const auto before = folder.names();
    Process process(arguments, {.standard_output = "/dev/null", .seconds = 30});
    std::this_thread::sleep_for(std::chrono::duration<double>(delay));
    process.signal(SIGINT);
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome = process.wait();
    INFO(outcome.err);
    CHECK_FALSE(outcome.timed_out);
    CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 20.0 * kSlowness);
    const bool full = outcome.err.find("free space") != std::string::npos;
    CHECK((outcome.status == 130 || outcome.status == 0 || full));  // 0: it was done before
    CHECK(folder.names() == before);
}

}  // namespace

TEST_CASE("impossible requests are refused before ten gigabytes of weights are read", "[app][hostile]") {
    TemporaryFolder folder;
    const auto model = huge_model(folder / "model").string();
    const auto good = write_file(folder / "good.json", "[[1, 2, 3]]").string();
    const auto with = [&](std::vector<std::string> more, const std::string& output = "x.headscope.h5") {
        std::vector<std::string> all{"analyze", model, "-o", (folder / output).string()};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    };
    refused(with({"--tokens", write_tokens(folder / "long.json", {65}).string()}), "64");
    refused(with({"--tokens", write_file(folder / "id.json", "[[32000]]").string()}), "32000");
    refused(with({"--tokens", good, "--layers", "4"}), "--layers");
    refused(with({"--tokens", good, "--layers", "1", "--skip", "1"}), "--layers");
    refused(with({"--tokens", good}, "none/x.headscope.h5"), "none");
    refused(with({"--tokens", good}, "good.json"), "not an input");
    refused(with({"--tokens", good}, "model/model.safetensors"), "not an input");
    const Outcome info = run_headscope({"info", model});
    check_success(info);
    CHECK(info.processor_seconds < 2.0 * kSlowness);
    CHECK(folder.names() == std::vector<std::string>{"good.json", "id.json", "long.json", "model"});
}

TEST_CASE("recording logits of an encoder without a head is refused before its weights are read", "[app][hostile]") {
    TemporaryFolder folder;
    const auto model =
        sample_with_config(folder / "model", [](json& config) { config["tie_word_embeddings"] = false; });
    refused({"analyze", model.string(), "--text", kText, "--record", "logits", "-o", (folder / "x.h5").string()},
            "--record logits");
    refused({"generate", model.string(), "--prompt", "a"}, "head");
}

TEST_CASE("PyTorch files of before version 1.6 take no more than they have", "[app][hostile]") {
    using namespace std::string_literals;
    TemporaryFolder folder;
    const std::string head =
        "\x80\2\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
        "\x80\2M\xe9\3."
        "\x80\2}U\rlittle_endian\x88s."s;
    std::string lists = head + "\x80\2";
    for (int i = 0; i < 20'000'000; ++i) lists += "]0";
    const auto file = [&](const std::string& bytes) { return write_file(folder / "x.pt", bytes).string(); };
    refused({"info", file(lists)}, "objects", 4.0);
    const std::string storage =
        "((U\7storagectorch\nFloatStorage\nU\0010U\3cpu\x8a\10\0\0\0\0\0\0\0\x10NtQK\0)"
        ")\x89"
        "ccollections\nOrderedDict\n)RtR"s;
    const std::string value = "\x80\2}U\1wctorch._utils\n_rebuild_tensor_v2\n" + storage + "s.";
    refused({"info", file(head + value + "\x80\2]U\0010a." + "\0\0\0\0\0\0\0\x10"s)}, "to the end");
    refused({"info", file(head + value + "\x80\2]U\0011a.")}, "each storage once");
}

TEST_CASE("long and deep texts take no more memory than their bytes justify", "[app][hostile]") {
    TemporaryFolder folder;
    std::string brackets = "[";
    for (int i = 0; i < 5'000'000; ++i) brackets += "[],";
    const auto x = (folder / "x.h5").string();
    const auto ids = [&](const std::string& content) { return write_file(folder / "ids.json", content).string(); };
    refused({"analyze", sample().string(), "--tokens", ids(brackets), "-o", x}, "ids.json, byte 3", 2);
    refused({"analyze", sample().string(), "--tokens", ids(std::string(1'000'000, '[')), "-o", x}, "ids.json");
    refused({"analyze", sample().string(), "--tokens", ids("[[" + std::string(1'000'000, '9') + "]]"), "-o", x},
            "ids.json");
    refused({"analyze", sample().string(), "--file", "-", "-o", x}, "standard input", 2,
            {.standard_input = "/dev/zero"});
    const auto model = linked_sample(folder / "model", {"config.json"});
    write_file(model / "config.json", "{\"a\":" + brackets);
    refused({"info", model.string()}, "config.json", 3);
    fs::resize_file(write_file(folder / "holes", "x"), std::uintmax_t{1} << 40U);
    refused({"analyze", sample().string(), "--file", (folder / "holes").string(), "-o", x}, "holes");
    refused({"info", (folder / "holes").string()}, "holes");
}

TEST_CASE("a header of a hundred megabytes is read or refused within the bounds", "[app][hostile]") {
    TemporaryFolder folder;
    std::string many = "{";
    for (int i = 0; i < 600'000; ++i) {
        many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[],"data_offsets":[0,0]})";
    }
    refused({"info", write_file(folder / "many.safetensors", weights(many + "}")).string()}, "500000 tensors", 5);
    std::string spaces = "{" + std::string(99'999'990, ' ') + "}";
    const Outcome outcome =
        run_headscope({"info", write_file(folder / "spaces.safetensors", weights(spaces)).string()});
    check_success(outcome);
    if (kSlowness == 1.0) CHECK(outcome.megabytes < kMegabytes);
}

TEST_CASE("shards that all hold more than the index names are not all held", "[app][hostile]") {
    TemporaryFolder folder;
    std::string many = "{";
    for (int i = 0; i < 400'000; ++i) {
        many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    }
    write_file(folder / "s0.safetensors", weights(many + "}"));
    json map;
    for (int i = 0; i < 20; ++i) {
        const std::string name = "s" + std::to_string(i) + ".safetensors";
        map[std::to_string(i)] = name;
        if (i > 0) fs::create_symlink("s0.safetensors", folder / name);
    }
    write_file(folder / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
    refused({"info", folder.path().string()}, "500 000 tensors in all shards", 5);
}

TEST_CASE("heads and layers that a configuration claims are not made before the file bears them out",
          "[app][hostile]") {
    TemporaryFolder folder;
    json config = {
        {"model_type", "bloom"}, {"n_embed", 65536}, {"n_head", 65536}, {"n_layer", 4096}, {"vocab_size", 10}};
    json header;
    for (int i = 0; i < 4096; ++i)
        header["t" + std::to_string(i)] = {{"dtype", "U8"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
    fs::create_directory(folder / "model");
    write_file(folder / "model/config.json", config.dump());
    write_file(folder / "model/model.safetensors", weights(header.dump()));
    const auto ids = write_file(folder / "ids.json", "[[1]]").string();
    const auto x = (folder / "x.h5").string();
    refused({"analyze", (folder / "model").string(), "--tokens", ids, "-o", x}, "found none of these");
    config["n_embed"] = config["n_head"] = 100'000'000;
    write_file(folder / "model/config.json", config.dump());
    refused({"analyze", (folder / "model").string(), "--tokens", ids, "-o", x}, "n_head] expected at most 65536");
}

TEST_CASE("a HeadVis tree whose configuration claims many heads, intervals or measures is refused", "[app][hostile]") {
    TemporaryFolder folder;
    const fs::path tree = folder / "tree";
    fs::create_directories(tree / "heads");
    write_file(tree / "scatter_data.json", "[]");
    write_file(tree / "heads/L0H0.json", R"({"sequences": []})");
    write_file(tree / "heads/L0H4095.json", R"({"sequences": []})");
    json config{{"heads", {{0, 0}, {0, 4095}}}, {"n_layers", 4096}};
    write_file(tree / "config.json", config.dump());
    refused({"info", tree.string()}, "4096 layers of up to 4096 heads");
    config["n_layers"] = 16;
    config["n_intervals"] = 1000;
    write_file(tree / "config.json", config.dump());
    refused({"info", tree.string()}, "fewer texts and cells");
    config["n_intervals"] = 1;
    config["metrics"] = json::array();
    for (int i = 0; i < 100; ++i) config["metrics"].push_back("measure_" + std::to_string(i));
    write_file(tree / "config.json", config.dump());
    refused({"info", tree.string()}, "fewer texts and cells");
}

TEST_CASE("Ctrl-C is heard while files are opened and hashed", "[app][hostile][interrupt]") {
    TemporaryFolder folder;
    const auto big = folder / "big.safetensors";
    write_file(big, weights(R"({"a":{"dtype":"U8","shape":[4294967296],"data_offsets":[0,4294967296]}})"));
    fs::resize_file(big, fs::file_size(big) + (std::uintmax_t{1} << 32U));
    const auto spaces = write_file(folder / "spaces.safetensors", weights("{" + std::string(99'000'000, ' ') + "}"));
    stops({"convert", big.string(), (folder / "copy").string()}, 0.5, folder);
    stops({"info", spaces.string()}, 0.4, folder);
}

TEST_CASE("one output of two processes ends as one whole file", "[app][hostile][output]") {
    TemporaryFolder folder;
    const auto output = (folder / "x.headscope.h5").string(), copy = (folder / "copy").string();
    for (int round = 0; round < 3; ++round) {
        Process first({"analyze", sample().string(), "--text", kText, "-o", output});
        Process second({"analyze", sample().string(), "--text", kText + kText, "-o", output});
        const Outcome a = first.wait(), b = second.wait();
        INFO(a.err << b.err);
        CHECK((a.status == 0 && b.status == 0));
        check_success(run_headscope({"info", output}));
        CHECK(folder.names() == std::vector<std::string>{"x.headscope.h5"});
        fs::remove(output);

        Process one({"convert", sample().string(), copy});
        Process other({"convert", sample().string(), copy});
        const Outcome c = one.wait(), d = other.wait();
        INFO(c.err << d.err);
        CHECK(((c.status == 0) != (d.status == 0) || round > 0));  // a folder that is there is not replaced
        CHECK(headscope::checkpoint::Checkpoint::open(copy)->tensors().size() == 38);
        CHECK(folder.names() == std::vector<std::string>{"copy"});
        fs::remove_all(copy);
    }
}

TEST_CASE("a job that is killed leaves its output whole or not at all, and names of partial files only",
          "[app][hostile][output]") {
    for (const double delay : {0.05, 0.15, 0.25, 0.35}) {
        TemporaryFolder folder;
        Process process({"convert", sample().string(), (folder / "copy").string(), "--dtype", "float16"});
        std::this_thread::sleep_for(std::chrono::duration<double>(delay));
        process.signal(SIGKILL);
        process.wait();
        for (const auto& name : folder.names()) CHECK((name == "copy" || name == "copy.partial"));
        if (fs::exists(folder / "copy"))
            CHECK(headscope::checkpoint::Checkpoint::open(folder / "copy")->tensors().size() == 38);
    }
}

TEST_CASE("Hugging Face's cache, links into blobs, opens for everything that is read", "[app][hostile]") {
    TemporaryFolder folder;
    const auto blobs = folder / "hub/blobs", snapshot = folder / "hub/snapshots/rev";
    fs::create_directories(blobs);
    fs::create_directories(snapshot);
    int number = 0;
    for (const auto& entry : fs::directory_iterator(sample())) {
        const std::string blob = std::to_string(number++);
        fs::copy_file(entry.path(), blobs / blob);
        fs::create_symlink(fs::path("../../blobs") / blob, snapshot / entry.path().filename());
    }
    write_file(folder / "real.txt", kText);
    fs::create_symlink("real.txt", folder / "text.txt");
    const auto real = folder / "real.headscope.h5", link = folder / "link.headscope.h5";
    check_success(
        run_headscope({"analyze", snapshot.string(), "--file", (folder / "text.txt").string(), "-o", real.string()}));
    fs::create_symlink("real.headscope.h5", link);
    check_success(run_headscope({"info", link.string()}));
    check_success(run_headscope({"export", link.string(), "--figure", "radar", "-o", (folder / "x.csv").string()}));
    refused({"export", link.string(), "--figure", "radar", "-o", (folder / "x.csv").string()}, "nobody", 0.0 + 1e9,
            {.environment = {"HEADSCOPE_KERNELS=nobody"}});
}

TEST_CASE("paths and names from files are shown escaped", "[app][hostile]") {
    TemporaryFolder folder;
    const auto file = write_file(folder / "a\x1b[31m\n\xFF.safetensors",
                                 weights(R"({"\u001b[2J\u202e":{"dtype":"F33","shape":[],"data_offsets":[0,0]}})"));
    const Outcome outcome = run_headscope({"info", file.string()});
    check_refusal(outcome, "a\\x1B[31m\\x0A\\xFF.safetensors");
    CHECK(outcome.err.find("\\x1B[2J\\u{202E}") != std::string::npos);
    CHECK(outcome.err.find('\x1b') == std::string::npos);
    const auto named = write_file(folder / "b.safetensors",
                                  weights(R"({"\u001b[2J\u202e":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"));
    const Outcome listed = run_headscope({"info", named.string(), "--tensors"});
    check_success(listed);
    CHECK(listed.out.find('\x1b') == std::string::npos);

    const std::string name =
        "a\xC2\x9B"
        "31m\xE2\x80\xAE\xE2\x81\xA6\xD8\x9C\x7F \xC3\xA9";
    json header;
    header[name] = {{"dtype", "F32"}, {"shape", {0}}, {"data_offsets", {0, 0}}};
    const auto marked = write_file(folder / "c\xE2\x80\xAE.safetensors", weights(header.dump()));
    const Outcome told = run_headscope({"info", marked.string(), "--json"});
    check_success(told);
    CHECK(told.out.find("a\\u009b31m\\u202e\\u2066\\u061c\\u007f \xC3\xA9") != std::string::npos);
    for (const char* raw : {"\xC2\x9B", "\xE2\x80\xAE", "\xE2\x81\xA6", "\xD8\x9C", "\x7F"})
        CHECK(told.out.find(raw) == std::string::npos);
    CHECK(json::parse(told.out).at("tensors").at(0).at("name") == name);
}

TEST_CASE("folders and files whose names are no UTF-8 are analysed", "[app][hostile]") {
    TemporaryFolder folder;
    const auto model = linked_sample(folder / "bad\xFF", {});
    const auto text = write_file(folder / "t\xFE.txt", kText);
    const auto output = (folder / "x.headscope.h5").string();
    check_success(run_headscope({"analyze", model.string(), "--file", text.string(), "-o", output}));
    const Outcome info = run_headscope({"info", output, "--json"});
    check_success(info);
    CHECK(json::parse(info.out).at("model") == "bad<0xFF>");
    check_success(run_headscope({"analyze", model.string(), "--text", kText, "--json", "-o", output}));
    check_success(run_headscope({"generate", model.string(), "--prompt", "And", "--tokens", "2", "--json"}));
}

TEST_CASE("numbers that no float64 holds are refused in our own words", "[app][hostile]") {
    TemporaryFolder folder;
    for (const char* number : {"1e400", "-1e400"}) {
        const auto model = folder / number;
        linked_sample(model, {"config.json"});
        std::string config = read_file(sample() / "config.json");
        config.replace(config.find("10000.0"), 7, number);
        write_file(model / "config.json", config);
        const std::string part = std::string("expected a number that float64 can hold; found ") + number;
        refused({"analyze", model.string(), "--text", kText, "-o", (folder / "x.h5").string()}, part);
        refused({"info", model.string()}, part);
    }
}

#ifdef HEADSCOPE_WITH_WINDOW
TEST_CASE("a figure that is drawn without a runtime folder leaves none", "[app][hostile][output]") {
    TemporaryFolder folder;
    const auto analysis = (folder / "x.headscope.h5").string();
    check_success(run_headscope({"analyze", sample().string(), "--text", kText, "-o", analysis}));
    fs::create_directory(folder / "tmp");
    fs::create_directory(folder / "open");
    fs::permissions(folder / "open", fs::perms(0755));
    for (const std::string& runtime : {std::string(), (folder / "open").string(), (folder / "none").string()}) {
        check_success(
            run_headscope({"export", analysis, "--figure", "radar", "-o", (folder / "x.pdf").string()},
                          {.environment = {"XDG_RUNTIME_DIR=" + runtime, "TMPDIR=" + (folder / "tmp").string()}}));
        CHECK(fs::is_empty(folder / "tmp"));
        CHECK(fs::is_empty(folder / "open"));
        CHECK_FALSE(fs::exists(folder / "none"));
        fs::remove(folder / "x.pdf");
    }
}
#endif

TEST_CASE("a model that asks for code of its own is named, and its tensors are listed", "[app][hostile]") {
    TemporaryFolder folder;
    const auto unknown = sample_with_config(folder / "unknown", [](json& config) {
        config["model_type"] = "evil";
        config["auto_map"] = {{"AutoModelForCausalLM", "modeling.Model"}};
    });
    write_file(unknown / "modeling.py", "open('" + (folder / "ran").string() + "', 'w')");
    refused({"analyze", unknown.string(), "--text", kText, "-o", (folder / "x.h5").string()}, "auto_map");
    const Outcome info = run_headscope({"info", unknown.string(), "--json"});
    check_success(info);
    const auto document = json::parse(info.out);
    CHECK(document.at("tensors").size() == 38);
    CHECK(document.at("problems").at(0).get<std::string>().find("evil") != std::string::npos);
    CHECK_FALSE(fs::exists(folder / "ran"));

    const auto known = sample_with_config(folder / "known", [](json& config) {
        config["auto_map"] = {{"AutoModelForCausalLM", "modeling.Model"}};
    });
    const Outcome opened = run_headscope({"info", known.string(), "--json"});
    check_success(opened);
    CHECK(json::parse(opened.out).at("notes").dump().find("auto_map") != std::string::npos);
}
