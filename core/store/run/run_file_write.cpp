// SPDX-License-Identifier: GPL-3.0-or-later
#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/store/hdf5/half.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/hdf5/utf8.h"
#include "core/store/run/run_file.h"
#include "core/store/run/run_layout.h"

namespace headscope::store {
namespace {

using hdf5::Handle;
using hdf5::Type;
using Names = std::vector<std::string>;

/// At most `most` bytes, cut between characters.
std::string cut(const std::string& text, std::size_t most) {
    std::string readable = readable_utf8(text);
    if (readable.size() <= most) return readable;
    constexpr std::string_view ellipsis = "…";
    std::size_t size = most - ellipsis.size();
    while (size > 0 && (static_cast<unsigned char>(readable[size]) & 0xC0U) == 0x80U) --size;
    return readable.substr(0, size).append(ellipsis);
}

class Creator {
public:
    Creator(const std::filesystem::path& path, const RunRecord& record)
        : where_(shown(path)), record_(record), file_(hdf5::create_file(path)) {}

    void run() {
        attributes();
        scale("/site", static_cast<std::int64_t>(record_.sites.size()), "attention site, counted from 0");
        scale("/head", record_.heads(), "head, counted from 0");
        scale("/layer", static_cast<std::int64_t>(record_.mixers.size()), "layer, counted from 0");
        texts("/job", {}, {record_.job}, "the training job, TOML");
        texts("/model/config", {}, {record_.config_json}, "the model's configuration as JSON");
        texts("/model/mixer", {"/layer"}, record_.mixers, "mixer of each layer");
        sites();
        series("/training", record_.training, training_series());
        series("/validation", record_.validation, validation_series());
        probes();
        table("/snapshots", "snapshot", record_.snapshots, snapshot_columns());
        table("/controls", "control", record_.controls, control_columns());
        table("/samples", "sample", record_.samples, sample_columns());
        table("/log", "line", record_.log, log_columns());
        hdf5::flush(file_, where_);
    }

private:
    void attributes() {
        hdf5::write_attribute(file_, "format", kRunFormat, where_);
        hdf5::write_attribute(file_, "format_version", Type::int32, &kRunVersion, 1, true, where_);
        for (const RunText& text : run_texts()) {
            hdf5::write_attribute(file_, text.name, cut(record_.*text.member, kLongestLogLine), where_);
        }
        for (const RunNumber& number : run_numbers()) {
            hdf5::write_attribute(file_, number.name, Type::int64, &(record_.*number.member), 1, true, where_);
        }
    }

    void scale(const std::string& path, std::int64_t size, const std::string& long_name) {
        scales_[path] = create_scale(file_, {path, size, long_name, {}, ""}, where_);
        sizes_[path] = size;
    }

    /// A column that labels the others of its group: steps, which are not 0, 1, 2, ...
    void step_scale(const std::string& path, const std::vector<std::int64_t>& steps) {
        sizes_[path] = static_cast<std::int64_t>(steps.size());
        DatasetSpec spec{path, Type::int64, {}, {sizes_[path]}, "", "updates so far", Fill::absent, 0};
        Handle created = create_dataset(file_, spec, where_);
        if (!steps.empty()) hdf5::write_block(created, Type::int64, {0}, spec.shape, steps.data(), at(path));
        hdf5::check(H5DSset_scale(created, path.substr(path.rfind('/') + 1).c_str()), ErrorCode::io, at(path),
                    "expected to write this run file");
        scales_[path] = std::move(created);
    }

    /// Fills in the shape.
    Handle create(DatasetSpec& spec) {
        for (const std::string& name : spec.dimensions) spec.shape.push_back(sizes_.at(name));
        Handle created = create_dataset(file_, spec, where_);
        for (std::size_t i = 0; i < spec.dimensions.size(); ++i) {
            attach_scale(created, scales_.at(spec.dimensions[i]), i, at(spec.path));
        }
        return created;
    }

    void write(DatasetSpec spec, const void* values) {
        const Handle created = create(spec);
        hdf5::write_block(created, spec.type, hdf5::Shape(spec.shape.size(), 0), spec.shape, values, at(spec.path));
        hdf5::check_writes(file_, where_);
    }

    /// `values` must be as many as the dimensions say: what is written is read from there.
    template <class Number>
    void numbers(const std::string& path, const Names& dimensions, Type type, const std::vector<Number>& values,
                 const std::string& units, const std::string& long_name) {
        std::int64_t count = 1;
        for (const std::string& name : dimensions) count *= sizes_.at(name);
        if (count != static_cast<std::int64_t>(values.size())) {
            throw Error(ErrorCode::internal, at(path), "expected " + std::to_string(count) + " values",
                        "found " + std::to_string(values.size()));
        }
        write({path, type, dimensions, {}, units, long_name, Fill::absent, 0}, values.data());
    }

    void texts(const std::string& path, const Names& dimensions, const std::vector<std::string>& values,
               const std::string& long_name, std::size_t most_bytes = std::string::npos) {
        std::vector<std::string> readable;
        std::size_t bytes = 1;
        for (const std::string& value : values) {
            readable.push_back(cut(value, most_bytes));
            bytes = std::max(bytes, readable.back().size());
        }
        DatasetSpec spec{path, Type::text, dimensions, {}, "", long_name, Fill::absent, bytes};
        const Handle made = create(spec);
        hdf5::write_texts(made, spec.shape, readable, at(path));
        hdf5::check_writes(file_, where_);
    }

