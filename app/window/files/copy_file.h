// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QByteArray>
#include <filesystem>

#include "core/base/progress.h"

namespace headscope::store {
class AnalysisFile;
}

namespace headscope::app {

/// Copies a file: the target is whole, or not there. Throws Error, Stopped.
void copy_whole(const std::filesystem::path& source, const std::filesystem::path& target,
                const Cancellation& cancellation);

/// A small picture of an analysis for lists, as PNG: the maximum map of a head in its middle. Throws Error.
QByteArray recent_picture(const store::AnalysisFile& file, bool dark);

}  // namespace headscope::app
