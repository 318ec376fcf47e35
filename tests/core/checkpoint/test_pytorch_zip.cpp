// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/core/Tensor.h>

#include <chrono>
#include <random>

#include "core/checkpoint/checkpoint.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/pytorch_builder.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

std::string bytes_of(const at::Tensor& tensor) {
    return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

void refused(const TemporaryFolder& folder, const std::string& bytes, ErrorCode code, const std::string& part) {
    write_file(folder / "x.pt", bytes);
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / "x.pt"), Error, IsError(code, part));
    REQUIRE(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}

void opens(const TemporaryFolder& folder, const std::string& bytes) {
    write_file(folder / "x.pt", bytes);
    const auto checkpoint = Checkpoint::open(folder / "x.pt");
    REQUIRE(bytes_of(checkpoint->load("weight")) == six_floats());
}

std::vector<ZipEntry> entries() {
    return pytorch_entries(good_pickle());
}

ZipParts parts(bool zip64 = false) {
    return zip_parts(entries(), zip64);
}

const std::string u16_max = "\xFF\xFF";
const std::string u32_max = "\xFF\xFF\xFF\xFF";

}  // namespace

TEST_CASE("Zip archives open, with zip64 records and without, with descriptors, padding and any root",
          "[pytorch][zip]") {
    const TemporaryFolder folder;
    SECTION("plain") {
        opens(folder, parts().bytes());
    }
    SECTION("zip64 end record") {
        opens(folder, parts(true).bytes());
    }
    SECTION("zip64 end record alone") {
        ZipParts zip = parts(true);
        put(zip.end, 8, u16_max + u16_max + u32_max + u32_max);
        opens(folder, zip.bytes());
    }
    SECTION("zip64 sizes in a directory entry") {
        auto all = entries();
        all[2].description = std::string("\1\0\x18\0", 4) + little_endian(std::uint64_t{24}) +
                             little_endian(std::uint64_t{24}) + little_endian(std::uint64_t{0});
        const std::uint64_t at = zip_parts(entries()).locals[0].size() + zip_parts(entries()).locals[1].size();
        put(all[2].description, 20, little_endian(at));
        ZipParts zip = zip_parts(all);
        put(zip.directory[2], 20, u32_max + u32_max);
        put(zip.directory[2], 42, u32_max);
        opens(folder, zip.bytes());
    }
    SECTION("descriptors") {
        auto all = entries();
        for (ZipEntry& entry : all) entry.flags = 8;
        ZipParts zip = zip_parts(all);
        std::uint64_t offset = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::string sums = zip.locals[i].substr(14, 4), size = zip.locals[i].substr(18, 8);
            put(zip.locals[i], 14, std::string(12, '\0'));
            zip.locals[i] += "PK\7\10" + sums + size;
            put(zip.directory[i], 42, little_endian(static_cast<std::uint32_t>(offset)));
            offset += zip.locals[i].size();
        }
        put(zip.end, 16, little_endian(static_cast<std::uint32_t>(offset)));
        opens(folder, zip.bytes());
    }
    SECTION("padding in extra fields") {
        auto all = entries();
        all[2].extra = std::string("FB\x06\0ZZZZZZ", 10);
        opens(folder, zip_parts(all).bytes());
    }
    SECTION("another root") {
        auto all = entries();
        for (ZipEntry& entry : all) entry.name = "../../etc/" + entry.name.substr(8);
        refused(folder, zip_parts(all).bytes(), ErrorCode::unsupported, "4 other members");
        for (ZipEntry& entry : all) entry.name = ".." + entry.name.substr(9);
        opens(folder, zip_parts(all).bytes());
        REQUIRE(folder.names() == std::vector<std::string>{"x.pt"});
    }
    SECTION("folders as members, other members") {
        auto all = entries();
        all.push_back({"archive/data/", ""});
        all.push_back({"archive/.data/serialization_id", "1234"});
        opens(folder, zip_parts(all).bytes());
    }
}

