// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/estimate.h"

#include <algorithm>
#include <numeric>

#include "core/analysis/work_plan.h"
#include "core/base/io/free_space.h"
#include "core/mixers/types/type.h"
#include "core/model/load/memory.h"
#include "core/model/model.h"
#include "core/store/analysis/file_size.h"

namespace headscope::analysis {
namespace {

// The program with LibTorch, its threads and what it holds after loading, measured on x86-64.
constexpr double program_bytes = 157e6;

store::AnalysisHeader header_of(const model::Inspection& inspection, const AnalysisRequest& request) {
    const model::ModelConfig& config = inspection.config;
    store::AnalysisHeader header;
    header.model_name = request.model_name.empty() ? config.name : request.model_name;
    header.config_json = request.config_json.empty() ? config.to_json() : request.config_json;
    header.settings_json = request.settings_json;
    header.mixers = mixers::standard_layers(config.all_layers());
    header.sites = inspection.sites;
    header.sequences = request.sequences;
    if (config.encoder) {
        header.streams["target"] = request.targets;
        header.streams["target"].resize(request.sequences.size());
    }
    for (int layer = 0; layer < config.all_layers(); ++layer) {
        const bool asked = request.layers.empty() || request.layers.contains(layer);
        if (asked && !request.skip_layers.contains(layer)) header.measured_layers.insert(layer);
    }
    header.record = request.record;
    header.hidden_boundaries = config.all_layers() + 1;
    header.vocabulary = config.head_columns();
    header.type_chunk = type_chunk(header.sites);
    header.take_parameters();
    header.experts = config.experts;
    header.experts_per_token = config.experts_per_token;
    if (request.maps_int16) header.map_type = store::MapType::int16;
    return header;
}

/// One site and one batch: thumbnails in the making, column mass, row constants, histograms.
double statistics_bytes(const store::AnalysisHeader& header, double sequences, double length) {
    double most = 0;
    for (const Site& site : header.sites) most = std::max(most, static_cast<double>(site.heads));
    const auto side = static_cast<double>(std::min<std::int64_t>(header.longest(), 128));
    return sequences * most * (side * side * 8 + length * 12 + 4096);
}

/// Copies made for recording, one sequence at a time.
double recording_bytes(const store::AnalysisHeader& header, double length) {
    double map = 0, dense = 0, products = 0;
    for (const Site& site : header.sites) {
        map = std::max(map, length * site.key_size * (site.heads + site.key_value_heads) * 4);
        products = std::max(products, length * site.heads * site.heads * 4);
        dense = std::max(dense, std::min(length, 1024.0) * length * 4);
    }
    return (header.record.maps ? 2 * map : 0) + (header.record.attention || header.pairs() ? dense : 0) +
           (header.record.norms ? products : 0);
}

/// Implicit matrices of a site, of all of a batch's sequences at once.
double implicit_bytes(const store::AnalysisHeader& header, double sequences, double length) {
    double most = 0;
    for (const Site& site : header.sites)
        if (header.record.implicit && header.measured_implicit(site))
            most = std::max(most, sequences * length * length * site.heads * 4);
    return most;
}

double batch_bytes(const model::Inspection& inspection, const AnalysisRequest& request,
                   const store::AnalysisHeader& header, const WorkBatch& batch, double bytes) {
    const model::ModelConfig& config = inspection.config;
    const auto count = static_cast<double>(batch.sequences.size());
    const auto length = static_cast<double>(batch.length);
    const auto predicted = config.encoder ? static_cast<double>(batch.target_length) : length;
    double total = model::pass_bytes(config, count * predicted, bytes);
    if (config.encoder) total += model::pass_bytes(*config.encoder, count * length, bytes);
    total += model::logit_bytes(inspection, predicted);
    const double longer = std::max(length, predicted);
    if (model::edits_matrices(request.interventions)) total += model::edited_matrix_bytes(config, count, longer);
    return total + statistics_bytes(header, count, longer) + recording_bytes(header, longer) +
           implicit_bytes(header, count, longer);
}

/// Bytes of an analysis beyond those that the process holds.
double needed_bytes(const model::Inspection& inspection, const AnalysisRequest& request, const MemoryOptions& options,
                    model::Residence residence) {
    EstimateOptions of;
    of.bfloat16 = model::number_bytes(options.precision) == 2;
    of.residence = residence;
    const Estimate found = estimate(inspection, request, of);
    return (options.weights_there ? 0 : found.weight_bytes) + found.work_bytes;
}

}  // namespace

Rate Rate::by_threads(int threads) {
    return {2e10 * std::max(threads, 1)};
}

Rate Rate::measured(double multiplications, double seconds, Rate before) {
    return seconds >= 0.1 && multiplications > 0 ? Rate{multiplications / seconds} : before;
}

std::size_t token_count(const AnalysisRequest& request) {
    std::size_t tokens = 0;
    for (const auto* list : {&request.sequences, &request.targets})
        for (const auto& sequence : *list) tokens += sequence.ids.size();
    return tokens;
}

Estimate estimate(const model::Inspection& inspection, const AnalysisRequest& request, const EstimateOptions& options) {
    Estimate found;
    const store::AnalysisHeader header = header_of(inspection, request);
    const auto precision = options.bfloat16 ? checkpoint::LoadAs::bfloat16 : checkpoint::LoadAs::float32;
    const double bytes = model::number_bytes(precision);
    const auto plan =
        plan_work(request.sequences, request.targets, inspection.config, request.batch_tokens, inspection.has_head);
    double most = 0, tokens = 0;
    for (const WorkBatch& batch : plan) {
        found.multiplications += std::accumulate(batch.layer_costs.begin(), batch.layer_costs.end(), batch.loss_cost);
        most = std::max(most, batch_bytes(inspection, request, header, batch, bytes));
    }
    for (const auto& sequence : request.sequences) tokens += static_cast<double>(sequence.ids.size());
    found.weight_bytes = model::resident_bytes(inspection, precision, options.residence);
    // Ids, offsets and pieces are held by the request, the header and the probe.
    found.work_bytes = most + tokens * 150;
    double waiting = 0;
    for (const WorkGroup& group : group_work(plan, inspection.config, options.residence, request.waiting_bytes)) {
        waiting = std::max(waiting, group.waiting_bytes);
        found.spilled_bytes = std::max(found.spilled_bytes, group.spilled_bytes);
    }
    found.work_bytes += waiting;
    found.memory_bytes = program_bytes + found.weight_bytes + found.work_bytes;
    if (!request.sequences.empty()) found.file_bytes = store::expected_file_bytes(header);
    const double rate = options.rate.multiplications_per_second;
    const double computing = found.multiplications / (rate > 0 ? rate : Rate::by_threads(1).multiplications_per_second);
    if (options.residence == model::Residence::stream) {
        // The file is read once: its first layer before computing, the others meanwhile. Hidden states on the disk are
        // written and read before and after the mixers of each layer.
        found.read_bytes = inspection.sizes.stored;
        const double waited = 4.0 * found.spilled_bytes * static_cast<double>(inspection.config.all_layers());
        found.seconds = std::max(computing, found.read_bytes / Estimate::read_rate) +
                        (inspection.sizes.layer_stored + waited) / Estimate::read_rate;
    } else {
        found.read_bytes = options.weights_there ? 0 : found.weight_bytes;
        found.seconds = computing + found.read_bytes / Estimate::read_rate;
    }
    return found;
}

void expect_disk_space(const std::filesystem::path& output, double file_bytes, double spilled_bytes) {
    expect_free_space(output, file_bytes + spilled_bytes,
                      spilled_bytes > 0 ? "this analysis file and hidden states that wait" : "this analysis file");
}

std::int64_t fitting_batch_tokens(const model::Inspection& inspection, const AnalysisRequest& request,
                                  const MemoryOptions& options, double room) {
    AnalysisRequest tried = request;
    return model::fitting_batch_tokens(request.batch_tokens, options.residence, room,
                                       [&](std::int64_t tokens, model::Residence residence) {
                                           tried.batch_tokens = tokens;
                                           return needed_bytes(inspection, tried, options, residence);
                                       });
}

model::Residence expect_memory(const model::Inspection& inspection, const AnalysisRequest& request,
                               const MemoryOptions& options) {
    const auto bytes = [&](model::Residence residence) {
        return needed_bytes(inspection, request, options, residence);
    };
    // Weights that are there stay as they are.
    return model::choose_residence(
        bytes, {options.precision, options.residence, !options.weights_there, "shorten --length or record less"});
}

}  // namespace headscope::analysis
