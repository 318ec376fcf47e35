// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/text_sources.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/analysis/input.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/base/json/json_events.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope::analysis {
namespace {

namespace fs = std::filesystem;

// Each token of a text takes some thirty bytes once it is read, and a byte of text may be a token.
constexpr std::uint64_t largest_text = std::uint64_t{64} << 20U;
constexpr std::uint64_t largest_token_file = std::uint64_t{64} << 20U;
constexpr std::size_t most_ids = std::size_t{1} << 22U;  ///< of one token file

std::string read_standard_input(const Cancellation* cancellation) {
    std::string text;
    std::vector<char> buffer(std::size_t{1} << 16U);
    for (;;) {
        // A terminal or a pipe may stay silent for ever: look up for a stop now and then.
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        const int ready = ::poll(&input, 1, 200);
        if (cancellation) cancellation->check();
        if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
        const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw os_error(errno, "standard input", "expected a text");
        if (count == 0) return text;
        text.append(buffer.data(), static_cast<std::size_t>(count));
        if (text.size() > largest_text) {
            throw Error(ErrorCode::limit, "standard input", "expected a text of at most " + size_text(largest_text),
                        "found a longer one");
        }
    }
}

/// [[id, ...], ...], taken as it is read: no tree, which would hold thirty times the text.
class TokenLists final : public JsonEvents {
public:
    TokenLists(std::string where, std::int64_t highest) : where_(std::move(where)), highest_(highest) {}

    std::vector<std::vector<std::int32_t>> finish() {
        if (lists_.empty()) refuse(ErrorCode::usage, "expected at least one array of token ids", "found none");
        return std::move(lists_);
    }

    void begin_array() override {
        if (depth_ == 2) refuse(ErrorCode::format, "expected a token id", "found an array");
        if (++depth_ == 2) lists_.emplace_back();
    }
    void end_array() override {
        if (depth_-- == 2 && lists_.back().empty())
            refuse(ErrorCode::usage, "expected at least one token id", "found an empty array");
    }
    void unsigned_integer(std::uint64_t value) override {
        if (depth_ != 2) refuse_kind("found " + std::to_string(value));
        if (value > static_cast<std::uint64_t>(highest_)) refuse_id(std::to_string(value));
        if (++count_ > most_ids) {
            refuse(ErrorCode::limit, "expected at most " + std::to_string(most_ids) + " token ids", "found more");
        }
        lists_.back().push_back(static_cast<std::int32_t>(value));
    }
    void negative_integer(std::int64_t value) override {
        if (depth_ != 2) refuse_kind("found " + std::to_string(value));
        refuse_id(std::to_string(value));
    }
    void real(double, const std::string& text) override { refuse_kind("found " + escaped(text, 40)); }
    void begin_object() override { refuse_kind("found an object"); }
    void key(std::string&) override {}
    void end_object() override {}
    void string(std::string& value) override { refuse_kind("found \"" + escaped(value, 40) + '"'); }
    void boolean(bool value) override { refuse_kind(value ? "found true" : "found false"); }
    void null() override { refuse_kind("found null"); }

private:
    [[noreturn]] void refuse(ErrorCode code, const std::string& expected, const std::string& found) const {
        throw Error(code, where_ + ", byte " + std::to_string(position()), expected, found);
    }
    [[noreturn]] void refuse_kind(const std::string& found) const {
        refuse(ErrorCode::format,
               depth_ == 0   ? "expected an array of arrays of token ids"
               : depth_ == 1 ? "expected an array of token ids"
                             : "expected a token id, a whole number",
               found);
    }
    [[noreturn]] void refuse_id(const std::string& found) const {
        refuse(ErrorCode::limit,
               "expected token ids from 0 to " + std::to_string(highest_) + " in array " +
                   std::to_string(lists_.size() - 1),
               "found " + found);
    }

