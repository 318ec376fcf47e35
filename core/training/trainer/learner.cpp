// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/learner.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/splitmix64.h"
#include "core/model/device.h"
#include "core/model/training_ops.h"
#include "core/training/trainer/exchange/choose_sums.h"
#include "kernels/optimizer.h"

namespace headscope::training {
namespace {

constexpr std::uint64_t kAttentionStream = std::uint64_t{1} << 32U;  ///< in place of a pass: beyond any pass's number

/// One number of three by SplitMix64, restarted with each.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t step, std::uint64_t part) {
    std::uint64_t state = 0;
    for (const std::uint64_t value : {seed, step, part}) state = splitmix64((state ^ value) + 0x9E3779B97F4A7C15U);
    return state;
}

/// True if all [n] numbers are finite. Copies a piece at a time.
bool all_finite(const at::Tensor& numbers) {
    constexpr std::int64_t kPiece = std::int64_t{1} << 24U;
    for (std::int64_t first = 0; first < numbers.size(0); first += kPiece) {
        const at::Tensor piece = numbers.narrow(0, first, std::min(kPiece, numbers.size(0) - first));
        if (!at::isfinite(piece).all().item<bool>()) return false;
    }
    return true;
}

/// `values` in this shape; undefined where there are none.
template <class Number>
at::Tensor tensor_of(const std::vector<Number>& values, at::ScalarType type, at::IntArrayRef shape) {
    if (values.empty()) return {};
    at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, type);
    std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(Number));
    return tensor.view(shape);
}

at::Tensor sum_of(const std::vector<model::NamedLoss>& losses) {
    at::Tensor sum = losses.front().loss.sum;
    for (std::size_t n = 1; n < losses.size(); ++n) sum = sum + losses[n].loss.sum;
    return sum;
}

/// Sequence `n` of a batch without its padding, so that the batch's others change no bit of what is computed of it.
model::Batch sequence_of(const model::Batch& batch, std::int64_t n) {
    const auto row = [n](const at::Tensor& all, const std::vector<std::int64_t>& lengths) -> at::Tensor {
        if (!all.defined()) return all;
        const at::Tensor one = all.narrow(0, n, 1);
        return lengths.empty() ? one : one.narrow(1, 0, lengths[static_cast<std::size_t>(n)]).contiguous();
    };
    const std::vector<std::int64_t> whole;
    const bool of_tokens = batch.labels.defined() && batch.labels.sizes() == batch.predicted().sizes();
    model::Batch one;
    one.ids = row(batch.ids, batch.lengths);
    one.token_types = row(batch.token_types, batch.lengths);
    one.target = row(batch.target, batch.target_lengths);
    one.features = row(batch.features, batch.lengths);
    one.labels = row(batch.labels, of_tokens ? batch.predicted_lengths() : whole);
    one.values = row(batch.values, whole);
    return one;
}

void read_into(at::Tensor& to, const checkpoint::Checkpoint& file, const std::string& name) {
    const at::Tensor stored = file.load(name, checkpoint::LoadAs::float32);
    if (stored.numel() != to.numel())
        throw Error(ErrorCode::mismatch, escaped(file.display_name()) + ": " + name,
                    "expected " + std::to_string(to.numel()) + " numbers, as many as the model's weights",
                    "found " + std::to_string(stored.numel()));
    to.copy_(stored.flatten());
}

}  // namespace

model::Batch batch_of(const data::DataBatch& batch, const model::ModelConfig& config) {
    const std::int64_t all = batch.sequences, length = batch.length;
    model::Batch made;
    made.ids = tensor_of(batch.ids, at::kLong, {all, length});
    made.lengths = batch.lengths;
    if (!batch.types.empty() && config.reads_types())
        made.token_types = tensor_of(batch.types, at::kLong, {all, length});
    if (!batch.target_ids.empty()) {
        made.target = tensor_of(batch.target_ids, at::kLong, {all, batch.target_length});
        made.target_lengths = batch.target_lengths;
    }
    if (batch.bits_per_token > 0) made.features = tensor_of(batch.bits, at::kByte, {all, length, batch.bits_per_token});
    if (!batch.points.empty()) made.features = tensor_of(batch.points, at::kLong, {all, length, 1});
    if (static_cast<std::int64_t>(batch.targets.size()) == made.predicted().numel())
        made.labels = tensor_of(batch.targets, at::kLong, made.predicted().sizes());
    else
        made.labels = static_cast<std::int64_t>(batch.targets.size()) == all
                          ? tensor_of(batch.targets, at::kLong, {all})
                          : tensor_of(batch.targets, at::kLong, {all, -1});
    made.values = tensor_of(batch.values, at::kFloat, {all});
    return made;
}

