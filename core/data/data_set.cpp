// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/data_set.h"

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch/objective_reader.h"
#include "core/data/fixed_token.h"
#include "core/data/generator_data.h"
#include "core/data/text_data.h"

namespace headscope::data {
namespace {

void check(const DataSettings& settings) {
    const int given =
        (settings.text.empty() ? 0 : 1) + (settings.corpus.empty() ? 0 : 1) + (settings.generator ? 1 : 0);
    if (given != 1) {
        throw Error(ErrorCode::usage, "data", "expected one of text, corpus and generator to train on",
                    given == 0 ? "found none" : "found " + std::to_string(given));
    }
    if (settings.sequence_length < 1 || settings.sequence_length > (std::int64_t{1} << 24)) {
        throw Error(ErrorCode::usage, "data.sequence_length", "expected a number from 1 to 16777216",
                    "found " + std::to_string(settings.sequence_length));
    }
    if (!(settings.validation >= 0 && settings.validation < 1)) {
        throw Error(ErrorCode::usage, "data.validation", "expected a share from 0 to less than 1, or a list of files",
                    "found " + std::to_string(settings.validation));
    }
    if (settings.fixed_token &&
        (settings.fixed_token->position < 0 || settings.fixed_token->position >= settings.sequence_length)) {
        throw Error(ErrorCode::usage, "data.fixed_token, position",
                    "expected a position of a sequence, 0 to " + std::to_string(settings.sequence_length - 1),
                    "found " + std::to_string(settings.fixed_token->position));
    }
}

}  // namespace

DataSet::~DataSet() = default;

std::shared_ptr<const DataSet> DataSet::prepare(const DataSettings& settings, const DataPlaces& places,
                                                Progress& progress, const Cancellation& cancellation,
                                                const HashedWords* words) {
    check(settings);
    check_objective(settings, words != nullptr);
    auto data = settings.generator ? prepare_generator(settings, places, words)
                                   : prepare_text(settings, places, progress, cancellation, words);
    return settings.fixed_token ? with_fixed_token(std::move(data), *settings.fixed_token) : data;
}

}  // namespace headscope::data
