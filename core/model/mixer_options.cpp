// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/mixer_options.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/mixers/mixer.h"
#include "core/model/config_reader.h"

namespace headscope::model {
namespace {

/// Index of the option's value in `names`; the first one where there is none.
std::size_t choice(const ConfigReader& reader, const std::string& key, const std::vector<std::string>& names) {
    const auto found = std::find(names.begin(), names.end(), reader.text(key, names.front()));
    if (found == names.end()) {
        std::string list;
        for (const std::string& name : names) list += (list.empty() ? "" : " or ") + name;
        reader.refuse(key, list);
    }
    return static_cast<std::size_t>(found - names.begin());
}

const std::vector<std::string> kSecondOrders{"full", "diagonal"};
const std::vector<std::string> kNormalisations{"joint", "per_order"};

}  // namespace

MixerOptions read_mixer_options(const ConfigReader& reader) {
    MixerOptions options;
    const auto all = reader.object("mixers");
    if (!all) return options;
    std::vector<std::string> known;
    for (const auto& mixer : mixers::known_mixers()) known.push_back(mixer.name);
    all->expect_keys(known);
    for (const std::string& name : known) {
        const auto own = name == "approximate" ? std::nullopt : all->object(name);
        if (own) own->expect_keys({});  // a mixer without options may say so
    }
    if (const auto own = all->object("approximate")) {
        own->expect_keys({"second_order", "normalisation"});
        options.approximate.second_order =
            static_cast<ApproximateOptions::SecondOrder>(choice(*own, "second_order", kSecondOrders));
        options.approximate.normalisation =
            static_cast<ApproximateOptions::Normalisation>(choice(*own, "normalisation", kNormalisations));
    }
    return options;
}

nlohmann::json mixer_options_json(const MixerOptions& options, const std::vector<std::string>& mixers) {
    nlohmann::json json = nlohmann::json::object();
    if (std::find(mixers.begin(), mixers.end(), "approximate") != mixers.end()) {
        const ApproximateOptions& own = options.approximate;
        json["approximate"] = {{"second_order", kSecondOrders[static_cast<std::size_t>(own.second_order)]},
                               {"normalisation", kNormalisations[static_cast<std::size_t>(own.normalisation)]}};
    }
    return json;
}

}  // namespace headscope::model
