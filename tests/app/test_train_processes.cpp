// SPDX-License-Identifier: GPL-3.0-or-later
// One model trained by several processes that mpirun starts.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/run/run_history.h"
#include "expectations.h"
#include "files.h"
#include "program.h"
#include "training_job.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

/// Sums in another order: a few units in the last place a step, which the steps that follow make larger.
constexpr double kOrderOfSums = 2e-4;

}  // namespace

TEST_CASE("Two processes have the losses of one", "[app][train][mpi]") {
    if (!has_mpi()) return;
    TemporaryFolder folder;
    const std::string extra = "accumulate = 2\ndropout = 0.2\n";  // what is dropped must not depend on who computes it
    for (const char* precision : {"float32", "bfloat16"}) {
        INFO(precision);
        const fs::path job = write_tiny_job(folder.path(), 20, extra + "precision = \"" + precision + "\"\n");
        const fs::path one = folder / (std::string("one-") + precision),
                       two = folder / (std::string("two-") + precision);
        check_success(run_headscope({"train", job.string(), "-o", one.string()}));
        const Outcome outcome = run_headscope({"train", job.string(), "-o", two.string()}, two_processes());
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        const auto alone = headscope::training::read_run(one), together = headscope::training::read_run(two);
        CHECK(together.processes == 2);
        REQUIRE(together.training.loss.size() == 20);
        // The first loss knows no rounding of an update; of bfloat16 each gradient is rounded before it is added.
        const double tolerance = std::string(precision) == "float32" ? kOrderOfSums : 0.02;
        CHECK(together.training.loss[0] == Approx(alone.training.loss[0]).epsilon(1e-6));
        for (std::size_t i = 0; i < 20; ++i) {
            CHECK(together.training.loss[i] == Approx(alone.training.loss[i]).epsilon(tolerance));
            CHECK(together.training.gradient_norm[i] ==
                  Approx(alone.training.gradient_norm[i]).epsilon(std::max(20 * tolerance, 0.0)));
        }
        CHECK(together.validation.loss.back() == Approx(alone.validation.loss.back()).epsilon(tolerance));
    }
}

TEST_CASE("Two processes have the losses of one, whatever is mixed and learned", "[app][train][mpi]") {
    if (!has_mpi()) return;
    struct Kind {
        const char* name;
        std::vector<std::string> set;
    };
    for (const Kind& kind :
         {Kind{"lazy", {"model.mixer=lazy"}}, Kind{"ttt_linear", {"model.mixer=ttt_linear"}},
          Kind{"streaming_llm", {"model.mixer=streaming_llm"}},
          Kind{"masked", {"objective.kind=masked", "model.preset=nano-mhe-encoder"}},
          // The n-grams and hyperplanes of the first are everybody's.
          Kind{"hashes", {"objective.kind=shuffle_random", "model.preset=nano-hashformer-lsh-add"}}}) {
        INFO(kind.name);
        TemporaryFolder folder;
        std::vector<std::string> arguments = {"train", write_tiny_job(folder.path(), 8, "dropout = 0.1\n").string()};
        for (const std::string& one : kind.set) arguments.insert(arguments.end(), {"--set", one});
        const auto into = [&](const char* name) {
            std::vector<std::string> all = arguments;
            all.insert(all.end(), {"-o", (folder / name).string()});
            return all;
        };
        check_success(run_headscope(into("one")));
        const Outcome outcome = run_headscope(into("two"), two_processes());
        INFO(outcome.err);
        REQUIRE(outcome.status == 0);
        const auto alone = headscope::training::read_run(folder / "one"),
                   together = headscope::training::read_run(folder / "two");
        CHECK(together.processes == 2);
        REQUIRE(together.training.loss.size() == 8);
        for (std::size_t i = 0; i < 8; ++i) {
            CHECK(together.training.loss[i] == Approx(alone.training.loss[i]).epsilon(kOrderOfSums));
            // One of some dozens of targets may be as near to another class as the order of sums.
            if (!std::isnan(alone.training.accuracy[i]))
                CHECK(together.training.accuracy[i] == Approx(alone.training.accuracy[i]).margin(0.05));
            CHECK(std::isnan(together.training.accuracy[i]) == std::isnan(alone.training.accuracy[i]));
        }
    }
}

TEST_CASE("An error in one process ends all of them, reported once", "[app][train][mpi]") {
    if (!has_mpi()) return;
    TemporaryFolder folder;
    const fs::path job = write_tiny_job(folder.path(), 20);
    const Outcome outcome = run_headscope(
        {"train", job.string(), "-o", (folder / "run").string(), "--set", "training.batch=5"}, two_processes());
    CHECK(outcome.status == 1);
    INFO(outcome.err);
    const std::string line = "expected a multiple of the 2 processes";
    const auto first = outcome.err.find(line);
    REQUIRE(first != std::string::npos);
    CHECK(outcome.err.find(line, first + 1) == std::string::npos);
}
