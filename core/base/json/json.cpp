// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json/json.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/io/input_file.h"
#include "core/base/json/json_events.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

using Json = nlohmann::json;

/// A value takes up to 80 bytes, however short its text: [[],[],...] would take thirty times the text. Tokenizers of
/// half a million entries have two million values.
constexpr std::size_t most_values = 4'000'000;

/// Builds the tree. `open_` holds the containers not yet closed: a container's elements stay where they are until it
/// is closed and the next sibling is added.
class TreeBuilder final : public JsonEvents {
public:
    TreeBuilder(Json& root, const std::string& where) : root_(root), where_(where) {}

    void begin_object() override { open_.push_back(add(Json::object())); }
    void begin_array() override { open_.push_back(add(Json::array())); }
    void end_object() override { open_.pop_back(); }
    void end_array() override { open_.pop_back(); }
    void key(std::string& name) override {
        auto& entries = open_.back()->get_ref<Json::object_t&>();
        const auto [entry, fresh] = entries.try_emplace(std::move(name));
        if (!fresh) {
            throw Error(ErrorCode::format, where_ + ", byte " + std::to_string(position()),
                        "expected each key once in an object", "found \"" + escaped(entry->first) + "\" again");
        }
        slot_ = &entry->second;
    }
    void string(std::string& value) override { add(Json(std::move(value))); }
    void unsigned_integer(std::uint64_t value) override { add(Json(value)); }
    void negative_integer(std::int64_t value) override { add(Json(value)); }
    void real(double value, const std::string&) override { add(Json(value)); }
    void boolean(bool value) override { add(Json(value)); }
    void null() override { add(Json(nullptr)); }

private:
    Json* add(Json&& value) {
        if (++values_ > most_values) {
            throw Error(ErrorCode::limit, where_ + ", byte " + std::to_string(position()),
                        "expected at most " + std::to_string(most_values) + " values", "found more");
        }
        if (open_.empty()) {
            root_ = std::move(value);
            return &root_;
        }
        if (open_.back()->is_array()) {
            auto& elements = open_.back()->get_ref<Json::array_t&>();
            elements.push_back(std::move(value));
            return &elements.back();
        }
        *slot_ = std::move(value);
        return slot_;
    }

    Json& root_;
    const std::string& where_;
    std::vector<Json*> open_;
    Json* slot_ = nullptr;
    std::size_t values_ = 0;
};

/// `text` with Python's words for what JSON has no number for in objects; words within strings are left alone.
std::string with_named_floats(std::string_view text) {
    constexpr std::string_view words[] = {"-Infinity", "Infinity", "NaN"};
    std::string named;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size();) {
        if (in_string && text[i] == '\\') {
            named += text.substr(i, 2);
            i += 2;
            continue;
        }
        if (text[i] == '"') in_string = !in_string;
        const auto* const word =
            in_string ? std::end(words) : std::find_if(std::begin(words), std::end(words), [&](std::string_view one) {
                return text.substr(i, one.size()) == one;
            });
        if (word == std::end(words)) {
            named += text[i++];
            continue;
        }
        named.append(R"({"__float__": ")").append(*word).append(R"("})");
        i += word->size();
    }
    return named;
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where) {
    try {
        Json root;
        TreeBuilder builder(root, where);
        read_json_events(text, where, builder);
        return root;
    } catch (...) {
        throw current_error(where);
    }
}

nlohmann::json read_json_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind) {
    return parse_json(read_small_file(path, limit, kind), shown(path));
}

nlohmann::json parse_python_json(std::string_view text, const std::string& where) {
    const bool named = text.find("Infinity") != std::string_view::npos || text.find("NaN") != std::string_view::npos;
    return named ? parse_json(with_named_floats(text), where) : parse_json(text, where);
}

nlohmann::json read_python_json_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind) {
    return parse_python_json(read_small_file(path, limit, kind), shown(path));
}

std::string json_text(const nlohmann::json& document) {
    try {
        return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    } catch (...) {
        throw current_error("JSON text");
    }
}

std::string showable_json(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        char32_t point = 0;
        const std::size_t length = std::max<std::size_t>(decode_utf8(text, point), 1);
        // Below a space there is nothing but layout: the writer of JSON spells what strings have of it.
        if (point >= 0x7F && !is_showable(point)) {
            char spelled[8];
            std::snprintf(spelled, sizeof spelled, "\\u%04x", static_cast<unsigned>(point));
            out += spelled;
        } else {
            out.append(text.substr(0, length));
        }
        text.remove_prefix(length);
    }
    return out;
}

}  // namespace headscope
