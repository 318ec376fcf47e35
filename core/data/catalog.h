// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Data sets by name: datasets/*.json, compiled in. One file per corpus or generator.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/option.h"
#include "core/data/batch/batch_source.h"
#include "core/data/settings.h"
#include "core/data/source/text_item.h"

namespace headscope::data {

struct Dataset {
    std::string name;
    std::string description;
    bool is_generator = false;         ///< else a corpus
    std::string kind;                  ///< which code makes it: several data sets may share one
    std::string package;               ///< Debian's package that holds a corpus
    std::vector<std::string> files;    ///< of a corpus
    std::vector<Option> options;       ///< of a generator: whole numbers and numbers
    std::int64_t sequence_length = 0;  ///< a length that suits it; 0: any
};

/// All of them, by name.
const std::vector<Dataset>& datasets();
/// Error usage with the names that there are, nearest first.
const Dataset& find_dataset(const std::string& name);

/// One line for lists: a generator's options and defaults; a corpus's package, and whether it is installed.
std::string options_text(const Dataset& set);

/// A generator's facts and sequences, without a DataSet: for evaluation. `settings.options` are checked: Error usage
/// names the option, its bounds or the nearest name.
struct Generator {
    std::string name;
    std::vector<std::string> pieces;  ///< what each id is called; ids are in [0, pieces.size())
    bool bytes = false;               ///< ids are those of the tokenizer "bytes"; else each has a piece of its own
    std::vector<double> entropies;    ///< Markov text only, see DataSummary
    std::string settings;             ///< all options as JSON, in order: what names the data
    /// For generators that make items too, for the objectives translation (classes 0) and classify: a pure function of
    /// split, seed and index; words of `pieces` with spaces between them. Else empty.
    std::function<TextItem(Split split, std::uint64_t seed, std::int64_t index)> item;
    std::int64_t classes = 0;
    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const { return make(split, seed); }
    std::function<std::unique_ptr<const BatchSource>(Split, std::uint64_t)> make;
};
Generator make_generator(const GeneratorSettings& settings, std::int64_t sequence_length);

}  // namespace headscope::data