    void sites() {
        for (const SiteText& column : site_texts()) {
            std::vector<std::string> values;
            for (const Site& site : record_.sites) values.push_back(site.*column.member);
            texts(std::string("/sites/") + column.name, {"/site"}, values, column.long_name);
        }
        for (const SiteNumber& column : site_numbers()) {
            std::vector<std::int32_t> values;
            for (const Site& site : record_.sites) {
                std::visit([&](auto member) { values.push_back(static_cast<std::int32_t>(site.*member)); },
                           column.member);
            }
            numbers(std::string("/sites/") + column.name, {"/site"}, Type::int32, values, "", column.long_name);
        }
    }

    template <class Table>
    void series(const std::string& group, const Table& table, const std::vector<RunSeries<Table>>& columns) {
        step_scale(group + "/step", table.step);
        for (const RunSeries<Table>& column : columns) {
            const std::string path = group + "/" + column.name;
            if (const auto* whole = std::get_if<std::vector<std::int64_t> Table::*>(&column.member)) {
                numbers(path, {group + "/step"}, Type::int64, table.**whole, column.units, column.long_name);
            } else {
                std::vector<double> values = table.*std::get<std::vector<double> Table::*>(column.member);
                if (column.late) values.resize(table.step.size(), std::numeric_limits<double>::quiet_NaN());
                numbers(path, {group + "/step"}, Type::float64, values, column.units, column.long_name);
            }
        }
        // Perplexity repeats the loss for readers of the file; we do not read it.
        std::vector<double> perplexity(table.loss.size());
        std::transform(table.loss.begin(), table.loss.end(), perplexity.begin(),
                       [](double loss) { return std::exp(loss); });
        numbers(group + "/perplexity", {group + "/step"}, Type::float64, perplexity, "", "exp of the loss");
    }

    void probes() {
        const RunProbes& probes = record_.probes;
        step_scale("/probe/step", probes.step);
        numbers("/probe/seconds", {"/probe/step"}, Type::float64, probes.seconds, "s", "time that it took");
        scale("/local_distance", 4, "distance between query and key");
        for (const RunIndicator& indicator : probes.indicators) {
            Names dimensions{"/probe/step", "/site"};
            if (indicator.per_head) dimensions.emplace_back("/head");
            if (indicator.width > 1) dimensions.emplace_back("/local_distance");
            numbers("/probe/" + indicator.name, dimensions, Type::float64, indicator.values, "",
                    "mean over the probe's sequences, raw");
        }
        if (probes.thumbnail_size == 0) return;
        scale("/thumbnail_query", probes.thumbnail_size, "block of queries");
        scale("/thumbnail_key", probes.thumbnail_size, "block of keys");
        // netCDF-C breaks its heap on float16.
        std::vector<float> thumbnails(probes.thumbnails.size());
        std::transform(probes.thumbnails.begin(), probes.thumbnails.end(), thumbnails.begin(), float_from_half);
        numbers("/probe/thumbnails", {"/probe/step", "/site", "/head", "/thumbnail_query", "/thumbnail_key"},
                Type::float32, thumbnails, "", "block means of the first sequence's weights");
    }

    template <class Row>
    void table(const std::string& group, const std::string& index, const std::vector<Row>& rows,
               const std::vector<RunColumn<Row>>& columns) {
        const std::string scale_path = group + "/" + index;
        scale(scale_path, static_cast<std::int64_t>(rows.size()), "row of the table");
        for (const RunColumn<Row>& column : columns) {
            const std::string path = group + "/" + column.name;
            if (const auto* text = std::get_if<std::string Row::*>(&column.member)) {
                std::vector<std::string> values;
                for (const Row& row : rows) values.push_back(row.**text);
                texts(path, {scale_path}, values, column.long_name, column.most_bytes);
            } else if (const auto* real = std::get_if<double Row::*>(&column.member)) {
                std::vector<double> values;
                for (const Row& row : rows) values.push_back(row.**real);
                numbers(path, {scale_path}, Type::float64, values, column.units, column.long_name);
            } else {
                std::vector<std::int64_t> values;
                for (const Row& row : rows) {
                    const auto* whole = std::get_if<std::int64_t Row::*>(&column.member);
                    values.push_back(whole ? row.**whole : row.*std::get<bool Row::*>(column.member) ? 1 : 0);
                }
                numbers(path, {scale_path}, Type::int64, values, column.units, column.long_name);
            }
        }
    }

    std::string at(const std::string& path) const { return where_ + ", " + path; }

    const std::string where_;
    const RunRecord& record_;
    Handle file_;
    std::map<std::string, Handle> scales_;
    std::map<std::string, std::int64_t> sizes_;
};

}  // namespace

void write_run_file(const std::filesystem::path& path, const RunRecord& record) {
    OutputFile output(path, {}, "run file");
    {
        const Hdf5Lock lock;
        hdf5::prepare();
        Creator(output.partial_path(), record).run();
    }
    const RunRecord again = read_run_file(output.partial_path());
    if (again.training.step.size() != record.training.step.size() || again.probes.step != record.probes.step) {
        throw Error(ErrorCode::io, shown(output.partial_path()), "expected the run as it was written",
                    "found another number of steps");
    }
    output.publish();
}

}  // namespace headscope::store
