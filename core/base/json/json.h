// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace headscope {

/// A whole JSON document under the rules of read_json_events, and no object with the same key twice. `where` names the
/// source in errors. Memory: at most about 30 times the text (for `[[],[],...]`; ordinary documents 2 to 6 times), so
/// limit the text; and at most 4 000 000 values. Throws Error format or limit, never a type of the JSON library.
nlohmann::json parse_json(std::string_view text, const std::string& where);

/// The same from a file of at most `limit` bytes. `kind` names it in errors: "configuration".
nlohmann::json read_json_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind);

/// As parse_json(), for configurations written by Python: the bare words Infinity, -Infinity and NaN become
/// {"__float__": "Infinity"} and so on, as transformers 5 writes them. Only range readers accept these objects; any
/// other reader reports the key. Byte offsets in errors count the text with these objects.
nlohmann::json parse_python_json(std::string_view text, const std::string& where);
nlohmann::json read_python_json_file(const std::filesystem::path& path, std::uint64_t limit, const std::string& kind);

/// Human-readable text of a document, keys in order, with a line end. Bytes of strings that are no UTF-8
/// become U+FFFD.
std::string json_text(const nlohmann::json& document);

/// JSON text for a terminal: what escaped() (error.h) would not show as it is, is spelled \uXXXX. It means the same.
std::string showable_json(std::string_view text);

/// Bounds of an integer, both allowed.
struct IntegerRange {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    std::int64_t highest = std::numeric_limits<std::int64_t>::max();
};

/// A value inside a document, with its place: errors read [config.json: rope_scaling.factor] expected a number above 0;
/// found "8". Views do not own: the document must outlive them.
///
/// Getters with a key want this value to be an object. Those that take a fallback return it where the key is absent or
/// null; the others throw then. All throw Error: format for a wrong type, limit for a number out of its range.
class JsonView {
public:
    JsonView(const nlohmann::json& value, std::string file, std::string path = "")
        : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

    const nlohmann::json& value() const noexcept { return *value_; }
    std::string where() const;  ///< "config.json: rope_scaling.factor"

    bool is_null() const noexcept;
    bool is_object() const noexcept;
    bool is_array() const noexcept;
    bool is_string() const noexcept;
    bool has(std::string_view key) const;  ///< there and not null

    JsonView at(std::string_view key) const;
    JsonView at(std::size_t index) const;                      ///< of an array
    std::optional<JsonView> find(std::string_view key) const;  ///< empty where absent or null
    std::size_t size() const noexcept;                         ///< entries of an array or object
    std::vector<std::string> keys() const;

    // This value itself.
    std::int64_t integer(IntegerRange range = {}) const;  ///< 8 and 8.0, as Python writers mix them; never true
    double number(double lowest = -std::numeric_limits<double>::infinity(),
                  double highest = std::numeric_limits<double>::infinity()) const;
    bool boolean() const;
    std::string string() const;
    const JsonView& object() const;  ///< itself, if it is one
    const JsonView& array() const;
    std::vector<std::int64_t> integers(IntegerRange range = {}) const;  ///< an array of them
    std::vector<double> numbers() const;
    std::vector<std::string> strings() const;
    std::vector<JsonView> items() const;

    // With a fallback for what is absent or null.
    std::int64_t integer_or(std::string_view key, std::int64_t fallback, IntegerRange range = {}) const;
    double number_or(std::string_view key, double fallback, double lowest = -std::numeric_limits<double>::infinity(),
                     double highest = std::numeric_limits<double>::infinity()) const;
    bool boolean_or(std::string_view key, bool fallback) const;
    std::string string_or(std::string_view key, const std::string& fallback) const;
    std::vector<std::string> strings_or_none(std::string_view key) const;

    /// Throws [where] expected; found this value, shortened.
    [[noreturn]] void refuse(ErrorCode code, const std::string& expected) const;

private:
    const nlohmann::json* value_;
    std::string file_;
    std::string path_;
};

// The same for a bare object: `file` names it in errors.
std::int64_t require_integer(const nlohmann::json& object, std::string_view key, IntegerRange range,
                             const std::string& file);
double require_number(const nlohmann::json& object, std::string_view key, const std::string& file);
bool require_boolean(const nlohmann::json& object, std::string_view key, const std::string& file);
std::string require_string(const nlohmann::json& object, std::string_view key, const std::string& file);

}  // namespace headscope
