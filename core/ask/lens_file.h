// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Fitted lenses: an affine map for the residual stream of each boundary, applied before the model's own final norm.
// Errors: Error(io, format; mismatch for another model's lens).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "core/checkpoint/checkpoint.h"

namespace headscope::ask {

enum class LensKind : std::uint8_t {
    logit,     ///< the stream itself
    tuned,     ///< h + A h + b (Belrose et al., arXiv 2303.08112): folder or params.pt of the package tuned-lens
    jacobian,  ///< J h, the mean Jacobian of the last layer by the stream: .pt file with J by layer
};

class LensFile {
public:
    /// `width` and `layers` of the model that it must fit.
    LensFile(const std::filesystem::path& path, LensKind kind, std::int64_t width, std::int64_t layers);

    /// Mapped rows [n, d] of boundary b (the input of block b); undefined where the file has no map. The map of one
    /// boundary stays in memory at a time.
    at::Tensor mapped(std::int64_t boundary, const at::Tensor& rows);

private:
    struct Map {
        std::int64_t boundary = -1;
        at::Tensor weight, bias;  ///< [d, d]; [d] or undefined
    };
    /// Name of the boundary's matrix.
    std::string weight_name(std::int64_t boundary) const;
    std::string bias_name(std::int64_t boundary) const;
    bool has(const std::string& name) const;

    LensKind kind_;
    std::shared_ptr<const checkpoint::Checkpoint> file_;
    Map map_;
};

}  // namespace headscope::ask
