// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/workspace/head_sets.h"

namespace headscope::workspace {
namespace {

using nlohmann::json;

constexpr std::int64_t version = 1;
constexpr std::size_t most_heads = 1'000'000;  ///< of all lists together

json list_of(const HeadKey& head) {
    return json::array({head.layer, head.site, head.head});
}

json list_of(const Heads& heads) {
    json list = json::array();
    for (const HeadKey& head : heads) list.push_back(list_of(head));
    return list;
}

HeadKey read_head(const JsonView& view) {
    if (view.array().size() != 3) view.refuse(ErrorCode::format, "expected [layer, site, head]");
    const auto number = [&](std::size_t i) { return view.at(i).integer({0, 1'000'000}); };
    return {static_cast<std::int32_t>(number(0)), number(1), static_cast<std::int32_t>(number(2))};
}

class Reader {
public:
    Heads heads(const JsonView& list) {
        Heads all;
        for (std::size_t i = 0; i < list.array().size(); ++i) {
            if (++count_ > most_heads) list.refuse(ErrorCode::limit, "expected at most 1 000 000 heads");
            if (!all.insert(read_head(list.at(i))).second)
                list.at(i).refuse(ErrorCode::format, "expected each head once");
        }
        return all;
    }

private:
    std::size_t count_ = 0;
};

void check_keys(const JsonView& object, std::initializer_list<std::string_view> known) {
    for (const std::string& key : object.object().keys())
        if (std::find(known.begin(), known.end(), key) == known.end())
            throw Error(ErrorCode::format, object.where(), "expected keys that are known",
                        "found \"" + escaped(key, 60) + '"');
}

/// Adds the place in the file to errors of the setters.
template <class Work>
void at_place(const JsonView& view, const Work& work) {
    try {
        work();
    } catch (const Error& error) {
        throw Error(error.code() == ErrorCode::usage ? ErrorCode::format : error.code(), view.where(), error.expected(),
                    error.found());
    }
}

}  // namespace

json HeadSets::to_json() const {
    json sets = json::array(), notes = json::array();
    for (const auto& [name, heads] : sets_) sets.push_back({{"name", name}, {"heads", list_of(heads)}});
    for (const auto& [head, text] : notes_) notes.push_back({{"head", list_of(head)}, {"text", text}});
    return {{"version", version},
            {"model_sha256", model_sha256},
            {"model_name", model_name},
            {"marked", list_of(marked_)},
            {"sets", sets},
            {"notes", notes}};
}

HeadSets HeadSets::from_json(const JsonView& view) {
    const std::int64_t found = view.object().at("version").integer();
    if (found != version) view.at("version").refuse(ErrorCode::unsupported, "expected version 1 of sets of heads");
    check_keys(view, {"version", "model_sha256", "model_name", "marked", "sets", "notes"});
    HeadSets all;
    Reader reader;
    all.model_sha256 = view.at("model_sha256").string();
    all.model_name = view.at("model_name").string();
    all.marked_ = reader.heads(view.at("marked"));
    const JsonView sets = view.at("sets").array(), notes = view.at("notes").array();
    for (std::size_t i = 0; i < sets.size(); ++i) {
        const JsonView set = sets.at(i);
        check_keys(set, {"name", "heads"});
        const std::string name = set.at("name").string();
        if (all.sets_.contains(name)) set.at("name").refuse(ErrorCode::format, "expected each name once");
        at_place(set.at("name"), [&] { all.put(name, reader.heads(set.at("heads"))); });
    }
    for (std::size_t i = 0; i < notes.size(); ++i) {
        const JsonView note = notes.at(i);
        check_keys(note, {"head", "text"});
        const HeadKey head = read_head(note.at("head"));
        if (all.notes_.contains(head)) note.at("head").refuse(ErrorCode::format, "expected one note for each head");
        if (note.at("text").string().empty()) note.at("text").refuse(ErrorCode::format, "expected a text");
        at_place(note.at("text"), [&] { all.set_note(head, note.at("text").string()); });
    }
    return all;
}

}  // namespace headscope::workspace
