// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/text_data.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/cancellation_scope.h"
#include "core/base/error.h"
#include "core/base/input_file.h"
#include "core/base/os_error.h"
#include "core/base/output_file.h"
#include "core/base/sha256.h"
#include "core/checkpoint/fingerprint.h"
#include "core/data/text_parts.h"
#include "core/data/token_file.h"
#include "core/data/token_writer.h"
#include "core/data/tokeniser.h"
#include "core/data/tokenizer_choice.h"
#include "core/data/window_source.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

namespace fs = std::filesystem;

constexpr int token_file_version = 1;  // of how tokens are made of text: raise it when that changes

/// A source with what is known of its content.
struct KnownSource {
    SourceFile file;
    TokenSource info;
    std::string stamp;
};

class TextData final : public DataSet {
public:
    TextData(ChosenTokenizer chosen, std::shared_ptr<const TokenFile> file, std::int64_t length, std::string name,
             std::int64_t sources, bool reused)
        : file_(std::move(file)), length_(length) {
        const TokenFileInfo& info = file_->info();
        tokenizer_ = std::move(chosen.tokenizer);
        tokenizer_files_ = std::move(chosen.files);
        vocabulary_ = info.vocabulary;
        separator_ = chosen.separator;
        hash_ = sha256_hex("text\n" + info.tokens_sha256 + "\n" + info.tokenizer_sha256 + "\n" +
                           std::to_string(info.validation_begin) + "\n" + std::to_string(length) + "\n");
        summary_.name = std::move(name);
        summary_.sources = sources;
        summary_.documents = info.documents;
        summary_.training_tokens = file_->range(Split::training).size();
        summary_.validation_tokens = file_->range(Split::validation).size();
        summary_.token_file = file_->path();
        summary_.reused = reused;
        // What is too short is told before a model is made.
        source(Split::training, 0);
        source(Split::validation, 0);
    }

    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const override {
        if (split == Split::validation && summary_.validation_tokens == 0) return nullptr;
        return std::make_unique<WindowSource>(file_, split, length_, split == Split::validation ? 0 : seed);
    }

private:
    std::shared_ptr<const TokenFile> file_;
    std::int64_t length_;
};

class Preparation {
public:
    Preparation(const DataSettings& settings, const DataPlaces& places, Progress& progress, const Cancellation& stop)
        : settings_(settings), places_(places), progress_(progress), stop_(stop) {}

    std::shared_ptr<const DataSet> run() {
        const CancellationScope scope(stop_);
        find();
        // Told before anything long begins.
        const auto size = trained_size(settings_.tokenizer);
        ChosenTokenizer chosen = size                             ? trained(*size)
                                 : settings_.tokenizer == "bytes" ? byte_tokenizer()
                                                                  : tokenizer_at(places_.base / settings_.tokenizer);
        const std::string key = key_of(chosen);
        const fs::path path = place("tokens", key + ".tokens.h5", ".tokens.h5");
        bool reused = true;
        auto file = existing(path, key);
        if (!file) {
            write(path, key, chosen);
            file = TokenFile::open(path);
            reused = false;
        }
        return std::make_shared<TextData>(std::move(chosen), std::move(file), settings_.sequence_length, name(),
                                          static_cast<std::int64_t>(sources_.size()), reused);
    }

private:
    /// Sources to train on, then those held out as files.
    void find() {
        std::vector<SourceFile> files = settings_.corpus.empty()
                                            ? find_sources(settings_.text, places_.base, "data.text")
                                            : corpus_files(settings_.corpus);
        std::vector<SourceFile> held_out;
        if (!settings_.validation_files.empty()) {
            held_out = find_sources(settings_.validation_files, places_.base, "data.validation");
            std::set<fs::path> names;
            for (const SourceFile& file : held_out) names.insert(fs::canonical(file.path));
            std::erase_if(files, [&](const SourceFile& file) { return names.count(fs::canonical(file.path)) > 0; });
        }
        if (files.empty()) {
            throw Error(ErrorCode::usage, "data.text", "expected files to train on",
                        held_out.empty() ? "found none" : "found none that is not held out");
        }
        training_files_ = files.size();
        files.insert(files.end(), held_out.begin(), held_out.end());
        for (SourceFile& source : files) {
            const InputFile file(source.path, "text file");
            progress_.advance(static_cast<double>(sources_.size()), static_cast<double>(files.size()),
                              "look at the text");
            TokenSource info{source.path.string(), checkpoint::cached_sha256(file, stop_),
                             static_cast<std::int64_t>(file.size())};
            total_ += static_cast<double>(file.size());
            sources_.push_back({std::move(source), std::move(info), file.stamp()});
        }
    }

    std::string name() const {
        if (!settings_.corpus.empty()) return settings_.corpus;
        return sources_.size() == 1 ? sources_[0].file.path.filename().string()
                                    : std::to_string(sources_.size()) + " files";
    }

