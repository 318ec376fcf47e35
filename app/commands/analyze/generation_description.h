// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headscope::checkpoint {
class Checkpoint;
}

namespace headscope::app {

/// Generation settings of a checkpoint's files: {"file", "obeyed": {KEY: VALUE}, "without_effect": {KEY: REASON},
/// "refused": {KEY: VALUE}}, keys with active values alone. Adds a note for each refused one. Throws Error for a value
/// that `headscope generate` cannot read.
nlohmann::json describe_generation(const checkpoint::Checkpoint& checkpoint, nlohmann::json& notes);

/// 'forced_bos_token_id 4, num_beams 5, of generation_config.json'.
std::string generation_text(const nlohmann::json& generation);

}  // namespace headscope::app
