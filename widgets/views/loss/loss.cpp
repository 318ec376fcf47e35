// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/loss/loss.h"

#include <QComboBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLocale>
#include <QSplitter>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "widgets/desk/presence.h"
#include "widgets/panels/token_weights.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/line_label.h"
#include "widgets/text/share_out.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"
#include "widgets/views/loss/loss_curve.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kSurprises = 200, kBest = 10;
constexpr std::size_t kMostClassWords = 60;  ///< of a class's name
constexpr int kNarrowLoss = 760;

QString short_value(double value) {
    return QString::number(value, 'g', 3);
}

}  // namespace

LossView::LossView(Desk* desk, QWidget* parent) : View(desk, parent) {
    build();
}

const store::SequenceTokens& LossView::tokens() const {
    return study()->tokens(stream_, selection().one_sequence());
}

/// False: another analysis is chosen, and what is shown is still the one before.
bool LossView::up_to_date() const {
    return study() && study()->id() == shown_study_ && stream_ == output_stream(study()->header());
}

bool LossView::linked() const {
    const auto site = static_cast<std::size_t>(selection().site);
    return study()->sites().size() > site && study()->sites()[site].query_stream == output_stream(study()->header());
}

std::optional<std::int64_t> LossView::chosen() const {
    auto token = linked() ? selection().query : own_token_;
    if (token && *token >= std::ssize(tokens().ids)) token.reset();
    return token;
}

void LossView::choose(std::int64_t token) {
    if (linked()) {
        own_token_ = token;
        return desk().select_tokens(token, selection().key);
    }
    if (std::exchange(own_token_, token) == token) return;
    refresh_later();
    Q_EMIT state_changed();
}

void LossView::step(int tokens) {
    if (!up_to_date()) return;
    const std::int64_t last = std::ssize(this->tokens().ids) - 1;
    choose(std::clamp<std::int64_t>(chosen().value_or(0) + tokens, 0, std::max<std::int64_t>(0, last)));
}

void LossView::keyPressEvent(QKeyEvent* event) {
    const bool control = (event->modifiers() & ~Qt::KeypadModifier) == Qt::ControlModifier;
    if (control && event->key() == Qt::Key_Left) return step(-1);
    if (control && event->key() == Qt::Key_Right) return step(1);
    View::keyPressEvent(event);
}

void LossView::refresh() {
    if (notice_without_study()) return;
    stream_ = output_stream(study()->header());
    shown_study_ = study()->id();
    const std::int64_t sequence = selection().one_sequence();
    const auto text = shown_text(*study(), stream_, sequence);
    const auto loss = study()->loss(sequence);
    const auto known = known_pieces(*study());
    if (notice_for(text) || notice_for(loss) || notice_for(known)) return;
    known_ = known.value;

    // A decoder's file gives the loss at the position that predicts: one before the token that it is about.
    const std::size_t shift = output().next ? 1 : 0;
    const std::size_t count = tokens().ids.size();
    values_.assign(count, std::numeric_limits<float>::quiet_NaN());
    bool any = false;
    for (std::size_t i = 0; i + shift < count && i < loss->data.size(); ++i) {
        values_[i + shift] = static_cast<float>(loss->data[i]);
        any |= !std::isnan(loss->data[i]);
    }
    has_loss_ = any;
    const bool decides = study()->complete() || !study()->running();
    const bool says = study()->header().record.logits || of_text();
    if (!any && decides && count > 1 && !(says && !output().next)) {
        const QString title = tr("There is no next-token loss");
        if (!study()->complete())
            show_notice(title, tr("The run ended before the model's output was computed."));
        else if (output().none || output().next)
            show_notice(title, tr("This model does not predict the next token."));
        else
            show_notice(title,
                        output().classes ? tr("This model predicts classes. Record logits to see them.")
                                         : tr("This model reads the tokens on both sides of each one. Record logits to "
                                              "see which tokens it predicts in each place."),
                        tr("Run again with logits"), [this] { ask_for_logits(); });
        return;
    }
    show_content();
    curve_->setVisible(any || !decides);
    surprises_->parentWidget()->setVisible(any || !decides);
    if (!std::exchange(arranged_, true)) {
        share_out(split_, split_->orientation() == Qt::Vertical ? 0.65 : 0.76);
        share_out(left_, 0.72);
        share_out(right_, 0.5);
    }
    banner_->set(any ? QString() : tr("The loss appears when the last layer is computed."));
    text_->set_text(text.value);
    text_->set_theme(desk().theme());
    figures::ColourScale scale = colour_scale();
    classes_.clear();
    if (!any && output().classes && !of_text()) {
        if (const auto found = token_classes(*study(), sequence)) {
            classes_ = found->best;
            scale.label = tr("class").toStdString();
            scale.maximum = static_cast<double>(std::max<std::int64_t>(1, found->classes - 1));
        }
    }
    text_->set_values(any ? values_ : classes_, scale);
    key_->set_scale(scale, desk().theme());
    curve_->set_theme(desk().theme());
    curve_->set_values(values_);
    const auto token = chosen();
    const bool moved = token != text_->outlined();
    text_->set_outlined(token);
    curve_->set_chosen(token);
    if (token && moved) text_->show_token(*token);
    refresh_heading();
    refresh_surprises();
    refresh_predictions();
}

