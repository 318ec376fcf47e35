// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/measure.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/cost/work_meter.h"
#include "core/mixers/types/head_variants.h"
#include "core/model/device.h"
#include "core/model/heads/head_loss.h"
#include "core/model/towers/cache.h"
#include "kernels/flop_counter.h"

namespace headscope::cost {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Seconds of a device, whose work is finished at each reading.
class Watch {
public:
    explicit Watch(const at::Device& device) : device_(device), start_(now()) {}
    double seconds() const { return std::chrono::duration<double>(now() - start_).count(); }

private:
    std::chrono::steady_clock::time_point now() const {
        model::finish_work(device_);
        return std::chrono::steady_clock::now();
    }

    at::Device device_;
    std::chrono::steady_clock::time_point start_;
};

/// Reads the meter and the watch where a layer's mixer begins and ends.
class RegionProbe final : public model::Probe {
public:
    struct Region {
        double flops = 0, bytes = 0, seconds = 0;
    };
    RegionProbe(const WorkMeter& meter, const Watch& watch, std::int64_t layers)
        : regions(static_cast<std::size_t>(layers)), meter_(meter), watch_(watch), start_(flops()) {}

    bool wants(std::string_view name, LayerIndex) const override {
        return name == "embedding" || name == "input_norm" || name == "mixer_output";
    }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) override {
        const auto value_bytes = static_cast<double>(value.numel()) * static_cast<double>(value.element_size());
        if (name == "embedding") {
            guide_flops = flops() - start_;
        } else if (name == "input_norm") {
            begin_ = {flops(), static_cast<double>(meter_.bytes()) - value_bytes, watch_.seconds()};
        } else {
            Region& region = regions.at(static_cast<std::size_t>(layer.value));
            region.seconds = watch_.seconds() - begin_.seconds;
            region.flops = flops() - begin_.flops;
            region.bytes = static_cast<double>(meter_.bytes()) - value_bytes - begin_.bytes;
        }
    }
    bool reads_shapes_alone() const override { return true; }
    const kernels::StatisticsRequest* request(SiteIndex) override { return nullptr; }
    void measured(const model::AttentionRecord&) override {}

    std::vector<Region> regions;
    double guide_flops = 0;

private:
    double flops() const { return static_cast<double>(meter_.flops()); }

    const WorkMeter& meter_;
    const Watch& watch_;
    double start_;
    Region begin_;
};

/// Tokens in a fixed order that repeats late: costs do not depend on them.
at::Tensor tokens(std::int64_t batch, std::int64_t length, std::int64_t vocabulary) {
    at::Tensor ids = at::empty({batch, length}, at::kLong);
    auto* id = ids.mutable_data_ptr<std::int64_t>();
    for (std::int64_t i = 0; i < batch * length; ++i) id[i] = i * 7919 % vocabulary;
    return ids;
}

void measure_inference(model::Model& model, const MeasureOptions& options, MeasuredModel& result) {
    const std::int64_t layers = model.config().layers, vocabulary = model.config().vocabulary;
    model::Batch batch;
    batch.ids = tokens(options.batch, options.length, vocabulary);
    const bool decodes = model.causal();
    const auto cache = decodes ? model.new_cache() : nullptr;
    model::ForwardOptions forward;
    forward.cache = cache.get();
    forward.cancellation = options.cancellation;
    const auto last_logits = [&](const at::Tensor& hidden) {
        if (model.has_head()) model.logits(hidden.select(1, hidden.size(1) - 1));
    };
    {
        WorkMeter meter;
        const Watch watch(model.device());
        RegionProbe probe(meter, watch, layers);
        forward.probe = &probe;
        last_logits(model.forward(batch, forward));
        result.forward_seconds = watch.seconds();
        result.forward_flops = static_cast<double>(meter.flops());
        result.forward_peak_bytes = static_cast<double>(meter.peak_bytes());
        result.guide_flops = probe.guide_flops;
        for (std::size_t i = 0; i < result.layers.size(); ++i) {
            result.layers[i].prefill_flops = probe.regions[i].flops;
            result.layers[i].prefill_seconds = probe.regions[i].seconds;
            if (cache) result.layers[i].cache_bytes = static_cast<double>(cache->layer(i).bytes());
        }
        if (cache) result.cache_bytes = static_cast<double>(cache->bytes());
    }
    if (!decodes) return;
    WorkMeter meter;
    batch.ids = tokens(options.batch, 1, vocabulary);
    const Watch watch(model.device());
    RegionProbe probe(meter, watch, layers);
    forward.probe = &probe;
    last_logits(model.forward(batch, forward));
    result.decode_seconds = watch.seconds();
    result.decode_flops = static_cast<double>(meter.flops());
    for (std::size_t i = 0; i < result.layers.size(); ++i) {
        result.layers[i].decode_flops = probe.regions[i].flops;
        result.layers[i].decode_seconds = probe.regions[i].seconds;
    }
}

