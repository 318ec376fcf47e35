// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/asks/step_service.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "app/commands/loading.h"
#include "app/window/asks/step_parts.h"
#include "app/window/engine.h"
#include "app/window/text_job.h"
#include "core/ask/generation.h"
#include "core/ask/generation_session.h"
#include "core/ask/settings.h"
#include "core/ask/token_list.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/generate/generate.h"
#include "core/store/ask/ask_file.h"
#include "core/tokenizer/tokenizer.h"

namespace headscope::app {
namespace {

const widgets::ModelCard* card_of(const Engine& engine, int id) {
    for (const widgets::ModelCard& card : engine.models())
        if (card.id == id) return &card;
    return nullptr;
}

/// "#ID" without a tokenizer.
widgets::StepWord step_word(std::int64_t id, const tokenizer::Tokenizer* tokenizer) {
    if (!tokenizer || id >= tokenizer->vocabulary_size()) return {id, QStringLiteral("#%1").arg(id)};
    return {id, listed_word(*tokenizer, static_cast<std::int32_t>(id))};
}

std::vector<widgets::StepWord> step_words(const store::SequenceTokens& text, const tokenizer::Tokenizer* tokenizer) {
    std::vector<widgets::StepWord> words;
    for (const std::int32_t id : text.ids) words.push_back(step_word(id, tokenizer));
    return words;
}

std::vector<std::int64_t> step_ids(const store::SequenceTokens& text) {
    return {text.ids.begin(), text.ids.end()};
}

}  // namespace

/// One text. What begin() gave is fixed; the rest is touched on the compute thread alone.
struct StepService::Stepping {
    std::shared_ptr<const OpenModel> model;
    widgets::TextChoice choice;
    widgets::StepOptions options;
    std::string resources;

    const tokenizer::Tokenizer* writer() const;
    void read(const Cancellation& cancellation);
    double bytes(model::Residence residence, int tokens, bool again) const;
    void bind(const Cancellation& cancellation);
    std::shared_ptr<const widgets::ShownGeneration> show();
    std::shared_ptr<const widgets::ShownSteering> steer(int step, const widgets::StepVector& by,
                                                        const Cancellation& cancellation);
    std::shared_ptr<const store::AskRecord> save(const QString& path, const Cancellation& cancellation) const;

    store::SequenceTokens prompt;  ///< with a target: the encoder reads it, and the decoder continues the target
    ask::AskOptions command;
    ask::InterventionPlan plan;
    std::vector<model::Intervention> list;  ///< of all edits, with their values
    std::unique_ptr<model::Interventions> edits;
    std::weak_ptr<model::Model> bound;  ///< that the session uses
    std::unique_ptr<ask::GenerationSession> session;

private:
    std::vector<std::int64_t> begun() const;
    std::shared_ptr<const widgets::ShownStep> shown_step(const ask::GeneratedStep& step) const;

