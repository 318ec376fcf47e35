// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headscope::checkpoint {

/// The weights of a folder (the file or index to open), in the order of Checkpoint::open. `notes` lists other weights
/// there that would also match. Errors: format without any; usage if ambiguous; io.
std::filesystem::path weights_in(const std::filesystem::path& folder, std::vector<std::string>& notes);

/// True for a folder with an adapter of PEFT's and no weights of a model. Throws nothing.
bool adapter_alone(const std::filesystem::path& folder);

}  // namespace headscope::checkpoint
