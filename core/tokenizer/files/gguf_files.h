// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <optional>

#include "core/checkpoint/gguf/tokenizer_documents.h"

namespace headscope::tokenizer {

/// True for a GGUF file, and for a folder that has one: by names.
bool may_be_gguf(const std::filesystem::path& path);
/// The tokenizer in a GGUF file, or in the only one of a folder; empty where it has none.
std::optional<checkpoint::TokenizerDocuments> gguf_documents(const std::filesystem::path& path);

}  // namespace headscope::tokenizer
