// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include "core/data/source/source_files.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using namespace headscope::test;
using data::find_sources;
using data::SourceKind;

namespace {

class Tree {
public:
    Tree() {
        for (const char* name : {"a.txt", "b.txt", "c.jsonl", "notes.md", ".hidden.txt", "sub/d.txt", "sub/deep/e.txt",
                                 "odd[1].txt", "sub/.git/f.txt"}) {
            std::filesystem::create_directories((folder.path() / name).parent_path());
            write_file(folder.path() / name, name);
        }
        std::filesystem::create_directory(folder / "empty");
    }
    std::vector<std::string> find(const std::vector<std::string>& wanted) const {
        std::vector<std::string> names;
        for (const auto& source : find_sources(wanted, folder.path(), "data.text")) {
            names.push_back(source.path.lexically_relative(folder.path()).string());
            CHECK((source.kind == SourceKind::json_lines) == source.path.native().ends_with(".jsonl"));
        }
        return names;
    }
    TemporaryFolder folder;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("files, folders and patterns name sources, sorted, none twice", "[data]") {
    const Tree tree;
    CHECK(tree.find({"b.txt", "a.txt"}) == Names{"b.txt", "a.txt"});
    CHECK(tree.find({"."}) == Names{"a.txt", "b.txt", "c.jsonl", "odd[1].txt", "sub/d.txt", "sub/deep/e.txt"});
    CHECK(tree.find({"sub", "a.txt", "*.txt"}) == Names{"sub/d.txt", "sub/deep/e.txt", "a.txt", "b.txt", "odd[1].txt"});
    CHECK(tree.find({"*.jsonl"}) == Names{"c.jsonl"});
    CHECK(tree.find({"[ab].txt"}) == Names{"a.txt", "b.txt"});
    CHECK(tree.find({"odd[1].txt"}) == Names{"odd[1].txt"});
    CHECK(tree.find({"**/*.txt"}) == Names{"a.txt", "b.txt", "odd[1].txt", "sub/d.txt", "sub/deep/e.txt"});
    CHECK(tree.find({"s?b/*"}) == Names{"sub/d.txt"});
    CHECK(tree.find({"sub/**/e.txt"}) == Names{"sub/deep/e.txt"});
    CHECK(tree.find({".hidden.txt", "notes.md"}) == Names{".hidden.txt", "notes.md"});
    CHECK(tree.find({(tree.folder / "a.txt").string()}) == Names{"a.txt"});
    std::filesystem::create_symlink(tree.folder / "a.txt", tree.folder / "link.txt");
    CHECK(tree.find({"a.txt", "link.txt"}) == Names{"a.txt"});
    std::filesystem::create_directory_symlink(tree.folder.path(), tree.folder / "loop");
    CHECK(tree.find({"**/d.txt"}) == Names{"sub/d.txt"});
}

TEST_CASE("a folder with documents that it does not give is refused by their file's name", "[data]") {
    const Tree tree;
    const Names all = tree.find({"."});
    write_file(tree.folder / "sub/settings.json", "{\n  \"columns\": 2\n}\n");
    write_file(tree.folder / "sub/empty.json", "");
    CHECK(tree.find({"."}) == all);
    for (const auto& [name, bytes] :
         {std::pair("sub/deep/rows.json", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n"),
          std::pair("array.json", "[{\"text\": \"a\"}]"), std::pair("part.parquet", "PAR1")}) {
        INFO(name);
        write_file(tree.folder / name, bytes);
        CHECK_THROWS_MATCHES(tree.find({"."}), Error, IsError(ErrorCode::usage, name));
        CHECK(tree.find({"**/*.txt"}) == Names{"a.txt", "b.txt", "odd[1].txt", "sub/d.txt", "sub/deep/e.txt"});
        std::filesystem::remove(tree.folder / name);
    }
}

TEST_CASE("what names no file is refused by its name", "[data]") {
    const Tree tree;
    CHECK_THROWS_MATCHES(tree.find({"none.txt"}), Error, IsError(ErrorCode::io, "none.txt"));
    CHECK_THROWS_MATCHES(tree.find({"*.xyz"}), Error,
                         IsError(ErrorCode::usage, "[data.text] expected files that match"));
    CHECK_THROWS_MATCHES(tree.find({"empty"}), Error, IsError(ErrorCode::usage, "expected a folder with .txt"));
    CHECK_THROWS_AS(tree.find({""}), Error);
    CHECK_THROWS_AS(tree.find({"/dev/null"}), Error);
}
