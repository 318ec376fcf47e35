// SPDX-License-Identifier: GPL-3.0-or-later
// What each mixer can learn and what it cannot, by training tiny presets from the command line (slow): order-2 Markov
// text with known entropies, induction, associative recall.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/data/catalog.h"
#include "core/run/run_history.h"
#include "expectations.h"
#include "files.h"
#include "program.h"

using namespace headscope::testing;
namespace fs = std::filesystem;

namespace {

/// Loss on held-out sequences after training, nats a counted target.
double trained_loss(const fs::path& folder, const std::string& name, const std::vector<std::string>& keys) {
    std::vector<std::string> arguments{"train",
                                       write_file(folder / "job.toml", R"([model]
preset = "tiny-1m"
[data]
generator = { name = "markov" }
sequence_length = 128
[training]
steps = 500
batch = 16
[optimizer]
learning_rate = 2e-3
weight_decay = 0.01
[schedule]
warmup_steps = 50
minimum_rate = 1e-4
[evaluation]
every = 250
batches = 16
[snapshots]
every = 0
[probe]
every = 0
[sample]
every = 0
)")
                                           .string(),
                                       "-o", (folder / name).string(), "--json"};
    for (const std::string& key : keys) {
        arguments.emplace_back("--set");
        arguments.push_back(key);
    }
    const Outcome outcome = run_headscope(arguments, {.seconds = 3000});
    INFO(name);
    check_success(outcome);
    return nlohmann::json::parse(outcome.out).at("validation").get<double>();
}

}  // namespace

TEST_CASE("On Markov text of order 2 each mixer goes as far as it sees", "[app][mixers-learn]") {
    headscope::data::GeneratorSettings settings;
    settings.name = "markov";
    const auto entropies = headscope::data::make_generator(settings, 128).entropies;
    REQUIRE(entropies.size() == 3);
    const double unigram = entropies[0], current = entropies[1], both = entropies[2];
    INFO("entropies: unigram " << unigram << ", current token " << current << ", two tokens " << both);
    // Deviation of the mean over 16 batches of 16 sequences; runs with other seeds differ by a third of this.
    const double noise = 0.01;
    TemporaryFolder folder;
    std::string table = "unigram " + std::to_string(unigram) + ", current token " + std::to_string(current) +
                        ", two tokens " + std::to_string(both);
    for (const std::string mixer :
         {"standard", "approximate", "rnd_emb_qk", "fixed_seq_qk", "static_emb_qk", "mlp", "non_approximate"}) {
        for (const std::string layout : {"uniform", "even"}) {
            const bool hybrid = layout == "even";
            if (hybrid && mixer != "non_approximate") continue;
            const double loss =
                trained_loss(folder.path(), mixer + "-" + layout, {"model.mixer=" + mixer, "model.layout=" + layout});
            table += "\n" + mixer + " " + layout + ": " + std::to_string(loss);
            INFO(mixer << " " << layout << ": " << loss);
            CHECK(loss > both - noise);
            if (mixer == "mlp") {  // it sees the current token alone, and learns all that follows from it
                CHECK(loss > current - noise);
                CHECK(loss < current + 3 * noise);
            } else if (mixer == "non_approximate" && !hybrid) {
                CHECK(loss < unigram - noise);
            } else {
                CHECK(loss < current - noise);
            }
        }
    }
    WARN(table);
}

TEST_CASE("Standard solves induction and associative recall, MLP does not", "[app][mixers-learn]") {
    TemporaryFolder folder;
    std::string table;
    for (const auto& [task, length, steps] : {std::tuple{"induction", 64, 1500}, std::tuple{"mqar-small", 32, 1500}}) {
        for (const std::string mixer : {"standard", "mlp"}) {
            const double loss =
                trained_loss(folder.path(), mixer + "-" + task,
                             {"model.mixer=" + mixer, "data.generator={ name = \"" + std::string(task) + "\" }",
                              "data.sequence_length=" + std::to_string(length),
                              "training.steps=" + std::to_string(steps), "training.batch=32",
                              // At 0.02 narrow heads stay for long where they guess among the values shown.
                              "model.initializer_range=0.05"});
            table += std::string(task) + ", " + mixer + ": " + std::to_string(loss) + "\n";
            INFO(task << " " << mixer << " " << loss);
            // Solved: nearly all of the probability is on the right token. Not solved: hardly better than any symbol.
            if (mixer == "standard")
                CHECK(loss < 0.1);
            else
                CHECK(loss > 2.0);
        }
    }
    WARN(table);
}
