// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace headscope::training {

/// A place in a text, both from 1; 0: not in the text (set by --set or by the window).
struct TextPlace {
    std::int64_t line = 0, column = 0;
};

/// A TOML document as JSON values, and where each key stands.
struct TomlDocument {
    TomlDocument();
    ~TomlDocument();
    TomlDocument(TomlDocument&&) noexcept;
    TomlDocument& operator=(TomlDocument&&) noexcept;

    nlohmann::json& values() { return *values_; }
    const nlohmann::json& values() const { return *values_; }

    /// Places of keys, and of the entries of lists, by JSON pointer: "/model/mixer", "/data/text/0".
    std::map<std::string, TextPlace> places;

private:
    std::unique_ptr<nlohmann::json> values_;
};

/// Throws Error format that names line and column ("job.toml: line 3, column 7") for what is no TOML, for a key twice,
/// for dates and times, for numbers that are not finite and for nests of tables: no key of ours has such a value.
TomlDocument parse_toml(std::string_view text, const std::string& where);

/// "job.toml: line 3, column 7"; `where` alone for a place that is not in the text.
std::string place_text(const std::string& where, const TextPlace& place);

/// A value as TOML on one line: "text", 4e-05, [1, 2], { name = "copy" }. Nulls cannot be written: Error internal.
std::string toml_value(const nlohmann::json& value);

/// A key, quoted where it must be.
std::string toml_key(const std::string& key);

}  // namespace headscope::training
