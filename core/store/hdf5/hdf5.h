// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// HDF5's C interface behind small owners. Private to core/store: nothing else includes <hdf5.h>. Every failure becomes
// an Error, with the library's own printing off. Threads: callers hold Hdf5Lock (hdf5_lock.h).

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"

namespace headscope::store::hdf5 {

/// Owns one reference to any HDF5 object: file, group, dataset, type, space, property list.
class Handle {
public:
    Handle() = default;
    explicit Handle(hid_t id) : id_(id) {}
    Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
    Handle& operator=(Handle&& other) noexcept {
        if (this != &other) {
            reset();
            id_ = std::exchange(other.id_, -1);
        }
        return *this;
    }
    ~Handle() { reset(); }
    void reset() noexcept {
        if (id_ >= 0) H5Idec_ref(std::exchange(id_, -1));
    }
    operator hid_t() const noexcept { return id_; }

private:
    hid_t id_ = -1;
};

/// Element types of our files, little-endian. Text is UTF-8, of variable length in datasets, where every reader makes
/// strings of it (netCDF-C fails on what turns fixed lengths into text elsewhere, `_Encoding`), written as soon as the
/// dataset is made, so that a file's metadata never changes later; of fixed length, padded with NUL, in older files.
enum class Type { int8, int16, int32, int64, uint64, float16, float32, float64, text };
Handle file_type(Type type, std::size_t text_bytes = 0);  ///< text: 0 bytes is a variable length
Handle memory_type(Type type, std::size_t text_bytes = 0);
std::size_t type_size(Type type);  ///< bytes; 0 for text
std::string type_name(Type type);

/// Turns the library's printing off for this thread and plug-ins off for the process. Called by every entry point.
void prepare();

/// Throws the Error for a call that just failed: the operating system's error number if the library's stack holds one
/// (no space, permission, a lock), otherwise `code` with the innermost description.
[[noreturn]] void fail(ErrorCode code, const std::string& where, const std::string& expected);

/// Passes a result through, or throws by fail().
template <class Result>
Result check(Result result, ErrorCode code, const std::string& where, const std::string& expected) {
    if (result < 0) fail(code, where, expected);
    return result;
}

Handle create_file(const std::filesystem::path& path);
/// For reading; `where` names the file in errors.
Handle open_file(const std::filesystem::path& path, const std::string& where);
/// Another process had the file open for writing when it was opened: it may be read if it is a partial file.
bool is_held(hid_t file);
[[noreturn]] void refuse_held(const std::string& where);
/// Throws when any write to the file failed: single calls do not (hdf5_driver.h).
void check_writes(hid_t file, const std::string& where);
/// Flushes what the library holds to the operating system, and checks that all writes went well.
void flush(hid_t file, const std::string& where);

// Attributes (hdf5_attribute.cpp). Vectors of one element and scalars differ by `scalar`.
void write_attribute(hid_t object, const std::string& name, Type type, const void* values, std::size_t count,
                     bool scalar, const std::string& where);
/// Text of variable length, which h5py reads as str (readable_utf8, utf8.h); with `room` of that fixed length, so that
/// it can be overwritten.
void write_attribute(hid_t object, const std::string& name, const std::string& text, const std::string& where,
                     std::size_t room = 0);
/// Same type and size as it has: changes bytes in place.
void overwrite_attribute(hid_t object, const std::string& name, Type type, const void* values, std::size_t count,
                         const std::string& where);
void overwrite_attribute(hid_t object, const std::string& name, const std::string& text, std::size_t room,
                         const std::string& where);
/// Exactly `count` values of exactly this type.
void read_attribute(hid_t object, const std::string& name, Type type, void* values, std::size_t count,
                    const std::string& where);
std::string read_text_attribute(hid_t object, const std::string& name, const std::string& where);

// Datasets (hdf5_dataset.cpp).
using Shape = std::vector<std::int64_t>;
std::string shape_text(const Shape& shape);

/// Opens a group or dataset by absolute path, every step of which must be a hard link: no soft or external links.
Handle open_group(hid_t file, const std::string& path, const std::string& where);
bool exists(hid_t file, const std::string& path);

/// Opens a dataset and refuses external storage, virtual datasets, filters that are not built in, types other than
/// `type`, ranks other than `rank`, and sizes that the file's bytes cannot justify: of what is read in parts (an answer
/// does not take the whole into memory), all that deflate can do. Text of any length is taken.
enum class Read { whole, parts };
struct CheckedDataset {
    Handle id;
    Shape shape;
    std::size_t text_bytes = 0;  ///< of a fixed length; 0: variable
};
CheckedDataset open_dataset(hid_t file, const std::string& path, Type type, std::size_t rank, std::uint64_t file_bytes,
                            const std::string& where, Read read = Read::whole);

/// One block [start, start + count) of a dataset to or from memory of `type`, row-major.
void write_block(hid_t dataset, Type type, const Shape& start, const Shape& count, const void* values,
                 const std::string& where, std::size_t text_bytes = 0);
void read_block(hid_t dataset, Type type, const Shape& start, const Shape& count, void* values,
                const std::string& where, std::size_t text_bytes = 0);

/// All of a dataset of variable-length text, in its order; missing ones at the end are empty. A NUL character, which
/// would end such a string, is written as U+0001, bytes that are no UTF-8 as readable_utf8 (utf8.h) has them.
void write_texts(hid_t dataset, const Shape& shape, const std::vector<std::string>& texts, const std::string& where);
/// Text of either length, without NULs at the end. Throws Error(limit) beyond 256 MiB in all.
std::vector<std::string> read_texts(const CheckedDataset& dataset, const std::string& where);

}  // namespace headscope::store::hdf5
