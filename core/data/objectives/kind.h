// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A training objective without its tensors; core/model/objectives computes its loss. One header per objective in this
// folder. Threads: any.

#include <cstdint>

#include "core/data/settings.h"

namespace headscope::data {

/// Name of a loss, and its unit ("nats a token"; empty: none).
struct LossWords {
    const char* name;
    const char* unit;
};

enum class ObjectiveData {
    stream,     ///< windows of the tokens as they are
    corrupted,  ///< windows between <s> and </s>, some of whose tokens change
    items       ///< JSON lines
};

struct ObjectiveKind {
    const char* name;  ///< objective.kind of a job
    ObjectiveData data;
    bool masks = false;         ///< of corrupted: masks tokens; else shuffles and replaces them
    bool translates = false;    ///< of items: source and target; else one or two texts and a label
    bool spans = false;         ///< of items: a question, its context and where its answers are
    const char* columns = "";   ///< of items: keys of a line
    bool takes_hashes = false;  ///< trains models with hash embeddings
    const char* head = "";      ///< head.kind of a native configuration; empty: any
    std::int64_t (*head_classes)(const ObjectiveSettings&) = nullptr;
    LossWords (*loss)(const ObjectiveSettings&);
    bool (*has_accuracy)(const ObjectiveSettings&);  ///< shares of right answers are measured with the loss

    bool reads_items() const { return data == ObjectiveData::items; }
    bool reads_stream() const { return data == ObjectiveData::stream; }
    bool labels() const { return reads_items() && !translates && !spans; }
    /// Two texts of an item are one sequence.
    bool pairs() const { return reads_items() && !translates; }
};

}  // namespace headscope::data
