// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/gguf_files.h"

#include "core/checkpoint/checkpoint.h"

namespace headscope::tokenizer {

namespace fs = std::filesystem;

bool may_be_gguf(const fs::path& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return path.extension() == ".gguf";
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
        if (entry->path().extension() == ".gguf") return true;
    return false;
}

std::optional<checkpoint::TokenizerDocuments> gguf_documents(const fs::path& path) {
    const auto own = checkpoint::Checkpoint::open(path)->own_tokenizer();
    return own ? std::optional(*own) : std::nullopt;
}

}  // namespace headscope::tokenizer