void Loss::add(const std::vector<model::NamedLoss>& losses) {
    sum.add(losses.front().loss.cross_entropy);
    counted += losses.front().loss.rows;
    correct += losses.front().loss.correct;
}

void Loss::add(const Loss& other) {
    sum.add(other.sum);
    counted += other.counted;
    correct += other.correct;
}

Learner::Learner(std::unique_ptr<model::Trainable> model, const JobFile& job)
    : model_(std::move(model)),
      objective_(model::make_objective(job.data.objective.kind, job.data.objective.classes)),
      job_(job) {
    objective_->check(std::as_const(*model_).model().config());
    const at::Tensor weights = model_->weights();
    const at::NoGradGuard no_gradient;
    const at::Tensor updated = model::for_kernel(weights);  // where the optimizer's kernel reads
    first_ = at::zeros({weights.numel()}, updated.options().dtype(at::kFloat));
    second_ = at::zeros_like(first_);
    if (weights.scalar_type() != at::kBFloat16) return;
    master_ = updated.to(at::kFloat);
    if (job_.training.several_passes()) sums_ = at::zeros({weights.numel()}, weights.options().dtype(at::kFloat));
}

model::Batch Learner::read(const data::DataBatch& batch) const {
    const model::ModelConfig& config = std::as_const(*model_).model().config();
    model::Batch made = batch_of(batch, config);
    const std::int64_t start = config.decoder_start;
    if (made.target.defined() && start >= 0) made.target.select(1, 0).fill_(start);
    return made;
}

void Learner::join(Processes& processes) {
    ChosenSums chosen = choose_sums(processes, model_->device());
    exchange_text_ = std::move(chosen.text);
    exchange_ = std::make_unique<GradientExchange>(*model_, processes, std::move(chosen.sums));
}

void Learner::pass(const model::Batch& batch, const model::TrainingForward& training, double scale, PassPlace place,
                   Loss& loss) {
    at::Tensor own = model_->gradients();
    if (place.first || sums_.defined()) own.zero_();
    model::HeadLossOptions options;
    options.z_loss = job_.training.z_loss;
    const auto losses = objective_->losses(*model_, batch, options, &training);
    if (exchange_ && !sums_.defined() && place.last) exchange_->arm();
    sum_of(losses).mul(scale).backward();
    if (sums_.defined()) place.first ? sums_.copy_(own) : sums_.add_(own);
    loss.add(losses);
}

Loss Learner::gradients(const std::vector<data::DataBatch>& parts, std::int64_t step) {
    const std::int64_t rank = exchange_ ? exchange_->processes().rank() : 0;
    double counted = 0;
    for (const auto& part : parts) counted += static_cast<double>(part.counted);
    if (exchange_) exchange_->processes().sum(&counted, 1);
    const double scale = counted > 0 ? 1.0 / counted : 0;
    const std::int64_t processes = exchange_ ? exchange_->processes().size() : 1;
    const auto seed = static_cast<std::uint64_t>(job_.seed), number = static_cast<std::uint64_t>(step);
    model::TrainingForward training;
    training.dropout = job_.training.dropout;
    training.attention_dropout = job_.training.attention_dropout;
    training.attention_seed = mixed(seed, number, kAttentionStream);
    std::int64_t before = 0;  // sequences of earlier parts
    Loss loss;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t sequences = parts[i].sequences;
        const model::Batch batch = read(parts[i]);
        const bool first = i == 0, last = i + 1 == parts.size();
        training.step_sequence = before + rank * sequences;
        before += processes * sequences;
        if (!job_.training.by_sequence()) {
            training.dropout_seed = mixed(seed, number, i);
            training.first_sequence = rank * sequences;
            pass(batch, training, scale, {first, last}, loss);
            continue;
        }
        for (std::int64_t n = 0; n < sequences; ++n, ++training.step_sequence) {
            training.dropout_seed = mixed(seed, number, static_cast<std::uint64_t>(training.step_sequence));
            pass(sequence_of(batch, n), training, scale, {first && n == 0, last && n + 1 == sequences}, loss);
        }
    }
    if (!exchange_) return loss;
    if (sums_.defined())
        exchange_->sum(sums_);
    else
        exchange_->finish();
    double sums[3] = {loss.sum.value(), static_cast<double>(loss.counted), static_cast<double>(loss.correct)};
    exchange_->processes().sum(sums, 3);
    loss.sum = {};
    loss.sum.add(sums[0]);
    loss.counted = static_cast<std::int64_t>(sums[1]);
    loss.correct = static_cast<std::int64_t>(sums[2]);
    return loss;
}

