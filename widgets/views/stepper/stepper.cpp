// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/stepper/stepper.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QResizeEvent>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <algorithm>
#include <cmath>

#include "core/base/site_name.h"
#include "core/figures/subject.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/presence.h"
#include "widgets/file_dialog.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/text/banner.h"
#include "widgets/views/stepper/steer_bar.h"
#include "widgets/views/stepper/step_figure.h"

namespace headscope::widgets {
namespace {

constexpr int kNarrowStepper = 760;    // pixels
constexpr int kStrongestShade = 150;   // of 255: words stay readable on it
constexpr int kTokenNumberDigits = 1;  // after the point, of percent
constexpr int kSteeredColumn = 3;      // of the candidates

/// Text typed for a token, as the source takes it: an id or words in quotes as they are, other words quoted.
QString as_token(const QString& typed) {
    const QString plain = typed.trimmed();
    const bool number =
        !plain.isEmpty() && std::all_of(plain.begin(), plain.end(), [](QChar c) { return c.isDigit(); });
    const bool quoted = plain.size() > 1 && plain.startsWith(QLatin1Char('"')) && plain.endsWith(QLatin1Char('"'));
    return number || quoted ? plain : QLatin1Char('"') + typed + QLatin1Char('"');
}

/// Tokens ahead of the steps.
int words_before_steps(const ShownGeneration& generation) {
    return static_cast<int>(generation.prompt.size() + generation.target.size());
}

bool same_ids(const std::vector<StepWord>& one, const std::vector<StepWord>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const StepWord& a, const StepWord& b) { return a.id == b.id; });
}

/// The token that the first key of a row stands for. Keys of an encoder-decoder's cross-attention are the encoder's
/// tokens, others the decoder's.
int token_of_first_key(const ShownGeneration& generation, int site) {
    const bool known = site >= 0 && site < static_cast<int>(generation.sites.size());
    if (generation.target.empty() || (known && generation.sites[static_cast<std::size_t>(site)].is_cross())) return 0;
    return static_cast<int>(generation.prompt.size());
}

QString percent(double share) {
    return QStringLiteral("%1 %").arg(100 * share, 0, 'f', kTokenNumberDigits);
}

}  // namespace

StepperView::StepperView(Desk* desk, QWidget* parent) : View(desk, parent) {
    build();
    connect_controls();
    connect(desk, &Desk::stepper_changed, this, &StepperView::join);
    connect(&desk->asks(), &AskShelf::changed, this, &StepperView::refresh_later);
    join();
}

void StepperView::join() {
    if (source_) source_->disconnect(this);
    source_ = desk().stepper();
    if (source_) {
        connect(source_, &StepSource::changed, this, &StepperView::refresh_later);
        connect(source_, &StepSource::models_changed, this, &StepperView::refresh_later);
        connect(source_, &StepSource::failed, this, [this](const QString& message) { failure_->set(message); });
    }
    refresh_later();
}

std::shared_ptr<const ShownGeneration> StepperView::shown() const {
    return source_ ? source_->generation() : nullptr;
}

int StepperView::chosen_step() const {
    if (!filled_) return -1;
    return std::max(-1, tokens_->currentRow() - words_before_steps(*filled_));
}

void StepperView::refresh() {
    fill_tokens();
    if (!source_ || (source_->model().isEmpty() && !shown())) {
        return show_notice(tr("No model is open"),
                           tr("Open a checkpoint from the start page, or drop one onto this window. Its tokens are "
                              "generated here one by one."));
    }
    picture_->set_theme(desk().theme());
    steer_->set_file(desk().asks().chosen("steer"));
    show_chosen();
    enable_controls();
    show_content();
    steer();
}

void StepperView::begin() {
    if (!source_) return;
    failure_->set({});
    source_->begin(
        {prompt_->text(), top_->value(), temperature_->value(), seed_->value(), maps_->isChecked(), count_->value()});
}

std::shared_ptr<const ShownSteering> StepperView::steering() const {
    const int step = chosen_step();
    const auto found = source_ ? source_->steering() : nullptr;
    if (step < 0 || !found || found->step != filled_->steps[static_cast<std::size_t>(step)]) return nullptr;
    return found->by.factor != 0 && found->by == steer_->vector() ? found : nullptr;
}

