// SPDX-License-Identifier: GPL-3.0-or-later
// Files of torch.save before version 1.6, made by hand, with every field open to a lie. Files that PyTorch wrote so are
// in test_pytorch.cpp.
#include <cstdint>
#include <string>
#include <vector>

#include "tests/core/checkpoint/pickle_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;

namespace {

struct Storage {
    std::string key;
    std::int64_t elements = 6;
    std::string type = "FloatStorage", view = "N";
};

struct Parts {
    std::string magic = "\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    std::string protocol = PickleText().integer(1001).end();
    std::string machine = machine_of("\x88");
    std::string value = value_of({{"0", 6}});
    std::string keys = keys_of({"0"});
    std::string storages = storage(6, six_floats());

    static std::string machine_of(std::string_view little) {
        return PickleText()
            .raw("}(")
            .text("protocol_version")
            .integer(1001)
            .text("little_endian")
            .raw(little)
            .text("type_sizes")
            .raw("}u")
            .end();
    }

    /// A dictionary of tensors [2, 3], each of a storage.
    static std::string value_of(const std::vector<Storage>& storages) {
        PickleText text;
        text.raw("}");
        for (std::size_t i = 0; i < storages.size(); ++i) {
            const Storage& of = storages[i];
            text.text("w" + std::to_string(i)).global("torch._utils", "_rebuild_tensor_v2").raw("((");
            text.text("storage").global("torch", of.type).text(of.key).text("cuda:1").integer(of.elements);
            text.raw(of.view).raw("tQ").integer(0).tuple({2, 3}).tuple({3, 1}).raw("\x89");
            text.global("collections", "OrderedDict").raw(")RtRs");
        }
        return text.end();
    }
    static std::string keys_of(const std::vector<std::string>& keys) {
        PickleText text;
        text.raw("](");
        for (const std::string& key : keys) text.text(key);
        return text.raw("e").end();
    }
    static std::string storage(std::int64_t elements, const std::string& numbers) {
        return little_endian(elements) + numbers;
    }
    std::string bytes() const { return magic + protocol + machine + value + keys + storages; }
};

class Folder {
public:
    std::shared_ptr<const Checkpoint> open(const std::string& bytes) {
        return Checkpoint::open(write_file(folder_ / "x.bin", bytes));
    }
    void refused(const Parts& parts, ErrorCode code, const std::string& part) {
        CAPTURE(part);
        REQUIRE_THROWS_MATCHES(open(parts.bytes()), Error, IsError(code, part));
    }

private:
    TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("A file of before version 1.6 is read storage by storage", "[checkpoint][pytorch]") {
    Folder folder;
    CHECK(folder.open(Parts().bytes())->tensor("w0").shape == std::vector<std::int64_t>{2, 3});
    Parts two;
    two.value = Parts::value_of({{"7", 6}, {"a", 7, "HalfStorage"}, {"7", 6}});
    two.keys = Parts::keys_of({"a", "7"});
    two.storages = Parts::storage(7, std::string(14, 'x')) + Parts::storage(6, six_floats());
    const auto checkpoint = folder.open(two.bytes());
    const std::uint64_t size = two.bytes().size();
    CHECK(checkpoint->tensor("w0").begin == size - 24);
    CHECK(checkpoint->tensor("w1").begin == size - 24 - 8 - 14);
    CHECK(checkpoint->tensor("w2").begin == checkpoint->tensor("w0").begin);
}

TEST_CASE("The head of an old PyTorch file may not lie", "[checkpoint][pytorch]") {
    Folder folder;
    Parts parts;
    SECTION("the magic number") {
        parts.magic[6] ^= 1;
        folder.refused(parts, unsupported, "found a bare Python pickle");
        parts.magic = "\x80\2}." + Parts().magic;
        folder.refused(parts, format, "the number that PyTorch's files begin with; found something else");
    }
    SECTION("the protocol") {
        parts.protocol = PickleText().integer(1002).end();
        folder.refused(parts, unsupported, "expected protocol 1001; found 1002");
        parts.protocol = PickleText().text("1001").end();
        folder.refused(parts, unsupported, "expected protocol 1001; found a string");
    }
    SECTION("the machine") {
        parts.machine = Parts::machine_of("\x89");
        folder.refused(parts, unsupported, "found big-endian ones");
        parts.machine = Parts::machine_of("K\1");
        folder.refused(parts, format, "says little_endian; found none");
        parts.machine = PickleText().raw("]").end();
        folder.refused(parts, format, "says little_endian; found a list");
        parts.machine = PickleText().global("os", "system").raw("X\2\0\0\0id\x85R").end();
        folder.refused(parts, unsupported, "os.system");
    }
    SECTION("a value that is none") {
        parts.value = PickleText().global("posix", "system").text("id").raw("\x85R").end();
        folder.refused(parts, unsupported, "posix.system");
        parts.value = PickleText().raw("]").end();
        parts.keys = Parts::keys_of({});
        parts.storages.clear();
        folder.refused(parts, format, "expected a dictionary of tensors");
        parts.value = PickleText().raw("(").text("module").global("a", "Model").raw("NNtQ)\x81}b").end();
        folder.refused(parts, unsupported, "a.Model");
    }
    SECTION("every byte is missed") {
        const std::string good = parts.bytes();
        for (std::size_t size = 1; size < good.size(); ++size) {
            CAPTURE(size);
            REQUIRE_THROWS_AS(folder.open(good.substr(0, size)), Error);
        }
    }
}

TEST_CASE("Storages behind an old pickle are what it says, within the file", "[checkpoint][pytorch]") {
    Folder folder;
    Parts parts;
    const auto of = [&parts](Storage storage) { parts.value = Parts::value_of({std::move(storage)}); };
    SECTION("what the pickle says of them") {
        of({"0", std::int64_t{1} << 62});
        folder.refused(parts, format, "expected storage \"0\" to have");
        of({"0", std::int64_t{1} << 60});
        folder.refused(parts, format, "elements, as the pickle says; found 6");
        of({"0", -1});
        folder.refused(parts, format, "found -1");
        of({"0", 5});
        folder.refused(parts, format, "a tensor within the 5 elements");
        of({"0", 6, "MagicStorage"});
        folder.refused(parts, format, "expected a storage");
        of({"0", 6, "FloatStorage", "(K\1K\1K\1t"});
        folder.refused(parts, unsupported, "found a view of another");
        of({"0", 6, "DoubleStorage"});
        folder.refused(parts, format, "expected 48 bytes more; found 24 to the end");
        parts.value = Parts::value_of({{"0", 6}, {"0", 7}});
        folder.refused(parts, format, "one type and size of each storage; found two of \"0\"");
        parts.value = Parts::value_of({{"0", 6}, {"0", 6, "DoubleStorage"}});
        folder.refused(parts, format, "one type and size of each storage");
    }
    SECTION("their keys") {
        for (const std::string& keys :
             {Parts::keys_of({"1"}), Parts::keys_of({"0", "0"}), PickleText().raw("]K\1a").end()}) {
            parts.keys = keys;
            folder.refused(parts, format, "expected the key of each storage once");
        }
        parts.keys = Parts::keys_of({});
        folder.refused(parts, format, "expected the keys of 1 storages; found 0");
        parts.keys = PickleText().raw("}").end();
        folder.refused(parts, format, "expected a list of the storages' keys; found a dictionary");
    }
    SECTION("their sizes") {
        for (const std::int64_t count : {std::int64_t{5}, std::int64_t{7}, std::int64_t{-1}, std::int64_t{1} << 62}) {
            parts.storages = Parts::storage(count, six_floats());
            folder.refused(parts, format, "expected 6 elements, as the pickle says");
        }
        parts.storages = Parts::storage(6, six_floats().substr(1));
        folder.refused(parts, format, "expected 24 bytes more; found 23 to the end");
        parts.storages = "\6";
        folder.refused(parts, format, "expected 8 bytes more; found 1 to the end");
        parts.storages = Parts::storage(6, six_floats() + "x");
        folder.refused(parts, format, "expected nothing behind the last storage; found 1 bytes");
    }
}
