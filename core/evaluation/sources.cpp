// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/sources.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/checkpoint/fingerprint.h"
#include "core/data/catalog.h"
#include "core/data/fixed_token.h"
#include "core/data/objectives/list.h"
#include "core/data/text_data.h"
#include "core/data/token_file.h"
#include "core/store/evaluation/evaluation_texts.h"
#include "core/store/hdf5/utf8.h"

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

NamedData named_data(const std::string& entry) {
    std::error_code ignored;
    const std::size_t equals = entry.find('=');
    if (equals != 0 && equals != std::string::npos && !std::filesystem::exists(entry, ignored))
        return {entry.substr(0, equals), entry.substr(equals + 1)};
    std::filesystem::path path = std::filesystem::path(entry).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // "books/"
    const std::string name =
        std::filesystem::is_regular_file(entry, ignored) ? path.stem().string() : path.filename().string();
    return {name.empty() || name == "." || name == ".." ? entry : name, entry};
}

std::vector<NamedText> texts_of(const std::vector<std::string>& data,
                                const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer,
                                const Cancellation& cancellation) {
    std::vector<NamedText> texts;
    for (const std::string& entry : data) {
        NamedData named = named_data(entry);
        named.name = store::short_word(store::readable_utf8(named.name));
        if (std::any_of(texts.begin(), texts.end(), [&](const NamedText& text) { return text.name == named.name; }))
            throw Error(ErrorCode::usage, "--data", "expected a name of its own for each text (NAME=FILE)",
                        "found " + escaped(named.name) + " twice");
        auto files = source_files(named.data, "--data");
        std::string digests;
        for (const data::SourceFile& file : files)
            digests += checkpoint::cached_sha256(InputFile(file.path, "text file"), cancellation) + "\n";
        // One file keeps its own digest, which sha256sum prints.
        const std::string digest = files.size() == 1 ? digests.substr(0, digests.size() - 1) : sha256_hex(digests);
        texts.push_back({named.name, digest, file_documents(std::move(files), tokenizer, entry)});
    }
    return texts;
}

std::optional<NamedText> held_out_part(const training::JobFile& job, const std::filesystem::path& run,
                                       Progress& progress, const Cancellation& cancellation,
                                       const data::HashedWords* words) {
    if (job.data.generator || data::kind_of(job.data.objective).reads_items()) return std::nullopt;  // no text
    const auto set = data::DataSet::prepare(job.data, {job.base, run}, progress, cancellation, words);
    if (set->summary().validation_tokens == 0) return std::nullopt;
    const std::string name = "held-out part of " + set->summary().name;
    auto tokens = data::TokenFile::open(set->summary().token_file);
    // The same for every tokenizer: the sources, and which part of them is held out.
    std::string content = nlohmann::json(job.data.validation_files.empty() ? job.data.validation : 0).dump() + "\n";
    for (const data::TokenSource& source : tokens->info().sources) content += source.sha256 + "\n";
    return NamedText{store::short_word(store::readable_utf8(name)), sha256_hex(content),
                     held_out_documents(std::move(tokens), set->shared_tokenizer(), name)};
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
