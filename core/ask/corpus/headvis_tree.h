// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// HeadVis's data tree (transformer-circuits.pub 2026; data_pipeline.py of github.com/anthropics/headvis, and the keys
// of Neuronpedia's compute-head-metrics.py): config.json, scatter_data.json and heads/L{l}H{h}.json, which HeadVis's
// page reads. Numbers have 4 decimals. docs/file-formats.md describes the keys. Threads: the compute thread to write,
// any to read. Errors: headscope::Error; Stopped, without a tree.

#include <filesystem>
#include <span>

#include "core/base/progress.h"
#include "core/store/ask/ask_file.h"

namespace headscope::model {
class Editor;
class Model;
}  // namespace headscope::model

namespace headscope::ask::corpus {

/// Weights of a text in a tree: at most 8 of a query's row, none below 0.005.
inline constexpr std::size_t kTreeKeys = 8;
inline constexpr float kTreeThreshold = 0.005F;

/// Writes the tree of a finished record. Runs the texts that heads keep once more for their weights, with the edits of
/// `editor` (null: none). `folder` must be absent or empty.
void write_headvis_tree(model::Model& model, const store::AskRecord& record, model::Editor* editor,
                        const std::filesystem::path& folder, std::span<const std::filesystem::path> inputs,
                        Progress& progress, const Cancellation& cancellation);

/// True for a folder with the three parts of a tree.
bool is_headvis_tree(const std::filesystem::path& folder);

/// A tree as the record of ask corpus that it was made of: measures, histograms, tokens, and the texts that heads keep
/// without their weights. Of tokens it has texts, which get ids of their own. Tables that a tree lacks are left out.
/// Throws format for histograms of largest weights in other cells than equal ones from 0 to 1.
store::AskRecord read_headvis_tree(const std::filesystem::path& folder);

}  // namespace headscope::ask::corpus
