// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>

#include "core/mixers/mixer.h"

namespace headscope::mixers {
namespace {

model::PointKey key_of(model::Point point, LayerIndex layer, SiteIndex site) {
    const bool end = point == model::Point::embedding || point == model::Point::final_norm;
    return {point, end ? -1 : layer.value, model::is_of_site(point) ? site.value : -1};
}

at::Tensor run_edit(const StackContext& context, const model::EditPlace& place, const at::Tensor& value) {
    const at::Tensor changed = context.editor->edit(place, value);
    if (context.probe != nullptr) context.announce(std::string(model::name(place.key.point)) + "_edited", changed);
    return changed;
}

}  // namespace

bool StackContext::edits(model::Point point, SiteIndex at) const {
    return editor != nullptr && editor->edits(key_of(point, layer, at));
}

at::Tensor StackContext::edited(model::Point point, const at::Tensor& value, SiteIndex at) const {
    if (!edits(point, at)) return value;
    return run_edit(*this, {key_of(point, layer, at), first_position, lengths}, value);
}

at::Tensor StackContext::edited_matrix(model::Point point, const at::Tensor& matrix, const at::Tensor& visible,
                                       const kernels::ScoreRule& rule, SiteIndex at) const {
    if (!edits(point, at)) return matrix;
    const auto* keys = rule.key_length.empty() ? nullptr : &rule.key_length;
    return run_edit(*this, {key_of(point, layer, at), first_position, lengths, keys, visible}, matrix);
}

StackContext StackContext::of_memory() const {
    StackContext other = *this;
    other.first_position = 0;
    other.lengths = memory_lengths;
    return other;
}

}  // namespace headscope::mixers
