// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/shards.h"

#include <nlohmann/json.hpp>
#include <set>
#include <type_traits>
#include <utility>

#include "core/base/json/json.h"
#include "core/base/json/json_events.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/most_tensors.h"
#include "core/checkpoint/pytorch/pytorch_file.h"
#include "core/checkpoint/pytorch/state_dict.h"
#include "core/checkpoint/recognise.h"
#include "core/checkpoint/safetensors_header.h"

namespace headscope::checkpoint {
namespace {

constexpr std::uint64_t largest_index = 32U << 20U;  // the largest models' have 15 MB
constexpr std::size_t most_shards = 4096;

using ShardNames = std::map<std::string, std::vector<std::string>>;  // file -> its tensors

/// Refuses an index of more values than there may be tensors, before a tree is made of it.
class IndexCounter final : public JsonEvents {
public:
    explicit IndexCounter(const std::string& where) : where_(where) {}

    void begin_object() override { count(); }
    void key(std::string&) override {}
    void end_object() override {}
    void begin_array() override { count(); }
    void end_array() override {}
    void string(std::string&) override { count(); }
    void unsigned_integer(std::uint64_t) override { count(); }
    void negative_integer(std::int64_t) override { count(); }
    void real(double, const std::string&) override { count(); }
    void boolean(bool) override { count(); }
    void null() override { count(); }

private:
    static constexpr std::size_t most_others = 1000;  // the document, its lists and notes on the model

    void count() {
        if (++values_ <= most_tensors + most_others) return;
        throw Error(ErrorCode::limit, where_ + ", byte " + std::to_string(position()),
                    "expected an index of at most " + count_text(most_tensors) + " tensors", "found more");
    }

    const std::string& where_;
    std::size_t values_ = 0;
};

nlohmann::json read_index_document(const std::filesystem::path& path) {
    const std::string text = read_small_file(path, largest_index, "index of shards");
    const std::string where = shown(path);
    IndexCounter counter(where);
    read_json_events(text, where, counter);
    return parse_json(text, where);
}

ShardNames read_index(const std::filesystem::path& path) {
    const nlohmann::json document = read_index_document(path);
    if (!document.is_object() || !document.contains("weight_map")) {
        throw Error(ErrorCode::format, shown(path),
                    "expected a checkpoint: a folder, a weight file or an index of shards",
                    "found a JSON file without a weight_map");
    }
    const JsonView map = JsonView(document, shown(path)).object().at("weight_map").object();
    ShardNames shards;
    for (const auto& [tensor, file] : map.value().get_ref<const nlohmann::json::object_t&>()) {
        const auto* name = file.get_ptr<const std::string*>();
        if (name == nullptr || !is_base_name(*name)) {
            map.at(tensor).refuse(ErrorCode::format, "expected the plain name of a file in the index's folder");
        }
        shards[*name].push_back(tensor);
    }
    if (shards.empty()) map.refuse(ErrorCode::format, "expected at least one tensor");
    if (shards.size() > most_shards) {
        throw Error(ErrorCode::limit, map.where(), "expected at most " + std::to_string(most_shards) + " shards",
                    "found " + std::to_string(shards.size()));
    }
    return shards;
}

void require_all(const ShardNames& shards, const std::filesystem::path& index) {
    std::vector<std::string> missing;
    for (const auto& [name, tensors] : shards) {
        if (!ends_at_regular_file(index.parent_path() / name)) missing.push_back(name);
    }
    if (missing.empty()) return;
    throw Error(ErrorCode::io, shown(index),
                "expected all of its " + std::to_string(shards.size()) + " shards as regular files beside it",
                "found no " + list_text(missing));
}

/// A weight file's tensors, of either format.
struct Contents {
    std::map<std::string, TensorInfo> tensors;
    std::map<std::string, std::string> unreadable;
    std::vector<std::string> notes;
    bool pytorch = false;

