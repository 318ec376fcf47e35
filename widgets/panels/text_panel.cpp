// SPDX-License-Identifier: GPL-3.0-or-later
// Choices and what is shown of them. Widgets: text_panel_widgets.cpp.
#include "widgets/panels/text_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <algorithm>
#include <utility>

#include "widgets/desk/palette.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/token_chips.h"
#include "widgets/plain_edit.h"

namespace headscope::widgets {
namespace {

constexpr int kTokenizePause = 250;  // ms without a key before the text is tokenized
constexpr int kHeadOfText = 60;
constexpr int kShownOfLong = 2000;  // characters of a text that is too long for the editor

QString label_of(const TextSource& source) {
    switch (source.kind) {
        case TextSource::Kind::file:
            return TextPanel::tr("File %1").arg(QFileInfo(source.value).fileName());
        case TextSource::Kind::example:
            return TextPanel::tr("Example %1").arg(source.value);
        case TextSource::Kind::text:
            break;
    }
    const QString text = source.value.left(kHeadOfText).simplified();
    return text.isEmpty() ? TextPanel::tr("Empty text") : text;
}

QString in_words(double seconds) {
    if (seconds < 1) return TextPanel::tr("under 1 s");
    if (seconds < 90) return TextPanel::tr("about %1 s").arg(qRound(seconds));
    return TextPanel::tr("about %1 min").arg(qRound(seconds / 60));
}

QString bytes_in_words(double bytes) {
    return QLocale::c().formattedDataSize(static_cast<qint64>(bytes), 1, QLocale::DataSizeSIFormat);
}

}  // namespace

TextPanel::TextPanel(QWidget* parent) : QWidget(parent) {
    sources_.push_back({});
    build();
    filling_ = false;
    soon_.setSingleShot(true);
    soon_.setInterval(kTokenizePause);
    connect(&soon_, &QTimer::timeout, this, [this] { Q_EMIT preview_wanted(choice()); });
    list_sources(0);
    set_models({});
}

TextSource* TextPanel::current() {
    const int row = list_->currentRow();
    return row >= 0 && row < static_cast<int>(sources_.size()) ? &sources_[static_cast<std::size_t>(row)] : nullptr;
}

void TextPanel::show_tokens(int row) {
    if (row >= 0 && row < static_cast<int>(preview_.sequences.size()))
        chips_->set_chips(preview_.sequences[static_cast<std::size_t>(row)].chips);
}

void TextPanel::take_tick(QListWidgetItem* item) {
    if (filling_) return;
    const int row = list_->row(item);
    if (row < 0 || row >= std::ssize(sources_)) return;
    sources_[static_cast<std::size_t>(row)].used = item->checkState() == Qt::Checked;
    touch();
}

void TextPanel::take_text() {
    TextSource* source = current();
    if (filling_ || !source || source->kind == TextSource::Kind::file) return;
    if (source->kind == TextSource::Kind::example) {  // edited, it is the user's own text
        const QString* bundled = editable(*source);
        if (!bundled || text_->toPlainText() == *bundled) return;
        source->kind = TextSource::Kind::text;
    }
    source->value = text_->toPlainText();
    focus_run_ = false;
    filling_ = true;
    list_->currentItem()->setText(label_of(*source));
    filling_ = false;
    touch();
}

/// A text that is too long to be edited is kept whole and shown by its beginning.
/// It would have taken the place of all that is there: that stays, for its undo would be lost, but is not used.
void TextPanel::take_long(const QString& pasted, qsizetype characters) {
    if (refuse(pasted)) return;
    TextSource* source = current();
    if (source && characters == pasted.size() && !source->value.isEmpty()) source->used = false;
    add_text(pasted);
}

void TextPanel::add_text(const QString& text) {
    if (!refuse(text)) take_source({TextSource::Kind::text, text});
}

/// In place of an empty text, else beside those that there are.
void TextPanel::take_source(const TextSource& added) {
    TextSource* source = current();
    if (source && source->kind == TextSource::Kind::text && source->value.isEmpty()) {
        *source = added;
        list_sources(list_->currentRow());
    } else {
        add_source(added);
    }
    touch();
}

bool TextPanel::refuse(const QString& text) {
    qsizetype characters = text.size();
    for (const TextSource& source : sources_)
        if (source.kind == TextSource::Kind::text) characters += source.value.size();
    if (characters <= kLongest) return false;
    problem_->setText(tr("[text] expected at most %1 in all typed and pasted texts; found %2 with this one. It was not "
                         "added: save it as a file and add the file.")
                          .arg(characters_in_words(kLongest), QLocale::c().toString(characters)));
    problem_->show();
    Q_EMIT refused(problem_->text());
    return true;
}

void TextPanel::add_source(const TextSource& source) {
    sources_.push_back(source);
    list_sources(static_cast<int>(sources_.size()) - 1);
}

void TextPanel::ask_file() {
    ask_for_file(this, {tr("Open a text file")}, [this](const QString& path) { add_file(path); });
}

void TextPanel::remove_source() {
    const int at = list_->currentRow();
    if (at < 0) return;
    sources_.erase(sources_.begin() + at);
    if (sources_.empty()) sources_.push_back({});
    list_sources(std::min(at, static_cast<int>(sources_.size()) - 1));
    touch();
}

void TextPanel::list_sources(int row) {
    filling_ = true;
    list_->clear();
    for (const TextSource& source : sources_) {
        auto* item = new QListWidgetItem(label_of(source), list_);
        item->setFlags(item->flags() | Qt::ItemIsUserCheckable);
        item->setCheckState(source.used ? Qt::Checked : Qt::Unchecked);
        item->setToolTip(source.kind == TextSource::Kind::file ? source.value : QString());
    }
    list_->setVisible(sources_.size() > 1);
    filling_ = false;
    list_->setCurrentRow(row);
    show_source();
}

const QString* TextPanel::editable(const TextSource& source) const {
    if (source.kind == TextSource::Kind::example) {
        for (const TextExample& one : bundled_)
            if (one.name == source.value) return &one.text;
        return nullptr;
    }
    // A text that was typed on past the length for pasting can be shortened again.
    const bool short_enough = source.value.size() <= 2 * text_->most();
    return source.kind == TextSource::Kind::text && short_enough ? &source.value : nullptr;
}

void TextPanel::show_source() {
    TextSource* source = current();
    if (!source) return;
    filling_ = true;
    const QString* text = editable(*source);
    text_->setReadOnly(!text);
    if (text)
        text_->setPlainText(*text);
    else if (source->kind == TextSource::Kind::text)
        text_->setPlainText(tr("A text of %1: too long to edit here, used as a whole. It begins:\n\n%2…")
                                .arg(characters_in_words(source->value.size()), source->value.left(kShownOfLong)));
    else if (source->kind == TextSource::Kind::file)
        text_->setPlainText(tr("%1\n\nRead from disk at each run. Its tokens are shown below.").arg(source->value));
    else
        text_->setPlainText(tr("%1 is not installed.").arg(label_of(*source)));
    // A text that cannot be edited does not look like an editor. The panel's own palette changes after its theme.
    QPalette colors;
    if (!text) {
        colors.setBrush(QPalette::Base, make_palette(theme_).window());
        colors.setColor(QPalette::Text, theme_.muted);
    }
    text_->setPalette(colors);
    text_->setFrameShape(text ? QFrame::StyledPanel : QFrame::NoFrame);
    remove_->setEnabled(sources_.size() > 1 || source->kind != TextSource::Kind::text || !source->value.isEmpty());
    filling_ = false;
}

const ModelCard* TextPanel::card() const {
    const int row = model_->currentIndex();
    return row >= 0 && row < static_cast<int>(models_.size()) ? &models_[static_cast<std::size_t>(row)] : nullptr;
}

void TextPanel::touch() {
    if (filling_) return;
    windows_->setEnabled(length_->value() > 0);
    const ModelCard* card = this->card();
    if (card && length_of_ == 0) length_of_ = card->id;
    segments_->setVisible(card && card->memory);
    chat_->setVisible(card && card->chat_template);
    target_->setVisible(card && card->encoder_decoder);
    target_label_->setVisible(card && card->encoder_decoder);
    logits_->setEnabled(!card || card->head);
    experts_->setVisible(card && card->experts);
    implicit_->setVisible(card && card->recurrent);
    model_note_->setText(
        card ? tr("%1, %2 layers, %3 heads, %4%5")
                   .arg(card->family)
                   .arg(card->layers)
                   .arg(card->heads)
                   .arg(card->max_positions > 0 ? tr("%1 positions").arg(card->max_positions) : tr("any length"))
                   .arg(card->tokenizer ? QString() : tr("; no tokenizer"))
             : tr("Open a checkpoint to run a text through it."));
    model_note_->setToolTip(card ? card->note : QString());
    update_length();
    update_run();
    soon_.start();
    Q_EMIT changed();
}

void TextPanel::set_models(const std::vector<ModelCard>& models) {
    const int before = model_->currentData().toInt();
    filling_ = true;
    models_ = models;
    model_->clear();
    std::erase_if(models_, [](const ModelCard& card) { return card.tensors_only; });
    for (const ModelCard& card : models_) model_->addItem(card.name, card.id);
    model_->setPlaceholderText(tr("No checkpoint is open"));
    const int row = model_->findData(before);
    model_->setCurrentIndex(row >= 0 ? row : models_.empty() ? -1 : 0);
    filling_ = false;
    touch();
}

void TextPanel::set_examples(const std::vector<TextExample>& examples) {
    bundled_ = examples;
    examples_->clear();
    examples_->addItem(tr("+ Example"));
    for (const TextExample& one : examples) examples_->addItem(one.name);
    examples_->setEnabled(!examples.empty());
    if (const TextSource* source = current(); source && source->kind == TextSource::Kind::example) show_source();
}

void TextPanel::set_theme(const Theme& theme) {
    theme_ = theme;
    chips_->set_theme(theme);
    QPalette primary = palette();
    for (const auto group : {QPalette::Active, QPalette::Inactive}) {
        primary.setColor(group, QPalette::Button, theme.accent);
        primary.setColor(group, QPalette::ButtonText, readable_on(theme.accent));
    }
    run_->setPalette(primary);
    show_source();
    QPalette warning = problem_->palette();
    warning.setColor(QPalette::WindowText, theme.accent);
    problem_->setPalette(warning);
}

void TextPanel::choose_model(int id) {
    const int row = model_->findData(id);
    if (row >= 0) model_->setCurrentIndex(row);
}

void TextPanel::begin_with_model(int id) {
    choose_model(id);
    if (model_->currentData().toInt() != id || length_of_ == id) return;
    length_of_ = id;
    length_->setValue(0);
}

TextChoice TextPanel::choice() const {
    TextChoice choice;
    choice.model = model_->currentData().toInt();
    choice.sources = sources_;
    choice.pair = pair_shown_->isChecked() ? pair_->toPlainText() : QString();
    choice.target = target_->isHidden() ? QString() : target_->text();
    choice.first = static_cast<TextChoice::First>(first_->currentIndex());
    choice.chat = !chat_->isHidden() && chat_->isChecked();
    choice.repeat_token = repeat_->isChecked();
    choice.length = length_->value();
    choice.windows = windows_->isChecked() && length_->value() > 0;
    if (!segments_->isHidden()) {
        choice.segment = segment_->value();
        choice.memory = memory_->value();
    }
    choice.beyond_positions = beyond_->isChecked();
    choice.maps = maps_->isChecked();
    choice.states = states_->isChecked();
    choice.logits = logits_->isChecked() && logits_->isEnabled();
    choice.experts = !experts_->isHidden() && experts_->isChecked();
    choice.implicit = !implicit_->isHidden() && implicit_->isChecked();
    choice.device = device_->device();
    choice.interventions = interventions_;
    return choice;
}

TextChoice TextPanel::kept_choice() const {
    TextChoice kept = choice();
    kept.pair = pair_->toPlainText();
    kept.target = target_->text();
    kept.chat = chat_->isChecked();
    kept.segment = segment_->value();
    kept.memory = memory_->value();
    kept.logits = logits_->isChecked();
    kept.experts = experts_->isChecked();
    kept.implicit = implicit_->isChecked();
    return kept;
}

void TextPanel::set_choice(const TextChoice& choice) {
    filling_ = true;
    sources_ = choice.sources;
    if (sources_.empty()) sources_.push_back({});
    pair_->setPlainText(choice.pair);
    pair_shown_->setChecked(!choice.pair.isEmpty());
    target_->setText(choice.target);
    first_->setCurrentIndex(static_cast<int>(choice.first));
    chat_->setChecked(choice.chat);
    repeat_->setChecked(choice.repeat_token);
    length_->setValue(static_cast<int>(choice.length));
    windows_->setChecked(choice.windows);
    length_of_ = 0;
    segment_->setValue(static_cast<int>(choice.segment));
    memory_->setValue(static_cast<int>(choice.memory));
    beyond_->setChecked(choice.beyond_positions);
    maps_->setChecked(choice.maps);
    states_->setChecked(choice.states);
    logits_->setChecked(choice.logits);
    experts_->setChecked(choice.experts);
    implicit_->setChecked(choice.implicit);
    device_->choose(choice.device);
    show_interventions(choice.interventions);
    filling_ = false;
    list_sources(0);
    touch();
}

void TextPanel::show_preview(const TokenPreview& preview) {
    const int shown = std::max(0, shown_sequence_->currentIndex());
    preview_ = preview;
    problem_->setText(preview_.failure);
    problem_->setVisible(!preview_.failure.isEmpty());
    {
        const QSignalBlocker blocker(shown_sequence_);
        shown_sequence_->clear();
        for (std::size_t s = 0; s < preview_.sequences.size(); ++s)
            shown_sequence_->addItem(
                tr("Sequence %1: %2 tokens").arg(s).arg(QLocale::c().toString(preview_.sequences[s].tokens)));
        shown_sequence_->setEnabled(!preview_.sequences.empty());
        shown_sequence_->setCurrentIndex(std::min(shown, shown_sequence_->count() - 1));
    }
    const int row = shown_sequence_->currentIndex();
    chips_->set_chips(row < 0 ? std::vector<TokenPreview::Chip>()
                              : preview_.sequences[static_cast<std::size_t>(row)].chips);
    if (preview_.sequences.empty()) {
        cost_->clear();
    } else {
        QString text = tr("First token: %1. The run takes %2, %3 of memory and a file of %4.")
                           .arg(preview_.first_token, in_words(preview_.seconds), bytes_in_words(preview_.memory),
                                bytes_in_words(preview_.file));
        if (preview_.spilled > 0) text += tr(" Meanwhile %1 wait on the disk.").arg(bytes_in_words(preview_.spilled));
        if (preview_.uncut > 0)
            text += tr(" The text is cut to the model's positions: %1 of %2 tokens.")
                        .arg(QLocale::c().toString(card() ? card()->max_positions : 0),
                             QLocale::c().toString(preview_.uncut));
        if (preview_.beyond) text += tr(" Longer than the model was trained for.");
        cost_->setText(text);
    }
    update_length();
    update_run();
}

/// Without a number: how much of the text the model reads.
void TextPanel::update_length() {
    const ModelCard* card = this->card();
    const bool cut = card && preview_.uncut > 0 && card->max_positions > 0;
    length_->setSpecialValueText(cut ? tr("%1 of %2").arg(card->max_positions).arg(preview_.uncut) : tr("all"));
}

void TextPanel::update_run() {
    const bool ready =
        !running_ && model_->currentIndex() >= 0 && !preview_.sequences.empty() && preview_.failure.isEmpty();
    run_->setEnabled(ready);
    if (ready && std::exchange(focus_run_, false) && window()->focusWidget() == text_) run_->setFocus();
    run_->setToolTip(model_->currentIndex() < 0    ? tr("Open a checkpoint first")
                     : !preview_.failure.isEmpty() ? preview_.failure
                     : preview_.sequences.empty()  ? tr("Type or choose a text first")
                                                   : tr("Analyze the chosen texts (Ctrl+Enter)"));
}

void TextPanel::show_progress(double share, const QString& what) {
    progress_->setValue(qRound(share * 1000));
    progress_words_->setText(what);
}

void TextPanel::show_running(bool running) {
    running_ = running;
    progress_->setVisible(running);  // keeps its room
    progress_words_->setVisible(running);
    cost_->setVisible(!running);
    if (!running) progress_->setValue(0);
    stop_->setEnabled(running);
    update_run();
}

QStringList TextPanel::labels() const {
    QStringList labels;
    if (sources_.size() == 1 && sources_.front() == TextSource{}) return labels;
    for (const TextSource& source : sources_) labels << label_of(source);
    return labels;
}

void TextPanel::choose_source(int row) {
    if (row >= 0 && row < list_->count()) list_->setCurrentRow(row);
}

void TextPanel::focus_next_step() {
    const bool text = std::any_of(sources_.begin(), sources_.end(),
                                  [](const TextSource& source) { return source.used && !source.value.isEmpty(); });
    (text && run_->isEnabled() ? static_cast<QWidget*>(run_) : text_)->setFocus();
    focus_run_ = text && !run_->isEnabled();
}

void TextPanel::focus_text() {
    text_->setFocus();
}

}  // namespace headscope::widgets
