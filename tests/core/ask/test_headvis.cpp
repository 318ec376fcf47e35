// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/catch_with_torch.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include <ATen/TensorOperators.h>
#include <nlohmann/json.hpp>

#include "core/ask/corpus/corpus.h"
#include "core/ask/corpus/headvis_tree.h"
#include "tests/core/ask/recorded_values.h"
#include "tests/core/base/error_matcher.h"
#include "tests/core/base/temporary_folder.h"

using namespace headscope;
using model::Point;
using nlohmann::json;
using test::at_cell;

namespace {

namespace fs = std::filesystem;

constexpr double kRounding = 0.51e-4;  // of 4 decimals

/// A corpus of `count` texts of 1 to 12 tokens, whose pieces are words of their ids.
store::AskRecord tree_corpus(const test::AskedModel& asked, std::int64_t count, std::int64_t intervals) {
    std::vector<store::SequenceTokens> texts;
    std::uint64_t state = 11;
    for (std::int64_t number = 0; number < count; ++number) {
        store::SequenceTokens text;
        for (std::int64_t i = 0; i < number % 12 + 1; ++i) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const std::size_t place = (state >> 33U) % std::min<std::size_t>(6, asked.texts[0].size());
            text.ids.push_back(static_cast<std::int32_t>(asked.texts[0][place]));
            text.pieces.push_back("word " + std::to_string(text.ids.back()));
        }
        texts.push_back(std::move(text));
    }
    store::AskRecord record;
    record.tool = "corpus";
    record.model_name = "tiny";
    record.mixers = asked.model->mixers();
    record.sites = asked.model->sites();
    record.sequences = {texts[1]};
    store::add_usual_dimensions(record);
    ask::corpus::CorpusOptions options;
    options.documents = count;
    options.intervals = intervals;
    options.two_passes = true;
    const auto source = [&](std::int64_t first, std::int64_t end, const ask::corpus::CorpusTake& take) {
        for (std::int64_t d = first; d < std::min(end, count); ++d) take(d, texts[static_cast<std::size_t>(d)]);
    };
    NoProgress progress;
    ask::corpus::run_corpus(*asked.model, source, options, record, progress, Cancellation());
    return record;
}

void write_tree(const test::AskedModel& asked, const store::AskRecord& record, const fs::path& folder) {
    NoProgress progress;
    ask::corpus::write_headvis_tree(*asked.model, record, nullptr, folder, {}, progress, Cancellation());
}

json json_of(const fs::path& path) {
    std::ifstream file(path);
    REQUIRE(file);
    return json::parse(file);
}

void put_json(const fs::path& path, const json& document) {
    std::ofstream(path) << document.dump();
}

bool near_rounded(double found, double wanted) {
    if (std::isnan(wanted)) return std::isnan(found);
    return std::abs(found - wanted) <= kRounding;
}

/// A tree by hand, with the names of HeadVis's own pipeline.
void write_small_tree(const fs::path& folder) {
    fs::create_directories(folder / "heads");
    put_json(folder / "config.json", {{"model_name", "other"},
                                      {"heads", json::array({json::array({1, 0}), json::array({1, 2})})},
                                      {"n_layers", 3},
                                      {"n_intervals", 10},
                                      {"metrics", {"previous_token_score", "logit_std"}},
                                      {"head_data_pattern", "L{layer}H{head}.json"}});
    put_json(folder / "scatter_data.json",
             {{{"layer", 1}, {"head", 0}, {"previous_token_score", 0.25}, {"logit_std", 2.5}},
              {{"layer", 1}, {"head", 2}, {"previous_token_score", nullptr}}});
    const json text = {{"sequence_id", 7},
                       {"interval", 10},
                       {"tokens", {"a", "b", "a"}},
                       {"attention_indices", {0, 3, 4, 8, 7}},
                       {"attention_values", {1.0, 0.25, 0.75, 0.125, 0.5}},
                       {"seq_len", 3},
                       {"max_activation", 0.75}};
    put_json(
        folder / "heads/L1H0.json",
        {{"sequences", json::array({text})},
         {"qk_distance_histogram", {{"bin_edges", {0, 1, 2, 4}}, {"bin_values", {3, 2, 1}}}},
         {"top_query_tokens", json::array({{{"token", "b"}, {"weight", 0.75}}, {{"token", "a"}, {"weight", 0.5}}})},
         {"top_key_tokens", json::array({{{"token", "c"}, {"weight", 0.1}}})},
         {"histogram", json::object()},
         {"statistics", {{"mean_max_activation", 0.4}}}});
    put_json(folder / "heads/L1H2.json", {{"sequences", json::array()},
                                          {"qk_distance_histogram", json::object()},
                                          {"top_query_tokens", json::array()},
                                          {"top_key_tokens", json::array()}});
}

}  // namespace

