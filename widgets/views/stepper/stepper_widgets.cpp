// SPDX-License-Identifier: GPL-3.0-or-later
// Controls of the view, their commands and keys.
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>

#include "widgets/plain_controls.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/table_copy.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"
#include "widgets/views/stepper/steer_bar.h"
#include "widgets/views/stepper/stepper.h"

namespace headscope::widgets {
namespace {

constexpr int kMostCandidates = 100, kMostSteps = 10000, kMostSeed = 1'000'000'000;
constexpr double kMostTemperature = 1000;
constexpr int kPromptWidth = 180, kReplacementWidth = 110;  // pixels

QSpinBox* make_spin(QWidget* parent, const char* name, const QString& title, const QString& tip, int least, int most,
                    int value) {
    auto* box = described(new QSpinBox(parent), QLatin1String(name), title, tip);
    box->setRange(least, most);
    box->setValue(value);
    box->setPrefix(title + QLatin1Char(' '));
    return box;
}

QPushButton* make_button(QWidget* parent, const char* name, const QString& text, const QString& tip) {
    auto* button = described(new QPushButton(text, parent), QLatin1String(name), text, tip);
    button->setAutoDefault(false);
    return button;
}

}  // namespace

void StepperView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addWidget(build_settings());
    column->addWidget(build_steps());
    steer_ = new SteerBar(content());
    column->addWidget(steer_);
    failure_ = new Banner(content());
    failure_->setObjectName(QStringLiteral("failure"));
    column->addWidget(failure_);
    split_ = new QSplitter(content());
    split_->setChildrenCollapsible(false);
    tokens_ = described(new QListWidget(split_), QStringLiteral("step_tokens"), tr("Tokens of the text"),
                        tr("Choose a generated token to see its candidates and its heads"));
    tokens_->setFlow(QListView::LeftToRight);
    tokens_->setWrapping(true);
    tokens_->setResizeMode(QListView::Adjust);
    tokens_->setSpacing(1);
    tokens_->setFrameShape(QFrame::NoFrame);
    tokens_->setMinimumHeight(80);
    copy_rows_by_key(tokens_);
    split_->addWidget(build_details(split_));
    split_->setStretchFactor(0, 1);
    split_->setStretchFactor(1, 1);
    column->addWidget(split_, 1);
    words_ = new LineLabel(content());
    words_->setObjectName(QStringLiteral("step_words"));
    words_->setTextFormat(Qt::PlainText);
    words_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(words_);
    build_commands();
}

QWidget* StepperView::build_settings() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    prompt_ = described(new QLineEdit(bar), QStringLiteral("step_prompt"), tr("Prompt"),
                        tr("The text to continue, or that an encoder-decoder answers; empty: the first text of the "
                           "text panel, whose Decoder field an answer continues"));
    prompt_->setPlaceholderText(tr("Prompt (empty: the text panel's)"));
    prompt_->setMinimumWidth(kPromptWidth);
    top_ = make_spin(bar, "step_top", tr("Top"), tr("Likeliest tokens that are listed for each step"), 1,
                     kMostCandidates, 5);
    temperature_ = described(new QDoubleSpinBox(bar), QStringLiteral("step_temperature"), tr("Temperature"),
                             tr("0 takes the likeliest token; otherwise tokens are drawn"));
    temperature_->setRange(0, kMostTemperature);
    temperature_->setSingleStep(0.1);
    temperature_->setPrefix(tr("Temperature "));
    seed_ = make_spin(bar, "step_seed", tr("Seed"), tr("Of the draws; unused at temperature 0"), 0, kMostSeed, 0);
    maps_ = described(new QCheckBox(tr("Keep rows"), bar), QStringLiteral("step_maps"), tr("Keep rows"),
                      tr("Keep every head's row of attention, here and in the saved file"));
    maps_->setChecked(true);
    begin_ = make_button(bar, "step_begin", tr("Start"), tr("Take the prompt in and compute its first token"));
    for (QWidget* control : std::initializer_list<QWidget*>{prompt_, top_, temperature_, seed_, maps_, begin_})
        row->addWidget(control);
    return bar;
}

QWidget* StepperView::build_steps() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    step_ = make_button(bar, "step_step", tr("Step"), tr("Generate one token (F8)"));
    back_ = make_button(bar, "step_back", tr("Back"), tr("Drop the last token (Shift+F8)"));
    count_ = make_spin(bar, "step_count", tr("Steps"), tr("Tokens that Run generates"), 1, kMostSteps, 20);
    run_ =
        make_button(bar, "step_run", tr("Run"), tr("Generate as many tokens, or up to the end of the text (Ctrl+F8)"));
    stop_ = make_button(bar, "step_stop", tr("Stop"), tr("Stop; finished tokens stay (Escape)"));
    save_ = make_button(bar, "step_save", tr("Save…"), tr("Save as headscope ask generate does, NAME.ask.h5"));
    row_ = described(new QCheckBox(tr("Row of head"), bar), QStringLiteral("step_row"), tr("Row of head"),
                     tr("Shade tokens by the chosen head's weights in the row that led to the chosen token; else "
                        "generated tokens by how unlikely they were"));
    site_ = make_combo(bar, "step_site", tr("Layer of the row"));
    head_ = make_spin(bar, "step_head", tr("Head"), tr("Head of the row; or click a cell"), 0, 0, 0);
    for (QWidget* control :
         std::initializer_list<QWidget*>{step_, back_, count_, run_, stop_, save_, row_, site_, head_})
        row->addWidget(control);
    return bar;
}

