// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/weights_in.h"

#include <sys/stat.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/adapter.h"
#include "core/checkpoint/recognise.h"

namespace headscope::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view first_names[] = {"model.safetensors", "model.safetensors.index.json"};
constexpr std::string_view pytorch_names[] = {"pytorch_model.bin", "pytorch_model.bin.index.json"};
constexpr std::size_t most_names = 100'000;  // of a folder's entries
constexpr std::size_t most_looked_at = 10'000, most_looked_into = 20, most_told = 5;
constexpr int deepest_below = 3;  // hub/models--x--y/snapshots/REVISION

bool ends_with_one_of(const std::string& name, std::initializer_list<std::string_view> ends) {
    return std::any_of(ends.begin(), ends.end(), [&](std::string_view end) { return name.ends_with(end); });
}

bool is_pytorch(const std::string& name) {
    return ends_with_one_of(name, {".bin", ".pt", ".pth", ".ckpt"});
}

/// Files that training loops leave next to the weights.
bool is_training_state(const std::string& name) {
    constexpr std::string_view begins[] = {"training_args", "optimizer", "scheduler", "scaler",       "rng_state",
                                           "random_states", "zero_",     "adapter_",  "trainer_state"};
    return std::any_of(std::begin(begins), std::end(begins),
                       [&](std::string_view begin) { return name.starts_with(begin); });
}

/// PEFT's, which are no model's.
bool is_adapter_weights(const std::string& name) {
    return name.starts_with("adapter_model");
}

bool is_there(const fs::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

/// A folder that the trainer writes: its models are in its snapshots.
bool is_run(const std::vector<std::string>& names) {
    const auto has = [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); };
    return has("events.log") || (has("run.h5") && has("snapshots"));
}

std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end && names.size() < most_names;
         entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    if (error) throw os_error(error.value(), folder, "expected a folder that can be read");
    std::sort(names.begin(), names.end());
    return names;
}

template <class Test>
std::vector<std::string> chosen(const std::vector<std::string>& names, const Test& test) {
    std::vector<std::string> some;
    std::copy_if(names.begin(), names.end(), std::back_inserter(some), test);
    return some;
}

/// Models in .gguf files, each by its first shard. Those beside them are projections of images.
std::vector<std::string> gguf_models(const std::vector<std::string>& names) {
    return chosen(names, [](const std::string& name) {
        if (!name.ends_with(".gguf") || name.starts_with("mmproj")) return false;
        const std::size_t shards = name.rfind("-of-");
        constexpr std::string_view first = "-00001";
        if (shards == std::string::npos || shards < first.size()) return true;
        const std::string number = name.substr(shards - first.size(), first.size());
        const bool is_shard = number[0] == '-' && number.find_first_not_of("0123456789", 1) == std::string::npos;
        return !is_shard || number == first;
    });
}

/// ': "x.onnx" is an ONNX model ...' for the first file recognized by bytes or name; empty without one.
std::string told_kind(const fs::path& folder, const std::vector<std::string>& names) {
    for (std::size_t i = 0; i < names.size() && i < most_looked_into; ++i) {
        std::string kind;
        if (const auto other = recognise_other(folder / names[i]))
            kind = other->found.substr(std::string_view("found ").size());
        else if (names[i].ends_with(".onnx"))
            kind = "an ONNX model, which is not supported";
        if (!kind.empty()) return ": \"" + escaped(names[i]) + "\" is " + kind;
    }
    return "";
}

/// The only candidate; throws if there are several.
std::string only(const std::vector<std::string>& candidates, const fs::path& folder, const char* expected) {
    if (candidates.size() > 1) {
        throw Error(
            ErrorCode::usage, shown(folder), expected,
            "found several others: " + list_text(candidates, 5) + "; name one of them" + told_kind(folder, candidates));
    }
    return candidates.empty() ? "" : candidates.front();
}

bool holds_model(const fs::path& folder) {
    std::error_code error;
    std::size_t seen = 0;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end && seen < most_looked_at;
         entry.increment(error), ++seen) {
        const std::string name = entry->path().filename().string();
        if (name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") || name.ends_with(".gguf") ||
            name == pytorch_names[0] || name == pytorch_names[1] || name == adapter_config_name)
            return true;
    }
    return false;
}

