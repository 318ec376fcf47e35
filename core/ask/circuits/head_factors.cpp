// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/circuits/head_factors.h"

#include <optional>
#include <string>
#include <tuple>

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
    if (model.config().encoder) refuse("a model of one stack", "an encoder with a decoder");
    if (model.residence() != model::Residence::float32)
        refuse("weights in memory in float32 (--weights float32)", std::string(model::name(model.residence())));
    if (fold && !model.config().pre_norm) refuse("norms ahead of attention for --norm fold", "norms behind it");
    const auto layers = stack_of(model).tower().layers();
    for (std::int64_t layer = 0; layer < std::ssize(layers); ++layer) {
        const model::Layer& block = *layers[static_cast<std::size_t>(layer)];
        const auto maps = block.mixer ? block.mixer->head_maps() : std::nullopt;
        if (!maps || (!maps->output.defined() && !block.output.weight.defined())) continue;
        std::int64_t site = 0;
        while (model.sites()[static_cast<std::size_t>(site)].layer != layer) ++site;
        sites_.push_back(site);
    }
    if (sites_.empty()) refuse("a layer of softmax attention with maps of its own", "none in " + model.config().family);
}

HeadFactors HeadReader::factors(std::int64_t site) const {
    const std::int64_t layer = model_->sites()[static_cast<std::size_t>(site)].layer;
    const model::Layer& block = *stack_of(*model_).tower().layers()[static_cast<std::size_t>(layer)];
    const std::optional<mixers::HeadMaps> maps = block.mixer->head_maps();
    const std::int64_t heads = maps->query.size(0);
    const auto read = [&](const at::Tensor& map) {
        const at::Tensor own = model::on_processor(map).to(at::kFloat);
        return fold_ ? behind(block.input_norm, own) : own;
    };
    const at::Tensor output =
        model::on_processor(maps->output.defined() ? maps->output : block.output.weight).to(at::kFloat);
    return {read(maps->query), repeated(read(maps->key), heads), repeated(read(maps->value), heads),
            output.t().reshape({heads, -1, output.size(0)})};
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
                        const Triangles& of_later) {
    return {composed(earlier, of_earlier, later.query, of_later.query, of_later.key),
            composed(earlier, of_earlier, later.key, of_later.key, of_later.query),
            composed(earlier, of_earlier, later.value, of_later.value, of_later.output)};
}

}  // namespace headscope::ask::circuits
