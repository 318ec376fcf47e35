// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The texts that heads keep, each once, as the sequences of the record. A text that no head keeps any more makes room
// for the next one.

#include <cstdint>
#include <set>
#include <vector>

#include "core/store/ask/ask_file.h"

namespace headscope::ask::corpus {

class KeptTexts {
public:
    /// Takes over a record: /corpus/document and /corpus/kept_sequence say what is kept.
    explicit KeptTexts(store::AskRecord& record);

    /// Index of the document among the sequences; one more head keeps it.
    std::int64_t keep(std::int64_t document, const store::SequenceTokens& text);
    void release(std::int64_t index);
    /// Drops texts that no head keeps, and renumbers the others by document.
    void compact();

    std::int64_t size() const { return std::ssize(uses_); }
    std::int64_t uses(std::int64_t index) const { return uses_[static_cast<std::size_t>(index)]; }

private:
    std::vector<double>& documents();
    void resize();

    store::AskRecord& record_;
    std::vector<std::int64_t> uses_;
    std::set<std::int64_t> unused_;
};

}  // namespace headscope::ask::corpus
