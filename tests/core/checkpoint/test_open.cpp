// SPDX-License-Identifier: GPL-3.0-or-later
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "core/checkpoint/checkpoint.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"
#include "tests/core/checkpoint/hostile.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
namespace fs = std::filesystem;

namespace {

void refused(const fs::path& path, ErrorCode code, const std::string& part) {
    REQUIRE_THROWS_MATCHES(Checkpoint::open(path), Error, IsError(code, part));
}

/// Two shards, one tensor each, and an index with this weight_map.
void write_shards(const TemporaryFolder& folder, const std::string& map) {
    write_file(folder / "s1.safetensors", tiny_safetensors("a"));
    write_file(folder / "s2.safetensors", tiny_safetensors("b"));
    write_file(folder / "model.safetensors.index.json", R"({"metadata":{"total_size":1},"weight_map":)" + map + "}");
}

}  // namespace

TEST_CASE("The bundled sample opens as a folder and as a file", "[checkpoint]") {
    const fs::path sample = fs::path(HEADSCOPE_SOURCE_DIR) / "resources/samples/llama-kjv-shakespeare";
    for (const fs::path& path : {sample, sample / "", sample / "model.safetensors"}) {
        const auto checkpoint = Checkpoint::open(path);
        REQUIRE(checkpoint->has_config());
        REQUIRE(checkpoint->config().at("model_type") == "llama");
        REQUIRE(checkpoint->tensors().size() == 38);
        REQUIRE(checkpoint->tensor("model.embed_tokens.weight").shape == std::vector<std::int64_t>{2048, 256});
        REQUIRE(checkpoint->side_file("tokenizer.json").has_value());
        REQUIRE_FALSE(checkpoint->side_file("vocab.txt").has_value());
        REQUIRE_FALSE(checkpoint->side_file("../llama-kjv-shakespeare/tokenizer.json").has_value());
        REQUIRE_FALSE(checkpoint->side_file("").has_value());
        REQUIRE_FALSE(checkpoint->side_file(".").has_value());
    }
    REQUIRE(Checkpoint::open(sample)->display_name() == "llama-kjv-shakespeare");
    REQUIRE(Checkpoint::open(sample / "")->display_name() == "llama-kjv-shakespeare");
    REQUIRE_THROWS_MATCHES(Checkpoint::open(sample)->tensor("no\nsuch"), Error,
                           IsError(ErrorCode::mismatch, "no\\x0Asuch"));
}

TEST_CASE("A lone weight file opens without a configuration", "[checkpoint]") {
    const TemporaryFolder folder;
    write_file(folder / "anything.safetensors", tiny_safetensors("a"));
    for (const fs::path& path : {folder / "anything.safetensors", folder.path()}) {
        const auto checkpoint = Checkpoint::open(path);
        REQUIRE_FALSE(checkpoint->has_config());
        REQUIRE(checkpoint->config().is_object());
        REQUIRE(checkpoint->tensors().size() == 1);
    }
    write_file(folder / "another.safetensors", tiny_safetensors("a"));
    refused(folder.path(), ErrorCode::usage, "found several others");
}

TEST_CASE("A configuration must be strict JSON in a regular file", "[checkpoint]") {
    const TemporaryFolder folder;
    write_file(folder / "model.safetensors", tiny_safetensors("a"));
    SECTION("not an object") {
        write_file(folder / "config.json", "[]");
        refused(folder.path(), ErrorCode::format, "config.json] expected an object");
    }
    SECTION("a key twice") {
        write_file(folder / "config.json", R"({"hidden_size":1,"hidden_size":2})");
        refused(folder.path(), ErrorCode::format, "config.json, byte 30");
    }
    SECTION("empty") {
        write_file(folder / "config.json", "");
        refused(folder.path(), ErrorCode::format, "config.json");
    }
    SECTION("a pipe") {
        REQUIRE(::mkfifo((folder / "config.json").c_str(), 0600) == 0);
        refused(folder.path(), ErrorCode::io, "found a pipe");
    }
    SECTION("too long") {
        write_file(folder / "config.json", "");
        fs::resize_file(folder / "config.json", 1U << 30U);
        refused(folder.path(), ErrorCode::limit, "config.json");
    }
}

TEST_CASE("Errors on folders without a checkpoint list the expected files", "[checkpoint]") {
    const TemporaryFolder folder;
    refused(folder.path(), ErrorCode::format,
            "model.safetensors, pytorch_model.bin, an index of their shards or a .gguf file in this folder; found neither");
    write_file(folder / "training_args.bin", "x");
    write_file(folder / "tf_model.h5", "x");
    refused(folder.path(), ErrorCode::format,
            R"(found "tf_model.h5", "training_args.bin", which cannot be read as weights)");
    refused(folder / "none", ErrorCode::io, "found nothing there");
    refused("/dev/zero", ErrorCode::io, "character device");
    fs::create_directory(folder / "model.safetensors");
    refused(folder.path(), ErrorCode::io, "found a folder");
}

