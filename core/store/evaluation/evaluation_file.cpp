// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/evaluation/evaluation_file.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/evaluation/evaluation_columns.h"
#include "core/store/evaluation/evaluation_texts.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {
namespace {

using hdf5::Type;

constexpr const char* kFormat = "headscope-evaluation";
// 1: texts of fixed length; 2: without shots and items; 3: without jobs; 4: without attention's and embedding's counts;
// 5: without names and digests of texts, and counts of cut items; 6: without variants and tasks of benchmarks;
// 7: without subsets and metrics of items
constexpr std::int32_t kVersion = 8;
/// More than anybody's tables; a file that claims more is not ours.
constexpr std::int64_t kMostRows = 10'000'000;
/// Bytes of one item's texts: more than any text that a model reads.
constexpr std::int64_t kLongestTexts = std::int64_t{256} << 20U;
/// Bytes of all items' texts that are compressed together: what is unpacked for one.
constexpr std::int64_t kChunk = 256 << 10U;

/// An item's row, and where its texts are in /items/texts.
struct ItemRow : EvaluatedItem {
    std::int64_t text_start = 0, text_bytes = 0;
};

/// Reads text columns for one row only.
template <class I>
const std::vector<Column<I>>& item_columns() {
    static const std::vector<Column<I>> columns = [] {
        std::vector<Column<I>> all{
            {"model", "index of the model in /models", &I::model},
            {"task", "task", &I::task},
            {"length", "context length in tokens", &I::length},
            {"shots", "examples in the prompt", &I::shots},
            {"item", "number of the item in the data", &I::item},
            {"gold", "number of the right option, -1: there are no options", &I::gold},
            {"chosen", "number of the option that the model chose, -1: there are no options", &I::chosen},
            {"right", "1 where the model was right", &I::right},
            {"subset", "part of the task's items, empty: none", &I::subset, 8},
            {"metrics", "the item's values of the metrics that are means over items, a JSON object", &I::metrics, 8}};
        if constexpr (std::is_same_v<I, ItemRow>) {
            all.push_back({"text_start", "first byte of the item's texts in /items/texts", &I::text_start});
            all.push_back({"text_bytes", "how many bytes they are", &I::text_bytes});
        }
        return all;
    }();
    return columns;
}

template <class Row>
void write_table(hid_t file, const std::string& group, const std::string& index, const std::vector<Row>& rows,
                 const std::vector<Column<Row>>& columns, const std::string& where) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::string scale_path = group + "/" + index;
    const hdf5::Handle scale = create_scale(file, {scale_path, count, "row of the table", {}, ""}, where);
    for (const auto& column : columns) {
        DatasetSpec spec;
        spec.path = group + "/" + column.name;
        spec.dimensions = {scale_path};
        spec.shape = {count};
        spec.long_name = column.long_name;
        const auto create = [&](Type type) {
            spec.type = type;
            hdf5::Handle dataset = create_dataset(file, spec, where);
            attach_scale(dataset, scale, 0, where + ", " + spec.path);
            return dataset;
        };
        const auto write = [&](Type type, const void* values) {
            const hdf5::Handle dataset = create(type);
            if (count > 0) hdf5::write_block(dataset, type, {0}, spec.shape, values, where + ", " + spec.path);
        };
        if (const auto* text = std::get_if<std::string Row::*>(&column.member)) {
            std::vector<std::string> texts;
            for (const Row& row : rows) texts.push_back(readable_utf8(row.**text));
            const hdf5::Handle dataset = create(Type::text);
            hdf5::write_texts(dataset, spec.shape, texts, where + ", " + spec.path);
        } else if (const auto* integer = std::get_if<std::int64_t Row::*>(&column.member)) {
            std::vector<std::int64_t> values;
            for (const Row& row : rows) values.push_back(row.**integer);
            write(Type::int64, values.data());
        } else if (const auto* yes = std::get_if<bool Row::*>(&column.member)) {
            std::vector<std::int8_t> values;
            for (const Row& row : rows) values.push_back(row.**yes ? 1 : 0);
            write(Type::int8, values.data());
        } else {
            std::vector<double> values;
            for (const Row& row : rows) values.push_back(row.*std::get<double Row::*>(column.member));
            write(Type::float64, values.data());
        }
    }
}

