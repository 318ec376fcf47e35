// SPDX-License-Identifier: GPL-3.0-or-later
// Datasets and headers that our writer never makes. A good file is changed through HDF5 itself, then read.
#include <catch2/catch.hpp>

#include <hdf5.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/store/analysis/analysis_file.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/store/hostile_file.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/core/store/synthetic_recurrent.h"

using namespace headscope;
using tests::changed_file;
using tests::new_list;
using tests::replace;

namespace {

constexpr const char* target = "/indicators/entropy";  // [1, 3, 4] float64

hid_t allocated() {
    const hid_t list = new_list();
    H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY);
    return list;
}

/// The file opens, and the changed dataset is refused with a word that says why.
void refuses_entropy(const std::function<void(hid_t)>& change, ErrorCode code, const std::string& word) {
    const test::TemporaryFolder folder;
    const auto path = changed_file(folder, change);
    const auto file = store::AnalysisFile::open(path);
    try {
        file->indicator("entropy");
        FAIL("was read");
    } catch (const Error& error) {
        INFO(error.what());
        CHECK(error.code() == code);
        CHECK(error.found().find(word) != std::string::npos);
        CHECK(error.where().find(target) != std::string::npos);
    }
    CHECK_THROWS_AS(file->check(), Error);
    CHECK(file->indicator("sink").data.size() == 12);  // the others stay readable
}

}  // namespace

TEST_CASE("Data outside the file is never read", "[store][hostile]") {
    refuses_entropy(
        [](hid_t file) {
            H5Ldelete(file, target, H5P_DEFAULT);
            H5Lcreate_external("/etc/passwd", "/x", file, target, H5P_DEFAULT, H5P_DEFAULT);
        },
        ErrorCode::unsupported, "another file");
    refuses_entropy(
        [](hid_t file) {
            H5Ldelete(file, target, H5P_DEFAULT);
            H5Lcreate_soft("/indicators/sink", file, target, H5P_DEFAULT, H5P_DEFAULT);
        },
        ErrorCode::unsupported, "soft link");
    refuses_entropy(
        [](hid_t file) {
            const hid_t list = new_list();
            H5Pset_external(list, "/etc/passwd", 0, H5F_UNLIMITED);
            replace(file, target, H5T_IEEE_F64LE, {1, 3, 4}, list);
        },
        ErrorCode::unsupported, "external storage");
    refuses_entropy(
        [](hid_t file) {
            const hid_t list = new_list();
            const hsize_t dims[] = {1, 3, 4};
            const hid_t space = H5Screate_simple(3, dims, nullptr);
            REQUIRE(H5Pset_virtual(list, space, "other.h5", "/x", space) >= 0);
            replace(file, target, H5T_IEEE_F64LE, {1, 3, 4}, list);
        },
        ErrorCode::unsupported, "virtual");
}

