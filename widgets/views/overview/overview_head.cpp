// SPDX-License-Identifier: GPL-3.0-or-later
// Texts about one head: the one under the pointer, or the selected one.
#include <QLabel>
#include <cmath>

#include "core/mixers/types/type.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/training/mixer_style.h"
#include "widgets/views/overview/overview.h"
#include "widgets/views/overview/overview_grid.h"
#include "widgets/views/overview/overview_strip.h"
#include "widgets/views/overview/overview_words.h"

namespace headscope::widgets {
namespace {

QString head_text(std::string_view text) {
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// Reason that a site without a matrix lacks a measure.
QString missing_words(const Site& site) {
    return site.has_implicit ? Overview::tr("none: implicit weights have entropy and concentration alone")
                             : Overview::tr("none: this layer has no weights over tokens");
}

}  // namespace

QString Overview::head_name(std::int64_t site, std::int64_t head) const {
    return tr("%1, head %2").arg(study()->site_heading(site)).arg(head);
}

void Overview::show_pointed(std::int64_t site, std::int64_t head) {
    if (!shown()) return;
    const bool pointing = site >= 0;
    if (!pointing) {
        site = selection().site;
        head = selection().head;
    }
    const auto row = row_of(site, head);
    if (!row) {
        pointed_->clear();
        return;
    }
    const workspace::ColumnWords about = table_->words(measure().toStdString());
    const bool added = table_->find_added(measure().toStdString()) != nullptr;
    const bool done = done_[static_cast<std::size_t>(site)];
    const Site& shown_site = study()->sites()[static_cast<std::size_t>(site)];
    const bool missing = !shown_site.has_matrix && std::isnan(cells_.values[*row]);
    const QString value = done && missing      ? (added ? tr("none in the ask file") : missing_words(shown_site))
                          : done               ? value_with_deviation(cells_, *row, about.unit)
                          : study()->running() ? tr("not computed yet")
                                               : tr("not computed: the run ended early");
    pointed_->setText(QStringLiteral("%1 · %2: %3").arg(head_name(site, head), head_text(about.title), value));
    grid_->setToolTip(pointing ? pointed_->text() : QString());
}

void Overview::show_head() {
    const auto row = shown() ? row_of(selection().site, selection().head) : std::nullopt;
    if (!row) {
        strip_->show_head(tr("No head"), {});
        return;
    }
    const Site& site = study()->sites()[static_cast<std::size_t>(selection().site)];
    QString title = head_name(selection().site, selection().head);
    const std::string mixer = study()->mixer(selection().site);
    if (!mixer.empty() && !mixers::is_standard(mixer)) title += QStringLiteral(" · ") + mixer_title(mixer);
    const std::int64_t group = group_of(site);
    if (group > 1) {
        const std::int64_t first = selection().head / group * group;
        title += group == site.heads ? tr(" (all heads of the layer share their keys)")
                 : group == 2        ? tr(" (heads %1 and %2 share their keys)").arg(first).arg(first + 1)
                                     : tr(" (heads %1 to %2 share their keys)").arg(first).arg(first + group - 1);
    }
    const bool done = done_[static_cast<std::size_t>(selection().site)];
    const workspace::HeadSets sets = desk().head_sets().of(*study());
    const workspace::HeadKey key = workspace::key_of(table_->rows[*row]);
    if (sets.is_marked(key)) title = QStringLiteral("★ ") + title;
    QStringList names;
    for (const std::string& name : sets.sets_with(key)) names << QString::fromStdString(name);
    if (!names.isEmpty()) title += tr(" · in %1").arg(names.join(QStringLiteral(", ")));
    strip_->show_note(QString::fromStdString(sets.note(key)));
    strip_->show_head(title, done ? words_of_head(*table_, *row) : QStringList{tr("not computed yet")});
}

}  // namespace headscope::widgets
