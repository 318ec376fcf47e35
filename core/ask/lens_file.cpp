// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/lens_file.h"

#include <charconv>
#include <set>
#include <vector>

#include <ATen/ops/linear.h>

#include "core/base/error.h"
#include "core/base/text/shape_text.h"
#include "core/base/text/text.h"

namespace headscope::ask {
namespace {

constexpr std::string_view kWeightEnd = ".weight", kBiasEnd = ".bias", kJacobian = "J.";

/// The layer in "12.weight", "12.bias" or "J.12"; -1: another name.
std::int64_t layer_in(const std::string& name, LensKind kind) {
    std::string_view number = name;
    if (kind == LensKind::jacobian) {
        if (!number.starts_with(kJacobian)) return -1;
        number.remove_prefix(kJacobian.size());
    } else {
        const std::string_view end = number.ends_with(kBiasEnd) ? kBiasEnd : kWeightEnd;
        if (!number.ends_with(end)) return -1;
        number.remove_suffix(end.size());
    }
    std::int64_t layer = -1;
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, layer);
    return error == std::errc() && stop == end && layer >= 0 ? layer : -1;
}

}  // namespace

LensFile::LensFile(const std::filesystem::path& path, LensKind kind, std::int64_t width, std::int64_t layers)
    : kind_(kind) {
    std::error_code ignored;
    const bool folder = kind == LensKind::tuned && std::filesystem::is_directory(path, ignored);
    file_ = checkpoint::Checkpoint::open(folder ? path / "params.pt" : path);
    const std::string where = path.filename().string();
    const std::string expected = kind == LensKind::tuned ? "0.weight, 0.bias, .. of a tuned lens"
                                                         : "J with a matrix by layer of a Jacobian lens";
    std::set<std::int64_t> found;
    for (const auto& [name, info] : file_->tensors()) {
        const std::int64_t layer = layer_in(name, kind);
        if (layer < 0) throw Error(ErrorCode::format, where, "expected " + expected, "found " + escaped(name));
        const bool bias = name.ends_with(kBiasEnd);
        const std::vector<std::int64_t> shape = bias ? std::vector{width} : std::vector{width, width};
        if (info.shape != shape)
            throw Error(ErrorCode::mismatch, where, "expected " + name + " to have " + shape_text(shape),
                        "found " + shape_text(info.shape));
        if (!bias) found.insert(layer);
    }
    if (found.empty()) throw Error(ErrorCode::format, where, "expected " + expected, "found no matrix");
    const bool fits = kind == LensKind::tuned ? std::ssize(found) == layers : true;
    if (!fits || *found.rbegin() >= layers)
        throw Error(ErrorCode::mismatch, where, "expected a lens of " + std::to_string(layers) + " layers",
                    "found " + std::to_string(std::max(*found.rbegin() + 1, std::ssize(found))));
}

std::string LensFile::weight_name(std::int64_t boundary) const {
    if (kind_ == LensKind::tuned) return std::to_string(boundary) + std::string(kWeightEnd);
    return std::string(kJacobian) + std::to_string(boundary - 1);  // by the layer whose output the boundary is
}

std::string LensFile::bias_name(std::int64_t boundary) const {
    return kind_ == LensKind::tuned ? std::to_string(boundary) + std::string(kBiasEnd) : std::string();
}

bool LensFile::has(const std::string& name) const {
    return file_->tensors().find(name) != file_->tensors().end();
}

at::Tensor LensFile::mapped(std::int64_t boundary, const at::Tensor& rows) {
    if (map_.boundary != boundary) {
        const std::string weight = weight_name(boundary), bias = bias_name(boundary);
        if (!has(weight)) return {};
        map_ = {boundary, file_->load(weight, checkpoint::LoadAs::float32), {}};
        if (has(bias)) map_.bias = file_->load(bias, checkpoint::LoadAs::float32);
    }
    const at::Tensor own = rows.to(at::kFloat);
    const at::Tensor update =
        at::linear(own, map_.weight, map_.bias.defined() ? std::optional(map_.bias) : std::nullopt);
    return kind_ == LensKind::tuned ? own + update : update;
}

}  // namespace headscope::ask
