// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A tiny golden model with texts, and the record that tools fill.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>

#include "core/base/progress.h"
#include "core/model/edits/intervention.h"
#include "core/store/ask/ask_file.h"
#include "tests/core/model/tiny_checkpoint.h"

namespace headscope::test {

struct AskedModel {
    std::shared_ptr<model::Model> model;
    std::vector<std::vector<std::int64_t>> texts;
    std::vector<std::vector<std::int64_t>> targets;  ///< of an encoder-decoder, one for each text; else empty

    explicit AskedModel(const std::string& name) : model(golden_checkpoint(name).build()) {
        const model::Batch golden = golden_batch(name);
        const auto rows = [](const at::Tensor& ids, const std::vector<std::int64_t>& lengths) {
            std::vector<std::vector<std::int64_t>> all;
            for (std::int64_t b = 0; b < ids.size(0); ++b) {
                const at::Tensor row = ids[b].contiguous();
                const std::int64_t* const first = row.const_data_ptr<std::int64_t>();
                all.emplace_back(first, first + (lengths.empty() ? row.numel() : lengths[static_cast<std::size_t>(b)]));
            }
            return all;
        };
        texts = rows(golden.ids, golden.target.defined() ? golden.lengths : std::vector<std::int64_t>());
        if (golden.target.defined()) targets = rows(golden.target, golden.target_lengths);
    }

    std::vector<store::SequenceTokens> sequences() const {
        std::vector<store::SequenceTokens> all;
        for (const auto& text : texts) {
            store::SequenceTokens sequence = tokens_of(text);
            if (!targets.empty())
                sequence.target = std::make_shared<const store::SequenceTokens>(tokens_of(targets.at(all.size())));
            all.push_back(std::move(sequence));
        }
        return all;
    }

    store::AskRecord record(const std::string& tool) const {
        store::AskRecord record;
        record.tool = tool;
        record.mixers = model->mixers();
        record.sites = model->sites();
        record.sequences = sequences();
        store::add_usual_dimensions(record);
        return record;
    }

    at::Tensor ids(std::size_t text) const { return at::tensor(texts[text], at::kLong).unsqueeze(0); }

    model::Batch batch(std::size_t text) const {
        model::Batch made;
        made.ids = ids(text);
        if (!targets.empty()) made.target = at::tensor(targets[text], at::kLong).unsqueeze(0);
        return made;
    }

    /// Final hidden states [L, d] of a text with interventions.
    at::Tensor run(std::size_t text, std::vector<model::Intervention> list = {}) const {
        model::Interventions edits(std::move(list), model->config(), model->sites());
        model::ForwardOptions options;
        options.editor = &edits;
        return model->forward(batch(text), options)[0];
    }

    /// Mean next-token loss of a text with interventions.
    double loss(std::size_t text, std::vector<model::Intervention> list = {}) const {
        const model::Batch read = batch(text);
        const at::Tensor hidden = run(text, std::move(list)).unsqueeze(0);
        const std::int64_t length = read.predicted().size(1);
        return model->next_token_loss(read, hidden).narrow(1, 0, length - 1).to(at::kDouble).mean().item<double>();
    }

private:
    static store::SequenceTokens tokens_of(const std::vector<std::int64_t>& ids) {
        store::SequenceTokens tokens;
        tokens.ids.assign(ids.begin(), ids.end());
        tokens.pieces.assign(ids.size(), "x");
        return tokens;
    }
};

inline bool near(double a, double b, double tolerance = 1e-4) {
    return std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

/// A number of a table.
inline double at_cell(const store::AskRecord& record, const std::string& path, const std::vector<std::int64_t>& index) {
    const store::AskTable& table = record.table(path);
    const auto shape = record.shape_of(table);
    std::int64_t cell = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) cell = cell * shape[i] + index.at(i);
    return table.values.at(static_cast<std::size_t>(cell));
}

}  // namespace headscope::test
