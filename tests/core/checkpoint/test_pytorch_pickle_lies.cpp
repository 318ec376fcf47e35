// SPDX-License-Identifier: GPL-3.0-or-later
// Storages, tensors and sizes that lie; and pickles of no known writer.
#include <random>

#include "tests/core/checkpoint/pickle_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
using namespace std::string_literals;
namespace fs = std::filesystem;

TEST_CASE("Storages that lie are refused", "[pytorch][pickle]") {
    const auto storage = [](const std::string& type, const std::string& key, std::int64_t elements) {
        return PickleText().storage(type, key, elements).end();
    };
    REQUIRE_NOTHROW(read(storage("FloatStorage", "0", 6)));
    refused(storage("FloatStorage", "1", 6), format, "found none for \"1\"");
    refused(storage("FloatStorage", "../0", 6), format, "found none for \"../0\"");
    refused(storage("FloatStorage", "", 6), format, "found none for \"\"");
    refused(storage("FloatStorage", "0", 5), format, "to have 5 elements of 4 bytes; found 24 bytes");
    refused(storage("FloatStorage", "0", 7), format, "7 elements");
    refused(storage("DoubleStorage", "0", 6), format, "6 elements of 8 bytes");
    refused(storage("ByteStorage", "0", 6), format, "6 elements of 1 bytes");
    refused(storage("FloatStorage", "0", 0), format, "0 elements");
    refused(storage("FloatStorage", "0", -6), format, "found -6");
    refused(storage("FloatStorage", "0", (std::int64_t{1} << 62) + 6), format, "4611686018427387910 elements");
    refused(storage("FloatStorage", "0", INT64_MAX), format, "elements");
    refused(storage("float32", "0", 6), format, "found a reference to torch.float32");
    refused(storage("Foo", "0", 6), format, "found a reference to torch.Foo");
    const auto tuple = [](const std::string& inner) { return PickleText().raw("(").raw(inner).raw("tQ").end(); };
    const std::string tag = "X\7\0\0\0storage"s, key = "X\1\0\0\0000"s, type = "ctorch\nFloatStorage\n";
    REQUIRE_NOTHROW(read(tuple(tag + type + key + "NK\6")));
    REQUIRE_NOTHROW(read(tuple(tag + "ctorch.cuda\nFloatStorage\n" + key + "NK\6")));
    REQUIRE_NOTHROW(read(tuple(tag + "ctorch.storage\nUntypedStorage\n" + key + "NK\x18")));
    refused(tuple("X\7\0\0\0scorage"s + type + key + "NK\6"), format, "another tag");
    refused(tuple("N" + type + key + "NK\6"), format, "another tag");
    refused(tuple(tag + "N" + key + "NK\6"), format, "the name of a class");
    refused(tuple(tag + type + "NNK\6"), format, "found None as key");
    refused(tuple(tag + type + "K\0NK\6"s), format, "found an int as key");
    refused(tuple(tag + type + key + "NN"), format, "a number of elements from 0 to 2^63; found None");
    refused(tuple(tag + type + key + "N\x88"), format, "found a bool");
    refused(tuple(tag + type + key + "N\x8a\x09" + std::string(9, '\x7F')), format, "found an int");
    refused(tuple(tag + type + key + "K\6"), format, "found a tuple");
    refused(tuple(tag + type + key + "NK\6N"), format, "found a tuple");
}