/// Requests the chosen token's candidates with the vector, once for each choice and while nothing else is computed.
void StepperView::steer() {
    const int step = chosen_step();
    const StepVector by = steer_->vector();
    if (!source_ || source_->busy() || step < 0 || !by.file || by.factor == 0) return;
    const auto& of = filled_->steps[static_cast<std::size_t>(step)];
    if (steered_.lock() == of && steered_by_ == by) return;
    steered_ = of;
    steered_by_ = by;
    source_->steer(step, by);
}

/// Items of tokens that stay are kept; after a step the new token is chosen.
void StepperView::fill_tokens() {
    const auto now = shown();
    if (now == filled_) return;
    const QSignalBlocker quiet(tokens_);
    const bool same_text =
        now && filled_ && same_ids(now->prompt, filled_->prompt) && same_ids(now->target, filled_->target);
    std::size_t kept = 0;
    if (same_text)
        while (kept < now->steps.size() && kept < filled_->steps.size() && now->steps[kept] == filled_->steps[kept])
            ++kept;
    const int stays = same_text ? words_before_steps(*now) + static_cast<int>(kept) : 0;
    const bool same_steps = same_text && kept == now->steps.size() && kept == filled_->steps.size();
    while (tokens_->count() > stays) delete tokens_->takeItem(tokens_->count() - 1);
    filled_ = now;
    if (!now || same_steps) return;
    if (!same_text) {
        add_given(now->prompt, now->target.empty() ? tr("Prompt") : tr("Encoder"), false);
        add_given(now->target, tr("Decoder"), true);
    }
    for (std::size_t t = kept; t < now->steps.size(); ++t) {
        const ShownStep& step = *now->steps[t];
        auto* item = new QListWidgetItem(step.token.text, tokens_);
        const QString how = step.replaced ? tr("chosen by hand") : tr("generated");
        item->setToolTip(
            tr("Step %1, id %2, %3, probability %4").arg(t).arg(step.token.id).arg(how, percent(step.probability)));
        QFont font = tokens_->font();
        font.setUnderline(step.replaced);
        item->setFont(font);
    }
    fill_sites();
    tokens_->setCurrentRow(tokens_->count() - 1);
    tokens_->scrollToItem(tokens_->currentItem());
}

/// Items of tokens that were not generated.
void StepperView::add_given(const std::vector<StepWord>& words, const QString& reader, bool italic) {
    QFont font = tokens_->font();
    font.setItalic(italic);
    for (std::size_t i = 0; i < words.size(); ++i) {
        auto* item = new QListWidgetItem(words[i].text, tokens_);
        item->setToolTip(tr("%1, token %2, id %3").arg(reader).arg(i).arg(words[i].id));
        item->setFont(font);
        item->setForeground(desk().theme().muted);
    }
}

/// Chooses the first site with rows when the sites are others: an encoder has none.
void StepperView::fill_sites() {
    const QSignalBlocker quiet_sites(site_), quiet_heads(head_);
    QStringList sites;
    for (std::int64_t i = 0; i < std::ssize(filled_->sites); ++i)
        sites << tr("Layer %1").arg(QString::fromStdString(site_label(filled_->sites, i)));
    bool same = site_->count() == static_cast<int>(sites.size());
    for (int i = 0; same && i < site_->count(); ++i) same = site_->itemText(i) == sites[i];
    if (!same) {
        site_->clear();
        site_->addItems(sites);
        const auto first = std::find_if(filled_->sites.begin(), filled_->sites.end(),
                                        [](const Site& site) { return site.stack != "encoder"; });
        if (first != filled_->sites.end()) site_->setCurrentIndex(static_cast<int>(first - filled_->sites.begin()));
    }
    head_->setMaximum(static_cast<int>(std::max<std::int64_t>(0, filled_->heads - 1)));
}

