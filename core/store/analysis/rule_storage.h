// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A kernels::ScoreRule of one sequence as attributes of /maps/<s>/<site>: everything that says how a score comes about
// from a query and a key, so that any tile can be computed again.

#include <cstdint>
#include <string>

#include "core/store/hdf5/hdf5.h"
#include "kernels/score_rule.h"

namespace headscope::store {

/// The rule as batch row `b` alone has it: lengths and block visibility of the other rows left out.
kernels::ScoreRule rule_of_row(const kernels::ScoreRule& rule, std::int64_t b, std::int64_t heads);

/// Creates all attributes of fixed size with neutral values, so that write_rule() changes bytes in place only.
void create_rule(hid_t group, std::int64_t heads, const std::string& where);

/// A rule of one batch row. A table of distance biases or block visibility, whose sizes are the model's affair, becomes
/// a dataset of the group, created now.
void write_rule(hid_t group, const kernels::ScoreRule& rule, std::int64_t heads, const std::string& where);

/// `path` is the group's. Checks what it reads: sizes, finite numbers, known names.
kernels::ScoreRule read_rule(hid_t file, const std::string& path, std::int64_t heads, std::uint64_t file_bytes,
                             const std::string& where);

}  // namespace headscope::store
