// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/json/json_events.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/data/source/json_objects.h"
#include "core/data/source/text_parts.h"

namespace headscope::data {
namespace {

constexpr std::size_t piece = std::size_t{256} << 10U;

/// The "text" of an object.
class TextField final : public JsonEvents {
public:
    using Place = std::function<std::string(std::size_t byte)>;
    explicit TextField(Place place) : place_(std::move(place)) {}

    std::string finish() {
        if (!text_) refuse("expected an object with a \"text\"", "found none in it");
        return std::move(*text_);
    }

    void begin_object() override { open("an object"); }
    void end_object() override { --depth_; }
    void begin_array() override { open("an array"); }
    void end_array() override { --depth_; }
    void key(std::string& name) override {
        is_text_ = depth_ == 1 && name == "text";
        if (is_text_ && text_) refuse("expected one \"text\" in an object", "found another");
    }
    void string(std::string& value) override {
        if (depth_ == 0) refuse_root("a string");
        if (is_text_) text_ = std::move(value);
        is_text_ = false;
    }
    void unsigned_integer(std::uint64_t) override { other("a number"); }
    void negative_integer(std::int64_t) override { other("a number"); }
    void real(double, const std::string&) override { other("a number"); }
    void boolean(bool) override { other("a truth value"); }
    void null() override { other("null"); }

private:
    void open(const std::string& what) {
        if (depth_ == 0 && what != "an object") refuse_root(what);
        if (is_text_) refuse("expected a string for \"text\"", "found " + what);
        ++depth_;
    }
    void other(const std::string& what) {
        if (depth_ == 0) refuse_root(what);
        if (is_text_) refuse("expected a string for \"text\"", "found " + what);
    }
    [[noreturn]] void refuse_root(const std::string& what) const {
        refuse("expected an object with a \"text\"", "found " + what);
    }
    [[noreturn]] void refuse(const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place_(position() > 0 ? position() - 1 : 0), expected, found);
    }

    Place place_;
    std::optional<std::string> text_;
    int depth_ = 0;
    bool is_text_ = false;
};

bool is_blank(std::string_view line) {
    return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

void take_line(std::string_view line, const std::function<std::string(std::size_t)>& place, PartSink& sink) {
    TextField field(place);
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
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    std::uint64_t line = 1;
    std::string waiting, buffer;
    const auto hand_on = [&](std::string_view text) {
        if (!is_blank(text)) take(text, line);
        ++line;
    };
    for (std::uint64_t at = 0; at < file.size();) {
        check_cancellation();
        buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(piece, file.size() - at)));
        file.read(at, buffer.data(), buffer.size());
        const std::size_t marked = at == 0 && buffer.starts_with(mark) ? mark.size() : 0;
        at += buffer.size();
        std::string_view rest = std::string_view(buffer).substr(marked);
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
        progress(at);
    }
    if (!waiting.empty()) hand_on(waiting);
}

void read_json_texts(const InputFile& file, SourceKind kind, PartSink& sink,
                     const std::function<void(std::uint64_t)>& progress) {
    read_records(
        file, kind,
        [&](std::string_view text, std::uint64_t first) {
            // Columns count characters, as editors do. An object of an array may have several lines.
            take_line(
                text,
                [&](std::size_t byte) {
                    std::string_view before = text.substr(0, byte);
                    const auto line =
                        first + static_cast<std::uint64_t>(std::count(before.begin(), before.end(), '\n'));
                    before.remove_prefix(before.rfind('\n') + 1);  // npos + 1 is 0
                    const auto characters = std::count_if(before.begin(), before.end(), [](char c) {
                        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
                    });
                    return shown(file.path()) + ", line " + std::to_string(line) + ", column " +
                           std::to_string(characters + 1);
                },
                sink);
        },
        progress);
}

}  // namespace headscope::data
