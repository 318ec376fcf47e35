// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/sides.h"

#include <QCoreApplication>
#include <algorithm>
#include <utility>
#include <vector>

#include "widgets/training/mixer_style.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kCopies = 8;
constexpr qsizetype kNamedLayers = 8;

QString tr(const char* text) {
    return QCoreApplication::translate("CompareView", text);
}

std::int64_t within(std::int64_t index, std::int64_t size) {
    return std::clamp<std::int64_t>(index, 0, std::max<std::int64_t>(0, size - 1));
}

QString shape_of(const Study& study) {
    std::int64_t most = 0;
    for (const Site& site : study.sites()) most = std::max<std::int64_t>(most, site.heads);
    return tr("%1 layers of up to %2 heads").arg(study.sites().size()).arg(most);
}

}  // namespace

QString CompareSide::name(bool with_head) const {
    QString text = label;
    if (with_head) text += tr(" · %1 · head %2").arg(study->site_title(site)).arg(head);
    if (study->sequences() <= 1) return text;
    return text + (sequence ? tr(" · sequence %1").arg(*sequence) : tr(" · all sequences"));
}

bool CompareSides::open(const Desk& desk) const {
    const auto all = desk.studies();
    const auto there = [&all](const Study* study) { return std::find(all.begin(), all.end(), study) != all.end(); };
    return there(left.study) && there(right.study);
}

CompareSides CompareChoice::sides(const Desk& desk) const {
    const Selection& chosen = desk.selection();
    CompareSide selected{desk.current(), chosen.sequence, chosen.site, chosen.head};
    CompareSide other = selected;
    std::vector<Study*> all = desk.studies();
    std::erase_if(all, [](const Study* one) { return one->sites().empty(); });
    const bool first_selected = !all.empty() && all.front() == selected.study;
    if (!study) {
        if (!all.empty()) other.study = first_selected ? all.back() : all.front();
    } else if (Study* wanted = desk.study(*study); wanted && !wanted->sites().empty()) {
        other.study = wanted;
    }
    if (sequence) other.sequence = sequence;
    if (other.sequence) other.sequence = within(*other.sequence, other.study->sequences());
    other.site = within(site.value_or(other.site), std::ssize(other.study->sites()));
    other.head = within(head.value_or(other.head), other.place().heads);
    const auto labels =
        other.study == selected.study ? study_labels({selected.study}) : study_labels({selected.study, other.study});
    selected.label = labels.front();
    other.label = labels.back();
    const auto place = [&all](const Study* one) { return std::find(all.begin(), all.end(), one); };
    const bool later = place(other.study) < place(selected.study);
    CompareSides sides{selected, other, later != swapped};
    if (sides.selected_right) std::swap(sides.left, sides.right);
    return sides;
}

Reply<TokenLink> TokenLinks::get(const CompareSides& sides, bool queries) {
    const auto stream = [queries](const Site& site) { return queries ? site.query_stream : site.key_stream; };
    const std::string left = stream(sides.left.place()), right = stream(sides.right.place());
    const std::int64_t from = sides.left.one_sequence(), to = sides.right.one_sequence();
    const std::string copied = std::to_string(sides.right.study->id()) + " " + std::to_string(to) + " " + right;
    auto& tokens = copies_[copied];
    if (!tokens) {
        tokens = std::make_shared<const store::SequenceTokens>(sides.right.study->tokens(right, to));
        if (copies_.size() > kCopies)
            std::erase_if(copies_, [&copied](const auto& known) { return known.first != copied; });
    }
    return sides.left.study->ask<TokenLink>(
        "link " + left + " " + std::to_string(from) + " to " + copied, -3, -3,
        [left, from, tokens = copies_[copied]](const store::AnalysisFile& file) {
            const auto& header = file.header();
            const auto& all = left == "tokens" ? header.sequences : header.streams.at(left);
            return std::make_shared<const TokenLink>(link_tokens(all.at(static_cast<std::size_t>(from)), *tokens));
        });
}

bool same_shape(const Study& left, const Study& right, QString* why) {
    const auto same = [](const Site& a, const Site& b) {
        return a.layer == b.layer && a.heads == b.heads && a.stack == b.stack && a.kind == b.kind &&
               a.branch == b.branch;
    };
    const auto &a = left.sites(), &b = right.sites();
    if (std::equal(a.begin(), a.end(), b.begin(), b.end(), same)) return true;
    if (why)
        *why = tr("Heads are compared one by one, which needs the same layers and heads on both sides: left %1, right "
                  "%2. Single maps and texts can still be compared.")
                   .arg(shape_of(left), shape_of(right));
    return false;
}

QString replaced_layers(const Study& left, const Study& right) {
    const auto &a = left.header().mixers, &b = right.header().mixers;
    if (a.size() != b.size()) return {};
    QStringList words;
    std::size_t more = 0;
    for (std::size_t layer = 0; layer < a.size(); ++layer) {
        if (a[layer] == b[layer]) continue;
        if (words.size() == kNamedLayers)
            ++more;
        else
            words << tr("layer %1: %2 on the left, %3 on the right")
                         .arg(QString::number(layer), mixer_title(a[layer]), mixer_title(b[layer]));
    }
    if (words.isEmpty()) return {};
    if (more > 0) words << tr("and %1 more layers").arg(more);
    return tr("Replaced: %1.").arg(words.join(QStringLiteral("; ")));
}

QString link_words(const TokenLink& queries, const TokenLink& keys) {
    if (queries.identical() && keys.identical()) return {};
    using By = figures::TokenAlignment::By;
    if (!queries.any() || !keys.any())
        return tr("No token of the left is one of the right: there is nothing to subtract, and the maps move apart.");
    const By by = queries.identical() ? keys.pairs.by : queries.pairs.by;
    QString text = by == By::place ? tr("One text, two tokenizations: tokens are paired by the characters they cover")
                                   : tr("Two texts: equal tokens are paired in their order");
    const std::int64_t left = std::max(queries.unpaired_left, keys.unpaired_left);
    const std::int64_t right = std::max(queries.unpaired_right, keys.unpaired_right);
    text += left + right == 0
                ? tr("; every token has a partner.")
                : tr("; %1 of %2 on the left and %3 of %4 on the right have no partner (orange at the edge).")
                      .arg(left)
                      .arg(queries.left())
                      .arg(right)
                      .arg(queries.right());
    if (!queries.pairs.complete || !keys.pairs.complete)
        text += tr(" The texts differ so much that not all equal tokens were looked for.");
    return text;
}

}  // namespace headscope::widgets
