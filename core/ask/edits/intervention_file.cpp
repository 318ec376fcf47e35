// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/edits/intervention_file.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <nlohmann/json.hpp>

#include "core/ask/edits/stored_vector.h"
#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/json/json.h"
#include "core/model/config.h"
#include "core/model/model.h"
#include "core/tokenizer/tokenizer.h"
#include "core/training/job/toml_document.h"

namespace headscope::ask {
namespace {

using model::Action;
using model::Intervention;
using model::Point;
using nlohmann::json;

constexpr std::uint64_t kLargestFile = 16U << 20U;

const std::vector<std::string> kInterventionKeys{"point", "layer", "heads",   "attention", "positions",
                                                 "what",  "text",  "shift",   "factor",    "vector",
                                                 "key",   "value", "queries", "keys"};
const std::vector<std::string> kTextKeys{"name", "text", "tokens", "target"};

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::usage, where, "expected " + expected, "found " + found);
}

std::string joined(const std::vector<std::string>& names) {
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    return all;
}

void check_keys(const JsonView& table, const std::vector<std::string>& known, const std::string& where) {
    for (const std::string& key : table.keys())
        if (std::find(known.begin(), known.end(), key) == known.end())
            throw Error(ErrorCode::usage, where, "unknown key \"" + escaped(key) + '"', "known: " + joined(known));
}

template <class Enum>
Enum named(const std::string& text, std::size_t count, const std::string& where, const char* what) {
    std::vector<std::string> names;
    for (std::size_t n = 0; n < count; ++n) {
        names.emplace_back(model::name(static_cast<Enum>(n)));
        if (names.back() == text) return static_cast<Enum>(n);
    }
    refuse(where, std::string(what) + ": " + joined(names), escaped(text));
}

/// A number or a list of them.
std::vector<std::int64_t> numbers(const JsonView& table, const char* key) {
    if (!table.has(key)) return {};
    const JsonView value = table.at(key);
    return value.is_array() ? value.integers({0, 1 << 24}) : std::vector{value.integer({0, 1 << 24})};
}

std::vector<std::string> words(const JsonView& value) {
    return value.is_array() ? value.strings() : std::vector{value.string()};
}

class Reader {
public:
    Reader(const std::string& where, const std::filesystem::path& folder, const ModelDescription& model)
        : where_(where), folder_(folder), model_(model) {}

    InterventionPlan read(std::string_view toml) {
        const training::TomlDocument document = training::parse_toml(toml, where_);
        plan_.toml = toml;
        const JsonView all(document.values(), where_);
        check_keys(all, {"intervention", "text"}, where_);
        for (std::size_t n = 0; all.has("text") && n < all.at("text").size(); ++n) text(all.at("text").at(n), n);
        if (!all.has("intervention")) refuse(where_, "an [[intervention]] table", "none");
        for (std::size_t n = 0; n < all.at("intervention").size(); ++n) intervention(all.at("intervention").at(n), n);
        return std::move(plan_);
    }

private:
    void text(const JsonView& table, std::size_t number) {
        const std::string where = where_ + ": text " + std::to_string(number + 1);
        check_keys(table, kTextKeys, where);
        InterventionPlan::Text text;
        text.name = table.at("name").string();
        if (table.has("text") == table.has("tokens")) refuse(where, "either text or tokens", "both or neither");
        if (table.has("tokens")) {
            const auto& reader = model_.config.encoder ? *model_.config.encoder : model_.config;
            text.tokens = table.at("tokens").integers({0, reader.ids() - 1});
        } else {
            if (model_.tokenizer == nullptr) refuse(where, "tokens, as the model has no tokenizer", "text");
            const auto ids = model_.tokenizer->encode(table.at("text").string()).ids;
            text.tokens.assign(ids.begin(), ids.end());
        }
        if (text.tokens.empty()) refuse(where, "at least one token", "none");
        if (model_.config.encoder) text.target = {model_.config.decoder_start};
        if (table.has("target")) {
            if (!model_.config.encoder) refuse(where, "no target for a model of one stack", "one");
            for (const std::int64_t id : table.at("target").integers({0, model_.config.ids() - 1}))
                text.target.push_back(id);
        }
        if (find_text(text.name)) refuse(where, "each name once", escaped(text.name) + " twice");
        plan_.texts.push_back(std::move(text));
    }

    std::optional<std::size_t> find_text(const std::string& name) const {
        for (std::size_t n = 0; n < plan_.texts.size(); ++n)
            if (plan_.texts[n].name == name) return n;
        return std::nullopt;
    }