TEST_CASE("Files of other kinds are called by their name", "[checkpoint]") {
    using namespace std::string_literals;
    const TemporaryFolder folder;
    const auto named = [&](const std::string& bytes, ErrorCode code, const std::string& part) {
        write_file(folder / "model.safetensors", bytes);
        refused(folder.path(), code, part);
    };
    named("", ErrorCode::format, "an empty file");
    named("GGUF\3\0\0\0"s, ErrorCode::format, "cut short");
    named("PK\3\4" + std::string(100, 'x'), ErrorCode::format, "zip archive that ends in its end record");
    named("PK\5\6" + std::string(18, '\0'), ErrorCode::unsupported, "an empty zip archive");
    for (const std::string& frame : {""s, "\x95\x0c\0\0\0\0\0\0\0"s}) {
        named("\x80\x02" + frame + "\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s, ErrorCode::format,
              "expected a pickle of protocol 2 to 5");
    }
    named(
        "\x84\xa6"
        "config\x80"s,
        ErrorCode::unsupported, "MessagePack");
    named("\x93NUMPY\1\0"s, ErrorCode::unsupported, "NumPy");
    named("BZh91AY", ErrorCode::unsupported, "bzip2");
    named("\x80\x04\x95\0\0\0"s, ErrorCode::unsupported, "pickle");
    named("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", ErrorCode::format, "Git LFS pointer");
    named("\n<!DOCTYPE html><html>", ErrorCode::format, "HTML page");
    named(std::string(257, 'x') + "ustar\0"s + std::string(300, 'x'), ErrorCode::unsupported, "tar archive");
    named("\x89HDF\r\n\x1a\n" + std::string(100, 'x'), ErrorCode::unsupported, "HDF5");
    named("\x1f\x8b\x08", ErrorCode::unsupported, "gzip");
    named("{\"weight_map\": {}}", ErrorCode::unsupported, "a JSON file");
    named("just a text of some length", ErrorCode::format, "expected a safetensors file");
}

TEST_CASE("A header length that looks like another format's first bytes is still safetensors", "[checkpoint]") {
    // 0x0280 = 640: the file begins with the bytes of a pickle.
    const TemporaryFolder folder;
    std::string header = "{" + entry("a", "U8", "[1]", "[0,1]") + "}";
    header.resize(640, ' ');
    write_file(folder / "x.safetensors", safetensors_bytes(header, "x"));
    REQUIRE(Checkpoint::open(folder / "x.safetensors")->tensors().size() == 1);
}

TEST_CASE("Shards open through their index, as a folder and as a file", "[checkpoint][shards]") {
    const TemporaryFolder folder;
    write_shards(folder, R"({"a":"s1.safetensors","b":"s2.safetensors"})");
    for (const fs::path& path : {folder.path(), folder / "model.safetensors.index.json"}) {
        const auto checkpoint = Checkpoint::open(path);
        REQUIRE(checkpoint->files().size() == 2);
        REQUIRE(checkpoint->tensor("b").file == 1);
        REQUIRE(checkpoint->files().at(1).filename() == "s2.safetensors");
    }
}

