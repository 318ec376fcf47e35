// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/files/word_vocabulary_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/text/text.h"
#include "core/checkpoint/pytorch/python_objects.h"
#include "core/tokenizer/files/settings.h"

namespace headscope::tokenizer {
namespace {

namespace fs = std::filesystem;
using checkpoint::PickleKind;
using checkpoint::PickleObjects;
using checkpoint::PickleRef;
using nlohmann::json;

constexpr std::array file_names = {"vocab.bin", "vocab.pkl", "vocab.pt"};

std::optional<fs::path> file_in(const fs::path& folder) {
    const auto* found = std::find_if(file_names.begin(), file_names.end(),
                                     [&](const char* name) { return ends_at_regular_file(folder / name); });
    return found == file_names.end() ? std::nullopt : std::optional(folder / *found);
}

/// The dictionary that such a file is.
class WordVocabulary {
public:
    explicit WordVocabulary(const fs::path& path)
        : where_(escaped(path.string())), objects_(checkpoint::read_python_objects(InputFile(path, "vocabulary"))) {
        if (objects_[objects_.root].kind != PickleKind::dictionary)
            refuse("", "a dictionary of Python's", objects_.root);
        read_words();
    }

    const json& words() const { return words_; }
    bool has(const std::string& word) const { return words_.contains(word); }

    bool lower_case() const {
        const PickleRef found = entry("lower_case");
        if (found == checkpoint::no_ref) return false;
        if (objects_[found].kind != PickleKind::boolean) refuse("lower_case", "true or false", found);
        return objects_[found].number != 0;
    }

    /// The word for those that are not there, as the old tokenizer looks for it; <unk> where there is none: text with
    /// an unknown word is then refused.
    std::string unknown() const {
        const PickleRef found = entry("unk_idx");
        if (found == checkpoint::no_ref) return !has("<unk>") && has("<UNK>") ? "<UNK>" : "<unk>";
        const std::int64_t id = objects_[found].number;
        if (objects_[found].kind != PickleKind::integer || id < 0 || id >= static_cast<std::int64_t>(words_.size()))
            refuse("unk_idx", "an id of the vocabulary", found);
        const auto same = [id](const auto& word) { return word.second == id; };
        const auto& all = words_.get_ref<const json::object_t&>();
        return std::find_if(all.begin(), all.end(), same)->first;
    }

    void refuse_delimiter() const {
        const PickleRef found = entry("delimiter");
        if (found == checkpoint::no_ref || objects_[found].kind == PickleKind::none) return;
        throw Error(ErrorCode::unsupported, where_ + ": delimiter", "expected none: words lie between white space",
                    "found " + objects_.describe(found));
    }

private:
    /// The last one under this key, as Python has it; no_ref: none.
    PickleRef entry(std::string_view key) const {
        PickleRef found = checkpoint::no_ref;
        for (PickleRef at = objects_[objects_.root].first; at != checkpoint::no_ref; at = objects_.elements[at].next) {
            const checkpoint::PickleElement& element = objects_.elements[at];
            if (objects_[element.key].kind == PickleKind::text && objects_.text(element.key) == key)
                found = element.value;
        }
        return found;
    }

    void read_words() {
        const std::string key = "idx2sym";
        const PickleRef list = entry(key);
        if (list == checkpoint::no_ref)
            throw Error(ErrorCode::format, where_, "expected the list of words, " + key, "found none");
        if (objects_[list].kind != PickleKind::list || objects_[list].number == 0) refuse(key, "a list of words", list);
        json::object_t words;
        std::int64_t id = 0;
        for (PickleRef at = objects_[list].first; at != checkpoint::no_ref; at = objects_.elements[at].next, ++id) {
            const PickleRef value = objects_.elements[at].value;
            const std::string place = key + '[' + std::to_string(id) + ']';
            if (objects_[value].kind != PickleKind::text) refuse(place, "a word", value);
            const std::string_view word = objects_.text(value);
            if (find_invalid_utf8(word) != std::string_view::npos) refuse(place, "valid UTF-8", value);
            if (!words.emplace(word, id).second) {
                throw Error(ErrorCode::format, where_ + ": " + place, "expected every word once",
                            "found \"" + escaped(word, 60) + "\" again");
            }
        }
        words_ = std::move(words);
    }

    [[noreturn]] void refuse(const std::string& key, const std::string& expected, PickleRef found) const {
        throw Error(ErrorCode::format, where_ + (key.empty() ? "" : ": " + key), "expected " + expected,
                    "found " + objects_.describe(found));
    }

    std::string where_;
    PickleObjects objects_;
    json words_ = json::object();
};

json replaced(const char* pattern, const std::string& content) {
    return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
}

}  // namespace

bool has_word_vocabulary(const fs::path& folder) {
    if (!file_in(folder)) return false;
    const Settings settings(folder);
    return settings.tokenizer_class() == "TransfoXLTokenizer" || settings.model_type() == "transfo-xl";
}

json document_of_word_vocabulary(const fs::path& folder) {
    const Settings settings(folder);
    const WordVocabulary vocabulary(file_in(folder).value());
    vocabulary.refuse_delimiter();
    const std::string end = settings.text("eos_token", "<eos>"), unknown = vocabulary.unknown();
    json normalizers = json::array();
    if (settings.choice("lower_case").value_or(vocabulary.lower_case())) normalizers.push_back({{"type", "Lowercase"}});
    json document = {{"version", "1.0"}, {"added_tokens", json::array()}};
    if (vocabulary.has(end)) {
        // The appended token marks the text's own end.
        normalizers.push_back(replaced(R"((?:\r\n?|\n)\z)", ""));
        normalizers.push_back(replaced(R"(\r\n?|\n)", " " + end + " "));
        const json id = vocabulary.words().at(end);
        document["post_processor"] = {
            {"type", "TemplateProcessing"},
            {"single", json::array({{{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
                                    {{"SpecialToken", {{"id", end}, {"type_id", 0}}}}})},
            {"pair", json::array()},
            {"special_tokens", {{end, {{"id", end}, {"ids", json::array({id})}, {"tokens", json::array({end})}}}}}};
    }
    // Looked for where the ends of lines have become some.
    for (const std::string& special : {end, unknown}) {
        if (!vocabulary.has(special)) continue;
        document["added_tokens"].push_back({{"id", vocabulary.words().at(special)},
                                            {"content", special},
                                            {"single_word", false},
                                            {"lstrip", false},
                                            {"rstrip", false},
                                            {"normalized", true},
                                            {"special", true}});
    }
    if (!normalizers.empty()) document["normalizer"] = {{"type", "Sequence"}, {"normalizers", normalizers}};
    // Python's white space has four characters more than Unicode's.
    document["pre_tokenizer"] = {
        {"type", "Split"}, {"pattern", {{"Regex", R"([\s\x1c-\x1f]+)"}}}, {"behavior", "Removed"}, {"invert", false}};
    document["model"] = {{"type", "WordLevel"}, {"unk_token", unknown}, {"vocab", vocabulary.words()}};
    return document;
}

}  // namespace headscope::tokenizer
