// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/corruption.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/data/batch/batch_source.h"
#include "core/data/objectives/list.h"

namespace headscope::data {
namespace {

constexpr double kMaskedShare = 0.8;  // share of the drawn tokens that <mask> replaces (Devlin et al. 2019)
constexpr double kOther = 0.9;        // up to here a random token does
constexpr std::int64_t kSame = 0, kShuffled = 1, kRandom = 2;  // labels of shuffle_random

void check_share(const char* name, double share) {
    if (share >= 0 && share <= 1) return;
    throw Error(ErrorCode::usage, std::string("objective.") + name, "expected a share from 0 to 1",
                "found " + std::to_string(share));
}

/// Ids of `special` in [0, ids), each once, in order.
std::vector<std::int64_t> excluded_ids(const SpecialIds& special, std::int64_t ids) {
    std::vector<std::int64_t> all = special.others;
    all.insert(all.end(), {special.first, special.last, special.padding, special.mask});
    std::erase_if(all, [ids](std::int64_t id) { return id < 0 || id >= ids; });
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
}

}  // namespace

Corruption::Corruption(const ObjectiveSettings& objective, SpecialIds special, std::int64_t ids, bool hashed)
    : objective_(objective),
      special_(std::move(special)),
      excluded_(excluded_ids(special_, ids)),
      ids_(ids),
      hashed_(hashed) {
    const ObjectiveKind& kind = kind_of(objective);
    if (kind.data != ObjectiveData::corrupted) {
        throw Error(ErrorCode::usage, "objective.kind", "expected masked or shuffle_random, which spoil sequences",
                    "found " + escaped(objective.kind, 40));
    }
    if (kind.masks && hashed) {
        throw Error(ErrorCode::usage, "objective.kind", "expected shuffle_random for a hash embedding",
                    "found masked, which wants a vocabulary to guess from");
    }
    if (kind.masks && (special_.mask < 0 || special_.mask >= ids)) {
        throw Error(ErrorCode::usage, "data.tokenizer", "expected a tokenizer with <mask> or [MASK]", "found none");
    }
    check_share("mask", objective.mask);
    check_share("shuffle", objective.shuffle);
    check_share("random", objective.random);
    if (static_cast<std::int64_t>(excluded_.size()) >= ids) {
        throw Error(ErrorCode::usage, "data.tokenizer", "expected ordinary tokens beside the special ones",
                    "found none among " + std::to_string(ids));
    }
}

void Corruption::operator()(SpoiltSequence& sequence, Random& random) const {
    sequence.targets.assign(sequence.ids.size(), no_target);
    kind_of(objective_).masks ? mask(sequence, random) : shuffle(sequence, random);
}

bool Corruption::ordinary(std::int64_t id) const {
    return !std::binary_search(excluded_.begin(), excluded_.end(), id);
}

std::vector<std::size_t> Corruption::ordinary_places(const SpoiltSequence& sequence) const {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sequence.ids.size(); ++i)
        if (ordinary(sequence.ids[i])) places.push_back(i);
    return places;
}

std::int64_t Corruption::random_id(Random& random) const {
    std::int64_t id = random.below(ids_ - static_cast<std::int64_t>(excluded_.size()));
    for (const std::int64_t excluded : excluded_)
        if (id >= excluded) ++id;
    return id;
}

void Corruption::mask(SpoiltSequence& sequence, Random& random) const {
    for (const std::size_t i : ordinary_places(sequence)) {
        if (random.uniform() >= objective_.mask) continue;
        sequence.targets[i] = sequence.ids[i];
        const double way = random.uniform();
        if (way < kMaskedShare)
            sequence.ids[i] = special_.mask;
        else if (way < kOther)
            sequence.ids[i] = random_id(random);
    }
}

void Corruption::shuffle(SpoiltSequence& sequence, Random& random) const {
    const std::vector<std::size_t> places = ordinary_places(sequence);
    const auto count = static_cast<std::int64_t>(places.size());
    const std::vector<std::int64_t> order = draw_different(random, count, count);
    const SpoiltSequence was = sequence;
    const std::size_t bits = sequence.ids.empty() ? 0 : sequence.bits.size() / sequence.ids.size();
    const bool has_points = !sequence.points.empty();
    const auto take = [&](std::size_t to, std::size_t from) {
        sequence.ids[to] = was.ids[from];
        std::copy_n(was.bits.begin() + static_cast<std::ptrdiff_t>(from * bits), bits,
                    sequence.bits.begin() + static_cast<std::ptrdiff_t>(to * bits));
        if (has_points) sequence.points[to] = was.points[from];
    };
    for (std::size_t k = 0; k < places.size(); ++k) {
        const std::size_t i = places[k];
        if (random.uniform() < objective_.shuffle) {
            take(i, places[static_cast<std::size_t>(order[k])]);
            sequence.targets[i] = kShuffled;
        } else if (random.uniform() < objective_.random) {
            if (has_points)
                sequence.points[i] = was.points[places[static_cast<std::size_t>(random.below(count))]];
            else if (bits > 0)
                for (std::size_t b = 0; b < bits; ++b)
                    sequence.bits[i * bits + b] = static_cast<std::uint8_t>(random.next() >> 63U);
            else
                sequence.ids[i] = random_id(random);
            sequence.targets[i] = kRandom;
        } else {
            sequence.targets[i] = kSame;
        }
    }
}

}  // namespace headscope::data
