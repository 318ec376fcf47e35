// SPDX-License-Identifier: GPL-3.0-or-later
#include <catch2/catch.hpp>

#include <hdf5.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <random>

#include "core/base/error.h"
#include "core/store/evaluation/evaluation_file.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using test::IsError;

namespace {

store::Evaluation two_models() {
    store::Evaluation evaluation;
    evaluation.models.push_back({"standard", "/runs/a", std::string(64, 'a'), "standard", "uniform",
                                 "standard,standard", "", 1234, 2, 256, 1, std::string(64, 'b'), 960, 77, "mine",
                                 "rte"});
    evaluation.models.push_back({"mlp, \"even\"", "", "", "mlp", "even", "mlp,standard", "0", 1234, 2, 0, -1});
    evaluation.results.push_back(
        {0, "perplexity", "token_perplexity", 16, 12.5, 0.25, 1000, 5, "plain", "4-8k", std::string(64, 'd'), 7});
    evaluation.results.push_back({1, "perplexity", "token_perplexity", 256, 1e5, std::nan(""), 7});
    evaluation.settings_json = R"({"stride":0})";
    evaluation.program_version = "1.2.3";
    evaluation.created = "2030-01-02T03:04:05Z";
    return evaluation;
}

/// Texts of odd sizes: none, one byte, one that several compressed pieces hold, one that is no UTF-8 or has a NUL.
store::Evaluation with_items() {
    store::Evaluation evaluation = two_models();
    std::string large = R"({"prompt":")";
    std::mt19937 random(7);
    while (large.size() < 700'001) large += static_cast<char>('a' + random() % 26);
    const std::vector<std::string> texts{R"({"requests":[{"context":"où ?"}]})", "", "x", large + "\"}", "a\0b\xff"};
    for (std::size_t i = 0; i < texts.size(); ++i) {
        store::EvaluatedItem item{static_cast<std::int64_t>(i % 2),
                                  "piqa",
                                  2048,
                                  5,
                                  static_cast<std::int64_t>(i),
                                  1,
                                  -1,
                                  i % 3 == 0,
                                  texts[i]};
        if (i == 4) item.texts = std::string("a\0b\xff", 4);
        if (i == 2) item.subset = "8k+";
        if (i > 0) item.metrics = R"({"acc":0.25})";
        evaluation.items.push_back(item);
    }
    return evaluation;
}

/// A file of with_items() that somebody else changed.
std::filesystem::path changed_file(const test::TemporaryFolder& folder, const std::function<void(hid_t)>& change) {
    const auto path = folder / "changed.evaluation.h5";
    store::write_evaluation(path, with_items());
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    REQUIRE(file >= 0);
    change(file);
    REQUIRE(H5Fclose(file) >= 0);
    return path;
}

/// Replaces a dataset by one of `size` numbers, of which the first is `first`.
void replace(hid_t file, const char* name, hid_t type, hsize_t size, std::int64_t first, hsize_t chunk = 0) {
    REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    const hid_t space = H5Screate_simple(1, &size, nullptr), list = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk > 0) {
        H5Pset_chunk(list, 1, &chunk);
        H5Pset_deflate(list, 6);
    }
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    REQUIRE(dataset >= 0);
    if (chunk == 0) {
        std::vector<std::int64_t> values(static_cast<std::size_t>(size));
        values.at(0) = first;
        REQUIRE(H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
    }
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
}

void set_version(hid_t file, std::int32_t version) {
    const hid_t attribute = H5Aopen(file, "format_version", H5P_DEFAULT);
    REQUIRE(H5Awrite(attribute, H5T_NATIVE_INT32, &version) >= 0);
    H5Aclose(attribute);
}

}  // namespace

TEST_CASE("An evaluation comes back from its file as it was written", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.evaluation.h5";
    const store::Evaluation written = two_models();
    store::write_evaluation(path, written);
    const store::Evaluation read = store::read_evaluation(path);
    CHECK(read.models == written.models);
    CHECK(read.settings_json == written.settings_json);
    CHECK(read.program_version == "1.2.3");
    CHECK(read.created == written.created);
    REQUIRE(read.results.size() == 2);
    CHECK(read.results[0].value == 12.5);
    CHECK(read.results[0].error == 0.25);
    CHECK(read.results[0].shots == 5);
    CHECK(read.results[0].text == "plain");
    CHECK(read.results[0].subset == "4-8k");
    CHECK(read.results[0].data_sha256 == std::string(64, 'd'));
    CHECK(read.results[1].text.empty());
    CHECK(read.results[0].cut == 7);
    CHECK(read.results[1].cut == 0);
    CHECK(read.results[1].shots == 0);
    CHECK(read.results[1].model == 1);
    CHECK(read.results[1].count == 7);
    CHECK(std::isnan(read.results[1].error));
    const auto* found = read.find(1, "perplexity", "token_perplexity", 256);
    REQUIRE(found != nullptr);
    CHECK(found->value == 1e5);
    CHECK(read.find(1, "perplexity", "token_perplexity", 16) == nullptr);
}

