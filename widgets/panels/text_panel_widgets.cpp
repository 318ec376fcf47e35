// SPDX-License-Identifier: GPL-3.0-or-later
// The text panel's controls.
#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/panels/text_panel.h"
#include "widgets/panels/token_chips.h"
#include "widgets/plain_edit.h"
#include "widgets/text/snug_scroll.h"

namespace headscope::widgets {
namespace {

template <class T>
T* named(T* control, const char* name, const QString& tip) {
    control->setObjectName(QLatin1String(name));
    control->setToolTip(tip);
    if (control->accessibleName().isEmpty()) control->setAccessibleName(tip);
    return control;
}

}  // namespace

void TextPanel::build() {
    // Choices scroll where the window is low; notes and buttons below them are always visible.
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
    model_note_->setObjectName(QStringLiteral("text_model_note"));
    model_note_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    model_note_->setTextFormat(Qt::PlainText);
    auto* open = named(new QToolButton(this), "text_open_model", tr("Open a checkpoint"));
    open->setText(tr("Open…"));
    auto* model_row = new QHBoxLayout;
    model_row->addWidget(new QLabel(tr("Model"), this));
    model_row->addWidget(model_, 1);
    model_row->addWidget(open);
    column->addLayout(model_row);
    column->addWidget(model_note_);
    column->addWidget(build_sources());
    shown_sequence_ = named(new QComboBox(this), "text_sequence", tr("The sequence whose tokens are shown"));
    shown_sequence_->setPlaceholderText(tr("No tokens yet"));
    chips_ = new TokenChips(this);
    chips_->setObjectName(QStringLiteral("text_chips"));
    column->addWidget(shown_sequence_);
    column->addWidget(chips_);
    column->addWidget(build_options());
    column->addStretch(1);
    scroll->hold(panel);
    build_notes(below);

    progress_ = named(new QProgressBar(this), "text_progress", tr("Progress of the run"));
    progress_->setRange(0, 1000);
    progress_->setTextVisible(false);
    progress_->setFixedHeight(10);
    QSizePolicy kept = progress_->sizePolicy();
    kept.setRetainSizeWhenHidden(true);
    progress_->setSizePolicy(kept);
    below->addWidget(progress_);
    run_ = named(new QPushButton(tr("Run (Ctrl+Enter)"), this), "text_run", tr("Analyze the chosen texts"));
    run_->setAutoDefault(true);  // Enter presses it while it has the focus
    QFont bold = run_->font();
    bold.setBold(true);
    run_->setFont(bold);
    stop_ = named(new QPushButton(tr("Stop"), this), "text_stop", tr("Stop the run; finished layers stay"));
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(run_, 2);
    buttons->addWidget(stop_, 1);
    below->addLayout(buttons);

    connect(open, &QToolButton::clicked, this, &TextPanel::open_model_wanted);
    connect(model_, &QComboBox::currentIndexChanged, this, &TextPanel::touch);
    connect(model_, &QComboBox::activated, this, [this] { begin_with_model(model_->currentData().toInt()); });
    connect(run_, &QPushButton::clicked, this, [this] { Q_EMIT run_wanted(choice()); });
    connect(stop_, &QPushButton::clicked, this, &TextPanel::stop_wanted);
    connect(shown_sequence_, &QComboBox::currentIndexChanged, this, &TextPanel::show_tokens);
    show_running(false);
}

/// Heights of editor and tokens follow the panel's alone, so that the choices of a model, which come last, move
/// nothing.
void TextPanel::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    text_->setFixedHeight(std::clamp(height() / 6, 52, 240));
    chips_->setFixedHeight(std::clamp(height() / 6, 48, 300));
}

