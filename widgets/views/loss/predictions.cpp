// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/loss/predictions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/figures/token_text.h"

namespace headscope::widgets {

std::int64_t bytes_of(const KnownPieces& known) {
    return static_cast<std::int64_t>(known.labels.size() * 80);
}

std::string output_stream(const store::AnalysisHeader& header) {
    const auto* output = &header.output_sequences();
    for (const auto& [name, sequences] : header.streams)
        if (&sequences == output) return name;
    return "tokens";
}

Predictions predictions_of(const std::vector<double>& logits, std::int64_t actual, std::size_t most) {
    Predictions found;
    if (logits.empty()) return found;
    found.only = logits.front();
    const auto logit = [&](std::int32_t id) {
        const double value = logits[static_cast<std::size_t>(id)];
        return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value;
    };
    std::vector<std::int32_t> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    const auto before = [&](std::int32_t a, std::int32_t b) {
        return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
    };
    most = std::min(most, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(most), ids.end(), before);
    const double largest = logit(ids.front());
    double sum = 0;
    for (std::size_t id = 0; id < logits.size(); ++id) sum += std::exp(logit(static_cast<std::int32_t>(id)) - largest);
    const auto choice = [&](std::int32_t id) { return Predictions::Choice{id, std::exp(logit(id) - largest) / sum}; };
    for (std::size_t i = 0; i < most; ++i) found.best.push_back(choice(ids[i]));
    if (actual < 0 || actual >= std::ssize(logits)) return found;
    const auto id = static_cast<std::int32_t>(actual);
    found.actual = choice(id);
    found.rank = std::count_if(ids.begin(), ids.end(), [&](std::int32_t other) { return before(other, id); });
    return found;
}

Reply<Predictions> predictions(Study& study, std::int64_t sequence, std::int64_t token, std::size_t most,
                               figures::OutputKind output) {
    const std::string key = "predictions:" + std::to_string(sequence) + ":" + std::to_string(token);
    return study.ask<Predictions>(
        key, sequence, -2, [=](const store::AnalysisFile& file) -> std::shared_ptr<const Predictions> {
            const auto& tokens = file.header().output_sequences().at(static_cast<std::size_t>(sequence));
            const auto logits = file.logits(sequence, output.next ? token - 1 : token, 1);
            if (!logits) return nullptr;
            const std::int64_t actual = output.classes ? -1 : tokens.ids.at(static_cast<std::size_t>(token));
            return std::make_shared<const Predictions>(predictions_of(logits->data, actual, most));
        });
}

Reply<TokenClasses> token_classes(Study& study, std::int64_t sequence) {
    return study.ask<TokenClasses>(
        "token classes:" + std::to_string(sequence), sequence, -2,
        [=](const store::AnalysisFile& file) -> std::shared_ptr<const TokenClasses> {
            const auto& tokens = file.header().output_sequences().at(static_cast<std::size_t>(sequence));
            const auto logits = file.logits(sequence, 0, std::ssize(tokens.ids));
            if (!logits) return nullptr;
            TokenClasses found;
            found.classes = logits->shape.at(1);
            for (std::size_t at = 0; at < logits->data.size(); at += static_cast<std::size_t>(found.classes)) {
                const auto row = logits->data.begin() + static_cast<std::ptrdiff_t>(at);
                const auto best = std::max_element(row, row + found.classes);
                found.best.push_back(std::isnan(*best) ? std::numeric_limits<float>::quiet_NaN()
                                                       : static_cast<float>(best - row));
            }
            return std::make_shared<const TokenClasses>(std::move(found));
        });
}

Reply<Predictions> class_predictions(Study& study, std::int64_t sequence, std::size_t most) {
    return study.ask<Predictions>(
        "classes:" + std::to_string(sequence), sequence, -2,
        [=](const store::AnalysisFile& file) -> std::shared_ptr<const Predictions> {
            const auto logits = file.class_logits(sequence);
            if (!logits) return nullptr;
            return std::make_shared<const Predictions>(predictions_of(logits->data, -1, most));
        });
}

Reply<KnownPieces> known_pieces(Study& study) {
    return study.ask<KnownPieces>("known pieces", -3, -3, [](const store::AnalysisFile& file) {
        KnownPieces known;
        known.output = figures::output_kind(file.header());
        for (const auto& tokens : file.header().output_sequences())
            for (std::size_t i = 0; i < std::min(tokens.ids.size(), tokens.pieces.size()); ++i)
                if (!known.labels.contains(tokens.ids[i]))
                    known.labels.emplace(tokens.ids[i],
                                         QString::fromStdString(figures::visible_token(tokens.pieces[i], 24)));
        return std::make_shared<const KnownPieces>(std::move(known));
    });
}

Reply<MeanLoss> mean_loss(Study& study) {
    return study.ask<MeanLoss>("mean loss", -1, -2, [](const store::AnalysisFile& file) {
        std::vector<double> means;
        for (std::int64_t s = 0; s < std::ssize(file.header().sequences); ++s) {
            const double mean = figures::moments(file.loss(s).data).mean;
            if (!std::isnan(mean)) means.push_back(mean);
        }
        const auto all = figures::moments(means);
        return std::make_shared<const MeanLoss>(MeanLoss{std::ssize(means), all.mean, all.deviation});
    });
}

}  // namespace headscope::widgets