TEST_CASE("Zip archives that lie are refused", "[pytorch][zip]") {
    const TemporaryFolder folder;
    const auto bad = [&](const ZipParts& zip, ErrorCode code, const std::string& part) {
        refused(folder, zip.bytes(), code, part);
    };
    const auto format = ErrorCode::format, unsupported = ErrorCode::unsupported, too_much = ErrorCode::limit;
    ZipParts zip = parts();
    ZipParts wide = parts(true);
    auto all = entries();

    SECTION("end record") {
        zip.end.pop_back();
        bad(zip, format, "cut short");
        zip = parts();
        zip.end += "x";
        bad(zip, format, "more was added");
        zip = parts();
        put(zip.end, 20, std::string("\1\0", 2));
        bad(zip, format, "without a comment");
        zip = parts();
        put(zip.end, 20, std::string("\1\0", 2));
        zip.end += "c";
        bad(zip, format, "end record");
        zip = parts();
        put(zip.end, 4, std::string("\1\0", 2));
        bad(zip, unsupported, "a part of several");
        zip = parts();
        put(zip.end, 6, std::string("\1\0", 2));
        bad(zip, unsupported, "a part of several");
        zip = parts();
        put(zip.end, 8, std::string("\3\0", 2));
        bad(zip, unsupported, "a part of several");
        for (const char* count : {"\5\0\5\0", "\3\0\3\0", "\0\0\0\0"}) {
            zip = parts();
            put(zip.end, 8, std::string(count, 4));
            bad(zip, format, "director");
        }
        zip = parts();
        put(zip.end, 8, u16_max + u16_max);
        bad(zip, format, "46 bytes of directory for each member");
        for (const std::size_t field : {12U, 16U}) {
            for (const std::string& value :
                 {std::string(4, '\0'), u32_max, std::string("\xFF\xFF\xFF\x7F"), std::string("\1\0\0\0", 4)}) {
                zip = parts();
                put(zip.end, field, value);
                bad(zip, format, "where its end record begins");
            }
        }
    }
    SECTION("bytes before, between") {
        refused(folder, "PK\3\4" + zip.bytes(), format, "where its end record begins");
        zip.between = "x";
        bad(zip, format, "where its end record begins");
    }
    SECTION("zip64 end record") {
        put(wide.zip64, 0, "PK\6\5");
        bad(wide, format, "a zip64 end record");
        wide = parts(true);
        put(wide.zip64, 4, little_endian(std::uint64_t{45}));
        bad(wide, format, "a zip64 end record of 56 bytes");
        wide = parts(true);
        put(wide.zip64, 4, little_endian(UINT64_MAX - 11));
        bad(wide, format, "a zip64 end record of 56 bytes");
        for (const std::size_t field : {16U, 20U}) {
            wide = parts(true);
            put(wide.zip64, field, "\1");
            bad(wide, unsupported, "a part of several");
        }
        for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{5}, UINT64_MAX}) {
            wide = parts(true);
            put(wide.zip64, 24, little_endian(count) + little_endian(count));
            bad(wide, format, "two end records to agree");
            put(wide.end, 8, u16_max + u16_max);
            bad(wide, count == UINT64_MAX ? too_much : format, count == UINT64_MAX ? "members" : "director");
        }
        wide = parts(true);
        put(wide.zip64, 24, little_endian(std::uint64_t{1}));
        bad(wide, unsupported, "a part of several");
        for (const std::size_t field : {40U, 48U}) {
            for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX, UINT64_MAX / 2}) {
                wide = parts(true);
                put(wide.end, 12, u32_max + u32_max);
                put(wide.zip64, field, little_endian(value));
                bad(wide, format, "where its end record begins");
            }
        }
        for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{7}, UINT64_MAX}) {
            wide = parts(true);
            put(wide.zip64, 64, little_endian(place));
            bad(wide, format, "right before its locator");
        }
        wide = parts(true);
        put(wide.zip64, 72, "\2");
        bad(wide, unsupported, "a part of several");
        wide = parts(true);
        wide.zip64 = wide.zip64.substr(56);
        bad(wide, format, "right before its locator");
        wide = parts(true);
        wide.zip64 = wide.zip64.substr(0, 56);
        bad(wide, format, "where its end record begins");
    }
    SECTION("directory entries") {
        put(zip.directory[1], 0, "PK\1\3");
        bad(zip, format, "a directory entry");
        for (const std::size_t field : {28U, 30U, 32U}) {
            zip = parts();
            put(zip.directory[3], field, u16_max);
            bad(zip, format, "a directory entry within the directory");
        }
        zip = parts();
        put(zip.directory[0], 28, std::string("\1\0", 2));
        bad(zip, format, "a directory entry");
        zip = parts();
        put(zip.directory[2], 34, std::string("\1\0", 2));
        bad(zip, unsupported, "a part of several");
        for (const std::size_t field : {20U, 24U}) {
            zip = parts();
            put(zip.directory[2], field, std::string("\x17\0\0\0", 4));
            bad(zip, format, "to have one size; found");
        }
        zip = parts();
        put(zip.directory[2], 20, u32_max + u32_max);
        bad(zip, format, "extra fields in the directory");
        zip = parts();
        put(zip.directory[2], 20, std::string("\xFE\xFF\xFF\xFF\xFE\xFF\xFF\xFF"));
        bad(zip, format, "before the archive's directory");
        zip = parts();
        put(zip.directory[2], 42, std::string("\xFE\xFF\xFF\xFF"));
        bad(zip, format, "before the archive's directory");
    }
    SECTION("names twice") {
        all.push_back({"archive/data/0", six_floats()});
        refused(folder, zip_parts(all).bytes(), format, R"(found "archive/data/0" again)");
    }
    SECTION("two pickles") {
        all.push_back({"other/data.pkl", good_pickle()});
        refused(folder, zip_parts(all).bytes(), format, "found 2 of them");
    }
    SECTION("no pickle") {
        all.erase(all.begin());
        refused(folder, zip_parts(all).bytes(), unsupported, "3 other members: \"archive/byteorder\"");
    }
    SECTION("a pickle without a folder") {
        all[0].name = "data.pkl";
        refused(folder, zip_parts(all).bytes(), unsupported, "one NAME/data.pkl");
    }
    SECTION("TorchScript") {
        all.push_back({"archive/code/__torch__.py", "pass"});
        refused(folder, zip_parts(all).bytes(), unsupported, "TorchScript");
    }
    SECTION("byte order") {
        all[1].data = "big";
        refused(folder, zip_parts(all).bytes(), unsupported, "little-endian");
        all[1].data = "";
        refused(folder, zip_parts(all).bytes(), format, "little-endian");
        all[1].data = std::string(65, 'l');
        refused(folder, zip_parts(all).bytes(), too_much, "byteorder");
    }
    SECTION("the archive's version, as PyTorch takes it") {
        for (const char* good : {"3", "1\n", "10\n"}) {
            all[3].data = good;
            opens(folder, zip_parts(all).bytes());
        }
        for (const char* unknown : {"999\n", "0\n", "11\n", "-3\n"}) {
            all[3].data = unknown;
            refused(folder, zip_parts(all).bytes(), unsupported, "version from 1 to 10");
        }
        for (const char* none : {"abc", "", "\n"}) {
            all[3].data = none;
            refused(folder, zip_parts(all).bytes(), format, "version from 1 to 10");
        }
        all.pop_back();
        refused(folder, zip_parts(all).bytes(), format, "archive/.data/version");
    }
    SECTION("extra fields in the directory") {
        for (const std::string& extra :
             {std::string("\1\0\7\0xxxxxxx", 11), std::string("\1\0\x08\0", 4), std::string("FB\0", 3),
              std::string("FB\xFF\xFF", 4), std::string("\1\0\0\0\1\0\0\0", 8)}) {
            all = entries();
            all[2].description = extra;
            ZipParts lying = zip_parts(all);
            put(lying.directory[2], 20, u32_max + u32_max);
            bad(lying, format, "extra fields in the directory");
        }
        for (const std::uint64_t value : {UINT64_MAX, UINT64_MAX - 100, std::uint64_t{1} << 63U}) {
            all = entries();
            all[2].description =
                std::string("\1\0\x18\0", 4) + little_endian(value) + little_endian(value) + little_endian(value);
            ZipParts lying = zip_parts(all);
            put(lying.directory[2], 20, u32_max + u32_max);
            bad(lying, format, "before the archive's directory");
            lying = zip_parts(all);
            put(lying.directory[2], 42, u32_max);
            bad(lying, format, "before the archive's directory");
        }
    }
}

