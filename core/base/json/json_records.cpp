// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/json/json_records.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/io/gzip.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"

namespace headscope {
namespace {

constexpr std::uint64_t largest_file = std::uint64_t{2} << 30U;
constexpr std::string_view blank = " \t\r\n";

/// The rest of a text, and the line at which it starts.
struct Rest {
    std::string_view text;
    std::int64_t line = 1;

    void skip(std::size_t bytes) {
        const std::string_view passed = text.substr(0, bytes);
        line += std::count(passed.begin(), passed.end(), '\n');
        text.remove_prefix(passed.size());
    }
    void skip_blank() { skip(std::min(text.find_first_not_of(blank), text.size())); }
};

/// Bytes of the array's entry that `text` begins with: up to the comma or bracket behind it.
std::size_t entry_size(std::string_view text) {
    std::int64_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted) {
            if (c == '\\') ++i;
            if (c == '"') quoted = false;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            ++depth;
        } else if (depth == 0 && (c == ',' || c == ']')) {
            return i;
        } else if (c == '}' || c == ']') {
            --depth;
        }
    }
    return text.size();
}

class Reader {
public:
    Reader(std::string name, const std::function<bool(const JsonView&)>& take) : name_(std::move(name)), take_(take) {}

    bool found() const { return found_; }

    void lines(std::string_view text) {
        for (std::int64_t line = 1; !text.empty(); ++line) {
            const std::size_t end = std::min(text.find('\n'), text.size());
            if (text.substr(0, end).find_first_not_of(blank) < end && !record(text.substr(0, end), line)) return;
            text.remove_prefix(std::min(end + 1, text.size()));
        }
    }

    void whole(std::string_view text) { record(text, 1); }

    void array(std::string_view text) {
        Rest rest{text};
        rest.skip_blank();
        rest.skip(1);  // [
        rest.skip_blank();
        bool ended = rest.text.starts_with(']');
        while (!ended) {
            const std::size_t size = entry_size(rest.text);
            if (size == rest.text.size()) refuse(rest.line, "expected an array of objects", "found its end too early");
            if (!record(rest.text.substr(0, size), rest.line)) return;
            rest.skip(size);
            ended = rest.text.front() == ']';
            if (!ended) rest.skip(1);
            rest.skip_blank();
        }
        rest.skip(1);
        rest.skip_blank();
        if (!rest.text.empty()) refuse(rest.line, "expected one array", "found more behind it");
    }

private:
    std::string place(std::int64_t line) const { return name_ + ":" + std::to_string(line); }
    [[noreturn]] void refuse(std::int64_t line, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, place(line), expected, found);
    }
    bool record(std::string_view text, std::int64_t line) {
        check_cancellation();
        const std::string where = place(line);
        const nlohmann::json value = parse_json(text, where);
        found_ = true;
        return take_(JsonView(value, where).object());
    }

    std::string name_;
    const std::function<bool(const JsonView&)>& take_;
    bool found_ = false;
};

/// True if the first line is no value, so that the text is one object over several lines.
bool is_spread_out(std::string_view text) {
    const std::string_view line = text.substr(0, text.find('\n'));
    return text.starts_with('{') && line.size() < text.size() && !nlohmann::json::accept(line.begin(), line.end());
}

}  // namespace

std::string read_json_records(const std::filesystem::path& path, const std::string& kind,
                              const std::function<bool(const JsonView& record)>& take) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    std::string bytes = read_small_file(path, largest_file, kind);
    std::string sha256 = sha256_hex(bytes);
    std::filesystem::path name = path;
    if (name.extension() == ".gz") {
        bytes = decompress_gzip(bytes, largest_file, shown(path));
        name.replace_extension();
    }
    const std::string_view text = std::string_view(bytes).substr(bytes.starts_with(mark) ? mark.size() : 0);
    Reader reader(shown(path), take);
    const std::string_view begin = text.substr(std::min(text.find_first_not_of(blank), text.size()));
    if (name.extension() == ".json" && begin.starts_with('['))
        reader.array(text);
    else if (name.extension() == ".json" && is_spread_out(begin))
        reader.whole(text);
    else
        reader.lines(text);
    if (!reader.found()) throw Error(ErrorCode::usage, shown(path), "expected " + kind, "found none in it");
    return sha256;
}

}  // namespace headscope
