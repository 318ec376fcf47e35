// SPDX-License-Identifier: GPL-3.0-or-later
#include <optional>
#include <utility>

#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/checkpoint/gguf/header.h"
#include "core/checkpoint/most_tensors.h"

namespace headscope::checkpoint::gguf {
namespace {

constexpr const char* kNumberKey = "split.no";
constexpr const char* kCountKey = "split.count";
constexpr const char* kTensorsKey = "split.tensors.count";
constexpr std::int64_t kMostSplits = 4096;

std::string five_digits(std::int64_t number) {
    const std::string text = std::to_string(number);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
}

/// NAME-00001-of-00003.gguf.
struct SplitName {
    std::string stem;
    std::int64_t number = 0;  ///< from 1
    std::int64_t count = 0;

    std::string text(std::int64_t one) const {
        return stem + '-' + five_digits(one) + "-of-" + five_digits(count) + ".gguf";
    }
};

std::optional<SplitName> split_name(const std::string& file) {
    constexpr std::string_view kPattern = "-NNNNN-of-NNNNN.gguf";
    if (file.size() < kPattern.size()) return std::nullopt;
    SplitName name;
    name.stem = file.substr(0, file.size() - kPattern.size());
    std::int64_t* number = &name.number;
    for (std::size_t i = 0; i < kPattern.size(); ++i) {
        const char found = file[name.stem.size() + i];
        if (kPattern[i] == 'o') number = &name.count;
        if (kPattern[i] == 'N') {
            if (found < '0' || found > '9') return std::nullopt;
            *number = *number * 10 + (found - '0');
        } else if (found != kPattern[i]) {
            return std::nullopt;
        }
    }
    return name;
}

void expect_split(const Header& header, const InputFile& file, std::int64_t number, std::int64_t count) {
    KeyReader keys(header.metadata);
    const std::int64_t found_count = keys.integer_or(kCountKey, 1, 0, kMostSplits);
    const std::int64_t found_number = keys.integer_or(kNumberKey, 0, 0, kMostSplits);
    if (found_count == count && found_number == number) return;
    throw Error(ErrorCode::mismatch, shown(file.path()),
                "expected split " + std::to_string(number) + " of " + std::to_string(count) + " (from 0) by its name",
                "found " + std::to_string(found_number) + " of " + std::to_string(found_count) + " in its keys");
}

/// Adds one file's tensors and keys. Keys that the first has must be equal.
void add(Files& all, Header& header, std::size_t number, const InputFile& file) {
    for (auto& [key, value] : header.metadata.values) {
        if (key.compare(0, 6, "split.") == 0 || key == "general.alignment") continue;
        const auto [entry, fresh] = all.metadata.values.try_emplace(key, std::move(value));
        if (!fresh && entry->second != value) {
            throw Error(ErrorCode::mismatch, header.metadata.where(key), "expected the first split's value",
                        "found another");
        }
    }
    if (header.tensors.size() > most_tensors - all.tensors.size()) {
        throw Error(ErrorCode::limit, shown(file.path()),
                    "expected at most " + count_text(most_tensors) + " tensors in all splits", "found more");
    }
    for (auto& [name, tensor] : header.tensors) tensor.file = number;
    all.tensors.merge(header.tensors);
    if (!header.tensors.empty()) {
        throw Error(ErrorCode::mismatch, shown(file.path()), "expected each tensor in one split",
                    "found \"" + escaped(header.tensors.begin()->first) + "\", which another has too");
    }
}

Files open_split(const std::filesystem::path& path, const SplitName& name) {
    const std::filesystem::path folder = path.parent_path();
    std::vector<std::string> missing;
    for (std::int64_t number = 1; number <= name.count; ++number) {
        if (!ends_at_regular_file(folder / name.text(number))) missing.push_back(name.text(number));
    }
    if (!missing.empty()) {
        throw Error(ErrorCode::io, shown(path),
                    "expected all of its " + std::to_string(name.count) + " splits as regular files beside it",
                    "found no " + list_text(missing));
    }
    Files all;
    all.files.reserve(static_cast<std::size_t>(name.count));
    std::optional<std::int64_t> tensors;
    for (std::int64_t number = 0; number < name.count; ++number) {
        const InputFile& file = all.files.emplace_back(folder / name.text(number + 1), "weight file");
        Header header = read_header(file);
        expect_split(header, file, number, name.count);
        if (header.metadata.has(kTensorsKey)) {
            const std::int64_t found = KeyReader(header.metadata).integer(kTensorsKey, 0, most_tensors);
            if (tensors && *tensors != found) {
                header.metadata.refuse(ErrorCode::mismatch, kTensorsKey,
                                       "expected the other splits' " + std::to_string(*tensors));
            }
            tensors = found;
        }
        if (number == 0) all.metadata.file = shown(file.path());
        add(all, header, static_cast<std::size_t>(number), file);
    }
    if (tensors && static_cast<std::uint64_t>(*tensors) != all.tensors.size()) {
        throw Error(ErrorCode::mismatch, all.metadata.where(kTensorsKey),
                    "expected as many as all splits have, " + std::to_string(all.tensors.size()),
                    "found " + std::to_string(*tensors));
    }
    return all;
}

}  // namespace

Files open_files(const std::filesystem::path& path) {
    InputFile file(path, "weight file");
    Header header = read_header(file);
    const std::int64_t count = KeyReader(header.metadata).integer_or(kCountKey, 1, 0, kMostSplits);
    if (count > 1) {
        const auto name = split_name(path.filename().string());
        if (!name || name->count != count || name->number < 1 || name->number > count) {
            throw Error(ErrorCode::mismatch, shown(path),
                        "expected one of " + std::to_string(count) + " splits, named NAME-00001-of-" +
                            five_digits(count) + ".gguf",
                        "found \"" + escaped(path.filename().string()) + '"');
        }
        return open_split(path, *name);
    }
    Files all;
    all.files.push_back(std::move(file));
    all.metadata = std::move(header.metadata);
    all.tensors = std::move(header.tensors);
    return all;
}

}  // namespace headscope::checkpoint::gguf