    bool has(const std::string& tensor) const { return tensors.count(tensor) != 0 || unreadable.count(tensor) != 0; }
    std::size_t count() const { return tensors.size() + unreadable.size(); }
};

Contents read_contents(const InputFile& file) {
    Contents contents;
    if (recognise_weights(file) == WeightFormat::safetensors) {
        contents.tensors = read_safetensors_header(file).tensors;
        return contents;
    }
    PytorchFile read = read_pytorch_file(file);
    contents.tensors = std::move(read.tensors);
    contents.unreadable = std::move(read.unreadable);
    contents.notes = std::move(read.notes);
    contents.pytorch = true;
    return contents;
}

/// Takes off what data parallelism and compilation put before every name.
void strip_names(Weights& weights) {
    std::vector<std::string> names;
    for (const auto& [name, info] : weights.tensors) names.push_back(name);
    for (const auto& [name, why] : weights.unreadable) names.push_back(name);
    const std::string prefix = common_prefix(names);
    if (prefix.empty()) return;
    const auto strip = [&prefix](auto& map) {
        std::remove_reference_t<decltype(map)> stripped;
        while (!map.empty()) {
            auto node = map.extract(map.begin());
            node.key().erase(0, prefix.size());
            stripped.insert(std::move(node));
        }
        map = std::move(stripped);
    };
    strip(weights.tensors);
    strip(weights.unreadable);
    for (auto& [name, info] : weights.tensors) info.name = name;
    weights.notes.push_back("\"" + prefix + "\" was taken off every name");
}

/// The shard must hold what the index puts there. What it holds beyond the index is read too, as transformers reads it:
/// its names come back.
std::vector<std::string> require_as_mapped(const InputFile& file, const std::vector<std::string>& wanted,
                                           const std::vector<Contents>& all, std::size_t number,
                                           const ShardNames& shards) {
    constexpr std::size_t most_looked_for = 10;
    std::vector<std::string> missing;
    std::string elsewhere;
    for (const std::string& tensor : wanted) {
        if (all[number].has(tensor)) continue;
        missing.push_back(tensor);
        if (missing.size() > most_looked_for) continue;
        auto shard = shards.begin();
        for (std::size_t other = 0; other < all.size() && elsewhere.empty(); ++other, ++shard) {
            if (all[other].has(tensor)) {
                elsewhere = "; \"" + escaped(tensor) + "\" lies in \"" + escaped(shard->first) + '"';
            }
        }
    }
    if (!missing.empty()) {
        throw Error(ErrorCode::mismatch, shown(file.path()), "expected every tensor that the index puts there",
                    "found no " + list_text(missing) + elsewhere);
    }
    if (all[number].count() == wanted.size()) return {};
    const std::set<std::string_view> mapped(wanted.begin(), wanted.end());
    std::vector<std::string> extra;
    for (const auto& [tensor, info] : all[number].tensors) {
        if (mapped.count(tensor) == 0) extra.push_back(tensor);
    }
    for (const auto& [tensor, why] : all[number].unreadable) {
        if (mapped.count(tensor) == 0) extra.push_back(tensor);
    }
    return extra;
}

/// Adds a shard's tensors to all. Refuses a tensor in two shards: either may be meant.
void add_once(Contents& shard, const InputFile& file, Weights& weights) {
    const auto refuse = [&file](const std::string& tensor) {
        throw Error(ErrorCode::mismatch, shown(file.path()), "expected each tensor in one shard",
                    "found \"" + escaped(tensor) + "\", which another has too");
    };
    for (const auto& [name, why] : shard.unreadable)
        if (weights.tensors.contains(name)) refuse(name);
    for (const auto& [name, why] : weights.unreadable)
        if (shard.tensors.contains(name)) refuse(name);
    weights.tensors.merge(shard.tensors);  // leaves what is there already
    weights.unreadable.merge(shard.unreadable);
    if (!shard.tensors.empty()) refuse(shard.tensors.begin()->first);
    if (!shard.unreadable.empty()) refuse(shard.unreadable.begin()->first);
}

}  // namespace

bool is_base_name(std::string_view name) {
    using namespace std::string_view_literals;
    return !name.empty() && name != "." && name != ".." && name.find_first_of("/\\\0"sv) == std::string_view::npos;
}

Weights open_single(const std::filesystem::path& path) {
    Weights weights;
    Contents contents = read_contents(weights.files.emplace_back(path, "weight file"));
    weights.tensors = std::move(contents.tensors);
    weights.unreadable = std::move(contents.unreadable);
    weights.notes = std::move(contents.notes);
    if (contents.pytorch) strip_names(weights);
    return weights;
}

Weights open_sharded(const std::filesystem::path& index) {
    const ShardNames shards = read_index(index);
    require_all(shards, index);
    Weights weights;
    weights.files.reserve(shards.size());
    std::vector<Contents> all;
    bool pytorch = false;
    std::size_t tensors = 0;
    for (const auto& [name, wanted] : shards) {
        const InputFile& file = weights.files.emplace_back(index.parent_path() / name, "shard");
        Contents& contents = all.emplace_back(read_contents(file));
        pytorch = pytorch || contents.pytorch;
        tensors += contents.count();
        if (tensors > most_tensors) {
            throw Error(ErrorCode::limit, shown(file.path()),
                        "expected at most " + count_text(most_tensors) + " tensors in all shards", "found more");
        }
        for (const std::string& note : contents.notes) weights.notes.push_back(escaped(name) + ": " + note);
    }
    std::size_t number = 0;
    for (const auto& [name, wanted] : shards) {
        const std::vector<std::string> extra = require_as_mapped(weights.files[number], wanted, all, number, shards);
        if (!extra.empty())
            weights.notes.push_back(escaped(name) + ": not in the index, and read all the same: " + list_text(extra));
        ++number;
    }
    for (number = 0; number < all.size(); ++number) {
        for (auto& [name, info] : all[number].tensors) info.file = number;
        add_once(all[number], weights.files[number], weights);
    }
    if (pytorch) strip_names(weights);
    return weights;
}

}  // namespace headscope::checkpoint
