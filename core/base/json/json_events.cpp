// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json/json_events.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"

namespace headscope {
namespace {

/// Characters of the text; reports each step to the driver, so that events have positions.
class Cursor {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    Cursor(const char* at, const char** reached) : at_(at), reached_(reached) {}
    reference operator*() const { return *at_; }
    Cursor& operator++() {
        *reached_ = ++at_;
        return *this;
    }
    Cursor operator++(int) {
        Cursor before = *this;
        ++*this;
        return before;
    }
    bool operator==(const Cursor& other) const { return at_ == other.at_; }
    bool operator!=(const Cursor& other) const { return at_ != other.at_; }

private:
    const char* at_;
    const char** reached_;
};

constexpr std::size_t events_between_looks = 4096;

std::string reason(std::string_view text) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing ...": the end of it
    const std::size_t column = text.find("column ");
    const std::size_t colon = text.find(": ", column == std::string_view::npos ? 0 : column);
    return escaped(colon == std::string_view::npos ? text : text.substr(colon + 2), 300);
}

}  // namespace

class JsonEventDriver final : public nlohmann::json_sax<nlohmann::json> {
public:
    using Place = std::function<std::string(std::size_t byte)>;
    JsonEventDriver(std::string_view text, const Place& place, JsonEvents& events, std::size_t first_byte)
        : text_(text), reached_(text.data()), place_(place), events_(events), first_byte_(first_byte) {}

    void run() {
        const char* end = text_.data() + text_.size();
        nlohmann::json::sax_parse(Cursor(text_.data(), &reached_), Cursor(end, &reached_), this,
                                  nlohmann::json::input_format_t::json, /*strict=*/true, /*ignore_comments=*/false);
    }

    [[noreturn]] void refuse(std::size_t byte, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place_(byte), expected, found);
    }

    bool null() override {
        return at([&] { events_.null(); });
    }
    bool boolean(bool value) override {
        return at([&] { events_.boolean(value); });
    }
    bool number_integer(number_integer_t value) override {
        return at([&] { events_.negative_integer(value); }, read_beyond_number());
    }
    bool number_unsigned(number_unsigned_t value) override {
        return at([&] { events_.unsigned_integer(value); }, read_beyond_number());
    }
    bool number_float(number_float_t value, const string_t& text) override {
        return at([&] { events_.real(value, text); }, read_beyond_number());
    }
    bool string(string_t& value) override {
        return at([&] { events_.string(value); });
    }
    bool binary(binary_t&) override { return false; }  // JSON text has none
    bool start_object(std::size_t) override {
        return at([&] {
            deeper();
            events_.begin_object();
        });
    }
    bool key(string_t& name) override {
        return at([&] { events_.key(name); });
    }
    bool end_object() override {
        --depth_;
        return at([&] { events_.end_object(); });
    }
    bool start_array(std::size_t) override {
        return at([&] {
            deeper();
            events_.begin_array();
        });
    }
    bool end_array() override {
        --depth_;
        return at([&] { events_.end_array(); });
    }
    bool parse_error(std::size_t position, const std::string& token,
                     const nlohmann::detail::exception& error) override {
        constexpr int kNumberOverflow = 406;
        if (error.id == kNumberOverflow)
            refuse(position > 0 ? position - 1 : 0, "expected a number that float64 can hold",
                   "found " + escaped(token, 60));
        refuse(position > 0 ? position - 1 : 0, "expected JSON", "found: " + reason(error.what()));
    }

private:
    std::size_t here() const { return static_cast<std::size_t>(reached_ - text_.data()); }
    /// Characters that were read to find the end of a number.
    std::size_t read_beyond_number() const {
        const char last = reached_[-1];
        return last >= '0' && last <= '9' ? 0 : 1;
    }
    void deeper() {
        if (++depth_ > deepest_json) {
            refuse(here(), "expected at most " + std::to_string(deepest_json) + " nested arrays and objects",
                   "found deeper nesting");
        }
    }
    template <class Call>
    bool at(const Call& call, std::size_t read_beyond = 0) {
        if (++events_seen_ % events_between_looks == 0) check_cancellation();
        events_.position_ = first_byte_ + here() - read_beyond;
        call();
        return true;
    }

    std::string_view text_;
    const char* reached_;
    const Place& place_;
    JsonEvents& events_;
    std::size_t first_byte_;
    int depth_ = 0;
    std::size_t events_seen_ = 0;
};

namespace {

/// Byte of the first string that is longer than longest_json_string, or npos: the parser would hold it several times.
std::size_t find_long_string(std::string_view text) {
    if (text.size() <= longest_json_string) return std::string_view::npos;
    std::size_t begin = std::string_view::npos;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool inside = begin != std::string_view::npos;
        if (inside && text[i] == '\\') {
            ++i;
        } else if (inside && i - begin > longest_json_string) {
            return begin;
        } else if (text[i] == '"') {
            begin = inside ? std::string_view::npos : i;
        }
    }
    return std::string_view::npos;
}

void read(std::string_view text, const JsonEventDriver::Place& place, JsonEvents& events, std::size_t first_byte) {
    JsonEventDriver driver(text, place, events, first_byte);
    // The parser would skip a byte order mark and take a NUL for the end.
    if (text.substr(0, 3) == "\xEF\xBB\xBF") driver.refuse(0, "expected JSON", "found a byte order mark");
    if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
        driver.refuse(nul, "expected JSON", "found a NUL byte");
    }
    if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
        driver.refuse(bad, "expected valid UTF-8", "found the byte " + escaped(text.substr(bad, 1)));
    }
    if (const std::size_t begin = find_long_string(text); begin != std::string_view::npos) {
        driver.refuse(begin, "expected a string of at most " + std::to_string(longest_json_string) + " bytes",
                      "found a longer one");
    }
    driver.run();
}

}  // namespace

void read_json_events(std::string_view text, const std::string& where, JsonEvents& events, std::size_t first_byte) {
    const auto place = [&](std::size_t byte) { return where + ", byte " + std::to_string(first_byte + byte); };
    read(text, place, events, first_byte);
}

void read_json_events(std::string_view text, const std::function<std::string(std::size_t byte)>& place,
                      JsonEvents& events) {
    read(text, place, events, 0);
}

}  // namespace headscope
