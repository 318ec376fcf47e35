// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/data/source/text_parts.h"
#include "core/data/text_data.h"
#include "core/run/journal.h"
#include "core/run/journal_reader.h"

namespace headscope::reproduce {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kWords = 24, kEachTested = 5, kFewest = 10;
constexpr std::size_t kPassageBytes = 6000;

/// Keeps the last bytes of all documents, each with a line end, or of the last one that is not empty.
class LastBytes final : public data::PartSink {
public:
    LastBytes(std::size_t most, bool all) : most_(most), all_(all) {}
    void begin_document() override {
        if (!all_) text_.clear();
    }
    void part(std::string_view text) override {
        text_ += text;
        if (text_.size() > 2 * most_) text_ = last_words(text_, most_);
    }
    void end_document() override {
        if (all_)
            text_ += '\n';
        else if (!text_.empty())
            last_ = text_;
    }
    std::string take() const { return last_words(all_ ? text_ : last_, most_); }

private:
    std::size_t most_;
    bool all_;
    std::string text_, last_;
};

std::string read(const std::vector<std::string>& data, LastBytes sink) {
    const auto files = data.empty() ? data::corpus_files("kjv") : data::find_sources(data, {}, "--data");
    for (const auto& file : files)
        data::read_parts(InputFile(file.path, "text"), file.kind, sink, [](std::uint64_t) {});
    return sink.take();
}

}  // namespace

std::vector<double> step_seconds(const fs::path& run) {
    std::vector<double> seconds;
    for (const auto& event : training::read_journal(run / training::kJournalName)) {
        const auto* step = std::get_if<training::Step>(&event.what);
        if (step == nullptr || step->tokens_per_second <= 0 || step->step < 3) continue;
        const double tokens = static_cast<double>(step->tokens) / static_cast<double>(step->step);
        seconds.push_back(tokens / step->tokens_per_second);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
}

std::string last_words(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    const std::size_t begin = text.size() - most, space = text.find(' ', begin);
    return text.substr(space == std::string::npos ? begin : space + 1);
}

std::string held_out_passage(const std::vector<std::string>& data) {
    return read(data, {kPassageBytes, false});
}

std::string whole_text(const std::vector<std::string>& data, std::size_t most) {
    return read(data, {most, true});
}

Passages passages_of(std::string_view text, std::int64_t classes, std::int64_t most) {
    std::vector<std::string> all;
    std::int64_t words = 0;
    std::istringstream stream{std::string(text)};
    for (std::string word; stream >> word;) {
        if (words++ % kWords == 0)
            all.push_back(word);
        else
            all.back() += " " + word;
    }
    if (words % kWords != 0) all.pop_back();
    const auto count = static_cast<std::int64_t>(all.size());
    if (count < kFewest * classes)
        throw Error(ErrorCode::usage, "--data",
                    "expected a text of at least " + std::to_string(kFewest * classes * kWords) + " words",
                    "found " + std::to_string(words));
    const std::int64_t chosen = std::min(count, most);
    Passages passages;
    for (std::int64_t i = 0; i < chosen; ++i) {
        const std::int64_t place = i * count / chosen;
        const nlohmann::json line{{"text", all[static_cast<std::size_t>(place)]}, {"label", classes * place / count}};
        (i % kEachTested == kEachTested - 1 ? passages.test : passages.train) +=
            line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
    return passages;
}

}  // namespace headscope::reproduce