struct OpenedFile {
    hdf5::Handle id;
    std::int32_t version = 0;
    std::uint64_t bytes = 0;
};

OpenedFile open_evaluation(const std::filesystem::path& path, const std::string& where) {
    OpenedFile file;
    file.bytes = InputFile(path, "evaluation file").size();  // refuses what is no regular file
    hdf5::prepare();
    file.id = hdf5::open_file(path, where);
    if (const std::string format = hdf5::read_text_attribute(file.id, "format", where); format != kFormat)
        throw Error(ErrorCode::format, where, "expected an evaluation file", "found format " + escaped(format));
    hdf5::read_attribute(file.id, "format_version", Type::int32, &file.version, 1, where);
    if (file.version < 1 || file.version > kVersion)
        throw Error(ErrorCode::unsupported, where, "expected format version 1 to " + std::to_string(kVersion),
                    "found " + std::to_string(file.version));
    return file;
}

/// How many rows a table has, by its first column.
std::int64_t count_rows(const OpenedFile& file, const std::string& path, Type type, const std::string& where) {
    const std::int64_t count = hdf5::open_dataset(file.id, path, type, 1, file.bytes, where).shape[0];
    if (count > kMostRows)
        throw Error(ErrorCode::limit, where + ", " + path, "expected at most " + std::to_string(kMostRows) + " rows",
                    "found " + std::to_string(count));
    return count;
}

/// Files of older versions have none.
std::int64_t count_items(const OpenedFile& file, const std::string& where) {
    return file.version < 3 ? 0 : count_rows(file, "/items/model", Type::int64, where);
}

template <class Row>
std::vector<Row> read_table(const OpenedFile& file, const std::string& group, const std::vector<Column<Row>>& columns,
                            const std::string& where) {
    std::vector<Row> rows;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const auto& column = columns[c];
        if (column.since > file.version) continue;
        const Type types[] = {Type::text, Type::int64, Type::float64, Type::int8};
        const Type type = types[column.member.index()];
        const std::string path = group + "/" + column.name, at = where + ", " + path;
        const auto opened = hdf5::open_dataset(file.id, path, type, 1, file.bytes, where);
        const std::int64_t count = opened.shape[0];
        if (count > kMostRows || (c > 0 && count != static_cast<std::int64_t>(rows.size())))
            throw Error(ErrorCode::format, at, "expected as many rows as its neighbours", "found another number");
        rows.resize(static_cast<std::size_t>(count));
        if (count == 0) continue;
        const auto read = [&](void* values) { hdf5::read_block(opened.id, type, {0}, opened.shape, values, at); };
        if (const auto* text = std::get_if<std::string Row::*>(&column.member)) {
            const auto texts = hdf5::read_texts(opened, at);
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].** text = readable_utf8(texts[i]);
        } else if (const auto* integer = std::get_if<std::int64_t Row::*>(&column.member)) {
            std::vector<std::int64_t> values(rows.size());
            read(values.data());
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].** integer = values[i];
        } else if (const auto* yes = std::get_if<bool Row::*>(&column.member)) {
            std::vector<std::int8_t> values(rows.size());
            read(values.data());
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].** yes = values[i] != 0;
        } else {
            std::vector<double> values(rows.size());
            read(values.data());
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*std::get<double Row::*>(column.member) = values[i];
        }
    }
    return rows;
}

/// A file that somebody else wrote may hold any number.
class Check {
public:
    Check(std::string where, ErrorCode code) : where_(std::move(where)), code_(code) {}

    void word(const char* path, const std::string& text) const {
        if (text.size() <= kLongestWord) return;
        throw Error(code_, where_ + ", " + path, "expected at most " + std::to_string(kLongestWord) + " bytes in a row",
                    "found " + std::to_string(text.size()));
    }
    void model(const char* path, std::int64_t model, std::int64_t models) const {
        if (model >= 0 && model < models) return;
        throw Error(code_, where_ + ", " + path, "expected rows of /models, which has " + std::to_string(models),
                    "found row " + std::to_string(model));
    }
    void tables(const Evaluation& evaluation) const {
        for (const auto& model : evaluation.models) {
            word("/models/mixer", model.mixer);
            word("/models/layout", model.layout);
            word("/models/variant", model.variant);
            word("/models/benchmark_task", model.benchmark_task);
        }
        for (const auto& result : evaluation.results) {
            word("/results/task", result.task);
            word("/results/metric", result.metric);
            word("/results/text", result.text);
            word("/results/subset", result.subset);
        }
        for (const auto& result : evaluation.results)
            model("/results/model", result.model, std::ssize(evaluation.models));
    }
    void items(std::span<const EvaluatedItem> items, std::int64_t models) const {
        for (const auto& item : items) {
            word("/items/task", item.task);
            word("/items/subset", item.subset);
            word("/items/metrics", item.metrics);
            model("/items/model", item.model, models);
        }
    }

private:
    std::string where_;
    ErrorCode code_;
};

