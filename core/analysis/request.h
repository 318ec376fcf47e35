// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/model/embedding/segments.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::model {
class Model;
struct Inspection;
}  // namespace headscope::model

namespace headscope::analysis {

constexpr std::int64_t no_label = -100;

/// Input, model options and recorded values of one analysis. `sequences` are tokens: input.h reads and cuts texts.
struct AnalysisRequest {
    std::vector<store::SequenceTokens> sequences;
    /// For an encoder-decoder: the decoder's input for each of them, the start token first; "target" in the file.
    std::vector<store::SequenceTokens> targets;
    /// For an encoder with a token-wise head: a class or token of each token of each sequence, or no_label. Empty:
    /// none.
    std::vector<std::vector<std::int64_t>> labels;
    store::RecordLevels record;
    std::set<int> layers;       ///< measured layers; empty: all
    std::set<int> skip_layers;  ///< whole blocks left out
    /// Edits of the forward pass: a value is measured before its own edits and after those of earlier values.
    std::vector<model::Intervention> interventions;
    model::Segments segments;  ///< of models with a memory of earlier segments
    bool beyond_positions = false;
    bool all_rows = false;  ///< histograms of every row
    bool maps_int16 = false;
    std::int64_t batch_tokens = 8192;  ///< sequences of equal length run together up to this many tokens
    /// Hidden states of batches that pass the layers together wait in memory up to this many bytes. Others wait in a
    /// file without a name in the output's folder, where weights stream.
    double waiting_bytes = 256e6;
    std::string model_name;  ///< in the file; empty: the checkpoint's folder or file
    std::string model_sha256;
    std::string settings_json;  ///< what the user asked for, stored with the results
    std::string config_json;    ///< empty: the model's own
    std::uint64_t seed = 0;
    std::string program_version;  ///< empty: the version that was built

    /// A run that is stopped or fails leaves its partial file where it is, marked as not complete.
    bool keep_partial_on_stop = false;

    /// Callbacks on the compute thread, which may be empty and must not throw. Their subject can be read from the
    /// partial file by then (store::AnalysisFile, on any thread).
    std::function<void(const std::filesystem::path& partial)> created;  ///< it is there, with all its datasets
    /// Everything of this sequence at this site: indicators, map, dense weights, states of query, key and value.
    std::function<void(std::int64_t sequence, std::int64_t site)> site_done;
    std::function<void(std::int64_t sequence)> loss_done;
};

/// Throws what run() would refuse for the request's or the model's sake - layers, positions, ids, logits without a head
/// - from the checkpoint's description, before gigabytes of weights are read. Throws Error.
void check_request(const model::Inspection& inspection, const AnalysisRequest& request);

/// Runs the model over all sequences and writes the analysis file, site by site as they come; publishes it at the end.
/// Memory holds one batch of hidden states and one site's statistics at a time. Progress counts multiplications.
/// Throws Error or Stopped; then no file of that name exists that was not there before, and without
/// keep_partial_on_stop no partial one either. What the model or the output
/// path would refuse is refused before anything is computed. Call on the compute thread.
void run(model::Model& model, const AnalysisRequest& request, const std::filesystem::path& output,
         std::vector<std::filesystem::path> inputs, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::analysis
