// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>

#include "core/checkpoint/checkpoint.h"

namespace headscope::model {

/// Checkpoint::open with what the base's family says of its vocabulary, so that an adapter may untie and resize it. An
/// empty `adapter`: none. Errors: headscope::Error.
std::shared_ptr<const checkpoint::Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                                              const std::filesystem::path& adapter);

}  // namespace headscope::model