void StepperView::show_chosen() {
    show_candidates();
    const int step = chosen_step();
    const auto now = step >= 0 ? filled_->steps[static_cast<std::size_t>(step)] : nullptr;
    if (!now) {
        picture_->set_figure(nullptr);
        drawn_.reset();
    } else if (drawn_.lock() != now || drawn_measure_ != measure_->currentIndex()) {
        picture_->set_figure(
            step_figure(*filled_, static_cast<std::size_t>(step), static_cast<StepMeasure>(measure_->currentIndex())));
        drawn_ = now;
        drawn_measure_ = measure_->currentIndex();
    }
    picture_->set_selected({{0, site_->currentIndex(), head_->value()}});
    shade_tokens();
    show_words();
}

void StepperView::show_candidates() {
    const int chosen = chosen_step();
    const QSignalBlocker quiet(candidates_);
    if (chosen < 0) return candidates_->setRowCount(0);
    const ShownStep& step = *filled_->steps[static_cast<std::size_t>(chosen)];
    const auto steered = steering();
    std::vector<SteeredWord> words;
    if (steered) words = steered->words;
    for (std::size_t k = 0; !steered && k < step.top.size(); ++k)
        words.push_back({step.top[k], step.top_probability[k]});
    candidates_->setColumnHidden(kSteeredColumn, !steered);
    candidates_->setRowCount(static_cast<int>(words.size()));
    for (int row = 0; row < static_cast<int>(words.size()); ++row) {
        const SteeredWord& one = words[static_cast<std::size_t>(row)];
        auto* token = new QTableWidgetItem(one.word.text);
        QFont font = candidates_->font();
        font.setBold(one.word.id == step.token.id);
        token->setFont(font);
        token->setData(Qt::UserRole, static_cast<qlonglong>(one.word.id));
        candidates_->setItem(row, 0, token);
        const QString cells[] = {QString::number(one.word.id), percent(one.without),
                                 steered ? percent(one.with) : QString()};
        for (int column = 1; column <= kSteeredColumn; ++column) {
            auto* item = new QTableWidgetItem(cells[column - 1]);
            item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            candidates_->setItem(row, column, item);
        }
    }
}

/// Generated tokens by how unlikely they were; or all tokens by the chosen head's weights in the chosen token's row.
void StepperView::shade_tokens() {
    if (!filled_) return;
    const QSignalBlocker quiet(tokens_);
    const int chosen = chosen_step();
    const bool by_row = row_->isChecked() && chosen >= 0;
    std::vector<float> weights;
    if (by_row)
        weights = step_weights(*filled_, static_cast<std::size_t>(chosen), site_->currentIndex(), head_->value());
    const int given = words_before_steps(*filled_), first = token_of_first_key(*filled_, site_->currentIndex());
    for (int i = 0; i < tokens_->count(); ++i) {
        double strength = 0;
        if (by_row)
            strength = i >= first && i - first < static_cast<int>(weights.size())
                           ? weights[static_cast<std::size_t>(i - first)]
                           : 0;
        else if (i >= given)
            strength = 1 - filled_->steps[static_cast<std::size_t>(i - given)]->probability;
        QColor shade = desk().theme().accent;
        shade.setAlpha(static_cast<int>(std::lround(kStrongestShade * std::clamp(strength, 0.0, 1.0))));
        tokens_->item(i)->setBackground(shade);
        tokens_->item(i)->setForeground(i < given ? desk().theme().muted : desk().theme().text);
    }
}

void StepperView::enable_controls() {
    const bool busy = source_->busy(), begun = filled_ != nullptr;
    const bool goes_on = begun && !busy && !filled_->ended && !filled_->full;
    begin_->setEnabled(!busy && !source_->model().isEmpty());
    step_->setEnabled(goes_on);
    run_->setEnabled(goes_on);
    back_->setEnabled(begun && !busy && !filled_->steps.empty());
    save_->setEnabled(begun && !busy && !filled_->steps.empty());
    replace_->setEnabled(!busy && chosen_step() >= 0);
    replacement_->setEnabled(replace_->isEnabled());
    candidates_->setEnabled(!busy);
    stop_->setEnabled(busy);
}

