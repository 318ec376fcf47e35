// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <limits>

#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/store/hdf5/half.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/hdf5/utf8.h"
#include "core/store/run/run_file.h"
#include "core/store/run/run_layout.h"

namespace headscope::store {
namespace {

using hdf5::Type;

// Everything read is held in memory.
constexpr std::int64_t kMostRows = 100'000'000;
constexpr std::int64_t kMostSites = std::int64_t{1} << 16U, kMostHeads = std::int64_t{1} << 20U;
constexpr hsize_t kMostMembers = 1024;

class Reader {
public:
    Reader(const std::filesystem::path& path, std::uint64_t bytes)
        : where_(shown(path)), bytes_(bytes), file_(hdf5::open_file(path, where_)) {}

    RunRecord run() {
        attributes();
        record_.job = texts("/job", {}).front();
        record_.config_json = texts("/model/config", {}).front();
        record_.mixers = texts("/model/mixer", {-1});
        sites();
        series("/training", record_.training, training_series());
        series("/validation", record_.validation, validation_series());
        probes();
        record_.snapshots = table("/snapshots", snapshot_columns());
        record_.controls = table("/controls", control_columns());
        record_.samples = table("/samples", sample_columns());
        record_.log = table("/log", log_columns());
        return std::move(record_);
    }

private:
    [[noreturn]] void refuse(const std::string& path, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, where_ + ", " + path, expected, found);
    }

    void attributes() {
        const hdf5::Handle root = hdf5::open_group(file_, "/", where_);
        if (H5Aexists(root, "format") <= 0 || hdf5::read_text_attribute(root, "format", where_) != kRunFormat) {
            throw Error(ErrorCode::format, where_, "expected a run file (attribute format = headscope-run)",
                        "found another HDF5 file");
        }
        std::int32_t version = 0;
        hdf5::read_attribute(root, "format_version", Type::int32, &version, 1, where_);
        version_ = version;
        if (version < 1 || version > kRunVersion) {
            throw Error(ErrorCode::unsupported, where_, "expected format_version 1 or " + std::to_string(kRunVersion),
                        "found " + std::to_string(version));
        }
        for (const RunText& text : run_texts()) {
            if (text.late && H5Aexists(root, text.name) <= 0) continue;
            record_.*text.member = hdf5::read_text_attribute(root, text.name, where_);
        }
        for (const RunNumber& number : run_numbers()) {
            hdf5::read_attribute(root, number.name, Type::int64, &(record_.*number.member), 1, where_);
        }
    }

    /// -1 in `shape`: any size. Empty ones are legal.
    hdf5::CheckedDataset open(const std::string& path, Type type, const hdf5::Shape& shape) {
        auto opened = hdf5::open_dataset(file_, path, type, shape.size(), bytes_, where_);
        for (std::size_t i = 0; i < shape.size(); ++i) {
            if (opened.shape[i] > kMostRows || (shape[i] >= 0 && shape[i] != opened.shape[i])) {
                refuse(path, "expected the shape " + hdf5::shape_text(shape),
                       "found " + hdf5::shape_text(opened.shape));
            }
        }
        return opened;
    }

    template <class Number>
    std::vector<Number> numbers(const std::string& path, Type type, const hdf5::Shape& shape) {
        const auto opened = open(path, type, shape);
        std::size_t count = 1;
        for (const std::int64_t size : opened.shape) count *= static_cast<std::size_t>(size);
        std::vector<Number> values(count);
        hdf5::read_block(opened.id, type, hdf5::Shape(opened.shape.size(), 0), opened.shape, values.data(),
                         where_ + ", " + path);
        return values;
    }

    std::vector<std::string> texts(const std::string& path, const hdf5::Shape& shape) {
        const auto opened = open(path, Type::text, shape);
        std::vector<std::string> values = hdf5::read_texts(opened, where_ + ", " + path);
        for (std::string& value : values) value = readable_utf8(value);
        return values;
    }

    void sites() {
        const auto count = static_cast<std::int64_t>(numbers<std::int32_t>("/sites/layer", Type::int32, {-1}).size());
        if (count > kMostSites) {
            refuse("/sites", "expected at most " + std::to_string(kMostSites), "found " + std::to_string(count));
        }
        record_.sites.resize(static_cast<std::size_t>(count));
        for (const SiteText& column : site_texts()) {
            const auto values = texts(std::string("/sites/") + column.name, {count});
            for (std::size_t i = 0; i < values.size(); ++i) record_.sites[i].*column.member = values[i];
        }
        for (const SiteNumber& column : site_numbers()) {
            const std::string path = std::string("/sites/") + column.name;
            if (column.late && !hdf5::exists(file_, path)) continue;
            const auto values = numbers<std::int32_t>(path, Type::int32, {count});
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (values[i] < 0 || values[i] > kMostHeads) {
                    refuse(path, "expected 0 to " + std::to_string(kMostHeads), "found " + std::to_string(values[i]));
                }
                std::visit(
                    [&](auto member) {
                        using Value = std::remove_reference_t<decltype(record_.sites[i].*member)>;
                        record_.sites[i].*member = static_cast<Value>(values[i]);
                    },
                    column.member);
            }
        }
    }