TEST_CASE("HeadVis's tree has the keys of its page and the weights of the patterns", "[ask][corpus][headvis]") {
    const test::AskedModel asked("llama");
    const store::AskRecord record = tree_corpus(asked, 40, 3);
    const test::TemporaryFolder folder;
    write_tree(asked, record, folder / "tree");
    CHECK(folder.names() == std::vector<std::string>{"tree"});
    CHECK(ask::corpus::is_headvis_tree(folder / "tree"));
    const json config = json_of(folder / "tree/config.json");
    CHECK(config.at("model_name") == "tiny");
    CHECK(config.at("n_layers") == record.mixers.size());
    CHECK(config.at("n_intervals") == 3);
    CHECK(config.at("head_data_pattern") == "L{layer}H{head}.json");
    CHECK(config.at("has_umap") == false);
    CHECK(config.at("metrics") == json({"self_attention_score", "prev_token_score", "pattern_entropy", "qk_distance",
                                        "qk_distance_variance", "induction_score"}));
    for (const auto& metric : config.at("metrics")) CHECK(config.at("metric_descriptions").contains(metric));
    CHECK(json_of(folder / "tree/server_config.json") == json::object());
    CHECK(json_of(folder / "tree/attributions/manifest.json") == json::object());
    const json scatter = json_of(folder / "tree/scatter_data.json");
    REQUIRE(scatter.size() == config.at("heads").size());
    std::size_t heads = 0;
    for (const Site& site : record.sites) heads += static_cast<std::size_t>(site.heads);
    CHECK(scatter.size() == heads);
    for (const json& row : scatter) {
        const std::vector<std::int64_t> cell{row.at("layer").get<std::int64_t>(), row.at("head").get<std::int64_t>()};
        for (const auto& metric : config.at("metrics"))
            CHECK(near_rounded(row.at(metric.get<std::string>()).get<double>(),
                               at_cell(record, "/corpus/" + metric.get<std::string>(), cell)));
    }
    std::size_t kept = 0, weights = 0;
    for (const auto& [layer, head] : {std::pair<std::int64_t, std::int64_t>(0, 1), {1, 3}}) {
        const json own =
            json_of(folder / ("tree/heads/L" + std::to_string(layer) + "H" + std::to_string(head) + ".json"));
        for (const json& text : own.at("sequences")) {
            ++kept;
            const auto document = text.at("sequence_id").get<double>();
            const std::vector<double>& documents = record.table("/corpus/document").values;
            const auto place = std::find(documents.begin(), documents.end(), document) - documents.begin();
            const auto& ids = record.sequences.at(static_cast<std::size_t>(place)).ids;
            const auto length = std::ssize(ids);
            REQUIRE(text.at("seq_len") == length);
            REQUIRE(text.at("tokens").size() == ids.size());
            CHECK(text.at("tokens").at(0) == "word " + std::to_string(ids[0]));
            const auto interval = text.at("interval").get<std::int64_t>();
            CHECK((interval >= 1 && interval <= 3));
            const at::Tensor pattern = recorded_values(asked, {ids.begin(), ids.end()}, {Point::pattern})
                                           .at({Point::pattern, layer, layer})[0][head];
            // The largest 8 of each row that are not below the threshold.
            std::vector<std::int64_t> places;
            double largest = 0;
            for (std::int64_t i = 0; i < length; ++i) {
                std::vector<std::pair<double, std::int64_t>> row;
                for (std::int64_t j = 0; j <= i; ++j) {
                    const double weight = pattern[i][j].item<double>();
                    REQUIRE(std::abs(weight - 0.005) > 1e-6);  // rounding decides nothing
                    if (weight > 0.005) row.emplace_back(-weight, j);
                    if (i > 0 && j > 0) largest = std::max(largest, weight);
                }
                std::sort(row.begin(), row.end());
                if (row.size() > 8) row.resize(8);
                std::set<std::int64_t> keys;
                for (const auto& one : row) keys.insert(one.second);
                for (const std::int64_t j : keys) places.push_back(i * length + j);
            }
            CHECK(near_rounded(text.at("max_activation").get<double>(), largest));
            REQUIRE(text.at("attention_indices") == json(places));
            for (std::size_t i = 0; i < places.size(); ++i) {
                ++weights;
                CHECK(std::abs(text.at("attention_values").at(i).get<double>() -
                               pattern[places[i] / length][places[i] % length].item<double>()) <= kRounding + 1e-6);
            }
        }
        CHECK(own.at("statistics").at("n_samples") == own.at("sequences").size());
    }
    CHECK(kept > 10);
    CHECK(weights > 200);
}

