// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The oracle: attention and its statistics in plain float64 ATen, with the whole matrix of each sequence in memory.
// Slow and obvious on purpose; every other backend is tested against it.
//
// Where the specification (indicators.md) leaves a choice, this is the choice, and it binds every backend. A "row" is
// a query that sees at least one key; rows is their number, per head ("L" of the formulas). i' = i + query_offset.
//   existing keys     key_begin[b] <= j < key_length[b]; existing queries: i < query_length[b]
//   first key         the first existing key, key_begin[b]; a row that may not see it adds 0 to `sink`
//   means over rows   NaN where there is no row at all; sums over rows (entropy, concentration) are then 0
//   local_focus       sum of A over rows whose key i' - N exists, divided by the number of such rows; a key that exists
//   but is
//                     hidden by a window or block adds 0. Cross-attention (StatisticsRequest::cross): NaN
//   head_diversity    sum of the standard deviations divided by the number of pairs (i, j) with an existing key and a
//                     query that is a row for some head, j <= i' when causal. That is L(L+1)/2 for causal
//                     self-attention, Lq * Lk otherwise; pairs hidden by windows or blocks count, with their zeros
//   column_mass       divided by the number of rows, of those with i' >= j when causal; NaN where that is 0, and for
//                     keys that do not exist
//   zero_fraction     A < 2^-126 over allowed pairs, NaN without any
//   score statistics  over allowed pairs; sink logits are no scores; NaN (minimum, maximum, mean, variance) without any
//   entropy           of the weights of real keys; the sink logit's share is no term of it
//   sparsemax         a sink logit is one more candidate of the simplex; virtual_sink is max(sink - threshold, 0)
//   negative weights  (Taylor rules) of a row make its entropy, and so its head's, NaN; they count in zero_fraction
//   duplicate         tokens[j] = tokens[i'], j < i'; induction: tokens[j - 1] = tokens[i'], j <= i', where j - 1
//                     exists too. A row whose i' is no existing key has no token and adds 0. Divided by rows
//   thumbnails        with padding the blocks share out the sequence's own length: cell (i, j) belongs to block
//                     (i * rows / n, (j - key_begin) * columns / m), n and m the numbers of existing queries and keys.
//                     The mean's divisor is the number of cells of the block; a block without cells is 0
//   per query         0 for a query that is no row
//
// Threads: LibTorch's own; sums are not in a fixed order, so the last bits may depend on the number of threads.

#include "kernels/attention.h"

namespace headscope::kernels {

/// attention() of kernels/attention.h by the reference backend. Memory: a few float64 matrices [H, Lq, Lk].
void attention_reference(const AttentionInput& input, OutputView output, const StatisticsRequest* request,
                         Statistics* statistics);

}  // namespace headscope::kernels
