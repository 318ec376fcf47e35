// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/objectives/objective.h"

#include <map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/nonzero.h>

#include "core/base/error.h"
#include "core/model/device.h"
#include "core/model/heads/text_rows.h"
#include "core/model/random_fill.h"

namespace headscope::model {
namespace {

/// Classes of shuffle_random: unchanged, moved, replaced.
constexpr std::int64_t kShuffleClasses = 3;

[[noreturn]] void refuse(const ModelConfig& config, const std::string& expected, const std::string& found) {
    throw Error(ErrorCode::unsupported, escaped(config.name), "expected " + expected, "found " + found);
}

const char* stack_name(const ModelConfig& config) {
    return config.encoder ? "an encoder-decoder" : config.causal ? "a decoder" : "an encoder";
}

std::string head_name(const ModelConfig& config) {
    const std::string classes = std::to_string(config.classes) + " classes";
    switch (config.head) {
        case HeadKind::token_classes:
            return "a head for " + classes + " of tokens";
        case HeadKind::sequence_classes:
            return "a head for " + classes + " of texts";
        case HeadKind::spans:
            return "a head for answers";
        case HeadKind::none:
            return "no head";
        default:
            return "a head for the vocabulary";
    }
}

void want_encoder(const ModelConfig& config, const char* what) {
    if (config.encoder || config.causal)
        refuse(config, std::string("an encoder to train on ") + what, stack_name(config));
}

at::Tensor hidden_of(Trainable& model, const Batch& batch, const TrainingForward* training) {
    return training ? model.forward(batch, *training) : model.model().forward(batch);
}

class TokenLabels : public Objective {
public:
    void check(const ModelConfig&) const override {}

    std::vector<std::string> names() const override { return {"loss"}; }

    std::vector<NamedLoss> losses(Trainable& model, const Batch& batch, const HeadLossOptions& options,
                                  const TrainingForward* training) const override {
        const at::Tensor& read = batch.predicted();
        if (!batch.labels.defined() || batch.labels.sizes() != read.sizes()) {
            throw Error(ErrorCode::usage, "labels", "expected one for each token that the head is asked about",
                        "found " + std::string(batch.labels.defined() ? "another shape" : "none"));
        }
        const at::AutoGradMode recording(training != nullptr);
        at::Tensor hidden = hidden_of(model, batch, training).flatten(0, 1), labels = batch.labels.flatten();
        if (few_count()) {
            // The head's product is for all of the vocabulary: it is made of the rows that count alone.
            const at::Tensor counted = at::nonzero(labels >= 0).squeeze(1);
            if (counted.numel() > 0) {
                hidden = hidden.index_select(0, on_device(counted, hidden.device()));
                labels = labels.index_select(0, counted);
            }
        }
        return {{names().front(), model.loss(hidden, labels, options)}};
    }

protected:
    virtual bool few_count() const { return false; }
};

class NextToken final : public TokenLabels {
public:
    void check(const ModelConfig& config) const override {
        const char* wanted = "a plain decoder to train on the next token (headscope, Llama, Qwen and the like)";
        if (config.encoder || !config.causal) refuse(config, wanted, stack_name(config));
        if (config.has_classes()) refuse(config, wanted, head_name(config));
    }
};

class Masked final : public TokenLabels {
public:
    void check(const ModelConfig& config) const override {
        want_encoder(config, "masked tokens");
        const char* wanted = "a head for the vocabulary to train on masked tokens";
        if (!config.hashed.is_table()) refuse(config, wanted, "hashes of words, which have none");
        if (config.head != HeadKind::vocabulary) refuse(config, wanted, head_name(config));
    }
    std::vector<std::string> names() const override { return {"masked"}; }

protected:
    bool few_count() const override { return true; }
};

class ShuffleRandom final : public TokenLabels {
public:
    void check(const ModelConfig& config) const override {
        want_encoder(config, "shuffled and replaced tokens");
        if (config.head != HeadKind::token_classes || config.classes != kShuffleClasses)
            refuse(config, "a head for 3 classes of tokens (intact, shuffled, replaced)", head_name(config));
    }
    std::vector<std::string> names() const override { return {"shuffle_random"}; }
};

class Translation final : public TokenLabels {
public:
    void check(const ModelConfig& config) const override {
        if (!config.encoder) refuse(config, "an encoder-decoder to train on translation", stack_name(config));
        if (config.head != HeadKind::vocabulary)
            refuse(config, "a head for the vocabulary to train on translation", head_name(config));
    }
    std::vector<std::string> names() const override { return {"translation"}; }
};

class Classify final : public Objective {
public:
    explicit Classify(std::int64_t classes) : classes_(classes) {}

