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

/// Hands on documents with something but white space; of long ones the first part.
class Documents final : public data::PartSink {
public:
    using Take = std::function<void(std::int64_t number, const std::string& text)>;
    Documents(std::int64_t first, std::int64_t end, Take take) : first_(first), end_(end), take_(std::move(take)) {}

    void begin_document() override { text_.clear(); }
    void part(std::string_view text) override {
        if (text_.empty()) text_ = text;
    }
    void end_document() override {
        if (text_.find_first_not_of(" \t\r\n") == std::string::npos) return;
        if (number_ >= end_) throw Enough();
        if (number_ >= first_) take_(number_, text_);
        ++number_;
        longest_ = std::max(longest_, std::ssize(text_));
    }
    std::int64_t number() const { return number_; }
    /// Bytes of the longest one so far.
    std::int64_t longest() const { return longest_; }

private:
    std::int64_t first_, end_;
    Take take_;
    std::string text_;
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
        add_tool_option(command, "--intervals", intervals_);
        add_tool_flag(command, "--two-passes", two_passes_);
        add_tool_option(command, "--headvis-tree", tree_);
    }
    void store_options(nlohmann::json& settings) const override {
        settings["folder"] = folder_;
        settings["json_lines"] = json_lines_;
        settings["field"] = field_;
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
        if (given == 1 && !options.job.tokens.empty()) {
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
            if (text.target && listed_.empty())
                throw Error(ErrorCode::usage, "ask corpus",
                            "expected --tokens with --target-tokens for a model with an encoder and a decoder",
                            "found texts without decoder inputs");
            if (text.predicted().ids.size() < 2) return;
            first.push_back(std::move(text));
            throw Enough();
        });
        if (first.empty())
            throw Error(ErrorCode::usage, "ask corpus", "expected a text of at least 2 tokens", "found none");
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
        if (!folder_.empty() || !json_lines_.empty())
            for (const std::string& name : given)
                if (name == "--target-text" || name == "--target-tokens")
                    throw UsageError(name + " needs --tokens in place of --folder and --json-lines");
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
    void find_documents() {
        const std::string option = folder_.empty() ? "--json-lines" : "--folder";
        sources_ =
            data::find_sources({folder_.empty() ? json_lines_ : folder_}, std::filesystem::current_path(), option);
        for (data::SourceFile& source : sources_) source.column = field_;
        Sha256 hash;
        Documents counter(0, std::numeric_limits<std::int64_t>::max(), [&](std::int64_t, const std::string& text) {
            const auto length = static_cast<std::uint64_t>(text.size());
            hash.update(&length, sizeof length);
            hash.update(text);
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
        for (const data::SourceFile& source : sources_)
            data::read_parts(
                InputFile(source.path, "text file"), source.kind, documents, [](std::uint64_t) {}, source.column);
    }

    /// Texts from `first` to `end` - 1; `take` may throw Enough.
    void each_text(std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) const {
        try {
            for (std::int64_t i = first; i < std::min(end, std::ssize(listed_)); ++i)
                take(i, shortened(listed_[static_cast<std::size_t>(i)]));
            Documents documents(first, end,
                                [&](std::int64_t number, const std::string& text) { take(number, tokens_of(text)); });
            read_sources(documents);
        } catch (const Enough&) {
            return;
        }
    }

    store::SequenceTokens tokens_of(const std::string& text) const {
        return shortened(std::move(texts_({text}, {}, {}, {}).front()));
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

    std::string folder_, json_lines_, field_, tree_;
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
