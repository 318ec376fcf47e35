// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/replayed_text.h"

#include <string_view>
#include <utility>

#include "core/base/input_file.h"
#include "core/data/text_data.h"
#include "core/data/text_parts.h"

namespace headscope::app {

std::string last_words(const std::string& text, std::size_t most) {
    if (text.size() <= most) return text;
    const std::size_t begin = text.size() - most, space = text.find(' ', begin);
    return text.substr(space == std::string::npos ? begin : space + 1);
}

namespace {

class LastText final : public data::PartSink {
public:
    void begin_document() override { text_.clear(); }
    void part(std::string_view text) override {
        text_ += text;
        if (text_.size() > 2 * kBytes) text_.erase(0, text_.size() - kBytes);
    }
    void end_document() override {
        if (!text_.empty()) last_ = text_;
    }
    std::string passage() const { return last_words(last_, kBytes); }

private:
    static constexpr std::size_t kBytes = 6000;
    std::string text_, last_;
};

class AllText final : public data::PartSink {
public:
    explicit AllText(std::size_t most) : most_(most) {}
    void begin_document() override {}
    void part(std::string_view text) override {
        text_ += text;
        if (text_.size() > 2 * most_) cut();
    }
    void end_document() override { text_ += '\n'; }
    std::string take() {
        if (text_.size() > most_) cut();
        return std::move(text_);
    }

private:
    void cut() { text_ = last_words(text_, most_); }

    std::size_t most_;
    std::string text_;
};

void read(const std::vector<std::string>& data, data::PartSink& sink) {
    const auto files = data.empty() ? data::corpus_files("kjv") : data::find_sources(data, {}, "--data");
    for (const auto& file : files)
        data::read_parts(InputFile(file.path, "text"), file.kind, sink, [](std::uint64_t) {});
}

}  // namespace

std::string held_out_passage(const std::vector<std::string>& data) {
    LastText last;
    read(data, last);
    return last.passage();
}

std::string whole_text(const std::vector<std::string>& data, std::size_t most) {
    AllText all(most);
    read(data, all);
    return all.take();
}

}  // namespace headscope::app