    void check(const ModelConfig& config) const override {
        if (config.encoder) refuse(config, "an encoder or a decoder to train on classes of texts", stack_name(config));
        if (config.head != HeadKind::sequence_classes || config.classes != classes_) {
            refuse(config,
                   "a head for " + std::to_string(classes_) + (classes_ == 1 ? " class" : " classes") + " of texts",
                   head_name(config));
        }
        const std::string usual = classes_ == 1 ? "regression" : "single_label_classification";
        if (!config.problem_type.empty() && config.problem_type != usual)
            refuse(config, "a head of problem_type " + usual, config.problem_type);
    }
    std::vector<std::string> names() const override { return {classes_ == 1 ? "squared_error" : "classify"}; }

    std::vector<NamedLoss> losses(Trainable& model, const Batch& batch, const HeadLossOptions& options,
                                  const TrainingForward* training) const override {
        at::Tensor wanted = classes_ == 1 ? batch.values : batch.labels;
        if (!wanted.defined() || wanted.numel() != batch.ids.size(0)) {
            throw Error(ErrorCode::usage, "labels",
                        std::string("expected a ") + (classes_ == 1 ? "number" : "class") + " for each text",
                        "found " + std::string(wanted.defined() ? "another shape" : "none"));
        }
        wanted = wanted.flatten();
        const at::AutoGradMode recording(training != nullptr);
        const at::Tensor rows =
            text_rows(std::as_const(model).model().config(), hidden_of(model, batch, training), batch.lengths);
        return {{names().front(),
                 classes_ == 1 ? squared_error(model.class_logits(rows), wanted) : model.loss(rows, wanted, options)}};
    }

private:
    std::int64_t classes_;
};

class Spans final : public Objective {
public:
    void check(const ModelConfig& config) const override {
        want_encoder(config, "answers in contexts");
        if (config.head != HeadKind::spans)
            refuse(config, "a head for the start and the end of an answer", head_name(config));
    }
    std::vector<std::string> names() const override { return {"spans"}; }

    std::vector<NamedLoss> losses(Trainable& model, const Batch& batch, const HeadLossOptions& options,
                                  const TrainingForward* training) const override {
        const at::AutoGradMode recording(training != nullptr);
        at::Tensor hidden = hidden_of(model, batch, training);
        const std::int64_t sequences = hidden.size(0), tokens = hidden.size(1);
        if (training)
            hidden = drop(hidden, training->dropout, random_key(training->dropout_seed, "head"),
                          training->first_sequence * (hidden.numel() / sequences));
        const at::Tensor logits = model.class_logits(hidden.flatten(0, 1)).view({sequences, tokens, kSpanEnds});
        return {{names().front(), span_loss(logits, batch.lengths, batch.labels, options)}};
    }
};

}  // namespace

std::unique_ptr<Objective> token_labels() {
    return std::make_unique<TokenLabels>();
}

std::unique_ptr<Objective> next_token() {
    return std::make_unique<NextToken>();
}

std::unique_ptr<Objective> make_objective(const std::string& kind, std::int64_t classes) {
    using Made = std::unique_ptr<Objective>;
    static const std::map<std::string, Made (*)(std::int64_t)> makers{
        {"next_token", [](std::int64_t) -> Made { return next_token(); }},
        {"masked", [](std::int64_t) -> Made { return std::make_unique<Masked>(); }},
        {"shuffle_random", [](std::int64_t) -> Made { return std::make_unique<ShuffleRandom>(); }},
        {"translation", [](std::int64_t) -> Made { return std::make_unique<Translation>(); }},
        {"classify", [](std::int64_t count) -> Made { return std::make_unique<Classify>(count); }},
        {"spans", [](std::int64_t) -> Made { return std::make_unique<Spans>(); }}};
    if (const auto maker = makers.find(kind); maker != makers.end()) return maker->second(classes);
    throw Error(ErrorCode::usage, "objective",
                "expected next_token, masked, shuffle_random, translation, classify or spans",
                "found " + escaped(kind));
}

}  // namespace headscope::model
