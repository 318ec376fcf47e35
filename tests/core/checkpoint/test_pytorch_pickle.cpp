// SPDX-License-Identifier: GPL-3.0-or-later
// Opcodes and names.
#include "tests/core/checkpoint/pickle_files.h"

using namespace headscope;
using namespace headscope::checkpoint;
using namespace headscope::test;
using namespace std::string_literals;

TEST_CASE("Pickles that run programs are refused by the name of what they call", "[pytorch][pickle]") {
    struct Call {
        const char* module;
        const char* name;
    };
    const auto call = GENERATE(values<Call>({{"os", "system"},
                                             {"posix", "system"},
                                             {"nt", "system"},
                                             {"builtins", "eval"},
                                             {"__builtin__", "exec"},
                                             {"builtins", "getattr"},
                                             {"builtins", "__import__"},
                                             {"builtins", "open"},
                                             {"builtins", "compile"},
                                             {"subprocess", "Popen"},
                                             {"subprocess", "check_output"},
                                             {"sys", "exit"},
                                             {"os.path", "join"},
                                             {"runpy", "_run_code"},
                                             {"importlib", "import_module"},
                                             {"socket", "socket"},
                                             {"shutil", "rmtree"},
                                             {"ctypes", "CDLL"},
                                             {"pickle", "loads"},
                                             {"_pickle", "loads"},
                                             {"marshal", "loads"},
                                             {"operator", "attrgetter"},
                                             {"webbrowser", "open"},
                                             {"pip", "main"},
                                             {"timeit", "timeit"},
                                             {"pdb", "run"},
                                             {"bdb", "Bdb"},
                                             {"torch.storage", "_load_from_bytes"},
                                             {"torch", "load"},
                                             {"torch.hub", "load"},
                                             {"torch.jit", "load"},
                                             {"numpy.testing._private.utils", "runstring"},
                                             {"functools", "partial"},
                                             {"functools", "reduce"},
                                             {"some_package", "some_function"},
                                             {"torch", "Foo"},
                                             {"torch.nn.functional", "gelu"},
                                             {"collections", "namedtuple"},
                                             {"types", "FunctionType"},
                                             {"numpy", "load"},
                                             {"", ""},
                                             {"torch._utils", "_rebuild_something"},
                                             {"torch.serialization", "load"}}));
    const std::string name = std::string(call.module) + "." + call.name;
    INFO(name);
    const TemporaryFolder folder;
    // Beside good weights, as an entry of its own.
    const std::string argument = "echo > " + (folder / "ran").string();
    PickleText two, four(4), inside;
    two.raw("}").plain_entry("weight").text("x").global(call.module, call.name).raw("(").text(argument).raw("tRs");
    four.raw("}").plain_entry("weight").text("x").text(call.module).text(call.name).raw("\x93(").text(argument);
    four.raw("tRs");
    inside.raw("}").text("weight").global("torch._utils", "_rebuild_parameter").raw("(");
    inside.global(call.module, call.name).raw("(").text(argument).raw("tR\x89}tRs");
    for (const PickleText* pickle : {&two, &four, &inside}) {
        REQUIRE_THROWS_MATCHES(open(folder, pickle->end()), Error, IsError(unsupported, "found "));
        REQUIRE_THROWS_MATCHES(open(folder, pickle->end()), Error, IsError(unsupported, name));
        REQUIRE_THROWS_MATCHES(open(folder, pickle->end()), Error, IsError(unsupported, "archive/data.pkl\", byte "));
    }
    REQUIRE(folder.names() == std::vector<std::string>{"x.pt"});
}

TEST_CASE("Instances of unknown classes beside the weights are named and left alone", "[pytorch][pickle]") {
    const TemporaryFolder folder;
    PickleText pickle;
    pickle.raw("}").text("model").raw("}").plain_entry("weight");
    pickle.text("odd").global("package", "Odd").raw(")\x81}b").raw("s");  // an object where a tensor might be
    pickle.raw("s").text("config").global("package", "Config").raw(")\x81}").text("a").integer(1).raw("sbs");
    const auto checkpoint = open(folder, pickle.end());
    REQUIRE(checkpoint->tensors().size() == 1);
    REQUIRE(checkpoint->unreadable().at("odd") == "found an object made by package.Odd");
    REQUIRE(checkpoint->notes().front().find("\"config (package.Config)\"") != std::string::npos);
    REQUIRE_THROWS_MATCHES(checkpoint->load("odd"), Error, IsError(unsupported, "package.Odd"));
}

