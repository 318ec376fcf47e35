// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace headscope::checkpoint {
struct TensorSummary;
}

namespace headscope::cost {
struct CostTable;
}

namespace headscope::tokenizer {
class WordHash;
}

namespace headscope::store {
class AnalysisFile;
struct RunRecord;
struct Evaluation;
struct AskRecord;
}  // namespace headscope::store

namespace headscope::figures {

/// A model as the cost tables know it: formulas at its sizes, and beside them what was measured.
struct CostModel {
    std::string name;
    std::int64_t training_length = 0;  ///< 0: not known
    std::shared_ptr<const cost::CostTable> table;
};

/// A tensor of a checkpoint, counted.
struct TensorSpread {
    std::string model, tensor;        ///< their names
    std::string type;                 ///< as the file says it: "BF16"
    std::vector<std::int64_t> shape;  ///< none: a single number
    std::shared_ptr<const checkpoint::TensorSummary> numbers;
};

/// A word hash: a model's, or without a name the program's own (tokenizer::sample_hash()).
struct NamedHash {
    std::string name;
    std::shared_ptr<const tokenizer::WordHash> hash;  ///< its words have bits
};

/// Inputs of a figure: files of one kind. Legends show a record's name.
struct FigureInputs {
    std::vector<std::shared_ptr<store::AnalysisFile>> analyses;
    std::vector<std::shared_ptr<const store::RunRecord>> runs;
    std::vector<std::shared_ptr<const store::Evaluation>> evaluations;
    std::vector<CostModel> models;
    std::vector<TensorSpread> tensors;
    std::vector<NamedHash> hashes;
    std::vector<std::shared_ptr<const store::AskRecord>> asks;

    bool empty() const {
        return analyses.empty() && runs.empty() && evaluations.empty() && models.empty() && tensors.empty() &&
               hashes.empty() && asks.empty();
    }
};

}  // namespace headscope::figures
