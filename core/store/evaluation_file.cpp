// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/evaluation_file.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <variant>

#include "core/base/input_file.h"
#include "core/base/os_error.h"
#include "core/base/output_file.h"
#include "core/store/hdf5.h"
#include "core/store/hdf5_lock.h"
#include "core/store/scale_storage.h"
#include "core/store/utf8.h"

namespace headscope::store {
namespace {

using hdf5::Type;

constexpr const char* kFormat = "headscope-evaluation";
constexpr std::int32_t kVersion = 2;  // 1: texts of fixed length
/// More than anybody's tables; a file that claims more is not ours.
constexpr std::int64_t kMostRows = 10'000'000;
/// Bytes of what is a word of ours, as a figure writes it beside its rows.
constexpr std::size_t kLongestWord = 256;

/// A member of a table's row: what the dataset is called, and where its values are.
template <class Row>
struct Column {
    const char* name;
    const char* long_name;
    std::variant<std::string Row::*, std::int64_t Row::*, double Row::*> member;
};

const std::vector<Column<EvaluatedModel>>& model_columns() {
    using M = EvaluatedModel;
    static const std::vector<Column<M>> columns{
        {"name", "name of the model", &M::name},
        {"path", "where it was read from", &M::path},
        {"sha256", "SHA-256 of the weights", &M::sha256},
        {"mixer", "token mixer of the layers that are not standard", &M::mixer},
        {"layout", "which layers are standard", &M::layout},
        {"layer_mixers", "token mixer of each layer", &M::layer_mixers},
        {"skipped", "layers left out", &M::skipped},
        {"parameters", "number of parameters", &M::parameters},
        {"layers", "number of layers", &M::layers},
        {"training_length", "tokens of the longest text in training; where that is not known, the model's positions",
         &M::training_length},
        {"seed", "seed of the training job, -1: not known", &M::seed}};
    return columns;
}

const std::vector<Column<EvaluationResult>>& result_columns() {
    using R = EvaluationResult;
    static const std::vector<Column<R>> columns{{"model", "index of the model in /models", &R::model},
                                                {"task", "task", &R::task},
                                                {"metric", "metric", &R::metric},
                                                {"length", "context length in tokens", &R::length},
                                                {"value", "value of the metric", &R::value},
                                                {"error", "standard error of the value", &R::error},
                                                {"count", "tokens or answers behind the value", &R::count}};
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
        } else {
            std::vector<double> values;
            for (const Row& row : rows) values.push_back(row.*std::get<double Row::*>(column.member));
            write(Type::float64, values.data());
        }
    }
}

template <class Row>
std::vector<Row> read_table(hid_t file, const std::string& group, const std::vector<Column<Row>>& columns,
                            std::uint64_t file_bytes, const std::string& where) {
    std::vector<Row> rows;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        const auto& column = columns[c];
        const Type types[] = {Type::text, Type::int64, Type::float64};
        const Type type = types[column.member.index()];
        const std::string path = group + "/" + column.name, at = where + ", " + path;
        const auto opened = hdf5::open_dataset(file, path, type, 1, file_bytes, where);
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
        } else {
            std::vector<double> values(rows.size());
            read(values.data());
            for (std::size_t i = 0; i < rows.size(); ++i) rows[i].*std::get<double Row::*>(column.member) = values[i];
        }
    }
    return rows;
}

/// A file that somebody else wrote may hold any number.
void check(const Evaluation& evaluation, const std::string& where, ErrorCode code) {
    const auto word = [&](const char* table, const char* name, const std::string& text) {
        if (text.size() <= kLongestWord) return;
        throw Error(code, where + ", " + table + name,
                    "expected at most " + std::to_string(kLongestWord) + " bytes in a row",
                    "found " + std::to_string(text.size()));
    };
    for (const auto& model : evaluation.models) {
        word("/models/", "mixer", model.mixer);
        word("/models/", "layout", model.layout);
    }
    for (const auto& result : evaluation.results) {
        word("/results/", "task", result.task);
        word("/results/", "metric", result.metric);
    }
    for (const auto& result : evaluation.results) {
        if (result.model >= 0 && result.model < static_cast<std::int64_t>(evaluation.models.size())) continue;
        throw Error(code, where + ", /results/model",
                    "expected rows of /models, which has " + std::to_string(evaluation.models.size()),
                    "found row " + std::to_string(result.model));
    }
}

