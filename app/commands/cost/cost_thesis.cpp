// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/cost/cost_parts.h"
#include "app/commands/options.h"
#include "core/base/error.h"
#include "core/cost/thesis.h"

namespace headscope::app::cost_command {
namespace {

using nlohmann::json;

std::int64_t whole(double value) {
    return std::llround(value);
}

}  // namespace

void run_variants(const Options& options) {
    constexpr std::int64_t usual_batch = 32;  // the thesis's
    const Subject subject = subject_of(options);
    const model::ModelConfig& config = subject.config;
    if (config.heads * config.head_size != config.hidden) {
        throw Error(ErrorCode::mismatch, subject.name,
                    "expected a hidden size of heads * head size, " + std::to_string(config.heads * config.head_size),
                    "found " + std::to_string(config.hidden));
    }
    const std::int64_t batch = options.batch_or(usual_batch);
    const std::int64_t sublayers = config.encoder ? config.encoder->layers + 2 * config.layers : config.layers;
    json variants = json::array();
    std::vector<std::vector<std::string>> rows;
    for (const cost::HeadVariant& variant : cost::head_variants()) {
        const auto count = [&](std::int64_t times, bool with_output) {
            return whole(cost::variant_parameters(variant, config.heads, config.head_size, times, with_output));
        };
        const cost::BlockMemory memory =
            cost::block_memory(variant, config.heads, config.head_size, batch, options.length);
        const double saving = cost::memory_saving(variant, config.heads, config.head_size, batch, options.length);
        const double added =
            variant.added({{'n', static_cast<double>(config.heads)}, {'d', static_cast<double>(config.head_size)}});
        variants.push_back({{"mixer", variant.name},
                            {"complexity", variant.complexity},
                            {"parameters_formula", variant.parameters.text()},
                            {"added_formula", variant.added.text()},
                            {"added", whole(added)},
                            {"sublayer", count(1, false)},
                            {"sublayer_with_output", count(1, true)},
                            {"stack", count(sublayers, false)},
                            {"stack_with_output", count(sublayers, true)},
                            {"memory",
                             {{"weights", whole(memory.weights)},
                              {"gradients", whole(memory.gradients)},
                              {"adam", whole(memory.adam)},
                              {"activations", whole(memory.activations)},
                              {"total", whole(memory.total())}}},
                            {"saving", saving}});
        char percent[32];
        std::snprintf(percent, sizeof percent, "%.2f %%", 100 * saving);
        rows.push_back({variant.label, variant.parameters.pretty(),
                        "O(" + cost::Formula(variant.complexity).pretty() + ")", variant.added.pretty(),
                        std::to_string(whole(added)), std::to_string(count(1, false)), std::to_string(count(1, true)),
                        std::to_string(count(sublayers, false)), std::to_string(count(sublayers, true)),
                        bytes_text(memory.weights), bytes_text(memory.gradients), bytes_text(memory.adam),
                        bytes_text(memory.activations), bytes_text(memory.total()), percent});
    }
    if (options.json) return print_json({{"variants", variants}});
    print("Weights of attention at the sizes of " + escaped(subject.name) + ": n = " + std::to_string(config.heads) +
          " heads of d = " + std::to_string(config.head_size) + ", " + std::to_string(sublayers) +
          " sublayers. Memory of one of them with its output projection in mixed precision, for " +
          std::to_string(batch) + " texts of " + std::to_string(options.length) + " tokens.\n" +
          format_table({"variant", "formula", "complexity", "#Params (+)", "beyond SHA", "a sublayer", "with W^O",
                        "all", "with W^O", "weights", "gradients", "Adam", "activations", "together", "saving"},
                       rows));
}

void run_embeddings(const Options& options) {
    if (!options.models.empty() || !options.preset.empty() || !options.config.empty())
        throw UsageError(
            "--embeddings: sizes are expected by --hidden, --rows, --bits and --group-bits; found a model");
    json embeddings = json::array();
    std::vector<std::vector<std::string>> rows;
    for (const cost::HashEmbedding& embedding : cost::hash_embeddings()) {
        const std::int64_t count = whole(
            cost::embedding_parameters(embedding, options.rows, options.bits, options.group_bits, options.hidden));
        embeddings.push_back({{"kind", embedding.name}, {"parameters", count}});
        rows.push_back({embedding.name, embedding.label, embedding.parameters.pretty(), std::to_string(count)});
    }
    if (options.json) return print_json({{"embeddings", embeddings}});
    print("d = " + std::to_string(options.hidden) + " hidden, N = " + std::to_string(options.rows) +
          " rows, T = " + std::to_string(options.bits) + " bits in g groups of " + std::to_string(options.group_bits) +
          " with c codes each.\n" + format_table({"kind", "in the thesis", "formula", "parameters"}, rows));
}

}  // namespace headscope::app::cost_command