TEST_CASE("Members that lie are refused", "[pytorch][zip]") {
    const TemporaryFolder folder;
    // The storage, the pickle, the byte order: each is only used after its local header was checked.
    const auto [member, name] = GENERATE(
        table<std::size_t, const char*>({{0, "archive/data.pkl"}, {1, "archive/byteorder"}, {2, "archive/data/0"}}));
    const std::string place = std::string("member \"") + name + '"';
    const auto format = ErrorCode::format, unsupported = ErrorCode::unsupported;
    const auto bad = [&](const ZipParts& zip, ErrorCode code, const std::string& part) {
        refused(folder, zip.bytes(), code, place);
        refused(folder, zip.bytes(), code, part);
    };
    const auto changed = [&](std::size_t field, const std::string& bytes, bool both = false) {
        ZipParts zip = parts();
        put(zip.locals[member], field, bytes);
        if (both) put(zip.directory[member], field + 2, bytes);
        return zip;
    };
    if (member != 0) bad(changed(0, "PK\3\5"), format, "no local header");  // else the file is no zip archive at all
    bad(changed(6, "\x08"), format, "other flags");
    bad(changed(6, "\x01", true), unsupported, "encrypted");
    bad(changed(6, "\x40", true), unsupported, "encrypted");
    bad(changed(6, "\x20", true), unsupported, "stored as it is");
    bad(changed(7, "\x20", true), unsupported, "encrypted");
    bad(changed(8, "\x08"), format, "another method");
    bad(changed(8, "\x08", true), unsupported, "found a deflated one");
    bad(changed(8, "\x5D", true), unsupported, "compression method 93");
    bad(changed(14, "\xAA\xBB"), format, "another checksum");
    bad(changed(18, "\x01"), format, "another size");
    bad(changed(22, "\x01"), format, "another size");
    bad(changed(26, "\x01"), format, "another name");
    bad(changed(30, "b"), format, "another name");
    bad(changed(28, "\xFF\x7F"), format, "push its bytes over the next member");
    {
        ZipParts zip = changed(6, "\x08", true);
        bad(zip, format, "data descriptor");
    }
    {
        auto all = entries();
        all[member].extra = "abc";
        bad(zip_parts(all), format, "malformed extra fields");
        all[member].extra = std::string("\1\0\xFF\0", 4);
        bad(zip_parts(all), format, "malformed extra fields");
    }
    {
        // A member that begins within the one before it.
        ZipParts zip = parts();
        const std::uint32_t at = member == 0 ? 1 : static_cast<std::uint32_t>(zip.locals[0].size() - 1);
        put(zip.directory[member == 0 ? 1 : member], 42, little_endian(at));
        refused(folder, zip.bytes(), format, "members overlap");
    }
    {
        ZipParts zip = parts();
        put(zip.directory[member], 42, zip.directory[(member + 1) % 3].substr(42, 4));
        refused(folder, zip.bytes(), format, "member \"");
    }
    if (member != 2) {
        ZipParts zip = parts();
        zip.locals[member].back() ^= 1;
        bad(zip, format, "checksum");
    }
}