std::string now() {
    const std::time_t time = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

std::string shortest(double value) {
    if (!std::isfinite(value)) return std::isnan(value) ? "" : value > 0 ? "inf" : "-inf";
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string quoted(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string result = "\"";
    for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
    return result + "\"";
}

template <class Row>
std::string cell(const Row& row, const Column<Row>& column) {
    if (const auto* text = std::get_if<std::string Row::*>(&column.member)) return quoted(row.**text);
    if (const auto* integer = std::get_if<std::int64_t Row::*>(&column.member)) return std::to_string(row.**integer);
    return shortest(row.*std::get<double Row::*>(column.member));
}

}  // namespace

const EvaluationResult* Evaluation::find(std::int64_t model, const std::string& task, const std::string& metric,
                                         std::int64_t length) const {
    const auto it = std::find_if(results.begin(), results.end(), [&](const EvaluationResult& result) {
        return result.model == model && result.task == task && result.metric == metric && result.length == length;
    });
    return it == results.end() ? nullptr : &*it;
}

void write_evaluation(const std::filesystem::path& path, const Evaluation& evaluation,
                      std::span<const std::filesystem::path> inputs) {
    const std::string where = shown(path);
    check(evaluation, where, ErrorCode::internal);
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
        text("created", evaluation.created.empty() ? now() : evaluation.created);
        text("settings", evaluation.settings_json);
        write_table(file, "/models", "model", evaluation.models, model_columns(), where);
        write_table(file, "/results", "result", evaluation.results, result_columns(), where);
        hdf5::flush(file, where);
    }
    output.publish();
}

Evaluation read_evaluation(const std::filesystem::path& path) {
    const std::string where = shown(path);
    const InputFile source(path, "evaluation file");  // refuses what is no regular file
    const Hdf5Lock lock;
    hdf5::prepare();
    const hdf5::Handle file = hdf5::open_file(path, where);
    if (const std::string format = hdf5::read_text_attribute(file, "format", where); format != kFormat)
        throw Error(ErrorCode::format, where, "expected an evaluation file", "found format " + escaped(format));
    std::int32_t version = 0;
    hdf5::read_attribute(file, "format_version", Type::int32, &version, 1, where);
    if (version < 1 || version > kVersion)
        throw Error(ErrorCode::unsupported, where, "expected format version 1 or " + std::to_string(kVersion),
                    "found " + std::to_string(version));
    Evaluation evaluation;
    evaluation.program_version = hdf5::read_text_attribute(file, "program_version", where);
    evaluation.created = hdf5::read_text_attribute(file, "created", where);
    evaluation.settings_json = hdf5::read_text_attribute(file, "settings", where);
    evaluation.models = read_table(file, "/models", model_columns(), source.size(), where);
    evaluation.results = read_table(file, "/results", result_columns(), source.size(), where);
    check(evaluation, where, ErrorCode::format);
    return evaluation;
}

std::string evaluation_csv(const Evaluation& evaluation) {
    std::string text;
    for (const auto& column : model_columns()) text += std::string(text.empty() ? "" : ",") + column.name;
    for (const auto& column : result_columns())
        if (std::string_view(column.name) != "model") text += std::string(",") + column.name;
    text += "\n";
    for (const auto& result : evaluation.results) {
        const EvaluatedModel& model = evaluation.models.at(static_cast<std::size_t>(result.model));
        std::string line;
        for (const auto& column : model_columns()) line += (line.empty() ? "" : ",") + cell(model, column);
        for (const auto& column : result_columns())
            if (std::string_view(column.name) != "model") line += "," + cell(result, column);
        text += line + "\n";
    }
    return text;
}

}  // namespace headscope::store
