// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/window_source.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/data/permutation.h"

namespace headscope::data {

WindowSource::WindowSource(std::shared_ptr<const TokenFile> file, Split split, std::int64_t length, std::uint64_t seed)
    : BatchSource(length, file->info().vocabulary),
      file_(std::move(file)),
      range_(file_->range(split)),
      windows_(std::max<std::int64_t>(range_.size() - 1, 0) / length),
      seed_(seed) {
    if (windows_ > 0) return;
    const bool held_out = split == Split::validation;
    throw Error(ErrorCode::usage, held_out ? "data.validation" : "data",
                "expected at least " + count_text(static_cast<std::uint64_t>(length) + 1) + " tokens" +
                    (held_out ? " held out" : " to train on") + ", one sequence and what follows it",
                "found " + count_text(static_cast<std::uint64_t>(range_.size())) + "; " +
                    (held_out ? "hold out more, nothing (0), or shorten data.sequence_length"
                              : "shorten data.sequence_length, hold out less or give more text"));
}

std::int64_t WindowSource::window(std::int64_t index) const {
    return permuted(index % windows_, windows_, key_of(seed_, static_cast<std::uint64_t>(index / windows_)));
}

void WindowSource::write(std::int64_t index, std::int64_t* ids, std::int64_t* targets) const {
    const std::int64_t begin = range_.begin + window(index) * length();
    file_->copy(begin, length(), ids);
    std::copy(ids + 1, ids + length(), targets);
    file_->copy(begin + length(), 1, targets + length() - 1);
}

}  // namespace headscope::data
