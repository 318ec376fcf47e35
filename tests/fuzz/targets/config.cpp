// SPDX-License-Identifier: GPL-3.0-or-later
// Any config.json: the family that it names reads it, or refuses it; what was read can be shown, stored and, where its
// sizes are small, turned into tables of rotary positions. No tensor file is needed (checkpoint.cpp has one).
#include <nlohmann/json.hpp>

#include "core/base/json/json.h"
#include "core/model/embedding/rotary.h"
#include "core/model/load/recipe.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {

void run_config(std::string_view input) {
    refusal([&] {
        const nlohmann::json document = parse_json(input, "config.json");
        JsonView(document, "config.json").object();
        const model::ConfigReader reader(document, "config.json");
        const model::Family& family = model::find_family(reader);
        const model::ModelConfig config = family.read(reader);
        expect(config.layers > 0 && config.hidden > 0 && config.heads > 0 && config.ids() > 0, "sizes above 0");
        expect(config.hashed.is_table() || config.vocabulary == 0, "no vocabulary where words are hashed");
        expect(config.windows.empty() || static_cast<std::int64_t>(config.windows.size()) == config.layers,
               "a window for each layer or for none");
        expect(config.rotary_layers.empty() || static_cast<std::int64_t>(config.rotary_layers.size()) == config.layers,
               "rotary positions in each layer or not");
        family.names(config);
        parse_json(config.to_json(), "the configuration as it is stored");
        constexpr std::int64_t small = 1024;
        if (config.positions == model::PositionKind::rotary && config.head_size <= small) {
            const model::Rotary rotary(config.rope, config.head_size, config.max_positions);
            rotary.table(0, 3, at::kFloat);
            rotary.table(config.max_positions, 2, at::kDouble);
        }
    });
}

}  // namespace headscope::fuzz
