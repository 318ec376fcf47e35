// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/scale_storage.h"

#include <hdf5_hl.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

namespace headscope::store {
namespace {

using hdf5::check;
using hdf5::Handle;
using hdf5::Type;

constexpr const char* wish = "expected to write this analysis file";

std::string base_name(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

/// A fast deflate level: texts of items grow by a tenth against the usual 6, in a fifth of the time.
constexpr unsigned kDeflate = 1;

/// netCDF's name of a dimension without numbers; readers match these words.
std::string bare_name(std::int64_t size) {
    char text[80];
    std::snprintf(text, sizeof text, "This is a netCDF dimension but not a netCDF variable.%10lld",
                  static_cast<long long>(size));
    return text;
}

/// Creation properties of every dataset: contiguous, allocated early, no times (they would differ between equal runs).
Handle creation_list(Type type, Fill fill, const std::string& where) {
    Handle list(check(H5Pcreate(H5P_DATASET_CREATE), ErrorCode::internal, where, "expected an HDF5 property list"));
    const auto set = [&](herr_t result) {
        check(result, ErrorCode::internal, where, "expected HDF5 to take its settings");
    };
    set(H5Pset_layout(list, H5D_CONTIGUOUS));
    set(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
    set(H5Pset_obj_track_times(list, false));
    // Unwritten text would be dangling pointers.
    set(H5Pset_fill_time(list, type == Type::text   ? H5D_FILL_TIME_ALLOC
                               : fill == Fill::none ? H5D_FILL_TIME_NEVER
                                                    : H5D_FILL_TIME_IFSET));
    if (fill == Fill::none || type == Type::text) return list;
    const Handle memory = hdf5::memory_type(type);
    if (type == Type::float64) {
        const double none = std::numeric_limits<double>::quiet_NaN();
        set(H5Pset_fill_value(list, memory, &none));
    } else if (type == Type::float32) {
        const float none = std::numeric_limits<float>::quiet_NaN();
        set(H5Pset_fill_value(list, memory, &none));
    } else if (type == Type::float16) {
        const std::uint16_t none = 0x7E00;
        set(H5Pset_fill_value(list, memory, &none));
    } else if (type == Type::int16 || type == Type::int32 || type == Type::int64) {
        const std::int64_t none = -1;
        set(H5Pset_fill_value(list, H5T_NATIVE_INT64, &none));
    }
    return list;
}

Handle create(hid_t file, const std::string& path, hid_t type, const hdf5::Shape& shape, hid_t creation,
              const std::string& where) {
    const std::string at = where + ", " + path;
    const std::vector<hsize_t> sizes(shape.begin(), shape.end());
    const Handle space(check(
        sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
        ErrorCode::internal, at, "expected an HDF5 dataspace"));
    const Handle links(check(H5Pcreate(H5P_LINK_CREATE), ErrorCode::internal, at, "expected an HDF5 property list"));
    check(H5Pset_create_intermediate_group(links, 1), ErrorCode::internal, at, "expected HDF5 to take its settings");
    return Handle(
        check(H5Dcreate2(file, path.c_str(), type, space, links, creation, H5P_DEFAULT), ErrorCode::io, at, wish));
}

void describe(hid_t dataset, const std::string& path, const std::string& long_name, const std::string& units,
              const std::string& where) {
    const std::string at = where + ", " + path;
    if (!long_name.empty()) hdf5::write_attribute(dataset, "long_name", long_name, at);
    if (!units.empty()) hdf5::write_attribute(dataset, "units", units, at);
}

}  // namespace

Handle create_scale(hid_t file, const ScaleSpec& spec, const std::string& where) {
    const Type type = spec.bare ? Type::int8 : spec.values.empty() ? Type::int32 : Type::float64;
    const Handle list = creation_list(type, spec.bare ? Fill::absent : Fill::none, where);
    if (spec.bare) {
        check(H5Pset_alloc_time(list, H5D_ALLOC_TIME_LATE), ErrorCode::internal, where,
              "expected HDF5 to take its settings");
    }
    Handle scale = create(file, spec.path, hdf5::file_type(type), {spec.size}, list, where);
    if (spec.bare) {
        check(H5DSset_scale(scale, bare_name(spec.size).c_str()), ErrorCode::io, where + ", " + spec.path, wish);
        return scale;
    }
    if (spec.values.empty()) {
        std::vector<std::int32_t> indices(static_cast<std::size_t>(spec.size));
        std::iota(indices.begin(), indices.end(), 0);
        hdf5::write_block(scale, type, {0}, {spec.size}, indices.data(), where + ", " + spec.path);
    } else {
        hdf5::write_block(scale, type, {0}, {spec.size}, spec.values.data(), where + ", " + spec.path);
    }
    check(H5DSset_scale(scale, base_name(spec.path).c_str()), ErrorCode::io, where + ", " + spec.path, wish);
    describe(scale, spec.path, spec.long_name, spec.units, where);
    return scale;
}

Handle create_dataset(hid_t file, const DatasetSpec& spec, const std::string& where) {
    const Handle list = creation_list(spec.type, spec.fill, where);
    if (spec.chunk > 0) {
        const auto size = static_cast<hsize_t>(spec.chunk);
        const auto set = [&](herr_t result) {
            check(result, ErrorCode::internal, where, "expected HDF5 to take its settings");
        };
        set(H5Pset_alloc_time(list, H5D_ALLOC_TIME_INCR));
        set(H5Pset_chunk(list, 1, &size));
        set(H5Pset_deflate(list, kDeflate));
    }
    Handle dataset = create(file, spec.path, hdf5::file_type(spec.type), spec.shape, list, where);
    describe(dataset, spec.path, spec.long_name, spec.units, where);
    // Its name and meaning are those of the CF conventions; who writes the numbers says what it is.
    constexpr float one = 1;
    if (spec.scaled)
        hdf5::write_attribute(dataset, scale_factor, Type::float32, &one, 1, true, where + ", " + spec.path);
    constexpr double not_compared = std::numeric_limits<double>::quiet_NaN();
    if (spec.compared)
        hdf5::write_attribute(dataset, largest_deviation, Type::float64, &not_compared, 1, true,
                              where + ", " + spec.path);
    for (std::size_t i = 0; i < spec.dimensions.size(); ++i) {
        check(H5DSset_label(dataset, static_cast<unsigned>(i), base_name(spec.dimensions[i]).c_str()), ErrorCode::io,
              where + ", " + spec.path, wish);
    }
    return dataset;
}

void attach_scale(hid_t dataset, hid_t scale, std::size_t dimension, const std::string& where) {
    check(H5DSattach_scale(dataset, scale, static_cast<unsigned>(dimension)), ErrorCode::io, where, wish);
}

}  // namespace headscope::store
