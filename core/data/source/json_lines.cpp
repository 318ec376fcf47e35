// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/json/json_events.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/source/json_objects.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

/// A column of an object: the member of that name, else, at each dot, a member of the object before it.
class TextField final : public JsonEvents {
public:
    using Place = std::function<std::string(std::size_t byte)>;
    TextField(Place place, const std::string& column)
        : place_(std::move(place)), column_(column), quoted_('"' + escaped(column, 60) + '"') {}

    std::string finish() {
        if (exact_) return std::move(*exact_);
        if (!nested_) refuse("expected an object with a " + quoted_, "found none in it");
        return std::move(*nested_);
    }

    void begin_object() override {
        open("an object", false);
        path_.emplace_back();
    }
    void end_object() override {
        path_.pop_back();
        --depth_;
    }
    void begin_array() override {
        open("an array", true);
        ++arrays_;
    }
    void end_array() override {
        --arrays_;
        --depth_;
    }
    void key(std::string& name) override {
        path_.back() = std::move(name);
        taken_ = wanted();
        if (taken_ && *taken_) refuse("expected one " + quoted_ + " in an object", "found another");
    }
    void string(std::string& value) override {
        if (depth_ == 0) refuse_root("a string");
        if (taken_) *taken_ = std::move(value);
        taken_ = nullptr;
    }
    void unsigned_integer(std::uint64_t) override { other("a number"); }
    void negative_integer(std::int64_t) override { other("a number"); }
    void real(double, const std::string&) override { other("a number"); }
    void boolean(bool) override { other("a truth value"); }
    void null() override { other("null"); }

private:
    /// Place for the value of the last key; null: it is not the column.
    std::optional<std::string>* wanted() {
        if (arrays_ > 0) return nullptr;
        if (path_.size() == 1) return path_[0] == column_ ? &exact_ : nullptr;
        std::string_view rest = column_;
        for (std::size_t i = 0; i < path_.size(); ++i) {
            if (!rest.starts_with(path_[i])) return nullptr;
            rest.remove_prefix(path_[i].size());
            if (i + 1 == path_.size()) break;
            if (!rest.starts_with('.')) return nullptr;
            rest.remove_prefix(1);
        }
        return rest.empty() ? &nested_ : nullptr;
    }
    void open(const std::string& what, bool array) {
        if (depth_ == 0 && array) refuse_root(what);
        if (taken_) refuse("expected a string for " + quoted_, "found " + what);
        ++depth_;
    }
    void other(const std::string& what) {
        if (depth_ == 0) refuse_root(what);
        if (taken_) refuse("expected a string for " + quoted_, "found " + what);
    }
    [[noreturn]] void refuse_root(const std::string& what) const {
        refuse("expected an object with a " + quoted_, "found " + what);
    }
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place_(position() > 0 ? position() - 1 : 0), expected, found);
    }

    Place place_;
    const std::string& column_;
    std::string quoted_;
    std::optional<std::string> exact_, nested_;
    std::optional<std::string>* taken_ = nullptr;
    std::vector<std::string> path_;  ///< the last key of each open object
    int depth_ = 0, arrays_ = 0;
};

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void take_line(std::string_view line, const std::function<std::string(std::size_t)>& place, PartSink& sink,
               const std::string& column) {
    TextField field(place, column);
    read_json_events(line, place, field);
    const std::string text = field.finish();
    sink.begin_document();
    PartCutter cutter(sink);
    // JSON's escapes can spell halves of surrogates, but the parser has refused those.
    const auto refuse = [&](std::uint64_t) {
        throw Error(ErrorCode::format, place(0), "expected text in UTF-8", "found another");
    };
    cutter.add(text, refuse);
    cutter.finish(refuse);
    sink.end_document();
}

}  // namespace

void read_lines(const InputFile& file, const std::function<void(std::string_view, std::uint64_t)>& take,
                const std::function<void(std::uint64_t)>& progress) {
    std::uint64_t line = 1;
    std::string waiting;
    const auto hand_on = [&](std::string_view text) {
        if (!is_blank(text)) take(text, line);
        ++line;
    };
    const auto add = [&](std::string_view rest, std::uint64_t) {
        for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
            if (waiting.empty()) {
                hand_on(rest.substr(0, end));
            } else {
                waiting += rest.substr(0, end);
                hand_on(waiting);
                waiting.clear();
            }
            rest.remove_prefix(end + 1);
        }
        if (waiting.size() + rest.size() > longest_line) {
            throw Error(ErrorCode::limit, shown(file.path()) + ", line " + std::to_string(line),
                        "expected lines of at most " + size_text(longest_line), "found a longer one");
        }
        waiting += rest;
        return true;
    };
    read_source(file, add, progress);
    if (!waiting.empty()) hand_on(waiting);
}

void read_json_texts(const InputFile& file, SourceKind kind, PartSink& sink,
                     const std::function<void(std::uint64_t)>& progress, const std::string& column) {
    const auto take = [&](std::string_view text, std::uint64_t first) {
        // Columns count characters, as editors do. An object of an array may have several lines.
        const auto place = [&](std::size_t byte) {
            if (kind == SourceKind::parquet) return shown(file.path()) + ", row " + std::to_string(first);
            std::string_view before = text.substr(0, byte);
            const auto line = first + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
            before.remove_prefix(before.rfind('\n') + 1);  // npos + 1 is 0
            const auto characters = std::count_if(
                before.begin(), before.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
            return shown(file.path()) + ", line " + std::to_string(line) + ", column " + std::to_string(characters + 1);
        };
        take_line(text, place, sink, column);
    };
    read_records(file, kind, take, progress, {column});
}

}  // namespace headscope::data
