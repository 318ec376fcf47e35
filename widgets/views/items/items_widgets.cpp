// SPDX-License-Identifier: GPL-3.0-or-later
// The choices, the list and the item of the view.
#include "widgets/views/items/items.h"

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>

#include "widgets/desk/evaluation_shelf.h"
#include "widgets/fitted_columns.h"
#include "widgets/plain_controls.h"
#include "widgets/table_copy.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/text_area.h"

namespace headscope::widgets {

void ItemsView::build() {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addWidget(make_bar());
    splitter_ = new QSplitter(Qt::Horizontal, content());
    splitter_->setObjectName(QStringLiteral("items_splitter"));
    splitter_->setChildrenCollapsible(false);
    auto* list = new QWidget(splitter_);
    auto* rows = new QVBoxLayout(list);
    rows->setContentsMargins(0, 0, 0, 0);
    table_ = new ItemTable(list);
    copy_rows_by_key(table_);
    table_->setModel(model_);
    count_ = new QLabel(list);
    count_->setObjectName(QStringLiteral("items_count"));
    count_->setTextFormat(Qt::PlainText);
    count_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    rows->addWidget(table_, 1);
    rows->addWidget(count_);
    splitter_->addWidget(list);
    splitter_->addWidget(make_detail());
    splitter_->setSizes({420, 580});
    column->addWidget(splitter_, 1);
    columns_ = new FittedColumns(table_);
    columns_->set_order({ItemModel::number_column, ItemModel::right_column, ItemModel::other_column,
                         ItemModel::words_column, ItemModel::chosen_column, ItemModel::gold_column});
    columns_->set_whole({ItemModel::number_column, ItemModel::right_column});
    columns_->set_stretched({ItemModel::words_column});
    connect(table_->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &ItemsView::show_current);
    connect(table_, &ItemTable::looked_at, this, [this] { words_soon_.start(); });
    connect(model_, &QAbstractItemModel::rowsInserted, this, [this] { words_soon_.start(); });
    add_command(
        "items_next", tr("Next item"), Qt::Key_Down, tr("Go to the next item in the list"),
        [this] { go_to(table_->currentIndex().row() + 1); }, [this] { return model_->rowCount() > 0; });
    add_command(
        "items_previous", tr("Previous item"), Qt::Key_Up, tr("Go to the previous item in the list"),
        [this] { go_to(table_->currentIndex().row() - 1); }, [this] { return model_->rowCount() > 0; });
    add_command(
        "items_wrong_only", tr("Wrong items only, or all"), Qt::Key_W, wrong_->toolTip(), [this] { wrong_->toggle(); },
        [this] { return source_->items() && wrong_->isEnabled(); });
}

QWidget* ItemsView::make_bar() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    const auto named = [&](QWidget* made, const char* name, const QString& label, const QString& about) {
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(label);
        made->setToolTip(about);
        row->addWidget(made);
    };
    const auto box = [&](const char* name, const QString& label, const QString& about) {
        auto* made = make_combo(bar, name, about, label);
        row->addWidget(made);
        connect(made, &QComboBox::currentIndexChanged, this, [this] {
            if (!filling_) take_choices();
        });
        return made;
    };
    file_ = box("items_file", tr("File"), tr("The evaluation whose items are shown"));
    of_model_ = box("items_model", tr("Model"), tr("The model whose answers are shown"));
    task_ = box("items_task", tr("Task"), tr("The task whose items are shown"));
    other_ = box("items_other", tr("Other model"), tr("Compare with another model that answered the same items"));
    wrong_ = new QCheckBox(tr("Wrong only"), bar);
    named(wrong_, "items_wrong", wrong_->text(), tr("Show only items that the model got wrong (W)"));
    disagree_ = new QCheckBox(tr("Models disagree"), bar);
    named(disagree_, "items_disagree", disagree_->text(),
          tr("Show only items where the models chose different options"));
    for (QCheckBox* check : {wrong_, disagree_})
        connect(check, &QCheckBox::toggled, this, [this] {
            if (filling_) return;
            refresh_later();
            Q_EMIT state_changed();
        });
    find_ = new QLineEdit(bar);
    find_->setPlaceholderText(tr("Find in the texts"));
    find_->setClearButtonEnabled(true);
    named(find_, "items_find", tr("Find"), tr("Show only items that contain this text"));
    connect(find_, &QLineEdit::textChanged, this, [this] {
        if (!filling_) find_soon_.start();
    });
    return bar;
}

QWidget* ItemsView::make_detail() {
    auto* detail = new QWidget(content());
    auto* column = new QVBoxLayout(detail);
    column->setContentsMargins(0, 0, 0, 0);
    title_ = new QLabel(detail);
    title_->setObjectName(QStringLiteral("items_title"));
    title_->setTextFormat(Qt::PlainText);
    title_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    column->addWidget(title_);
    failure_ = new Banner(detail);
    failure_->setObjectName(QStringLiteral("items_failure"));
    column->addWidget(failure_);
    text_ = new TokenTextArea(detail);
    text_->setObjectName(QStringLiteral("items_text"));
    text_->setAccessibleName(tr("The item"));
    text_->setToolTip(tr("Point at a token for its log-likelihood"));
    text_->set_description([this](std::int64_t token) {
        const QStringList& hints = source_->page().hints;
        return token >= 0 && token < hints.size() ? hints[token] : QString();
    });
    column->addWidget(text_, 1);
    auto* below = new QWidget(detail);
    auto* row = new FlowLayout(below);
    key_ = new ColourKey(below);
    key_->setObjectName(QStringLiteral("items_key"));
    row->addWidget(key_);
    option_ = make_combo(below, "items_option", tr("Continuation to analyze after the context"), tr("Text to analyze"));
    row->addWidget(option_);
    analyse_ = new QPushButton(tr("Open as analysis"), below);
    analyse_->setObjectName(QStringLiteral("items_analyse"));
    analyse_->setAccessibleName(analyse_->text());
    analyse_->setToolTip(tr("Run this item's text through the evaluated model"));
    row->addWidget(analyse_);
    connect(analyse_, &QPushButton::clicked, this, &ItemsView::open_as_analysis);
    add_command(analyse_);
    column->addWidget(below);
    return detail;
}

}  // namespace headscope::widgets