    /// Everything that the tokens follow from: contents, not names.
    std::string sources_key(std::size_t count) const {
        std::string text;
        for (std::size_t i = 0; i < count; ++i) {
            text += std::to_string(static_cast<int>(sources_[i].file.kind)) + " " + sources_[i].info.sha256 + "\n";
        }
        return text;
    }
    std::string key_of(const ChosenTokenizer& chosen) const {
        nlohmann::json key = {{"version", token_file_version},
                              {"tokenizer", chosen.sha256},
                              {"sources", sources_key(sources_.size())},
                              {"training_files", training_files_}};
        if (held_out_by_share()) key["validation"] = settings_.validation;
        return sha256_hex(key.dump());
    }
    bool held_out_by_share() const { return settings_.validation_files.empty(); }

    /// A file in the user's cache, or beside the run's folder where that cannot be used.
    fs::path place(const std::string& kind, const std::string& name, const std::string& beside) const {
        if (const auto cache = checkpoint::cache_folder()) {
            std::error_code error;
            fs::create_directories(*cache / kind, error);
            if (!error && ::access((*cache / kind).c_str(), W_OK | X_OK) == 0) return *cache / kind / name;
        }
        if (places_.run.empty()) {
            throw Error(ErrorCode::io, "data", "expected a folder for the tokens: $XDG_CACHE_HOME or ~/.cache",
                        "found none that can be written");
        }
        // Not inside: a new run's folder must be empty.
        fs::path path = places_.run.has_filename() ? places_.run : places_.run.parent_path();
        return path += beside;
    }

    ChosenTokenizer trained(std::int64_t size) {
        const std::string key = sha256_hex("bpe 1\n" + std::to_string(size) + "\n" + sources_key(training_files_));
        const fs::path path = place("tokenizers", key + ".json", ".tokenizer-" + key.substr(0, 16) + ".json");
        if (ends_at_regular_file(path)) {
            try {
                constexpr std::uint64_t largest = 256'000'000;
                return tokenizer_from(read_small_file(path, largest, "trained tokenizer"), shown(path));
            } catch (const Error&) {
                // Made again.
            }
        }
        std::vector<SourceFile> files;
        for (std::size_t i = 0; i < training_files_; ++i) files.push_back(sources_[i].file);
        const std::string json = train_tokenizer(size, files, progress_, stop_);
        check_sources();
        OutputFile out(path, {}, "trained tokenizer");
        out.append(json);
        out.publish();
        return tokenizer_from(json, shown(path));
    }

    std::shared_ptr<const TokenFile> existing(const fs::path& path, const std::string& key) const {
        if (!ends_at_regular_file(path)) return nullptr;
        try {
            auto file = TokenFile::open(path);
            if (file->info().key != key) return nullptr;
            file->verify(progress_, stop_);
            return file;
        } catch (const Error&) {
            return nullptr;  // made again
        }
    }

    void write(const fs::path& path, const std::string& key, const ChosenTokenizer& chosen) {
        TokenFileInfo info;
        info.vocabulary = chosen.tokenizer->vocabulary_size();
        info.separator = chosen.separator;
        info.tokenizer = settings_.tokenizer;
        info.tokenizer_sha256 = chosen.sha256;
        info.key = key;
        for (const KnownSource& source : sources_) info.sources.push_back(source.info);
        TokenWriter writer(path, info);
        Tokeniser tokeniser(*chosen.tokenizer, writer, stop_);
        double before = 0;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            if (i == training_files_) {
                tokeniser.finish();
                writer.begin_validation();
            }
            const InputFile file(sources_[i].file.path, "text file");
            check(file, sources_[i]);
            tokeniser.from(static_cast<std::int32_t>(i));
            read_parts(file, sources_[i].file.kind, tokeniser, [&](std::uint64_t bytes) {
                progress_.advance(before + static_cast<double>(bytes), total_, "tokenise the text");
            });
            before += static_cast<double>(file.size());
        }
        tokeniser.finish();
        if (held_out_by_share()) writer.hold_out(settings_.validation);
        if (sources_.size() == training_files_ && !held_out_by_share()) writer.hold_out(0);
        if (writer.tokens() == 0) {
            throw Error(ErrorCode::usage, "data", "expected text to train on",
                        sources_.size() == 1 ? "found none in " + shown(sources_[0].file.path)
                                             : "found none in " + std::to_string(sources_.size()) + " files");
        }
        writer.publish(stop_);
    }

    static void check(const InputFile& file, const KnownSource& source) {
        if (file.stamp() == source.stamp) return;
        throw Error(ErrorCode::mismatch, shown(source.file.path), "expected a file that nobody changes",
                    "found it changed while it was read");
    }
    void check_sources() const {
        for (const KnownSource& source : sources_) check(InputFile(source.file.path, "text file"), source);
    }

    const DataSettings& settings_;
    const DataPlaces& places_;
    Progress& progress_;
    const Cancellation& stop_;
    std::vector<KnownSource> sources_;
    std::size_t training_files_ = 0;
    double total_ = 0;
};

}  // namespace

std::shared_ptr<const DataSet> prepare_text(const DataSettings& settings, const DataPlaces& places, Progress& progress,
                                            const Cancellation& cancellation) {
    return Preparation(settings, places, progress, cancellation).run();
}

}  // namespace headscope::data
