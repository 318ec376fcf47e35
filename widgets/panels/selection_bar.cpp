// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/selection_bar.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QSpinBox>
#include <algorithm>

#include "core/figures/token_text.h"

namespace headscope::widgets {
namespace {

constexpr int kNoToken = -1;
constexpr int kRowGap = 2, kColumnGap = 6;            ///< pixels between its two rows, or halves of one
constexpr int kWidestStudy = 340, kWidestText = 300;  ///< pixels

QString first_words(const store::SequenceTokens& sequence) {
    QString text = QString::fromStdString(sequence.text.substr(0, 160)).simplified();
    if (text.isEmpty()) {
        for (std::size_t i = 0; i < std::min<std::size_t>(sequence.pieces.size(), 6); ++i)
            text += QString::fromStdString(figures::visible_token(sequence.pieces[i]));
    }
    return text.size() > 28 ? text.left(27) + QStringLiteral("…") : text;
}

}  // namespace

SelectionBar::SelectionBar(Desk* desk, QWidget* parent)
    : QWidget(parent),
      desk_(desk),
      rows_(new QBoxLayout(QBoxLayout::LeftToRight, this)),
      what_(new QHBoxLayout),
      where_(new QHBoxLayout),
      study_(new QComboBox(this)),
      sequence_(new QComboBox(this)),
      site_(new QComboBox(this)),
      head_(new QSpinBox(this)),
      query_(new QSpinBox(this)),
      key_(new QSpinBox(this)),
      query_token_(new QLabel(this)),
      key_token_(new QLabel(this)) {
    rows_->setContentsMargins(6, 3, 6, 3);
    rows_->addLayout(what_, 1);
    rows_->addLayout(where_);
    QHBoxLayout* row = what_;
    const auto add = [&](const QString& text, QWidget* control, const char* name, const QString& tip) {
        auto* label = new QLabel(text, this);
        label->setBuddy(control);
        control->setObjectName(QLatin1String(name));
        control->setAccessibleName(tip);
        control->setToolTip(tip);
        row->addWidget(label);
        row->addWidget(control);
    };
    study_->setMinimumContentsLength(14);
    study_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    sequence_->setMinimumContentsLength(12);
    sequence_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    add(tr("&Analysis"), study_, "select_study", tr("Analysis shown in all views"));
    add(tr("&Text"), sequence_, "select_sequence", tr("Sequence, or the mean over all"));
    row = where_;
    add(tr("&Layer"), site_, "select_site", tr("Layer (up and down arrows)"));
    add(tr("&Head"), head_, "select_head", tr("Head, counted from 0 (left and right arrows)"));
    add(tr("&Query"), query_, "select_query", tr("Query: the token that looks"));
    row->addWidget(query_token_);
    add(tr("&Key"), key_, "select_key", tr("Key: the token that is looked at"));
    row->addWidget(key_token_);
    row->addStretch(1);
    // Gives names of analyses more room: they may differ in their ends alone.
    what_->setStretchFactor(study_, 6);
    what_->setStretchFactor(sequence_, 4);
    study_->setMaximumWidth(kWidestStudy);
    sequence_->setMaximumWidth(kWidestText);
    for (QComboBox* box : {study_, sequence_}) box->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    for (QSpinBox* box : {query_, key_}) {
        box->setRange(kNoToken, kNoToken);
        box->setSpecialValueText(tr("none"));
        box->setKeyboardTracking(false);
    }
    head_->setKeyboardTracking(false);

    connect(study_, &QComboBox::activated, this, [this] { desk_->select_study(study_->currentData().toInt()); });
    const auto select = [this] {
        if (following_) return;
        Selection selection = desk_->selection();
        const int sequence = sequence_->currentData().toInt();
        selection.sequence = sequence < 0 ? std::nullopt : std::optional<std::int64_t>(sequence);
        selection.site = std::max(0, site_->currentIndex());
        selection.head = head_->value();
        const auto token = [](const QSpinBox* box) {
            return box->value() == kNoToken ? std::nullopt : std::optional<std::int64_t>(box->value());
        };
        selection.query = token(query_);
        selection.key = token(key_);
        desk_->select(selection);
    };
    connect(sequence_, &QComboBox::activated, this, select);
    connect(site_, &QComboBox::activated, this, select);
    for (QSpinBox* box : {head_, query_, key_}) connect(box, &QSpinBox::valueChanged, this, select);
    connect(desk_, &Desk::studies_changed, this, &SelectionBar::fill_studies);
    connect(desk_, &Desk::selection_changed, this, &SelectionBar::follow);
    fill_studies();
}

int SelectionBar::label_width() const {
    int width = 0;
    for (const QLabel* label : {query_token_, key_token_})
        if (!label->text().isEmpty()) width += label->minimumSizeHint().width() + where_->spacing();
    return width;
}

/// As wide as the wider of two rows, without what tokens read as.
QSize SelectionBar::minimumSizeHint() const {
    const QMargins edge = rows_->contentsMargins();
    const int shown = query_token_->isHidden() && key_token_->isHidden() ? 0 : label_width();
    const int least = std::max(what_->minimumSize().width(), where_->minimumSize().width() - shown);
    return {least + edge.left() + edge.right(), rows_->minimumSize().height()};
}

void SelectionBar::arrange() {
    const QMargins edge = rows_->contentsMargins();
    const int shown = query_token_->isHidden() && key_token_->isHidden() ? 0 : label_width();
    const int all = what_->minimumSize().width() + kColumnGap + where_->minimumSize().width() - shown + label_width() +
                    edge.left() + edge.right();
    const bool narrow = width() < all;
    rows_->setSpacing(narrow ? kRowGap : kColumnGap);
    rows_->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
    for (QLabel* label : {query_token_, key_token_}) label->setVisible(!narrow && !label->text().isEmpty());
}

void SelectionBar::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    arrange();
}

