// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/tensor_plan.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <ATen/ops/empty.h>

#include "core/base/error.h"
#include "core/base/text/shape_text.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/checkpoint/tensor_reader.h"
#include "core/checkpoint/torch_types.h"

namespace headscope::model {
namespace {

using checkpoint::DataType;

bool is_weight_type(DataType type) {
    return type == DataType::f16 || type == DataType::bf16 || type == DataType::f32 || type == DataType::f64;
}

std::string expected_text(const std::vector<Dimension>& shape) {
    std::vector<std::int64_t> sizes;
    std::string keys;
    for (const Dimension& dimension : shape) {
        sizes.push_back(dimension.size);
        keys += (keys.empty() ? "" : "; ") + dimension.keys;
    }
    return "expected shape " + shape_text(sizes) + " (" + keys + ")";
}

/// The number that follows `begin` in `name`, or -1.
std::int64_t layer_number(const std::string& name, const std::string& begin) {
    if (begin.empty() || name.compare(0, begin.size(), begin) != 0) return -1;
    std::int64_t number = -1;
    for (std::size_t i = begin.size(); i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])); ++i) {
        number = std::max<std::int64_t>(number, 0) * 10 + (name[i] - '0');
        if (number > (std::int64_t{1} << 40)) break;
    }
    return number;
}

