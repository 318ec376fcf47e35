// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/head_sets.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/workspace/head_filter.h"

namespace headscope::workspace {
namespace {

constexpr std::size_t longest_name = 200, longest_note = 10'000, most_sets = 1000;

void check_name(const std::string& name) {
    const bool control =
        std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
    if (name.empty() || name.size() > longest_name || control || find_invalid_utf8(name) != std::string::npos)
        throw Error(ErrorCode::usage, "name of a set", "expected 1 to 200 bytes of plain text",
                    name.empty() ? "found nothing" : "found \"" + escaped(name, 60) + '"');
}

[[noreturn]] void refuse_unknown(const std::string& name) {
    throw Error(ErrorCode::usage, "sets of heads", "expected the name of a set", "found \"" + escaped(name, 60) + '"');
}

}  // namespace

HeadKey key_of(const HeadRow& row) {
    return {row.layer, row.site, row.head};
}

Heads heads_where(std::string_view filter, const HeadTable& table) {
    Heads heads;
    for (const std::size_t row : HeadFilter(filter, table).rows(table)) heads.insert(key_of(table.rows[row]));
    return heads;
}

std::vector<std::size_t> rows_of(const Heads& heads, const HeadTable& table) {
    std::vector<std::size_t> rows;
    for (std::size_t row = 0; row < table.rows.size(); ++row)
        if (heads.contains(key_of(table.rows[row]))) rows.push_back(row);
    return rows;
}

Heads united(const Heads& a, const Heads& b) {
    Heads made = a;
    made.insert(b.begin(), b.end());
    return made;
}

Heads common(const Heads& a, const Heads& b) {
    Heads made;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(made, made.end()));
    return made;
}

Heads without(const Heads& a, const Heads& b) {
    Heads made;
    std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(made, made.end()));
    return made;
}

void HeadSets::mark(const HeadKey& head, bool marked) {
    if (marked)
        marked_.insert(head);
    else
        marked_.erase(head);
}

void HeadSets::put(const std::string& name, Heads heads) {
    check_name(name);
    if (sets_.size() >= most_sets && !sets_.contains(name))
        throw Error(ErrorCode::usage, "sets of heads", "expected at most 1000 sets", "found one more");
    sets_[name] = std::move(heads);
}

void HeadSets::rename(const std::string& from, const std::string& to) {
    check_name(to);
    if (from == to) return;
    if (sets_.contains(to))
        throw Error(ErrorCode::usage, "name of a set", "expected a new name", "found \"" + escaped(to, 60) + '"');
    auto node = sets_.extract(from);
    if (node.empty()) refuse_unknown(from);
    node.key() = to;
    sets_.insert(std::move(node));
}

void HeadSets::remove(const std::string& name) {
    if (sets_.erase(name) == 0) refuse_unknown(name);
}

std::vector<std::string> HeadSets::sets_with(const HeadKey& head) const {
    std::vector<std::string> names;
    for (const auto& [name, heads] : sets_)
        if (heads.contains(head)) names.push_back(name);
    return names;
}

std::string HeadSets::note(const HeadKey& head) const {
    const auto found = notes_.find(head);
    return found == notes_.end() ? "" : found->second;
}

void HeadSets::set_note(const HeadKey& head, std::string text) {
    if (text.size() > longest_note)
        throw Error(ErrorCode::usage, "note", "expected at most 10 000 bytes", "found " + count_text(text.size()));
    if (find_invalid_utf8(text) != std::string::npos)
        throw Error(ErrorCode::usage, "note", "expected text in UTF-8",
                    "found no UTF-8 at byte " + std::to_string(find_invalid_utf8(text)));
    if (text.empty())
        notes_.erase(head);
    else
        notes_[head] = std::move(text);
}

figures::Table HeadSets::plain_table() const {
    Heads all = marked_;
    for (const auto& [name, heads] : sets_) all.insert(heads.begin(), heads.end());
    for (const auto& [head, text] : notes_) all.insert(head);
    std::vector<std::int64_t> layers, sites, heads, marks;
    std::vector<std::string> sets, notes;
    for (const HeadKey& head : all) {
        layers.push_back(head.layer);
        sites.push_back(head.site);
        heads.push_back(head.head);
        marks.push_back(is_marked(head) ? 1 : 0);
        std::string names;
        for (const std::string& name : sets_with(head)) names += (names.empty() ? "" : "; ") + name;
        sets.push_back(std::move(names));
        notes.push_back(note(head));
    }
    return {{{"layer", layers}, {"site", sites}, {"head", heads}, {"marked", marks}, {"sets", sets}, {"note", notes}}};
}

}  // namespace headscope::workspace
