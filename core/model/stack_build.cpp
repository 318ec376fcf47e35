// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/cache.h"
#include "core/model/stack.h"
#include "core/model/tensor_plan.h"

namespace headscope::model {
namespace {

ModelConfig read_config(const checkpoint::Checkpoint& file, const Family& family, const ConfigReader& reader) {
    ModelConfig config = family.read(reader);
    config.family = family.name;
    config.name = file.display_name();
    config.original_json = file.config().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    // Layers are made before tensors are checked one by one: their number must be one that the file's tensors justify.
    if (config.layers > static_cast<std::int64_t>(file.tensors().size())) {
        throw Error(ErrorCode::mismatch, reader.where(family.names(config).keys.layers),
                    "expected no more layers than the file has tensors (" + std::to_string(file.tensors().size()) + ")",
                    "found " + std::to_string(config.layers));
    }
    if (config.mixers.empty()) config.mixers.assign(static_cast<std::size_t>(config.layers), "standard");
    return config;
}

std::string find_prefix(const checkpoint::Checkpoint& file, const TensorNames& names) {
    for (const std::string& prefix : names.prefixes) {
        if (file.tensors().count(prefix + names.token_embedding + ".weight") != 0) return prefix;
    }
    return names.prefixes.front();
}

/// "stored" computes in what the file mostly is; half precision and mixtures go to float32.
checkpoint::LoadAs choose_precision(const checkpoint::Checkpoint& file, checkpoint::LoadAs asked) {
    if (asked != checkpoint::LoadAs::stored) return asked;
    const auto all = [&file](checkpoint::DataType type) {
        return std::all_of(file.tensors().begin(), file.tensors().end(),
                           [type](const auto& tensor) { return tensor.second.type == type; });
    };
    if (all(checkpoint::DataType::bf16)) return checkpoint::LoadAs::bfloat16;
    return all(checkpoint::DataType::f64) ? checkpoint::LoadAs::float64 : checkpoint::LoadAs::float32;
}

}  // namespace

Stack::Stack(const checkpoint::Checkpoint& file, std::optional<checkpoint::LoadAs> precision, Progress* progress,
             const Cancellation* cancellation) {
    const ConfigReader reader(file.config(), "config.json");
    const Family& family = find_family(reader);
    config_ = read_config(file, family, reader);
    TensorNames names = family.names(config_);
    names.prefix = find_prefix(file, names);

    TensorPlan plan(file);
    plan.begin_tower(config_, names);
    text_.declare(plan, names, 0, sites_);
    head_.declare(plan, names);
    report_ = plan.check();
    parameters_ = plan.elements();
    if (!precision) return;
    plan.load(choose_precision(file, *precision), progress, cancellation);
    if (head_.there && !head_.vocabulary.weight.defined()) head_.vocabulary.weight = text_.embedding().tokens;
}

std::vector<std::string> Stack::mixers() const {
    std::vector<std::string> names;
    for (const Layer& layer : text_.layers()) names.push_back(layer.mixer->name());
    return names;
}

std::unique_ptr<Cache> Stack::new_cache() const {
    std::vector<std::unique_ptr<mixers::MixerCache>> caches;
    for (const Layer& layer : text_.layers()) caches.push_back(layer.mixer->new_cache());
    return std::make_unique<Cache>(std::move(caches));
}

namespace {

void expect_config(const checkpoint::Checkpoint& file) {
    if (file.has_config()) return;
    throw Error(ErrorCode::mismatch, escaped(file.display_name()), "expected config.json beside the weights",
                "found none");
}

}  // namespace

Inspection inspect(const checkpoint::Checkpoint& checkpoint) {
    try {
        expect_config(checkpoint);
        const Stack stack(checkpoint, std::nullopt, nullptr, nullptr);
        return {stack.config(), stack.sites(), stack.report(), stack.parameters(), stack.has_head()};
    } catch (...) {
        throw current_error("model");
    }
}

std::shared_ptr<Model> Model::build(const checkpoint::Checkpoint& checkpoint, checkpoint::LoadAs precision,
                                    Progress* progress, const Cancellation* cancellation) {
    try {
        expect_config(checkpoint);
        return std::make_shared<Stack>(checkpoint, precision, progress, cancellation);
    } catch (...) {
        throw current_error("model");
    }
}

}  // namespace headscope::model