/// The notes have a fixed height, so that nothing above or below moves.
void TextPanel::build_notes(QVBoxLayout* below) {
    constexpr int kLines = 3;
    notes_ = new QScrollArea(this);
    notes_->setObjectName(QStringLiteral("text_notes"));
    notes_->setFrameShape(QFrame::NoFrame);
    notes_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    notes_->setWidgetResizable(true);
    notes_->setFocusPolicy(Qt::NoFocus);
    notes_->setFixedHeight(kLines * fontMetrics().lineSpacing() + 4);
    auto* held = new QWidget(notes_);
    auto* lines = new QVBoxLayout(held);
    lines->setContentsMargins(0, 0, 0, 0);
    lines->setSpacing(2);
    const auto label = [&](const char* name) {
        auto* made = new QLabel(held);
        made->setObjectName(QLatin1String(name));
        made->setWordWrap(true);
        made->setTextFormat(Qt::PlainText);
        made->setTextInteractionFlags(Qt::TextSelectableByMouse);
        lines->addWidget(made);
        return made;
    };
    problem_ = label("text_problem");
    cost_ = label("text_cost");
    progress_words_ = label("text_progress_words");
    lines->addStretch();
    notes_->setWidget(held);
    held->setAutoFillBackground(false);
    notes_->viewport()->setAutoFillBackground(false);
    below->addWidget(notes_);
}

QWidget* TextPanel::build_sources() {
    auto* box = new QWidget(this);
    auto* column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    list_ = named(new QListWidget(box), "text_sources", tr("Ticked texts are analyzed, each as one sequence"));
    list_->setMaximumHeight(76);
    text_ = named(new PlainEdit(box), "text_edit", tr("The chosen text"));
    text_->setPlaceholderText(tr("Type or paste a text, or drop a file here. Ctrl+Enter runs it."));
    text_->setTabChangesFocus(true);
    text_->setAcceptDrops(false);  // the window takes them: a file is a file, not its name
    auto* add_text = named(new QToolButton(box), "text_add", tr("Add an empty text"));
    add_text->setText(tr("+ Text"));
    auto* add_file = named(new QToolButton(box), "text_add_file", tr("Add a text file"));
    add_file->setText(tr("+ File…"));
    examples_ = named(new QComboBox(box), "text_examples", tr("Add a bundled example"));
    // Its own words, whatever the examples are called.
    examples_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    examples_->setMinimumContentsLength(10);
    remove_ = named(new QPushButton(tr("Remove"), box), "text_remove", tr("Remove the chosen text from the list"));
    auto* row = new QHBoxLayout;
    row->addWidget(add_text);
    row->addWidget(add_file);
    row->addWidget(examples_, 1);
    column->addLayout(row);
    column->addWidget(list_);
    column->addWidget(text_);
    pair_shown_ = named(new QToolButton(box), "text_pair_shown",
                        tr("Join each text with a second one, as the tokenizer joins pairs"));
    pair_shown_->setText(tr("Second text (pair)"));
    pair_shown_->setCheckable(true);
    pair_shown_->setAutoRaise(true);
    pair_shown_->setArrowType(Qt::RightArrow);
    pair_shown_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    pair_ = named(new PlainEdit(box), "text_pair", tr("Second text (pair)"));
    pair_->setPlaceholderText(tr("Type or paste the second text of the pair"));
    pair_->setTabChangesFocus(true);
    pair_->setAcceptDrops(false);
    pair_->setFixedHeight(52);
    pair_->hide();
    auto* below = new QHBoxLayout;
    below->addWidget(pair_shown_);
    below->addStretch();
    below->addWidget(remove_);
    column->addLayout(below);
    column->addWidget(pair_);

    connect(list_, &QListWidget::currentRowChanged, this, &TextPanel::show_source);
    connect(list_, &QListWidget::itemChanged, this, &TextPanel::take_tick);
    connect(text_, &QPlainTextEdit::textChanged, this, &TextPanel::take_text);
    connect(text_, &PlainEdit::too_long, this, &TextPanel::take_long);
    connect(add_text, &QToolButton::clicked, this, [this] {
        add_source({});
        text_->setFocus();
    });
    connect(add_file, &QToolButton::clicked, this, &TextPanel::ask_file);
    connect(examples_, &QComboBox::activated, this, [this](int index) {
        if (index <= 0) return;
        take_source({TextSource::Kind::example, examples_->itemText(index)});
        examples_->setCurrentIndex(0);
    });
    connect(remove_, &QPushButton::clicked, this, &TextPanel::remove_source);
    connect(pair_, &QPlainTextEdit::textChanged, this, &TextPanel::touch);
    connect(pair_, &PlainEdit::too_long, this, [this](const QString&, qsizetype characters) {
        problem_->setText(tr("[second text] expected at most %1; found %2. Nothing was pasted.")
                              .arg(characters_in_words(pair_->most()), characters_in_words(characters)));
        problem_->show();
        Q_EMIT refused(problem_->text());
    });
    connect(pair_shown_, &QToolButton::toggled, this, [this](bool on) {
        pair_shown_->setArrowType(on ? Qt::DownArrow : Qt::RightArrow);
        pair_->setVisible(on);
        touch();
    });
    return box;
}