double Learner::gradient_norm() const {
    const at::Tensor gradients = model::for_kernel(summed_gradients());
    return std::sqrt(kernels::squared_norm(gradients.const_data_ptr(), model::element_type(gradients),
                                           gradients.numel(), model::kernel_device(gradients)));
}

void Learner::update(double rate, double norm, std::int64_t update) {
    const at::Tensor weights = model::for_kernel(model_->weights()), gradients = model::for_kernel(summed_gradients());
    kernels::FlatParameters flat;
    flat.size = weights.numel();
    flat.decayed = model_->decayed();
    flat.type = model::element_type(weights);
    flat.weights = weights.mutable_data_ptr();
    if (master_.defined()) flat.master = master_.mutable_data_ptr<float>();
    flat.gradient_type = model::element_type(gradients);
    flat.gradients = gradients.mutable_data_ptr();
    flat.first = first_.mutable_data_ptr<float>();
    flat.second = second_.mutable_data_ptr<float>();
    kernels::AdamWSettings settings;
    settings.rate = rate;
    settings.beta1 = job_.optimizer.betas[0];
    settings.beta2 = job_.optimizer.betas[1];
    settings.epsilon = job_.optimizer.eps;
    settings.decay = job_.optimizer.weight_decay;
    settings.step = update;
    if (job_.training.clip > 0 && norm > job_.training.clip) settings.gradient_scale = job_.training.clip / norm;
    kernels::adamw_step(flat, settings, model::kernel_device(weights));
    const at::NoGradGuard no_gradient;
    model::give_back(model_->weights(), weights);
}

Loss Learner::evaluate(const data::DataBatch& batch) {
    Loss loss;
    loss.add(objective_->losses(*model_, read(batch), {}, nullptr));
    return loss;
}

bool Learner::weights_finite() const {
    const at::NoGradGuard no_gradient;
    return all_finite(model_->weights()) && (!master_.defined() || all_finite(master_));
}

std::vector<checkpoint::OutputTensor> Learner::optimizer_tensors() const {
    std::vector<checkpoint::OutputTensor> tensors{checkpoint::output_tensor("first", first_),
                                                  checkpoint::output_tensor("second", second_)};
    if (master_.defined()) tensors.push_back(checkpoint::output_tensor("master", master_));
    return tensors;
}

void Learner::read_optimizer(const checkpoint::Checkpoint& file) {
    read_into(first_, file, "first");
    read_into(second_, file, "second");
    // A fork may have another precision than the run that it comes from.
    const bool has_master = file.tensors().count("master") > 0;
    if (!has_master) return;
    const at::NoGradGuard no_gradient;
    at::Tensor weights = model_->weights();
    read_into(master_.defined() ? master_ : weights, file, "master");
}

std::vector<at::Tensor> Learner::state_tensors() const {
    std::vector<at::Tensor> all{model_->weights(), first_, second_};
    if (master_.defined()) all.push_back(master_);
    for (const auto& parameter : model_->parameters())
        if (!parameter.trained) all.push_back(parameter.value);
    return all;
}

}  // namespace headscope::training
