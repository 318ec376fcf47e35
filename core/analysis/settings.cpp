// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/analysis/settings.h"

#include <nlohmann/json.hpp>

namespace headscope::analysis {

std::string Settings::json(const Input& input) const {
    nlohmann::json settings{{"model", model},
                            {"texts", texts},
                            {"files", files},
                            {"tokens", tokens},
                            {"examples", examples},
                            {"targets", targets},
                            {"pairs", pairs},
                            {"target_tokens", target_tokens},
                            {"maps_int16", maps_int16},
                            {"record", record},
                            {"layers", layers},
                            {"skip", skip},
                            {"switch_off", switch_off},
                            {"switch_off_how", switch_off_how},
                            {"dtype", dtype},
                            {"device", "cpu"},
                            {"kernels", kernels},
                            {"threads", threads},
                            {"bos", bos},
                            {"first_token", input.first_token.empty() ? "as given" : input.first_token},
                            {"length", length},
                            {"windows", windows},
                            {"repeat_token", repeat_token},
                            {"chat", chat},
                            {"beyond_positions", beyond_positions},
                            {"all_rows", all_rows}};
    if (!labels.empty()) settings["labels"] = labels;
    if (segments != model::Segments())
        settings["segments"] = {{"tokens", segments.tokens}, {"memory", segments.memory}};
    if (adapter != nullptr) {
        settings["adapter"] = {{"path", adapter->path().string()}, {"name", adapter->display_name()},
                               {"base", adapter->base()},          {"rank", adapter->rank()},
                               {"alpha", adapter->alpha()},        {"merged", adapter->merged()},
                               {"replaced", adapter->replaced()}};
    }
    return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // paths are bytes
}

}  // namespace headscope::analysis
