// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/data/data_set.h"

namespace headscope::data {

/// DataSet::prepare for a generator. Its tokenizer has a word an id, with spaces between them.
std::shared_ptr<const DataSet> prepare_generator(const DataSettings& settings, const DataPlaces& places,
                                                 const HashedWords* words);

}  // namespace headscope::data
