// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Keys and values of a GGUF header.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/error.h"

namespace headscope::checkpoint::gguf {

/// Numbers as files store them.
enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
std::string_view name(ValueType type);  ///< "uint8", "array"
/// Bytes of a number or boolean; 0 for others.
std::size_t value_bytes(ValueType type);

struct Array {
    ValueType type = ValueType::u8;  ///< of its elements
    std::uint64_t count = 0;
    std::string bytes;               ///< numbers and booleans, as stored
    std::vector<std::string> texts;  ///< strings
    std::vector<Array> arrays;
    friend bool operator==(const Array&, const Array&) = default;

    bool is_integers() const;
    bool is_numbers() const;  ///< integers or floats
    /// For integers and booleans. Unsigned 64-bit values beyond 2^63 - 1 become that.
    std::int64_t integer(std::uint64_t index) const;
    /// For numbers.
    double number(std::uint64_t index) const;
};

struct Value {
    ValueType type = ValueType::u8;
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string, Array> value;
    friend bool operator==(const Value&, const Value&) = default;

    std::string text() const;  ///< for errors: found "llama", found an array of 3
};

/// All keys of a model.
struct Metadata {
    std::string file;  ///< for errors
    std::map<std::string, Value> values;

    bool has(const std::string& key) const { return values.count(key) != 0; }
    std::string where(const std::string& key) const;  ///< [file, key "x"]
    /// Throws [where] expected; found the value.
    [[noreturn]] void refuse(ErrorCode code, const std::string& key, const std::string& expected) const;
};

/// Reads keys, each checked for kind and range, and remembers which. Errors: format for a wrong type, limit for a
/// number out of range. The metadata must outlive it. Threads: one at a time.
class KeyReader {
public:
    explicit KeyReader(const Metadata& metadata) : metadata_(metadata) {}

    const Metadata& metadata() const { return metadata_; }
    bool has(const std::string& key) const { return metadata_.has(key); }
    std::string where(const std::string& key) const { return metadata_.where(key); }
    [[noreturn]] void refuse(ErrorCode code, const std::string& key, const std::string& expected) const {
        metadata_.refuse(code, key, expected);
    }

    std::string text(const std::string& key);
    std::string text_or(const std::string& key, const std::string& fallback);
    std::int64_t integer(const std::string& key, std::int64_t lowest, std::int64_t highest);
    std::int64_t integer_or(const std::string& key, std::int64_t fallback, std::int64_t lowest, std::int64_t highest);
    double number(const std::string& key);  ///< finite; integers too
    double number_or(const std::string& key, double fallback);
    bool boolean_or(const std::string& key, bool fallback);
    bool is_array(const std::string& key) const;
    /// Null where the key is absent; Error where it is no array.
    const Array* array(const std::string& key);
    /// The strings of an array; null where the key is absent; Error where it has others.
    const std::vector<std::string>* texts(const std::string& key);
    /// An integer or boolean, or an array of one for each of `count`: always returns `count`.
    std::vector<std::int64_t> integers(const std::string& key, std::int64_t count, std::int64_t lowest,
                                       std::int64_t highest);
    /// Marks a key that needs no reading.
    void ignore(const std::string& key) { read_.insert(key); }

    /// Keys that begin so and that no getter was called for, in order.
    std::vector<std::string> unread(const std::string& begin) const;

private:
    const Value* find(const std::string& key);

    const Metadata& metadata_;
    std::set<std::string> read_;
};

}  // namespace headscope::checkpoint::gguf