TEST_CASE("Zip archives cut anywhere are refused", "[pytorch][zip]") {
    const TemporaryFolder folder;
    const std::string whole = parts(true).bytes();
    for (std::size_t size = 0; size < whole.size(); size += 3) {
        INFO(size);
        write_file(folder / "x.pt", whole.substr(0, size));
        REQUIRE_THROWS_AS(Checkpoint::open(folder / "x.pt"), Error);
    }
}

TEST_CASE("Any byte changed gives an error or a tensor that lies in the file", "[pytorch][zip]") {
    const TemporaryFolder folder;
    const std::string whole = parts(true).bytes();
    std::mt19937 generator(7);
    for (int round = 0; round < 1000; ++round) {
        std::string bytes = whole;
        for (int change = 0; change <= round % 3; ++change) {
            bytes[generator() % bytes.size()] = static_cast<char>(generator() % 4 == 0 ? 0xFF : generator());
        }
        write_file(folder / "x.pt", bytes);
        try {
            const auto checkpoint = Checkpoint::open(folder / "x.pt");
            for (const auto& [name, info] : checkpoint->tensors()) {
                REQUIRE(info.begin + info.bytes <= bytes.size());
                checkpoint->load(name, LoadAs::float32);
            }
        } catch (const Error& error) {
            REQUIRE(error.code() != ErrorCode::internal);
        }
    }
}