void measure_training(model::Trainable& trainable, const MeasureOptions& options, MeasuredModel& result) {
    model::Model& model = trainable.model();
    model::Batch batch;
    batch.ids = tokens(options.batch, options.length, model.config().vocabulary);
    WorkMeter meter;
    const Watch watch(model.device());
    RegionProbe probe(meter, watch, model.config().layers);
    const model::TrainingForward training;
    model::ForwardOptions forward;
    forward.probe = &probe;
    forward.training = &training;
    forward.cancellation = options.cancellation;
    const at::AutoGradMode recording(true);
    {
        const at::Tensor hidden = trainable.forward_with(batch, forward);
        const model::LossSum loss = trainable.loss(hidden.flatten(0, 1), batch.ids.flatten());
        loss.sum.backward();
    }
    result.training_seconds = watch.seconds();
    result.training_flops = static_cast<double>(meter.flops());
    result.training_peak_bytes = static_cast<double>(meter.peak_bytes());
    for (std::size_t i = 0; i < result.layers.size(); ++i) result.layers[i].activation_bytes = probe.regions[i].bytes;
    trainable.gradients().zero_();
}

bool in_decoders(const std::string& mixer) {
    const mixers::MixerType* type = mixers::find_type(mixer);
    return type == nullptr || type->in_decoders;  // an unknown one is refused where it is read
}

std::string type_text(at::ScalarType type) {
    return type == at::kBFloat16 ? "bfloat16" : type == at::kDouble ? "float64" : "float32";
}

void drop_flops(MeasuredModel& result) {
    for (double* flops : {&result.guide_flops, &result.forward_flops, &result.decode_flops, &result.training_flops})
        *flops = kNone;
    for (MeasuredMixer& layer : result.layers) layer.prefill_flops = layer.decode_flops = kNone;
}

}  // namespace

MeasuredModel measure(model::Trainable& trainable, const MeasureOptions& options) {
    try {
        MeasuredModel result;
        result.batch = options.batch;
        result.length = options.length;
        model::Model& model = trainable.model();
        if (model.config().encoder)
            throw Error(ErrorCode::unsupported, "cost", "expected a stack of one tower",
                        "found " + model.config().family);
        if (!model.config().hashed.is_table() || model.config().has_classes())
            throw Error(ErrorCode::unsupported, "cost", "expected a model that reads and says tokens of a vocabulary",
                        "found another embedding or head");
        result.parameters = model.parameters();
        result.type = type_text(trainable.weights().scalar_type());
        for (const std::string& mixer : model.mixers()) {
            result.layers.push_back({mixer, 0, kNone, kNone, kNone, 0, kNone});
        }
        result.decode_flops = result.decode_seconds = result.cache_bytes = kNone;
        result.training_flops = result.training_peak_bytes = result.training_seconds = kNone;
        for (int turn = model.device().is_cpu() ? 1 : 0; turn < 2; ++turn) {
            measure_inference(model, options, result);
            if (options.training) measure_training(trainable, options, result);
        }
        if (!kernels::FlopCounter::is_complete()) drop_flops(result);
        return result;
    } catch (...) {
        throw current_error("cost");
    }
}

MeasuredModel measure_mixer(const std::string& config_json, const std::string& mixer, std::int64_t layers,
                            const MeasureOptions& options) {
    nlohmann::json config = parse_json(config_json, "configuration");
    for (const char* key : {"num_encoder_layers", "decoder_start_token_id", "embedding", "head", "head_bias"})
        config.erase(key);
    const bool decodes = in_decoders(mixer);
    config["stack"] = decodes ? "decoder" : "encoder";
    config["num_hidden_layers"] = layers;
    config["vocab_size"] = 64;
    config["layers"] = std::vector<std::string>(static_cast<std::size_t>(layers), mixer);
    // Those that only encoders have may have a table of all positions' pairs.
    const auto positions = decodes ? config.value("max_position_embeddings", std::int64_t{0}) : 0;
    config["max_position_embeddings"] = std::max(options.length + 1, positions);
    const auto trainable = model::Trainable::create(config.dump(), 1, at::kFloat);
    trainable->to(options.device);
    return measure(*trainable, options);
}

void measure_table(CostTable& table, const std::string& config_json, Progress& progress,
                   const Cancellation& cancellation, const at::Device& device) {
    const CostSetting& sizes = table.setting;
    // EL-attention has no other sizes.
    const bool fills = sizes.head_size <= 0 || sizes.heads * sizes.head_size == sizes.hidden;
    double done = 0;
    for (CostRow& row : table.rows) {
        cancellation.check();
        if (row.mixer == mixers::kElAttention.name && !fills) continue;
        progress.advance(done++, static_cast<double>(table.rows.size()),
                         row.mixer + " at " + std::to_string(row.length));
        MeasureOptions options;
        options.batch = table.setting.batch;
        options.length = row.length;
        options.device = device;
        options.cancellation = &cancellation;
        const MeasuredModel measured = measure_mixer(config_json, row.mixer, 2, options);
        row.measured = measured.layers.back();
        row.guide_flops = measured.guide_flops;
    }
}

}  // namespace headscope::cost
