// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/compare_bar.h"

#include <QButtonGroup>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QToolButton>

#include "widgets/plain_controls.h"
#include "widgets/text/elided.h"
#include "widgets/text/flow_layout.h"

namespace headscope::widgets {
namespace {

constexpr int kSame = -1;  ///< data of "as in the selection"
constexpr int kNameWidth = 190;

struct Item {
    QString text;
    int data = 0;
};

/// Only what differs is written: a box that is open stays so.
void fill(QComboBox* box, const std::vector<Item>& items, int chosen) {
    bool same = box->count() == static_cast<int>(items.size());
    for (int i = 0; same && i < box->count(); ++i)
        same = box->itemText(i) == items[static_cast<std::size_t>(i)].text &&
               box->itemData(i).toInt() == items[static_cast<std::size_t>(i)].data;
    if (!same) {
        box->clear();
        for (const Item& item : items) box->addItem(item.text, item.data);
    }
    box->setCurrentIndex(std::max(0, box->findData(chosen)));
}

std::optional<std::int64_t> chosen(const QComboBox* box) {
    const int data = box->currentData().toInt();
    return data == kSame || box->currentIndex() < 0 ? std::nullopt : std::optional<std::int64_t>(data);
}

}  // namespace

CompareBar::CompareBar(QWidget* parent)
    : QWidget(parent),
      modes_(new QButtonGroup(this)),
      flow_(new FlowLayout),
      left_(new QLabel(this)),
      right_(new QLabel(this)),
      swap_(new QToolButton(this)) {
    auto* modes = new QWidget(this);
    auto* row = new QHBoxLayout(modes);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    const auto add_mode = [&](CompareMode mode, const char* name, const QString& title, const QString& tip) {
        auto* button = new QToolButton(modes);
        button->setObjectName(QLatin1String(name));
        button->setText(title);
        button->setAccessibleName(title);
        button->setToolTip(tip);
        button->setCheckable(true);
        button->setFocusPolicy(Qt::TabFocus);
        modes_->addButton(button, static_cast<int>(mode));
        row->addWidget(button);
    };
    add_mode(CompareMode::maps, "compare_maps", tr("Maps"), tr("Two maps and their signed difference"));
    add_mode(CompareMode::heads, "compare_heads", tr("Heads"),
             tr("The difference of a measure for every head, the heads that differ most, the loss"));
    add_mode(CompareMode::text, "compare_text", tr("Text"),
             tr("Both texts, colored by the difference of how much each token is looked at"));
    modes_->button(0)->setChecked(true);
    left_->setObjectName(QStringLiteral("compare_left"));
    right_->setObjectName(QStringLiteral("compare_right"));
    for (QLabel* label : {left_, right_}) {
        label->setTextFormat(Qt::PlainText);
        label->setMinimumHeight(26);
    }
    study_ =
        add_combo("compare_study", tr("Other analysis"), tr("The analysis that the selected one is compared with"));
    sequence_ = add_combo("compare_sequence", tr("Other sequence"), tr("The sequence that is compared with"));
    site_ = add_combo("compare_layer", tr("Other layer"), tr("The layer that is compared with"));
    head_ = add_combo("compare_head", tr("Other head"), tr("The head that is compared with"));
    swap_->setObjectName(QStringLiteral("compare_swap"));
    swap_->setText(QStringLiteral("⇄"));
    swap_->setAccessibleName(tr("Swap sides"));
    swap_->setToolTip(tr("Swap sides: the right one becomes the baseline"));
    swap_->setMinimumSize(26, 26);
    flow_->addWidget(modes);
    setLayout(flow_);
    arrange(false);
    connect(modes_, &QButtonGroup::idClicked, this,
            [this](int id) { Q_EMIT mode_chosen(static_cast<CompareMode>(id)); });
    connect(swap_, &QToolButton::clicked, this, &CompareBar::swap_wanted);
}

/// The choice stands on the side of what is chosen.
void CompareBar::arrange(bool selected_right) {
    if (arranged_ == selected_right) return;
    arranged_ = selected_right;
    const std::initializer_list<QWidget*> boxes{study_, sequence_, site_, head_};
    std::vector<QWidget*> order{left_};
    if (selected_right) order.insert(order.end(), boxes);
    order.insert(order.end(), {swap_, right_});
    if (!selected_right) order.insert(order.end(), boxes);
    QWidget* before = nullptr;
    for (QWidget* widget : order) {
        flow_->removeWidget(widget);
        flow_->addWidget(widget);
        if (before) setTabOrder(before, widget);
        before = widget;
    }
}

QComboBox* CompareBar::add_combo(const char* name, const QString& title, const QString& tip) {
    auto* box = make_combo(this, name, tip, title);
    box->setMaximumWidth(230);
    connect(box, &QComboBox::activated, this, &CompareBar::tell);
    return box;
}

void CompareBar::tell() {
    CompareChoice choice;
    choice.study = study_->currentData().toInt();
    choice.sequence = chosen(sequence_);
    choice.site = chosen(site_);
    choice.head = chosen(head_);
    choice.swapped = swapped_;
    Q_EMIT choice_changed(choice);
}

void CompareBar::set_mode(CompareMode mode) {
    modes_->button(static_cast<int>(mode))->setChecked(true);
    // All heads are compared with each other.
    for (QWidget* box : {site_, head_}) box->setVisible(mode != CompareMode::heads);
}

void CompareBar::show_choice(const Desk& desk, const CompareSides& sides, const CompareChoice& choice) {
    const Study &left = *sides.selected().study, &right = *sides.other().study;
    swapped_ = choice.swapped;
    arrange(sides.selected_right);
    const QString name = elided_middle(font(), sides.selected().label, kNameWidth);
    left_->setText(sides.selected_right ? tr("Baseline:") : tr("Baseline: %1").arg(name));
    right_->setText(sides.selected_right ? tr("Compared: %1").arg(name) : tr("Compared:"));
    (sides.selected_right ? right_ : left_)->setToolTip(tr("The selection: %1").arg(sides.selected().name()));
    (sides.selected_right ? left_ : right_)->setToolTip({});
    std::vector<Item> studies{{tr("The same analysis"), 0}};
    std::vector<const Study*> all;
    for (const Study* study : desk.studies())
        if (!study->sites().empty()) all.push_back(study);
    const std::vector<QString> labels = study_labels(all);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != &left) studies.push_back({elided_middle(font(), labels[i], kNameWidth), all[i]->id()});
    fill(study_, studies, &left == &right ? 0 : right.id());

    std::vector<Item> sequences{{tr("Same sequence"), kSame}};
    for (int s = 0; s < right.sequences(); ++s) sequences.push_back({tr("Sequence %1").arg(s), s});
    fill(sequence_, sequences, static_cast<int>(choice.sequence.value_or(kSame)));
    sequence_->setVisible(left.sequences() > 1 || right.sequences() > 1);
    std::vector<Item> sites{{tr("Same layer"), kSame}};
    for (int site = 0; site < static_cast<int>(right.sites().size()); ++site)
        sites.push_back({right.site_heading(site), site});
    fill(site_, sites, static_cast<int>(choice.site.value_or(kSame)));
    std::vector<Item> heads{{tr("Same head"), kSame}};
    for (int head = 0; head < sides.other().place().heads; ++head) heads.push_back({tr("Head %1").arg(head), head});
    fill(head_, heads, static_cast<int>(choice.head.value_or(kSame)));
}

}  // namespace headscope::widgets