    std::string where_;
    std::int64_t highest_;
    std::vector<std::vector<std::int32_t>> lists_;
    std::size_t count_ = 0;
    int depth_ = 0;
};

/// A token of a model that hashes words, with a space before it in the text.
void add_item(store::SequenceTokens& tokens, const JsonView& item, const tokenizer::WordHash& hash) {
    using tokenizer::EmbeddingKind;
    const tokenizer::HashSettings& settings = hash.settings();
    const bool rows = settings.kind == EmbeddingKind::emb, characters = settings.kind == EmbeddingKind::characters;
    std::int32_t id = tokenizer::kSpecialTokens;
    std::string piece, hex;
    if (item.is_string()) {
        piece = item.string();
        char32_t point = 0;
        if (characters && (piece.empty() || decode_utf8(piece, point) != piece.size()))
            item.refuse(ErrorCode::format, "expected one character");
        id = hash.id(piece);
        hex = hash.hex(piece);
    } else if (item.is_object()) {
        if (settings.bits == 0)
            item.refuse(ErrorCode::unsupported, "expected a number or a string, for this model reads no bits");
        hex = item.at("hash").string();
        std::vector<std::uint8_t> bits(static_cast<std::size_t>(settings.bits));
        tokenizer::read_bits_hex(hex, bits, item.at("hash").where());
        piece = '#' + hex;
    } else {
        id = static_cast<std::int32_t>(item.integer({0, rows ? settings.ids() - 1 : tokenizer::kSpecialTokens - 1}));
        piece = id < tokenizer::kSpecialTokens ? std::string(tokenizer::special_token(id)) : std::to_string(id);
    }
    if (!tokens.text.empty() && !characters) tokens.text += ' ';
    const auto begin = static_cast<std::int64_t>(tokens.text.size());
    tokens.text += piece;
    tokens.offsets.push_back({begin, static_cast<std::int64_t>(tokens.text.size())});
    tokens.ids.push_back(id);
    tokens.pieces.push_back(std::move(piece));
    tokens.hashes.push_back(std::move(hex));
}

}  // namespace

std::string read_text_file(const fs::path& path, const Cancellation* cancellation) {
    const bool standard = path == "-";
    std::string text = standard ? read_standard_input(cancellation) : read_small_file(path, largest_text, "text file");
    const std::size_t invalid = find_invalid_utf8(text);
    if (invalid != std::string::npos) {
        throw Error(ErrorCode::format, standard ? "standard input" : shown(path), "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(invalid));
    }
    return text;
}

std::vector<std::string> bundled_texts(const fs::path& resources) {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(resources / "texts", error)) {
        if (entry.path().extension() == ".txt" && ends_at_regular_file(entry.path()))
            names.push_back(entry.path().stem());
    }
    std::sort(names.begin(), names.end());
    return names;
}

fs::path bundled_text_path(const fs::path& resources, const std::string& name) {
    const auto names = bundled_texts(resources);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw Error(ErrorCode::usage, "--example", "expected the name of a bundled text: " + list_text(names),
                    "found " + list_text({name}));
    }
    return resources / "texts" / (name + ".txt");
}

std::string bundled_text(const fs::path& resources, const std::string& name) {
    return read_text_file(bundled_text_path(resources, name));
}

std::vector<std::vector<std::int32_t>> read_token_file(const fs::path& path, std::int64_t vocabulary) {
    const std::string text = read_small_file(path, largest_token_file, "token file");
    TokenLists lists(shown(path), vocabulary > 0 ? vocabulary - 1 : std::numeric_limits<std::int32_t>::max());
    try {
        read_json_events(text, shown(path), lists);
        return lists.finish();
    } catch (...) {
        throw current_error(shown(path));
    }
}

std::vector<store::SequenceTokens> read_word_file(const fs::path& path, const tokenizer::WordHash& hash) {
    const nlohmann::json document = read_json_file(path, largest_token_file, "token file");
    const JsonView lists = JsonView(document, shown(path)).array();
    if (lists.size() == 0) lists.refuse(ErrorCode::usage, "expected at least one array of tokens");
    std::vector<store::SequenceTokens> all;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        const JsonView items = lists.at(i).array();
        if (items.size() == 0) items.refuse(ErrorCode::usage, "expected at least one token");
        store::SequenceTokens& tokens = all.emplace_back();
        for (std::size_t k = 0; k < items.size(); ++k) add_item(tokens, items.at(k), hash);
    }
    return all;
}

std::vector<std::vector<std::int64_t>> read_label_file(const fs::path& path) {
    const nlohmann::json document = read_json_file(path, largest_token_file, "label file");
    const JsonView lists = JsonView(document, shown(path)).array();
    if (lists.size() == 0) lists.refuse(ErrorCode::usage, "expected at least one array of labels");
    std::vector<std::vector<std::int64_t>> all;
    for (std::size_t i = 0; i < lists.size(); ++i) all.push_back(lists.at(i).integers());
    return all;
}

}  // namespace headscope::analysis