TEST_CASE("Opcodes that torch.save does not write are refused by name", "[pytorch][pickle]") {
    const auto [opcode, name] = GENERATE(table<char, const char*>({{'F', "FLOAT"},
                                                                   {'I', "INT"},
                                                                   {'L', "LONG"},
                                                                   {'P', "PERSID"},
                                                                   {'S', "STRING"},
                                                                   {'V', "UNICODE"},
                                                                   {'d', "DICT"},
                                                                   {'g', "GET"},
                                                                   {'i', "INST"},
                                                                   {'l', "LIST"},
                                                                   {'o', "OBJ"},
                                                                   {'p', "PUT"},
                                                                   {'\x80', "PROTO"},
                                                                   {'\x82', "EXT1"},
                                                                   {'\x83', "EXT2"},
                                                                   {'\x84', "EXT4"},
                                                                   {'\x97', "NEXT_BUFFER"},
                                                                   {'\x98', "READONLY_BUFFER"},
                                                                   {'\0', "0x00"},
                                                                   {'\xFF', "0xFF"},
                                                                   {'z', "0x7A"}}));
    refused("\x80\x02}"s + opcode + "1\n.", unsupported, "x.pt, byte 3 ("s + name + ")] expected an opcode");
}

TEST_CASE("Pickles that are malformed are refused", "[pytorch][pickle]") {
    struct Case {
        std::string pickle;
        ErrorCode code;
        const char* part;
    };
    const std::string begin = "\x80\x02";
    const std::vector<Case> cases = {
        {"", format, "a pickle of protocol 2 to 5"},
        {"\x80", format, "a pickle of protocol 2 to 5"},
        {"}.", format, "a pickle of protocol 2 to 5"},
        {"\x80\x01}.", unsupported, "protocol 1"},
        {"\x80\x06}.", unsupported, "protocol 6"},
        {"\x80\xFF}.", unsupported, "protocol 255"},
        {begin, format, "that ends in STOP"},
        {begin + "}", format, "byte 3] expected a pickle that ends in STOP"},
        {begin + ".", format, "byte 2 (STOP)] expected one value left"},
        {begin + "}}.", format, "found 2"},
        {begin + "(}.", format, "one value left"},
        {begin + "}(.", format, "one value left"},
        {begin + "}.x", format, "found 1 bytes"},
        {begin + "0", format, "byte 2 (POP)] expected 1 value on the stack; found 0"},
        {begin + "2", format, "1 value"},
        {begin + "1", format, "a mark"},
        {begin + "t", format, "a mark"},
        {begin + "u", format, "a mark"},
        {begin + "e", format, "a mark"},
        {begin + "\x90", format, "a mark"},
        {begin + "\x91", format, "a mark"},
        {begin + "}(q\1", format, "1 value"},
        {begin + "}q", format, "1 bytes more"},
        {begin + "q\1", format, "1 value"},
        {begin + "}r\1\0\0"s, format, "4 bytes more"},
        {begin + "}r\xFF\xFF\xFF\xFF.", too_much, "entries in its memo"},
        {begin + "\x94", format, "1 value"},
        {begin + "h\0"s, format, "found number 0"},
        {begin + "}q\3h\2.", format, "found number 2"},
        {begin + "}q\0h\1."s, format, "found number 1"},
        {begin + "j\xFF\xFF\xFF\xFF", format, "found number 4294967295"},
        {begin + "\x85", format, "1 value"},
        {begin + "N\x86", format, "expected 2 values on the stack; found 1"},
        {begin + "NN\x87", format, "3 values"},
        {begin + "N(N\x86", format, "2 values"},
        {begin + "a", format, "1 value"},
        {begin + "Na", format, "a container"},
        {begin + "NNa", format, "a list to append to; found None"},
        {begin + "}Na", format, "a list to append to; found a dictionary"},
        {begin + ")Na", format, "found a tuple"},
        {begin + "](Ne(", format, "ends in STOP"},
        {begin + "N(Ne", format, "a list to append to"},
        {begin + "(Ne", format, "a container"},
        {begin + "s", format, "2 values"},
        {begin + "NNs", format, "a container"},
        {begin + "]NNs", format, "a dictionary to put entries in; found a list"},
        {begin + ")NNs", format, "found a tuple"},
        {begin + "N(NNu", format, "found None"},
        {begin + "}(NNNu", format, "a key without a value"},
        {begin + "(NNu", format, "a container"},
        {begin + "}]Ns", format, "look up; found a list"},
        {begin + "}}Ns", format, "look up; found a dictionary"},
        {begin + "](N\x90", format, "a set to add to; found a list"},
        {begin + "}(N\x90", format, "a set to add to; found a dictionary"},
        {begin + "J\1\2\3", format, "4 bytes more; found 3"},
        {begin + "M\1", format, "2 bytes more"},
        {begin + "K", format, "1 bytes more"},
        {begin + "G1234567", format, "8 bytes more"},
        {begin + "\x8a\xFFxx", format, "255 bytes more; found 2"},
        {begin + "\x8b\xFF\xFF\xFF\xFF", format, "a length of 0 or more; found -1"},
        {begin + "\x8b\xFF\xFF\xFF\x7Fx", format, "2147483647 bytes more; found 1"},
        {begin + "X\xFF\xFF\xFF\xFFx", format, "byte 2 (BINUNICODE)] expected 4294967295 bytes more; found 1"},
        {begin + "\x8c\5x", format, "5 bytes more"},
        {begin + "\x8d\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFFx", format, "18446744073709551615 bytes more"},
        {begin + "\x8e\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx", format, "9223372036854775807 bytes more"},
        {begin + "\x96\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx", format, "(BYTEARRAY8)"},
        {begin + "B\xFF\xFF\xFF\xFFx", format, "bytes more"},
        {begin + "C\2x", format, "bytes more"},
        {begin + "T\xFF\xFF\xFF\xFFx", format, "found -1"},
        {begin + "U\2x", format, "bytes more"},
        {begin + "\x95\xFF\0\0\0\0\0\0\0}."s, format, "a frame within the 2 bytes left"},
        {begin + "\x95\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF}.", format, "found one of 18446744073709551615"},
        {begin + "ccollections", format, "a line feed"},
        {begin + "ccollections\nOrderedDict", format, "a line feed"},
        {begin + "c" + std::string(600, 'x') + "\ny\n)R.", format, "at most 512 bytes and a line feed"},
        {begin + "NN\x93", format, "as strings; found None and None"},
        {begin + "\x93", format, "1 value"},
        {begin + "X\1\0\0\0xN\x93"s, format, "as strings; found a string and None"},
        {begin + "NN\x81", format, "a tuple of arguments; found None"},
        {begin + "N)\x81", format, "the name of a class or function; found None"},
        {begin + ")\x81", format, "1 value"},
        {begin + "NNN\x92", format, "a tuple of arguments"},
        {begin + "NN\x92", format, "1 value"},
        {begin + "R", format, "1 value"},
        {begin + "NR", format, "1 value"},
        {begin + "N)R", format, "the name of a class or function; found None"},
        {begin + "])R", format, "found a list"},
        {begin + "ccollections\nOrderedDict\nNR.", format, "a tuple of arguments; found None"},
        {begin + "ccollections\nOrderedDict\n]R.", format, "a tuple of arguments; found a list"},
        {begin + "ctorch\nfloat32\n)R.", unsupported, "found one of torch.float32"},
        {begin + "ctorch\nFloatStorage\n)R.", unsupported, "found one of torch.FloatStorage"},
        {begin + "ctorch\nfloat32\n)\x81.", format, "a class to make an instance of"},
        {begin + "ctorch._utils\n_rebuild_tensor_v2\n)\x81.", format, "a class to make an instance of"},
        {begin + "b", format, "1 value"},
        {begin + "Nb", format, "1 value"},
        {begin + "NNb", unsupported, "an object that takes a state; found None"},
        {begin + "]Nb", unsupported, "found a list"},
        {begin + "Q", format, "1 value"},
        {begin + "NQ", format, "a storage: its type, key, place and number of elements; found None"},
        {begin + "X\1\0\0\0xQ"s, format, "found a string"},
        {begin + ")Q", format, "found a tuple"},
    };
    for (const Case& one : cases) {
        INFO(escaped(one.pickle));
        refused(one.pickle, one.code, one.part);
    }
}