TEST_CASE("Tensors that lie are refused", "[pytorch][pickle]") {
    const auto tensor = [](std::int64_t offset, const std::vector<std::int64_t>& sizes,
                           const std::vector<std::int64_t>& strides) {
        return PickleText().tensor("FloatStorage", "0", 6, offset, sizes, strides).end();
    };
    for (const auto& good : {tensor(0, {6}, {1}), tensor(5, {}, {}), tensor(0, {3, 2}, {2, 1}), tensor(6, {0}, {1}),
                             tensor(0, {0, INT64_MAX}, {INT64_MAX, 1}), tensor(5, {7}, {0}),
                             tensor(0, {2, 2, 2}, {3, 1, 1}), tensor(1, {1}, {INT64_MAX})}) {
        REQUIRE_NOTHROW(read(good));
    }
    refused(tensor(1, {6}, {1}), format, "within the 6 elements of its storage \"0\"; found one that reads element 6");
    refused(tensor(6, {}, {}), format, "element 6");
    refused(tensor(7, {0}, {1}), format, "element 7");
    refused(tensor(INT64_MAX, {}, {}), format, "element 9223372036854775807");
    refused(tensor(0, {2}, {6}), format, "element 6");
    refused(tensor(0, {7}, {1}), format, "element 6");
    refused(tensor(0, {2, 3}, {4, 1}), format, "element 6");
    refused(tensor(0, {INT64_MAX}, {1}), format, "reads element");
    refused(tensor(0, {INT64_MAX}, {INT64_MAX}), format, "beyond 2^64");
    refused(tensor(0, {INT64_MAX, INT64_MAX, INT64_MAX}, {2, 2, 2}), format, "beyond 2^64");
    refused(tensor(0, {3}, {INT64_MAX}), format, "element");
    refused(tensor(2, {INT64_MAX, 2, 2}, {2, 2, INT64_MAX}), format, "beyond 2^64");
    refused(tensor(-1, {2}, {1}), format, "an offset from 0 to 2^63; found -1");
    refused(tensor(0, {-1}, {1}), format, "sizes from 0 to 2^63; found -1");
    refused(tensor(0, {-1, -1}, {1, 1}), format, "found -1");
    refused(tensor(5, {2}, {-1}), format, "strides from 0 to 2^63; found -1");
    refused(tensor(0, {2, 3}, {1}), format, "expected 2 arguments; found 1");
    refused(tensor(0, {2}, {3, 1}), format, "expected 1 arguments; found 2");
    refused(tensor(0, std::vector<std::int64_t>(65, 1), std::vector<std::int64_t>(65, 1)), format,
            "0 to 64 arguments; found 65");
    REQUIRE_NOTHROW(read(tensor(0, std::vector<std::int64_t>(64, 1), std::vector<std::int64_t>(64, 1))));

    const auto call = [](const std::string& name, const std::string& arguments) {
        return PickleText().global("torch._utils", name).raw("(").raw(arguments).raw("tR").end();
    };
    const std::string stored = PickleText().storage("FloatStorage", "0", 6).end().substr(2);
    const std::string storage = stored.substr(0, stored.size() - 1), shape = "K\6\x85", stride = "K\1\x85";
    REQUIRE_NOTHROW(read(call("_rebuild_tensor", storage + "K\0"s + shape + stride)));
    REQUIRE_NOTHROW(read(call("_rebuild_tensor_v2", storage + "K\0"s + shape + stride + "\x89})")));
    REQUIRE_NOTHROW(read(call("_rebuild_tensor_v3", storage + "K\0"s + shape + stride + "\x89}ctorch\nuint32\n")));
    refused(call("_rebuild_tensor_v2", "NK\0"s + shape + stride), format, "a storage; found None");
    refused(call("_rebuild_tensor_v2", "}K\0"s + shape + stride), format, "a storage; found a dictionary");
    refused(call("_rebuild_tensor_v2", storage + "N" + shape + stride), format, "an offset");
    refused(call("_rebuild_tensor_v2", storage + "\x89" + shape + stride), format,
            "an offset from 0 to 2^63; found a bool");
    refused(call("_rebuild_tensor_v2", storage + "K\0K\6"s + stride), format, "found an int");
    refused(call("_rebuild_tensor_v2", storage + "K\0]"s + stride), format, "found a list");
    refused(call("_rebuild_tensor_v2", storage + "K\0N\x85"s + stride), format, "sizes from 0 to 2^63; found None");
    refused(call("_rebuild_tensor_v2", storage + "K\0"s + shape + "N\x85"), format, "strides");
    refused(call("_rebuild_tensor_v2", storage + "K\0"s + shape), format, "4 to 7 arguments; found 3");
    refused(call("_rebuild_tensor_v2", storage + "K\0"s + shape + stride + "NNNNN"), format, "found 9");
    refused(call("_rebuild_tensor_v3", storage + "K\0"s + shape + stride + "\x89}N"), format, "the name of a class");
    refused(call("_rebuild_tensor_v3", storage + "K\0"s + shape + stride + "\x89}ctorch\nFoo\n"), format,
            "an element type; found a reference to torch.Foo");
    refused(call("_rebuild_tensor_v3", storage + "K\0"s + shape + stride + "\x89}ctorch\nfloat64\n"), format,
            "within the 3 elements");
    refused(call("_rebuild_tensor_v3", storage + "K\0"s + shape + stride), format, "7 to 8 arguments");
    refused(call("_rebuild_parameter", ""), format, "1 to 4 arguments; found 0");
    refused(call("_rebuild_parameter", "N\x89}"), format, "a tensor as the parameter's value; found None");
    refused(call("_rebuild_parameter", storage + "\x89}"), format, "found a storage");
    const auto again = [](const std::string& arguments) {
        return PickleText().global("torch._tensor", "_rebuild_from_type_v2").raw("(").raw(arguments).raw("tR").end();
    };
    const std::string self = "ctorch._tensor\n_rebuild_from_type_v2\n", type = "ctorch\nTensor\n";
    refused(again(self + type + ")N"), format, "itself again");
    refused(again("N" + type + ")N"), format, "the name of a class or function; found None");
    refused(again("cfoo\nbar\n" + type + ")N"), unsupported, "found one of foo.bar");
    refused(again(self + type + ")"), format, "4 arguments; found 3");
    // A tensor whose storage would be replaced afterwards.
    refused(tensor(0, {6}, {1}).substr(0, tensor(0, {6}, {1}).size() - 1) + "}b.", unsupported, "found a tensor");
}

