// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/ruler/essays.h"

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/process/cancellation_scope.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

bool is_white(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/// True where a sentence ends with this word.
bool ends_sentence(std::string_view word) {
    while (!word.empty() && (word.ends_with('"') || word.ends_with('\'') || word.ends_with(')') || word.ends_with(']')))
        word.remove_suffix(1);
    for (const std::string_view quote : {"\u201d", "\u2019"})
        if (word.ends_with(quote)) word.remove_suffix(quote.size());
    return word.ends_with('.') || word.ends_with('!') || word.ends_with('?');
}

class Gathering final : public PartSink {
public:
    explicit Gathering(std::size_t most) : most_(most) {}
    void begin_document() override {
        if (!text.empty()) text += '\n';
    }
    void part(std::string_view more) override {
        check_cancellation();
        if (!enough()) text += more;
    }
    void end_document() override {}
    bool enough() const { return text.size() >= most_; }

    std::string text;

private:
    std::size_t most_;
};

}  // namespace

std::vector<std::string> sentences_of(std::string_view text) {
    std::vector<std::string> sentences;
    std::string sentence;
    for (std::size_t at = 0; at < text.size();) {
        if (is_white(text[at])) {
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < text.size() && !is_white(text[at])) ++at;
        const std::string_view word = text.substr(begin, at - begin);
        if (!sentence.empty()) sentence += ' ';
        sentence += word;
        if (!ends_sentence(word)) continue;
        sentences.push_back(std::move(sentence));
        sentence.clear();
    }
    if (!sentence.empty()) sentences.push_back(std::move(sentence));
    return sentences;
}

Essays read_essays(const std::vector<SourceFile>& files, const std::string& name, std::size_t most) {
    Gathering gathered(most);
    for (const SourceFile& file : files) {
        if (gathered.enough()) break;
        read_parts(InputFile(file.path, "haystack"), file.kind, gathered, [](std::uint64_t) {});
    }
    Essays essays{name, sentences_of(gathered.text)};
    if (essays.sentences.empty())
        throw Error(ErrorCode::usage, "--haystack", "expected text", "found none in " + escaped(name));
    return essays;
}

}  // namespace headscope::data