TEST_CASE("A tree that is read gives the numbers of its corpus", "[ask][corpus][headvis]") {
    const test::AskedModel asked("llama");
    const store::AskRecord record = tree_corpus(asked, 60, 4);
    const test::TemporaryFolder folder;
    write_tree(asked, record, folder / "tree");
    const store::AskRecord read = ask::corpus::read_headvis_tree(folder / "tree");
    CHECK(read.tool == "corpus");
    CHECK(read.complete);
    CHECK(read.model_name == "tiny");
    REQUIRE(read.sites.size() == record.sites.size());
    CHECK(read.sequences.size() == record.sequences.size());
    for (const std::int64_t place : {1, 2})
        CHECK(at_cell(read, "/corpus/progress", {place}) == at_cell(record, "/corpus/progress", {place}));
    const auto word = [](const store::AskRecord& from, double id) {
        const auto found = from.words.find(static_cast<std::int64_t>(id));
        return found != from.words.end() ? found->second : "word " + std::to_string(static_cast<std::int64_t>(id));
    };
    for (std::int64_t site = 0; site < std::ssize(record.sites); ++site) {
        for (std::int64_t head = 0; head < record.sites[static_cast<std::size_t>(site)].heads; ++head) {
            INFO(site << "." << head);
            for (const char* measure : {"self_attention_score", "prev_token_score", "pattern_entropy", "qk_distance",
                                        "qk_distance_variance", "induction_score", "maximum_mean"})
                CHECK(near_rounded(at_cell(read, std::string("/corpus/") + measure, {site, head}),
                                   at_cell(record, std::string("/corpus/") + measure, {site, head})));
            for (std::int64_t cell = 0; cell < 50; ++cell)
                CHECK(at_cell(read, "/corpus/maximum_histogram", {site, head, cell}) ==
                      at_cell(record, "/corpus/maximum_histogram", {site, head, cell}));
            REQUIRE(read.size_of("/distance") == 13);  // no text has 4096 tokens
            for (std::int64_t bin = 0; bin < 13; ++bin) {
                CHECK(at_cell(read, "/corpus/distance", {bin}) == at_cell(record, "/corpus/distance", {bin}));
                CHECK(near_rounded(at_cell(read, "/corpus/distance_histogram", {site, head, bin}),
                                   at_cell(record, "/corpus/distance_histogram", {site, head, bin})));
            }
            for (const std::string side : {"query", "key"})
                for (std::int64_t i = 0; i < std::min<std::int64_t>(5, read.size_of("/top_token")); ++i) {
                    const double wanted = at_cell(record, "/corpus/" + side + "_token", {site, head, i});
                    const double found = at_cell(read, "/corpus/" + side + "_token", {site, head, i});
                    REQUIRE((wanted >= 0) == (found >= 0));
                    if (wanted < 0) continue;
                    CHECK(word(read, found) == word(record, wanted));
                    CHECK(near_rounded(at_cell(read, "/corpus/" + side + "_mass", {site, head, i}),
                                       at_cell(record, "/corpus/" + side + "_mass", {site, head, i})));
                }
            // Slots without a text are left out.
            std::int64_t next = 0;
            for (std::int64_t slot = 0; slot < record.size_of("/slot"); ++slot) {
                const double document = at_cell(record, "/corpus/kept", {site, head, slot});
                if (document < 0) continue;
                CHECK(at_cell(read, "/corpus/kept", {site, head, next}) == document);
                const double maximum = at_cell(record, "/corpus/kept_maximum", {site, head, slot});
                CHECK(near_rounded(at_cell(read, "/corpus/kept_maximum", {site, head, next}), maximum));
                const auto& pieces =
                    read.sequences
                        .at(static_cast<std::size_t>(at_cell(read, "/corpus/kept_sequence", {site, head, next})))
                        .pieces;
                CHECK(pieces ==
                      record.sequences
                          .at(static_cast<std::size_t>(at_cell(record, "/corpus/kept_sequence", {site, head, slot})))
                          .pieces);
                // Equal weights after rounding may exchange places.
                if (maximum > 0.0051) CHECK(at_cell(read, "/corpus/kept_query", {site, head, next}) > 0);
                ++next;
            }
            CHECK(next > 0);
        }
    }
    CHECK(read.find("/corpus/mean/sink") == nullptr);
    CHECK(read.find("/corpus/interval_count") == nullptr);
}