    std::vector<std::int64_t> steps(const std::string& path) {
        auto values = numbers<std::int64_t>(path, Type::int64, {-1});
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] < 0 || (i > 0 && values[i] <= values[i - 1])) {
                refuse(path, "expected steps that rise from 0", "found " + std::to_string(values[i]));
            }
        }
        return values;
    }

    template <class Table>
    void series(const std::string& group, Table& table, const std::vector<RunSeries<Table>>& columns) {
        table.step = steps(group + "/step");
        const auto count = static_cast<std::int64_t>(table.step.size());
        for (const RunSeries<Table>& column : columns) {
            const std::string path = group + "/" + column.name;
            if (column.late && !hdf5::exists(file_, path)) {
                table.*std::get<std::vector<double> Table::*>(column.member) =
                    std::vector<double>(table.step.size(), std::numeric_limits<double>::quiet_NaN());
                continue;
            }
            if (const auto* whole = std::get_if<std::vector<std::int64_t> Table::*>(&column.member)) {
                table.** whole = numbers<std::int64_t>(path, Type::int64, {count});
            } else {
                table.*std::get<std::vector<double> Table::*>(column.member) =
                    numbers<double>(path, Type::float64, {count});
            }
        }
    }

    std::vector<std::string> members(const std::string& path) {
        const hdf5::Handle group = hdf5::open_group(file_, path, where_);
        H5G_info_t info{};
        hdf5::check(H5Gget_info(group, &info), ErrorCode::format, where_ + ", " + path, "expected a group");
        std::vector<std::string> names;
        for (hsize_t i = 0; i < std::min(info.nlinks, kMostMembers); ++i) {
            std::array<char, 80> name{};
            const ssize_t size =
                H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name.data(), name.size(), H5P_DEFAULT);
            hdf5::check(size, ErrorCode::format, where_ + ", " + path, "expected the names of the group");
            if (size < static_cast<ssize_t>(name.size())) names.emplace_back(name.data());
        }
        return names;
    }

    void probes() {
        RunProbes& probes = record_.probes;
        probes.step = steps("/probe/step");
        const std::int64_t count = probes.count(), n = static_cast<std::int64_t>(record_.sites.size());
        const std::int64_t heads = record_.heads();
        probes.seconds = numbers<double>("/probe/seconds", Type::float64, {count});
        for (const std::string& name : members("/probe")) {
            if (!is_indicator_name(name)) continue;
            const std::int64_t width = indicator_width(name);
            hdf5::Shape shape{count, n};
            if (width > 0) shape.push_back(heads);
            if (width > 1) shape.push_back(width);
            RunIndicator indicator{name, width > 0, std::max<std::int64_t>(width, 1), {}};
            indicator.values = numbers<double>("/probe/" + name, Type::float64, shape);
            probes.indicators.push_back(std::move(indicator));
        }
        if (!hdf5::exists(file_, "/probe/thumbnails")) return;
        const Type type = version_ == 1 ? Type::float16 : Type::float32;
        const auto opened = open("/probe/thumbnails", type, {count, n, heads, -1, -1});
        const std::int64_t size = opened.shape[3];
        if (size != opened.shape[4] || size < 1) {
            refuse("/probe/thumbnails", "expected square thumbnails", "found " + hdf5::shape_text(opened.shape));
        }
        probes.thumbnail_size = size;
        const hdf5::Shape shape{count, n, heads, size, size};
        if (version_ == 1) {
            probes.thumbnails = numbers<std::uint16_t>("/probe/thumbnails", type, shape);
            return;
        }
        const auto values = numbers<float>("/probe/thumbnails", type, shape);
        probes.thumbnails.resize(values.size());
        std::transform(values.begin(), values.end(), probes.thumbnails.begin(), half_from_float);
    }

    template <class Row>
    std::vector<Row> table(const std::string& group, const std::vector<RunColumn<Row>>& columns) {
        std::vector<Row> rows;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const RunColumn<Row>& column = columns[c];
            const std::string path = group + "/" + column.name;
            const hdf5::Shape shape{c == 0 ? -1 : static_cast<std::int64_t>(rows.size())};
            const auto fill = [&](const auto& values, auto set) {
                rows.resize(values.size());
                for (std::size_t i = 0; i < values.size(); ++i) set(rows[i], values[i]);
            };
            if (const auto* text = std::get_if<std::string Row::*>(&column.member)) {
                fill(texts(path, shape), [&](Row& row, const std::string& value) { row.** text = value; });
            } else if (const auto* real = std::get_if<double Row::*>(&column.member)) {
                fill(numbers<double>(path, Type::float64, shape), [&](Row& row, double value) { row.** real = value; });
            } else if (const auto* whole = std::get_if<std::int64_t Row::*>(&column.member)) {
                fill(numbers<std::int64_t>(path, Type::int64, shape),
                     [&](Row& row, std::int64_t value) { row.** whole = value; });
            } else {
                const auto flag = std::get<bool Row::*>(column.member);
                fill(numbers<std::int64_t>(path, Type::int64, shape),
                     [&](Row& row, std::int64_t value) { row.*flag = value != 0; });
            }
        }
        return rows;
    }

    const std::string where_;
    const std::uint64_t bytes_;
    hdf5::Handle file_;
    RunRecord record_;
    std::int32_t version_ = 0;
};

}  // namespace

RunRecord read_run_file(const std::filesystem::path& path) {
    const InputFile source(path, "run file");  // refuses what is no regular file
    const Hdf5Lock lock;
    hdf5::prepare();
    RunRecord record = Reader(path, source.size()).run();
    std::error_code ignored;
    record.name = std::filesystem::absolute(path, ignored).parent_path().filename().string();
    return record;
}

}  // namespace headscope::store