TEST_CASE("A tensor beyond a shard's index is read, with a note", "[checkpoint][shards]") {
    const TemporaryFolder folder;
    write_shards(folder, R"({"a":"s1.safetensors"})");
    write_file(
        folder / "s1.safetensors",
        safetensors_bytes("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("z", "U8", "[1]", "[1,2]") + "}", "xy"));
    const auto checkpoint = Checkpoint::open(folder.path());
    REQUIRE(checkpoint->tensors().size() == 2);
    REQUIRE(checkpoint->tensor("z").file == 0);
    REQUIRE(checkpoint->notes() ==
            std::vector<std::string>{R"(s1.safetensors: not in the index, and read all the same: "z")"});
}

TEST_CASE("A cache made of symbolic links opens", "[checkpoint][shards]") {
    const TemporaryFolder folder;
    fs::create_directories(folder / "blobs");
    fs::create_directories(folder / "snapshot");
    write_file(folder / "blobs/1", tiny_safetensors("a"));
    write_file(folder / "blobs/2", R"({"weight_map":{"a":"s.safetensors"}})");
    write_file(folder / "blobs/3", R"({"model_type":"llama"})");
    fs::create_symlink("../blobs/1", folder / "snapshot/s.safetensors");
    fs::create_symlink("../blobs/2", folder / "snapshot/model.safetensors.index.json");
    fs::create_symlink("../blobs/3", folder / "snapshot/config.json");
    const auto checkpoint = Checkpoint::open(folder / "snapshot");
    REQUIRE(checkpoint->tensors().size() == 1);
    REQUIRE(checkpoint->config().at("model_type") == "llama");
}

TEST_CASE("Shard names never leave the index's folder", "[checkpoint][shards]") {
    const TemporaryFolder folder;
    const std::string name = GENERATE("../s1.safetensors", "/etc/passwd", "sub/s1.safetensors", "..", ".", "",
                                      "..\\\\s1.safetensors", "s1.safetensors\\u0000");
    write_shards(folder, R"({"a":")" + name + R"(","b":"s2.safetensors"})");
    refused(folder.path(), ErrorCode::format, "weight_map.a] expected the plain name of a file");
}

TEST_CASE("Shards that are missing, contradict the index or are no files are refused", "[checkpoint][shards]") {
    const TemporaryFolder folder;
    SECTION("missing, all reported at once") {
        write_shards(folder, R"({"a":"x1","b":"s2.safetensors","c":"x2"})");
        refused(folder.path(), ErrorCode::io, R"(all of its 3 shards as regular files beside it; found no "x1", "x2")");
    }
    SECTION("a pipe") {
        write_shards(folder, R"({"a":"s1.safetensors","b":"pipe"})");
        REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
        refused(folder.path(), ErrorCode::io, R"(found no "pipe")");
    }
    SECTION("a link to a device") {
        write_shards(folder, R"({"a":"s1.safetensors","b":"link"})");
        fs::create_symlink("/dev/zero", folder / "link");
        refused(folder.path(), ErrorCode::io, R"(found no "link")");
    }
    SECTION("a tensor of the index that its shard lacks") {
        write_shards(folder, R"({"a":"s1.safetensors","b":"s2.safetensors","c":"s2.safetensors"})");
        refused(folder.path(), ErrorCode::mismatch,
                R"(s2.safetensors] expected every tensor that the index puts there; found no "c")");
    }
    SECTION("a tensor of one shard that another has too") {
        write_shards(folder, R"({"a":"s1.safetensors","b":"s2.safetensors"})");
        write_file(folder / "s1.safetensors",
                   safetensors_bytes(
                       "{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[1,2]") + "}", "xy"));
        refused(folder.path(), ErrorCode::mismatch, R"(s2.safetensors] expected each tensor in one shard; found "b")");
    }
    SECTION("a damaged shard") {
        write_shards(folder, R"({"a":"s1.safetensors","b":"s2.safetensors"})");
        fs::resize_file(folder / "s2.safetensors", 20);
        refused(folder.path(), ErrorCode::format, "s2.safetensors");
    }
    SECTION("more tensors in all shards than there may be, though the index names few") {
        std::string header = "{";
        for (int i = 0; i < 260'000; ++i) header += (i ? "," : "") + entry(std::to_string(i), "U8", "[0]", "[0,0]");
        write_shards(folder, R"({"1":"s1.safetensors","2":"s2.safetensors"})");
        write_file(folder / "s1.safetensors", safetensors_bytes(header + "}", ""));
        fs::remove(folder / "s2.safetensors");
        fs::create_symlink("s1.safetensors", folder / "s2.safetensors");
        refused(folder.path(), ErrorCode::limit, "s2.safetensors] expected at most 500 000 tensors in all shards");
    }
    SECTION("an index of more tensors than there may be") {
        std::string map = "{";
        for (int i = 0; i < 502'000; ++i) map += (i ? ",\"" : "\"") + std::to_string(i) + R"(":"s")";
        write_shards(folder, map + "}");
        refused(folder.path(), ErrorCode::limit, "expected an index of at most 500 000 tensors");
    }
    SECTION("no map") {
        write_file(folder / "model.safetensors.index.json", "{}");
        refused(folder.path(), ErrorCode::format, "without a weight_map");
    }
    SECTION("an empty map") {
        write_shards(folder, "{}");
        refused(folder.path(), ErrorCode::format, "at least one tensor");
    }
    SECTION("a map of something else") {
        write_shards(folder, R"({"a":1})");
        refused(folder.path(), ErrorCode::format, "found 1");
    }
    SECTION("a list as map") {
        write_shards(folder, R"(["a"])");
        refused(folder.path(), ErrorCode::format, "weight_map] expected an object");
    }
    SECTION("a tensor twice") {
        write_shards(folder, R"({"a":"s1.safetensors","a":"s2.safetensors"})");
        refused(folder.path(), ErrorCode::format, "again");
    }
}
