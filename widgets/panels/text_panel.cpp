// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/text_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QLocale>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/panels/token_chips.h"
#include "widgets/text/snug_scroll.h"

namespace headscope::widgets {
namespace {

constexpr int kPause = 250;  // ms without a key before the text is tokenized
constexpr int kHeadOfText = 60;

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

template <class T>
T* named(T* control, const char* name, const QString& tip) {
    control->setObjectName(QLatin1String(name));
    control->setToolTip(tip);
    if (control->accessibleName().isEmpty()) control->setAccessibleName(tip);
    return control;
}

}  // namespace

TextPanel::TextPanel(QWidget* parent) : QWidget(parent) {
    sources_.push_back({});
    build();
    filling_ = false;
    soon_.setSingleShot(true);
    soon_.setInterval(kPause);
    connect(&soon_, &QTimer::timeout, this, [this] { Q_EMIT preview_wanted(choice()); });
    list_sources(0);
    set_models({});
}

void TextPanel::build() {
    // What is chosen scrolls where the window is low; what it takes and the buttons are always seen.
    auto* scroll = new SnugScroll(this);
    auto* panel = new QWidget(scroll);
    auto* column = new QVBoxLayout(panel);
    column->setContentsMargins(8, 6, 8, 0);
    column->setSpacing(5);
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    whole->setSpacing(5);
    whole->addWidget(scroll, 1);
    auto* below = new QVBoxLayout;
    below->setContentsMargins(8, 0, 8, 6);
    whole->addLayout(below);

    model_ = named(new QComboBox(this), "text_model", tr("The model that reads the text"));
    model_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    model_note_ = new QLabel(this);
    model_note_->setWordWrap(true);
    auto* open = named(new QToolButton(this), "text_open_model", tr("Open a checkpoint"));
    open->setText(tr("Open…"));
    auto* model_row = new QHBoxLayout;
    model_row->addWidget(new QLabel(tr("Model"), this));
    model_row->addWidget(model_, 1);
    model_row->addWidget(open);
    column->addLayout(model_row);
    column->addWidget(model_note_);
    column->addWidget(build_sources());
    column->addWidget(build_options());

    problem_ = new QLabel(this);
    problem_->setObjectName(QStringLiteral("text_problem"));
    problem_->setWordWrap(true);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    problem_->setTextFormat(Qt::PlainText);
    shown_sequence_ = named(new QComboBox(this), "text_sequence", tr("The sequence whose tokens are shown"));
    chips_ = new TokenChips(this);
    chips_->setObjectName(QStringLiteral("text_chips"));
    chips_->setMinimumHeight(48);
    column->addWidget(shown_sequence_);
    column->addWidget(chips_, 2);
    column->addWidget(problem_);
    scroll->hold(panel);

    cost_ = new QLabel(this);
    cost_->setObjectName(QStringLiteral("text_cost"));
    cost_->setWordWrap(true);
    below->addWidget(cost_);
    progress_ = named(new QProgressBar(this), "text_progress", tr("How far the run is"));
    progress_->setRange(0, 1000);
    below->addWidget(progress_);
    run_ = named(new QPushButton(tr("Run"), this), "text_run", tr("Analyse the chosen texts (Ctrl+Return)"));
    stop_ = named(new QPushButton(tr("Stop"), this), "text_stop", tr("Stop the run; what is done stays"));
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(run_, 2);
    buttons->addWidget(stop_, 1);
    below->addLayout(buttons);

    connect(open, &QToolButton::clicked, this, &TextPanel::open_model_wanted);
    connect(model_, &QComboBox::currentIndexChanged, this, &TextPanel::touch);
    connect(run_, &QPushButton::clicked, this, [this] { Q_EMIT run_wanted(choice()); });
    connect(stop_, &QPushButton::clicked, this, &TextPanel::stop_wanted);
    connect(shown_sequence_, &QComboBox::currentIndexChanged, this, [this](int row) {
        if (row >= 0 && row < static_cast<int>(preview_.sequences.size()))
            chips_->set_chips(preview_.sequences[static_cast<std::size_t>(row)].chips);
    });
    show_running(false);
}

QWidget* TextPanel::build_sources() {
    auto* box = new QWidget(this);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    list_ = named(new QListWidget(box), "text_sources", tr("Texts; the ticked ones are analysed, each as a sequence"));
    list_->setMaximumHeight(76);
    text_ = named(new QPlainTextEdit(box), "text_edit", tr("The chosen text"));
    text_->setPlaceholderText(tr("Type or paste a text, or drop a file here"));
    text_->setTabChangesFocus(true);
    text_->setAcceptDrops(false);  // the window takes them: a file is a file, not its name
    text_->setMinimumHeight(52);
    auto* add_text = named(new QToolButton(box), "text_add", tr("Add a text to type"));
    add_text->setText(tr("+ Text"));
    auto* add_file = named(new QToolButton(box), "text_add_file", tr("Add a text file"));
    add_file->setText(tr("+ File…"));
    examples_ = named(new QComboBox(box), "text_examples", tr("Add a bundled example"));
    remove_ = named(new QPushButton(tr("Remove"), box), "text_remove", tr("Take the chosen text off the list"));
    auto* row = new QHBoxLayout;
    row->addWidget(add_text);
    row->addWidget(add_file);
    row->addWidget(examples_, 1);
    row->addWidget(remove_);
    column->addLayout(row);
    column->addWidget(list_);
    column->addWidget(text_, 1);
    target_label_ = new QLabel(tr("The decoder reads"), box);
    target_ = named(new QLineEdit(box), "text_target", tr("What the decoder of an encoder-decoder reads"));
    target_->setPlaceholderText(tr("nothing but its start token"));
    column->addWidget(target_label_);
    column->addWidget(target_);

    connect(list_, &QListWidget::currentRowChanged, this, &TextPanel::show_source);
    connect(list_, &QListWidget::itemChanged, this, [this](QListWidgetItem* item) {
        if (filling_) return;
        sources_[static_cast<std::size_t>(list_->row(item))].used = item->checkState() == Qt::Checked;
        touch();
    });
    connect(text_, &QPlainTextEdit::textChanged, this, [this] {
        TextSource* source = current();
        if (filling_ || !source || source->kind != TextSource::Kind::text) return;
        source->value = text_->toPlainText();
        filling_ = true;
        list_->currentItem()->setText(label_of(*source));
        filling_ = false;
        touch();
    });
    connect(add_text, &QToolButton::clicked, this, [this] {
        sources_.push_back({});
        list_sources(static_cast<int>(sources_.size()) - 1);
        text_->setFocus();
    });
    connect(add_file, &QToolButton::clicked, this, [this] {
        auto* dialog = new QFileDialog(this, tr("Open a text file"));
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->setFileMode(QFileDialog::ExistingFile);
        connect(dialog, &QFileDialog::fileSelected, this, &TextPanel::add_file);
        dialog->open();
    });
    connect(examples_, &QComboBox::activated, this, [this](int index) {
        if (index <= 0) return;
        sources_.push_back({TextSource::Kind::example, examples_->itemText(index)});
        examples_->setCurrentIndex(0);
        list_sources(static_cast<int>(sources_.size()) - 1);
        touch();
    });
    connect(remove_, &QPushButton::clicked, this, [this] {
        const int at = list_->currentRow();
        if (at < 0) return;
        sources_.erase(sources_.begin() + at);
        if (sources_.empty()) sources_.push_back({});
        list_sources(std::min(at, static_cast<int>(sources_.size()) - 1));
        touch();
    });
    connect(target_, &QLineEdit::textChanged, this, &TextPanel::touch);
    return box;
}

QWidget* TextPanel::build_options() {
    auto* box = new QWidget(this);
    auto* grid = new QGridLayout(box);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setVerticalSpacing(3);
    first_ = named(new QComboBox(box), "text_first", tr("The token before the text"));
    first_->addItems({tr("as the tokenizer does"), tr("yes"), tr("no")});
    length_ = named(new QSpinBox(box), "text_length", tr("Keep so many tokens of each text"));
    length_->setRange(0, 1 << 24);
    length_->setSpecialValueText(tr("all"));
    length_->setSingleStep(64);
    const auto option = [&](const char* name, const QString& text, const QString& tip) {
        auto* check = named(new QCheckBox(text, box), name, tip);
        connect(check, &QCheckBox::toggled, this, &TextPanel::touch);
        return check;
    };
    windows_ = option("text_windows", tr("as windows"), tr("Cut long texts into windows of that many tokens instead"));
    chat_ =
        option("text_chat", tr("Chat template"), tr("The text as a user's message in the checkpoint's chat template"));
    repeat_ = option("text_repeat", tr("Repeated token"),
                     tr("Probe: every token becomes the text's first one (Lazy Attention)"));
    beyond_ = option("text_beyond", tr("Beyond trained positions"),
                     tr("Let models without a table of positions run past their limit; figures mark it"));
    maps_ = option("text_maps", tr("Maps"), tr("Keep what maps are computed from: queries, keys, row constants"));
    states_ = option("text_states", tr("States"), tr("Keep norms and variances of q, k, v and hidden states"));
    logits_ = option("text_logits", tr("Logits"), tr("Keep the logits over the vocabulary: large"));
    maps_->setChecked(true);
    grid->addWidget(new QLabel(tr("First token"), box), 0, 0);
    grid->addWidget(first_, 0, 1, 1, 2);
    grid->addWidget(new QLabel(tr("Length"), box), 1, 0);
    grid->addWidget(length_, 1, 1);
    grid->addWidget(windows_, 1, 2);
    grid->addWidget(new QLabel(tr("Record"), box), 2, 0);
    auto* record = new QHBoxLayout;
    for (QCheckBox* check : {maps_, states_, logits_}) record->addWidget(check);
    record->addStretch();
    grid->addLayout(record, 2, 1, 1, 2);
    grid->addWidget(repeat_, 3, 0, 1, 2);
    grid->addWidget(chat_, 3, 2);
    grid->addWidget(beyond_, 4, 0, 1, 3);
    grid->setColumnStretch(1, 1);
    connect(first_, &QComboBox::currentIndexChanged, this, &TextPanel::touch);
    connect(length_, &QSpinBox::valueChanged, this, &TextPanel::touch);
    return box;
}

TextSource* TextPanel::current() {
    const int row = list_->currentRow();
    return row >= 0 && row < static_cast<int>(sources_.size()) ? &sources_[static_cast<std::size_t>(row)] : nullptr;
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

void TextPanel::show_source() {
    TextSource* source = current();
    if (!source) return;
    filling_ = true;
    const bool typed = source->kind == TextSource::Kind::text;
    text_->setReadOnly(!typed);
    text_->setPlainText(typed ? source->value : tr("%1\nIts tokens are shown below.").arg(label_of(*source)));
    remove_->setEnabled(sources_.size() > 1 || !typed || !source->value.isEmpty());
    filling_ = false;
}

void TextPanel::touch() {
    if (filling_) return;
    windows_->setEnabled(length_->value() > 0);
    const int row = model_->currentIndex();
    const ModelCard* card =
        row >= 0 && row < static_cast<int>(models_.size()) ? &models_[static_cast<std::size_t>(row)] : nullptr;
    chat_->setVisible(card && card->chat_template);
    target_->setVisible(card && card->encoder_decoder);
    target_label_->setVisible(card && card->encoder_decoder);
    logits_->setEnabled(!card || card->head);
    model_note_->setVisible(card != nullptr);
    if (card) {
        model_note_->setText(tr("%1, %2 layers, %3 heads, %4 positions%5")
                                 .arg(card->family)
                                 .arg(card->layers)
                                 .arg(card->heads)
                                 .arg(card->max_positions > 0 ? QString::number(card->max_positions) : tr("any"))
                                 .arg(card->tokenizer ? QString() : tr("; no tokenizer")));
        model_note_->setToolTip(card->note);
    }
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
    model_->setPlaceholderText(tr("open a checkpoint first"));
    const int row = model_->findData(before);
    model_->setCurrentIndex(row >= 0 ? row : models_.empty() ? -1 : 0);
    filling_ = false;
    touch();
}

void TextPanel::set_examples(const QStringList& names) {
    examples_->clear();
    examples_->addItem(tr("+ Example"));
    examples_->addItems(names);
    examples_->setEnabled(!names.isEmpty());
}

void TextPanel::set_theme(const Theme& theme) {
    chips_->set_theme(theme);
    QPalette warning = problem_->palette();
    warning.setColor(QPalette::WindowText, theme.accent);
    problem_->setPalette(warning);
}

void TextPanel::choose_model(int id) {
    const int row = model_->findData(id);
    if (row >= 0) model_->setCurrentIndex(row);
}

TextChoice TextPanel::choice() const {
    TextChoice choice;
    choice.model = model_->currentData().toInt();
    choice.sources = sources_;
    choice.target = target_->isHidden() ? QString() : target_->text();
    choice.first = static_cast<TextChoice::First>(first_->currentIndex());
    choice.chat = !chat_->isHidden() && chat_->isChecked();
    choice.repeat_token = repeat_->isChecked();
    choice.length = length_->value();
    choice.windows = windows_->isChecked() && length_->value() > 0;
    choice.beyond_positions = beyond_->isChecked();
    choice.maps = maps_->isChecked();
    choice.states = states_->isChecked();
    choice.logits = logits_->isChecked() && logits_->isEnabled();
    return choice;
}

void TextPanel::set_choice(const TextChoice& choice) {
    filling_ = true;
    sources_ = choice.sources;
    if (sources_.empty()) sources_.push_back({});
    target_->setText(choice.target);
    first_->setCurrentIndex(static_cast<int>(choice.first));
    chat_->setChecked(choice.chat);
    repeat_->setChecked(choice.repeat_token);
    length_->setValue(static_cast<int>(choice.length));
    windows_->setChecked(choice.windows);
    beyond_->setChecked(choice.beyond_positions);
    maps_->setChecked(choice.maps);
    states_->setChecked(choice.states);
    logits_->setChecked(choice.logits);
    filling_ = false;
    list_sources(0);
    touch();
}

void TextPanel::add_file(const QString& path) {
    TextSource* source = current();
    const TextSource added{TextSource::Kind::file, path};
    if (source && source->kind == TextSource::Kind::text && source->value.isEmpty()) {
        *source = added;
        list_sources(list_->currentRow());
    } else {
        sources_.push_back(added);
        list_sources(static_cast<int>(sources_.size()) - 1);
    }
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
        shown_sequence_->setVisible(!preview_.sequences.empty());
        shown_sequence_->setCurrentIndex(std::min(shown, shown_sequence_->count() - 1));
    }
    const int row = shown_sequence_->currentIndex();
    chips_->set_chips(row < 0 ? std::vector<TokenPreview::Chip>()
                              : preview_.sequences[static_cast<std::size_t>(row)].chips);
    if (preview_.sequences.empty()) {
        cost_->clear();
    } else {
        QString text = tr("First token: %1. Running takes %2, %3 of memory, a file of %4.")
                           .arg(preview_.first_token, in_words(preview_.seconds), bytes_in_words(preview_.memory),
                                bytes_in_words(preview_.file));
        if (preview_.beyond) text += tr(" Longer than the model was trained for.");
        cost_->setText(text);
    }
    update_run();
}

void TextPanel::update_run() {
    const bool ready = !running_ && model_->currentIndex() >= 0 && !preview_.sequences.empty();
    run_->setEnabled(ready);
    run_->setToolTip(model_->currentIndex() < 0   ? tr("Open a checkpoint first")
                     : preview_.sequences.empty() ? tr("Type or choose a text first")
                                                  : tr("Analyse the chosen texts (Ctrl+Return)"));
}

void TextPanel::show_progress(double share, const QString& what) {
    progress_->setValue(qRound(share * 1000));
    progress_->setFormat(what);
}

void TextPanel::show_running(bool running) {
    running_ = running;
    progress_->setVisible(running);
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

void TextPanel::focus_text() {
    text_->setFocus();
}

}  // namespace headscope::widgets