TEST_CASE("A tree of HeadVis's own pipeline is read by its names", "[ask][corpus][headvis]") {
    const test::TemporaryFolder folder;
    CHECK_FALSE(ask::corpus::is_headvis_tree(folder.path()));
    write_small_tree(folder / "tree");
    REQUIRE(ask::corpus::is_headvis_tree(folder / "tree"));
    const store::AskRecord read = ask::corpus::read_headvis_tree(folder / "tree");
    REQUIRE(read.sites.size() == 3);
    CHECK_FALSE(read.sites[0].has_matrix);
    CHECK(read.sites[1].heads == 3);
    CHECK(at_cell(read, "/corpus/prev_token_score", {1, 0}) == 0.25);
    CHECK(std::isnan(at_cell(read, "/corpus/prev_token_score", {1, 2})));
    CHECK(at_cell(read, "/corpus/logit_std", {1, 0}) == 2.5);
    CHECK(std::isnan(at_cell(read, "/corpus/logit_std", {1, 2})));
    CHECK(std::isnan(at_cell(read, "/corpus/qk_distance", {1, 0})));
    CHECK(at_cell(read, "/corpus/maximum_mean", {1, 0}) == 0.4);
    CHECK(at_cell(read, "/corpus/kept", {1, 0, 0}) == 7);
    CHECK(at_cell(read, "/corpus/kept_maximum", {1, 0, 0}) == 0.75);
    CHECK(at_cell(read, "/corpus/kept_query", {1, 0, 0}) ==
          1);  // 4 = 1 * 3 + 1; places of row and column 0 do not count
    CHECK(at_cell(read, "/corpus/kept_key", {1, 0, 0}) == 1);
    CHECK(at_cell(read, "/corpus/kept", {1, 2, 0}) == -1);
    CHECK(read.size_of("/distance") == 3);
    CHECK(at_cell(read, "/corpus/distance", {2}) == 2);
    CHECK(at_cell(read, "/corpus/distance_histogram", {1, 0, 1}) == 2);
    const auto token = static_cast<std::int64_t>(at_cell(read, "/corpus/key_token", {1, 0, 0}));
    CHECK(read.words.at(token) == "c");
    CHECK(read.sequences.at(0).text == "aba");
    CHECK(read.sequences.at(0).ids.at(0) == read.sequences.at(0).ids.at(2));
    CHECK(at_cell(read, "/corpus/progress", {1}) == -1);
    // A writer that leaves out the diagonal, too, and one that has a histogram.
    json head = json_of(folder / "tree/heads/L1H0.json");
    head["sequences"][0]["max_activation"] = 0.5;
    head["histogram"] = {{"bin_edges", {0, 0.3333, 0.6667, 1}}, {"bin_values", {5, 0, 2}}};
    put_json(folder / "tree/heads/L1H0.json", head);
    const store::AskRecord other = ask::corpus::read_headvis_tree(folder / "tree");
    CHECK(at_cell(other, "/corpus/kept_query", {1, 0, 0}) == 2);
    CHECK(at_cell(other, "/corpus/kept_key", {1, 0, 0}) == 1);
    CHECK(at_cell(other, "/corpus/maximum_histogram", {1, 0, 0}) == 5);
    CHECK(at_cell(other, "/corpus/maximum_histogram", {1, 0, 2}) == 2);
}

