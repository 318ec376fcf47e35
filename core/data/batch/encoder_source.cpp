// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/encoder_source.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/data/permutation.h"

namespace headscope::data {

TextRows window_rows(std::shared_ptr<const TokenFile> file, Split split, std::int64_t tokens, std::uint64_t seed) {
    const TokenRange range = file->range(split);
    const std::int64_t numbers = tokens * file->info().numbers_per_token;
    const std::int64_t windows = range.size() / numbers;
    if (windows == 0) {
        const bool held_out = split == Split::validation;
        throw Error(ErrorCode::usage, held_out ? "data.validation" : "data",
                    "expected at least " + count_text(static_cast<std::uint64_t>(tokens)) + " tokens" +
                        (held_out ? " held out" : " to train on") + ", one sequence without its ends",
                    "found " + count_text(static_cast<std::uint64_t>(range.size() / file->info().numbers_per_token)) +
                        "; " +
                        (held_out ? "hold out more, nothing (0), or shorten data.sequence_length"
                                  : "shorten data.sequence_length, hold out less or give more text"));
    }
    return {windows, [file = std::move(file), range, numbers, windows, seed](std::int64_t index) {
                const std::int64_t window =
                    permuted(index % windows, windows, key_of(seed, static_cast<std::uint64_t>(index / windows)));
                std::vector<std::int64_t> row(static_cast<std::size_t>(numbers));
                file->copy(range.begin + window * numbers, numbers, row.data());
                return row;
            }};
}

EncoderSource::EncoderSource(TextRows rows, TokenCode code, SpecialIds special, Corruption corruption,
                             std::int64_t length, std::uint64_t seed)
    : BatchSource(length, code.ids()),
      rows_(std::move(rows)),
      code_(std::move(code)),
      special_(std::move(special)),
      corruption_(std::move(corruption)),
      seed_(seed) {}

DataBatch EncoderSource::read(std::int64_t first, std::int64_t count) const {
    check_range(first, count);
    std::vector<SpoiltSequence> sequences(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        SpoiltSequence& one = sequences[static_cast<std::size_t>(i)];
        code_.append_special(special_.first, one);
        code_.unpack(rows_.read(first + i), one);
        code_.append_special(special_.last, one);
        Random random(seed_, static_cast<std::uint64_t>(first + i));
        corruption_(one, random);
    }
    return code_.batch(sequences, special_.padding);
}

}  // namespace headscope::data
