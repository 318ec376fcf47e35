// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/evaluation/expected_memory.h"

#include <algorithm>

namespace headscope::evaluation {

namespace {

constexpr double kWaitingTokenBytes = 64;  ///< ids, targets and lengths of a batch that waits

/// Bytes of weights, and of a pass of `batch` tokens or of the longest text.
double evaluation_bytes(const Request& request, const model::Inspection& inspection, checkpoint::LoadAs precision,
                        std::int64_t batch, model::Residence residence) {
    std::int64_t rows = batch;
    for (const std::int64_t length : request.lengths) rows = std::max(rows, length);
    const bool trains = std::find(request.tasks.begin(), request.tasks.end(), "speed") != request.tasks.end();
    const auto tokens = static_cast<double>(rows);
    return model::reading_bytes(inspection, tokens, tokens, precision, residence) +
           (trains ? 2 * model::weight_bytes(inspection, checkpoint::LoadAs::float32) : 0);
}

}  // namespace

std::int64_t fitting_batch_tokens(const Request& request, const model::Inspection& inspection,
                                  const model::WeightChoice& choice, double room) {
    return model::fitting_batch_tokens(
        request.score.batch_tokens, choice.residence, room, [&](std::int64_t tokens, model::Residence residence) {
            return evaluation_bytes(request, inspection, choice.precision, tokens, residence);
        });
}

model::Residence expect_memory(const Request& request, const model::Inspection& inspection,
                               model::WeightChoice choice) {
    choice.otherwise = "lower --batch-tokens or --length";
    return model::choose_residence(
        [&](model::Residence residence) {
            return evaluation_bytes(request, inspection, choice.precision, request.score.batch_tokens, residence);
        },
        choice);
}

double fitting_waiting_bytes(const Request& request, const model::Inspection& inspection, checkpoint::LoadAs precision,
                             double room, double device_room) {
    const ScoreOptions& score = request.score;
    const double rest = evaluation_bytes(request, inspection, precision, score.batch_tokens, model::Residence::stream) +
                        kWaitingTokenBytes * static_cast<double>(score.group_tokens);
    const double there = model::device_room_after(rest, device_room);
    return std::clamp(room <= 0 ? there : std::min(room - rest, there), 0.0, score.waiting.memory_bytes);
}

}  // namespace headscope::evaluation
