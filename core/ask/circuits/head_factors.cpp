// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/circuits/head_factors.h"

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/real.h>

#include "core/ask/parts.h"
#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/model.h"

namespace headscope::ask::circuits {
namespace {

/// Head maps [heads, d, size] behind a norm whose scale is left out.
at::Tensor behind(const model::Norm& norm, const at::Tensor& maps) {
    if (norm.affine && !norm.weight.defined()) return maps;
    const at::Tensor gain = model::on_processor(norm.gain());
    const at::Tensor scaled = gain.defined() ? maps * gain.to(at::kFloat).view({1, -1, 1}) : maps;
    return norm.kind == model::NormKind::layer ? scaled - scaled.mean(1, true) : scaled;
}

at::Tensor repeated(const at::Tensor& groups, std::int64_t heads) {
    return groups.repeat_interleave(heads / groups.size(0), 0);
}

at::Tensor triangle(const at::Tensor& columns) {
    return std::get<1>(at::linalg_qr(columns.to(at::kDouble), "r"));
}

at::Tensor norms(const at::Tensor& matrices) {
    return matrices.square().sum(-1).sum(-1).sqrt();
}

/// ||V_a (O_a X_b) R_b^T|| over the norms, with V_a's triangle in its place: [Ha, Hb]. `later` [Hb, d, k], `right` the
/// triangle of M's other factor.
at::Tensor composed(const HeadFactors& earlier, const Triangles& of_earlier, const at::Tensor& later,
                    const at::Tensor& of_later, const at::Tensor& right) {
    const at::Tensor left_norm = norms(of_earlier.value.matmul(of_earlier.output.transpose(1, 2)));
    const at::Tensor right_norm = norms(of_later.matmul(right.transpose(1, 2)));
    const std::int64_t heads = later.size(0), size = later.size(2), values = earlier.output.size(1);
    const at::Tensor columns = later.permute({1, 0, 2}).reshape({later.size(1), heads * size});
    const at::Tensor rows = earlier.output.reshape({-1, earlier.output.size(2)});
    const at::Tensor products =
        rows.matmul(columns).view({earlier.output.size(0), values, heads, size}).permute({0, 2, 1, 3}).to(at::kDouble);
    const at::Tensor all = of_earlier.value.unsqueeze(1).matmul(products).matmul(right.transpose(1, 2).unsqueeze(0));
    return norms(all) / left_norm.unsqueeze(1) / right_norm.unsqueeze(0);
}

}  // namespace

HeadReader::HeadReader(const model::Model& model, bool fold) : model_(&model), fold_(fold) {
    const auto refuse = [](const std::string& expected, const std::string& found) {
        throw Error(ErrorCode::unsupported, "ask circuits", "expected " + expected, "found " + found);
    };
    if (model.residence() != model::Residence::float32)
        refuse("weights in memory in float32 (--weights float32)", std::string(model::name(model.residence())));
    const model::ModelConfig& config = model.config();
    if (fold && !(config.pre_norm && (!config.encoder || config.encoder->pre_norm)))
        refuse("norms ahead of attention for --norm fold", "norms behind it");
    std::int64_t layer = -1;
    for (std::int64_t site = 0; site < std::ssize(model.sites()); ++site) {
        const Place part = place(site);
        const std::int64_t previous = std::exchange(layer, model.sites()[static_cast<std::size_t>(site)].layer);
        if (previous == layer && !part.cross) continue;  // maps are those of a mixer's first site
        const auto& mixer = part.cross ? part.block->cross : part.block->mixer;
        const auto maps = mixer ? mixer->head_maps() : std::nullopt;
        const at::Tensor& output = part.cross ? part.block->cross_output.weight : part.block->output.weight;
        if (maps && (maps->output.defined() || output.defined())) sites_.push_back(site);
    }
    if (sites_.empty()) refuse("a layer of softmax attention with maps of its own", "none in " + config.family);
}

HeadReader::Place HeadReader::place(std::int64_t site) const {
    const model::Stack& stack = stack_of(*model_);
    const Site& own = model_->sites()[static_cast<std::size_t>(site)];
    const std::int64_t first = stack.encoder() ? model_->config().encoder->layers : 0;  // of the last tower
    const model::Tower& tower = own.layer < first ? *stack.encoder() : stack.tower();
    const std::int64_t number = own.layer < first ? own.layer : own.layer - first;
    return {tower.layers().at(static_cast<std::size_t>(number)), own.is_cross()};
}

HeadFactors HeadReader::factors(std::int64_t site) const {
    const Place part = place(site);
    const model::Layer& block = *part.block;
    const std::optional<mixers::HeadMaps> maps = (part.cross ? block.cross : block.mixer)->head_maps();
    const std::int64_t heads = maps->query.size(0);
    const auto read = [&](const at::Tensor& map, const model::Norm& norm) {
        const at::Tensor own = model::on_processor(map).to(at::kFloat);
        return fold_ ? behind(norm, own) : own;
    };
    const model::Norm& of_query = part.cross ? block.cross_norm : block.input_norm;
    const model::Norm& of_key = part.cross ? stack_of(*model_).encoder()->final_norm() : block.input_norm;
    const at::Tensor& behind_heads = part.cross ? block.cross_output.weight : block.output.weight;
    const at::Tensor output = model::on_processor(maps->output.defined() ? maps->output : behind_heads).to(at::kFloat);
    return {read(maps->query, of_query), repeated(read(maps->key, of_key), heads),
            repeated(read(maps->value, of_key), heads), output.t().reshape({heads, -1, output.size(0)})};
}

Triangles triangles(const HeadFactors& factors) {
    return {triangle(factors.query), triangle(factors.key), triangle(factors.value),
            triangle(factors.output.transpose(1, 2))};
}

at::Tensor qk_singular_values(const Triangles& of) {
    return at::linalg_svdvals(of.query.matmul(of.key.transpose(1, 2)));
}

at::Tensor ov_singular_values(const Triangles& of) {
    return at::linalg_svdvals(of.value.matmul(of.output.transpose(1, 2)));
}

at::Tensor eigenvalue_score(const at::Tensor& matrices) {
    const at::Tensor values = at::linalg_eigvals(matrices.to(at::kDouble));
    return at::real(values).sum(1) / values.abs().sum(1);
}

Composition composition(const HeadFactors& earlier, const Triangles& of_earlier, const HeadFactors& later,
                        const Triangles& of_later, const ReadParts& reads) {
    Composition found;
    if (reads.query) found.query = composed(earlier, of_earlier, later.query, of_later.query, of_later.key);
    if (reads.key) found.key = composed(earlier, of_earlier, later.key, of_later.key, of_later.query);
    if (reads.value) found.value = composed(earlier, of_earlier, later.value, of_later.value, of_later.output);
    return found;
}

}  // namespace headscope::ask::circuits
