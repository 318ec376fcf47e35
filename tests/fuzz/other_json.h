// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A second JSON reader, written apart from core/base/json/json_events.cpp and from the library that it uses: recursive,
// slow and obvious. The fuzz targets compare the two (RFC 8259; UTF-8 without byte order mark; no key twice; at most 64
// nested containers; no number beyond float64).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headscope::fuzz {

struct OtherEntry;

struct OtherJson {
    using Array = std::vector<OtherJson>;
    using Object = std::vector<OtherEntry>;  // in the text's order
    /// A whole number without sign that fits uint64, one with a sign that fits int64, any other as float64.
    std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> value;

    const Object* object() const { return std::get_if<Object>(&value); }
    const Array* array() const { return std::get_if<Array>(&value); }
    const std::string* string() const { return std::get_if<std::string>(&value); }
    const std::uint64_t* whole() const { return std::get_if<std::uint64_t>(&value); }
    const OtherJson* find(std::string_view key) const;
};

struct OtherEntry {
    std::string key;
    OtherJson value;
};

/// The document, or nothing where the text is none.
std::optional<OtherJson> other_json(std::string_view text);

/// True where every byte belongs to a well-formed sequence, by the table of RFC 3629.
bool other_utf8(std::string_view text);

}  // namespace headscope::fuzz
