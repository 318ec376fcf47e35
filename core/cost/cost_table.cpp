// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/cost_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace headscope::cost {
namespace {

std::string cell(std::optional<double> value) {
    if (!value || !std::isfinite(*value)) return "";
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, *value).ptr};
}

/// Names of cards come from their drivers.
std::string named(std::string text) {
    std::replace(text.begin(), text.end(), ',', ' ');
    return text;
}

}  // namespace

CostTable paper_table(CostSetting setting, const std::vector<std::int64_t>& lengths,
                      const std::vector<std::string>& mixers) {
    CostTable table;
    table.setting = setting;
    std::vector<std::string> wanted = mixers;
    if (wanted.empty())
        for (const MixerCost& cost : mixer_costs()) wanted.push_back(cost.mixer);
    for (const std::string& mixer : wanted) {
        for (const std::int64_t length : lengths) {
            setting.length = length;
            table.rows.push_back({mixer, length, evaluate(mixer_cost(mixer), setting), {}, {}});
        }
    }
    if (!lengths.empty()) table.setting.length = lengths.front();
    return table;
}

std::string cost_csv(const CostTable& table) {
    std::string text =
        "mixer,batch,length,hidden,heads,tensor_parallel,bytes,time,prefill_flops,decode_flops,activation_bytes,"
        "cache_bytes,precomputed_prefill_flops,precomputed_decode_flops,measured_prefill_flops,measured_decode_flops,"
        "measured_activation_bytes,measured_cache_bytes,measured_guide_flops,parameters,scores_before_saving,"
        "prefetch_cache_bytes,measured_prefill_seconds,measured_decode_seconds,device,kernels\n";
    for (const CostRow& row : table.rows) {
        const CostSetting& s = table.setting;
        text += row.mixer;
        for (const std::int64_t value : {s.batch, row.length, s.hidden, s.heads, s.tensor_parallel, s.bytes})
            text += "," + std::to_string(value);
        const auto add = [&](std::optional<double> value) { text += "," + cell(value); };
        const CostNumbers& paper = row.paper;
        for (const double value : {paper.time, paper.prefill, paper.decode, paper.activation, paper.cache}) add(value);
        add(paper.precomputed_prefill);
        add(paper.precomputed_decode);
        const auto& measured = row.measured;
        add(measured ? std::optional(measured->prefill_flops) : std::nullopt);
        add(measured ? std::optional(measured->decode_flops) : std::nullopt);
        add(measured ? std::optional(measured->activation_bytes) : std::nullopt);
        add(measured ? std::optional(measured->cache_bytes) : std::nullopt);
        add(row.guide_flops);
        add(paper.parameters);
        add(paper.scores_before);
        add(paper.prefetch);
        add(measured ? std::optional(measured->prefill_seconds) : std::nullopt);
        add(measured ? std::optional(measured->decode_seconds) : std::nullopt);
        text += measured ? "," + named(table.device) + "," + named(table.kernels) + "\n" : ",,\n";
    }
    return text;
}

}  // namespace headscope::cost
