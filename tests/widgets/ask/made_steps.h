// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A generation of no model for the view Step by step: three words of prompt, two layers of three heads.

#include <QStringList>
#include <algorithm>
#include <cmath>

#include "widgets/views/stepper/step_source.h"

namespace headscope::tests {

inline constexpr std::int64_t kMadeHeads = 3, kMadeSites = 2;

inline widgets::StepWord made_word(std::int64_t id) {
    static const QStringList words{QStringLiteral("In"),    QStringLiteral("␣the"),   QStringLiteral("␣beginning"),
                                   QStringLiteral("␣was"),  QStringLiteral("␣light"), QStringLiteral("␣and"),
                                   QStringLiteral("␣king"), QStringLiteral("␣people")};
    return {id, words[static_cast<qsizetype>(id) % words.size()]};
}

/// Step `number` with the token `id`, after `before` tokens.
inline std::shared_ptr<const widgets::ShownStep> made_step(std::size_t number, std::int64_t id, std::int64_t before,
                                                           bool replaced, bool maps = true) {
    auto step = std::make_shared<widgets::ShownStep>();
    step->token = made_word(id);
    step->replaced = replaced;
    const double first = 0.5 + 0.1 * static_cast<double>(number % 4);
    for (std::int64_t k = 0; k < 3; ++k) {
        step->top.push_back(made_word(static_cast<std::int64_t>(number) + 3 + k));
        step->top_probability.push_back(k == 0 ? first : (1 - first) / 4);
        if (step->top.back().id == id) step->probability = step->top_probability.back();
    }
    for (std::int64_t site = 0; site < kMadeSites; ++site) {
        widgets::StepRow row{0, before, {}};
        for (std::int64_t head = 0; head < kMadeHeads; ++head) {
            double entropy = 0, distance = 0, sum = 0;
            std::vector<double> weights;
            for (std::int64_t j = 0; j < before; ++j) {
                weights.push_back(1 + static_cast<double>((j * (head + 1) + site) % 5));
                sum += weights.back();
            }
            for (std::int64_t j = 0; j < before; ++j) {
                double& weight = weights[static_cast<std::size_t>(j)];
                weight /= sum;
                entropy -= weight * std::log(weight);
                distance += weight * static_cast<double>(before - 1 - j);
                if (maps) row.weights.push_back(static_cast<float>(weight));
            }
            step->measures[0].push_back(entropy);
            step->measures[1].push_back(weights.front());
            step->measures[2].push_back(distance);
        }
        step->rows.push_back(std::move(row));
    }
    return step;
}

/// Answers at once, unless `slow`; keeps what was requested.
class MadeSteps : public widgets::StepSource {
public:
    explicit MadeSteps(int steps = 0) {
        if (steps > 0) begin({});
        if (steps > 1) step(steps - 1);
        requests.clear();
    }

    QString model() const override { return name; }
    std::shared_ptr<const widgets::ShownGeneration> generation() const override { return shown; }
    std::shared_ptr<const widgets::ShownSteering> steering() const override { return steered; }
    bool busy() const override { return slow; }
    QString words() const override { return slow ? QStringLiteral("Generating…") : QString(); }

    void begin(const widgets::StepOptions& options) override {
        requests << QStringLiteral("begin ") + options.prompt;
        given = options;
        auto now = std::make_shared<widgets::ShownGeneration>();
        now->model = name;
        now->heads = kMadeHeads;
        for (std::int32_t layer = 0; layer < kMadeSites; ++layer) {
            Site site;
            site.layer = layer;
            site.heads = kMadeHeads;
            now->sites.push_back(site);
        }
        for (std::int64_t i = 0; i < 3; ++i) now->prompt.push_back(made_word(i));
        shown = now;
        add(1);
    }
    void step(int count) override {
        requests << QStringLiteral("step %1").arg(count);
        add(count);
    }
    void keep(int count) override {
        requests << QStringLiteral("keep %1").arg(count);
        auto now = std::make_shared<widgets::ShownGeneration>(*shown);
        now->steps.resize(static_cast<std::size_t>(count));
        take(now);
    }
    void replace(int step, const QString& token) override {
        requests << QStringLiteral("replace %1 %2").arg(step).arg(token);
        auto now = std::make_shared<widgets::ShownGeneration>(*shown);
        now->steps.resize(static_cast<std::size_t>(step));
        now->steps.push_back(made_step(now->steps.size(), token.toLongLong(), 3 + step, true));
        take(now);
    }
    /// Halves each candidate; one more token takes the rest.
    void steer(int step, const widgets::StepVector& by) override {
        requests << QStringLiteral("steer %1 %2 %3").arg(step).arg(by.layer).arg(by.factor);
        auto now = std::make_shared<widgets::ShownSteering>();
        now->step = shown->steps.at(static_cast<std::size_t>(step));
        now->by = by;
        for (std::size_t k = 0; k < now->step->top.size(); ++k)
            now->words.push_back({now->step->top[k], now->step->top_probability[k], now->step->top_probability[k] / 2});
        now->words.push_back({made_word(0), 0, 0.5});
        steered = now;
        take(std::make_shared<const widgets::ShownGeneration>(*shown));
    }
    void stop() override {
        requests << QStringLiteral("stop");
        slow = false;
        Q_EMIT changed();
    }
    void save(const QString& path) override { requests << QStringLiteral("save ") + path; }

    void take(const std::shared_ptr<const widgets::ShownGeneration>& now) {
        shown = now;
        Q_EMIT changed();
    }
    void add(int count) {
        auto now = std::make_shared<widgets::ShownGeneration>(*shown);
        for (int i = 0; i < count; ++i) {
            const std::size_t number = now->steps.size();
            now->steps.push_back(
                made_step(number, static_cast<std::int64_t>(number) + 3, 3 + static_cast<std::int64_t>(number), false));
        }
        take(now);
    }

    QString name = QStringLiteral("made up");
    bool slow = false;
    QStringList requests;
    widgets::StepOptions given;
    std::shared_ptr<const widgets::ShownGeneration> shown;
    std::shared_ptr<const widgets::ShownSteering> steered;
};

}  // namespace headscope::tests
