// SPDX-License-Identifier: GPL-3.0-or-later
// The controls, text and lists of the view.
#include "widgets/views/loss/loss.h"

#include <QComboBox>
#include <QLabel>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/figures/recipe.h"
#include "widgets/panels/token_weights.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"
#include "widgets/views/loss/loss_curve.h"

namespace headscope::widgets {
namespace {

constexpr int kListsWidth = 220;

QLabel* plain_label(QWidget* parent, const char* name) {
    auto* label = new QLabel(parent);
    label->setObjectName(QLatin1String(name));
    label->setTextFormat(Qt::PlainText);
    label->setWordWrap(true);
    return label;
}

}  // namespace

void LossView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    heading_ = plain_label(content(), "heading");
    QFont strong = heading_->font();
    strong.setBold(true);
    heading_->setFont(strong);
    column->addWidget(heading_);
    auto* tools = new FlowLayout;
    column->addLayout(tools);
    range_ = new QComboBox(content());
    range_->setObjectName(QStringLiteral("range"));
    range_->setAccessibleName(tr("Range of the colors"));
    range_->setToolTip(tr("Value at the end of the color scale"));
    range_->addItem(tr("Up to the largest"), "largest");
    range_->addItem(tr("0 to %1 nats").arg(kFixedRange), "fixed");
    connect(range_, &QComboBox::currentIndexChanged, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    numbers_ = new QToolButton(content());
    numbers_->setObjectName(QStringLiteral("numbers"));
    numbers_->setText(tr("Numbers"));
    numbers_->setToolTip(tr("Show each token's loss in nats under it"));
    numbers_->setCheckable(true);
    numbers_->setChecked(true);
    connect(numbers_, &QToolButton::toggled, this, [this](bool on) {
        text_->set_numbers(on);
        Q_EMIT state_changed();
    });
    add_command(numbers_, tr("Losses under the tokens: show, hide"));
    key_ = new ColourKey(content());
    for (QWidget* tool : std::initializer_list<QWidget*>{range_, numbers_, key_}) tools->addWidget(tool);
    banner_ = new Banner(content());
    column->addWidget(banner_);

    split_ = new QSplitter(content());
    split_->setChildrenCollapsible(false);
    left_ = new QSplitter(Qt::Vertical, split_);
    left_->setChildrenCollapsible(false);
    text_ = new TokenTextArea(left_);
    text_->setObjectName(QStringLiteral("text"));
    text_->setAccessibleName(tr("Text, colored by loss"));
    text_->set_description([this](std::int64_t token) { return describe(token); });
    text_->set_numbers(true);
    curve_ = new LossCurve(left_);
    left_->setStretchFactor(0, 3);
    left_->setStretchFactor(1, 1);
    split_->addWidget(build_lists());
    split_->setStretchFactor(0, 1);
    split_->setStretchFactor(1, 0);
    split_->setSizes({800, 290});
    column->addWidget(split_, 1);
    pointed_ = new LineLabel(content());
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(pointed_);

    connect(text_, &TokenTextArea::clicked, this, [this](qint64 token) { choose(token); });
    connect(text_, &TokenTextArea::stepped, this, &LossView::step);
    connect(text_, &TokenTextArea::pointed, this, [this](qint64 token) {
        const QString hint = tr("Click chooses a token · Ctrl+←/→ moves to the next");
        pointed_->setText(token < 0 ? hint : describe(token).replace(QLatin1Char('\n'), QStringLiteral(" · ")));
        pointed_->setEnabled(token >= 0);
    });
    Q_EMIT text_->pointed(-1);
    connect(curve_, &LossCurve::chosen, this, [this](qint64 token) { choose(token); });
    connect(surprises_, &TokenTable::chosen, this, [this](qint64 token) {
        choose(token);
        text_->show_token(token);
    });
}

QWidget* LossView::build_lists() {
    right_ = new QSplitter(Qt::Vertical, split_);
    right_->setChildrenCollapsible(false);
    right_->setMinimumWidth(kListsWidth);
    const auto panel = [&](QLabel*& title, const char* title_name, TokenTable*& table, const char* table_name) {
        auto* made = new QWidget(right_);
        auto* column = new QVBoxLayout(made);
        column->setContentsMargins(0, 0, 0, 0);
        title = plain_label(made, title_name);
        table = new TokenTable(made);
        table->setObjectName(QLatin1String(table_name));
        column->addWidget(title);
        column->addWidget(table, 1000);
        column->addStretch(1);  // where the table is hidden
        return column;
    };
    panel(surprises_title_, "surprises_title", surprises_, "surprises");
    surprises_->setAccessibleName(tr("Most surprising tokens"));
    surprises_->model_of_tokens().set_titles(tr("Token"), tr("Position"), tr("Loss"));
    auto* column = panel(predictions_title_, "predictions_title", predictions_, "predictions");
    predictions_->setAccessibleName(tr("What the model expected"));
    predictions_->model_of_tokens().set_titles(tr("Token"), tr("Id"), tr("Probability"));
    no_logits_ = new Banner(right_);
    no_logits_->setObjectName(QStringLiteral("no_logits"));
    column->insertWidget(1, no_logits_);
    return right_;
}

}  // namespace headscope::widgets
