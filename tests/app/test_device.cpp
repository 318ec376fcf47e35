// SPDX-License-Identifier: GPL-3.0-or-later
// --device with driver libraries of no GPU, and a whole analysis by the emulated GPU kernels.
#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/run/run_history.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope;
using namespace headscope::testing;
using nlohmann::json;

namespace {

/// No AMD GPU, and NVIDIA's as the fake driver has them: a number, or "fails".
Settings with_gpus(const std::string& devices, const std::string& driver = HEADSCOPE_FAKE_DRIVER) {
    return {.environment = {"HEADSCOPE_CUDA_DRIVER=" + driver, "HEADSCOPE_FAKE_GPUS=" + devices,
                            "HEADSCOPE_HIP_DRIVER=/absent/libamdhip64.so"}};
}

/// The same, with kernels that have code for the second GPU alone.
Settings with_kernels(const std::string& devices) {
    Settings settings = with_gpus(devices);
    settings.environment.emplace_back(std::string("HEADSCOPE_CUDA_KERNELS=") + HEADSCOPE_FAKE_DRIVER);
    return settings;
}

std::vector<std::string> analyze(const TemporaryFolder& folder, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{
        "analyze", sample().string(), "--text", "In the beginning", "-o", (folder / "x.headscope.h5").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

json description(const std::filesystem::path& path) {
    const Outcome outcome = run_headscope({"info", path.string(), "--json"});
    check_success(outcome);
    return json::parse(outcome.out);
}

}  // namespace

TEST_CASE("--device cuda without a GPU is one line that says what was found, and status 1", "[app][device]") {
    const TemporaryFolder folder;
    const auto arguments = analyze(folder, {"--device", "cuda"});
    const std::string expected = "headscope: [--device cuda] expected an NVIDIA GPU; found ",
                      driver = std::string("driver library ") + HEADSCOPE_FAKE_DRIVER;
    check_refusal(run_headscope(arguments, with_gpus("2", "/absent/libcuda.so.1")),
                  expected + "no driver library /absent/libcuda.so.1: cannot open shared object file");
    check_refusal(run_headscope(arguments, with_gpus("2", (sample() / "config.json").string())),
                  expected + "no driver library ");
    check_refusal(run_headscope(arguments, with_gpus("0")),
                  expected + driver + " (version 13.2), which reports no device");
    check_refusal(run_headscope(arguments, with_gpus("fails")),
                  expected + driver + ", whose cuInit returns error 999 (CUDA_ERROR_UNKNOWN)");
    check_refusal(
        run_headscope(arguments, with_gpus("2", HEADSCOPE_INCOMPLETE_DRIVER)),
        expected + "driver library " + HEADSCOPE_INCOMPLETE_DRIVER + " without the function cuDeviceGetCount");
    check_refusal(run_headscope(analyze(folder, {"--device", "hip"}), with_gpus("2")),
                  "headscope: [--device hip] expected an AMD GPU; found no driver library /absent/libamdhip64.so");
    CHECK_FALSE(std::filesystem::exists(folder / "x.headscope.h5"));
}

TEST_CASE("A GPU that is not there, or that no kernels are built for, is one line", "[app][device]") {
    const TemporaryFolder folder;
    check_refusal(run_headscope(analyze(folder, {"--device", "cuda:2"}), with_gpus("2")),
                  "headscope: [--device cuda:2] expected an NVIDIA GPU of index 2; found cuda:0 Fake?GPU 0, cuda:1 "
                  "Fake?GPU 1");
    // Built with kernels or without, they have no device here.
    check_refusal(run_headscope(analyze(folder, {"--device", "cuda:1"}), with_gpus("2")),
                  "headscope: [--device cuda:1] expected kernels for cuda:1 Fake?GPU 1 (sm_90); found ");
}

TEST_CASE("A GPU that the kernels have no code for is one line", "[app][device]") {
    const TemporaryFolder folder;
    const std::string found = std::filesystem::path(HEADSCOPE_FAKE_DRIVER).filename().string() +
                              " for sm_75, sm_90: build it with -DHEADSCOPE_CUDA_ARCHITECTURES=80";
    check_refusal(run_headscope(analyze(folder, {"--device", "cuda"}), with_kernels("2")),
                  "headscope: [--device cuda] expected kernels for cuda:0 Fake?GPU 0 (sm_80); found " + found);
    CHECK_FALSE(std::filesystem::exists(folder / "x.headscope.h5"));
    const Outcome automatic = run_headscope(analyze(folder, {"--device", "auto"}), with_kernels("2"));
    CHECK(automatic.status == 0);
    REQUIRE(automatic.messages().size() == 1);
    CHECK(automatic.messages().front().starts_with("headscope: --device auto: cpu (cuda:0 Fake?GPU 0: " + found +
                                                   "; cuda:1 Fake?GPU 1: no kernel of attention; "));
    // Kernels that are named without a device take the first one, too.
    Settings named = with_kernels("2");
    named.environment.emplace_back("HEADSCOPE_KERNELS=cuda");
    check_refusal(run_headscope(analyze(folder, {}), named),
                  "headscope: [HEADSCOPE_KERNELS] expected a GPU for cuda; found " + found + " on cuda:0 Fake?GPU 0");
    check_refusal(run_headscope(analyze(folder, {"--kernels", "cuda"}), with_kernels("2")),
                  "headscope: [--kernels cuda] expected a GPU for them; found " + found + " on cuda:0 Fake?GPU 0");
    // The second GPU is taken; its library has no operators.
    const Outcome taken = run_headscope(analyze(folder, {"--device", "cuda:1"}), with_kernels("2"));
    INFO(taken.err);
    REQUIRE_FALSE(taken.messages().empty());
    CHECK(taken.messages().front().starts_with("headscope: --device cuda:1: "));
    CHECK(taken.err.find("expected kernels for") == std::string::npos);
}

TEST_CASE("--device auto takes the first GPU that the kernels have code for", "[app][device]") {
    const TemporaryFolder folder;
    Settings settings = with_kernels("2");
    settings.environment.emplace_back("HEADSCOPE_FAKE_KERNELS=1");
    const Outcome outcome = run_headscope(analyze(folder, {"--device", "auto"}), settings);
    CHECK(outcome.status == 1);
    REQUIRE(outcome.messages().size() == 2);
    CHECK(outcome.messages().front().starts_with("headscope: --device auto: cuda:1 Fake?GPU 1 sm_90 ("));
    CHECK(outcome.messages().back() == "headscope: [attention] expected a device without faults; found no device");
}

TEST_CASE("No command computes attention on the processor where the GPU has no kernel of it", "[app][device]") {
    const TemporaryFolder folder;
    const std::string model = sample().string();
    const std::filesystem::path text = folder / "a.txt";
    write_file(text, "In the beginning God created the heaven and the earth.\n");
    const std::vector<std::vector<std::string>> commands{
        {"ask", "lens", model, "--text", "In the beginning", "-o", (folder / "x.ask.h5").string()},
        {"evaluate", model, "--task", "perplexity", "--length", "8", "--data", text.string(), "-o",
         (folder / "x.evaluation.h5").string()},
        {"generate", model, "--prompt", "In", "--tokens", "2"},
        {"cost", model, "--measure"},
        {"cost", model, "--latency"},
        {"bench", model, "--length", "64", "--what", "plain"}};
    for (auto arguments : commands) {
        INFO(arguments.front() << " " << arguments.back());
        arguments.insert(arguments.end(), {"--device", "cuda:1"});
        const Outcome outcome = run_headscope(arguments, with_kernels("2"));
        INFO(outcome.err);
        CHECK(outcome.status == 1);
        REQUIRE_FALSE(outcome.messages().empty());
        CHECK(outcome.messages().back().find(
                  "[attention] expected a kernel of the cuda plugin; found none: --device cpu has one") !=
              std::string::npos);
    }
    CHECK_FALSE(std::filesystem::exists(folder / "x.ask.h5"));
    CHECK_FALSE(std::filesystem::exists(folder / "x.evaluation.h5"));
}

TEST_CASE("--device auto without a GPU takes the processor and prints one line", "[app][device]") {
    const TemporaryFolder folder;
    for (const char* devices : {"0", "2", "fails"}) {
        INFO(devices);
        const Outcome outcome = run_headscope(analyze(folder, {"--device", "auto"}), with_gpus(devices));
        CHECK(outcome.status == 0);
        REQUIRE(outcome.messages().size() == 1);
        CHECK(outcome.messages().front().starts_with(
            std::string("headscope: --device auto: cpu (") +
            (std::string(devices) == "2" ? "cuda:0 Fake?GPU 0: " : "no NVIDIA GPU: driver library ")));
        CHECK(outcome.messages().front().find("; no AMD GPU: no driver library /absent/") != std::string::npos);
    }
    const json analysis = description(folder / "x.headscope.h5");
    CHECK(analysis.at("device") == "cpu");
    CHECK(analysis.at("kernels") != "auto");
    check_success(run_headscope(analyze(folder, {"--device", "cpu", "--kernels", "reference"}), with_gpus("fails")));
    CHECK(description(folder / "x.headscope.h5").at("kernels") == "reference");
    const Outcome quiet = run_headscope(analyze(folder, {}), with_gpus("fails"));
    check_success(quiet);
    CHECK(quiet.messages().empty());
}

TEST_CASE("Every command that computes takes --device", "[app][device]") {
    const TemporaryFolder folder;
    const std::string model = sample().string();
    const std::string job = write_tiny_job(folder.path(), 2).string();
    const std::vector<std::vector<std::string>> commands{
        {"ask", "lens", model, "--text", "In the beginning", "-o", (folder / "x.ask.h5").string()},
        {"evaluate", model, "--task", "mqar", "-o", (folder / "x.evaluation.h5").string()},
        {"generate", model, "--prompt", "In the beginning"},
        {"cost", model, "--measure"},
        {"cost", model, "--latency"},
        {"bench", model},
        {"train", job, "-o", (folder / "run").string()}};
    for (auto arguments : commands) {
        INFO(arguments.front());
        arguments.insert(arguments.end(), {"--device", "cuda"});
        check_refusal(run_headscope(arguments, with_gpus("fails")),
                      "headscope: [--device cuda] expected an NVIDIA GPU; found driver library ");
        arguments.back() = "gpu";
        const Outcome outcome = run_headscope(arguments, with_gpus("fails"));
        check_usage_error(outcome);
        CHECK(outcome.err.find("expected auto, cpu, cuda, cuda:N, hip or hip:N") != std::string::npos);
    }
    check_refusal(run_headscope({"train", job, "-o", (folder / "run").string(), "--set", "training.device=cuda:1"},
                                with_gpus("0")),
                  "headscope: [training.device cuda:1] expected an NVIDIA GPU; found driver library ");
    check_usage_error(run_headscope(analyze(folder, {"--device", "cuda", "--kernels", "reference"}), with_gpus("2")));
}

TEST_CASE("Several processes take a GPU each, or end with one line", "[app][device][mpi]") {
    if (!has_mpi()) return;
    const TemporaryFolder folder;
    const std::string job = write_tiny_job(folder.path(), 2).string();
    const auto train = [&](const std::string& device, const std::string& gpus) {
        Settings settings = two_processes();
        const Settings with = with_gpus(gpus);
        settings.environment.insert(settings.environment.end(), with.environment.begin(), with.environment.end());
        return run_headscope({"train", job, "-o", (folder / ("run-" + gpus)).string(), "--device", device}, settings);
    };
    const auto check_line = [](const Outcome& outcome, const std::string& line) {
        INFO(outcome.err);
        CHECK(outcome.status == 1);
        const auto first = outcome.err.find("headscope: ");
        REQUIRE(first != std::string::npos);
        CHECK(outcome.err.substr(first).starts_with(line));
        CHECK(outcome.err.find("headscope: ", first + 1) == std::string::npos);
    };
    check_line(train("cuda", "1"),
               "headscope: [--device cuda] expected an NVIDIA GPU for each of the 2 processes of this machine; found "
               "cuda:0 Fake?GPU 0: start fewer processes, or name one GPU for all\n");
    // Their GPUs have no kernels here: the first of two processes reports it.
    check_line(train("cuda", "2"),
               "headscope: [--device cuda:0] expected kernels for cuda:0 Fake?GPU 0 (sm_80); found ");
    check_line(train("cuda:1", "2"),
               "headscope: [--device cuda:1] expected kernels for cuda:1 Fake?GPU 1 (sm_90); found ");

    const Outcome automatic = train("auto", "1");
    INFO(automatic.err);
    CHECK(automatic.status == 0);
    const std::string line = "headscope: --device auto: cpu (cuda:0 Fake?GPU 0 for 2 processes; no AMD GPU: ";
    const auto first = automatic.err.find(line);
    REQUIRE(first != std::string::npos);
    CHECK(automatic.err.find("--device auto", first + line.size()) == std::string::npos);
}

TEST_CASE("info prints where the numbers of a file were computed", "[app][device]") {
    const TemporaryFolder folder;
    const std::string model = sample().string();
    write_file(folder / "a.txt", "In the beginning God created the heaven and the earth.\n");
    const std::filesystem::path evaluation = folder / "x.evaluation.h5", answer = folder / "x.ask.h5";
    check_success(run_headscope({"evaluate", model, "--task", "perplexity", "--length", "8", "--data",
                                 (folder / "a.txt").string(), "-o", evaluation.string()}));
    check_success(run_headscope({"ask", "lens", model, "--text", "In the beginning", "-o", answer.string()}));
    for (const auto& path : {evaluation, answer}) {
        INFO(path);
        const json document = description(path);
        CHECK(document.at("device") == "cpu");
        CHECK(document.at("device_requested") == "cpu");
        CHECK_FALSE(document.at("kernels").get<std::string>().empty());
        const Outcome text = run_headscope({"info", path.string()});
        check_success(text);
        CHECK(text.out.find("\ndevice requested  cpu\n") != std::string::npos);
    }
}

TEST_CASE("A run records device and kernels", "[app][device]") {
    const TemporaryFolder folder;
    const std::string job = write_tiny_job(folder.path(), 2).string(), run = (folder / "run").string();
    check_success(run_headscope({"train", job, "-o", run}, with_gpus("fails")));
    CHECK(description(run).at("device") == "cpu");
    CHECK_FALSE(description(run).at("kernels").get<std::string>().empty());
}

TEST_CASE("An analysis by the emulated GPU kernels has the results of the processor", "[.slow][emulator]") {
    const TemporaryFolder folder;
    const std::string tokens = write_tokens(folder / "tokens.json", {1, 21, 65}).string();
    const auto analyzed = [&](const std::string& kernels, const std::string& environment = "HEADSCOPE_KERNELS=auto") {
        const std::vector<std::string> arguments{"analyze",
                                                 sample().string(),
                                                 "--tokens",
                                                 tokens,
                                                 "--kernels",
                                                 kernels,
                                                 "--threads",
                                                 "2",
                                                 "--json",
                                                 "-o",
                                                 (folder / (kernels + ".headscope.h5")).string()};
        const Outcome outcome = run_headscope(
            arguments, {.environment = {"HEADSCOPE_EMULATOR=1", environment}, .seconds = 1800 * kSlowness});
        check_success(outcome);
        return json::parse(outcome.out);
    };
    const json processor = analyzed("auto");
    // Float32 sums of at most 65 terms in another order, through four layers: 65 x 4 x 2^-24, and a factor of 10.
    constexpr double kTolerance = 65 * 4 * 0x1p-24 * 10;
    const auto same = [&](const json& one, const json& other) {
        if (one.is_null() || other.is_null()) return one.is_null() && other.is_null();
        const double a = one.get<double>(), b = other.get<double>();
        return std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b));
    };
    for (const std::string backend : {"emulator", "emulator64"}) {
        INFO(backend);
        // One by the option, the other by the environment.
        const json emulated =
            backend == "emulator" ? analyzed(backend) : analyzed("auto", "HEADSCOPE_KERNELS=" + backend);
        CHECK(emulated.at("kernels") == backend);
        CHECK(emulated.at("settings").at("kernels") == backend);
        CHECK(emulated.at("settings").at("device") == "cpu");
        CHECK(emulated.at("problems").empty());
        REQUIRE(emulated.at("loss").size() == processor.at("loss").size());
        for (std::size_t i = 0; i < emulated.at("loss").size(); ++i)
            CHECK(same(emulated.at("loss").at(i), processor.at("loss").at(i)));
        REQUIRE(emulated.at("sites").size() == 4);
        for (std::size_t i = 0; i < 4; ++i) {
            const json &means = emulated.at("sites").at(i).at("means"),
                       &expected = processor.at("sites").at(i).at("means");
            REQUIRE(means.size() == expected.size());
            REQUIRE(means.size() > 3);
            for (const auto& [name, value] : means.items()) {
                INFO("site " << i << ", " << name << ": " << value << ", " << expected.at(name));
                CHECK(same(value, expected.at(name)));
            }
        }
    }
}

TEST_CASE("Training with attention dropout by the emulated GPU kernels has the processor's losses",
          "[.slow][emulator]") {
    const TemporaryFolder folder;
    const std::string job = write_tiny_job(folder.path(), 4).string();
    const auto losses = [&](const std::string& kernels) {
        const std::string run = (folder / kernels).string();
        check_success(run_headscope(
            {"train", job, "-o", run, "--set", "training.attention_dropout=0.3"},
            {.environment = {"HEADSCOPE_EMULATOR=1", "HEADSCOPE_KERNELS=" + kernels}, .seconds = 1800 * kSlowness}));
        return training::read_run(run).training.loss;
    };
    const auto emulated = losses("emulator"), processor = losses("auto");
    REQUIRE(emulated.size() == 4);
    REQUIRE(processor.size() == 4);
    // Sums in another order: a few units in the last place a step. Another mask moves a loss by some 1e-2.
    for (std::size_t i = 0; i < 4; ++i) CHECK(emulated[i] == Approx(processor[i]).epsilon(2e-4));
}
