// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/load/open_checkpoint.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/model/load/build.h"

namespace headscope::model {
namespace {

/// Nothing of two towers, whose tables are tied in other ways, and of files that no family reads.
checkpoint::VocabularyTensors vocabulary_of(const checkpoint::Checkpoint& file) {
    try {
        const Blueprint made = make_blueprint(file);
        const TensorNames& names = made.names;
        if (made.encoder_names || made.config.adaptive || names.token_embedding.empty() ||
            !names.lone_embedding.empty())
            return {};
        const auto has = [&file](const std::string& name) { return file.tensors().count(name) != 0; };
        checkpoint::VocabularyTensors found;
        const std::string table = names.prefix + names.token_embedding + ".weight";
        if (!has(table)) return {};
        found.table = table;
        found.size_key = "/" + names.keys.vocabulary;
        found.tie_keys = {"/tie_word_embeddings"};
        if (file.config().contains(nlohmann::json::json_pointer("/text_config/tie_word_embeddings")))
            found.tie_keys.emplace_back("/text_config/tie_word_embeddings");
        // Files with images describe their text apart.
        if (file.config().contains(nlohmann::json::json_pointer("/text_config" + found.size_key)))
            found.size_key = "/text_config" + found.size_key;
        if (names.head.empty()) return found;
        found.head = names.head + ".weight";
        if (!has(found.head) && !names.old_head.empty() && has(names.old_head + ".weight"))
            found.head = names.old_head + ".weight";
        found.tied = made.config.tied_head && !has(found.head);
        return found;
    } catch (const Stopped&) {
        throw;
    } catch (...) {
        return {};  // building the model says why
    }
}

}  // namespace

std::shared_ptr<const checkpoint::Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                                              const std::filesystem::path& adapter) {
    const auto base = checkpoint::Checkpoint::open(path);
    return adapter.empty() ? base : checkpoint::Checkpoint::open(path, adapter, vocabulary_of(*base));
}

}  // namespace headscope::model
