// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/held_out_passage.h"

#include <string_view>

#include "core/base/input_file.h"
#include "core/data/text_data.h"
#include "core/data/text_parts.h"

namespace headscope::app {
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
    std::string passage() const {
        std::string text = last_.size() > kBytes ? last_.substr(last_.size() - kBytes) : last_;
        const std::size_t space = text.find(' ');
        if (text.size() == kBytes && space != std::string::npos) text.erase(0, space + 1);
        return text;
    }

private:
    static constexpr std::size_t kBytes = 6000;
    std::string text_, last_;
};

}  // namespace

std::string held_out_passage(const std::vector<std::string>& data) {
    const auto files = data.empty() ? data::corpus_files("kjv") : data::find_sources(data, {}, "--data");
    LastText last;
    for (const auto& file : files)
        data::read_parts(InputFile(file.path, "text"), file.kind, last, [](std::uint64_t) {});
    return last.passage();
}

}  // namespace headscope::app