QWidget* TextPanel::build_options() {
    auto* box = new QWidget(this);
    auto* grid = new QGridLayout(box);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setVerticalSpacing(3);
    first_ = named(new QComboBox(box), "text_first", tr("The token before the text"));
    first_->addItems({tr("as the tokenizer does"), tr("yes"), tr("no")});
    length_ = named(new QSpinBox(box), "text_length",
                    tr("Tokens kept of each text. Without a number: all that the model has positions for"));
    length_->setRange(0, 1 << 24);
    length_->setSpecialValueText(tr("all"));
    length_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // its words change
    length_->setMinimumWidth(90);
    length_->setSingleStep(64);
    const auto option = [&](const char* name, const QString& text, const QString& tip) {
        auto* check = named(new QCheckBox(text, box), name, tip);
        connect(check, &QCheckBox::toggled, this, &TextPanel::touch);
        return check;
    };
    segment_ = named(new QSpinBox(box), "text_segment", tr("Read each sequence in segments of this many tokens"));
    segment_->setRange(0, 1 << 24);
    segment_->setSpecialValueText(tr("one"));
    segment_->setSingleStep(64);
    memory_ = named(new QSpinBox(box), "text_memory", tr("Tokens before its segment that a query sees"));
    memory_->setRange(-1, 1 << 24);
    memory_->setValue(-1);
    memory_->setSpecialValueText(tr("the model's"));
    windows_ = option("text_windows", tr("as windows"), tr("Cut long texts into windows of this length instead"));
    chat_ = option("text_chat", tr("Chat template"),
                   tr("Put the text into the checkpoint's chat template, as a user's message"));
    repeat_ = option("text_repeat", tr("Repeated token"),
                     tr("Replace every token by the text's first one (a probe of Lazy Attention)"));
    beyond_ = option("text_beyond", tr("Beyond trained positions"),
                     tr("Run past the trained length, where the model has no table of positions; figures mark it"));
    maps_ = option("text_maps", tr("Maps"), tr("Record queries, keys and row constants, from which maps are computed"));
    states_ = option("text_states", tr("States"),
                     tr("Record norms and variances of queries, keys, values and hidden states"));
    logits_ = option("text_logits", tr("Logits"), tr("Record the logits over the vocabulary (large files)"));
    experts_ = option("text_experts", tr("Experts"), tr("Record which experts process a token, and their weights"));
    implicit_ = option("text_implicit", tr("Implicit"),
                       tr("Record the implicit matrices of recurrent layers; the file grows with the square of the "
                          "length"));
    maps_->setChecked(true);
    grid->addWidget(new QLabel(tr("First token"), box), 0, 0);
    grid->addWidget(first_, 0, 1, 1, 2);
    grid->addWidget(new QLabel(tr("Length"), box), 1, 0);
    grid->addWidget(length_, 1, 1);
    grid->addWidget(windows_, 1, 2);
    grid->addWidget(new QLabel(tr("Record"), box), 2, 0);
    grid->addWidget(beyond_, 3, 0, 1, 3);
    grid->addWidget(repeat_, 4, 0, 1, 3);
    interventions_shown_ = named(new QToolButton(box), "text_interventions",
                                 tr("Edit values inside the model: silence heads, forbid attention, add vectors"));
    interventions_shown_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);  // its words change
    connect(interventions_shown_, &QToolButton::clicked, this, &TextPanel::interventions_wanted);
    grid->addWidget(new QLabel(tr("Edits"), box), 5, 0);
    grid->addWidget(interventions_shown_, 5, 1, 1, 2);
    show_interventions({});
    const auto side_by_side = [](std::initializer_list<QWidget*> some) {
        auto* row = new QHBoxLayout;
        for (QWidget* one : some) row->addWidget(one);
        row->addStretch();
        return row;
    };
    grid->addLayout(side_by_side({maps_, states_, logits_}), 2, 1, 1, 2);
    // Choices of some models come last: another model moves none of those above.
    grid->addLayout(side_by_side({experts_, implicit_}), 6, 1, 1, 2);
    grid->addWidget(chat_, 7, 0, 1, 3);
    segments_ = new QWidget(box);
    auto* segments = new QHBoxLayout(segments_);
    segments->setContentsMargins(0, 0, 0, 0);
    for (const auto& [spin, text] : {std::pair(segment_, tr("Segments")), std::pair(memory_, tr("Memory"))}) {
        auto* label = new QLabel(text, segments_);
        label->setBuddy(spin);
        segments->addWidget(label);
        segments->addWidget(spin, 1);
        connect(spin, &QSpinBox::valueChanged, this, &TextPanel::touch);
    }
    segments_->hide();
    grid->addWidget(segments_, 8, 0, 1, 3);
    target_label_ = new QLabel(tr("Decoder"), box);
    target_ = named(new QLineEdit(box), "text_target", tr("Text that the decoder of an encoder-decoder reads"));
    target_->setPlaceholderText(tr("only its start token"));
    grid->addWidget(target_label_, 9, 0);
    grid->addWidget(target_, 9, 1, 1, 2);
    connect(target_, &QLineEdit::textChanged, this, &TextPanel::touch);
    device_label_ = new QLabel(tr("Device"), box);
    device_ = named(new DeviceBox(box), "text_device",
                    tr("Where models are computed. The processor has a kernel for every model"));
    device_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    grid->addWidget(device_label_, 10, 0);
    grid->addWidget(device_, 10, 1, 1, 2);
    connect(device_, &QComboBox::currentIndexChanged, this, &TextPanel::touch);
    device_label_->hide();
    device_->hide();
    grid->setColumnStretch(1, 1);
    grid->setColumnMinimumWidth(0, target_label_->sizeHint().width());  // a model with a decoder moves nothing
    connect(first_, &QComboBox::currentIndexChanged, this, &TextPanel::touch);
    connect(length_, &QSpinBox::valueChanged, this, [this] {
        if (!filling_ && card()) length_of_ = card()->id;
        touch();
    });
    return box;
}

void TextPanel::set_devices(const std::vector<DeviceCard>& devices) {
    device_->set_devices(devices);
    device_label_->setHidden(devices.empty());
    device_->setHidden(devices.empty());
}

void TextPanel::show_interventions(const InterventionText& interventions) {
    interventions_ = interventions;
    const auto edits = interventions_.toml.count(QLatin1String("[[intervention]]"));
    interventions_shown_->setText(edits == 0   ? tr("None…")
                                  : edits == 1 ? tr("1 intervention…")
                                               : tr("%1 interventions…").arg(edits));
    interventions_shown_->setAccessibleName(tr("Edits of the model: %1").arg(interventions_shown_->text()));
}

void TextPanel::set_interventions(const InterventionText& interventions) {
    if (interventions == interventions_) return;
    show_interventions(interventions);
    touch();
}

}  // namespace headscope::widgets
