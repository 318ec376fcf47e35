// SPDX-License-Identifier: GPL-3.0-or-later
// Lengths of a run and learning rates, from the keys of a job and from time.
#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/training/job/job.h"
#include "core/training/job/job_keys.h"
#include "core/training/job/run_end.h"
#include "core/training/job/schedule.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/training/job_sample.h"
#include "tests/oracle/golden.h"

using namespace headscope;
using namespace headscope::test::jobs;
using namespace headscope::training;
using headscope::test::IsError;

TEST_CASE("Lengths in tokens, shares and epochs become updates", "[training][job][schedule]") {
    const std::string training = kLeast + "sequence_length = 32\n[training]\nbatch = 4\naccumulate = 2\n";
    const auto lengths = [&](const std::string& more, std::int64_t epoch) {
        return run_lengths(read(training + more), epoch);
    };
    CHECK(lengths("epochs = 2\n", 20).updates == 5);
    CHECK(lengths("epochs = 0.5\n", 20).updates == 2);  // 10 sequences, 8 an update
    CHECK(lengths("epochs = 0.1\n", 80).updates == 1);
    CHECK(lengths("epochs = 0.3\n", 80).updates == 3);  // rounded up, but not by the last bit of 0.3
    CHECK(lengths("epochs = 2\n", 0).updates == 0);
    const std::string tokens = "tokens = 2560\n[schedule]\n";  // 10 updates
    CHECK(lengths(tokens, 20).warmup == 100);
    CHECK(lengths(tokens + "warmup_tokens = 257\n", 20).warmup == 2);
    CHECK(lengths(tokens + "warmup_tokens = 0\n", 20).warmup == 0);
    CHECK(lengths(tokens + "warmup_share = 0.3\n", 20).warmup == 3);
    CHECK(lengths(tokens + "warmup_share = 0.01\n", 20).warmup == 1);
    CHECK(lengths(tokens + "warmup_share = 0\n", 20).warmup == 0);
    CHECK(lengths("[evaluation]\nevery_epochs = 0.4\n", 20).evaluation_every == 1);
    CHECK(lengths("[evaluation]\nevery_epochs = 1\n", 20).evaluation_every == 3);
    CHECK(lengths("epochs = 4\n[schedule]\nwarmup_share = 0.06\n[evaluation]\nevery_epochs = 0.5\n", 160).text() ==
          "80 updates, a warm-up of 5, an evaluation every 10");

    JobFile job = read(kLeast);
    set_key(job, "training.epochs=3");
    CHECK_FALSE(job.training.steps);
    set_key(job, "schedule.warmup_share=0.1");
    CHECK_FALSE(job.schedule.warmup_steps);
    set_key(job, "evaluation.every_epochs=0.2");
    CHECK_FALSE(job.evaluation.every);
    CHECK(job_differences(read(job_text(job)), job, false).empty());
    set_key(job, "evaluation.every=7");
    CHECK_FALSE(job.evaluation.every_epochs);
    const auto refused = [&](const std::string& more, const std::string& key) {
        REQUIRE_THROWS_MATCHES(read(kLeast + more), Error, IsError(ErrorCode::usage, key));
    };
    refused("[training]\nepochs = 2\nsteps = 3\n", "training.epochs");
    refused("[schedule]\nwarmup_steps = 2\nwarmup_share = 0.5\n", "schedule.warmup_share");
    refused("[training]\nminutes = 2\n[schedule]\nwarmup_share = 0.5\n", "schedule.warmup_share");
    refused("[evaluation]\nevery = 2\nevery_epochs = 0.5\n", "evaluation.every_epochs");
    REQUIRE_THROWS_MATCHES(check_epochs(read(kLeast + "[training]\nepochs = 2\n"), 0), Error,
                           IsError(ErrorCode::usage, "training.epochs"));
}

TEST_CASE("A default minimum follows the learning rate", "[training][job]") {
    JobFile job = read(kLeast);
    CHECK(job.schedule.minimum_rate == 4e-5);
    set_key(job, "optimizer.learning_rate=1e-5");
    CHECK(job.schedule.minimum_rate == Approx(1e-6));
    CHECK(read(job_text(job)).optimizer.learning_rate == 1e-5);  // a run's job must be one that can be read
    set_key(job, "optimizer.learning_rate=1e-2");
    CHECK(job.schedule.minimum_rate == 4e-5);
    set_key(job, "schedule.minimum_rate=1e-3");
    set_key(job, "optimizer.learning_rate=5e-4");
    CHECK(job.schedule.minimum_rate == 1e-3);
    REQUIRE_THROWS_MATCHES(check_together(job), Error, IsError(ErrorCode::usage, "schedule.minimum_rate"));
}

