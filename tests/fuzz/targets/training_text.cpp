// SPDX-License-Identifier: GPL-3.0-or-later
// Text to train on, of each kind: the first line of the input chooses. Parts are valid UTF-8 and bounded; a text file's
// parts are the file; lines that a second JSON reader takes give the documents, or items, that it finds; labels are
// classes; LZW ends within its limit.
#include "core/data/batch/item_reader.h"
#include "core/data/source/lzw.h"
#include "core/data/source/text_parts.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/other_json.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

class Collector final : public data::PartSink {
public:
    void begin_document() override {
        expect(!inside_, "documents one after the other");
        inside_ = true;
        documents.emplace_back();
    }
    void part(std::string_view text) override {
        expect(inside_ && !text.empty() && text.size() <= data::largest_part, "parts of bounded size");
        expect(other_utf8(text), "parts to be UTF-8");
        documents.back() += text;
    }
    void end_document() override { inside_ = false; }
    std::vector<std::string> documents;

private:
    bool inside_ = false;
};

std::string_view without_mark(std::string_view text) {
    return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

/// The documents, if every line is an object with one "text"; nothing if this reader cannot decide.
std::optional<std::vector<std::string>> other_documents(std::string_view text) {
    std::vector<std::string> documents;
    text = without_mark(text);
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const auto document = other_json(line);
        const OtherJson* field = document ? document->find("text") : nullptr;
        if (field == nullptr || field->string() == nullptr) return std::nullopt;
        documents.push_back(*field->string());
    }
    return documents;
}

/// Source, target, source, ... or text, pair, text, ... if every line has both as strings, and a label of two classes.
std::optional<std::vector<std::string>> other_items(std::string_view text, const char* first, const char* second,
                                                    bool labelled) {
    std::vector<std::string> texts;
    text = without_mark(text);
    while (!text.empty()) {
        const std::string_view line = take_line(text);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const auto item = other_json(line);
        for (const char* name : {first, second}) {
            const OtherJson* field = item ? item->find(name) : nullptr;
            if (field == nullptr || field->string() == nullptr) return std::nullopt;
            texts.push_back(*field->string());
        }
        const OtherJson* label = item->find("label");
        if (labelled && (label == nullptr || label->whole() == nullptr || *label->whole() > 1)) return std::nullopt;
    }
    return texts;
}

void read_items(std::string_view input, const std::string& objective) {
    static MemoryFile memory;
    memory.set(input);
    const bool labelled = objective == "classify";
    data::ObjectiveSettings settings;
    settings.kind = objective;
    std::vector<std::string> texts;
    const auto take = [&](const data::TextItem& item) {
        expect(item.label == 0 || (labelled && item.label == 1), "labels to be classes");
        expect(other_utf8(item.text) && other_utf8(item.other), "texts to be UTF-8");
        texts.insert(texts.end(), {item.text, item.other});
    };
    const auto refused = refusal([&] {
        data::read_items(InputFile(memory.path(), "text file"), data::SourceKind::json_lines, settings, take,
                         [](std::uint64_t) {});
    });
    const auto items =
        labelled ? other_items(input, "text", "pair", true) : other_items(input, "source", "target", false);
    if (items) expect(!refused && texts == *items, "both readers of items to agree");
}

/// The objects of lines that can be read are the same documents in an array.
void read_as_array(std::string_view input, const std::vector<std::string>& documents) {
    std::string array = "[";
    for (std::string_view text = without_mark(input); !text.empty();) {
        const std::string_view line = take_line(text);
        if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        array += (array.size() > 1 ? ",\n" : "\n") + std::string(line);
    }
    array += "\n]\n";
    static MemoryFile memory;
    memory.set(array);
    Collector collector;
    data::read_parts(InputFile(memory.path(), "text file"), data::SourceKind::json_array, collector,
                     [](std::uint64_t) {});
    expect(collector.documents == documents, "an array to have the documents of its lines");
}

void read(std::string_view input, data::SourceKind kind) {
    static MemoryFile memory;
    memory.set(input);
    Collector collector;
    const auto refused = refusal(
        [&] { data::read_parts(InputFile(memory.path(), "text file"), kind, collector, [](std::uint64_t) {}); });
    if (kind == data::SourceKind::text) {
        expect(!refused == other_utf8(without_mark(input)), "text files to be UTF-8 and nothing else");
        if (!refused) expect(collector.documents.at(0) == without_mark(input), "a text file to be one document");
    }
    if (kind == data::SourceKind::json_lines) {
        const auto documents = other_documents(input);
        if (documents) expect(!refused && collector.documents == *documents, "both readers of lines to agree");
        if (!refused) read_as_array(input, collector.documents);
    }
    if (kind == data::SourceKind::bible) expect(refused.has_value(), "no bible in so few bytes");
}

}  // namespace

void run_training_text(std::string_view input) {
    const std::string_view kind = take_line(input);
    if (kind == "lines") return read(input, data::SourceKind::json_lines);
    if (kind == "array") return read(input, data::SourceKind::json_array);
    if (kind == "bible") return read(input, data::SourceKind::bible);
    if (kind == "text") return read(input, data::SourceKind::text);
    if (kind == "translation" || kind == "classify") return read_items(input, std::string(kind));
    constexpr std::size_t largest = 1U << 16U;
    std::string text;
    static_cast<void>(refusal([&] { text = data::decompress_lzw(input, 9 + kind.size() % 8, largest, "lzw"); }));
    expect(text.size() <= largest, "no more than the limit");
}

}  // namespace headscope::fuzz
