// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/harness/harness_items.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/data/source/parquet_rows.h"
#include "core/evaluation/data_records.h"
#include "core/evaluation/harness/harness_records.h"
#include "core/evaluation/harness/longbench.h"
#include "core/evaluation/harness/python_random.h"

namespace headscope::evaluation {
namespace {

/// The folders below `folder` that may hold a task's files.
std::vector<std::filesystem::path> folders_of(const std::filesystem::path& folder, const HarnessTask& task) {
    std::vector<std::filesystem::path> all = {folder / task.name};
    if (!task.configuration.empty()) all.push_back(folder / task.data_set / task.configuration);
    if (task.data_set != task.name) all.push_back(folder / task.data_set);
    return all;
}

/// Throws where there is a split as Parquet that cannot be read, or in several parts: with the line that turns it into
/// JSON lines.
void refuse_parquet(const std::filesystem::path& folder, const HarnessTask& task, const std::string& split) {
    for (const auto& target : folders_of(folder, task)) {
        for (const auto& place : {target, target / "data"}) {
            std::error_code ignored;
            for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
                const std::string name = entry.path().filename().string();
                if (!name.starts_with(split) || !name.ends_with(".parquet")) continue;
                const std::filesystem::path parts =
                    name == split + ".parquet" ? entry.path() : place / (split + "-*.parquet");
                throw Error(ErrorCode::unsupported, shown(entry.path()),
                            "expected JSON lines, as Python makes them: import datasets; "
                            "datasets.load_dataset(\"parquet\", data_files=\"" +
                                shown(parts) + "\")[\"train\"].to_json(\"" + shown(target / (split + ".jsonl")) + "\")",
                            data::parquet_problem().empty() ? "found Parquet in several parts" : "found Parquet");
            }
        }
    }
}

/// An example before an item: its text, and a key that is equal for equal records.
struct Example {
    std::string text, identity;
};

/// Equal for records that are equal in all columns.
std::string identity_of(const JsonView& record) {
    return sha256_hex(record.value().dump());
}

/// Draws examples as lm-eval's ContextSampler does, item after item.
class Examples {
public:
    Examples(const std::filesystem::path& folder, const HarnessTask& task, const ItemsOptions& options,
             std::vector<DataFile>& files)
        : task_(task),
          options_(options),
          random_(options.seed),
          apart_(task.split == "validation"),
          path_(find_data_file(folder, task, "train")) {
        const std::string sha256 = read_data_records(path_, "examples of " + task.name, [&](const JsonView& record) {
            pool_.push_back({example_text(task, read_record(task, record)), apart_ ? identity_of(record) : ""});
            return true;
        });
        files.push_back({path_, sha256});
    }

    /// The examples before an item.
    std::string before(const JsonView& item) {
        const std::string identity = apart_ ? identity_of(item) : "";
        std::string text;
        for (const std::size_t i : choose(identity)) text += pool_[i].text;
        return text;
    }

private:
    std::size_t wanted() const { return static_cast<std::size_t>(options_.shots); }

    /// Draws one more from a validation split, since the item may be among them: lm-eval compares two splits there that
    /// both have no name.
    std::vector<std::size_t> choose(const std::string& identity) {
        if (options_.first_shots) return first(others(identity, wanted()));
        if (!apart_) return draw(pool_.size(), wanted());
        std::vector<std::size_t> drawn = draw(pool_.size(), wanted() + 1);
        std::erase_if(drawn, [&](std::size_t i) { return pool_[i].identity == identity; });
        if (drawn.size() >= wanted()) return first(std::move(drawn));
        const std::vector<std::size_t> left = others(identity, pool_.size());
        drawn = draw(left.size(), wanted());
        for (std::size_t& i : drawn) i = left[i];
        return drawn;
    }
    std::vector<std::size_t> others(const std::string& identity, std::size_t most) const {
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < pool_.size() && all.size() < most; ++i)
            if (!apart_ || pool_[i].identity != identity) all.push_back(i);
        return all;
    }
    std::vector<std::size_t> first(std::vector<std::size_t> all) const {
        require(all.size(), wanted());
        all.resize(wanted());
        return all;
    }
    std::vector<std::size_t> draw(std::size_t count, std::size_t size) {
        require(count, size);
        return random_.sample(count, size);
    }
    void require(std::size_t count, std::size_t size) const {
        if (count >= size) return;
        throw Error(ErrorCode::usage, shown(path_),
                    "expected at least " + std::to_string(size) + " examples for --shots " +
                        std::to_string(options_.shots) + (apart_ ? " beside copies of the item" : ""),
                    "found " + std::to_string(count));
    }

    const HarnessTask& task_;
    const ItemsOptions& options_;
    PythonRandom random_;
    bool apart_;
    std::filesystem::path path_;
    std::vector<Example> pool_;
};

}  // namespace

std::filesystem::path find_data_file(const std::filesystem::path& folder, const HarnessTask& task,
                                     const std::string& split) {
    std::string others;
    for (const auto& place : folders_of(folder, task)) {
        for (const char* ending : {".jsonl", ".jsonl.gz", ".json", ".json.gz"}) {
            const std::filesystem::path path = place / (split + ending);
            if (ends_at_regular_file(path)) return path;
        }
        if (place != folder / task.name) others += ", " + shown(place / (split + ".jsonl"));
    }
    if (is_longbench(task)) {  // its archive's own places
        const std::string name = task.configuration + ".jsonl";
        for (const auto& path : {folder / kLongBench / "data" / name, folder / kLongBench / name}) {
            if (ends_at_regular_file(path)) return path;
            others += ", " + shown(path);
        }
    }
    if (data::parquet_problem().empty()) {  // by the hub's names
        for (const auto& target : folders_of(folder, task))
            for (const auto& place : {target, target / "data"})
                for (const char* ending : {".parquet", "-00000-of-00001.parquet"})
                    if (const auto path = place / (split + ending); ends_at_regular_file(path)) return path;
    }
    refuse_parquet(folder, task, split);
    throw Error(
        ErrorCode::io, shown(folder / task.name / (split + ".jsonl")),
        "expected the split \"" + split + "\" of " + task.name + " here" + others + ", or as .json, each also with .gz",
        "found none");
}

HarnessItems read_items(const std::filesystem::path& folder, const HarnessTask& task, const ItemsOptions& options,
                        const Cancellation* cancellation) {
    std::optional<CancellationScope> scope;
    if (cancellation != nullptr) scope.emplace(*cancellation);
    if (options.shots > 0 && task.kind != HarnessKind::choices && task.kind != HarnessKind::partial)
        throw Error(ErrorCode::usage, task.name, "expected no examples: this task has none of its own",
                    "found --shots " + std::to_string(options.shots));
    HarnessItems result;
    result.task = &task;
    const std::filesystem::path path = find_data_file(folder, task, task.split);
    std::optional<Examples> examples;
    std::vector<DataFile> files;
    if (options.shots > 0) examples.emplace(folder, task, options, files);
    const std::string sha256 = read_data_records(path, "items of " + task.name, [&](const JsonView& record) {
        HarnessItem item = read_record(task, record);
        if (examples) {
            const std::string before = examples->before(record);
            for (TextPair& request : item.requests) request.context.insert(0, before);
        }
        result.items.push_back(std::move(item));
        return std::ssize(result.items) != options.limit;
    });
    result.files.push_back({path, sha256});
    result.files.insert(result.files.end(), files.begin(), files.end());
    return result;
}

}  // namespace headscope::evaluation
