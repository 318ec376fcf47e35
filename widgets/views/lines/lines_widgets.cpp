// SPDX-License-Identifier: GPL-3.0-or-later
// The controls and the canvas of the view.
#include "widgets/views/lines/lines.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/figures/recipe.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"
#include "widgets/views/lines/head_chips.h"
#include "widgets/views/lines/lines_canvas.h"

namespace headscope::widgets {
namespace {

constexpr int kFirstThreshold = 5;

QWidget* beside(std::initializer_list<QWidget*> parts, QWidget* parent) {
    auto* group = new QWidget(parent);
    auto* row = new QHBoxLayout(group);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(4);
    for (QWidget* part : parts) row->addWidget(part);
    return group;
}

}  // namespace

void LinesView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    strip_ = new HeadChips(content());
    column->addWidget(strip_);

    auto* tools = new FlowLayout;
    column->addLayout(tools);
    const auto button = [this](const char* name, const QString& text, const QString& hint) {
        auto* made = new QToolButton(content());
        made->setObjectName(QLatin1String(name));
        made->setText(text);
        made->setAccessibleName(hint);
        made->setToolTip(hint);
        return made;
    };
    every_ = button("every_head", tr("All heads"), tr("Show the lines of every head of the layer"));
    connect(every_, &QToolButton::clicked, this, [this] {
        for (int head = 0; head < strip_->count(); ++head) show_head(head, true);
    });
    threshold_ = new QSlider(Qt::Horizontal, content());
    threshold_->setObjectName(QStringLiteral("threshold"));
    threshold_->setAccessibleName(tr("Smallest weight drawn"));
    threshold_->setToolTip(tr("Lines of smaller weights are not drawn"));
    threshold_->setRange(0, static_cast<int>(kThresholds.size()) - 1);
    threshold_->setPageStep(2);
    threshold_->setValue(kFirstThreshold);
    threshold_->setFixedWidth(130);
    threshold_text_ = new QLabel(content());
    threshold_text_->setMinimumWidth(fontMetrics().horizontalAdvance(tr("from %1").arg(QStringLiteral("0.005"))));
    connect(threshold_, &QSlider::valueChanged, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    earlier_ = button("earlier", QStringLiteral("◀"), tr("Earlier tokens"));
    later_ = button("later", QStringLiteral("▶"), tr("Later tokens"));
    connect(earlier_, &QToolButton::clicked, this, [this] { move_window(first_ - window_size() / 2); });
    connect(later_, &QToolButton::clicked, this, [this] { move_window(first_ + window_size() / 2); });
    first_shown_ = new QSpinBox(content());
    first_shown_->setObjectName(QStringLiteral("first_token"));
    first_shown_->setAccessibleName(tr("First token shown"));
    first_shown_->setToolTip(tr("First token shown. The view also follows the selected token"));
    first_shown_->setKeyboardTracking(false);
    connect(first_shown_, &QSpinBox::valueChanged, this, [this](int first) { move_window(first); });
    range_text_ = new QLabel(content());
    size_ = new QComboBox(content());
    size_->setObjectName(QStringLiteral("window_size"));
    size_->setAccessibleName(tr("Tokens shown"));
    size_->setToolTip(tr("Tokens of a long text that are shown at once"));
    for (const int size : {25, 50, 100, 200}) size_->addItem(tr("%1 tokens").arg(size), size);
    size_->setCurrentIndex(1);
    connect(size_, &QComboBox::currentIndexChanged, this, [this] {
        move_window(first_);
        refresh_later();
        Q_EMIT state_changed();
    });
    units_ = new QComboBox(content());
    units_->setObjectName(QStringLiteral("lines_units"));
    units_->setAccessibleName(tr("Units"));
    units_->setToolTip(tr("Show the tokenizer's pieces, or words (rows averaged, columns summed)"));
    units_->addItem(tr("Pieces"), QStringLiteral("pieces"));
    units_->addItem(tr("Words"), QStringLiteral("words"));
    connect(units_, &QComboBox::currentIndexChanged, this, [this] {
        first_ = first_key_ = 0;
        last_.query.reset();  // the window goes to the chosen token again
        refresh_later();
        Q_EMIT state_changed();
    });
    window_tools_ = beside({earlier_, first_shown_, range_text_, later_}, content());
    tools->addWidget(every_);
    tools->addWidget(beside({new QLabel(tr("Weights"), content()), threshold_, threshold_text_}, content()));
    tools->addWidget(size_);
    tools->addWidget(units_);
    tools->addWidget(window_tools_);

    counts_ = new QLabel(content());
    counts_->setObjectName(QStringLiteral("counts"));
    counts_->setTextFormat(Qt::PlainText);
    counts_->setWordWrap(true);
    column->addWidget(counts_);
    canvas_ = new LinesCanvas(content());
    canvas_->setObjectName(QStringLiteral("lines"));
    canvas_->setAccessibleName(tr("Lines from queries to keys"));
    column->addWidget(canvas_, 1);
    pointed_ = new LineLabel(content());
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(pointed_);

    connect(strip_, &HeadChips::toggled, this, &LinesView::show_head);
    connect(strip_, &HeadChips::only, this, &LinesView::show_only);
    connect(canvas_, &LinesCanvas::clicked, this, [this](int side, qint64 token) {
        if (side == static_cast<int>(LinesCanvas::Side::query))
            select_units(token, chosen(false));
        else
            select_units(chosen(true), token);
    });
    connect(canvas_, &LinesCanvas::pointed, this, &LinesView::refresh_counts);
    connect(canvas_, &LinesCanvas::stepped, this, &LinesView::step);
    add_command(every_, every_->accessibleName());
    add_command("lines_only", tr("Only the selected head"), Qt::SHIFT | Qt::Key_Space,
                tr("Show only the lines of the selected head, or of the head whose chip has the focus"),
                [this] { show_only(static_cast<int>(selection().head)); });
    add_command(earlier_, earlier_->accessibleName());
    add_command(later_, later_->accessibleName());
}

}  // namespace headscope::widgets