TEST_CASE("Results of an appended evaluation keep their models", "[store][evaluation]") {
    store::Evaluation all = two_models();
    store::append(all, two_models());
    store::append(all, {});
    REQUIRE(all.models.size() == 4);
    REQUIRE(all.results.size() == 4);
    CHECK(all.results[2].model == 2);
    CHECK(all.results[3].model == 3);
    CHECK(all.models[3].name == two_models().models[1].name);
    CHECK(all.results[3].value == 1e5);
}

TEST_CASE("An evaluation without rows is a file too", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    store::write_evaluation(folder / "a.evaluation.h5", {});
    const auto read = store::read_evaluation(folder / "a.evaluation.h5");
    CHECK(read.models.empty());
    CHECK(read.results.empty());
    CHECK_FALSE(read.program_version.empty());
    CHECK(read.created.size() == 20);
    CHECK(store::read_items(folder / "a.evaluation.h5").empty());
}

TEST_CASE("Texts of older files are those that their settings name", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto read_with = [&](const std::string& settings) {
        store::Evaluation evaluation = two_models();
        evaluation.settings_json = settings;
        evaluation.results[1].task = "piqa";
        store::write_evaluation(folder / "a.evaluation.h5", evaluation);
        const hid_t file = H5Fopen((folder / "a.evaluation.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
        REQUIRE(file >= 0);
        set_version(file, 5);
        for (const char* name : {"/results/text", "/results/subset", "/results/data_sha256"})
            REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
        REQUIRE(H5Fclose(file) >= 0);
        return store::read_evaluation(folder / "a.evaluation.h5").results;
    };
    const auto of_file = read_with(R"({"data": "books/plain.txt", "files": [{"task": "piqa", "sha256": "abc"},
                                       {"task": "piqa", "sha256": "of the examples"}]})");
    CHECK(of_file[0].text == "plain");
    CHECK(of_file[0].data_sha256.empty());
    CHECK(of_file[1].text.empty());
    CHECK(of_file[1].data_sha256 == "abc");
    CHECK(read_with(R"({"data": "held-out part of kjv.txt"})")[0].text == "held-out part of kjv.txt");
    CHECK(read_with(R"({"data": "a.txt, b.txt"})")[0].text == "a.txt, b.txt");
    const std::string far = read_with(R"({"data": "a, )" + std::string(400, 'x') + "\u00e9\"}")[0].text;
    CHECK(far.size() == 256);
    CHECK(far.ends_with("x\u00e9"));
    for (const char* settings :
         {"{}", "[]", "no JSON", R"({"data": 3, "files": 4})", R"({"files": [3, {"task": 4}]})"}) {
        INFO(settings);
        CHECK(read_with(settings)[0].text.empty());
        CHECK(read_with(settings)[1].data_sha256.empty());
    }
}

TEST_CASE("Items are read as a table, and the texts of each alone", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.evaluation.h5";
    const store::Evaluation written = with_items();
    store::write_evaluation(path, written);
    const store::Evaluation read = store::read_evaluation(path);
    CHECK(read.items.empty());
    CHECK(read.item_count == 5);
    auto items = store::read_items(path);
    REQUIRE(items.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) {
        CHECK(items[i].texts.empty());
        items[i].texts = store::read_item_texts(path, static_cast<std::int64_t>(i));
        if (i < 4) CHECK(items[i] == written.items[i]);
    }
    CHECK(items[4].texts == std::string("a\0b<0xFF>", 9));
    for (const std::int64_t row : {std::int64_t{-1}, std::int64_t{5}, std::numeric_limits<std::int64_t>::max()})
        CHECK_THROWS_MATCHES(store::read_item_texts(path, row), Error, IsError(ErrorCode::usage, "its 5 items"));
}