    void intervention(const JsonView& table, std::size_t number) {
        const std::string where = where_ + ": intervention " + std::to_string(number + 1);
        check_keys(table, kInterventionKeys, where);
        Intervention one;
        one.point = named<Point>(table.at("point").string(), model::kPoints, where, "a point");
        one.action = named<Action>(table.at("what").string(), model::kActions, where, "an action");
        one.layers = numbers(table, "layer");
        one.heads = numbers(table, "heads");
        one.attention = table.string_or("attention", "");
        one.positions = ranges(table, "positions", where);
        check_used(table, one.action, where);
        one.queries = ranges(table, "queries", where);
        one.keys = ranges(table, "keys", where);
        one.factor = table.number_or("factor", 1);
        one.shift = table.integer_or("shift", 0, {-(1 << 24), 1 << 24});
        if (one.action == Action::add || one.action == Action::set) vectors(table, one, where);
        plan_.sources.push_back(sources(table, one, where));
        check(one, number, where);
        plan_.list.push_back(std::move(one));
    }

    /// Refuses keys that the action does not read.
    static void check_used(const JsonView& table, Action action, const std::string& where) {
        const bool stored = action == Action::add || action == Action::set;
        const bool runs = action == Action::run || action == Action::reference;
        const auto only = [&](const char* key, bool used, const char* by) {
            if (table.has(key) && !used)
                refuse(where, std::string(key) + " with " + by, std::string(model::name(action)));
        };
        only("factor", action == Action::add, "add");
        only("vector", stored, "add or set");
        only("value", stored, "add or set");
        only("key", stored, "add or set");
        only("text", runs, "run or reference");
        only("shift", action == Action::run, "run");
        only("positions", action != Action::forbid, "another action than forbid, which has queries and keys");
        only("queries", action == Action::forbid, "forbid");
        only("keys", action == Action::forbid, "forbid");
    }

    static std::vector<model::PositionRange> ranges(const JsonView& table, const char* key, const std::string& where) {
        if (!table.has(key)) return {};
        const JsonView value = table.at(key);
        if (!value.is_string()) {
            const std::int64_t position = value.integer({-(1 << 24), 1 << 24});
            return {{position, position}};
        }
        return parse_positions(value.string(), where + ", " + key);
    }

    void vectors(const JsonView& table, Intervention& one, const std::string& where) {
        if (table.has("vector") == table.has("value")) refuse(where, "either vector or value", "both or neither");
        if (table.has("value")) {
            one.value = at::tensor(table.at("value").numbers(), at::kDouble).to(at::kFloat);
            return;
        }
        const std::filesystem::path file = folder_ / table.at("vector").string();
        plan_.files.push_back(file);
        const StoredVectors stored = read_vectors(file, table.string_or("key", ""));
        if (stored.one.defined()) {
            one.value = stored.one;
            return;
        }
        const std::int64_t layers = model_.config.all_layers(), last = stored.by_layer.rbegin()->first;
        if (last >= layers)
            refuse(where, "directions for layers below " + std::to_string(layers),
                   "one for layer " + std::to_string(last) + " in " + escaped(file.string()));
        for (const model::PointKey& key : model::places_of(one.point, model_.config, model_.sites)) {
            const auto found = stored.by_layer.find(key.layer);
            if (found != stored.by_layer.end()) one.values[key] = found->second;
        }
        if (one.values.empty())
            refuse(where, "a direction for a layer of the model", "none in " + escaped(file.string()));
    }

    std::vector<std::size_t> sources(const JsonView& table, const Intervention& one, const std::string& where) const {
        std::vector<std::size_t> found;
        if (one.action != Action::run && one.action != Action::reference) return found;
        for (const std::string& name : words(table.at("text"))) {
            const auto text = find_text(name);
            if (!text) refuse(where, "the name of a [[text]] table", escaped(name));
            found.push_back(*text);
        }
        if (found.empty() || (one.action == Action::run && found.size() > 1))
            refuse(where, one.action == Action::run ? "one text" : "texts", std::to_string(found.size()));
        return found;
    }

    void check(const Intervention& one, std::size_t number, const std::string& where) const {
        Intervention whole = one;
        if (!plan_.sources.back().empty()) whole.value = at::tensor(0.0);  // values come when the texts have run
        std::vector<model::PointKey> places;
        try {
            places = model::places_of(whole, model_.config, model_.sites, number);
        } catch (const Error& error) {
            throw Error(error.code(), where, error.expected(), error.found());
        }
        if (one.value.defined()) check_shape(one.value, places, where);
        for (const auto& [key, value] : one.values) check_shape(value, {key}, where);
        // Without a list of layers those that have no direction stay as they are; a layer that is named has one.
        for (const model::PointKey& key : places) {
            if (one.values.empty() || one.layers.empty() || one.values.contains(key)) continue;
            refuse(where, "layers with a direction in the vector file", "layer " + std::to_string(key.layer));
        }
    }