void StepperView::show_words() {
    QString text = source_ ? source_->words() : QString();
    if (text.isEmpty() && !filled_)
        text = tr("Start takes the prompt and computes its first token with %1")
                   .arg(source_ ? source_->model() : QString());
    if (text.isEmpty()) {
        text = filled_->target.empty() ? tr("%1 tokens of prompt, %2 generated").arg(filled_->prompt.size())
                                       : tr("%1 tokens for the encoder, %2 for the decoder, %3 generated")
                                             .arg(filled_->prompt.size())
                                             .arg(filled_->target.size());
        text = text.arg(filled_->steps.size());
        if (filled_->ended) text += tr("; the text has ended");
        if (filled_->full) text += tr("; the model has no position left");
        const int step = chosen_step();
        if (row_->isChecked() && step >= 0 &&
            step_weights(*filled_, static_cast<std::size_t>(step), site_->currentIndex(), head_->value()).empty())
            text += tr("; this head has no row");
        if (const auto steered = steering())
            text += steered->by.layer < 0
                        ? tr("; every layer steered by %1").arg(steered->by.factor)
                        : tr("; layer %1 steered by %2").arg(steered->by.layer).arg(steered->by.factor);
    }
    words_->setText(text);
    words_->setToolTip(text);
}

void StepperView::replace_typed() {
    if (!replacement_->text().isEmpty()) replace_by(as_token(replacement_->text()));
}

void StepperView::replace_by(const QString& token) {
    const int step = chosen_step();
    if (!source_ || source_->busy() || step < 0) return;
    failure_->set({});
    source_->replace(step, token);
}

void StepperView::ask_where_to_save() {
    FileQuestion question{tr("Save the generated text"), tr("Ask files (*.ask.h5)")};
    question.mode = QFileDialog::AnyFile;
    question.suffix = QStringLiteral("ask.h5");
    question.suggestion = QStringLiteral("generated.ask.h5");
    ask_for_file(this, question, [this](const QString& path) {
        if (source_) source_->save(path);
    });
}

void StepperView::head_clicked(const figures::Subject& subject) {
    set_head(subject.sites.empty() ? site_->currentIndex() : subject.sites.front(),
             subject.head.value_or(head_->value()));
}

void StepperView::set_head(std::int64_t site, std::int64_t head) {
    {
        const QSignalBlocker quiet_sites(site_), quiet_heads(head_);
        site_->setCurrentIndex(static_cast<int>(site));
        head_->setValue(static_cast<int>(head));
    }
    show_chosen();
    Q_EMIT state_changed();
}

void StepperView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const auto wanted = width() < kNarrowStepper ? Qt::Vertical : Qt::Horizontal;
    if (split_->orientation() != wanted) split_->setOrientation(wanted);
}

QJsonObject StepperView::state() const {
    return {{"prompt", prompt_->text()},
            {"top", top_->value()},
            {"temperature", temperature_->value()},
            {"seed", seed_->value()},
            {"maps", maps_->isChecked()},
            {"count", count_->value()},
            {"measure", measure_->currentIndex()},
            {"row", row_->isChecked()}};
}

void StepperView::restore(const QJsonObject& state) {
    prompt_->setText(state["prompt"].toString(prompt_->text()));
    top_->setValue(state["top"].toInt(top_->value()));
    temperature_->setValue(state["temperature"].toDouble(temperature_->value()));
    seed_->setValue(state["seed"].toInt(seed_->value()));
    maps_->setChecked(state["maps"].toBool(maps_->isChecked()));
    count_->setValue(state["count"].toInt(count_->value()));
    const int measure = state["measure"].toInt(measure_->currentIndex());
    if (measure >= 0 && measure < measure_->count()) measure_->setCurrentIndex(measure);
    row_->setChecked(state["row"].toBool(row_->isChecked()));
}

extern const ViewKind kStepper{"stepper",
                               "Step by step",
                               "What a model generates next, and what follows from another token",
                               [](Desk* desk, QWidget* parent) -> View* { return new StepperView(desk, parent); },
                               ViewGroup::asked,
                               [](const Desk& desk) {
                                   return filled_if(desk.stepper() && (!desk.stepper()->model().isEmpty() ||
                                                                       desk.stepper()->generation() != nullptr));
                               }};

}  // namespace headscope::widgets
