// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A generation that goes step by step as the window shows it: values, made on the compute thread by the owner of the
// weights.

#include <QObject>
#include <QString>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/site.h"

namespace headscope::store {
struct AskRecord;
}

namespace headscope::widgets {

struct StepWord {
    std::int64_t id = 0;
    QString text;  ///< visible_token(), or "#ID" without a tokenizer
};

/// Weights of the heads of a site in the row that led to a token: of keys first_key .. first_key + keys - 1.
struct StepRow {
    std::int64_t first_key = 0, keys = 0;
    std::vector<float> weights;  ///< [heads, keys]; empty: not kept, or the site has none
};

enum class StepMeasure : std::uint8_t { entropy, sink, mean_distance };
inline constexpr std::size_t kStepMeasures = 3;

/// A generated token.
struct ShownStep {
    StepWord token;
    bool replaced = false;   ///< by the user
    double probability = 0;  ///< of `token`
    std::vector<StepWord> top;
    std::vector<double> top_probability;
    std::array<std::vector<double>, kStepMeasures> measures;  ///< [sites, heads]; NaN: none
    std::vector<StepRow> rows;                                ///< by site
};

/// A prompt and what the model generated after it; of an encoder-decoder, what its encoder reads, and what its decoder
/// reads and generated. Steps are shared by the states that have them.
struct ShownGeneration {
    QString model;  ///< name
    std::vector<Site> sites;
    std::int64_t heads = 0;
    std::vector<StepWord> prompt;
    std::vector<StepWord> target;  ///< the decoder's input ahead of the steps; empty: the steps follow the prompt
    std::vector<std::shared_ptr<const ShownStep>> steps;
    bool ended = false;  ///< the last token is an end token
    bool full = false;   ///< the model has no position left
};

struct StepOptions {
    QString prompt;  ///< empty: the text panel's first text
    int top = 5;
    double temperature = 0;  ///< 0: greedy
    int seed = 0;
    bool maps = true;  ///< keeps rows of attention
    int steps = 20;    ///< planned: edits of positions beyond them are refused
};

/// Vectors of a file of `ask steer` that are added to the outputs of layers.
struct StepVector {
    std::shared_ptr<const store::AskRecord> file;
    int layer = -1;  ///< -1: every layer that has a vector
    double factor = 0;
    bool operator==(const StepVector&) const = default;
};

struct SteeredWord {
    StepWord word;
    double without = 0, with = 0;  ///< probabilities
};

/// Candidates of a step without and with vectors.
struct ShownSteering {
    std::shared_ptr<const ShownStep> step;
    StepVector by;
    std::vector<SteeredWord> words;  ///< ShownStep::top, then other likeliest tokens with the vectors
};

/// Window's thread; nothing waits, answers are signals. Requests come one after the other.
class StepSource : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    /// Name of the model that begin() would take; empty: none is open.
    virtual QString model() const = 0;
    /// Null: nothing has begun.
    virtual std::shared_ptr<const ShownGeneration> generation() const = 0;
    /// Result of the last steer(), or null.
    virtual std::shared_ptr<const ShownSteering> steering() const = 0;
    virtual bool busy() const = 0;
    virtual QString words() const = 0;  ///< of the work that goes on

    /// Takes the prompt in and computes the first token.
    virtual void begin(const StepOptions& options) = 0;
    virtual void step(int count) = 0;
    /// Drops the generated tokens from `count` on.
    virtual void keep(int count) = 0;
    /// `token`: an id, or text of one token in quotes.
    virtual void replace(int step, const QString& token) = 0;
    /// Computes the candidates of a step once more, with vectors added; the generation stays as it is.
    virtual void steer(int step, const StepVector& by) = 0;
    virtual void stop() = 0;
    /// As `headscope ask generate` writes it; opens the file among the ask files.
    virtual void save(const QString& path) = 0;

Q_SIGNALS:
    void changed();         ///< any value of the above
    void models_changed();  ///< model() is another
    void failed(const QString& message);
};

}  // namespace headscope::widgets
