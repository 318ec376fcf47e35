// SPDX-License-Identifier: GPL-3.0-or-later
// What a comparison of heads says in words: the loss, heads that were switched off, what is missing, one head.
#include <QLabel>
#include <algorithm>
#include <cmath>
#include <limits>

#include "widgets/text/banner.h"
#include "widgets/views/compare/heads_page.h"
#include "widgets/views/overview/overview_grid.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kNamed = 10;

Reply<std::optional<double>> mean_loss(Study& study, std::optional<std::int64_t> sequence) {
    return study.ask<std::optional<double>>(
        "mean loss:" + std::to_string(sequence.value_or(-1)), sequence.value_or(-1), -2,
        [sequence](const store::AnalysisFile& file) {
            return std::make_shared<const std::optional<double>>(workspace::mean_loss(file, sequence));
        });
}

}  // namespace

QString CompareHeads::loss_words(const CompareSides& sides) const {
    const auto before = mean_loss(*sides.left.study, sides.left.sequence),
               after = mean_loss(*sides.right.study, sides.right.sequence);
    if (!before || !after) return tr("Mean loss: reading…");
    const auto& [a, b] = std::pair(*before, *after);
    const auto number = [](const std::optional<double>& loss) {
        return loss ? QString::number(*loss, 'f', 4) : tr("none");
    };
    const QString text = tr("Mean loss: baseline <b>%1</b>, compared <b>%2</b>").arg(number(a), number(b));
    if (!a || !b) return text;
    const QString change = QString::number(std::abs(*b - *a), 'f', 4);
    if (change.toDouble() == 0) return text + tr(": no change");
    return text + (*b > *a ? tr(": costs <b>+%1</b> nats") : tr(": saves <b>−%1</b> nats")).arg(change);
}

QString CompareHeads::switched_words() const {
    const auto names = [this](const std::vector<workspace::SwitchedOffHead>& heads) {
        QStringList list;
        for (const auto& head : heads) {
            if (static_cast<std::size_t>(list.size()) == kNamed) {
                list << tr("and %1 more").arg(heads.size() - kNamed);
                break;
            }
            list << tr("%1 · %2 (%3)")
                        .arg(sides_.left.study->site_name(head.site), QString::number(head.head),
                             head.mean ? tr("mean") : tr("zero"));
        }
        return list.join(QStringLiteral(", "));
    };
    QStringList parts;
    if (const QString replaced = replaced_layers(*sides_.left.study, *sides_.right.study); !replaced.isEmpty())
        parts << replaced;
    if (!off_left_.empty()) parts << tr("Switched off on the left: %1.").arg(names(off_left_));
    if (!off_right_.empty()) parts << tr("Switched off on the right: %1.").arg(names(off_right_));
    const auto others = [](const Study* study) { return workspace::other_interventions(study->header()); };
    if (const auto count = others(sides_.left.study); count > 0)
        parts << tr("Other interventions on the left: %1.").arg(count);
    if (const auto count = others(sides_.right.study); count > 0)
        parts << tr("Other interventions on the right: %1.").arg(count);
    if (off_left_.empty() && off_right_.empty()) return parts.join(QLatin1Char(' '));
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const auto* off : {&off_left_, &off_right_})
        for (const auto& head : *off) first = std::min(first, head.site);
    std::size_t later = 0, changed = 0;
    for (std::size_t row = 0; row < shown_.left->rows.size(); ++row) {
        if (shown_.left->rows[row].site <= first) continue;
        ++later;
        if (shown_.changes->score[row] > 0) ++changed;
    }
    if (later > 0)
        parts << tr("Their output is missing after %1: %3 of the %2 heads there differ.")
                     .arg(sides_.left.study->site_title(first))
                     .arg(later)
                     .arg(changed);
    return parts.join(QLatin1Char(' '));
}

void CompareHeads::show_words(const CompareSides& sides) {
    loss_->setText(loss_words(sides));
    const QString switched = switched_words();
    switched_->setText(switched);
    switched_->setVisible(!switched.isEmpty());
    QStringList notes;
    const auto finished = std::count(done_.begin(), done_.end(), true);
    if (finished < std::ssize(done_))
        notes << (sides.left.study->running() || sides.right.study->running()
                      ? tr("%1 of %2 layers are there on both sides so far; more appear as the run goes on.")
                      : tr("%1 of %2 layers are there on both sides: a run ended before."))
                     .arg(finished)
                     .arg(done_.size());
    if (!sides.left.sequence || !sides.right.sequence)
        notes << tr("Means over sequences are compared; the deviations are in the line below the map.");
    const auto tokens = [](const CompareSide& side) { return side.keys().ids.size(); };
    if (sides.left.sequence && sides.right.sequence && tokens(sides.left) != tokens(sides.right))
        notes << tr("The texts have %1 and %2 tokens: many measures depend on the length.")
                     .arg(tokens(sides.left))
                     .arg(tokens(sides.right));
    banner_->set(notes.join(QLatin1Char(' ')));
}

void CompareHeads::show_pointed(std::int64_t site, std::int64_t head) {
    if (!shown_) return;
    const bool pointing = site >= 0;
    if (!pointing) {
        site = desk_->selection().site;
        head = desk_->selection().head;
    }
    const auto row = row_of(site, head);
    if (!row) return pointed_->clear();
    const workspace::HeadChanges& changes = *shown_.changes;
    QString text = tr("%1, head %2").arg(sides_.left.study->site_heading(site)).arg(head);
    const std::size_t measure = measure_index().value_or(changes.largest[*row]);
    if (!done_[static_cast<std::size_t>(site)])
        text += tr(" · not on both sides yet");
    else if (measure != workspace::HeadChanges::kNoMeasure)
        text += tr(" · %1: left %2, right %3, difference %4")
                    .arg(measure_title(changes.measures[measure]), shown_.left_text(*row, measure),
                         shown_.right_text(*row, measure), shown_.difference_text(*row, measure));
    if (std::isfinite(changes.score[*row]))
        text += tr(" · all measures: %1 deviations").arg(changes.score[*row], 0, 'f', 2);
    pointed_->setText(text);
    grid_->setToolTip(pointing ? text : QString());
}

}  // namespace headscope::widgets