TEST_CASE("The rate rises in a line, falls as its kind says, and ends at the minimum", "[training][schedule]") {
    ScheduleSettings schedule;
    schedule.warmup_steps = 10;
    schedule.minimum_rate = 0.1;
    const auto rate = [&](std::int64_t update) { return learning_rate(schedule, 1.0, update, 110); };
    CHECK(rate(1) == Approx(0.1));
    CHECK(rate(10) == Approx(1.0));
    CHECK(rate(60) == Approx(0.1 + 0.9 * 0.5));
    CHECK(rate(110) == Approx(0.1));
    schedule.kind = "linear";
    CHECK(rate(35) == Approx(1.0 - 0.9 * 0.25));
    CHECK(rate(110) == Approx(0.1));
    schedule.kind = "constant";
    CHECK(rate(110) == Approx(1.0));
    schedule.kind = "wsd";
    schedule.decay_share = 0.5;
    CHECK(rate(55) == Approx(1.0));
    CHECK(rate(110) == Approx(0.1));
    CHECK(rate(82) == Approx(1.0 - 0.9 * (82.0 / 110 - 0.5) / 0.5));
    schedule.warmup_start = 0.5;
    CHECK(rate(5) == Approx(0.75));
    CHECK_FALSE(depends_on_end(schedule, 55, 110));
    CHECK(depends_on_end(schedule, 56, 110));
    schedule.kind = "constant";
    CHECK_FALSE(depends_on_end(schedule, 110, 110));
    for (const char* kind : {"cosine", "linear", "cosine_restarts"}) {
        schedule.kind = kind;
        CHECK_FALSE(depends_on_end(schedule, 10, 110));
        CHECK(depends_on_end(schedule, 11, 110));
    }
    schedule.kind = "wsd";
    // A peak that was set below the minimum is the minimum.
    CHECK(learning_rate(schedule, 0.05, 100, 110) == Approx(0.05));
}

TEST_CASE("Rates are those of transformers' schedules", "[training][schedule]") {
    std::ifstream file(test::golden_file("schedules.json"));
    REQUIRE(file.good());
    for (const auto& one : nlohmann::json::parse(file)) {
        ScheduleSettings schedule;
        schedule.kind = one.at("kind").get<std::string>();
        schedule.warmup_steps = one.at("warmup").get<std::int64_t>();
        schedule.minimum_rate = 0;
        INFO(schedule.kind << ", warm-up " << schedule.warmup_steps.value_or(0));
        const auto rates = one.at("rates").get<std::vector<double>>();
        const auto updates = static_cast<std::int64_t>(rates.size());
        for (std::int64_t update = 1; update <= updates; ++update) {
            INFO("update " << update);
            // Twelve digits; where a fall ends and the next begins, the last ones decide which it is.
            CHECK(learning_rate(schedule, 3e-5, update, updates) ==
                  Approx(3e-5 * rates[static_cast<std::size_t>(update - 1)]).epsilon(1e-10).margin(1e-15));
        }
    }
}

TEST_CASE("A schedule that ends at 0 does so unless another end is given", "[training][schedule][job]") {
    for (const char* kind : {"linear", "cosine_restarts"}) {
        const std::string text = kLeast + "[schedule]\nkind = \"" + kind + "\"\n";
        CHECK(read(text).schedule.minimum_rate == 0);
        CHECK(read(text + "minimum_rate = 1e-5\n").schedule.minimum_rate == 1e-5);
        JobFile job = read(kLeast);
        set_key(job, std::string("schedule.kind=") + kind);
        CHECK(job.schedule.minimum_rate == 0);
        set_key(job, "schedule.kind=wsd");
        CHECK(job.schedule.minimum_rate == 4e-5);
        set_key(job, "schedule.minimum_rate=1e-5");
        set_key(job, std::string("schedule.kind=") + kind);
        CHECK(job.schedule.minimum_rate == 1e-5);
    }
}

TEST_CASE("A job of minutes plans its updates from its pace", "[training][schedule]") {
    TimePlan plan(100);
    CHECK(plan.plan(0, 0.0, 0) == 0);
    CHECK(plan.plan(10, 0.5, 0) == 0);
    CHECK(plan.plan(20, 1.0, 0) == 2000);
    CHECK(plan.plan(21, 1.1, 2000) == 0);
    CHECK(plan.plan(200, 20.0, 2000) == 1000);
    CHECK(plan.plan(201, 21.0, 1000) == 0);
    // The machine was busy: what is planned would be done long before the time is over.
    CHECK(plan.plan(230, 21.2, 1000) == 0);
    CHECK(plan.plan(300, 24.0, 1000) == 1250);
    CHECK(plan.plan(320, 24.9, 1250) == 0);
    TimePlan resumed(100);
    resumed.resume(21.0);
    CHECK(resumed.plan(201, 21.0, 1000) == 0);
    CHECK(resumed.plan(260, 26.0, 1000) == 1000);
    CHECK_FALSE(plan.over(99.9));
    CHECK(plan.over(100.0));
}
