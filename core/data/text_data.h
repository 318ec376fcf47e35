// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/data_set.h"
#include "core/data/source_files.h"

namespace headscope::data {

/// DataSet::prepare for text.
std::shared_ptr<const DataSet> prepare_text(const DataSettings& settings, const DataPlaces& places, Progress& progress,
                                            const Cancellation& cancellation);

/// The files of a ready corpus. Error usage that names the package which would bring them.
std::vector<SourceFile> corpus_files(const std::string& name);

}  // namespace headscope::data