TEST_CASE("Many items' texts are small in the file, also those that shrink to nothing", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto path = folder / "a.evaluation.h5";
    store::Evaluation evaluation = two_models();
    const std::string hay(20'000, ' ');
    // More than a small file may unpack to where all is read at once.
    for (std::int64_t i = 0; i < 15'000; ++i)
        evaluation.items.push_back({0, "niah", 4096, 0, i, -1, -1, true, std::to_string(i) + hay});
    store::write_evaluation(path, evaluation);
    CHECK(std::filesystem::file_size(path) < 10'000'000);
    CHECK(store::read_evaluation(path).item_count == 15'000);
    CHECK(store::read_items(path).back().item == 14'999);
    CHECK(store::read_item_texts(path, 14'321) == "14321" + hay);
}

TEST_CASE("Files of older versions open, without shots, items, jobs and counts", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    const auto without_counts = [](hid_t file) {
        for (const char* name : {"/models/attention_parameters", "/models/embedding_parameters"})
            REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    };
    for (const std::int32_t version : {1, 2}) {
        const auto path = changed_file(folder, [&](hid_t file) {
            set_version(file, version);
            without_counts(file);
            REQUIRE(H5Ldelete(file, "/models/job", H5P_DEFAULT) >= 0);
            REQUIRE(H5Ldelete(file, "/items", H5P_DEFAULT) >= 0);
            REQUIRE(H5Ldelete(file, "/results/shots", H5P_DEFAULT) >= 0);
        });
        const auto read = store::read_evaluation(path);
        REQUIRE(read.results.size() == 2);
        CHECK(read.results[0].shots == 0);
        CHECK(read.results[0].value == 12.5);
        CHECK(read.item_count == 0);
        CHECK(store::read_items(path).empty());
        CHECK_THROWS_MATCHES(store::read_item_texts(path, 0), Error, IsError(ErrorCode::usage, "its 0 items"));
    }
    const auto seventh = changed_file(folder, [](hid_t file) {
        set_version(file, 7);
        for (const char* name : {"/items/subset", "/items/metrics"}) REQUIRE(H5Ldelete(file, name, H5P_DEFAULT) >= 0);
    });
    REQUIRE(store::read_items(seventh).size() == 5);
    CHECK(store::read_items(seventh).at(2).subset.empty());
    CHECK(store::read_items(seventh).at(2).metrics.empty());
    const auto sixth = changed_file(folder, [](hid_t file) {
        set_version(file, 6);
        REQUIRE(H5Ldelete(file, "/models/variant", H5P_DEFAULT) >= 0);
        REQUIRE(H5Ldelete(file, "/models/benchmark_task", H5P_DEFAULT) >= 0);
    });
    CHECK(store::read_evaluation(sixth).models.at(0).variant == "standard");
    CHECK(store::read_evaluation(sixth).models.at(1).variant == "mlp even");
    CHECK(store::read_evaluation(sixth).models.at(0).benchmark_task.empty());
    const auto fifth = changed_file(folder, [](hid_t file) {
        set_version(file, 5);
        REQUIRE(H5Ldelete(file, "/results/cut", H5P_DEFAULT) >= 0);
    });
    CHECK(store::read_evaluation(fifth).results.at(0).cut == -1);
    CHECK(store::read_evaluation(fifth).models.at(0).attention_parameters == 960);
    const auto fourth = changed_file(folder, [&](hid_t file) {
        set_version(file, 4);
        without_counts(file);
    });
    CHECK(store::read_evaluation(fourth).models.at(0).job == std::string(64, 'b'));
    CHECK(store::read_evaluation(fourth).models.at(0).attention_parameters == -1);
    CHECK(store::read_evaluation(fourth).models.at(0).embedding_parameters == -1);
    const auto third = changed_file(folder, [&](hid_t file) {
        set_version(file, 3);
        without_counts(file);
        REQUIRE(H5Ldelete(file, "/models/job", H5P_DEFAULT) >= 0);
    });
    CHECK(store::read_evaluation(third).models.at(0).job.empty());
    CHECK(store::read_evaluation(third).item_count == 5);
    const auto path = changed_file(folder, [](hid_t file) { set_version(file, 9); });
    CHECK_THROWS_MATCHES(store::read_evaluation(path), Error, IsError(ErrorCode::unsupported, "1 to 8"));
}

TEST_CASE("Invalid items are refused by the reason", "[store][evaluation][hostile]") {
    const test::TemporaryFolder folder;
    const auto number = [&](const char* name, std::int64_t first) {
        return changed_file(folder, [&](hid_t file) { replace(file, name, H5T_STD_I64LE, 5, first); });
    };
    const auto refused = [](const std::filesystem::path& path, ErrorCode code, const char* word) {
        CHECK_THROWS_MATCHES(store::read_item_texts(path, 0), Error, IsError(code, word));
    };
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t start : {std::int64_t{-1}, most, std::int64_t{1'000'000}})
        refused(number("/items/text_start", start), ErrorCode::format, "a part of its ");
    for (const std::int64_t bytes : {std::int64_t{-1}, most, std::int64_t{1'000'000}})
        refused(number("/items/text_bytes", bytes), ErrorCode::format, "a part of its ");
    for (const std::int64_t model : {std::int64_t{-1}, std::int64_t{2}, most}) {
        CHECK_THROWS_MATCHES(store::read_items(number("/items/model", model)), Error,
                             IsError(ErrorCode::format, "rows of /models"));
    }
    // Columns of other lengths.
    const auto longer =
        changed_file(folder, [](hid_t file) { replace(file, "/items/text_bytes", H5T_STD_I64LE, 6, 1); });
    refused(longer, ErrorCode::format, "as many rows");
    CHECK(store::read_items(longer).size() == 5);  // which do not say where texts are
    CHECK_THROWS_MATCHES(
        store::read_items(changed_file(folder, [](hid_t file) { replace(file, "/items/gold", H5T_STD_I64LE, 6, 1); })),
        Error, IsError(ErrorCode::format, "as many rows"));
    // Texts of another type, of more bytes than deflate can make of this file, in pieces that take all memory, and
    // none.
    refused(changed_file(folder, [](hid_t file) { replace(file, "/items/texts", H5T_STD_I64LE, 5, 1); }),
            ErrorCode::format, "type int8");
    refused(changed_file(folder, [](hid_t file) { replace(file, "/items/texts", H5T_STD_I8LE, 1ULL << 39U, 0, 1024); }),
            ErrorCode::format, "fits this file");
    refused(changed_file(folder, [](hid_t file) { replace(file, "/items/texts", H5T_STD_I8LE, 1ULL << 41U, 0, 1024); }),
            ErrorCode::format, "possible size");
    refused(changed_file(folder,
                         [](hid_t file) { replace(file, "/items/texts", H5T_STD_I8LE, 1ULL << 28U, 0, 1ULL << 28U); }),
            ErrorCode::limit, "chunks of at most");
    const auto without = changed_file(folder, [](hid_t file) { REQUIRE(H5Ldelete(file, "/items", H5P_DEFAULT) >= 0); });
    CHECK_THROWS_MATCHES(store::read_evaluation(without), Error, IsError(ErrorCode::format, "/items"));
    refused(without, ErrorCode::format, "/items");
}

TEST_CASE("Items of no model, or with a task that is no word, are not written", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    store::Evaluation evaluation = with_items();
    evaluation.items[1].model = 2;
    CHECK_THROWS_AS(store::write_evaluation(folder / "a.evaluation.h5", evaluation), Error);
    evaluation = with_items();
    evaluation.items[1].task = std::string(257, 'x');
    CHECK_THROWS_AS(store::write_evaluation(folder / "a.evaluation.h5", evaluation), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "a.evaluation.h5"));
}

TEST_CASE("A result of no model is refused, and what is no evaluation", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    store::Evaluation evaluation = two_models();
    evaluation.results[0].model = 2;
    CHECK_THROWS_AS(store::write_evaluation(folder / "a.evaluation.h5", evaluation), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "a.evaluation.h5"));
    std::ofstream(folder / "b.evaluation.h5") << "no HDF5";
    CHECK_THROWS_AS(store::read_evaluation(folder / "b.evaluation.h5"), Error);
}

TEST_CASE("What stands as a word in figures is no long text", "[store][evaluation]") {
    const test::TemporaryFolder folder;
    for (const int which : {0, 1, 2, 3, 4, 5}) {
        store::Evaluation evaluation = two_models();
        const std::string fits(256, 'x'), text(257, 'x');
        for (const std::string& word : {fits, text}) {
            if (which == 0) evaluation.models[1].mixer = word;
            if (which == 1) evaluation.models[1].layout = word;
            if (which == 2) evaluation.results[0].task = word;
            if (which == 3) evaluation.results[0].metric = word;
            if (which == 4) evaluation.results[0].text = word;
            if (which == 5) evaluation.results[0].subset = word;
            if (word == fits)
                CHECK_NOTHROW(store::write_evaluation(folder / "a.evaluation.h5", evaluation));
            else
                CHECK_THROWS_AS(store::write_evaluation(folder / "b.evaluation.h5", evaluation), Error);
        }
    }
}

TEST_CASE("CSV has a row a result, with the model's members and quoted texts", "[store][evaluation]") {
    const std::string csv = store::evaluation_csv(two_models());
    CHECK(csv.find("name,path,sha256,mixer,layout,layer_mixers,skipped,parameters,layers,training_length,seed,job,"
                   "attention_parameters,embedding_parameters,variant,benchmark_task,task,metric,length,value,error,"
                   "count,shots,text,subset,"
                   "data_sha256,cut\n") == 0);
    CHECK(csv.find("uniform,\"standard,standard\",,1234,2,256,1," + std::string(64, 'b') +
                   ",960,77,mine,rte,perplexity,token_perplexity,16,12.5,0.25,1000,5,plain,4-8k," +
                   std::string(64, 'd') + ",7\n") != std::string::npos);
    CHECK(csv.find("\n\"mlp, \"\"even\"\"\",,,mlp,even,") != std::string::npos);
    CHECK(csv.find(",256,1e+05,,7,0,,,,0\n") != std::string::npos);  // an error that is not known is an empty cell
}
