// SPDX-License-Identifier: GPL-3.0-or-later
// The controls and texts of the view.
#include "widgets/views/on_text/on_text.h"

#include <QComboBox>
#include <QLabel>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/figures/recipe.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"
#include "widgets/text/text_area.h"
#include "widgets/text/token_table.h"

namespace headscope::widgets {

QComboBox* OnTextView::choice(const char* name, const QString& title, const QString& hint, const QStringList& names,
                              const QStringList& values) {
    auto* box = new QComboBox(content());
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(title);
    box->setToolTip(hint);
    for (qsizetype i = 0; i < names.size(); ++i) box->addItem(names[i], values[i]);
    connect(box, &QComboBox::currentIndexChanged, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    return box;
}

void OnTextView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    auto* tools = new FlowLayout;
    column->addLayout(tools);
    colouring_ = choice("colouring", tr("Colors"), tr("Value that colors the tokens"),
                        {tr("What a token looks at"), tr("Who looks at a token"), tr("Attention received")},
                        {"row", "column", "mass"});
    scope_ = choice("scope", tr("Heads"), tr("One head, or the mean over several"),
                    {tr("This head"), tr("Mean of the layer"), tr("Mean of all layers")}, {"head", "layer", "all"});
    what_ = choice("what", tr("Values"),
                   tr("Weights; norms of weight times value times output projection; or rollout: weights and residual "
                      "through the layers up to this one"),
                   {tr("Weights"), tr("Norms"), tr("Rollout")}, {"weights", "norms", "rollout"});
    scale_ = choice("scale", tr("Color scale"), tr("How values become colors"),
                    {tr("Square root"), tr("Linear"), tr("Logarithmic")}, {"sqrt", "linear", "log"});
    range_ = choice("range", tr("Range of the colors"), tr("Value at the end of the color scale"),
                    {tr("Up to the largest"), tr("0 to 1")}, {"largest", "fixed"});
    units_ = choice("units", tr("Units"), tr("Show the tokenizer's pieces, or words (rows averaged, columns summed)"),
                    {tr("Pieces"), tr("Words")}, {"pieces", "words"});
    list_shown_ = new QToolButton(content());
    list_shown_->setObjectName(QStringLiteral("list_shown"));
    list_shown_->setText(tr("List"));
    list_shown_->setToolTip(tr("List the tokens with the largest values"));
    list_shown_->setCheckable(true);
    list_shown_->setChecked(true);
    connect(list_shown_, &QToolButton::toggled, this, [this](bool on) {
        list_panel_->setVisible(on);
        Q_EMIT state_changed();
    });
    add_command(list_shown_, tr("List of the largest values: show, hide"));
    experts_shown_ = new QToolButton(content());
    experts_shown_->setObjectName(QStringLiteral("experts_shown"));
    experts_shown_->setAccessibleName(tr("Experts"));
    experts_shown_->setText(tr("Experts"));
    experts_shown_->setToolTip(
        tr("Show the experts of the layer under each token: one color per expert, stronger for larger weights"));
    experts_shown_->setCheckable(true);
    experts_shown_->setChecked(true);
    connect(experts_shown_, &QToolButton::toggled, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    add_command(experts_shown_, tr("Experts under the tokens: show, hide"));
    types_shown_ = new QToolButton(content());
    types_shown_->setObjectName(QStringLiteral("types_shown"));
    types_shown_->setAccessibleName(tr("Token types"));
    types_shown_->setText(tr("Token types"));
    types_shown_->setToolTip(tr("Show the type of each token's chunk under it: softmax dark, linear attention light"));
    types_shown_->setCheckable(true);
    types_shown_->setChecked(true);
    connect(types_shown_, &QToolButton::toggled, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    add_command(types_shown_, tr("Token types under the tokens: show, hide"));
    key_ = new ColourKey(content());
    for (QWidget* tool : std::initializer_list<QWidget*>{colouring_, what_, scope_, scale_, range_, units_, list_shown_,
                                                         experts_shown_, types_shown_, key_})
        tools->addWidget(tool);

    heading_ = new QLabel(content());
    heading_->setObjectName(QStringLiteral("heading"));
    heading_->setTextFormat(Qt::PlainText);
    heading_->setWordWrap(true);
    banner_ = new Banner(content());
    column->addWidget(heading_);
    column->addWidget(banner_);

    split_ = new QSplitter(content());
    split_->setChildrenCollapsible(false);
    texts_ = new QSplitter(Qt::Vertical, split_);
    texts_->setChildrenCollapsible(false);
    other_panel_ = new QWidget(texts_);
    auto* other_column = new QVBoxLayout(other_panel_);
    other_column->setContentsMargins(0, 0, 0, 0);
    other_title_ = new QLabel(other_panel_);
    other_ = new TokenTextArea(other_panel_);
    other_->setObjectName(QStringLiteral("other_text"));
    other_column->addWidget(other_title_);
    other_column->addWidget(other_);
    text_ = new TokenTextArea(texts_);
    text_->setObjectName(QStringLiteral("text"));
    text_->setAccessibleName(tr("Text, colored by attention"));
    text_->set_description([this](std::int64_t token) { return describe(token); });

    list_panel_ = new QWidget(split_);
    auto* list_column = new QVBoxLayout(list_panel_);
    list_column->setContentsMargins(0, 0, 0, 0);
    list_title_ = new QLabel(list_panel_);
    list_title_->setObjectName(QStringLiteral("list_title"));
    list_title_->setWordWrap(true);
    list_title_->setTextFormat(Qt::PlainText);
    list_ = new TokenTable(list_panel_);
    list_->setObjectName(QStringLiteral("largest"));
    list_->setAccessibleName(tr("Tokens with the largest values"));
    list_column->addWidget(list_title_);
    list_column->addWidget(list_);
    split_->setStretchFactor(0, 1);
    split_->setStretchFactor(1, 0);
    split_->setSizes({800, 270});
    column->addWidget(split_, 1);
    pointed_ = new LineLabel(content());
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(pointed_);

    connect(text_, &TokenTextArea::clicked, this, [this](qint64 token, Qt::KeyboardModifiers keys) {
        // Shift chooses the other end of the pair.
        const bool other = keys.testFlag(Qt::ShiftModifier);
        choose(token, crossed() ? text_is_keys() : (colouring() == TextColouring::row) == other);
    });
    connect(other_, &TokenTextArea::clicked, this, [this](qint64 token) { choose(token, !text_is_keys()); });
    for (TokenTextArea* area : {text_, other_}) connect(area, &TokenTextArea::stepped, this, &OnTextView::step);
    connect(text_, &TokenTextArea::pointed, this, &OnTextView::refresh_pointed);
    connect(list_, &TokenTable::chosen, this, [this](qint64 token) {
        choose(token, text_is_keys());
        text_->show_token(token);
    });
}

}  // namespace headscope::widgets