    std::vector<widgets::StepWord> prompt_words_, target_words_;
    std::vector<std::shared_ptr<const widgets::ShownStep>> shown_;
    std::vector<std::int64_t> plain_text_;  ///< the text that `plain_` follows
    NextToken plain_;                       ///< without vectors
};

/// The tokenizer of generated tokens; null: none.
const tokenizer::Tokenizer* StepService::Stepping::writer() const {
    return ask::writer_of(model->tokenizer.get());
}

/// The decoder's input of an encoder-decoder, ahead of its steps; empty: one stack.
std::vector<std::int64_t> StepService::Stepping::begun() const {
    return prompt.target ? step_ids(*prompt.target) : std::vector<std::int64_t>();
}

/// The tokens of the first text, and the edits.
void StepService::Stepping::read(const Cancellation& cancellation) {
    if (!prompt.ids.empty()) return;
    analysis::Input input = read_choice(*model, choice, resources, cancellation);
    analysis::AnalysisRequest request = make_request(*model, choice, input, cancellation);
    ask::InterventionPlan edits_of_choice = read_interventions(*model, choice);
    if (request.sequences.empty() || request.sequences.front().ids.empty())
        throw Error(ErrorCode::usage, "prompt", "expected a text of at least one token", "found none");
    store::SequenceTokens text = std::move(request.sequences.front());
    if (!request.targets.empty())
        text.target = std::make_shared<const store::SequenceTokens>(std::move(request.targets.front()));
    model::GenerateOptions checked;
    checked.tokens = 1;
    checked.temperature = options.temperature;
    model::check_prompt(model->inspection, step_ids(text), checked);
    // The last new token is not read.
    const std::int64_t length = std::ssize(text.predicted().ids);
    const std::int64_t room = model::room_for_tokens(model->inspection.config, length, false);
    const std::int64_t lengths[] = {std::ssize(text.ids), length + std::min<std::int64_t>(options.steps, room) - 1};
    model::check_positions(edits_of_choice.list, lengths);
    command = step_command(choice, request.settings_json);
    list = request.interventions;
    plan = std::move(edits_of_choice);
    prompt = std::move(text);
}

double StepService::Stepping::bytes(model::Residence residence, int tokens, bool again) const {
    const auto made = static_cast<double>(tokens) + (session ? static_cast<double>(session->steps().size()) : 0.0);
    return step_bytes(model->inspection, prompt, made, options.maps, again, residence);
}

/// Gives the session the weights that are in memory now: others may have taken the place of those that it began with.
void StepService::Stepping::bind(const Cancellation& cancellation) {
    if (session && bound.lock() == model->weights) return;
    model::Model& weights = *model->weights;
    if (!session) {
        plan.read_values(weights, &cancellation);
        list.insert(list.begin(), plan.list.begin(), plan.list.end());
    }
    std::unique_ptr<model::Interventions> fresh;
    if (!list.empty()) fresh = std::make_unique<model::Interventions>(list, weights.config(), weights.sites());
    if (session) {
        session->rebind(weights, fresh.get());
    } else {
        ask::SessionOptions own;
        own.top = options.top;
        own.temperature = options.temperature;
        own.seed = static_cast<std::uint64_t>(options.seed);
        own.end_tokens = analysis::ending_tokens(*model->file, model->tokenizer.get());
        own.maps = options.maps;
        own.editor = fresh.get();
        session = std::make_unique<ask::GenerationSession>(weights, own, step_ids(prompt), begun());
    }
    edits = std::move(fresh);
    bound = model->weights;
}

std::shared_ptr<const widgets::ShownStep> StepService::Stepping::shown_step(const ask::GeneratedStep& step) const {
    auto shown = std::make_shared<widgets::ShownStep>();
    shown->token = step_word(step.token, writer());
    shown->replaced = step.replaced;
    shown->probability = std::exp(step.log_probability);
    for (const std::int64_t id : step.top_id) shown->top.push_back(step_word(id, writer()));
    shown->top_probability = step.top_probability;
    const std::vector<Site>& sites = model->inspection.sites;
    std::size_t heads = 0;
    for (const Site& site : sites) heads = std::max(heads, static_cast<std::size_t>(site.heads));
    for (auto& measure : shown->measures) measure.assign(sites.size() * heads, std::nan(""));
    shown->rows.resize(sites.size());
    for (const ask::GeneratedRow& row : step.rows) {
        const auto site = static_cast<std::size_t>(row.site);
        const std::vector<double>* const values[] = {&row.entropy, &row.sink, &row.mean_distance};
        for (std::size_t m = 0; m < widgets::kStepMeasures; ++m)
            std::copy(values[m]->begin(), values[m]->end(),
                      shown->measures[m].begin() + static_cast<std::ptrdiff_t>(site * heads));
        shown->rows[site] = {row.first_key, row.keys, row.weights};
    }
    return shown;
}

/// Steps that were shown before keep their objects up to the first other token: what follows depends on it. Words
/// before the steps are made once.
std::shared_ptr<const widgets::ShownGeneration> StepService::Stepping::show() {
    const auto& steps = session->steps();
    std::size_t same = 0;
    while (same < std::min(shown_.size(), steps.size()) && shown_[same]->token.id == steps[same].token &&
           shown_[same]->replaced == steps[same].replaced)
        ++same;
    shown_.resize(same);
    while (shown_.size() < steps.size()) shown_.push_back(shown_step(steps[shown_.size()]));
    auto now = std::make_shared<widgets::ShownGeneration>();
    now->model = model->card.name;
    now->sites = model->inspection.sites;
    for (const Site& site : now->sites) now->heads = std::max<std::int64_t>(now->heads, site.heads);
    if (prompt_words_.empty()) {
        prompt_words_ = step_words(prompt, model->tokenizer.get());
        if (prompt.target) target_words_ = step_words(*prompt.target, writer());
    }
    now->prompt = prompt_words_;
    now->target = target_words_;
    now->steps = shown_;
    now->ended = session->ended();
    now->full = session->room() < 1;
    return now;
}

std::shared_ptr<const widgets::ShownSteering> StepService::Stepping::steer(int step, const widgets::StepVector& by,
                                                                           const Cancellation& cancellation) {
    const auto& steps = session->steps();
    if (step < 0 || step >= std::ssize(steps) || steps.size() != shown_.size())
        throw Error(ErrorCode::usage, "steering", "expected a step below " + std::to_string(steps.size()),
                    "found " + std::to_string(step));
    const auto at = static_cast<std::size_t>(step);
    model::Model& weights = *model->weights;
    std::vector<std::int64_t> source = step_ids(prompt), target = begun();
    std::vector<std::int64_t>& text = prompt.target ? target : source;  // that is continued
    for (std::size_t t = 0; t < at; ++t) text.push_back(steps[t].token);
    model::Interventions vectors({steering_edit(*by.file, by.layer, by.factor, weights.config())}, weights.config(),
                                 weights.sites());
    model::EditorChain both({edits.get(), &vectors});
    if (text != plain_text_) {
        plain_ = read_next_token(weights, edits.get(), source, target, cancellation);
        plain_text_ = text;
    }
    const NextToken steered = read_next_token(weights, &both, source, target, cancellation);
    std::vector<std::int64_t> ids = steps[at].top_id;
    for (std::size_t k = 0; k < std::min(steps[at].top_id.size(), steered.ids.size()); ++k)
        if (std::find(ids.begin(), ids.end(), steered.ids[k]) == ids.end()) ids.push_back(steered.ids[k]);
    auto made = std::make_shared<widgets::ShownSteering>();
    made->step = shown_[at];
    made->by = by;
    for (const std::int64_t id : ids) {
        const auto entry = static_cast<std::size_t>(id);
        made->words.push_back(
            {step_word(id, writer()), plain_.probabilities.at(entry), steered.probabilities.at(entry)});
    }
    return made;
}

/// The file of `headscope ask generate` with --replace for the tokens that were given, which --resume takes.
std::shared_ptr<const store::AskRecord> StepService::Stepping::save(const QString& path,
                                                                    const Cancellation& cancellation) const {
    const auto& steps = session->steps();
    auto record = std::make_shared<store::AskRecord>();
    ask::AskOptions shared = command;
    shared.generate = std::ssize(steps);
    shared.top = options.top;
    shared.seed = options.seed;
    ask::GenerateChoice own;
    own.temperature = options.temperature;
    own.record = options.maps ? "maps" : "";
    for (std::size_t t = 0; t < steps.size(); ++t)
        if (steps[t].replaced) own.replaced.push_back(std::to_string(t) + "=" + std::to_string(steps[t].token));
    ask::TextsHash texts;
    texts.add(prompt);
    nlohmann::json settings = ask::ask_settings(shared, texts.finish());
    own.store(settings);
    record->tool = shared.tool;
    record->settings_json = ask::stored_settings(settings);
    describe_model(*record, model->file->path(), *model->file, *model->weights, model->file->fingerprint(cancellation));
    record->interventions = plan.toml;
    record->sequences = {prompt};
    store::add_usual_dimensions(*record);
    ask::add_generation_tables(*record, std::ssize(steps), options.top, options.maps);
    ask::put_generation(*record, 0, steps);
    record->complete = true;
    if (model->tokenizer) ask::add_words(*record, *model->tokenizer);
    store::write_ask(path.toStdString(), *record);
    return record;
}

StepService::StepService(Engine* engine, std::function<widgets::TextChoice()> choice, QObject* parent)
    : StepSource(parent), engine_(engine), choice_(std::move(choice)) {
    connect(engine_, &Engine::models_changed, this, &StepService::drop_closed);
}

StepService::~StepService() {
    mailbox_.close();
    engine_->stop_work(this);
    if (stepping_) engine_->let_go(std::move(stepping_));
}

QString StepService::model() const {
    const widgets::ModelCard* card = card_of(*engine_, choice_().model);
    return card && !card->tensors_only ? card->name : QString();
}

void StepService::begin(const widgets::StepOptions& options) {
    widgets::TextChoice choice = choice_();
    const auto model = engine_->opened(choice.model);
    if (busy() || !model) return;
    if (model->card.tensors_only) return Q_EMIT failed(model->card.note);
    if (!options.prompt.isEmpty()) {
        choice.sources = {{widgets::TextSource::Kind::text, options.prompt}};
        choice.tokens = choice.target_tokens = nullptr;
    }
    keep_first_text(choice);
    choice.pair.clear();
    if (!model->card.encoder_decoder) choice.target.clear();
    choice.windows = false;
    drop();
    stepping_ = std::make_shared<Stepping>();
    stepping_->model = model;
    stepping_->choice = choice;
    stepping_->options = options;
    stepping_->resources = engine_->resources();
    post(1, tr("Reading the prompt…"), [](Stepping& stepping, const auto&, const Cancellation& cancellation) {
        stepping.session->step(cancellation);
    });
}

void StepService::step(int count) {
    post(count, tr("Generating…"),
         [count](Stepping& stepping, const std::function<void()>& publish, const Cancellation& cancellation) {
             for (int i = 0; i < count && !stepping.session->ended() && stepping.session->room() > 0; ++i) {
                 stepping.session->step(cancellation);
                 publish();
             }
         });
}

void StepService::keep(int count) {
    post(0, tr("Going back…"),
         [count](Stepping& stepping, const auto&, const Cancellation&) { stepping.session->keep(count); });
}

void StepService::replace(int step, const QString& token) {
    post(1, tr("Replacing the token…"),
         [step, token](Stepping& stepping, const auto&, const Cancellation& cancellation) {
             const auto ids = ask::parse_tokens("replacement", token.toStdString(), stepping.writer());
             if (ids.size() != 1)
                 throw Error(ErrorCode::usage, "replacement", "expected one token",
                             "found " + std::to_string(ids.size()));
             stepping.session->replace(step, ids.front(), cancellation);
         });
}

void StepService::steer(int step, const widgets::StepVector& by) {
    if (!by.file) return;
    const auto work = [this, step, by, send = mailbox_.sender()](Stepping& stepping, const auto&,
                                                                 const Cancellation& cancellation) {
        send([this, made = stepping.steer(step, by, cancellation)] {
            steering_ = made;
            Q_EMIT changed();
        });
    };
    post(1, tr("Steering…"), work, true);
}

void StepService::save(const QString& path) {
    post(0, tr("Saving…"),
         [this, path, send = mailbox_.sender()](Stepping& stepping, const auto&, const Cancellation& cancellation) {
             send([this, path, record = stepping.save(path, cancellation)] { Q_EMIT saved(path, record); });
         });
}

void StepService::stop() {
    pending_ -= static_cast<int>(engine_->stop_work(this));
    Q_EMIT changed();
}

void StepService::post(int tokens, const QString& words, Work work, bool again) {
    if (!stepping_) return;
    const std::shared_ptr<Stepping> stepping = stepping_;
    const auto send = mailbox_.sender();
    ++pending_;
    words_ = words;
    // The last piece of a text that was dropped frees it on the compute thread.
    ModelWork piece;
    piece.device = stepping->choice.device.toStdString();
    piece.prepare = [stepping](const Cancellation& cancellation) { stepping->read(cancellation); };
    piece.bytes = [stepping, tokens, again](model::Residence residence) {
        return stepping->bytes(residence, tokens, again);
    };
    piece.run = [this, stepping, work = std::move(work), send](const Cancellation& cancellation) {
        const auto publish = [&] {
            send([this, stepping, now = stepping->show()] {
                if (stepping != stepping_) return;
                generation_ = now;
                Q_EMIT changed();
            });
        };
        try {
            stepping->bind(cancellation);
            work(*stepping, publish, cancellation);
        } catch (...) {  // steps before it stay, and those that it dropped are gone
            if (stepping->session) publish();
            throw;
        }
        publish();
    };
    piece.report = [this, send](const QString& now) {
        send([this, now] {
            words_ = now;
            Q_EMIT changed();
        });
    };
    piece.ended = [this, stepping, send](const QString& failure) {
        send([this, stepping, failure] { ended(stepping, failure); });
    };
    engine_->work_with(stepping->model->card.id, this, std::move(piece));
    Q_EMIT changed();
}

void StepService::ended(const std::shared_ptr<Stepping>& of, const QString& failure) {
    --pending_;
    if (of == stepping_ && !generation_) drop();  // its prompt was refused, or stopped
    if (!failure.isEmpty()) Q_EMIT failed(failure);
    Q_EMIT changed();
}

void StepService::drop() {
    generation_.reset();
    steering_.reset();
    if (stepping_) engine_->let_go(std::move(stepping_));
    stepping_.reset();
}

/// A text goes with its model.
void StepService::drop_closed() {
    if (stepping_ && !engine_->opened(stepping_->model->card.id)) {
        stop();
        drop();
        Q_EMIT changed();
    }
    follow_choice();
}

void StepService::follow_choice() {
    if (std::exchange(model_, model()) != model_) Q_EMIT models_changed();
}

}  // namespace headscope::app
