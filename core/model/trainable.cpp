// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/trainable.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json/json.h"
#include "core/model/device.h"
#include "core/model/fresh/flat_weights.h"
#include "core/model/fresh/swap.h"
#include "core/model/load/model_device.h"
#include "core/model/load/native_config.h"
#include "core/model/towers/stack.h"

namespace headscope::model {
namespace {

bool has_same(const checkpoint::Checkpoint& file, const std::string& one, const std::string& other) {
    const auto& tensors = file.tensors();
    return tensors.at(one).shape == tensors.at(other).shape && at::equal(file.load(one), file.load(other));
}

/// A file may hold copies of a table that is the embedding of both towers, or of a tied head. Where they are copies
/// they are left out, so that all go on as one; where a head differs, both are meant, and trained.
void settle_shared(const checkpoint::Checkpoint& file, Swapped& model) {
    ModelConfig& config = model.blueprint.config;
    const TensorNames& names = model.blueprint.names;
    std::vector<std::string> tables;
    const auto add = [&](const std::string& prefix, const std::string& name) {
        const std::string table = prefix + name + ".weight";
        if (!name.empty() && file.tensors().count(table) > 0) tables.push_back(table);
    };
    if (model.blueprint.encoder_names) add(names.prefix, names.shared_embedding);
    add(names.prefix, names.token_embedding);
    if (model.blueprint.encoder_names)
        add(model.blueprint.encoder_names->prefix, model.blueprint.encoder_names->token_embedding);
    if (tables.empty()) return;
    const std::string& table = tables.front();
    for (std::size_t n = 1; n < tables.size(); ++n)
        if (has_same(file, tables[n], table)) model.plan.share(tables[n], table);
    const std::string head = names.head + ".weight";
    if (!config.tied_head || file.tensors().count(head) == 0 || head == table) return;
    if (has_same(file, head, table)) {
        model.plan.share_tied_head();
    } else if (config.encoder && file.config().value("tie_word_embeddings", true)) {
        throw Error(ErrorCode::unsupported, escaped(head),
                    "expected the embedding's numbers to train, as tie_word_embeddings says", "found others");
    } else {
        config.tied_head = false;
    }
}

struct Built {
    std::shared_ptr<Stack> stack;
    std::unique_ptr<FlatWeights> weights;
};

Built build(Blueprint blueprint, TensorPlan plan, const checkpoint::Checkpoint* file, at::ScalarType type,
            std::uint64_t seed, Progress* progress, const Cancellation* cancellation) {
    Built built;
    built.stack = std::make_shared<Stack>(std::move(blueprint), std::move(plan), [&](TensorPlan& wanted) {
        built.weights = std::make_unique<FlatWeights>(wanted, file, type, seed, progress, cancellation);
    });
    if (!built.stack->has_head() && !built.stack->has_classes()) {
        throw Error(ErrorCode::unsupported, "model", "expected a head for the vocabulary or classes to train",
                    "found none");
    }
    if (built.stack->config().adaptive) {
        throw Error(ErrorCode::unsupported, "model", "expected a head over the whole vocabulary to train",
                    "found one in clusters (adaptive softmax)");
    }
    return built;
}

}  // namespace

Trainable::Trainable(std::shared_ptr<Stack> stack, std::unique_ptr<FlatWeights> weights)
    : stack_(std::move(stack)), weights_(std::move(weights)) {}

Trainable::~Trainable() = default;

std::unique_ptr<Trainable> Trainable::create(const std::string& config_json, std::uint64_t seed, at::ScalarType type) {
    try {
        const nlohmann::json config = parse_json(config_json, "config.json");
        Built built = build(make_blueprint(config, nullptr), TensorPlan(), nullptr, type, seed, nullptr, nullptr);
        return std::unique_ptr<Trainable>(new Trainable(std::move(built.stack), std::move(built.weights)));
    } catch (...) {
        throw current_error("model");
    }
}

std::unique_ptr<Trainable> Trainable::open(const checkpoint::Checkpoint& checkpoint, at::ScalarType type,
                                           const MixerSwap& swap, std::uint64_t seed, Progress* progress,
                                           const Cancellation* cancellation) {
    try {
        if (!checkpoint.has_config()) {
            throw Error(ErrorCode::mismatch, escaped(checkpoint.display_name()),
                        "expected config.json beside the weights", "found none");
        }
        Swapped swapped = swap_mixers(checkpoint, swap);
        settle_shared(checkpoint, swapped);
        Built built = build(std::move(swapped.blueprint), std::move(swapped.plan), &checkpoint, type, seed, progress,
                            cancellation);
        return std::unique_ptr<Trainable>(new Trainable(std::move(built.stack), std::move(built.weights)));
    } catch (...) {
        throw current_error("model");
    }
}

Model& Trainable::model() {
    stack_->forget();
    return *stack_;
}

const Model& Trainable::model() const {
    return *stack_;
}

const std::vector<Parameter>& Trainable::parameters() const {
    return weights_->parameters();
}

at::Tensor Trainable::weights() const {
    return weights_->weights();
}

at::Tensor Trainable::gradients() const {
    return weights_->gradients();
}

std::int64_t Trainable::decayed() const {
    return weights_->decayed();
}

const std::vector<at::Tensor>& Trainable::leaves() const {
    return weights_->leaves();
}

at::Tensor Trainable::forward(const Batch& batch, const TrainingForward& training) {
    stack_->forget();
    ForwardOptions options;
    options.training = &training;
    return forward_with(batch, options);
}

at::Tensor Trainable::forward_with(const Batch& batch, const ForwardOptions& options) {
    return stack_->forward_on_device(batch, options);
}

void Trainable::to(const at::Device& device) {
    if (device == stack_->device()) return;
    const auto counterparts = weights_->to(device);
    stack_->to(device, [&](const at::Tensor& tensor) { return counterparts.at(tensor.unsafeGetTensorImpl()); });
}

at::Device Trainable::device() const {
    return stack_->device();
}

LossSum Trainable::loss(const at::Tensor& hidden_rows, const at::Tensor& targets,
                        const HeadLossOptions& options) const {
    return stack_->loss(hidden_rows, targets, options);
}

at::Tensor Trainable::class_logits(const at::Tensor& hidden_rows) const {
    return stack_->class_logits(hidden_rows);
}

at::Tensor Trainable::head_weight() const {
    return stack_->head_weight();
}

bool Trainable::has_guide_ids() const {
    return std::any_of(parameters().begin(), parameters().end(),
                       [](const Parameter& parameter) { return parameter.value.scalar_type() == at::kLong; });
}

void Trainable::set_guide_ids(const at::Tensor& ids) {
    if (!ids.defined() || ids.scalar_type() != at::kLong || ids.numel() == 0) {
        throw Error(ErrorCode::usage, "guide", "expected token ids of int64", "found none");
    }
    const at::Tensor flat = on_processor(ids).flatten();
    if (flat.lt(0).logical_or(flat.ge(stack_->config().ids())).any().item<bool>()) {
        throw Error(ErrorCode::limit, "guide", "expected ids from 0 to " + std::to_string(stack_->config().ids() - 1),
                    "found others");
    }
    for (const Parameter& parameter : parameters()) {
        if (parameter.value.scalar_type() != at::kLong) continue;
        const at::Tensor places = at::arange(parameter.value.numel(), at::kLong).remainder(flat.numel());
        parameter.value.copy_(flat.index_select(0, places));
    }
    stack_->forget();
}

std::string Trainable::config_json() const {
    return json_text(saved_json(stack_->config(), weights().scalar_type()));
}

std::vector<checkpoint::OutputTensor> Trainable::output_tensors() const {
    std::vector<checkpoint::OutputTensor> tensors;
    for (const Parameter& parameter : parameters())
        tensors.push_back(checkpoint::output_tensor(parameter.name, parameter.value, parameter.shape));
    return tensors;
}

void Trainable::save(const std::filesystem::path& destination, const std::vector<std::filesystem::path>& side_files,
                     Progress& progress, const Cancellation& cancellation) const {
    const nlohmann::json config = saved_json(stack_->config(), weights().scalar_type());
    checkpoint::SaveRequest request;
    request.destination = destination;
    request.config = &config;
    request.tensors = output_tensors();
    request.side_files = side_files;
    checkpoint::save_checkpoint(request, progress, cancellation);
}

std::unique_ptr<Trainable> on_model_device(std::unique_ptr<Trainable> trainable) {
    if (!model_device().is_cpu()) trainable->to(model_device());
    return trainable;
}

}  // namespace headscope::model
