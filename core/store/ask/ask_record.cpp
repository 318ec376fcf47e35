// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/store/ask/ask_file.h"

namespace headscope::store {
namespace {

std::int64_t longest_of(const std::vector<SequenceTokens>& sequences) {
    std::size_t longest = 0;
    for (const SequenceTokens& sequence : sequences)
        longest = std::max({longest, sequence.ids.size(), sequence.predicted().ids.size()});
    return static_cast<std::int64_t>(longest);
}

}  // namespace

const AskTable* AskRecord::find(const std::string& path) const {
    const auto found =
        std::find_if(tables.begin(), tables.end(), [&](const AskTable& one) { return one.path == path; });
    return found == tables.end() ? nullptr : &*found;
}

const AskTable& AskRecord::table(const std::string& path) const {
    if (const AskTable* found = find(path)) return *found;
    throw Error(ErrorCode::format, "ask file", "expected " + path + ", as another tool or --sites stores it",
                "found answers of ask " + escaped(tool));
}

std::int64_t AskRecord::size_of(const std::string& dimension) const {
    for (const AskDimension& one : dimensions)
        if (one.path == dimension) return one.size;
    throw Error(ErrorCode::internal, "ask file", "expected the dimension " + dimension, "found none");
}

std::vector<std::int64_t> AskRecord::shape_of(const AskTable& table) const {
    std::vector<std::int64_t> shape;
    for (const std::string& dimension : table.dimensions) shape.push_back(size_of(dimension));
    return shape;
}

void AskRecord::add_dimension(const std::string& path, std::int64_t size, const std::string& long_name) {
    for (const AskDimension& one : dimensions)
        if (one.path == path) return;
    dimensions.push_back({path, size, long_name});
}

AskTable& AskRecord::add_table(const std::string& path, std::vector<std::string> axes, const std::string& long_name,
                               const std::string& units, bool whole) {
    AskTable table{path, std::move(axes), long_name, units, whole, {}};
    std::int64_t count = 1;
    for (const std::int64_t size : shape_of(table)) count *= size;
    table.values.assign(static_cast<std::size_t>(count), std::numeric_limits<double>::quiet_NaN());
    tables.push_back(std::move(table));
    return tables.back();
}

std::vector<std::int64_t> ids_in_tables(const AskRecord& record) {
    std::set<std::int64_t> ids;
    for (const AskTable& table : record.tables) {
        if (!table.whole || table.units != kTokenUnits) continue;
        for (const double value : table.values)
            if (!std::isnan(value) && value >= 0) ids.insert(static_cast<std::int64_t>(value));
    }
    return {ids.begin(), ids.end()};
}

void add_usual_dimensions(AskRecord& record) {
    std::int32_t heads = 0;
    for (const Site& site : record.sites) heads = std::max(heads, site.heads);
    record.add_dimension("/sequence", std::ssize(record.sequences), "sequence, counted from 0");
    record.add_dimension("/token", longest_of(record.sequences), "token, counted from 0");
    record.add_dimension("/site", std::ssize(record.sites), "attention site, counted from 0");
    record.add_dimension("/head", heads, "head, counted from 0");
    record.add_dimension("/layer", std::ssize(record.mixers), "layer, counted from 0");
}

std::string ask_csv(const AskRecord& record, const AskTable& table) {
    const std::vector<std::int64_t> shape = record.shape_of(table);
    std::string text;
    for (const std::string& dimension : table.dimensions) text += dimension.substr(1) + ",";
    text += "value\n";
    for (std::size_t cell = 0; cell < table.values.size(); ++cell) {
        auto rest = static_cast<std::int64_t>(cell);
        std::vector<std::int64_t> index(shape.size());
        for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) index[i] = rest % shape[i];
        for (const std::int64_t one : index) text += std::to_string(one) + ",";
        char digits[32];
        const double value = table.values[cell];
        const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
        text += (std::isnan(value) ? "" : std::string(digits, end)) + "\n";
    }
    return text;
}

}  // namespace headscope::store
