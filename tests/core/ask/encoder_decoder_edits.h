// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Interventions on T5 and BART models, values of their unedited runs, and the metric of an answer.

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>

#include "core/model/config.h"
#include "core/model/model.h"
#include "tests/core/ask/asked_model.h"
#include "tests/core/model/head_edit.h"

namespace headscope::test {

inline const std::vector<std::string> kEncoderDecoders{"t5", "bart", "umt5"};

/// Two sources of one length, and two targets of another.
inline AskedModel with_equal_lengths(const std::string& name) {
    AskedModel asked(name);
    for (auto* rows : {&asked.texts, &asked.targets}) {
        const std::size_t shorter = std::min(rows->at(0).size(), rows->at(1).size());
        for (auto& row : *rows) row.resize(shorter);
    }
    return asked;
}

/// An edit of one attention.
inline model::Intervention at_site(const AskedModel& asked, model::Point point, std::int64_t site,
                                   model::Action action) {
    model::Intervention edit = head_edit(asked.model->sites(), site, 0, action);
    edit.point = point;
    edit.heads.clear();
    return edit;
}

inline model::Intervention in_layer(model::Point point, std::int64_t layer, model::Action action) {
    model::Intervention edit;
    edit.point = point;
    edit.layers = {layer};
    edit.action = action;
    return edit;
}

/// Values of places in the unedited run of a text, each [1, ..].
inline std::map<model::PointKey, at::Tensor> recorded(const AskedModel& asked, std::size_t text, model::Point point) {
    const auto places = model::places_of(point, asked.model->config(), asked.model->sites());
    model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
    model::ForwardOptions options;
    options.editor = &recorder;
    asked.model->forward(asked.batch(text), options);
    return recorder.values;
}

/// The logit difference of tokens 3 and 5 at position 2 of text 0 with an edit.
inline double answer_of(const AskedModel& asked, std::vector<model::Intervention> edits) {
    const at::Tensor logits = asked.model->logits(asked.run(0, std::move(edits)).narrow(0, 2, 1)).to(at::kDouble);
    return (logits[0][3] - logits[0][5]).item<double>();
}

}  // namespace headscope::test
