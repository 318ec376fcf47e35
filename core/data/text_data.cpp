// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/text_data.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/io/sha256.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/checkpoint/fingerprint.h"
#include "core/data/batch/item_reader.h"
#include "core/data/batch/objective_reader.h"
#include "core/data/batch/window_source.h"
#include "core/data/objectives/list.h"
#include "core/data/source/question_reader.h"
#include "core/data/source/text_parts.h"
#include "core/data/token_file.h"
#include "core/data/token_writer.h"
#include "core/data/tokeniser.h"
#include "core/data/tokenizer_choice.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::data {
namespace {

namespace fs = std::filesystem;

constexpr int token_file_version = 1;  // of how tokens are made of text: raise it when that changes

[[noreturn]] void refuse_text(const std::string& key, const ObjectiveSettings& objective, const std::string& found) {
    throw Error(ErrorCode::usage, key,
                std::string("expected .jsonl files with ") + kind_of(objective).columns +
                    " in each line for the objective " + objective.kind,
                "found " + found);
}

void check_kinds(const std::vector<SourceFile>& files, const ObjectiveSettings& objective, const std::string& key) {
    if (!reads_items(objective)) return;
    for (const SourceFile& file : files)
        if (!has_columns(file.kind)) refuse_text(key, objective, shown(file.path));
}

struct FoundFiles {
    std::vector<SourceFile> training, held_out;
};

FoundFiles find_files(const DataSettings& settings, const DataPlaces& places) {
    constexpr auto training_key = "data.text", held_out_key = "data.validation";
    if (!settings.corpus.empty() && reads_items(settings.objective))
        refuse_text("data.corpus", settings.objective, escaped(settings.corpus, 40));
    FoundFiles found;
    found.training = settings.corpus.empty() ? find_sources(settings.text, places.base, training_key)
                                             : corpus_files(settings.corpus);
    if (!settings.validation_files.empty()) {
        found.held_out = find_sources(settings.validation_files, places.base, held_out_key);
        std::set<fs::path> names;
        for (const SourceFile& file : found.held_out) names.insert(fs::canonical(file.path));
        std::erase_if(found.training,
                      [&](const SourceFile& file) { return names.count(fs::canonical(file.path)) > 0; });
    }
    if (found.training.empty()) {
        throw Error(ErrorCode::usage, training_key, "expected files to train on",
                    found.held_out.empty() ? "found none" : "found none that is not held out");
    }
    for (auto* files : {&found.training, &found.held_out})
        for (SourceFile& file : *files) file.column = settings.column;
    check_kinds(found.training, settings.objective, training_key);
    check_kinds(found.held_out, settings.objective, held_out_key);
    return found;
}

/// One document; the text is valid UTF-8, as JSON's strings are.
void feed(std::string_view text, PartSink& sink) {
    const auto refuse = [](std::uint64_t byte) {
        throw Error(ErrorCode::format, "data", "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(byte));
    };
    sink.begin_document();
    PartCutter cutter(sink);
    cutter.add(text, refuse);
    cutter.finish(refuse);
    sink.end_document();
}

/// Tokens of a question's first answer.
TokenSpan answer_of(const Question& question, const tokenizer::Tokenizer& tokenizer, const Cancellation& stop) {
    // Longer texts are tokenized in parts, which may differ.
    if (question.context.size() > largest_part)
        throw Error(ErrorCode::limit, question.id.empty() ? "data.text" : "question " + escaped(question.id, 40),
                    "expected a context of at most " + std::to_string(largest_part) + " bytes",
                    "found one of " + std::to_string(question.context.size()));
    if (question.answers.empty()) return {-1, -1};
    const auto begin = static_cast<std::int64_t>(question.begins.front());
    return answer_tokens(token_ranges(tokenizer, question.context, &stop),
                         {begin, begin + std::ssize(question.answers.front())});
}

/// A source with what is known of its content.
struct KnownSource {
    SourceFile file;
    TokenSource info;
    std::string stamp;
};

class TextData final : public DataSet {
public:
    TextData(ChosenTokenizer chosen, std::optional<ObjectiveReader> objective, std::shared_ptr<const TokenFile> file,
             const DataSettings& settings, std::string name, std::int64_t sources, bool reused)
        : objective_(std::move(objective)),
          items_(reads_items(settings.objective)),
          spans_(kind_of(settings.objective).spans),
          file_(std::move(file)),
          length_(settings.sequence_length) {
        const TokenFileInfo& info = file_->info();
        vocabulary_ = chosen.tokenizer->vocabulary_size();
        tokenizer_ = std::move(chosen.tokenizer);
        tokenizer_files_ = std::move(chosen.files);
        if (kind_of(settings.objective).pairs()) state_token_types(tokenizer_files_, objective_->has_types());
        separator_ = objective_ ? objective_->separator() : chosen.separator;
        if (objective_) special_ = objective_->special();
        std::string content = "text\n" + info.tokens_sha256 + "\n" + info.tokenizer_sha256 + "\n" +
                              std::to_string(info.validation_begin) + "\n" + std::to_string(length_) + "\n";
        if (objective_) content += objective_->key() + "\n" + info.documents_sha256 + "\n";
        hash_ = sha256_hex(content);
        summary_.name = std::move(name);
        summary_.sources = sources;
        summary_.documents = info.documents / info.documents_per_item;
        summary_.training_tokens = file_->range(Split::training).size() / info.numbers_per_token;
        summary_.validation_tokens = file_->range(Split::validation).size() / info.numbers_per_token;
        summary_.token_file = file_->path();
        summary_.reused = reused;
        // Refuse short texts before a model is made.
        source(Split::training, 0);
        source(Split::validation, 0);
    }

    std::unique_ptr<const BatchSource> source(Split split, std::uint64_t seed) const override {
        const bool held_out = split == Split::validation;
        if (held_out && (items_ ? file_->items(split).size() : summary_.validation_tokens) == 0) return nullptr;
        if (held_out) seed = 0;
        if (!objective_) return std::make_unique<WindowSource>(file_, split, length_, seed);
        if (spans_) return objective_->question_source(stored_questions(file_, split), seed);
        if (items_) return objective_->source(stored_items(file_, split, seed, length_, objective_->keeps_end()));
        return objective_->source(window_rows(file_, split, objective_->row_tokens(), seed), seed);
    }

private:
    std::optional<ObjectiveReader> objective_;  ///< none: next_token
    bool items_, spans_;
    std::shared_ptr<const TokenFile> file_;
    std::int64_t length_;
};

class Preparation {
public:
    Preparation(const DataSettings& settings, const DataPlaces& places, Progress& progress, const Cancellation& stop,
                const HashedWords* words)
        : settings_(settings),
          places_(places),
          progress_(progress),
          stop_(stop),
          words_(words),
          items_(reads_items(settings.objective)) {}

    std::shared_ptr<const DataSet> run() {
        const CancellationScope scope(stop_);
        find();
        // Fails before long work.
        ChosenTokenizer chosen = choose();
        std::optional<ObjectiveReader> objective;
        if (!kind_of(settings_.objective).reads_stream()) objective.emplace(settings_, chosen);
        const std::string key = key_of(chosen);
        const fs::path path = place("tokens", key + ".tokens.h5", ".tokens.h5");
        bool reused = true;
        auto file = existing(path, key);
        if (!file) {
            write(path, key, chosen, objective ? -1 : chosen.separator);
            file = TokenFile::open(path);
            reused = false;
        }
        return std::make_shared<TextData>(std::move(chosen), std::move(objective), std::move(file), settings_, name(),
                                          static_cast<std::int64_t>(sources_.size()), reused);
    }

private:
    /// Sources to train on, then those held out as files.
    void find() {
        FoundFiles found = find_files(settings_, places_);
        std::vector<SourceFile> files = std::move(found.training);
        training_files_ = files.size();
        files.insert(files.end(), found.held_out.begin(), found.held_out.end());
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

    ChosenTokenizer choose() {
        if (words_ != nullptr) return word_tokenizer(*words_);
        const auto size = trained_size(settings_.tokenizer);
        if (!size && settings_.tokenizer != "bytes") return tokenizer_at(places_.base / settings_.tokenizer);
        ChosenTokenizer made = size ? trained(*size) : byte_tokenizer();
        return kind_of(settings_.objective).reads_stream() ? made : with_special_tokens(made, settings_.tokenizer);
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
        // Defaults leave the names of files in the cache as they were.
        const DataSettings standard;
        const ObjectiveSettings& objective = settings_.objective;
        if (!items_ && settings_.column != standard.column) text += "column " + settings_.column + "\n";
        if (items_ && (objective.source != standard.objective.source || objective.target != standard.objective.target))
            text += "columns " + objective.source + "\n" + objective.target + "\n";
        return text;
    }
    std::string key_of(const ChosenTokenizer& chosen) const {
        nlohmann::json key = {{"version", token_file_version},
                              {"tokenizer", chosen.sha256},
                              {"sources", sources_key(sources_.size())},
                              {"training_files", training_files_}};
        if (held_out_by_share()) key["validation"] = settings_.validation;
        if (items_)
            key["items"] = settings_.objective.kind;
        else if (!kind_of(settings_.objective).reads_stream())
            key["separators"] = false;
        if (kind_of(settings_.objective).labels()) key["classes"] = settings_.objective.classes;
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
        const std::string key = sha256_hex("bpe 1\n" + std::to_string(size) + "\n" + sources_key(training_files_) +
                                           (items_ ? settings_.objective.kind + "\n" : ""));
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
        const std::string json = train_tokenizer(size, files, settings_.objective, progress_, stop_);
        check_sources();
        write_whole_file(path, json, "trained tokenizer");
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

    void write(const fs::path& path, const std::string& key, const ChosenTokenizer& chosen, std::int64_t separator) {
        const TokenCode code(chosen.tokenizer);
        TokenFileInfo info;
        info.vocabulary = code.vocabulary();
        info.separator = separator;
        info.numbers_per_token = code.width();
        info.documents_per_item = items_ ? 2 : 1;
        info.tokenizer = words_ != nullptr ? "words" : settings_.tokenizer;
        info.tokenizer_sha256 = chosen.sha256;
        info.key = key;
        for (const KnownSource& source : sources_) info.sources.push_back(source.info);
        TokenWriter writer(path, info);
        Tokeniser tokeniser(
            [&code](std::string_view text, const Cancellation& stop) { return code.encode(text, &stop); }, writer,
            stop_);
        double before = 0;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            if (i == training_files_) {
                tokeniser.finish();
                writer.begin_validation();
            }
            const InputFile file(sources_[i].file.path, "text file");
            check(file, sources_[i]);
            tokeniser.from(static_cast<std::int32_t>(i));
            read(file, sources_[i].file.kind, *chosen.tokenizer, tokeniser, [&](std::uint64_t bytes) {
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

    void read(const InputFile& file, SourceKind kind, const tokenizer::Tokenizer& tokenizer, Tokeniser& to,
              const std::function<void(std::uint64_t)>& progress) {
        if (!items_) return read_parts(file, kind, to, progress, settings_.column);
        const auto add = [&to](const std::string& text, double label) {
            to.label(static_cast<float>(label));
            feed(text, to);
        };
        if (kind_of(settings_.objective).spans) {
            const auto take_question = [&](const Question& question) {
                const TokenSpan answer = answer_of(question, tokenizer, stop_);
                add(question.text, static_cast<double>(answer[0]));
                add(question.context, static_cast<double>(answer[1]));
            };
            return read_questions(file, kind, take_question, progress);
        }
        const auto take = [&add](const TextItem& item) {
            add(item.text, item.label);
            add(item.other, item.has_other ? 1 : 0);
        };
        read_items(file, kind, settings_.objective, take, progress);
    }

    static void check(const InputFile& file, const KnownSource& source) {
        if (file.stamp() == source.stamp) return;
        throw Error(ErrorCode::mismatch, shown(source.file.path), "expected a file that stays unchanged",
                    "found it changed while it was read");
    }
    void check_sources() const {
        for (const KnownSource& source : sources_) check(InputFile(source.file.path, "text file"), source);
    }

    const DataSettings& settings_;
    const DataPlaces& places_;
    Progress& progress_;
    const Cancellation& stop_;
    const HashedWords* words_;
    bool items_;
    std::vector<KnownSource> sources_;
    std::size_t training_files_ = 0;
    double total_ = 0;
};

}  // namespace

std::vector<SourceFile> training_sources(const DataSettings& settings, const DataPlaces& places) {
    return find_files(settings, places).training;
}

void read_texts(const std::vector<SourceFile>& sources, const ObjectiveSettings& objective, PartSink& sink,
                Progress& progress, const std::string& what) {
    double total = 0;
    for (const SourceFile& source : sources) total += static_cast<double>(InputFile(source.path).size());
    double before = 0;
    for (const SourceFile& source : sources) {
        const InputFile file(source.path, "text file");
        const auto advance = [&](std::uint64_t bytes) {
            progress.advance(before + static_cast<double>(bytes), total, what);
        };
        if (kind_of(objective).spans) {
            const auto take = [&sink](const Question& question) {
                feed(question.text, sink);
                feed(question.context, sink);
            };
            read_questions(file, source.kind, take, advance);
        } else if (reads_items(objective)) {
            const auto take = [&sink](const TextItem& item) {
                feed(item.text, sink);
                feed(item.other, sink);
            };
            read_items(file, source.kind, objective, take, advance);
        } else {
            read_parts(file, source.kind, sink, advance, source.column);
        }
        before += static_cast<double>(file.size());
    }
}

std::shared_ptr<const DataSet> prepare_text(const DataSettings& settings, const DataPlaces& places, Progress& progress,
                                            const Cancellation& cancellation, const HashedWords* words) {
    return Preparation(settings, places, progress, cancellation, words).run();
}

}  // namespace headscope::data
