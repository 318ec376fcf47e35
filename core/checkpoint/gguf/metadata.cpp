// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/gguf/metadata.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/text/text.h"

namespace headscope::checkpoint::gguf {
namespace {

struct TypeOfValue {
    std::string_view name;
    std::size_t bytes;
};

constexpr std::array<TypeOfValue, 13> kValueTypes = {{{"uint8", 1},
                                                      {"int8", 1},
                                                      {"uint16", 2},
                                                      {"int16", 2},
                                                      {"uint32", 4},
                                                      {"int32", 4},
                                                      {"float32", 4},
                                                      {"boolean", 1},
                                                      {"string", 0},
                                                      {"array", 0},
                                                      {"uint64", 8},
                                                      {"int64", 8},
                                                      {"float64", 8}}};

template <class T>
T element(const std::string& bytes, std::uint64_t index) {
    T value{};
    std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
    return value;
}

std::string number_text(double value) {
    std::string text = std::to_string(value);
    return text;
}

}  // namespace

std::string_view name(ValueType type) {
    return kValueTypes.at(static_cast<std::size_t>(type)).name;
}
std::size_t value_bytes(ValueType type) {
    return kValueTypes.at(static_cast<std::size_t>(type)).bytes;
}

bool Array::is_integers() const {
    return is_numbers() && type != ValueType::f32 && type != ValueType::f64;
}

bool Array::is_numbers() const {
    return value_bytes(type) != 0 && type != ValueType::boolean;
}

std::int64_t Array::integer(std::uint64_t index) const {
    switch (type) {
        case ValueType::u8:
        case ValueType::boolean:
            return element<std::uint8_t>(bytes, index);
        case ValueType::i8:
            return element<std::int8_t>(bytes, index);
        case ValueType::u16:
            return element<std::uint16_t>(bytes, index);
        case ValueType::i16:
            return element<std::int16_t>(bytes, index);
        case ValueType::u32:
            return element<std::uint32_t>(bytes, index);
        case ValueType::i32:
            return element<std::int32_t>(bytes, index);
        case ValueType::u64: {
            constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
            const auto value = element<std::uint64_t>(bytes, index);
            return value > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(value);
        }
        case ValueType::i64:
            return element<std::int64_t>(bytes, index);
        default:
            return 0;
    }
}

double Array::number(std::uint64_t index) const {
    if (type == ValueType::f32) return element<float>(bytes, index);
    if (type == ValueType::f64) return element<double>(bytes, index);
    return static_cast<double>(integer(index));
}

std::string Value::text() const {
    if (const auto* array = std::get_if<Array>(&value)) {
        return "found an array of " + count_text(array->count) + " of " + std::string(gguf::name(array->type));
    }
    if (const auto* text = std::get_if<std::string>(&value)) return "found \"" + escaped(*text, 80) + '"';
    if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "found true" : "found false";
    if (const auto* real = std::get_if<double>(&value)) return "found " + number_text(*real);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return "found " + std::to_string(*whole);
    return "found " + std::to_string(std::get<std::uint64_t>(value));
}

std::string Metadata::where(const std::string& key) const {
    return file + ", key \"" + escaped(key) + '"';
}

void Metadata::refuse(ErrorCode code, const std::string& key, const std::string& expected) const {
    const auto found = values.find(key);
    throw Error(code, where(key), expected, found == values.end() ? "found none" : found->second.text());
}

const Value* KeyReader::find(const std::string& key) {
    const auto found = metadata_.values.find(key);
    if (found == metadata_.values.end()) return nullptr;
    read_.insert(key);
    return &found->second;
}

std::vector<std::string> KeyReader::unread(const std::string& begin) const {
    std::vector<std::string> keys;
    for (auto at = metadata_.values.lower_bound(begin); at != metadata_.values.end(); ++at) {
        if (at->first.compare(0, begin.size(), begin) != 0) break;
        if (read_.count(at->first) == 0) keys.push_back(at->first);
    }
    return keys;
}

bool KeyReader::is_array(const std::string& key) const {
    const auto found = metadata_.values.find(key);
    return found != metadata_.values.end() && found->second.type == ValueType::array;
}

std::string KeyReader::text(const std::string& key) {
    const Value* value = find(key);
    const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(&value->value);
    if (text == nullptr) refuse(ErrorCode::format, key, "expected a string");
    return *text;
}

std::string KeyReader::text_or(const std::string& key, const std::string& fallback) {
    return has(key) ? text(key) : fallback;
}

std::int64_t KeyReader::integer(const std::string& key, std::int64_t lowest, std::int64_t highest) {
    const Value* value = find(key);
    std::int64_t number = 0;
    bool fits = true;
    if (value == nullptr) {
        refuse(ErrorCode::format, key, "expected a whole number");
    } else if (const auto* whole = std::get_if<std::int64_t>(&value->value)) {
        number = *whole;
    } else if (const auto* unsigned_whole = std::get_if<std::uint64_t>(&value->value)) {
        fits = *unsigned_whole <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        number = static_cast<std::int64_t>(*unsigned_whole);
    } else {
        refuse(ErrorCode::format, key, "expected a whole number");
    }
    if (!fits || number < lowest || number > highest) {
        refuse(ErrorCode::limit, key,
               "expected a number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    }
    return number;
}

std::int64_t KeyReader::integer_or(const std::string& key, std::int64_t fallback, std::int64_t lowest,
                                   std::int64_t highest) {
    return has(key) ? integer(key, lowest, highest) : fallback;
}

double KeyReader::number(const std::string& key) {
    const Value* value = find(key);
    if (value == nullptr) refuse(ErrorCode::format, key, "expected a number");
    double number = 0;
    if (const auto* real = std::get_if<double>(&value->value)) {
        number = *real;
    } else if (const auto* whole = std::get_if<std::int64_t>(&value->value)) {
        number = static_cast<double>(*whole);
    } else if (const auto* unsigned_whole = std::get_if<std::uint64_t>(&value->value)) {
        number = static_cast<double>(*unsigned_whole);
    } else {
        refuse(ErrorCode::format, key, "expected a number");
    }
    if (!std::isfinite(number)) refuse(ErrorCode::limit, key, "expected a finite number");
    return number;
}

double KeyReader::number_or(const std::string& key, double fallback) {
    return has(key) ? number(key) : fallback;
}

bool KeyReader::boolean_or(const std::string& key, bool fallback) {
    const Value* value = find(key);
    if (value == nullptr) return fallback;
    const auto* flag = std::get_if<bool>(&value->value);
    if (flag == nullptr) refuse(ErrorCode::format, key, "expected true or false");
    return *flag;
}

const Array* KeyReader::array(const std::string& key) {
    const Value* value = find(key);
    if (value == nullptr) return nullptr;
    const auto* array = std::get_if<Array>(&value->value);
    if (array == nullptr) refuse(ErrorCode::format, key, "expected an array");
    return array;
}

const std::vector<std::string>* KeyReader::texts(const std::string& key) {
    const Array* array = this->array(key);
    if (array == nullptr) return nullptr;
    if (array->type != ValueType::string) refuse(ErrorCode::format, key, "expected an array of strings");
    return &array->texts;
}

std::vector<std::int64_t> KeyReader::integers(const std::string& key, std::int64_t count, std::int64_t lowest,
                                              std::int64_t highest) {
    const Value* value = find(key);
    if (const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(&value->value))
        return std::vector<std::int64_t>(static_cast<std::size_t>(count), *flag ? 1 : 0);
    if (value == nullptr || value->type != ValueType::array)
        return std::vector<std::int64_t>(static_cast<std::size_t>(count), integer(key, lowest, highest));
    const Array& array = std::get<Array>(value->value);
    if ((!array.is_integers() && array.type != ValueType::boolean) ||
        array.count != static_cast<std::uint64_t>(count)) {
        refuse(ErrorCode::format, key,
               "expected a whole number, or an array with one for each of " + std::to_string(count) + " layers");
    }
    std::vector<std::int64_t> numbers;
    for (std::uint64_t i = 0; i < array.count; ++i) {
        numbers.push_back(array.integer(i));
        if (numbers.back() >= lowest && numbers.back() <= highest) continue;
        throw Error(ErrorCode::limit, where(key),
                    "expected numbers from " + std::to_string(lowest) + " to " + std::to_string(highest),
                    "found " + std::to_string(numbers.back()));
    }
    return numbers;
}

}  // namespace headscope::checkpoint::gguf
