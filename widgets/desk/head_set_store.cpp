// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/head_set_store.h"

#include <utility>

#include "widgets/desk/study.h"

namespace headscope::widgets {
namespace {

std::string model_of(const workspace::HeadSets& sets) {
    return sets.model_sha256.empty() ? "name " + sets.model_name : sets.model_sha256;
}

}  // namespace

workspace::HeadSets HeadSetStore::of(const Study& study) const {
    workspace::HeadSets fresh;
    fresh.model_sha256 = study.header().model_sha256;
    fresh.model_name = study.header().model_name;
    const auto found = sets_.find(model_of(fresh));
    return found == sets_.end() ? fresh : found->second;
}

void HeadSetStore::put(workspace::HeadSets sets) {
    workspace::HeadSets& place = sets_[model_of(sets)];
    if (place == sets) return;
    place = std::move(sets);
    Q_EMIT changed();
}

std::vector<workspace::HeadSets> HeadSetStore::all() const {
    std::vector<workspace::HeadSets> all;
    for (const auto& [model, sets] : sets_)
        if (!sets.empty()) all.push_back(sets);
    return all;
}

void HeadSetStore::restore(std::vector<workspace::HeadSets> all) {
    sets_.clear();
    for (auto& sets : all) {
        const std::string model = model_of(sets);
        sets_[model] = std::move(sets);
    }
    Q_EMIT changed();
}

}  // namespace headscope::widgets
