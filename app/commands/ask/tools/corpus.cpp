// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/corpus.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/commands/ask/ask_input.h"
#include "app/commands/ask/ask_tool.h"
#include "app/commands/console.h"
#include "app/commands/context.h"
#include "app/commands/options.h"
#include "core/ask/corpus/headvis_tree.h"
#include "core/base/error.h"
#include "core/base/io/sha256.h"
#include "core/data/batch/item_reader.h"
#include "core/data/objectives/translation.h"
#include "core/data/source/source_files.h"
#include "core/data/source/text_parts.h"
#include "core/model/model.h"

namespace headscope::app {
namespace ask_corpus {
namespace {

constexpr std::int64_t kUsualLength = 512;

/// Ends the reading of sources.
struct Enough {};

/// Tokens that a tokenizer adds to a text: those of begin and end, and a space ahead.
constexpr std::int64_t kAddedTokens = 8;

/// Hands on documents, or pairs of texts, with something but white space in each text; of long texts the first part.
class Documents final : public data::PartSink {
public:
    using Take = std::function<void(std::int64_t number, const data::TextItem& document)>;
    Documents(std::int64_t first, std::int64_t end, Take take) : first_(first), end_(end), take_(std::move(take)) {}

    void begin_document() override { document_.text.clear(); }
    void part(std::string_view text) override {
        if (document_.text.empty()) document_.text = text;
    }
    void end_document() override { hand_on(document_); }
    void pair(data::TextItem item) {
        cut(item.text);
        cut(item.other);
        hand_on(item);
    }
    std::int64_t number() const { return number_; }
    /// Bytes of the longest text so far.
    std::int64_t longest() const { return longest_; }

private:
    static bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }
    /// To the part that read_parts() hands on first.
    static void cut(std::string& text) {
        if (text.size() <= data::largest_part) return;
        text.resize(data::largest_part);
        text.resize(data::cut_place(text, data::largest_part / 2));
    }
    void hand_on(const data::TextItem& document) {
        if (is_blank(document.text) || (document.has_other && is_blank(document.other))) return;
        if (number_ >= end_) throw Enough();
        if (number_ >= first_) take_(number_, document);
        ++number_;
        longest_ = std::max({longest_, std::ssize(document.text), std::ssize(document.other)});
    }

    std::int64_t first_, end_;
    Take take_;
    data::TextItem document_;  ///< without a pair
    std::int64_t number_ = 0, longest_ = 0;
};

class CorpusTool final : public AskTool {
public:
    std::string name() const override { return "corpus"; }
    std::string help() const override { return "every head over the texts of a folder or of JSON lines"; }
    void add_options(CLI::App& command) override {
        add_tool_option(command, "--folder", folder_);
        add_tool_option(command, "--json-lines", json_lines_);
        add_tool_option(command, "--field", field_);
        add_tool_option(command, "--target-field", target_field_);
        add_tool_option(command, "--intervals", intervals_);
        add_tool_flag(command, "--two-passes", two_passes_);
        add_tool_option(command, "--headvis-tree", tree_);
    }
    void store_options(nlohmann::json& settings) const override {
        settings["folder"] = folder_;
        settings["json_lines"] = json_lines_;
        settings["field"] = field_;
        if (!target_field_.empty()) settings["target_field"] = target_field_;  // older files have none
        settings["intervals"] = intervals_;
        settings["two_passes"] = two_passes_;
        settings["documents_sha256"] = documents_sha256_;
    }
    bool keeps_texts() const override { return true; }
    std::int64_t longest_text() const override { return longest_; }
    std::vector<store::SequenceTokens> read(const AskOptions& options, const AskTexts& texts) override {
        const int given =
            (folder_.empty() ? 0 : 1) + (json_lines_.empty() ? 0 : 1) + (options.job.tokens.empty() ? 0 : 1);
        if (given != 1)
            throw Error(ErrorCode::usage, "--folder", "expected one of --folder, --json-lines and --tokens",
                        given == 0 ? "found none" : "found several");
        texts_ = texts;
        length_ = options.job.length;
        const bool lists = !options.job.tokens.empty();
        if (lists) {
            listed_ = texts({}, options.job.tokens, {}, {});
            count_ = std::ssize(listed_);
            for (const store::SequenceTokens& text : listed_)
                longest_ = std::max({longest_, std::min(most_tokens(), std::max(std::ssize(text.ids),
                                                                                std::ssize(text.predicted().ids)))});
        } else {
            find_documents();
        }
        std::vector<store::SequenceTokens> first;
        each_text(0, count_, [&](std::int64_t, store::SequenceTokens text) {
            if (text.target && !lists && target_field_.empty())
                throw Error(ErrorCode::usage, "--target-field",
                            "expected it with --json-lines, or --tokens with --target-tokens, for an encoder-decoder",
                            "found texts without decoder inputs");
            if (text.predicted().ids.size() < 2) return;
            first.push_back(std::move(text));
            throw Enough();
        });
        if (first.empty())
            throw Error(ErrorCode::usage, "ask corpus", "expected a text of at least 2 tokens", "found none");
        if (!lists) count_documents();
        return first;
    }
    std::vector<std::filesystem::path> inputs() const override {
        std::vector<std::filesystem::path> paths;
        for (const data::SourceFile& source : sources_) paths.push_back(source.path);
        return paths;
    }
    std::vector<std::filesystem::path> output_folders() const override {
        return tree_.empty() ? std::vector<std::filesystem::path>{} : std::vector<std::filesystem::path>{tree_};
    }
    void check_given(const std::vector<std::string>& given) const override {
        for (const std::string& name : given) {
            if (name == "--target-field" && json_lines_.empty()) throw UsageError(name + " needs --json-lines");
            if ((name == "--target-text" || name == "--target-tokens") && !(folder_.empty() && json_lines_.empty()))
                throw UsageError(name + " needs --tokens in place of --folder and --json-lines");
        }
    }
    void run(AskRun& run) override {
        if (!tree_.empty() && run.model.config().encoder)
            throw Error(ErrorCode::unsupported, "--headvis-tree", "expected a decoder", "found an encoder-decoder");
        ask::corpus::CorpusOptions options;
        options.documents = count_;
        options.intervals = intervals_;
        options.two_passes = two_passes_;
        options.seed = static_cast<std::uint64_t>(run.options.seed);
        options.editor = run.editor;
        options.saved = run.saved;
        const auto source = [&](std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) {
            each_text(first, end, take);
        };
        ask::corpus::run_corpus(run.model, source, options, run.record, run.progress, run.cancellation);
        if (tree_.empty()) return;
        ask::corpus::write_headvis_tree(run.model, run.record, run.editor, tree_, run.inputs, run.progress,
                                        run.cancellation);
        finish_progress_line();
        print(tree_ + "\n");
    }
    std::string main_table(const store::AskRecord&) const override { return "/corpus/induction_score"; }

private:
    /// Finds the files alone: count_documents() counts what they hold.
    void find_documents() {
        const std::string option = folder_.empty() ? "--json-lines" : "--folder";
        sources_ =
            data::find_sources({folder_.empty() ? json_lines_ : folder_}, std::filesystem::current_path(), option);
        for (data::SourceFile& source : sources_) {
            source.column = field_;
            if (!target_field_.empty()) source.kind = data::kind_of_objects(source.kind);
        }
        count_ = std::numeric_limits<std::int64_t>::max();
    }