TEST_CASE("Pickles that blow up are refused in little time and memory", "[pytorch][pickle]") {
    const std::string begin = "\x80\x02";
    refused(begin + repeated("]", 5'000'000), too_much, "values on its stack");
    refused(begin + repeated("]0", 5'000'000), too_much, "objects; found more");
    refused(begin + repeated("(", 5'000'000), too_much, "open marks");
    refused(begin + "]" + repeated("2", 5'000'000), too_much, "values on its stack");
    refused(begin + "](" + repeated("(Nt", 3'000'000), too_much, "values on its stack");
    // Lists of one object again and again: 2 bytes for each element.
    std::string bomb = begin + "]q\0"s;
    for (int i = 0; i < 100; ++i) bomb += "(" + repeated("h\0"s, 100'000) + "e";
    refused(bomb, too_much, "elements of lists and dictionaries");
    // Tuples of tuples, each twice the one before: 2^1000 elements if they were written out.
    std::string laughs = begin + "}X\1\0\0\0wN"s;
    for (int i = 0; i < 1000; ++i) laughs += "2\x86";
    REQUIRE(read(laughs + "s.").elements.size() == 2001);
    // Themselves.
    REQUIRE_NOTHROW(read(begin + "]q\0h\0a."s));
    REQUIRE_NOTHROW(read(begin + "}q\0X\1\0\0\0xh\0s."s));
    // Deep nesting needs no stack: it is freed and read in a flat list.
    REQUIRE_NOTHROW(read(begin + ")" + repeated("\x85", 3'000'000) + "."));
}

TEST_CASE("Dictionaries that are nested, shared, cyclic or full of long names stay small", "[pytorch][pickle]") {
    const TemporaryFolder folder;
    SECTION("nested too deeply") {
        std::string pickle = "\x80\x02" + repeated("}X\1\0\0\0a"s, 40) + "}";
        pickle += PickleText().plain_entry("w").end().substr(2);
        pickle.pop_back();
        pickle += repeated("s", 40) + ".";
        REQUIRE_THROWS_MATCHES(open(folder, pickle), Error, IsError(too_much, "32 dictionaries in each other"));
    }
    SECTION("shared at every level") {
        std::string pickle = "\x80\x02}";
        pickle += PickleText().plain_entry("w").end().substr(2);
        pickle.pop_back();
        for (char level = 0; level < 30; ++level) {
            const std::string memo(1, level);
            pickle += "q" + memo + "0}X\1\0\0\0ah"s + memo + "sX\1\0\0\0bh"s + memo + "s";
        }
        REQUIRE(open(folder, pickle + ".")->tensors().size() == 1);
    }
    SECTION("in itself") {
        PickleText pickle;
        pickle.raw("}q\5").plain_entry("w").text("self").raw("h\5s").text("model").raw("h\5s");
        REQUIRE(open(folder, pickle.end())->tensors().size() == 1);
    }
    SECTION("long names") {
        REQUIRE_THROWS_MATCHES(open(folder, PickleText().raw("}").plain_entry(std::string(5000, 'x')).end()), Error,
                               IsError(too_much, "names of at most 4096 bytes"));
        PickleText pickle;
        pickle.raw("}").text(std::string(4000, 'x')).raw("}").text("w").tensor("FloatStorage", "0", 6, 0, {6}, {1});
        pickle.raw("q\1s");
        for (int i = 0; i < 20'000; ++i) pickle.text(std::to_string(i)).raw("h\1s");
        REQUIRE_THROWS_MATCHES(open(folder, pickle.raw("s").end()), Error,
                               IsError(too_much, "shorter names, or fewer"));
    }
    SECTION("many names of one tensor") {
        PickleText pickle;
        pickle.raw("}").text("w").tensor("FloatStorage", "0", 6, 0, {6}, {1}).raw("q\1s");
        for (int i = 0; i < 500'000; ++i) pickle.text(std::to_string(i)).raw("h\1s");
        REQUIRE_THROWS_MATCHES(open(folder, pickle.end()), Error,
                               IsError(too_much, "expected at most 500 000 tensors"));
    }
    SECTION("names that are no UTF-8, or come twice") {
        REQUIRE_THROWS_MATCHES(open(folder, PickleText().raw("}").plain_entry("a\xFF").end()), Error,
                               IsError(format, "names in UTF-8"));
        REQUIRE_THROWS_MATCHES(open(folder, PickleText().raw("}").plain_entry("a").plain_entry("a").end()), Error,
                               IsError(ErrorCode::mismatch, "found \"a\" again"));
        PickleText pickle;
        pickle.raw("}").plain_entry("a.b").text("a").raw("}").plain_entry("b").raw("s");
        REQUIRE_THROWS_MATCHES(open(folder, pickle.end()), Error, IsError(ErrorCode::mismatch, "found \"a.b\" again"));
    }
}

TEST_CASE("Tensors larger than the file justifies are not made", "[pytorch][pickle]") {
    const TemporaryFolder folder;
    const auto one = [](const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
        return PickleText()
            .raw("}")
            .text("w")
            .tensor("FloatStorage", "0", 6, 0, sizes, strides)
            .raw("s")
            .plain_entry("a")
            .end();
    };
    SECTION("expanded") {
        for (const std::int64_t size : {std::int64_t{1} << 40, std::int64_t{1} << 58, std::int64_t{100'000}}) {
            const auto checkpoint = open(folder, one({size}, {0}));
            REQUIRE(checkpoint->tensors().size() == 1);
            REQUIRE_THROWS_MATCHES(checkpoint->load("w"), Error, IsError(unsupported, "expanded from 1"));
        }
        REQUIRE(open(folder, one({INT64_MAX, 4}, {0, 0}))->unreadable().at("w") ==
                "found a shape of 2^64 bits or more");
        REQUIRE(open(folder, one({2, 6}, {0, 1}))->tensors().size() == 2);
    }
    SECTION("many small ones expanded") {
        PickleText pickle;
        pickle.raw("}").plain_entry("a");
        for (int i = 0; i < 100; ++i) {
            pickle.text(std::to_string(i)).tensor("FloatStorage", "0", 6, 0, {2000}, {0}).raw("s");
        }
        const auto checkpoint = open(folder, pickle.end());
        REQUIRE(checkpoint->unreadable().size() > 50);
        std::uint64_t bytes = 0;
        for (const auto& [name, info] : checkpoint->tensors()) bytes += info.bytes;
        REQUIRE(bytes < fs::file_size(folder / "x.pt") + 100);
    }
    SECTION("no elements beside large sizes") {
        const auto checkpoint = open(folder, one({0, INT64_MAX, INT64_MAX}, {0, 0, 0}));
        REQUIRE_THROWS_AS(checkpoint->load("w"), Error);
    }
    SECTION("one storage many times over") {
        const std::string storage(4U << 20U, '\0');
        const auto elements = static_cast<std::int64_t>(storage.size() / 4);
        PickleText pickle;
        pickle.raw("}").text("w").tensor("FloatStorage", "0", elements, 0, {elements}, {1}).raw("q\1s");
        for (int i = 0; i < 100; ++i) pickle.text(std::to_string(i)).raw("h\1s");
        write_file(folder / "x.pt", pytorch_bytes(pickle.end(), storage));
        REQUIRE_THROWS_MATCHES(Checkpoint::open(folder / "x.pt"), Error,
                               IsError(too_much, "at most 64 times the file's bytes"));
    }
}

TEST_CASE("Any byte of a pickle changed, and any opcodes in a row, end in an error or in objects",
          "[pytorch][pickle]") {
    std::mt19937 generator(11);
    PickleText good(4);
    good.raw("}(").text("weight").tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1}).raw("u").text("args");
    good.global("argparse", "Namespace").raw(")\x81}").text("rate").raw("G\0\0\0\0\0\0\0\0sbs"s);
    const std::string whole = good.end();
    constexpr std::string_view opcodes =
        "(.012N\x88\x89JKMGX\x8cT)t\x85\x86\x87]ae}su\x8f\x90\x91"
        "c\x93Rb\x81qh\x94Q";
    for (int round = 0; round < 60'000; ++round) {
        std::string pickle = whole;
        if (round % 2 == 0) {
            for (int i = 0; i <= round % 3; ++i) pickle[generator() % pickle.size()] = static_cast<char>(generator());
        } else {
            pickle.insert(2 + generator() % (pickle.size() - 2), 1, opcodes[generator() % opcodes.size()]);
            for (int i = 0; i < 3; ++i)
                pickle[2 + generator() % (pickle.size() - 2)] = opcodes[generator() % opcodes.size()];
        }
        try {
            const PickleObjects objects = read(pickle);
            REQUIRE(objects.root < objects.nodes.size());
        } catch (const Error& error) {
            REQUIRE(error.code() != ErrorCode::internal);
        }
    }
}