/// The items' table, and their texts one behind the other.
void write_items(hid_t file, const std::vector<EvaluatedItem>& items, const std::string& where) {
    std::vector<ItemRow> rows;
    rows.reserve(items.size());
    std::int64_t end = 0;
    std::vector<std::string> changed(items.size());  // of those that are no UTF-8
    const auto text = [&](std::size_t i) -> const std::string& {
        return changed[i].empty() ? items[i].texts : changed[i];
    };
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (find_invalid_utf8(items[i].texts) < items[i].texts.size()) changed[i] = readable_utf8(items[i].texts);
        const EvaluatedItem& item = items[i];
        ItemRow& row = rows.emplace_back();
        row.model = item.model;
        row.task = item.task;
        row.length = item.length;
        row.shots = item.shots;
        row.item = item.item;
        row.gold = item.gold;
        row.chosen = item.chosen;
        row.right = item.right;
        row.subset = item.subset;
        row.metrics = item.metrics;
        row.text_start = end;
        row.text_bytes = std::ssize(text(i));
        if (row.text_bytes > kLongestTexts)
            throw Error(ErrorCode::limit, where, "expected at most " + size_text(kLongestTexts) + " of texts an item",
                        "found " + size_text(static_cast<std::uint64_t>(row.text_bytes)));
        end += row.text_bytes;
    }
    write_table(file, "/items", "row", rows, item_columns<ItemRow>(), where);
    DatasetSpec spec;
    spec.path = "/items/texts";
    spec.type = Type::int8;
    spec.dimensions = {"/items/byte"};
    spec.shape = {end};
    spec.fill = Fill::none;
    spec.long_name = "texts of the items, UTF-8, each a JSON object";
    spec.chunk = std::min(end, kChunk);
    const std::string at = where + ", " + spec.path;
    ScaleSpec bytes;
    bytes.path = spec.dimensions[0];
    bytes.size = end;
    bytes.bare = true;
    const hdf5::Handle scale = create_scale(file, bytes, where);
    const hdf5::Handle dataset = create_dataset(file, spec, where);
    attach_scale(dataset, scale, 0, at);
    std::string chunk;
    std::int64_t written = 0;
    const auto write = [&] {
        hdf5::write_block(dataset, Type::int8, {written}, {std::ssize(chunk)}, chunk.data(), at);
        written += std::ssize(chunk);
        chunk.clear();
    };
    for (std::size_t i = 0; i < items.size(); ++i) {
        for (std::string_view rest = text(i); !rest.empty();) {
            const std::size_t part = std::min(rest.size(), static_cast<std::size_t>(kChunk) - chunk.size());
            chunk += rest.substr(0, part);
            rest.remove_prefix(part);
            if (std::ssize(chunk) == kChunk) write();
        }
    }
    if (!chunk.empty()) write();
}

}  // namespace

const EvaluationResult* Evaluation::find(std::int64_t model, const std::string& task, const std::string& metric,
                                         std::int64_t length) const {
    const auto it = std::find_if(results.begin(), results.end(), [&](const EvaluationResult& result) {
        return result.model == model && result.task == task && result.metric == metric && result.length == length;
    });
    return it == results.end() ? nullptr : &*it;
}

void append(Evaluation& all, Evaluation one) {
    const auto shift = static_cast<std::int64_t>(all.models.size());
    std::move(one.models.begin(), one.models.end(), std::back_inserter(all.models));
    for (auto& result : one.results) {
        result.model += shift;
        all.results.push_back(std::move(result));
    }
}

