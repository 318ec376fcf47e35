// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/hashed/sample_hash.h"

#include <cmath>
#include <numbers>
#include <random>

namespace headscope::tokenizer {
namespace {

constexpr std::size_t kMostNgramsOfSample = 50'000;
constexpr std::uint64_t kSampleSeed = 1;

/// Frequent words, with endings that change them.
constexpr const char* kSampleWords =
    "the of and to in a is that it was for on are as with his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made over "
    "did down only way find use may water long little very after words called just where most know get through back "
    "much before go good new write our used me man too any day same right look think also around another came come "
    "work three word must because does part even place well such here take why things help put years different away "
    "again off went old number great tell men say small every found still between name should home big give air line "
    "set own under read last never us left end along while might next sound below saw something thought both few those "
    "always looked show large often together asked house world going want school important until form food keep "
    "children feet land side without boy once animals life enough took sometimes four head above kind began almost "
    "live "
    "page got earth need far hand high year mother light country father let night following picture being study second "
    "eyes soon times story boys since white days ever paper hard near sentence better best across during today others "
    "however sure means knew try told young miles sun ways thing whole hear example heard several change answer room "
    "sea against top turned learn point city play toward five using himself usually money seen car morning given ship "
    "plays played playing player players playful walks walked walking walker talks talked talking works worked working "
    "worker learns learned learning learner trains trained training trainer teach teaches teaching teacher happy "
    "happier happiest unhappy happiness kind kinder kindness unkind quick quicker quickly slow slower slowly strong "
    "stronger strongly nation national nations international relation relations attention attend attends attended "
    "model models modelled modelling layer layers head heads hidden query queries key keys value values embed embeds "
    "embedding embeddings hash hashes hashed hashing token tokens tokenizer language languages sentence sentences";

/// Normal numbers by Box and Muller, alike on every machine but for the last digit of a logarithm.
std::vector<float> sample_normal(std::int64_t size) {
    std::mt19937_64 random(kSampleSeed);
    const auto uniform = [&] { return (static_cast<double>(random() >> 11U) + 0.5) * std::ldexp(1.0, -53); };
    std::vector<float> normal;
    for (std::int64_t i = 0; i < size; ++i) {
        const double length = std::sqrt(-2 * std::log(uniform()));
        normal.push_back(static_cast<float>(length * std::cos(2 * std::numbers::pi * uniform())));
    }
    return normal;
}

HashSettings sample_settings(WordHashKind kind) {
    HashSettings settings;
    settings.kind = EmbeddingKind::pool;
    settings.hash = kind;
    settings.bits = kMd5Bits;
    settings.group_bits = 10;
    return settings;
}

std::shared_ptr<const WordHash> sample_lsh() {
    NgramCounter counter;
    counter.feed(kSampleWords);
    auto ngrams = std::make_shared<const Ngrams>(counter.most_frequent(kMostNgramsOfSample), "sample words");
    const std::vector<float> normal = sample_normal(ngrams->size());
    return std::make_shared<const WordHash>(sample_settings(WordHashKind::lsh), std::move(ngrams), normal);
}

}  // namespace

std::shared_ptr<const WordHash> sample_hash(WordHashKind kind) {
    static const std::shared_ptr<const WordHash> md5 =
        std::make_shared<const WordHash>(sample_settings(WordHashKind::md5));
    static const std::shared_ptr<const WordHash> lsh = sample_lsh();
    return kind == WordHashKind::lsh ? lsh : md5;
}

}  // namespace headscope::tokenizer
