// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/documents.h"

#include <algorithm>

#include "core/base/io/input_file.h"
#include "core/base/process/cancellation_scope.h"
#include "core/data/source/text_parts.h"
#include "core/data/token_code.h"
#include "core/tokenizer/decode_stream.h"
#include "core/tokenizer/unicode/unicode.h"
#include "core/tokenizer/unicode/utf8.h"

namespace headscope::evaluation {
namespace {

/// Tokenizes parts as they come. Once nothing more is wanted parts are passed over.
class Tokenizing final : public data::PartSink {
public:
    Tokenizing(const data::TokenCode& code, DocumentSink& sink) : code_(code), sink_(sink) {}

    void begin_document() override {
        if (!sink_.enough()) sink_.begin(std::nullopt);
        open_ = !sink_.enough();
        counter_ = {};
    }
    void part(std::string_view text) override {
        check_cancellation();
        if (!open_ || sink_.enough()) return;
        counter_.add(text);
        sink_.tokens(code_.encode(text, nullptr));
    }
    void end_document() override {
        if (open_) sink_.end(counter_.words(), counter_.bytes());
        open_ = false;
    }

private:
    const data::TokenCode& code_;
    DocumentSink& sink_;
    TextCounter counter_;
    bool open_ = false;
};

class FileDocuments final : public Documents {
public:
    FileDocuments(std::vector<data::SourceFile> files, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                  std::string name)
        : files_(std::move(files)), code_(std::move(tokenizer)), name_(std::move(name)) {}

    void read(DocumentSink& sink, const std::function<void(double done)>& progress) const override {
        std::vector<InputFile> open;
        double total = 0, done = 0;
        for (const auto& file : files_) {
            open.emplace_back(file.path, "text file");
            total += static_cast<double>(open.back().size());
        }
        Tokenizing tokenizing(code_, sink);
        for (std::size_t i = 0; i < files_.size() && !sink.enough(); ++i) {
            data::read_parts(open[i], files_[i].kind, tokenizing, [&](std::uint64_t bytes) {
                if (progress && total > 0) progress((done + static_cast<double>(bytes)) / total);
            });
            done += static_cast<double>(open[i].size());
        }
    }
    std::string name() const override { return name_; }
    std::vector<std::filesystem::path> files() const override {
        std::vector<std::filesystem::path> paths;
        for (const auto& file : files_) paths.push_back(file.path);
        return paths;
    }

private:
    std::vector<data::SourceFile> files_;
    data::TokenCode code_;
    std::string name_;
};

class HeldOutDocuments final : public Documents {
public:
    HeldOutDocuments(std::shared_ptr<const data::TokenFile> tokens,
                     std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::string name)
        : tokens_(std::move(tokens)), tokenizer_(std::move(tokenizer)), name_(std::move(name)) {}

    void read(DocumentSink& sink, const std::function<void(double done)>& progress) const override {
        constexpr std::int64_t block = 1 << 14;
        const data::TokenRange range = tokens_->range(data::Split::validation);
        if (range.size() == 0) return;
        std::vector<std::int64_t> ids(static_cast<std::size_t>(block));
        std::optional<std::int64_t> before;
        if (range.begin > 0) {
            tokens_->copy(range.begin - 1, 1, ids.data());
            before = ids[0];
        }
        TextCounter counter;
        tokenizer::DecodeStream decode(*tokenizer_, {}, true);
        sink.begin(before);
        for (std::int64_t first = range.begin; first < range.end && !sink.enough(); first += block) {
            check_cancellation();
            const std::int64_t count = std::min({block, range.end - first, sink.wanted()});
            tokens_->copy(first, count, ids.data());
            const std::vector<std::int32_t> narrow(ids.begin(), ids.begin() + count);
            for (const std::int32_t id : narrow) counter.add(decode.add(id));
            sink.tokens(narrow);
            if (progress)
                progress(static_cast<double>(first + count - range.begin) / static_cast<double>(range.size()));
        }
        counter.add(decode.finish());
        sink.end(counter.words(), counter.bytes());
    }
    std::string name() const override { return name_; }
    std::vector<std::filesystem::path> files() const override { return {tokens_->path()}; }

private:
    std::shared_ptr<const data::TokenFile> tokens_;
    std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
    std::string name_;
};

}  // namespace

void TextCounter::add(std::string_view text) {
    bytes_ += static_cast<std::int64_t>(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto character = tokenizer::decode_utf8(text, at);
        const bool space = tokenizer::is_space(character.point);
        if (space && !in_space_) ++runs_;
        in_space_ = space;
        at += character.length;
    }
}

std::unique_ptr<Documents> file_documents(std::vector<data::SourceFile> files,
                                          std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::string name) {
    return std::make_unique<FileDocuments>(std::move(files), std::move(tokenizer), std::move(name));
}

std::unique_ptr<Documents> held_out_documents(std::shared_ptr<const data::TokenFile> tokens,
                                              std::shared_ptr<const tokenizer::Tokenizer> tokenizer, std::string name) {
    return std::make_unique<HeldOutDocuments>(std::move(tokens), std::move(tokenizer), std::move(name));
}

}  // namespace headscope::evaluation
