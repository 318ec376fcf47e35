// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/job_edit.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/training/job/job_keys.h"

namespace headscope::workspace {
namespace {

using training::JobFile;
using training::JobKey;

constexpr std::size_t npos = std::string::npos;

std::size_t line_begin(const std::string& text, std::int64_t line) {
    std::size_t place = 0;
    for (std::int64_t i = 1; i < line && place != npos; ++i) {
        place = text.find('\n', place);
        if (place != npos) ++place;
    }
    return place;
}

/// Behind the string that begins at `place`.
std::size_t skip_string(const std::string& text, std::size_t place) {
    const char quote = text[place];
    const std::string triple(3, quote);
    if (text.compare(place, 3, triple) == 0) {
        const std::size_t end = text.find(triple, place + 3);
        return end == npos ? text.size() : end + 3;
    }
    for (++place; place < text.size() && text[place] != quote && text[place] != '\n'; ++place)
        if (quote == '"' && text[place] == '\\') ++place;
    return std::min(text.size(), place + 1);
}

/// Behind the value that begins at `place`, without the blanks and the comment after it.
std::size_t skip_value(const std::string& text, std::size_t place) {
    int depth = 0;
    std::size_t end = place;
    while (place < text.size()) {
        const char c = text[place];
        if (c == '"' || c == '\'') {
            end = place = skip_string(text, place);
            continue;
        }
        if (c == '#') {
            if (depth == 0) break;
            place = std::min(text.find('\n', place), text.size());
            continue;
        }
        if (c == '\n' && depth == 0) break;
        if (c == '[' || c == '{') ++depth;
        if (c == ']' || c == '}') --depth;
        ++place;
        if (c != ' ' && c != '\t' && c != '\r' && c != '\n') end = place;
    }
    return end;
}

/// Begin of the line with that header; npos: none.
std::size_t find_section(const std::string& text, const std::string& section) {
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        std::string line = text.substr(begin, end - begin);
        std::erase_if(line, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
        if (const std::size_t comment = line.find('#'); comment != npos) line.resize(comment);
        if (line == "[" + section + "]") return begin;
        begin = end + 1;
    }
    return npos;
}

bool is_header(const std::string& text, std::size_t begin) {
    const std::size_t first = text.find_first_not_of(" \t", begin);
    return first != npos && text[first] == '[';
}

/// Behind the last line of a section (whose lines begin at `begin`) that is not blank.
std::size_t end_of_section(const std::string& text, std::size_t begin) {
    std::size_t end = begin;
    while (begin < text.size() && !is_header(text, begin)) {
        const std::size_t next = std::min(text.find('\n', begin), text.size() - 1) + 1;
        if (text.find_first_not_of(" \t\r\n", begin) < next) end = next;
        begin = next;
    }
    return end;
}

std::string pointer_of(const JobKey& key) {
    return (key.section.empty() ? "" : "/" + key.section) + "/" + key.name;
}

/// Replaces the value of a key that the text has. False: it stands in no way that this understands.
bool replace(std::string& text, const training::TextPlace& place, const std::optional<std::string>& value) {
    const std::size_t begin = line_begin(text, place.line);
    if (begin == npos) return false;
    const std::size_t line_end = std::min(text.find('\n', begin), text.size());
    const std::size_t equals =
        text.find('=', begin + static_cast<std::size_t>(std::max<std::int64_t>(0, place.column - 1)));
    if (equals == npos || equals > line_end) return false;
    const std::size_t first = text.find_first_not_of(" \t", equals + 1);
    if (first == npos) return false;
    const std::size_t end = skip_value(text, first);
    if (value) {
        text.replace(first, end - first, *value);
    } else {
        const std::size_t next = std::min(text.find('\n', end), text.size());
        text.erase(begin, next - begin + (next < text.size() ? 1 : 0));
    }
    return true;
}

void insert(std::string& text, const JobKey& key, const std::string& value) {
    const std::string line = key.name + " = " + value + "\n";
    if (!text.empty() && text.back() != '\n') text += '\n';
    if (key.section.empty()) {
        text.insert(end_of_section(text, 0), line);
        return;
    }
    const std::size_t header = find_section(text, key.section);
    if (header == npos) {
        text += (text.empty() ? "[" : "\n[") + key.section + "]\n" + line;
        return;
    }
    text.insert(end_of_section(text, text.find('\n', header) + 1), line);
}

/// Puts one key's value into the text, or takes the key out (null). False: it stands in no way that this understands.
bool put(std::string& text, const JobKey& key, const nlohmann::json& value, const std::string& where) {
    const training::TomlDocument document = training::parse_toml(text, where);
    const auto place = document.places.find(pointer_of(key));
    if (place != document.places.end())
        return replace(text, place->second,
                       value.is_null() ? std::nullopt : std::optional(training::toml_value(value)));
    if (!value.is_null()) insert(text, key, training::toml_value(value));
    return true;
}

/// A text that cannot be read as it is, because its keys contradict each other or lack one, may be one key away.
std::optional<std::string> mended(std::string text, const std::string& assignment, const std::string& where) {
    const std::size_t equals = assignment.find('=');
    const JobKey* key = training::find_key(assignment.substr(0, equals));
    if (!key || equals == npos) return std::nullopt;
    const auto value = training::parse_toml("value = " + assignment.substr(equals + 1), where);
    if (!put(text, *key, training::checked_value(*key, value.values().at("value"), where), where)) return std::nullopt;
    training::read_job(text, where);
    return text;
}

}  // namespace

std::string edited_job(std::string_view text, const JobFile& wanted) {
    const std::string& where = wanted.where;
    const JobFile before = training::read_job(text, where);
    std::vector<const JobKey*> changed;
    std::optional<JobKey> unsaid;
    for (const JobKey& key : training::job_keys()) {
        if (key.full_name() == "data.tokenizer" && !wanted.tokenizer_given) {
            if (!before.tokenizer_given) continue;  // what it is follows from other keys
            unsaid = key;
            unsaid->get = [](const JobFile& job) {
                return job.tokenizer_given ? nlohmann::json(job.data.tokenizer) : nlohmann::json();
            };
            changed.push_back(&*unsaid);
        } else if (key.get(before) != key.get(wanted)) {
            changed.push_back(&key);
        }
    }
    try {
        std::string made(text);
        bool whole = true;
        // Remove keys first, so that contradicting ones can be added. Every change moves the places of the others.
        for (const bool removing : {true, false})
            for (const JobKey* key : changed)
                if (key->get(wanted).is_null() == removing) whole = whole && put(made, *key, key->get(wanted), where);
        const JobFile after = training::read_job(made, where);
        whole = whole && std::all_of(changed.begin(), changed.end(),
                                     [&](const JobKey* key) { return key->get(after) == key->get(wanted); });
        if (whole) return made;
    } catch (const Error&) {  // rewrite all keys below
    }
    return training::job_text(wanted);
}

std::string edited_job(std::string_view text, const std::string& assignment, const std::string& where) {
    std::optional<JobFile> job;
    try {
        job = training::read_job(text, where);
    } catch (const Error&) {
        if (auto made = mended(std::string(text), assignment, where)) return *made;
        throw;
    }
    training::set_key(*job, assignment);
    return edited_job(text, *job);
}

}  // namespace headscope::workspace