bool ends_with(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

std::string weights_problem(const LoadReport& report) {
    if (report.not_finite.empty()) return "";
    const NotFinite& first = report.not_finite.front();
    const std::size_t others = report.not_finite.size() - 1;
    return "weights: " + count_text(static_cast<std::uint64_t>(first.numbers)) + " of " +
           count_text(static_cast<std::uint64_t>(first.elements)) + " numbers of " + escaped(first.tensor) +
           " are NaN or infinite" +
           (others == 0 ? ""
                        : ", and some of " + std::to_string(others) + (others == 1 ? " tensor" : " tensors") + " more");
}

void TensorPlan::begin_tower(const ModelConfig& config, const TensorNames& names) {
    config_ = &config;
    keys_ = names.keys;
    transposed_ = names.transposed;
    if (const std::size_t number = names.layer.find("{}"); number != std::string::npos)
        towers_.push_back(
            {names.prefix + names.layer.substr(0, number), config.layers, names.keys.layers, config.further_layers});
    for (const TensorNames::Numbered& parts : names.numbered)
        towers_.push_back({names.prefix + parts.begin, parts.count, parts.key});
    buffers_.insert(buffers_.end(), names.buffers.begin(), names.buffers.end());
}

std::vector<std::int64_t> TensorPlan::Want::sizes() const {
    std::vector<std::int64_t> sizes;
    for (const Dimension& dimension : shape) sizes.push_back(dimension.size);
    return sizes;
}

bool TensorPlan::has(const std::string& tensor) const {
    return !file_ || renewed(tensor) || file_->tensors().count(tensor) != 0 || file_->unreadable().count(tensor) != 0;
}

bool TensorPlan::renewed(const std::string& tensor) const {
    return std::any_of(renewed_.begin(), renewed_.end(),
                       [&tensor](const std::string& begin) { return tensor.starts_with(begin); });
}

std::int64_t TensorPlan::rows_in_file(const std::string& tensor) const {
    if (!file_) return 0;
    const auto found = file_->tensors().find(tensor);
    return found == file_->tensors().end() || found->second.shape.empty() ? 0 : found->second.shape.front();
}

void TensorPlan::want(at::Tensor* into, const std::vector<std::string>& names, std::vector<Dimension> shape,
                      Initial initial) {
    const auto there = std::find_if(names.begin(), names.end(), [this](const std::string& name) { return has(name); });
    std::string name = there == names.end() ? names.front() : *there;
    if (const auto shared = shared_.find(name); shared != shared_.end()) name = shared->second;
    Want want{into, std::move(name), std::move(shape)};
    want.initial = initial;
    want.exact = initial == Initial::rate_log || initial == Initial::rate_log_from_1 || initial == Initial::step_bias;
    wants_.push_back(std::move(want));
}

void TensorPlan::want_number(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape, double fresh,
                             Initial initial) {
    want(into, {tensor}, std::move(shape), initial);
    wants_.back().number = fresh;
}

void TensorPlan::want_exact(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape) {
    want_number(into, tensor, std::move(shape), 0, Initial::fixed);
    wants_.back().exact = true;
}

void TensorPlan::keep_exact() {
    wants_.back().exact = true;
}

void TensorPlan::allow_rows(std::shared_ptr<RowTable>* table) {
    wants_.back().table = table;
}

void TensorPlan::allow_product(std::shared_ptr<const PackedMatrix>* packed) {
    wants_.back().packed = packed;
}

void TensorPlan::allow_experts(ExpertLoader** loader, std::int64_t expert) {
    wants_.back().experts = loader;
    wants_.back().expert = expert;
}

void TensorPlan::want_linear(at::Tensor* into, const std::string& stem, Dimension out, Dimension in) {
    std::vector<Dimension> shape{std::move(out), std::move(in)};
    if (transposed_) std::swap(shape[0], shape[1]);
    wants_.push_back({into, stem + ".weight", std::move(shape), transposed_});
}

void TensorPlan::want_rows(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape, std::int64_t row,
                           std::int64_t rows, Initial initial) {
    wants_.push_back({into, tensor, std::move(shape), false, row, rows});
    wants_.back().initial = initial;
}

void TensorPlan::want_by_head(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape,
                              std::int64_t heads, std::int64_t parts) {
    wants_.push_back({into, tensor, std::move(shape), false, -1, 0, heads, parts});
}

bool TensorPlan::fresh(const Want& want) const {
    if (!file_ || renewed(want.tensor)) return true;
    if (!may_be_fresh_ || !may_be_fresh_(want.tensor)) return false;
    if (file_->unreadable().count(want.tensor) != 0) return false;
    const auto found = file_->tensors().find(want.tensor);
    return found == file_->tensors().end() || found->second.shape != want.sizes();
}

void TensorPlan::check_one(const Want& want) const {
    const auto found = file_->tensors().find(want.tensor);
    const std::string where = escaped(want.tensor);
    if (found == file_->tensors().end()) {
        throw Error(ErrorCode::mismatch, where, expected_text(want.shape),
                    "found no such tensor in " + escaped(file_->display_name()));
    }
    const checkpoint::TensorInfo& info = found->second;
    if (info.shape != want.sizes()) {
        const std::string file = file_->files().at(info.file).filename().string();
        throw Error(ErrorCode::mismatch, where, expected_text(want.shape),
                    "found " + shape_text(info.shape) + " in " + escaped(file));
    }
    if (want.initial == Initial::ids && info.type != DataType::i64) {
        throw Error(ErrorCode::unsupported, where, "expected token ids of type I64",
                    "found " + std::string(checkpoint::name(info.type)));
    }
    if (want.initial != Initial::ids && !is_weight_type(info.type)) {
        throw Error(ErrorCode::unsupported, where, "expected weights of type F16, BF16, F32 or F64",
                    "found " + std::string(checkpoint::name(info.type)));
    }
}

void TensorPlan::check_left_overs() {
    std::set<std::string> wanted;
    for (const Want& want : wants_) wanted.insert(want.tensor);
    std::size_t buffers = 0;
    for (const auto& [name, info] : file_->tensors()) {
        if (wanted.count(name) != 0) continue;
        for (const TowerLayers& tower : towers_) {
            if (layer_number(name, tower.begin) < tower.layers + tower.further) continue;
            throw Error(ErrorCode::mismatch, "config.json: " + tower.key, "expected as many layers as the file has",
                        "found " + std::to_string(tower.layers) + ", and the tensor " + escaped(name));
        }
        report_.left_over.push_back(name);
        const auto is_end = [&name = name](const std::string& end) { return ends_with(name, end); };
        if (std::any_of(buffers_.begin(), buffers_.end(), is_end)) ++buffers;
    }
    if (buffers > 0) note(std::to_string(buffers) + " left-over buffers of an older file: not needed");
}

LoadReport TensorPlan::check() {
    std::set<std::string> absent, fresh, matched;
    for (Want& want : wants_) {
        want.fresh = this->fresh(want);
        (want.fresh ? fresh : matched).insert(want.tensor);
        if (!want.fresh && !has(want.tensor)) absent.insert(want.tensor);
    }
    if (!file_) return report_;
    for (const std::string& name : matched)
        if (file_->unreadable().count(name) != 0) file_->tensor(name);  // throws, with what it is
    if (absent.size() > 1) {
        throw Error(
            ErrorCode::mismatch, escaped(file_->display_name()), "expected every tensor that config.json asks for",
            "found none of these " + std::to_string(absent.size()) + ": " + list_text({absent.begin(), absent.end()}));
    }
    for (const Want& want : wants_)
        if (!want.fresh) check_one(want);
    if (!fresh.empty()) note("fresh, not from the file: " + list_text({fresh.begin(), fresh.end()}, 20));
    check_left_overs();
    report_.matched = matched.size();
    return report_;
}

std::int64_t TensorPlan::load_one(const Want& want, checkpoint::LoadAs precision,
                                  const Cancellation* cancellation) const {
    const checkpoint::LoadAs as = want.precision(precision);
    const Cancellation never;
    const Cancellation& stop = cancellation ? *cancellation : never;
    std::vector<std::int64_t> shape = want.sizes();
    const at::ScalarType type =
        checkpoint::torch_type(checkpoint::loaded_type(file_->tensor(want.tensor).type, as)).value();
    const auto fill = [&](const at::Tensor& into) { return checkpoint::load_into(*file_, want.tensor, into, stop); };
    if (want.row >= 0) {
        const std::int64_t rows = std::exchange(shape.at(0), want.rows);
        if (!want.into->defined()) *want.into = at::empty(shape, at::TensorOptions(type));
        return fill(want.into->narrow(0, want.row, rows));
    }
    if (want.heads > 0) {
        const at::Tensor tensor = checkpoint::brief_tensor(shape, type);
        const std::int64_t not_finite = fill(tensor);
        *want.into = tensor.unflatten(0, {want.heads, want.parts, -1}).transpose(0, 1).reshape(shape);
        return not_finite;
    }
    std::int64_t not_finite = 0;
    const at::Tensor tensor = file_->load(want.tensor, as, stop, &not_finite);
    *want.into = want.transposed ? tensor.t() : tensor;
    return not_finite;
}

std::int64_t TensorPlan::elements(const Want& want) {
    std::int64_t stored = 1;
    for (const Dimension& dimension : want.shape) stored *= dimension.size;
    return stored;
}

std::int64_t TensorPlan::elements() const {
    std::set<std::string> counted;
    std::int64_t elements = 0;
    for (const Want& want : wants_) {
        if (!want.given() && counted.insert(want.tensor).second) elements += this->elements(want);
    }
    return elements;
}

void TensorPlan::count_as(Part part, std::size_t first) {
    for (std::size_t i = first; i < wants_.size(); ++i) wants_[i].part = part;
}

void TensorPlan::assign_to_layer(std::int64_t layer, std::size_t first) {
    for (std::size_t i = first; i < wants_.size(); ++i) wants_[i].layer = layer;
}

void TensorPlan::use_after_mixer(std::size_t first) {
    for (std::size_t i = first; i < wants_.size(); ++i) wants_[i].after_mixer = true;
}

WeightSizes TensorPlan::sizes() const {
    WeightSizes sizes;
    if (!file_) return sizes;
    struct LayerSize {
        double bytes = 0, early = 0, late = 0;  ///< in the file; numbers up to the mixers' end and after it
    };
    std::map<std::int64_t, LayerSize> layers;
    std::set<std::string> counted;
    for (const Want& want : wants_) {
        const auto found = file_->tensors().find(want.tensor);
        if (want.fresh || found == file_->tensors().end() || !counted.insert(want.tensor).second) continue;
        const auto bytes = static_cast<double>(file_->stored_bytes(want.tensor));
        const auto numbers = static_cast<double>(elements(want));
        sizes.stored += bytes;
        if (file_->adapter() && file_->adapter()->update_bytes(want.tensor) > 0)
            sizes.merged = std::max(sizes.merged, bytes);
        if (want.layer >= 0) {
            LayerSize& size = layers[want.layer];
            size.bytes += bytes;
            (want.after_mixer ? size.late : size.early) += numbers;
        } else if (want.table && file_->is_packed(want.tensor)) {
            sizes.tables_kept += bytes;
        } else if (want.table) {
            sizes.table_stored = std::max(sizes.table_stored, bytes);
            if (file_->adapter()) sizes.tables_kept += static_cast<double>(file_->adapter()->update_bytes(want.tensor));
        } else {
            sizes.rest += numbers;
        }
    }
    for (const auto& [layer, size] : layers) {
        sizes.layer_stored = std::max(sizes.layer_stored, size.bytes);
        sizes.layer = std::max(sizes.layer, size.early + size.late);
        sizes.buffer = std::max({sizes.buffer, size.early, size.late});
    }
    return sizes;
}

std::int64_t TensorPlan::weights(Part part) const {
    std::set<std::string> counted;
    std::int64_t elements = 0;
    for (const Want& want : wants_) {
        if (want.part == part && want.shape.size() > 1 && !want.given() && counted.insert(want.tensor).second)
            elements += this->elements(want);
    }
    return elements;
}

void TensorPlan::load(checkpoint::LoadAs precision, Progress* progress, const Cancellation* cancellation,
                      const std::function<bool(std::size_t want)>& skipped) {
    std::int64_t done = 0, all = 0;
    std::map<std::string, const Want*> read;
    std::vector<const Want*> wants;
    for (std::size_t i = 0; i < wants_.size(); ++i) {
        if (skipped && skipped(i)) continue;
        wants.push_back(&wants_[i]);
        all += file_->tensors().at(wants_[i].tensor).elements;
    }
    for (const Want* one : wants) {
        const Want& want = *one;
        if (cancellation) cancellation->check();
        if (progress)
            progress->advance(static_cast<double>(done), static_cast<double>(all), "load " + escaped(want.tensor));
        // Shared tensors of two towers are read once and stored once.
        const bool whole = want.row < 0 && want.heads == 0;
        const auto [first, is_new] = read.emplace(want.tensor, &want);
        if (!is_new && whole && first->second->row < 0 && first->second->heads == 0 &&
            first->second->transposed == want.transposed) {
            *want.into = *first->second->into;
        } else {
            const std::int64_t not_finite = load_one(want, precision, cancellation);
            if (is_new && not_finite > 0) report_.not_finite.push_back({want.tensor, not_finite, elements(want)});
        }
        done += file_->tensors().at(want.tensor).elements;
    }
}

}  // namespace headscope::model