    void count_documents() {
        Sha256 hash;
        const auto add = [&hash](const std::string& text) {
            const auto length = static_cast<std::uint64_t>(text.size());
            hash.update(&length, sizeof length);
            hash.update(text);
        };
        Documents counter(0, count_, [&](std::int64_t, const data::TextItem& document) {
            add(document.text);
            if (document.has_other) add(document.other);
        });
        read_sources(counter);
        documents_sha256_ = hash.finish();
        count_ = counter.number();
        // The pass that counts documents does not tokenize them: a token has a byte at least, unless a normalizer
        // lengthens the text.
        longest_ = std::min(most_tokens(), counter.longest() + kAddedTokens);
    }

    /// Tokens that a text is cut to.
    std::int64_t most_tokens() const { return length_ > 0 ? length_ : kUsualLength; }

    void read_sources(Documents& documents) const {
        data::ObjectiveSettings pairs;
        pairs.kind = data::kTranslation.name;
        pairs.source = field_;
        pairs.target = target_field_;
        const auto take = [&documents](const data::TextItem& item) { documents.pair(item); };
        const auto progress = [](std::uint64_t) {};
        for (const data::SourceFile& source : sources_) {
            const InputFile file(source.path, "text file");
            if (target_field_.empty())
                data::read_parts(file, source.kind, documents, progress, source.column);
            else
                data::read_items(file, source.kind, pairs, take, progress);
        }
    }

    /// Texts from `first` to `end` - 1; `take` may throw Enough.
    void each_text(std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) const {
        try {
            for (std::int64_t i = first; i < std::min(end, std::ssize(listed_)); ++i)
                take(i, shortened(listed_[static_cast<std::size_t>(i)]));
            Documents documents(first, end, [&](std::int64_t number, const data::TextItem& document) {
                take(number, tokens_of(document));
            });
            read_sources(documents);
        } catch (const Enough&) {
            return;
        }
    }

    store::SequenceTokens tokens_of(const data::TextItem& document) const {
        AskTargets targets;
        if (document.has_other) targets = {{document.other}, {}, "--target-field"};
        return shortened(std::move(texts_({document.text}, {}, {}, targets).front()));
    }

    /// Cut, with the text of these tokens alone, and so is a target.
    store::SequenceTokens shortened(store::SequenceTokens tokens) const {
        if (tokens.target) tokens.target = std::make_shared<const store::SequenceTokens>(shortened(*tokens.target));
        const auto most = static_cast<std::size_t>(most_tokens());
        if (tokens.ids.size() > most) {
            tokens.ids.resize(most);
            tokens.pieces.resize(std::min(tokens.pieces.size(), most));
            tokens.offsets.resize(std::min(tokens.offsets.size(), most));
        }
        std::int64_t end = 0;
        for (const auto& offset : tokens.offsets) end = std::max(end, offset[1]);
        tokens.text.resize(std::min(tokens.text.size(), static_cast<std::size_t>(end)));
        tokens.offsets.clear();
        return tokens;
    }

    std::string folder_, json_lines_, field_, target_field_, tree_;
    std::string documents_sha256_;  ///< of all texts; empty for --tokens, which AskOptions' hash covers
    std::int64_t intervals_ = 0, length_ = 0, count_ = 0, longest_ = 0;
    bool two_passes_ = false;
    AskTexts texts_;
    std::vector<store::SequenceTokens> listed_;  ///< texts from --tokens
    std::vector<data::SourceFile> sources_;
};

}  // namespace
}  // namespace ask_corpus

std::unique_ptr<AskTool> corpus_tool() {
    return std::make_unique<ask_corpus::CorpusTool>();
}

}  // namespace headscope::app
