// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headscope::data {

/// How text lies in a file.
enum class SourceKind {
    text,        ///< UTF-8, one document
    json_lines,  ///< .jsonl, or .json with an object a line: its column (SourceFile) is a document
    bible,       ///< Debian's bible-kjv-text: a document a book
    json_array,  ///< .json with one array of such objects
    parquet,     ///< .parquet: rows in place of such objects
};

/// How text lies in a file, by its name without .gz or .zst; a .json file is looked into. Errors: unsupported for
/// Parquet where it cannot be read; format for a .json file that holds neither an array nor an object on its first
/// line, which is never read as text.
SourceKind source_kind(const std::filesystem::path& path);

/// True for kinds whose documents are objects with columns.
bool has_columns(SourceKind kind);

/// The kind by which a file is read that must hold objects: one of any other kind holds one on each line.
SourceKind kind_of_objects(SourceKind kind);

struct SourceFile {
    std::filesystem::path path;
    SourceKind kind = SourceKind::text;
    std::string column = "text";  ///< of objects: what a document is; "document.text" is a member of a member
};

/// The files that `wanted` names, relative to `base`: files; folders, of which all .txt and .jsonl files below are
/// taken, compressed ones too, and which are refused if other files below have documents; patterns with *, ?, [abc] and
/// ** (any folders). In this order, those of one entry sorted by path, no file twice; hidden files and linked folders
/// only where they are named. `key` is what the settings call the list. Error: usage for an entry that names no file;
/// io; those of source_kind().
std::vector<SourceFile> find_sources(const std::vector<std::string>& wanted, const std::filesystem::path& base,
                                     const std::string& key);

}  // namespace headscope::data