TEST_CASE("Types, chunks and implicit matrices that cannot be are refused", "[store][hostile]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    const auto change = [&](const char* name, const std::function<void(hid_t)>& what) {
        tests::write_recurrent_analysis(path);
        const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
        REQUIRE(dataset >= 0);
        what(dataset);
        H5Dclose(dataset);
        REQUIRE(H5Fclose(file) >= 0);
    };
    const auto refused = [&](const std::function<void(const store::AnalysisFile&)>& read, const std::string& place) {
        try {
            read(*store::AnalysisFile::open(path));
            FAIL("was read");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::format);
            CHECK(error.where().find(place) != std::string::npos);
        }
    };
    change("/token_types", [](hid_t types) {
        const std::vector<std::int8_t> values(2 * 5 * 4 * 3, 2);
        REQUIRE(H5Dwrite(types, H5T_NATIVE_INT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    });
    refused([](const store::AnalysisFile& file) { file.token_types(0, 1); }, "/token_types");
    for (const std::int64_t chunk : {std::int64_t{0}, std::int64_t{-8}, std::numeric_limits<std::int64_t>::max()}) {
        change("/token_types", [&](hid_t types) {
            const hid_t attribute = H5Aopen(types, "chunk_size", H5P_DEFAULT);
            REQUIRE(H5Awrite(attribute, H5T_NATIVE_INT64, &chunk) >= 0);
            H5Aclose(attribute);
        });
        refused([](const store::AnalysisFile&) {}, "/token_types");
    }
    change("/token_types", [](hid_t types) {  // chunks of another size than the dataset has room for
        const std::int64_t chunk = 4;
        const hid_t attribute = H5Aopen(types, "chunk_size", H5P_DEFAULT);
        REQUIRE(H5Awrite(attribute, H5T_NATIVE_INT64, &chunk) >= 0);
        H5Aclose(attribute);
    });
    refused([](const store::AnalysisFile& file) { file.token_types(0, 1); }, "/token_types");
    for (const std::int32_t flag : {1, 2}) {  // beside a matrix of its own; no flag at all
        change("/sites/has_implicit", [&](hid_t flags) {
            const std::vector<std::int32_t> values(5, flag);
            REQUIRE(H5Dwrite(flags, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        });
        refused([](const store::AnalysisFile&) {}, "/sites/has_implicit");
    }
    change("/implicit_attention/0/2", [](hid_t matrix) { REQUIRE(H5Adelete(matrix, "largest_deviation") >= 0); });
    CHECK_THROWS_AS(store::AnalysisFile::open(path)->implicit_deviation(0, 2), Error);
    CHECK(store::AnalysisFile::open(path)->implicit(0, 2, 0, {0, 2}, {0, 2})->size() == 4);
}

TEST_CASE("Experts beyond their number, and numbers of experts that cannot be, are refused", "[store][hostile]") {
    tests::SyntheticAnalysis a;
    a.record.experts = true;
    const test::TemporaryFolder folder;
    const auto path = folder / "a.headscope.h5";
    const auto change = [&](const std::function<void(hid_t)>& what) {
        tests::write_synthetic_analysis(path, a);
        const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        const hid_t index = H5Dopen2(file, "/experts/index", H5P_DEFAULT);
        REQUIRE(index >= 0);
        what(index);
        H5Dclose(index);
        REQUIRE(H5Fclose(file) >= 0);
    };
    for (const std::int16_t value : {6, -2}) {
        change([&](hid_t index) {
            const std::vector<std::int16_t> values(1 * 3 * 24 * 2, value);
            REQUIRE(H5Dwrite(index, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        });
        const auto file = store::AnalysisFile::open(path);
        try {
            file->experts(0, 1);
            FAIL("was read");
        } catch (const Error& error) {
            CHECK(error.code() == ErrorCode::format);
            CHECK(error.where().find("/experts/index") != std::string::npos);
            CHECK(error.found() == "found " + std::to_string(value));
        }
    }
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{40000}}) {
        change([&](hid_t index) {
            const hid_t attribute = H5Aopen(index, "experts", H5P_DEFAULT);
            REQUIRE(H5Awrite(attribute, H5T_NATIVE_INT64, &count) >= 0);
            H5Aclose(attribute);
        });
        CHECK_THROWS_AS(store::AnalysisFile::open(path), Error);
    }
}

TEST_CASE("Datasets of other shapes, types and sizes are refused", "[store][hostile]") {
    refuses_entropy(
        [](hid_t file) {
            replace(file, target, H5T_IEEE_F64LE, {1, 3, 5}, allocated());
        },
        ErrorCode::format, "[1, 3, 5]");
    refuses_entropy(
        [](hid_t file) {
            replace(file, target, H5T_IEEE_F64LE, {3, 4}, allocated());
        },
        ErrorCode::format, "2");
    refuses_entropy(
        [](hid_t file) {
            replace(file, target, H5T_IEEE_F32LE, {1, 3, 4}, allocated());
        },
        ErrorCode::format, "another type");
    refuses_entropy(
        [](hid_t file) {
            replace(file, target, H5T_STD_REF_OBJ, {1, 3, 4}, allocated());
        },
        ErrorCode::format, "another type");
    // More than the file could hold: never allocated, whatever its header says.
    refuses_entropy(
        [](hid_t file) {
            replace(file, target, H5T_IEEE_F64LE, {1000, 1000, 1000}, H5P_DEFAULT);
        },
        ErrorCode::format, "8000000000");
    refuses_entropy(
        [](hid_t file) {
            const hid_t list = new_list();
            const hsize_t chunk[] = {1, 3, 4};
            H5Pset_chunk(list, 3, chunk);
            replace(file, target, H5T_IEEE_F64LE, {2147483647, 2147483647, 2147483647}, list);
        },
        ErrorCode::format, "2147483647");
    refuses_entropy(
        [](hid_t file) {
            const hid_t list = new_list();
            const hsize_t chunk[] = {1, 3000, 4000};
            H5Pset_chunk(list, 3, chunk);
            const hsize_t dims[] = {1, 3, 4}, most[] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
            const hid_t space = H5Screate_simple(3, dims, most);
            H5Ldelete(file, target, H5P_DEFAULT);
            const hid_t dataset = H5Dcreate2(file, target, H5T_IEEE_F64LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
            REQUIRE(dataset >= 0);
            H5Dclose(dataset);
        },
        ErrorCode::limit, "larger");
    refuses_entropy(
        [](hid_t file) {
            const hid_t list = new_list();
            const hsize_t chunk[] = {1, 3, 4};
            H5Pset_chunk(list, 3, chunk);
            H5Pset_nbit(list);
            replace(file, target, H5T_IEEE_F64LE, {1, 3, 4}, list);
        },
        ErrorCode::unsupported, "filter 5");
    refuses_entropy([](hid_t file) { H5Ldelete(file, target, H5P_DEFAULT); }, ErrorCode::format, "entropy");
}

TEST_CASE("A repacked file, chunked and deflated, is read", "[store][hostile]") {
    const test::TemporaryFolder folder;
    const auto path = changed_file(folder, [](hid_t file) {
        const hid_t list = new_list();
        const hsize_t chunk[] = {1, 1, 4};
        H5Pset_chunk(list, 3, chunk);
        H5Pset_shuffle(list);
        H5Pset_deflate(list, 6);
        replace(file, target, H5T_IEEE_F64LE, {1, 3, 4}, list);
        const hid_t dataset = H5Dopen2(file, target, H5P_DEFAULT);
        const std::vector<double> values(12, 2.5);
        REQUIRE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
        H5Dclose(dataset);
    });
    CHECK(store::AnalysisFile::open(path)->indicator("entropy").data == std::vector<double>(12, 2.5));
}

TEST_CASE("Headers that contradict themselves are refused when the file is opened", "[store][hostile]") {
    const auto refuses = [](const std::function<void(hid_t)>& change) {
        const test::TemporaryFolder folder;
        const auto path = changed_file(folder, change);
        CHECK_THROWS_AS(store::AnalysisFile::open(path), Error);
    };
    const auto poke = [](const char* dataset, std::int32_t value) {
        return [=](hid_t file) {
            const hid_t id = H5Dopen2(file, dataset, H5P_DEFAULT);
            const hid_t space = H5Dget_space(id);
            std::vector<std::int32_t> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)), value);
            REQUIRE(H5Dwrite(id, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
            H5Sclose(space);
            H5Dclose(id);
        };
    };
    refuses(poke("/tokens/length", 25));
    refuses(poke("/tokens/length", -1));
    refuses(poke("/tokens/length", 3));
    refuses(poke("/sites/layer", 3));
    refuses(poke("/sites/heads", -4));
    refuses(poke("/sites/heads", 2000000000));
    refuses([](hid_t file) { H5Adelete(file, "format"); });
    refuses([](hid_t file) { H5Adelete(file, "seed"); });
    refuses([](hid_t file) {
        const hid_t attribute = H5Aopen(file, "format_version", H5P_DEFAULT);
        const std::int32_t version = 3;
        H5Awrite(attribute, H5T_NATIVE_INT32, &version);
        H5Aclose(attribute);
    });
    refuses([](hid_t file) { H5Ldelete(file, "/sites", H5P_DEFAULT); });
    refuses([](hid_t file) { replace(file, "/sites/layer", H5T_STD_I32LE, {0}, H5P_DEFAULT); });
    refuses([](hid_t file) { replace(file, "/tokens/ids", H5T_STD_I32LE, {1, 0}, H5P_DEFAULT); });
}
