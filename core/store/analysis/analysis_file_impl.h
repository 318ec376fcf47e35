// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The open file behind AnalysisFile: blocks of its datasets, checked against the schema. Under Hdf5Lock.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/hdf5/half.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/read_handle.h"
#include "core/store/hdf5/rounded_map.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/analysis/schema.h"

namespace headscope::store {

struct AnalysisFile::Impl {
    using Shape = hdf5::Shape;
    using Type = hdf5::Type;

    explicit Impl(const std::filesystem::path& wanted)
        : path(wanted), where(shown(wanted)), source(wanted, "analysis file"), handle(wanted) {}

    std::filesystem::path path;
    std::string where;
    InputFile source;  ///< beside HDF5's own: refuses what is no regular file, and notices changes
    ReadHandle handle;
    std::shared_ptr<const AnalysisHeader> header;
    Schema schema;
    bool complete = false;
    bool mark_known = false;  ///< `complete` was read since the file was opened
    bool fixed = false;       ///< complete when opened: it no longer changes

    /// The file itself; opened again when a writer in this process took it to publish it.
    hid_t file() {
        if (handle.dropped()) mark_known = false;
        const hid_t opened = handle.get();
        if (!mark_known) read_mark();
        return opened;
    }

    void read_mark() {
        const hid_t opened = handle.get();
        std::int32_t mark = 0;
        hdf5::read_attribute(opened, "complete", Type::int32, &mark, 1, where);
        complete = mark == 1;
        mark_known = true;
        if (!complete || !hdf5::is_held(opened)) return;
        handle.drop();
        hdf5::refuse_held(where);  // no job of ours: one that is done has let go of its file
    }

    /// Bytes that bound its sizes. A file being written grows when a rule adds a table.
    std::uint64_t bytes() const { return fixed ? source.size() : handle.bytes(); }

    /// Forgets what was read of an unfinished file's structures: another process may have changed them since.
    void refresh() {
        if (!complete) handle.drop();
    }

    const DatasetSpec& spec(const std::string& name) const {
        const DatasetSpec* found = schema.find(name);
        if (found == nullptr) {
            throw Error(ErrorCode::usage, where, "expected a dataset that the file has", "found no " + escaped(name));
        }
        return *found;
    }

    hdf5::CheckedDataset open(const DatasetSpec& wanted) {
        auto opened = hdf5::open_dataset(file(), wanted.path, wanted.type, wanted.shape.size(), bytes(), where);
        if (opened.shape != wanted.shape) {
            throw Error(ErrorCode::format, where + ", " + wanted.path,
                        "expected the shape " + hdf5::shape_text(wanted.shape),
                        "found " + hdf5::shape_text(opened.shape));
        }
        return opened;
    }

    template <class T>
    std::vector<T> read(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        const auto opened = open(wanted);
        for (std::size_t i = 0; i < start.size(); ++i) {
            if (start[i] < 0 || count[i] < 0 || start[i] > wanted.shape[i] - count[i]) {
                throw Error(ErrorCode::usage, where + ", " + wanted.path,
                            "expected indices within " + hdf5::shape_text(wanted.shape),
                            "found " + hdf5::shape_text(start) + " + " + hdf5::shape_text(count));
            }
        }
        std::size_t elements = 1;
        for (const std::int64_t size : count) elements *= static_cast<std::size_t>(size);
        std::vector<T> values(elements);
        hdf5::read_block(opened.id, wanted.type, start, count, values.data(), where + ", " + wanted.path);
        if (fixed) source.check_unchanged();
        return values;
    }

    template <class T>
    static std::vector<double> widened(const std::vector<T>& values) {
        return {values.begin(), values.end()};
    }

    /// Any numeric dataset's block as float64; leading dimensions of `start` are dropped from the result's shape.
    Values block(const std::string& name, const Shape& start, const Shape& count, std::size_t dropped) {
        const DatasetSpec& wanted = spec(name);
        Values values;
        values.shape.assign(count.begin() + static_cast<std::ptrdiff_t>(dropped), count.end());
        switch (wanted.type) {
            case Type::float64:
                values.data = read<double>(wanted, start, count);
                break;
            case Type::float32:
                values.data = widened(read<float>(wanted, start, count));
                break;
            case Type::uint64:
                values.data = widened(read<std::uint64_t>(wanted, start, count));
                break;
            case Type::int64:
                values.data = widened(read<std::int64_t>(wanted, start, count));
                break;
            case Type::int32:
                values.data = widened(read<std::int32_t>(wanted, start, count));
                break;
            case Type::int16:
                values.data = wanted.scaled ? widened(floats(wanted, start, count))
                                            : widened(read<std::int16_t>(wanted, start, count));
                break;
            case Type::int8:
                values.data = widened(read<std::int8_t>(wanted, start, count));
                break;
            case Type::float16:
                values.data = widened(floats(wanted, start, count));
                break;
            case Type::text:
                throw Error(ErrorCode::internal, where, "expected a numeric dataset", "found text");
        }
        return values;
    }

    Values all(const std::string& name) {
        const Shape& shape = spec(name).shape;
        return block(name, Shape(shape.size(), 0), shape, 0);
    }

    /// Values of dataset [first, second, ...] at (first, second).
    Values at(const std::string& name, std::int64_t first, std::int64_t second) {
        Shape count = spec(name).shape, start(count.size(), 0);
        start.at(0) = first;
        start.at(1) = second;
        count[0] = count[1] = 1;
        return block(name, start, count, 2);
    }

    std::vector<float> scaled(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        Rounded rounded;
        rounded.values = read<std::int16_t>(wanted, start, count);
        const std::string at = where + ", " + wanted.path;
        hdf5::read_attribute(open(wanted).id, scale_factor, Type::float32, &rounded.scale, 1, at);
        if (!std::isnormal(rounded.scale) || rounded.scale < 0) {
            throw Error(ErrorCode::format, at, "expected a scale_factor above 0",
                        "found " + std::to_string(rounded.scale));
        }
        return rounded.back();
    }

    std::vector<float> floats(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        if (wanted.type == Type::float32) return read<float>(wanted, start, count);
        if (wanted.type == Type::int16) return scaled(wanted, start, count);
        const auto halves = read<std::uint16_t>(wanted, start, count);
        std::vector<float> values(halves.size());
        std::transform(halves.begin(), halves.end(), values.begin(), float_from_half);
        return values;
    }
};

}  // namespace headscope::store
