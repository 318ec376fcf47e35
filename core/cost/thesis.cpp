// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/thesis.h"

#include <cmath>

#include "core/base/error.h"
#include "core/mixers/types/head_variants.h"
#include "core/mixers/types/standard.h"

namespace headscope::cost {
namespace {

template <class Entry>
const Entry& find(const std::vector<Entry>& all, std::string_view name, const char* what) {
    std::string known;
    for (const Entry& entry : all) {
        if (entry.name == name) return entry;
        known += (known.empty() ? "" : ", ") + entry.name;
    }
    throw Error(ErrorCode::usage, what, "expected one of " + known, "found " + escaped(name));
}

}  // namespace

const std::vector<HeadVariant>& head_variants() {
    const auto row = [](const mixers::MixerType& type, const char* parameters, const char* complexity,
                        const char* added) {
        return HeadVariant{type.name, type.title, parameters, complexity, added};
    };
    static const std::vector<HeadVariant> variants{
        row(mixers::kSingleHead, "3 d^2 n", "n", "0"),
        {mixers::kStandard.name, "MHA", "3 d^2 n^2", "n^2", "(3 n^2 - 3 n) d^2"},
        row(mixers::kElAttention, "d^2 n^2", "n^2", "(n^2 - 3 n) d^2"),
        row(mixers::kMultiQuery, "d^2 n^2 + 2 d^2 n", "n^2", "(n^2 - n) d^2"),
        row(mixers::kSharedKeyValue, "2 d^2 n^2", "n^2", "(2 n^2 - 3 n) d^2"),
        row(mixers::kHeadEmbeddingAdd, "3 d^2 n + 3 d n", "n", "3 n d"),
        row(mixers::kHeadEmbeddingMul, "3 d^2 n + 3 d n", "n", "3 n d")};
    return variants;
}

const HeadVariant& head_variant(std::string_view name) {
    return find(head_variants(), name, "multi-head variant");
}

double variant_parameters(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size,
                          std::int64_t sublayers, bool with_output) {
    const Letters letters{{'n', static_cast<double>(heads)}, {'d', static_cast<double>(head_size)}};
    const double output = with_output ? Formula("d^2 n^2")(letters) : 0;
    return static_cast<double>(sublayers) * (variant.parameters(letters) + output);
}

BlockMemory block_memory(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size, std::int64_t batch,
                         std::int64_t length) {
    const double parameters = variant_parameters(variant, heads, head_size, 1, true);
    return {6 * parameters, 6 * parameters, 8 * parameters,
            2.0 * static_cast<double>(batch) * static_cast<double>(length) * static_cast<double>(heads * head_size)};
}

double memory_saving(const HeadVariant& variant, std::int64_t heads, std::int64_t head_size, std::int64_t batch,
                     std::int64_t length) {
    const double all = block_memory(head_variant(mixers::kStandard.name), heads, head_size, batch, length).total();
    return 1 - block_memory(variant, heads, head_size, batch, length).total() / all;
}

double parameter_saving(double parameters, double baseline) {
    return 1 - parameters / baseline;
}

double performance_retention(double score, double baseline, bool lower_is_better) {
    return lower_is_better ? 1 - (score - baseline) / baseline : score / baseline;
}

double performance_elasticity(double score, double baseline, double parameters, double baseline_parameters,
                              bool lower_is_better) {
    const double elasticity = (score / baseline - 1) / (parameters / baseline_parameters - 1);
    return lower_is_better ? -elasticity : elasticity;
}

const std::vector<HashEmbedding>& hash_embeddings() {
    static const std::vector<HashEmbedding> embeddings{{"table", "Table", "N d"},
                                                       {"emb", "Emb", "(N + 5) d"},
                                                       {"pool", "Pool", "(g + c + 1) d"},
                                                       {"add", "Add", "(2 T + 1) d"},
                                                       {"proj", "Proj", "(T + 1) d"},
                                                       {"linear", "ProFormer", "T d"},
                                                       {"characters", "CANINE-C", "16000 d"}};
    return embeddings;
}

const HashEmbedding& hash_embedding(std::string_view name) {
    return find(hash_embeddings(), name, "hash embedding");
}

double embedding_parameters(const HashEmbedding& embedding, std::int64_t rows, std::int64_t bits,
                            std::int64_t bits_of_group, std::int64_t hidden) {
    const std::int64_t groups = (bits + bits_of_group - 1) / bits_of_group;
    return embedding.parameters({{'N', static_cast<double>(rows)},
                                 {'T', static_cast<double>(bits)},
                                 {'g', static_cast<double>(groups)},
                                 {'c', std::exp2(static_cast<double>(bits_of_group))},
                                 {'d', static_cast<double>(hidden)}});
}

}  // namespace headscope::cost