TEST_CASE("Trees whose parts do not fit are refused by file and key", "[ask][corpus][headvis]") {
    const test::TemporaryFolder folder;
    const fs::path tree = folder / "tree";
    const auto refused = [&](const std::string& name, const std::function<void(json&)>& change, ErrorCode code,
                             const std::string& part) {
        INFO(name << " " << part);
        fs::remove_all(tree);
        write_small_tree(tree);
        json document = json_of(tree / name);
        change(document);
        put_json(tree / name, document);
        CHECK_THROWS_MATCHES(ask::corpus::read_headvis_tree(tree), Error, test::IsError(code, part));
    };
    using Code = ErrorCode;
    refused(
        "config.json", [](json& all) { all.erase("heads"); }, Code::format, "heads");
    refused(
        "config.json", [](json& all) { all["heads"] = json::array(); }, Code::format, "heads");
    refused(
        "config.json",
        [](json& all) {
            all["heads"][1] = {1, 0};
        },
        Code::format, "each head once");
    refused(
        "config.json",
        [](json& all) {
            all["heads"][1] = {1, 1 << 20};
        },
        Code::limit, "heads");
    refused(
        "config.json", [](json& all) { all["n_layers"] = 1; }, Code::limit, "n_layers");
    refused(
        "config.json",
        [](json& all) {
            all["n_layers"] = 4096;
            all["heads"][1] = {1, 4095};
        },
        Code::limit, "config.json");
    refused(
        "config.json", [](json& all) { all["metrics"].push_back("interval_count"); }, Code::format, "metrics");
    refused(
        "config.json", [](json& all) { all["head_data_pattern"] = "../L{layer}H{head}.json"; }, Code::format,
        "without a folder");
    refused(
        "config.json", [](json& all) { all["metrics"] = json::array({"a/b"}); }, Code::format, "letters");
    refused(
        "scatter_data.json", [](json& all) { all[0]["head"] = 1; }, Code::format, "a head of config.json");
    refused(
        "scatter_data.json", [](json& all) { all[0]["logit_std"] = "x"; }, Code::format, "logit_std");
    refused(
        "scatter_data.json", [](json& all) { all[1]["head"] = 0; }, Code::format, "expected each head once");
    const auto text = [](json& all) -> json& { return all["sequences"][0]; };
    refused(
        "heads/L1H0.json", [&](json& all) { text(all)["seq_len"] = 4; }, Code::format, "expected 3 tokens");
    refused(
        "heads/L1H0.json", [&](json& all) { text(all)["attention_indices"][0] = 9; }, Code::limit, "attention_indices");
    refused(
        "heads/L1H0.json", [&](json& all) { text(all)["attention_values"].erase(0); }, Code::format,
        "expected 5 weights");
    refused(
        "heads/L1H0.json", [](json& all) { all["qk_distance_histogram"]["bin_values"].erase(0); }, Code::format,
        "bin_edges");
    refused(
        "heads/L1H0.json",
        [&](json& all) {
            json other = text(all);
            other["tokens"][0] = "z";
            all["sequences"].push_back(other);
        },
        Code::format, "that other heads have");
    const auto histogram = [](json& all, std::vector<double> edges) {
        all["histogram"] = {{"bin_edges", edges}, {"bin_values", std::vector<int>(edges.size() - 1, 1)}};
    };
    refused(
        "heads/L1H0.json",
        [&](json& all) {
            histogram(all, {0, 0.25, 1});
        },
        Code::format, "equal cells");
    refused(
        "heads/L1H0.json",
        [&](json& all) {
            histogram(all, {0, 0.4, 0.8});
        },
        Code::format, "equal cells");
    json head = json_of(tree / "heads/L1H2.json");
    histogram(head, {0, 0.25, 0.5, 0.75, 1});
    put_json(tree / "heads/L1H2.json", head);
    head = json_of(tree / "heads/L1H0.json");
    histogram(head, {0, 0.5, 1});
    put_json(tree / "heads/L1H0.json", head);
    CHECK_THROWS_MATCHES(ask::corpus::read_headvis_tree(tree), Error,
                         test::IsError(Code::format, "expected 2 cells, as other heads have"));
    write_small_tree(tree);
    fs::remove(tree / "heads/L1H2.json");
    CHECK_THROWS_AS(ask::corpus::read_headvis_tree(tree), Error);
}