QWidget* StepperView::build_details(QWidget* parent) {
    auto* side = new QWidget(parent);
    auto* column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    candidates_ =
        described(new QTableWidget(0, 4, side), QStringLiteral("step_candidates"), tr("Likeliest tokens of the step"),
                  tr("Enter or double-click takes this token; later ones are dropped"));
    candidates_->setHorizontalHeaderLabels({tr("Token"), tr("Id"), tr("Probability"), tr("Steered")});
    candidates_->setColumnHidden(3, true);
    candidates_->setSelectionBehavior(QAbstractItemView::SelectRows);
    candidates_->setSelectionMode(QAbstractItemView::SingleSelection);
    candidates_->setFrameShape(QFrame::NoFrame);
    candidates_->setMinimumHeight(70);
    style_table(candidates_);
    candidates_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    copy_rows_by_key(candidates_);
    column->addWidget(candidates_, 1);
    auto* line = new QWidget(side);
    auto* row = new FlowLayout(line);
    replacement_ = described(new QLineEdit(line), QStringLiteral("step_replacement"), tr("Another token"),
                             tr("An id, or text that is one token; quotes keep spaces: \" the\""));
    replacement_->setPlaceholderText(tr("Another token"));
    replacement_->setMinimumWidth(kReplacementWidth);
    replace_ = make_button(line, "step_replace", tr("Replace"),
                           tr("Put it in place of the chosen token; later ones are dropped"));
    measure_ = make_combo(line, "step_measure", tr("Measure of the heat map"));
    measure_->addItems({tr("Entropy"), tr("Sink"), tr("Mean distance")});
    for (QWidget* control : std::initializer_list<QWidget*>{replacement_, replace_, measure_}) row->addWidget(control);
    column->addWidget(line);
    picture_ = new FigureView(side);
    picture_->setObjectName(QStringLiteral("step_heads"));
    picture_->setAccessibleName(tr("Measure by layer and head"));
    column->addWidget(picture_, 2);
    return side;
}

void StepperView::connect_controls() {
    connect(begin_, &QPushButton::clicked, this, &StepperView::begin);
    connect(prompt_, &QLineEdit::returnPressed, begin_, &QPushButton::click);
    connect(step_, &QPushButton::clicked, this, [this] { source_->step(1); });
    connect(run_, &QPushButton::clicked, this, [this] { source_->step(count_->value()); });
    connect(back_, &QPushButton::clicked, this, [this] { source_->keep(static_cast<int>(filled_->steps.size()) - 1); });
    connect(stop_, &QPushButton::clicked, this, [this] { source_->stop(); });
    connect(save_, &QPushButton::clicked, this, &StepperView::ask_where_to_save);
    connect(replace_, &QPushButton::clicked, this, &StepperView::replace_typed);
    connect(replacement_, &QLineEdit::returnPressed, this, &StepperView::replace_typed);
    connect(candidates_, &QTableWidget::itemActivated, this, [this](const QTableWidgetItem* item) {
        replace_by(candidates_->item(item->row(), 0)->data(Qt::UserRole).toString());
    });
    connect(tokens_, &QListWidget::currentRowChanged, this, [this] {
        show_chosen();
        enable_controls();
        steer();
    });
    connect(steer_, &SteerBar::changed, this, [this] {
        failure_->set({});
        show_chosen();
        steer();
    });
    const auto look = [this] {
        show_chosen();
        Q_EMIT state_changed();
    };
    connect(measure_, &QComboBox::currentIndexChanged, this, look);
    connect(site_, &QComboBox::currentIndexChanged, this, look);
    connect(head_, &QSpinBox::valueChanged, this, look);
    connect(row_, &QCheckBox::toggled, this, look);
    connect(picture_, &FigureView::clicked, this, &StepperView::head_clicked);
    connect(prompt_, &QLineEdit::textChanged, this, &View::state_changed);
    connect(maps_, &QCheckBox::toggled, this, &View::state_changed);
    connect(temperature_, &QDoubleSpinBox::valueChanged, this, &View::state_changed);
    for (const QSpinBox* box : {top_, seed_, count_}) connect(box, &QSpinBox::valueChanged, this, &View::state_changed);
}

void StepperView::build_commands() {
    const auto command = [this](const char* name, QPushButton* button, const QString& text, const QKeySequence& keys) {
        add_command(
            name, text, keys, button->toolTip(), [button] { button->click(); },
            [button] { return button->isEnabled(); });
    };
    command("stepper_step", step_, tr("Generate one token"), QKeySequence(Qt::Key_F8));
    command("stepper_back", back_, tr("Drop the last token"), QKeySequence(Qt::SHIFT | Qt::Key_F8));
    command("stepper_run", run_, tr("Generate several tokens"), QKeySequence(Qt::CTRL | Qt::Key_F8));
    command("stepper_stop", stop_, tr("Stop generating"), QKeySequence(Qt::Key_Escape));
    command("stepper_begin", begin_, tr("Start from the prompt"), {});
    command("stepper_save", save_, tr("Save the generated text…"), {});
}

}  // namespace headscope::widgets
