// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/json_objects.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/json/json_events.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/source/parquet_rows.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// Accepts one object of any content.
class AnyObject final : public JsonEvents {
public:
    void begin_object() override {}
    void end_object() override {}
    void begin_array() override {}
    void end_array() override {}
    void key(std::string&) override {}
    void string(std::string&) override {}
    void unsigned_integer(std::uint64_t) override {}
    void negative_integer(std::int64_t) override {}
    void real(double, const std::string&) override {}
    void boolean(bool) override {}
    void null() override {}
};

bool is_object(std::string_view line) {
    if (line.empty() || line.front() != '{') return false;
    AnyObject object;
    try {
        read_json_events(
            line, [](std::size_t) { return std::string("line"); }, object);
    } catch (const Stopped&) {
        throw;
    } catch (const Error&) {
        return false;
    }
    return true;
}

/// Cuts an array's elements out of bytes as they come. An element ends before a comma or the closing bracket outside
/// of its strings, objects and arrays.
class ArrayCutter {
public:
    ArrayCutter(const InputFile& file, const TakeRecord& take) : file_(file), take_(take) {}

    void add(std::string_view bytes) {
        std::size_t begin = 0;  // of what belongs to the open element
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const char c = bytes[i];
            if (c == '\n') ++line_;
            if (state_ != State::element) {
                between(c);
                begin = i;
                if (state_ != State::element) continue;
            }
            if (!inside(c)) continue;
            element_ += bytes.substr(begin, i - begin);
            hand_on();
            between(c);
        }
        if (state_ == State::element) element_ += bytes.substr(begin);
        if (element_.size() > longest_line)
            throw Error(ErrorCode::limit, place(), "expected objects of at most " + size_text(longest_line),
                        "found a longer one");
    }

    void finish() const {
        if (state_ != State::closed) refuse("expected the end of the array, ]", "found the end of the file");
    }

private:
    enum class State { before, first, element, after, next, closed };

    std::string place() const { return shown(file_.path()) + ", line " + std::to_string(line_); }
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place(), expected, found);
    }
    [[noreturn]] void refuse(const std::string& expected, char c) const {
        refuse(expected, "found \"" + escaped(std::string(1, c)) + '"');
    }

    /// Outside of elements.
    void between(char c) {
        if (is_space(c)) return;
        switch (state_) {
            case State::before:
                if (c != '[') refuse("expected an array", c);
                state_ = State::first;
                return;
            case State::after:
                if (c != ',' && c != ']') refuse("expected , or ] behind an object", c);
                state_ = c == ',' ? State::next : State::closed;
                return;
            case State::closed:
                refuse("expected nothing behind the array", c);
            case State::first:
                if (c == ']') {
                    state_ = State::closed;
                    return;
                }
                [[fallthrough]];
            case State::next:
                if (c == ',' || c == ']') refuse("expected an object", c);
                state_ = State::element;
                begin_line_ = line_;
                depth_ = 0;
                in_string_ = escape_ = false;
                return;
            case State::element:
                return;
        }
    }

    /// False if this character ends the open element.
    bool inside(char c) {
        if (in_string_) {
            if (escape_)
                escape_ = false;
            else if (c == '\\')
                escape_ = true;
            else
                in_string_ = c != '"';
            return false;
        }
        if (depth_ == 0 && (c == ',' || c == ']')) return true;
        if (c == '"') in_string_ = true;
        if (c == '{' || c == '[') ++depth_;
        if ((c == '}' || c == ']') && depth_ > 0) --depth_;
        return false;
    }

    void hand_on() {
        take_(element_, begin_line_);
        element_.clear();
        state_ = State::after;
    }

    const InputFile& file_;
    const TakeRecord& take_;
    State state_ = State::before;
    std::string element_;
    std::uint64_t line_ = 1, begin_line_ = 1;
    std::uint64_t depth_ = 0;
    bool in_string_ = false, escape_ = false;
};

}  // namespace

SourceKind json_kind(const InputFile& file) {
    std::string line;  // the first that is not blank
    bool array = false;
    read_source(file,
                [&](std::string_view bytes, std::uint64_t) {
                    for (const char c : bytes) {
                        if (line.empty() && is_space(c)) continue;
                        if (line.empty() && c == '[') array = true;
                        if (array || c == '\n' || line.size() > longest_line) return false;
                        line += c;
                    }
                    return true;
                },
                {});
    if (array) return SourceKind::json_array;
    while (!line.empty() && is_space(line.back())) line.pop_back();
    if (is_object(line)) return SourceKind::json_lines;
    throw Error(
        ErrorCode::format, shown(file.path()),
        "expected an array of objects, or an object on each line (a plain text needs another ending than .json)",
        line.empty() ? "found an empty file" : "found neither");
}

void read_records(const InputFile& file, SourceKind kind, const TakeRecord& take, const BytesRead& progress,
                  const std::vector<std::string>& columns) {
    if (kind == SourceKind::parquet) return read_parquet_rows(file, take, progress, columns);
    if (kind != SourceKind::json_array) return read_lines(file, take, progress);
    ArrayCutter cutter(file, take);
    read_source(
        file,
        [&](std::string_view bytes, std::uint64_t) {
            cutter.add(bytes);
            return true;
        },
        progress);
    cutter.finish();
}

}  // namespace headscope::data
