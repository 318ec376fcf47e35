// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/memory.h"

#include <algorithm>
#include <iterator>

#include "core/base/process/free_memory.h"
#include "core/model/wide_product.h"

namespace headscope::model {
namespace {

constexpr double kLogitChunkBytes = 64 << 20;  ///< Model::logit_rows
constexpr double kEditedMatrices = 6;          ///< scores and weights, each before, in and after an edit

/// Weights that are not resident reach a GPU as a stream's reach memory: layer by layer.
Residence residence_on_device(Residence one) {
    return one == Residence::float32 ? one : Residence::stream;
}

double heads_width(const ModelConfig& config) {
    return static_cast<double>(config.heads) * static_cast<double>(config.head_size);
}

/// Bytes in the file of quantized and merged tensors that may be in memory while they become numbers: one is at a time.
double made_bytes(const WeightSizes& sizes) {
    // Numbers that are not quantized take 2 bytes or more.
    const bool packed_layers = sizes.layer_stored < 2 * sizes.layer;
    return std::max({sizes.tables_kept, sizes.merged, packed_layers ? sizes.layer_stored : 0});
}

/// Bytes of a product of bfloat16 in float32 (widened_linear): a piece of the weight, what it is multiplied with, and
/// the results.
double widened_bytes(double rows, double in, double out) {
    const double outputs = std::min(out, std::max(1.0, static_cast<double>(kWidenedNumbers) / in));
    return 4 * (in * outputs + rows * (in + outputs));
}

double key_value_width(const ModelConfig& config) {
    return static_cast<double>(config.key_value_heads) * static_cast<double>(config.head_size);
}

}  // namespace

double number_bytes(checkpoint::LoadAs precision) {
    switch (precision) {
        case checkpoint::LoadAs::bfloat16:
        case checkpoint::LoadAs::float16:
            return 2;
        case checkpoint::LoadAs::float64:
            return 8;
        default:
            return 4;
    }
}

double weight_bytes(const Inspection& inspection, checkpoint::LoadAs precision) {
    return static_cast<double>(inspection.parameters) * number_bytes(precision);
}

double resident_bytes(const Inspection& inspection, checkpoint::LoadAs precision, Residence residence) {
    if (residence == Residence::float32) return weight_bytes(inspection, precision) + made_bytes(inspection.sizes);
    const double number = number_bytes(precision);
    const WeightSizes& sizes = inspection.sizes;
    const ModelConfig& config = inspection.config;
    const double buffers = (model_device().is_cpu() ? 1 : 2) * sizes.buffer * number;  // CopySlots has two
    const double words =
        inspection.has_head
            ? static_cast<double>(std::min<std::int64_t>(config.vocabulary, 1 << 14) * config.hidden) * number
            : 0;
    if (residence == Residence::file) return sizes.stored + buffers + words;
    const double layers = 2 * sizes.layer_stored + buffers;
    return sizes.rest * number + sizes.tables_kept + std::max(layers, sizes.layer_stored + sizes.table_stored + words);
}

double listed_bytes(const Inspection& inspection, Residence residence) {
    constexpr auto precision = checkpoint::LoadAs::float32;
    const WeightSizes& sizes = inspection.sizes;
    if (residence == Residence::float32) return weight_bytes(inspection, precision);
    return residence == Residence::file ? sizes.stored : 2 * sizes.layer_stored + 4 * sizes.layer;
}

double pass_bytes(const ModelConfig& tower, double rows, double number) {
    const auto d = static_cast<double>(tower.hidden);
    const std::int64_t chosen = tower.experts_per_token * tower.expert_size() + tower.shared_expert;
    const auto f = static_cast<double>(tower.experts > 0 ? std::max(chosen, tower.feed_forward) : tower.feed_forward);
    const double feed_forward = 3 * d + (tower.gated_feed_forward ? 3 : 2) * f;
    // Query and key before and after rotary, value, output in float32 and in the model's type.
    const double attention = 3 * d + 4 * heads_width(tower) + 3 * key_value_width(tower);
    const bool widens = number == 2 && !multiplies_bfloat16(model_device());
    return rows * number * (feed_forward + attention) + (widens ? widened_bytes(rows, d, std::max(d, f)) : 0);
}

double cache_bytes(const ModelConfig& config, double rows, double number) {
    return rows * number * 2 * key_value_width(config) * static_cast<double>(config.layers);
}

double waiting_bytes(const ModelConfig& config, double tokens) {
    // With what some mixers read again: the embedding, or the encoder's output.
    return 2 * tokens * static_cast<double>(config.hidden) * static_cast<double>(sizeof(float));
}

double logit_bytes(const Inspection& inspection, double rows) {
    const double all = inspection.has_head ? rows * static_cast<double>(inspection.config.vocabulary) * 4 : 0;
    return std::min(all, kLogitChunkBytes);
}

double edited_matrix_bytes(const ModelConfig& config, double texts, double tokens) {
    return kEditedMatrices * texts * static_cast<double>(config.heads) * tokens * tokens * 4;
}

double gradient_bytes(const ModelConfig& config, double tokens) {
    const auto of_stack = [tokens](const ModelConfig& stack) {
        return static_cast<double>(stack.layers) * pass_bytes(stack, tokens, 4);
    };
    return of_stack(config) + (config.encoder ? of_stack(*config.encoder) : 0);
}

double reading_bytes(const Inspection& inspection, double rows, double cached, checkpoint::LoadAs precision,
                     Residence residence) {
    const ModelConfig& config = inspection.config;
    const double number = number_bytes(precision);
    double pass = pass_bytes(config, rows, number);
    if (config.encoder) pass = std::max(pass, pass_bytes(*config.encoder, rows, number));
    return resident_bytes(inspection, precision, residence) + pass + logit_bytes(inspection, rows) +
           cache_bytes(config, cached, number);
}

std::int64_t fitting_batch_tokens(std::int64_t most, std::optional<Residence> residence, double room,
                                  const std::function<double(std::int64_t tokens, Residence)>& bytes,
                                  double device_room) {
    constexpr std::int64_t kLeast = 256;
    std::int64_t tokens = most;
    const auto fits_in = [&](Residence one) {
        return (room <= 0 || bytes(tokens, one) <= room) &&
               (device_room <= 0 || fits_on_device(bytes(tokens, residence_on_device(one)), device_room));
    };
    const auto fits = [&] {
        return std::any_of(std::begin(kResidences), std::end(kResidences),
                           [&](Residence one) { return residence.value_or(one) == one && fits_in(one); });
    };
    while ((room > 0 || device_room > 0) && tokens > kLeast && !fits()) tokens = std::max(kLeast, tokens / 2);
    return tokens;
}

bool streams_uncached(double bytes, double room) {
    return room > 0 && 2 * bytes > room;
}

Residence choose_residence(const std::function<double(Residence)>& bytes, const WeightChoice& choice,
                           double device_room) {
    const double room = own_memory_room();
    const auto fits = [&](Residence one) { return room <= 0 || bytes(one) <= room; };
    const auto device_bytes = [&](Residence one) { return bytes(residence_on_device(one)); };
    if (!choice.residence) {
        for (const Residence one : kResidences)
            if (fits(one) && fits_on_device(device_bytes(one), device_room)) return one;
    }
    const Residence taken = choice.residence.value_or(Residence::stream);
    const bool layers =
        choice.offered && taken == Residence::float32 && fits_on_device(device_bytes(Residence::file), device_room);
    expect_device_memory(taken == Residence::float32 ? "all weights and a pass" : "the weights of a layer and a pass",
                         device_bytes(taken), layers ? "take --weights file" : choice.otherwise, device_room);
    std::vector<LessMemory> others;
    for (const Residence one : kResidences) {
        if (choice.offered && one != taken) others.push_back({"--weights " + std::string(name(one)), bytes(one)});
    }
    const std::string what = taken == Residence::stream            ? "weights of two layers"
                             : taken == Residence::file            ? "weights as stored"
                             : number_bytes(choice.precision) == 2 ? "weights in bfloat16"
                                                                   : "weights in float32";
    expect_memory(what, bytes(taken), others, choice.otherwise, room);
    return taken;
}

}  // namespace headscope::model
