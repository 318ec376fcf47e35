// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/paper.h"

namespace headscope::reproduce {

const std::vector<PaperModel>& paper_models() {
    static const std::vector<PaperModel> models{
        {"standard", "standard", 51.9, 38.1, 22.9, {69.9, 56.2, 47.8, 42.0, 38.1}},
        {"mlp", "uniform", 40.0, 993.5, 0.0, {993.5, 993.5, 993.5, 993.5, 993.5}},
        {"approximate", "uniform", 50.2, 47.9, 18.5, {81.7, 66.4, 57.2, 51.2, 47.9}},
        {"non_approximate", "uniform", 39.3, 9e4, 0.0, {10023.7, 9476.8, 9173.5, 9064.8, 9025.9}},
        {"rnd_emb_qk", "uniform", 48.0, 84.8, 1.3, {107.1, 95.7, 89.6, 86.3, 84.8}},
        {"fixed_seq_qk", "uniform", 50.0, 79.1, 1.4, {100.5, 89.6, 83.6, 80.6, 79.1}},
        {"static_emb_qk", "uniform", 49.4, 79.9, 3.3, {104.8, 92.2, 85.5, 81.7, 79.9}},
        {"mlp", "hybrid", 48.7, 45.8, 20.8, {81.3, 66.4, 57.0, 50.3, 45.8}},
        {"approximate", "hybrid", 51.6, 39.4, 23.7, {71.8, 57.8, 49.3, 43.4, 39.4}},
        {"non_approximate", "hybrid", 52.9, 39.4, 23.8, {69.0, 56.0, 48.0, 42.5, 39.4}},
        {"rnd_emb_qk", "hybrid", 49.8, 39.3, 22.0, {72.4, 58.1, 49.4, 43.4, 39.3}},
        {"fixed_seq_qk", "hybrid", 52.6, 38.5, 20.3, {69.0, 56.0, 48.0, 42.3, 38.5}},
        {"static_emb_qk", "hybrid", 51.8, 38.7, 23.8, {70.1, 56.6, 48.4, 42.6, 38.7}},
        {"mlp", "skip", 37.8, 2e5, 0.0, {}},
        {"approximate", "skip", 39.8, 2e6, 0.0, {}},
        {"non_approximate", "skip", 37.5, 5e5, 0.0, {}},
        {"rnd_emb_qk", "skip", 39.5, 2e4, 0.0, {}},
        {"fixed_seq_qk", "skip", 39.2, 2e5, 0.0, {}},
        {"static_emb_qk", "skip", 39.7, 7e4, 0.0, {}}};
    return models;
}

const PaperModel* paper_model(std::string_view mixer, std::string_view configuration) {
    for (const PaperModel& model : paper_models())
        if (model.mixer == mixer && model.configuration == configuration) return &model;
    return nullptr;
}

const std::vector<PaperMixer>& paper_mixers() {
    static const std::vector<PaperMixer> mixers{{"standard", "Standard"},        {"mlp", "MLP"},
                                                {"approximate", "Approximate"},  {"non_approximate", "Non-approximate"},
                                                {"rnd_emb_qk", "RndEmbQK"},      {"fixed_seq_qk", "FixedSeqQK"},
                                                {"static_emb_qk", "StaticEmbQK"}};
    return mixers;
}

std::string label_of(std::string_view mixer) {
    for (const PaperMixer& one : paper_mixers())
        if (one.name == mixer) return std::string(one.label);
    return std::string(mixer);
}

}  // namespace headscope::reproduce