figures::ColourScale LossView::colour_scale() const {
    figures::ColourScale scale;
    scale.label = tr("loss (nats)").toStdString();
    scale.maximum = kFixedRange;
    if (range_->currentIndex() != 0) return scale;
    float most = 0;
    for (const float value : values_)
        if (value > most && std::isfinite(value)) most = value;
    if (most > 0) scale.maximum = most;
    return scale;
}

void LossView::refresh_heading() {
    double sum = 0;
    qlonglong count = 0;
    for (const float value : values_) {
        if (std::isnan(value)) continue;
        sum += value;
        ++count;
    }
    QString text;
    if (count == 0 && !output().next)
        text = of_text() ? tr("Predictions for this text") : tr("Predictions for each token");
    if (count > 0) {
        const double mean = sum / static_cast<double>(count);
        text = tr("Mean loss %1 nats · perplexity %2 · %3 tokens predicted")
                   .arg(short_value(mean), short_value(std::exp(mean)), QLocale().toString(count));
    }
    if (study()->sequences() > 1) text += tr(" · sequence %1").arg(selection().one_sequence());
    if (!selection().sequence) {
        const auto all = mean_loss(*study());
        text += tr(" (all are chosen; the text shows one");
        if (all && all->sequences > 1)
            text += tr(", the mean of %1 is %2 ± %3 nats")
                        .arg(all->sequences)
                        .arg(short_value(all->mean), short_value(all->deviation));
        text += QLatin1Char(')');
    }
    heading_->setText(text);
}

void LossView::refresh_surprises() {
    std::vector<TokenTableModel::Row> rows;
    for (const std::int64_t place : largest(values_, kSurprises))
        rows.push_back({token_label(tokens(), place), place, values_[static_cast<std::size_t>(place)], false});
    const auto all = std::count_if(values_.begin(), values_.end(), [](float value) { return !std::isnan(value); });
    surprises_title_->setText(static_cast<std::int64_t>(rows.size()) < all
                                  ? tr("The %1 most surprising tokens").arg(rows.size())
                                  : tr("Most surprising tokens"));
    surprises_->set_theme(desk().theme());
    surprises_->model_of_tokens().set_rows(std::move(rows));
}

QString LossView::name_of(std::int32_t id) const {
    if (const auto kind = output(); kind.classes) {
        const auto at = static_cast<std::size_t>(id);
        const bool named = at < kind.class_names.size() && !kind.class_names[at].empty();
        return named ? QString::fromStdString(escaped(kind.class_names[at], kMostClassWords)) : tr("class %1").arg(id);
    }
    if (known_) {
        const auto found = known_->labels.find(id);
        if (found != known_->labels.end()) return found->second;
    }
    const QString spelt = study()->spell ? study()->spell(id) : QString();
    return spelt.isEmpty() ? tr("(not in this text)") : spelt;
}

void LossView::refresh_predictions() {
    predictions_->set_theme(desk().theme());
    const auto token = chosen();
    no_logits_->set({});
    const bool recorded = study()->header().record.logits || of_text();
    predictions_->setVisible(recorded);
    if (!recorded) {
        predictions_title_->setText(tr("What the model expected"));
        no_logits_->set(tr("Predictions need the logits, which were not recorded."), tr("Run again with logits"),
                        [this] { ask_for_logits(); });
        return;
    }
    predictions_->model_of_tokens().set_titles(output().classes ? tr("Class") : tr("Token"), tr("Id"),
                                               tr("Probability"));
    if (!of_text() && (!token || (*token == 0 && output().next))) {
        predictions_->model_of_tokens().set_rows({});
        predictions_title_->setText(token           ? tr("The first token has no context that could predict it")
                                    : output().next ? tr("Choose a token to see what the model expected there")
                                                    : tr("Choose a token to see its predictions"));
        return;
    }
    const std::int64_t sequence = selection().one_sequence();
    const auto found = of_text() ? class_predictions(*study(), sequence, kBest)
                                 : predictions(*study(), sequence, *token, kBest, output());
    if (found) return of_text() ? show_classes(*found) : show_predictions(*found, *token);
    predictions_->model_of_tokens().set_rows({});
    predictions_title_->setText(!found.failure.isEmpty() ? found.failure
                                : found.pending          ? tr("Reading…")
                                                         : tr("No logits were recorded here."));
}

void LossView::ask_for_logits() {
    if (!study()) return;
    RunRequest wish;
    wish.study = study()->id();
    wish.logits = true;
    Q_EMIT desk().run_wanted(wish);
}

