// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/thesis/printed.h"

#include <algorithm>
#include <map>

namespace headscope::reproduce::thesis {
namespace {

constexpr double kNone = kNotPrinted;

}  // namespace

const PrintedTable& printed_encoders() {
    static const PrintedTable table{
        "3.1",
        {"GLUE", "SUPERGLUE", "SQuAD v1.1", "SQuAD v2.0"},
        {{"sha", 8.85, {{79.2, 96.7, kNone}, {67.1, 95.1, kNone}, {82.5, 93.1, kNone}, {67.6, 87.8, kNone}}},
         {"standard", 28.32, {{81.9, 100.0, 0.02}, {70.5, 100.0, 0.02}, {88.6, 100.0, 0.03}, {77.0, 100.0, 0.06}}},
         {"el_att", 14.16, {{80.3, 98.0, 0.02}, {69.5, 98.5, 0.06}, {86.5, 97.6, 0.08}, {72.2, 93.8, 0.11}}},
         {"mqa", 15.34, {{81.3, 99.2, 0.04}, {69.3, 98.2, 0.04}, {86.7, 97.9, 0.07}, {74.8, 97.1, 0.15}}},
         {"skv", 21.23, {{81.4, 99.4, 0.02}, {69.9, 99.1, 0.03}, {88.1, 99.4, 0.05}, {75.9, 98.6, 0.09}}},
         {"mhe_add", 8.88, {{80.4, 98.2, 4.92}, {69.1, 97.9, 9.44}, {83.7, 94.5, 4.65}, {71.8, 93.2, 19.88}}},
         {"mhe_mul", 8.88, {{80.6, 98.3, 5.53}, {69.6, 98.7, 12.07}, {85.9, 97.0, 13.19}, {72.3, 93.9, 22.25}}},
         {"fnet", kNone, {{75.2, kNone, kNone}, {60.7, kNone, kNone}, {}, {}}},
         {"linear", kNone, {{72.6, kNone, kNone}, {59.7, kNone, kNone}, {}, {}}}}};
    return table;
}

const PrintedTable& printed_decoders() {
    static const PrintedTable table{
        "3.2",
        {"GLUE", "WIKITEXT-103", "PENN TREEBANK"},
        {{"sha", 8.85, {{75.3, 97.2, kNone}, {62.0, 55.8, kNone}, {68.1, 46.3, kNone}}},
         {"standard", 28.32, {{77.5, 100.0, 0.01}, {43.0, 100.0, 0.14}, {44.3, 100.0, 0.16}}},
         {"el_att", 14.16, {{76.6, 98.9, 0.03}, {57.1, 67.2, 0.13}, {56.1, 73.4, 0.29}}},
         {"mqa", 15.34, {{76.9, 99.2, 0.03}, {49.7, 84.4, 0.27}, {49.3, 88.7, 0.38}}},
         {"skv", 21.23, {{77.1, 99.5, 0.02}, {46.2, 92.6, 0.18}, {45.5, 97.3, 0.24}}},
         {"mhe_add", 8.88, {{75.8, 97.8, 2.18}, {54.0, 74.4, 41.29}, {55.3, 75.2, 60.15}}},
         {"mhe_mul", 8.88, {{76.7, 99.0, 5.92}, {53.8, 74.9, 42.32}, {50.7, 85.6, 81.76}}}}};
    return table;
}

const PrintedTable& printed_translations() {
    static const PrintedTable table{"3.3",
                                    {"WMT-14"},
                                    {{"sha", 6.49, {{22.5, 90.8, kNone}}},
                                     {"standard", 18.87, {{24.8, 100.0, 0.1}}},
                                     {"el_att", 9.44, {{23.9, 96.6, 0.1}}},
                                     {"mqa", 10.62, {{24.2, 97.6, 0.1}}},
                                     {"skv", 14.16, {{24.7, 99.5, 0.1}}},
                                     {"mhe_add", 6.52, {{23.0, 92.9, 5.5}}},
                                     {"mhe_mul", 6.52, {{23.6, 95.0, 11.0}}}}};
    return table;
}

PrintedAttention printed_attention(const PrintedTable& table, std::string_view mixer) {
    for (const PrintedAttention& row : table.rows)
        if (row.mixer == mixer) return row;
    return {mixer, kNone, std::vector<PrintedScore>(table.benchmarks.size())};
}

PrintedEmbedding printed_embedding(std::string_view model) {
    static const std::map<std::string_view, PrintedEmbedding> rows{
        {"bert-mlm", {79.5, kNone, kNone, 38.6}},
        {"bert-sr", {79.6, kNone, kNone, 38.6}},
        {"canine", {70.4, 88.6, 121.0, 12.3, 2.9, 68.1, 10.2}},
        {"proformer", {51.8, 65.2, 15.1, 0.3226, 87.9, 99.2, 2.1}},
        {"md5-emb", {79.9, 100.5, 124.6, 38.6, 0.0, 0.0, 31.0}},
        {"md5-emb-1k", {66.8, 84.0, 86.8, 0.7972, 30.3, 97.9, 1.0}},
        {"md5-pool", {75.3, 94.7, 86.8, 0.7972, 30.3, 97.9, 1.0}},
        {"md5-add", {75.7, 95.2, 86.2, 0.1974, 30.8, 99.5, 0.2}},
        {"md5-proj", {75.7, 95.2, 86.1, 0.0991, 30.9, 99.7, 0.1}},
        {"lsh-emb", {76.0, 95.6, 124.6, 38.6, 0.0, 0.0, 31.0}},
        {"lsh-emb-1k", {64.2, 80.8, 86.8, 0.7972, 30.3, 97.9, 1.0}},
        {"lsh-pool", {78.9, 99.2, 86.8, 0.7972, 30.3, 97.9, 1.0}},
        {"lsh-add", {78.9, 99.2, 86.2, 0.1974, 30.8, 99.5, 0.2}},
        {"lsh-proj", {79.1, 99.5, 86.1, 0.0991, 30.9, 99.7, 0.1}}};
    const auto found = rows.find(model);
    return found == rows.end() ? PrintedEmbedding() : found->second;
}

PrintedSpeed printed_speed(std::string_view model) {
    if (model == "bert-mlm") return {"24.9", "1.0", "4.6", "1.0"};
    if (model == "bert-sr") return {"11.6", "2.1", "4.6", "1.0"};
    if (model == "canine") return {"", "", "6.9", "0.6"};
    if (model.ends_with("-emb")) return {"11.6", "2.1", "2.0 to 4.6", "1.0 to 2.4"};
    if (model.ends_with("-pool")) return {"12.0", "2.1", "2.0 to 4.6", "1.0 to 2.3"};
    if (model.ends_with("-add")) return {"11.7", "2.1", "2.0 to 4.6", "1.0 to 2.4"};
    if (model.ends_with("-proj")) return {"10.6", "2.4", "1.8 to 4.6", "1.0 to 2.6"};
    return {};
}

}  // namespace headscope::reproduce::thesis