    void check_shape(const at::Tensor& value, const std::vector<model::PointKey>& places,
                     const std::string& where) const {
        if (value.dim() == 0) return;
        for (const model::PointKey& key : places) {
            const std::int64_t heads = model::heads_at(key, model_.sites);
            if (model::is_matrix(key.point)) {
                if (value.dim() < 2) refuse(where, "rows and keys of a matrix", std::to_string(value.dim()) + " axis");
                continue;
            }
            if (heads > 0 && value.dim() > 1 && value.size(value.dim() == 2 ? 0 : value.dim() - 3) != heads)
                refuse(where, std::to_string(heads) + " heads",
                       std::to_string(value.size(value.dim() == 2 ? 0 : value.dim() - 3)));
            const std::int64_t size = columns(key);
            if (size > 0 && value.size(-1) != size)
                refuse(where, "vectors of " + std::to_string(size) + " numbers", std::to_string(value.size(-1)));
        }
    }

    /// Numbers in a row of a value; 0: not known before the pass.
    std::int64_t columns(const model::PointKey& key) const {
        if (!model::is_of_site(key.point) || key.point == Point::attention_output) return model_.config.hidden;
        const Site& site = model_.sites.at(static_cast<std::size_t>(key.site));
        if (key.point == Point::query || key.point == Point::key) return 0;
        if (key.point == Point::value || key.point == Point::head_output) return site.value_size;
        return 0;
    }

    std::string where_;
    std::filesystem::path folder_;
    ModelDescription model_;
    InterventionPlan plan_;
};

model::Batch batch_of(const InterventionPlan::Text& text) {
    model::Batch batch;
    batch.ids = at::tensor(text.tokens, at::kLong).unsqueeze(0);
    if (!text.target.empty()) batch.target = at::tensor(text.target, at::kLong).unsqueeze(0);
    return batch;
}

}  // namespace

std::vector<model::PositionRange> parse_positions(std::string_view text, const std::string& where) {
    const auto wrong = [&] { refuse(where, "positions like 3, 2-5 or -1", escaped(text)); };
    std::vector<model::PositionRange> ranges;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto number = [&] {
        std::int64_t value = 0;
        const auto [stop, error] = std::from_chars(at, end, value);
        if (error != std::errc()) wrong();
        at = stop;
        return value;
    };
    while (true) {
        model::PositionRange range;
        range.first = range.last = number();
        if (at != end && *at == '-') {
            ++at;
            range.last = number();
        }
        if ((range.first < 0) == (range.last < 0) && range.last < range.first) wrong();
        ranges.push_back(range);
        if (at == end) return ranges;
        if (*at++ != ',') wrong();
    }
}

InterventionPlan parse_interventions(std::string_view toml, const std::string& where,
                                     const std::filesystem::path& folder, const ModelDescription& model) {
    return Reader(where, folder, model).read(toml);
}

InterventionPlan read_interventions(const std::filesystem::path& path, const ModelDescription& model) {
    const std::string toml = read_small_file(path, kLargestFile, "intervention file");
    return parse_interventions(toml, path.filename().string(), path.parent_path(), model);
}

void InterventionPlan::read_values(model::Model& model, const Cancellation* cancellation) {
    for (std::size_t n = 0; n < list.size(); ++n) {
        Intervention& one = list[n];
        if (sources[n].empty()) continue;
        one.value = at::tensor(0.0);
        const auto places = model::places_of(one, model.config(), model.sites(), n);
        one.value = at::Tensor();
        one.values.clear();  // those of another model
        std::map<model::PointKey, std::int64_t> rows;
        for (const std::size_t source : sources[n]) {
            model::PointRecorder recorder(std::set<model::PointKey>(places.begin(), places.end()));
            model::ForwardOptions options;
            options.editor = &recorder;
            options.cancellation = cancellation;
            model.forward(batch_of(texts[source]), options);
            for (auto& [key, value] : recorder.values) {
                if (one.action == Action::run) {
                    one.values[key] = value;
                    continue;
                }
                const std::int64_t axis = model::has_heads(key.point) ? 2 : 1;
                const at::Tensor sum = value.to(at::kDouble).sum(axis).squeeze(0);
                rows[key] += value.size(axis);
                at::Tensor& all = one.values[key];
                all = all.defined() ? all + sum : sum;
            }
        }
        if (one.action != Action::reference) continue;
        for (auto& [key, value] : one.values) value = value / static_cast<double>(rows.at(key));
    }
}

}  // namespace headscope::ask
