// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cstring>

#include "core/base/process/cancellation_scope.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store::hdf5 {
namespace {

/// HDF5 keeps an attribute inside its object's header, whose messages end at 64 KiB.
constexpr std::size_t largest_attribute = 60000;
/// Texts of variable length lie elsewhere: settings and the like, never more than this.
constexpr std::size_t largest_text = std::size_t{16} << 20U;

std::string place(const std::string& where, const std::string& name) {
    return where + ", attribute " + escaped(name);
}

Handle space_of(std::size_t count, bool scalar, const std::string& where) {
    const hsize_t size = count;
    const hid_t id = scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, nullptr);
    return Handle(check(id, ErrorCode::internal, where, "expected an HDF5 dataspace"));
}

void create(hid_t object, const std::string& name, hid_t type, hid_t space, const void* values,
            const std::string& where) {
    const std::string expected = "expected to write this attribute";
    const Handle attribute(check(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), ErrorCode::io,
                                 place(where, name), expected));
    check(H5Awrite(attribute, type, values), ErrorCode::io, place(where, name), expected);
}

std::string padded(const std::string& text, std::size_t room) {
    std::string bytes = text.substr(0, room);
    bytes.resize(std::max<std::size_t>(room, 1), '\0');
    return bytes;
}

Handle variable_text() {
    return file_type(Type::text);
}

Handle open(hid_t object, const std::string& name, const std::string& where) {
    if (H5Aexists(object, name.c_str()) <= 0) {
        check_cancellation();
        throw Error(ErrorCode::format, place(where, name), "expected this attribute", "found none");
    }
    return Handle(check(H5Aopen(object, name.c_str(), H5P_DEFAULT), ErrorCode::format, place(where, name),
                        "expected a readable attribute"));
}

}  // namespace

void write_attribute(hid_t object, const std::string& name, Type type, const void* values, std::size_t count,
                     bool scalar, const std::string& where) {
    if (count * type_size(type) > largest_attribute) {
        throw Error(ErrorCode::limit, place(where, name),
                    "expected at most " + std::to_string(largest_attribute) + " bytes",
                    "found " + std::to_string(count * type_size(type)));
    }
    create(object, name, file_type(type), space_of(count, scalar, where), values, where);
}

void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& where,
                     std::size_t room) {
    if (room > 0) {
        const std::string bytes = padded(text, room);
        create(object, name, file_type(Type::text, room), space_of(1, true, where), bytes.data(), where);
    } else {
        const std::string readable = readable_utf8(text);  // names of files are bytes
        const char* value = readable.c_str();
        create(object, name, variable_text(), space_of(1, true, where), &value, where);
    }
}

void overwrite_attribute(hid_t object, const std::string& name, Type type, const void* values, std::size_t count,
                         const std::string& where) {
    const Handle attribute = open(object, name, where);
    const Handle space(H5Aget_space(attribute));
    if (H5Sget_simple_extent_npoints(space) != static_cast<hssize_t>(count)) {
        throw Error(ErrorCode::internal, place(where, name), "expected " + std::to_string(count) + " values",
                    "found another number");
    }
    check(H5Awrite(attribute, memory_type(type), values), ErrorCode::io, place(where, name),
          "expected to write this attribute");
}

void overwrite_attribute(hid_t object, const std::string& name, const std::string& text, std::size_t room,
                         const std::string& where) {
    const std::string bytes = padded(text, room);
    const Handle attribute = open(object, name, where);
    check(H5Awrite(attribute, memory_type(Type::text, bytes.size()), bytes.data()), ErrorCode::io, place(where, name),
          "expected to write this attribute");
}

void read_attribute(hid_t object, const std::string& name, Type type, void* values, std::size_t count,
                    const std::string& where) {
    const Handle attribute = open(object, name, where);
    const Handle space(check(H5Aget_space(attribute), ErrorCode::format, place(where, name), "expected a dataspace"));
    const Handle stored(check(H5Aget_type(attribute), ErrorCode::format, place(where, name), "expected a type"));
    const Handle wanted = file_type(type);
    const hssize_t found = H5Sget_simple_extent_npoints(space);
    if (H5Tequal(stored, wanted) <= 0 || found != static_cast<hssize_t>(count)) {
        throw Error(ErrorCode::format, place(where, name),
                    "expected " + std::to_string(count) + " of " + type_name(type),
                    "found " + std::to_string(found) + " of this or another type");
    }
    check(H5Aread(attribute, wanted, values), ErrorCode::format, place(where, name), "expected a readable attribute");
}

std::string read_text_attribute(hid_t object, const std::string& name, const std::string& where) {
    const Handle attribute = open(object, name, where);
    const Handle space(check(H5Aget_space(attribute), ErrorCode::format, place(where, name), "expected a dataspace"));
    const Handle stored(check(H5Aget_type(attribute), ErrorCode::format, place(where, name), "expected a type"));
    if (H5Tget_class(stored) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) {
        throw Error(ErrorCode::format, place(where, name), "expected one text", "found another type or number");
    }
    const std::string expected = "expected a readable attribute";
    if (H5Tis_variable_str(stored) > 0) {
        char* value = nullptr;
        check(H5Aread(attribute, stored, &value), ErrorCode::format, place(where, name), expected);
        const std::size_t size = value == nullptr ? 0 : ::strnlen(value, largest_text + 1);
        std::string text(value == nullptr ? "" : value, std::min(size, largest_text));
        H5free_memory(value);
        if (size > largest_text) {
            throw Error(ErrorCode::limit, place(where, name),
                        "expected a text of at most " + std::to_string(largest_text) + " bytes", "found a longer one");
        }
        return readable_utf8(text);
    }
    const std::size_t size = H5Tget_size(stored);
    if (size == 0 || size > largest_attribute) {
        throw Error(ErrorCode::format, place(where, name), "expected a short text",
                    "found " + std::to_string(size) + " bytes");
    }
    std::string text(size, '\0');
    check(H5Aread(attribute, stored, text.data()), ErrorCode::format, place(where, name), expected);
    text.resize(text.find_last_not_of('\0') + 1);
    return readable_utf8(text);
}

}  // namespace headscope::store::hdf5