void SelectionBar::fill_studies() {
    study_->clear();
    const auto studies = desk_->studies();
    const std::vector<QString> labels = study_labels({studies.begin(), studies.end()});
    for (std::size_t i = 0; i < studies.size(); ++i) {
        const Study* study = studies[i];
        QString name = labels[i];
        if (study->running()) name += tr(" (running)");
        study_->addItem(name, study->id());
        study_->setItemData(study_->count() - 1, QString::fromStdString(study->path().string()), Qt::ToolTipRole);
    }
    filled_for_ = 0;
    follow();
}

void SelectionBar::fill_sequences(const Study& study) {
    sequence_->clear();
    const std::int64_t count = study.sequences();
    if (count > 1) sequence_->addItem(tr("All %1: mean and deviation").arg(count), -1);
    for (std::int64_t s = 0; s < count; ++s) {
        const auto& sequence = study.tokens("tokens", s);
        sequence_->addItem(tr("%1: %2 (%3 tokens)").arg(s).arg(first_words(sequence)).arg(sequence.ids.size()),
                           static_cast<int>(s));
    }
}

void SelectionBar::fill_sites(const Study& study) {
    site_->clear();
    for (std::size_t site = 0; site < study.sites().size(); ++site)
        site_->addItem(study.site_name(static_cast<std::int64_t>(site)));
}

void SelectionBar::follow() {
    const Study* study = desk_->current();
    for (QWidget* control :
         {static_cast<QWidget*>(study_), static_cast<QWidget*>(sequence_), static_cast<QWidget*>(site_),
          static_cast<QWidget*>(head_), static_cast<QWidget*>(query_), static_cast<QWidget*>(key_)})
        control->setEnabled(study != nullptr);
    following_ = true;
    if (study) {
        const Selection& selection = desk_->selection();
        if (filled_for_ != study->id()) {
            filled_for_ = study->id();
            fill_sequences(*study);
            fill_sites(*study);
        }
        study_->setCurrentIndex(study_->findData(study->id()));
        sequence_->setCurrentIndex(
            sequence_->findData(selection.sequence ? static_cast<int>(*selection.sequence) : -1));
        site_->setCurrentIndex(static_cast<int>(selection.site));
        const Site& site = study->sites().at(static_cast<std::size_t>(selection.site));
        head_->setRange(0, std::max(0, site.heads - 1));
        head_->setValue(static_cast<int>(selection.head));
        query_->setMaximum(static_cast<int>(study->query_count(selection.sequence, selection.site)) - 1);
        key_->setMaximum(static_cast<int>(study->key_count(selection.sequence, selection.site)) - 1);
        query_->setValue(static_cast<int>(selection.query.value_or(kNoToken)));
        key_->setValue(static_cast<int>(selection.key.value_or(kNoToken)));
    } else {
        filled_for_ = 0;
        sequence_->clear();
        site_->clear();
    }
    following_ = false;
    show_tokens(study);
}

void SelectionBar::show_tokens(const Study* study) {
    const Selection& selection = desk_->selection();
    const auto text = [&](const std::optional<std::int64_t>& token, bool query) {
        if (!study || !token) return QString();
        const auto& tokens = query ? study->query_tokens(selection.one_sequence(), selection.site)
                                   : study->key_tokens(selection.one_sequence(), selection.site);
        const auto& pieces = tokens.pieces;
        const auto index = static_cast<std::size_t>(*token);
        return index < pieces.size() ? QString::fromStdString(figures::visible_token(pieces[index])) : QString();
    };
    query_token_->setText(text(selection.query, true));
    key_token_->setText(text(selection.key, false));
    arrange();
}

}  // namespace headscope::widgets
