// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// What Xue's thesis prints of its models, to stand beside what was measured: Tables 2.1 to 2.3 of chapter 2 (hash
// embeddings), Tables 3.1 to 3.3, 3.5 and 3.6 of chapter 3 (multiple-head embedding attention). NaN: not printed.

#include <limits>
#include <string_view>
#include <vector>

namespace headscope::reproduce::thesis {

inline constexpr double kNotPrinted = std::numeric_limits<double>::quiet_NaN();

struct PrintedScore {
    double score = kNotPrinted;
    double retention = kNotPrinted;   ///< PRR, per cent
    double elasticity = kNotPrinted;  ///< PEoP
};

/// An attention of chapter 3 in one stack.
struct PrintedAttention {
    std::string_view mixer;
    double parameters = kNotPrinted;   ///< of all attention sublayers, millions
    std::vector<PrintedScore> scores;  ///< in the order of PrintedTable::benchmarks
};
struct PrintedTable {
    std::string_view number;                   ///< "3.1"
    std::vector<std::string_view> benchmarks;  ///< "GLUE"
    std::vector<PrintedAttention> rows;
};
const PrintedTable& printed_encoders();      ///< Table 3.1, FNet's and Linear's scores of Tables 3.5 and 3.6
const PrintedTable& printed_decoders();      ///< Table 3.2
const PrintedTable& printed_translations();  ///< Table 3.3
/// Nothing printed where the table has no such row.
PrintedAttention printed_attention(const PrintedTable& table, std::string_view mixer);

/// A row of Tables 2.1 (mean of GLUE) and 2.2. Parameters in millions, ratios in per cent.
struct PrintedEmbedding {
    double score = kNotPrinted, retention = kNotPrinted;
    double parameters = kNotPrinted, embedding = kNotPrinted;
    double compression = kNotPrinted, embedding_compression = kNotPrinted;  ///< PCR of all, of embeddings
    double proportion = kNotPrinted;                                        ///< PoEP
};
/// By the names of the replay's models: "bert-mlm", "lsh-add".
PrintedEmbedding printed_embedding(std::string_view model);

/// A row of Table 2.3, as printed; empty: it has none.
struct PrintedSpeed {
    std::string_view training, training_rate, inference, inference_rate;  ///< ms a sample, and against BERT-MLM
};
PrintedSpeed printed_speed(std::string_view model);

}  // namespace headscope::reproduce::thesis
