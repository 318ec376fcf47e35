// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/data/data_set.h"
#include "core/data/source/source_files.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {

/// DataSet::prepare for text.
std::shared_ptr<const DataSet> prepare_text(const DataSettings& settings, const DataPlaces& places, Progress& progress,
                                            const Cancellation& cancellation, const HashedWords* words);

/// The files that a job is trained on: those that its settings name but for those held out. Error usage for none, and
/// for files without items where the objective wants them.
std::vector<SourceFile> training_sources(const DataSettings& settings, const DataPlaces& places);

/// All texts of `sources` as documents: of items both texts.
void read_texts(const std::vector<SourceFile>& sources, const ObjectiveSettings& objective, PartSink& sink,
                Progress& progress, const std::string& what);

/// The files of a ready corpus. Error usage that names the package which would bring them.
std::vector<SourceFile> corpus_files(const std::string& name);

}  // namespace headscope::data
