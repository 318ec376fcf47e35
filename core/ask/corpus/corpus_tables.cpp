// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/corpus/corpus_tables.h"

#include <algorithm>
#include <vector>

#include "core/ask/answers.h"
#include "kernels/indicators.h"

namespace headscope::ask::corpus {
namespace {

constexpr HeadMeasure kHeadMeasures[] = {
    {"self_attention_score", "mean weight on the token itself", ""},
    {"prev_token_score", "mean weight on the previous token", ""},
    {"pattern_entropy", "entropy per query", "nat"},
    {"qk_distance", "mean distance of query and key", "token"},
    {"qk_distance_variance", "variance of the distance of query and key", "token^2"},
    {"induction_score", "mean weight behind copies of the query's token", ""},
    {"maximum_mean", "mean of the texts' largest weights", ""}};

}  // namespace

std::span<const HeadMeasure> head_measures() {
    return kHeadMeasures;
}

void add_corpus_dimensions(store::AskRecord& record, const CorpusSizes& sizes) {
    const std::int64_t slots = sizes.slots > 0 ? sizes.slots : kKeptByChance * (sizes.intervals - 1) + kKeptHighest;
    record.add_dimension("/counter", kCounters, "counter");
    record.add_dimension("/histogram_cell", sizes.histogram_cells, "cell of a weight from 0 to 1");
    record.add_dimension("/setting_text", sizes.setting_texts, "text that sets the intervals");
    record.add_dimension("/interval_boundary", sizes.intervals - 1, "boundary of intervals, counted from 0");
    record.add_dimension("/interval", sizes.intervals, "interval of largest weights, the last one the highest");
    record.add_dimension("/slot", slots, "kept text: 3 of each interval, 10 of the highest");
    record.add_dimension("/top_token", sizes.top_tokens, "place among the tokens, from 0");
    record.add_dimension("/distance", sizes.distances, "cell of distances");
}

void add_corpus_tables(store::AskRecord& record) {
    const std::vector<std::string> heads{"/site", "/head"};
    const auto by = [&](const char* axis) { return std::vector<std::string>{"/site", "/head", axis}; };
    record.add_table("/corpus/progress", {"/counter"},
                     "documents, texts, tokens, repeated tokens, documents that set the intervals, those read again",
                     "", true);
    for (store::AskTable& table : record.tables) table.values.assign(kCounters, 0);
    record.add_table("/corpus/document", {"/sequence"}, "document that the text is, counted from 0", "", true);
    for (const HeadMeasure& one : kHeadMeasures) record.add_table(corpus_path(one.name), heads, one.label, one.unit);
    for (const kernels::Indicator* one : kernels::indicators_of(kernels::IndicatorKind::weights)) {
        const std::string name = one->name, unit(one->file_unit());
        record.add_table(corpus_path("mean/" + name), heads, std::string(one->file_text) + ", mean over texts", unit);
        record.add_table(corpus_path("std/" + name), heads,
                         std::string(one->file_text) + ", standard deviation over texts", unit);
        record.add_table(corpus_path("count/" + name), heads, "texts that have the indicator", "text", true);
    }
    for (const CorpusSum& one : kCorpusSums) record.add_table(one.path, heads, "sum over all texts");
    record.add_table("/corpus/maximum_histogram", by("/histogram_cell"), "texts by their largest weight", "text", true);
    record.add_table("/corpus/setting_maximum", {"/setting_text", "/site", "/head"},
                     "largest weights of the texts that set the intervals");
    record.add_table("/corpus/interval_boundary", by("/interval_boundary"), "largest weight where an interval begins");
    record.add_table("/corpus/interval_count", by("/interval"), "texts of each interval", "text", true);
    record.add_table("/corpus/kept", by("/slot"), "document that is kept", "", true);
    record.add_table("/corpus/kept_sequence", by("/slot"), "its place among the texts", "", true);
    record.add_table("/corpus/kept_maximum", by("/slot"), "its largest weight");
    record.add_table("/corpus/kept_query", by("/slot"), "query of that weight", "", true);
    record.add_table("/corpus/kept_key", by("/slot"), "key of that weight", "", true);
    record.add_table("/corpus/query_token", by("/top_token"), "queries' tokens by weight in kept texts",
                     store::kTokenUnits, true);
    record.add_table("/corpus/query_mass", by("/top_token"), "their weight on keys but the first");
    record.add_table("/corpus/key_token", by("/top_token"), "keys' tokens by weight in kept texts", store::kTokenUnits,
                     true);
    record.add_table("/corpus/key_mass", by("/top_token"), "their weight");
    record.add_table("/corpus/distance_histogram", by("/distance"), "weight by distance in kept texts");
    record.add_table("/corpus/distance", {"/distance"}, "smallest distance of a cell", "", true);
    // Files store missing whole numbers as -1; counts begin at 0, and running sums, too.
    for (store::AskTable& table : record.tables) {
        if (table.path.starts_with("/corpus/sum/") || table.path.starts_with("/corpus/count/") ||
            table.path.ends_with("_histogram") || table.path == "/corpus/interval_count")
            std::fill(table.values.begin(), table.values.end(), 0.0);
        else if (table.whole && table.path != "/corpus/progress")
            std::fill(table.values.begin(), table.values.end(), -1.0);
    }
    double* const distance = answer_table(record, "/corpus/distance").values.data();
    for (std::int64_t bin = 0; bin < record.size_of("/distance"); ++bin)
        distance[bin] = static_cast<double>(bin_begin(static_cast<std::size_t>(bin)));
}

}  // namespace headscope::ask::corpus
