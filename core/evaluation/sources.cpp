// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/sources.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/catalog.h"
#include "core/data/fixed_token.h"
#include "core/data/text_data.h"

namespace headscope::evaluation {
namespace {

bool is_corpus(const std::string& name) {
    const auto& all = data::datasets();
    return std::any_of(all.begin(), all.end(),
                       [&](const data::Dataset& set) { return !set.is_generator && set.name == name; });
}

}  // namespace

std::vector<data::SourceFile> source_files(const std::string& entry, const std::string& key) {
    return is_corpus(entry) ? data::corpus_files(entry) : data::find_sources({entry}, {}, key);
}

std::unique_ptr<Documents> documents_of(const std::vector<std::string>& data,
                                        std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
    std::vector<data::SourceFile> files;
    std::string name;
    for (const std::string& entry : data) {
        const auto found = source_files(entry, "--data");
        files.insert(files.end(), found.begin(), found.end());
        name += (name.empty() ? "" : ", ") + entry;
    }
    return file_documents(std::move(files), std::move(tokenizer), name);
}

std::unique_ptr<Documents> held_out_part(const training::JobFile& job, const std::filesystem::path& run,
                                         Progress& progress, const Cancellation& cancellation,
                                         const data::HashedWords* words) {
    const std::string& kind = job.data.objective.kind;
    if (job.data.generator || kind == "classify" || kind == "translation") return nullptr;  // items are no text
    const auto set = data::DataSet::prepare(job.data, {job.base, run}, progress, cancellation, words);
    if (set->summary().validation_tokens == 0) return nullptr;
    return held_out_documents(data::TokenFile::open(set->summary().token_file), set->shared_tokenizer(),
                              "held-out part of " + set->summary().name);
}

data::FixedToken trained_token(data::FixedToken token, const std::filesystem::path& checkpoint,
                               std::int64_t vocabulary) {
    if (!token.id) {
        const data::ChosenTokenizer chosen = data::tokenizer_at(checkpoint);
        token.id = data::fixed_id(token, *chosen.tokenizer, chosen.files);
    }
    if (*token.id < 0 || *token.id >= vocabulary)
        throw Error(ErrorCode::limit, "data.fixed_token",
                    "expected an id from 0 to " + std::to_string(vocabulary - 1) + ", as the model has",
                    "found " + std::to_string(*token.id));
    return token;
}

}  // namespace headscope::evaluation
