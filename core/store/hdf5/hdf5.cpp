// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/hdf5.h"

#include <cerrno>
#include <string_view>

#include "core/base/process/cancellation_scope.h"
#include "core/base/process/os_error.h"
#include "core/store/hdf5/hdf5_driver.h"

namespace headscope::store::hdf5 {
namespace {

struct Failure {
    std::string innermost;
    bool lock = false;
};

/// Walks from the innermost call outwards.
herr_t collect(unsigned, const H5E_error2_t* error, void* out) {
    auto& failure = *static_cast<Failure*>(out);
    const std::string_view text = error->desc != nullptr ? error->desc : "";
    if (failure.innermost.empty()) failure.innermost = text;
    if (text.find("unable to lock") != std::string_view::npos) failure.lock = true;
    return 0;
}

Error lock_error(const std::string& where, const std::string& found) {
    return {ErrorCode::io, where, "expected a file without a writer, on a file system with locks",
            found + " (HDF5_USE_FILE_LOCKING=FALSE in the environment turns HDF5's locks off)"};
}

Handle file_access(const std::string& where) {
    Handle list(check(H5Pcreate(H5P_FILE_ACCESS), ErrorCode::internal, where, "expected an HDF5 property list"));
    const auto set = [&](herr_t result) {
        check(result, ErrorCode::internal, where, "expected HDF5 to take its settings");
    };
    set(H5Pset_fclose_degree(list, H5F_CLOSE_STRONG));
    // The oldest format that holds the data: every HDF5 since 1.8 reads it, and it has no status flags, which would
    // keep a killed job's file from being opened.
    set(H5Pset_libver_bounds(list, H5F_LIBVER_EARLIEST, H5F_LIBVER_V18));
    set(use_latching_driver(list));
    // Writes go straight to the system, so that nothing can fail later than the call that caused it.
    set(H5Pset_sieve_buf_size(list, 0));
    return list;
}

}  // namespace

void prepare() {
    thread_local const bool ready = [] {
        H5open();
        H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
        H5PLset_loading_state(0);
        return true;
    }();
    static_cast<void>(ready);
}

void fail(ErrorCode code, const std::string& where, const std::string& expected) {
    Failure failure;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &failure);
    int number = system_error_on_stack();
    if (const int refusal = take_refusal(); number == 0) number = refusal;
    H5Eclear2(H5E_DEFAULT);
    check_cancellation();  // who was asked to stop needs no other reason
    if (failure.lock) {
        throw lock_error(where, number != 0 ? os_error_text(number) : "found: " + escaped(failure.innermost));
    }
    if (number != 0) {
        throw Error(number == ENOMEM ? ErrorCode::memory : ErrorCode::io, where, expected, os_error_text(number));
    }
    throw Error(
        code, where, expected,
        failure.innermost.empty() ? "found an error without a description" : "found: " + escaped(failure.innermost));
}

std::size_t type_size(Type type) {
    switch (type) {
        case Type::int8:
            return 1;
        case Type::int16:
        case Type::float16:
            return 2;
        case Type::int32:
        case Type::float32:
            return 4;
        case Type::int64:
        case Type::uint64:
        case Type::float64:
            return 8;
        case Type::text:
            return 0;
    }
    return 0;
}

std::string type_name(Type type) {
    switch (type) {
        case Type::int8:
            return "int8";
        case Type::int16:
            return "int16";
        case Type::int32:
            return "int32";
        case Type::int64:
            return "int64";
        case Type::uint64:
            return "uint64";
        case Type::float16:
            return "float16";
        case Type::float32:
            return "float32";
        case Type::float64:
            return "float64";
        case Type::text:
            return "UTF-8 text";
    }
    return {};
}

Handle file_type(Type type, std::size_t text_bytes) {
    const auto copy = [](hid_t of) {
        return Handle(check(H5Tcopy(of), ErrorCode::internal, "HDF5", "expected a copy of a type"));
    };
    const auto set = [](herr_t result) { check(result, ErrorCode::internal, "HDF5", "expected a type's properties"); };
    switch (type) {
        case Type::int8:
            return copy(H5T_STD_I8LE);
        case Type::int16:
            return copy(H5T_STD_I16LE);
        case Type::int32:
            return copy(H5T_STD_I32LE);
        case Type::int64:
            return copy(H5T_STD_I64LE);
        case Type::uint64:
            return copy(H5T_STD_U64LE);
        case Type::float32:
            return copy(H5T_IEEE_F32LE);
        case Type::float64:
            return copy(H5T_IEEE_F64LE);
        case Type::float16: {
            Handle half = copy(H5T_IEEE_F32LE);
            set(H5Tset_fields(half, 15, 10, 5, 0, 10));
            set(H5Tset_size(half, 2));
            set(H5Tset_ebias(half, 15));
            return half;
        }
        case Type::text: {
            Handle text = copy(H5T_C_S1);
            set(H5Tset_size(text, text_bytes == 0 ? H5T_VARIABLE : text_bytes));
            set(H5Tset_strpad(text, text_bytes == 0 ? H5T_STR_NULLTERM : H5T_STR_NULLPAD));
            set(H5Tset_cset(text, H5T_CSET_UTF8));
            return text;
        }
    }
    return {};
}

// Headscope runs on little-endian processors only (x86-64, AArch64): memory and file agree, and halves are moved as
// bits.
Handle memory_type(Type type, std::size_t text_bytes) {
    return file_type(type, text_bytes);
}

Handle create_file(const std::filesystem::path& path) {
    const std::string where = shown(path);
    const Handle access = file_access(where);
    return Handle(check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access), ErrorCode::io, where,
                        "expected to create this analysis file"));
}

Handle open_file(const std::filesystem::path& path, const std::string& where) {
    const Handle access = file_access(where);
    return Handle(
        check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), ErrorCode::format, where, "expected an HDF5 file"));
}

bool is_held(hid_t file) {
    return held_by_writer(file);
}

void refuse_held(const std::string& where) {
    throw lock_error(where, "found it held by another program");
}

void check_writes(hid_t file, const std::string& where) {
    if (const int number = write_failure(file); number != 0) {
        throw Error(ErrorCode::io, where, "expected to write this analysis file", os_error_text(number));
    }
}

void flush(hid_t file, const std::string& where) {
    check(H5Fflush(file, H5F_SCOPE_LOCAL), ErrorCode::io, where, "expected to write this analysis file");
    check_writes(file, where);
}

}  // namespace headscope::store::hdf5
