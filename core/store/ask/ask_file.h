// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Answers of `headscope ask`, `*.ask.h5`: the tables of one tool, with the texts and sites that they are about.
// docs/file-formats.md describes the layout. A file is written whole; while a tool runs it is rewritten now and then
// with complete = 0. Threads: any, under Hdf5Lock. Errors: Error (io; format for other files).

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/site.h"
#include "core/store/analysis/analysis_header.h"

namespace headscope::store {

struct AskDimension {
    std::string path;  ///< "/layer"
    std::int64_t size = 0;
    std::string long_name;
};

/// Units of tables of token ids, whose texts AskRecord::words has.
inline constexpr const char* kTokenUnits = "token";

/// Numbers in row-major order: float64, NaN where there is none; `whole`: int64, -1 where there is none.
struct AskTable {
    std::string path;                     ///< "/lens/rank"
    std::vector<std::string> dimensions;  ///< paths
    std::string long_name, units;
    bool whole = false;
    std::vector<double> values;
};

/// Texts along one dimension, such as names of models.
struct AskNames {
    std::string path, dimension, long_name;
    std::vector<std::string> values;
};

struct AskRecord {
    std::string tool;  ///< "lens"
    std::string settings_json = "{}";
    std::string program_version, created;  ///< filled in when empty
    std::string model_name, model_type, model_sha256, config_json = "{}";
    std::string interventions;  ///< the text of --interventions
    bool complete = false;
    std::vector<std::string> mixers;  ///< by layer
    std::vector<Site> sites;
    std::vector<SequenceTokens> sequences;
    std::vector<AskDimension> dimensions;
    std::vector<AskTable> tables;
    std::vector<AskNames> names;
    std::map<std::int64_t, std::string> words;  ///< readable text of each id in tables of tokens

    const AskTable* find(const std::string& path) const;  ///< null: none
    /// Throws format for a file without it.
    const AskTable& table(const std::string& path) const;
    std::int64_t size_of(const std::string& dimension) const;
    std::vector<std::int64_t> shape_of(const AskTable& table) const;
    /// Adds a dimension, unless there is one of that path.
    void add_dimension(const std::string& path, std::int64_t size, const std::string& long_name);
    /// Adds a table without numbers yet. The reference holds until the next call.
    AskTable& add_table(const std::string& path, std::vector<std::string> dimensions, const std::string& long_name,
                        const std::string& units = "", bool whole = false);
};

/// Ids in tables whose units are kTokenUnits, each once.
std::vector<std::int64_t> ids_in_tables(const AskRecord& record);

/// /sequence, /token, /site, /head and /layer of a model and texts. Tokens are those of the longest text or target.
void add_usual_dimensions(AskRecord& record);

void write_ask(const std::filesystem::path& path, const AskRecord& record,
               std::span<const std::filesystem::path> inputs = {});
AskRecord read_ask(const std::filesystem::path& path);

/// One row per number: the dimensions' names, then `value`.
std::string ask_csv(const AskRecord& record, const AskTable& table);

}  // namespace headscope::store