void write_evaluation(const std::filesystem::path& path, const Evaluation& evaluation,
                      std::span<const std::filesystem::path> inputs) {
    const std::string where = shown(path);
    const Check check(where, ErrorCode::internal);
    check.tables(evaluation);
    check.items(evaluation.items, std::ssize(evaluation.models));
    OutputFile output(path, inputs, "evaluation");
    {
        const Hdf5Lock lock;
        hdf5::prepare();
        const hdf5::Handle file = hdf5::create_file(output.partial_path());
        const auto text = [&](const char* name, const std::string& value) {
            hdf5::write_attribute(file, name, value, where);
        };
        text("format", kFormat);
        hdf5::write_attribute(file, "format_version", Type::int32, &kVersion, 1, true, where);
        text("program_version", evaluation.program_version.empty() ? HEADSCOPE_VERSION : evaluation.program_version);
        text("created", evaluation.created.empty() ? utc_now() : evaluation.created);
        text("settings", evaluation.settings_json);
        write_table(file, "/models", "model", evaluation.models, model_columns(), where);
        write_table(file, "/results", "result", evaluation.results, result_columns(), where);
        write_items(file, evaluation.items, where);
        hdf5::flush(file, where);
    }
    output.publish();
}

Evaluation read_evaluation(const std::filesystem::path& path) {
    const std::string where = shown(path);
    const Hdf5Lock lock;
    const OpenedFile file = open_evaluation(path, where);
    Evaluation evaluation;
    evaluation.program_version = hdf5::read_text_attribute(file.id, "program_version", where);
    evaluation.created = hdf5::read_text_attribute(file.id, "created", where);
    evaluation.settings_json = hdf5::read_text_attribute(file.id, "settings", where);
    evaluation.models = read_table(file, "/models", model_columns(), where);
    evaluation.results = read_table(file, "/results", result_columns(), where);
    if (file.version < 6) {
        name_texts(evaluation);
        for (EvaluationResult& result : evaluation.results) result.cut = -1;
    }
    if (file.version < 7)
        for (EvaluatedModel& model : evaluation.models) model.variant = short_word(default_variant(model));
    evaluation.item_count = count_items(file, where);
    Check(where, ErrorCode::format).tables(evaluation);
    return evaluation;
}

std::vector<EvaluatedItem> read_items(const std::filesystem::path& path) {
    const std::string where = shown(path);
    const Hdf5Lock lock;
    const OpenedFile file = open_evaluation(path, where);
    if (file.version < 3) return {};
    std::vector<EvaluatedItem> items = read_table(file, "/items", item_columns<EvaluatedItem>(), where);
    Check(where, ErrorCode::format).items(items, count_rows(file, "/models/name", Type::text, where));
    return items;
}

std::string read_item_texts(const std::filesystem::path& path, std::int64_t row) {
    const std::string where = shown(path);
    const Hdf5Lock lock;
    const OpenedFile file = open_evaluation(path, where);
    const std::int64_t count = count_items(file, where);
    if (row < 0 || row >= count)
        throw Error(ErrorCode::usage, where, "expected a row of its " + std::to_string(count) + " items",
                    "found " + std::to_string(row));
    const auto number = [&](const char* name) {
        const auto column = hdf5::open_dataset(file.id, name, Type::int64, 1, file.bytes, where);
        const std::string at = where + ", " + name;
        if (column.shape[0] != count)
            throw Error(ErrorCode::format, at, "expected as many rows as its neighbours", "found another number");
        std::int64_t value = 0;
        hdf5::read_block(column.id, Type::int64, {row}, {1}, &value, at);
        return value;
    };
    const std::int64_t start = number("/items/text_start"), bytes = number("/items/text_bytes");
    const std::string at = where + ", /items/texts";
    const auto texts = hdf5::open_dataset(file.id, "/items/texts", Type::int8, 1, file.bytes, where, hdf5::Read::parts);
    const std::int64_t all = texts.shape[0];
    if (start < 0 || bytes < 0 || start > all || bytes > all - start || bytes > kLongestTexts)
        throw Error(ErrorCode::format, at,
                    "expected a part of its " + std::to_string(all) + " bytes, at most " + size_text(kLongestTexts),
                    "found " + std::to_string(bytes) + " from " + std::to_string(start));
    std::string text(static_cast<std::size_t>(bytes), '\0');
    hdf5::read_block(texts.id, Type::int8, {start}, {bytes}, text.data(), at);
    return readable_utf8(text);
}

}  // namespace headscope::store
