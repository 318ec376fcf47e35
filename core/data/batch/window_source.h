// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/data/batch/batch_source.h"
#include "core/data/token_file.h"

namespace headscope::data {

/// The windows of one part of a token file: window w reads its tokens [w L, w L + L) and is to say the ones behind
/// them, so that every token but the first is a target once an epoch (what is left at the end, fewer than L, is not
/// read). Each epoch has an order of its own, a permutation named by seed and epoch.
class WindowSource final : public BatchSource {
public:
    /// Error usage when the part is shorter than one window.
    WindowSource(std::shared_ptr<const TokenFile> file, Split split, std::int64_t length, std::uint64_t seed);
    std::int64_t epoch() const override { return windows_; }
    /// Which window sequence `index` is.
    std::int64_t window(std::int64_t index) const;

protected:
    void write(std::int64_t index, std::int64_t* ids, std::int64_t* targets) const override;

private:
    std::shared_ptr<const TokenFile> file_;
    TokenRange range_;
    std::int64_t windows_;
    std::uint64_t seed_;
};

}  // namespace headscope::data
