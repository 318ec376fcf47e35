// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/source_files.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/data/source/json_objects.h"
#include "core/data/source/parquet_rows.h"
#include "core/data/source/source_bytes.h"

namespace headscope::data {
namespace {

namespace fs = std::filesystem;

bool is_pattern(const std::string& text) {
    return text.find_first_of("*?[") != std::string::npos;
}

bool is_json_lines(const fs::path& path) {
    const fs::path extension = unpacked_name(path).extension();
    return extension == ".jsonl" || extension == ".ndjson";
}

/// Entries of a folder, sorted, without hidden ones.
std::vector<fs::directory_entry> entries(const fs::path& folder) {
    check_cancellation();
    std::vector<fs::directory_entry> all;
    std::error_code error;
    fs::directory_iterator at(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        if (at->path().filename().native().front() != '.') all.push_back(*at);
    }
    if (error) throw os_error(error.value(), folder, "expected a folder that can be read");
    std::sort(all.begin(), all.end());
    return all;
}

bool is_folder(const fs::directory_entry& entry) {
    std::error_code error;
    return entry.is_directory(error) && !entry.is_symlink(error);
}

/// True for a file with documents that a folder does not give. Other .json files are settings and the like.
bool is_left_out(const fs::path& path) {
    if (path.extension() != ".parquet" && unpacked_name(path).extension() != ".json") return false;
    if (!ends_at_regular_file(path)) return false;
    try {
        return path.extension() == ".parquet" || has_columns(json_kind(InputFile(path, "text file")));
    } catch (const Error& error) {
        if (error.code() != ErrorCode::format) throw;
        return false;
    }
}

void take_folder(const fs::path& folder, const std::string& key, std::vector<fs::path>& files) {
    for (const auto& entry : entries(folder)) {
        const fs::path& path = entry.path();
        if (is_folder(entry)) take_folder(path, key, files);
        if ((unpacked_name(path).extension() == ".txt" || is_json_lines(path)) && ends_at_regular_file(path))
            files.push_back(path);
        if (is_left_out(path))
            throw Error(ErrorCode::usage, key,
                        "expected a folder with .txt and .jsonl files as its only documents; name others, or a pattern",
                        "found " + shown(path));
    }
}

/// `steps` are the parts of a pattern, `at` the one that names something in `folder`.
void take_pattern(const fs::path& folder, const std::vector<std::string>& steps, std::size_t at,
                  std::vector<fs::path>& files) {
    const std::string& step = steps[at];
    const bool last = at + 1 == steps.size();
    if (!is_pattern(step)) {
        const fs::path path = folder / step;
        std::error_code error;
        if (last && ends_at_regular_file(path)) files.push_back(path);
        if (!last && fs::is_directory(path, error)) take_pattern(path, steps, at + 1, files);
        return;
    }
    const bool any_folders = step == "**";
    if (any_folders && !last) take_pattern(folder, steps, at + 1, files);
    for (const auto& entry : entries(folder.empty() ? fs::path(".") : folder)) {
        const fs::path path = folder / entry.path().filename();
        const bool fits = ::fnmatch(step.c_str(), path.filename().c_str(), FNM_PERIOD) == 0;
        std::error_code error;
        if (any_folders && is_folder(entry)) take_pattern(path, steps, at, files);
        if (!any_folders && fits && !last && entry.is_directory(error)) take_pattern(path, steps, at + 1, files);
        if (fits && last && ends_at_regular_file(path)) files.push_back(path);
    }
}

std::vector<fs::path> files_of(const std::string& wanted, const fs::path& base, const std::string& key) {
    if (wanted.empty()) throw Error(ErrorCode::usage, key, "expected names of files", "found an empty one");
    std::vector<fs::path> files;
    const fs::path path = base / wanted;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (fs::is_directory(status)) {
        take_folder(path, key, files);
        if (files.empty()) {
            throw Error(ErrorCode::usage, key, "expected a folder with .txt or .jsonl files",
                        "found none in " + shown(path));
        }
    } else if (fs::exists(status) || !is_pattern(wanted)) {
        const InputFile check(path, "text file");  // says best what is wrong with it
        files.push_back(path);
    } else {
        std::vector<std::string> steps;
        fs::path folder = path.root_path();
        for (const auto& part : path.relative_path()) {
            if (!part.empty()) steps.push_back(part.string());
        }
        if (!steps.empty()) take_pattern(folder, steps, 0, files);
        std::sort(files.begin(), files.end());
        if (files.empty()) {
            throw Error(ErrorCode::usage, key, "expected files that match \"" + escaped(wanted) + '"', "found none");
        }
    }
    return files;
}

[[noreturn]] void refuse_parquet(const fs::path& path) {
    fs::path lines = path.filename();
    lines.replace_extension(".jsonl");
    throw Error(ErrorCode::unsupported, shown(path),
                "expected text or JSON lines, as Python makes them: import datasets; "
                "datasets.load_dataset(\"parquet\", data_files=\"" +
                    shown(path) + "\")[\"train\"].to_json(\"" + shown(fs::path(path).replace_extension(".jsonl")) +
                    "\")",
                "found Parquet, which this program cannot read (" + parquet_problem() + ")");
}

}  // namespace

SourceKind source_kind(const fs::path& path) {
    if (is_json_lines(path)) return SourceKind::json_lines;
    if (path.extension() == ".parquet") {
        if (!parquet_problem().empty()) refuse_parquet(path);
        return SourceKind::parquet;
    }
    if (unpacked_name(path).extension() == ".json") return json_kind(InputFile(path, "text file"));
    return SourceKind::text;
}

bool has_columns(SourceKind kind) {
    return kind == SourceKind::json_lines || kind == SourceKind::json_array || kind == SourceKind::parquet;
}

SourceKind kind_of_objects(SourceKind kind) {
    return has_columns(kind) ? kind : SourceKind::json_lines;
}

std::vector<SourceFile> find_sources(const std::vector<std::string>& wanted, const fs::path& base,
                                     const std::string& key) {
    std::vector<SourceFile> sources;
    std::set<fs::path> seen;
    for (const std::string& entry : wanted) {
        for (fs::path& path : files_of(entry, base, key)) {
            std::error_code error;
            fs::path real = fs::canonical(path, error);
            if (error) throw os_error(error.value(), path, "expected a text file");
            if (!seen.insert(std::move(real)).second) continue;
            sources.push_back({path.lexically_normal(), source_kind(path)});
        }
    }
    return sources;
}

}  // namespace headscope::data