void LossView::show_classes(const Predictions& found) {
    std::vector<TokenTableModel::Row> rows;
    if (study()->header().classes > 1)
        for (const auto& choice : found.best)
            rows.push_back({name_of(choice.id), choice.id, choice.probability, false});
    if (rows.empty())
        predictions_title_->setText(tr("The model's number for this text: %1").arg(short_value(found.only)));
    else
        predictions_title_->setText(tr("This text: %1 with probability %2")
                                        .arg(rows.front().token, short_value(found.best.front().probability)));
    predictions_->model_of_tokens().set_rows(std::move(rows));
}

void LossView::show_predictions(const Predictions& found, std::int64_t token) {
    std::vector<TokenTableModel::Row> rows;
    const auto row = [&](const Predictions::Choice& choice) {
        rows.push_back(
            {name_of(choice.id), choice.id, choice.probability, choice.id == found.actual.id && found.rank >= 0});
    };
    for (const auto& choice : found.best) row(choice);
    if (found.rank >= static_cast<std::int64_t>(found.best.size())) row(found.actual);
    predictions_->model_of_tokens().set_rows(std::move(rows));
    if (!output().next && !found.best.empty()) {
        const auto& best = found.best.front();
        const QString place = tr("Token %1, ‘%2’").arg(QString::number(token), token_label(tokens(), token));
        predictions_title_->setText(
            output().classes
                ? tr("%1: %2 with probability %3").arg(place, name_of(best.id), short_value(best.probability))
                : tr("%1, is choice %2 with probability %3")
                      .arg(place, QString::number(found.rank + 1), short_value(found.actual.probability)));
        return;
    }
    predictions_title_->setText(found.rank < 0
                                    ? tr("Expected at position %1").arg(token)
                                    : tr("Expected at position %1; ‘%2’ was choice %3 with probability %4")
                                          .arg(QString::number(token), token_label(tokens(), token),
                                               QString::number(found.rank + 1), short_value(found.actual.probability)));
}

QString LossView::describe(std::int64_t token) const {
    if (!up_to_date() || token < 0 || token >= std::ssize(tokens().ids)) return {};
    QString text = tr("‘%1’ · token %2 · id %3")
                       .arg(token_label(tokens(), token, 60), QString::number(token),
                            QString::number(tokens().ids[static_cast<std::size_t>(token)]));
    const double loss =
        token < std::ssize(values_) ? static_cast<double>(values_[static_cast<std::size_t>(token)]) : NAN;
    const auto at = static_cast<std::size_t>(token);
    if (at < classes_.size() && !std::isnan(classes_[at]))
        return text + QLatin1Char('\n') + name_of(static_cast<std::int32_t>(classes_[at]));
    if (std::isnan(loss)) return text + tr("\nnot predicted");
    return text + tr("\nloss %1 nats, probability %2").arg(short_value(loss), short_value(std::exp(-loss)));
}

void LossView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const auto wanted = width() < kNarrowLoss ? Qt::Vertical : Qt::Horizontal;
    if (split_->orientation() == wanted) return;
    split_->setOrientation(wanted);
    right_->setOrientation(wanted == Qt::Vertical ? Qt::Horizontal : Qt::Vertical);
    arranged_ = false;
    refresh_later();
}

QJsonObject LossView::state() const {
    QJsonObject state{{"range", range_->currentData().toString()}, {"numbers", numbers_->isChecked()}};
    // Elsewhere the token is the selection's.
    if (own_token_ && !(study() && linked())) state[QLatin1String("token")] = static_cast<double>(*own_token_);
    return state;
}

void LossView::restore(const QJsonObject& state) {
    const int index = range_->findData(state.value(QLatin1String("range")).toString());
    if (index >= 0) range_->setCurrentIndex(index);
    numbers_->setChecked(state.value(QLatin1String("numbers")).toBool(numbers_->isChecked()));
    const double token = state.value(QLatin1String("token")).toDouble(-1);
    own_token_.reset();
    if (token >= 0 && token < 1e9) own_token_ = static_cast<std::int64_t>(token);
    refresh_later();
}

std::optional<FigureRequest> LossView::figure() const {
    if (!study() || values_.empty() || !has_loss_) return std::nullopt;
    FigureRequest wish;
    wish.recipe = "loss";
    wish.studies = {study()->id()};
    wish.options.all_sequences = !selection().sequence && study()->sequences() > 1;
    if (!wish.options.all_sequences) wish.options.sequence = selection().one_sequence();
    wish.note = tr("The figure is the curve; the colored text is the figure text with --colour loss.");
    return named(wish);
}

extern const ViewKind kLoss{"loss",
                            "Loss",
                            "Which tokens surprise the model, and what it expected in their place",
                            [](Desk* desk, QWidget* parent) -> View* { return new LossView(desk, parent); },
                            ViewGroup::text,
                            with_output};

}  // namespace headscope::widgets