/// Folders below with weights in them, as a hub's cache (models--x--y/snapshots/REVISION) and trainers nest them; those
/// nearest alone, of a hub's cache first the revision that refs/main names.
std::vector<fs::path> models_below(const fs::path& folder) {
    std::vector<fs::path> found;
    std::vector<fs::path> level{folder};
    std::size_t seen = 0;
    for (int depth = 0; depth < deepest_below && found.empty(); ++depth) {
        std::vector<fs::path> below;
        for (const fs::path& one : level) {
            std::error_code error, ignored;
            for (fs::directory_iterator entry(one, error), end; !error && entry != end && seen < most_looked_at;
                 entry.increment(error), ++seen) {
                if (entry->is_directory(ignored)) below.push_back(entry->path());
            }
        }
        std::sort(below.begin(), below.end());
        for (const fs::path& one : below)
            if (holds_model(one)) found.push_back(one);
        level = std::move(below);
    }
    if (ends_at_regular_file(folder / "refs" / "main")) {
        std::string revision = read_small_file(folder / "refs" / "main", 1024);
        revision.erase(std::find_if(revision.begin(), revision.end(), [](unsigned char c) { return c <= ' '; }),
                       revision.end());
        std::stable_partition(found.begin(), found.end(),
                              [&](const fs::path& path) { return path.filename() == revision; });
    }
    return found;
}

/// Other files in a folder that looks like a checkpoint, for the message that it is none.
std::string other_weights(const fs::path& folder, const std::vector<std::string>& names) {
    const auto others = chosen(names, [](const std::string& name) {
        return ends_with_one_of(name, {".ggml", ".h5", ".msgpack", ".onnx", ".tar", ".npz", ".zip"}) ||
               is_pytorch(name);
    });
    const auto analyses = chosen(names, [](const std::string& name) { return name.ends_with(".headscope.h5"); });
    if (is_run(names)) {
        return "found the folder of a training run: its models are in " + list_text({"snapshots"}) +
               ", name one of them";
    }
    if (!analyses.empty()) return "found analyses of ours, " + list_text(analyses, 5) + ": name one of them";
    if (!others.empty())
        return "found " + list_text(others, 5) + ", which cannot be read as weights" + told_kind(folder, others);
    if (const auto below = models_below(folder); !below.empty()) {
        std::string places;
        for (std::size_t i = 0; i < below.size() && i < most_told; ++i)
            places += (i > 0 ? ", \"" : "\"") + shown(below[i]) + '"';
        if (below.size() > most_told) places += " and " + std::to_string(below.size() - most_told) + " more";
        return "found none here but below, in " + places + (below.size() == 1 ? ": open that" : ": open one");
    }
    return "found neither";
}

}  // namespace

fs::path weights_in(const fs::path& folder, std::vector<std::string>& notes) {
    const auto say_ignored = [&](const std::string& taken) {
        for (const std::string_view other : pytorch_names) {
            if (!is_there(folder / other)) continue;
            notes.push_back(escaped(taken) + " was read; " + std::string(other) + " lies there too: safetensors first");
        }
    };
    for (const std::string_view name : first_names) {
        if (!is_there(folder / name)) continue;
        say_ignored(std::string(name));
        return folder / name;
    }
    const std::vector<std::string> names = names_in(folder);
    const char* const expected = "expected model.safetensors or model.safetensors.index.json";
    auto candidates = chosen(names, [](const std::string& name) { return name.ends_with(".safetensors.index.json"); });
    if (candidates.empty()) {
        candidates = chosen(
            names, [](const std::string& name) { return name.ends_with(".safetensors") && !is_adapter_weights(name); });
    }
    const bool has_pytorch = is_there(folder / pytorch_names[0]) || is_there(folder / pytorch_names[1]);
    if (candidates.size() == 1 || !has_pytorch) {
        if (const std::string name = only(candidates, folder, expected); !name.empty()) {
            say_ignored(name);
            return folder / name;
        }
    }
    for (const std::string_view name : pytorch_names) {
        if (is_there(folder / name)) return folder / name;
    }
    candidates = chosen(names, [](const std::string& name) { return name.ends_with(".bin.index.json"); });
    if (candidates.empty()) {
        candidates =
            chosen(names, [](const std::string& name) { return is_pytorch(name) && !is_training_state(name); });
    }
    if (const std::string name = only(candidates, folder, expected); !name.empty()) return folder / name;
    if (const std::string name = only(gguf_models(names), folder, expected); !name.empty()) return folder / name;
    if (is_there(folder / adapter_config_name) || std::any_of(names.begin(), names.end(), is_adapter_weights)) {
        throw Error(ErrorCode::unsupported, shown(folder), "expected a model",
                    "found " + adapter_text(folder) + ": open its base with --adapter " + shown(folder));
    }
    throw Error(
        ErrorCode::format, shown(folder),
        "expected model.safetensors, pytorch_model.bin, an index of their shards or a .gguf file in this folder",
        other_weights(folder, names));
}

bool adapter_alone(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored) || !is_there(folder / adapter_config_name)) return false;
    try {
        const std::vector<std::string> names = names_in(folder);
        return std::none_of(names.begin(), names.end(), [](const std::string& name) {
            return (name.ends_with(".safetensors") && !is_adapter_weights(name)) || name.ends_with(".gguf") ||
                   (is_pytorch(name) && !is_training_state(name)) || name.ends_with(".index.json");
        });
    } catch (const Error&) {
        return false;
    }
}

}  // namespace headscope::checkpoint
