// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/text_page.h"

#include <QComboBox>
#include <QJsonObject>
#include <QLabel>
#include <QPainter>
#include <QSplitter>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <limits>

#include "widgets/panels/token_weights.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/banner.h"
#include "widgets/text/colour_key.h"
#include "widgets/text/flow_layout.h"

// g++ 12 takes the number in an empty std::optional for one that is used.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace headscope::widgets {
namespace {

constexpr float kNoMass = std::numeric_limits<float>::quiet_NaN();
constexpr int kNarrowTexts = 760;  ///< pixels: below, one text stands under the other

/// One head, or with `head` -1 the mean over the heads of a layer.
std::shared_ptr<const TokenMass> read_mass(const store::AnalysisFile& file, std::int64_t sequence, std::int64_t site,
                                           std::int64_t head) {
    const store::Values all = file.column_mass(sequence, site);
    auto mass = std::make_shared<TokenMass>();
    if (all.shape.size() != 2) return mass;
    const auto length = static_cast<std::size_t>(all.shape[1]);
    std::vector<std::vector<float>> rows;
    for (std::int64_t h = 0; h < all.shape[0]; ++h) {
        if (head >= 0 && h != head) continue;
        const auto from = all.data.begin() + h * all.shape[1];
        rows.emplace_back(from, from + all.shape[1]);
    }
    std::vector<const std::vector<float>*> places;
    for (const auto& row : rows) places.push_back(&row);
    mass->values = mean_of(places);
    mass->values.resize(length, kNoMass);
    return mass;
}

/// NaN for -1, no token.
float value_at(const std::shared_ptr<const TokenMass>& mass, std::int64_t at) {
    if (!mass || at < 0 || at >= std::ssize(mass->values)) return kNoMass;
    return mass->values[static_cast<std::size_t>(at)];
}

QString number(float value) {
    return std::isnan(value) ? QStringLiteral("–")
                             : number_label(QString::number(static_cast<double>(value), 'g', 4).toDouble());
}

}  // namespace

std::int64_t bytes_of(const TokenMass& mass) {
    return static_cast<std::int64_t>(mass.values.size() * sizeof(float));
}

void PairedTextArea::set_partners(const std::vector<std::int64_t>& partners) {
    alone_.clear();
    for (std::size_t i = 0; i < partners.size(); ++i)
        if (partners[i] < 0) alone_.push_back(static_cast<std::int64_t>(i));
    viewport()->update();
}

void PairedTextArea::changeEvent(QEvent* event) {
    TokenTextArea::changeEvent(event);
    viewport()->update();
}

void PairedTextArea::paintEvent(QPaintEvent* event) {
    TokenTextArea::paintEvent(event);
    if (!text() || alone_.empty()) return;
    const auto above = [this](std::int64_t token) {
        if (token >= std::ssize(text()->tokens)) return false;
        const QRect rect = token_rect(token);
        return !rect.isEmpty() && rect.bottom() < 0;
    };
    QPainter painter(viewport());
    // Dots, not dashes, and no brighter than the words: the colours are what the page is about.
    QPen pen(palette().color(QPalette::PlaceholderText), 1.6);
    pen.setCapStyle(Qt::RoundCap);
    pen.setDashPattern({0.01, 2.2});
    painter.setPen(pen);
    painter.setRenderHint(QPainter::Antialiasing);
    for (auto at = std::partition_point(alone_.begin(), alone_.end(), above); at != alone_.end(); ++at) {
        if (*at >= std::ssize(text()->tokens)) return;
        const QRect rect = token_rect(*at);
        if (rect.isEmpty()) continue;
        if (rect.top() > viewport()->height()) return;
        painter.drawLine(rect.left() + 1, rect.bottom(), rect.right() - 1, rect.bottom());
    }
}

CompareText::CompareText(Desk* desk, QWidget* parent) : QWidget(parent), desk_(desk), theme_(desk->theme()) {
    const auto combo = [this](const char* name, const QString& title, const QString& tip) {
        auto* box = new QComboBox(this);
        box->setObjectName(QLatin1String(name));
        box->setAccessibleName(title);
        box->setToolTip(tip);
        return box;
    };
    scope_ = combo("compare_scope", tr("Heads"), tr("One head, or the mean over those of its layer"));
    scope_->addItem(tr("This head"), QStringLiteral("head"));
    scope_->addItem(tr("Mean of the layer"), QStringLiteral("layer"));
    scale_ = combo("compare_text_scale", tr("Color scale"), tr("How differences become colors"));
    scale_->addItem(tr("Square root"), QStringLiteral("sqrt"));
    scale_->addItem(tr("Linear"), QStringLiteral("linear"));
    colours_ = new ColourKey(this);
    banner_ = new Banner(this);
    split_ = new QSplitter(Qt::Horizontal, this);
    split_->setChildrenCollapsible(false);
    for (std::size_t i = 0; i < 2; ++i) {
        auto* panel = new QWidget(split_);
        auto* column = new QVBoxLayout(panel);
        column->setContentsMargins(0, 0, 0, 0);
        column->setSpacing(2);
        titles_[i] = new QLabel(panel);
        titles_[i]->setTextFormat(Qt::PlainText);
        titles_[i]->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
        areas_[i] = new PairedTextArea(panel);
        areas_[i]->setObjectName(i == 0 ? QStringLiteral("left_text") : QStringLiteral("right_text"));
        areas_[i]->setAccessibleName(i == 0 ? tr("Left text, colored by the difference")
                                            : tr("Right text, colored by the difference"));
        areas_[i]->set_description([this, i](std::int64_t token) { return describe(i, token); });
        column->addWidget(titles_[i]);
        column->addWidget(areas_[i], 1);
        connect(areas_[i], &TokenTextArea::clicked, this, [this, i](qint64 token) { choose(i, token); });
        connect(areas_[i], &TokenTextArea::stepped, this, [this](int tokens) {
            const std::int64_t from = desk_->selection_in_one().key.value_or(0);
            desk_->select_tokens(desk_->selection_in_one().query, std::max<std::int64_t>(0, from + tokens));
        });
        connect(areas_[i], &TokenTextArea::pointed, this, [this, i](qint64 token) {
            const QString hint = tr("Dotted: no partner in the other text · Click: choose a token");
            pointed_->setText(token < 0 ? hint : describe(i, token).replace(QLatin1Char('\n'), QStringLiteral(" · ")));
        });
    }
    pointed_ = new QLabel(tr("Dotted: no partner in the other text · Click: choose a token"), this);
    pointed_->setObjectName(QStringLiteral("compare_token"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    auto* tools = new FlowLayout;
    for (QWidget* tool : std::initializer_list<QWidget*>{scope_, scale_, colours_}) tools->addWidget(tool);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addLayout(tools);
    column->addWidget(banner_);
    column->addWidget(split_, 1);
    column->addWidget(pointed_);
    connect(desk, &Desk::study_gone, this, [this] {
        if (!shown_.sides.open(*desk_)) shown_ = {};
    });
    connect(scope_, &QComboBox::currentIndexChanged, this, [this] {
        if (shown_.sides.left.study) show_sides(shown_.sides);
        Q_EMIT state_changed();
    });
    connect(scale_, &QComboBox::currentIndexChanged, this, [this] {
        show_values();
        Q_EMIT state_changed();
    });
}

void CompareText::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    const auto wanted = width() < kNarrowTexts ? Qt::Vertical : Qt::Horizontal;
    if (split_->orientation() != wanted) split_->setOrientation(wanted);
    const int half = (wanted == Qt::Vertical ? split_->height() : split_->width()) / 2;
    split_->setSizes({half, half});
}

bool CompareText::of_layer() const {
    return scope_->currentIndex() == 1;
}

void CompareText::show_sides(const CompareSides& sides) {
    Shown next;
    next.sides = sides;
    next.layer = of_layer();
    failure_.clear();
    const auto take = [this](const auto& reply) {
        if (!reply && !reply.failure.isEmpty()) failure_ = reply.failure;
        return reply.value;
    };
    const std::array both{sides.left, sides.right};
    for (std::size_t i = 0; i < 2; ++i) {
        const CompareSide& side = both[i];
        const std::int64_t s = side.one_sequence(), head = next.layer ? -1 : side.head;
        next.texts[i] = take(shown_text(*side.study, side.place().key_stream, s));
        if (!side.done()) continue;
        next.mass[i] = take(side.study->ask<TokenMass>(
            "token mass:" + std::to_string(s) + ":" + std::to_string(side.site) + ":" + std::to_string(head), s,
            side.site,
            [s, site = side.site, head](const store::AnalysisFile& file) { return read_mass(file, s, site, head); }));
    }
    next.link = take(links_.keys(sides));
    const bool other_theme = theme_.dark != desk_->theme().dark;
    theme_ = desk_->theme();
    if (!(next == shown_) || other_theme) {
        shown_ = std::move(next);
        for (std::size_t i = 0; i < 2; ++i) {
            areas_[i]->set_theme(theme_);
            if (shown_.texts[i]) areas_[i]->set_text(shown_.texts[i]);
            const CompareSide& side = i == 0 ? sides.left : sides.right;
            const QString title = (i == 0 ? tr("Baseline: %1") : tr("Compared: %1")).arg(side.name(!shown_.layer)) +
                                  (shown_.layer ? tr(" · %1").arg(side.study->site_title(side.site)) : QString());
            titles_[i]->setText(title);
            titles_[i]->setToolTip(title);
        }
        if (shown_.link) {
            areas_[0]->set_partners(shown_.link->pairs.to_b);
            areas_[1]->set_partners(shown_.link->pairs.to_a);
        }
        show_values();
    }
    show_chosen();
    show_message();
}

void CompareText::show_values() {
    std::array<std::vector<float>, 2> values;
    double most = 0;
    const bool ready = shown_.link && shown_.mass[0] && shown_.mass[1];
    for (std::size_t i = 0; ready && i < 2; ++i) {
        if (!shown_.texts[i]) continue;
        for (std::int64_t token = 0; token < std::ssize(shown_.texts[i]->tokens); ++token) {
            const std::int64_t left = i == 0 ? token : shown_.link->to_left(token).value_or(-1);
            const std::int64_t right = i == 1 ? token : shown_.link->to_right(token).value_or(-1);
            values[i].push_back(value_at(shown_.mass[1], right) - value_at(shown_.mass[0], left));
            if (std::isfinite(values[i].back())) most = std::max(most, std::abs(static_cast<double>(values[i].back())));
        }
    }
    figures::ColourScale scale;
    scale.map = figures::ColourMap::diverging;
    scale.scale = scale_->currentIndex() == 0 ? figures::ScaleKind::square_root : figures::ScaleKind::linear;
    scale.maximum = most > 0 ? most : 1;
    scale.minimum = -scale.maximum;
    scale.label = tr("attention received, right − left").toStdString();
    for (std::size_t i = 0; i < 2; ++i) areas_[i]->set_values(values[i], scale);
    colours_->set_scale(scale, theme_);
}

void CompareText::show_chosen() {
    const auto key = desk_->selection_in_one().key;
    const std::size_t own = selected_side(), other = 1 - own;
    const auto partner = !shown_.link ? std::nullopt
                         : own == 0   ? shown_.link->to_right(key)
                                      : shown_.link->to_left(key);
    areas_[own]->set_outlined(key);
    areas_[other]->set_outlined(partner);
    if (key == key_) return;
    key_ = key;
    if (key) areas_[own]->show_token(*key);
    if (partner) areas_[other]->show_token(*partner);
}

void CompareText::choose(std::size_t side, std::int64_t token) {
    const auto key = side == selected_side() ? std::optional(token)
                     : !shown_.link          ? std::nullopt
                     : side == 1             ? shown_.link->to_left(token)
                                             : shown_.link->to_right(token);
    if (!key) {
        Q_EMIT desk_->told(side == 1 ? tr("This token of the right has no partner on the left")
                                     : tr("This token of the left has no partner on the right"));
        return;
    }
    desk_->select_tokens(desk_->selection_in_one().query, key);
}

void CompareText::show_message() {
    QStringList lines;
    if (!failure_.isEmpty()) lines += failure_;
    for (const CompareSide* side : {&shown_.sides.left, &shown_.sides.right}) {
        if (side->done()) continue;
        const QString line = (side->study->running() ? tr("%1: %2 is not computed yet.")
                                                     : tr("%1: %2 was not computed: the run ended before it."))
                                 .arg(side->name(false), side->study->site_title(side->site));
        if (!lines.contains(line)) lines += line;
    }
    if (shown_.link && !shown_.link->any())
        lines += tr("No token of the left is one of the right: nothing can be colored.");
    for (const CompareSide* side : {&shown_.sides.left, &shown_.sides.right})
        if (!side->sequence && side->study->sequences() > 1) {
            lines += tr("All sequences are chosen: texts show sequence 0.");
            break;
        }
    if (shown_.link && shown_.link->any() && shown_.link->left() != shown_.link->right())
        lines += tr("The texts have %1 and %2 tokens: the more there are, the less each gets.")
                     .arg(shown_.link->left())
                     .arg(shown_.link->right());
    banner_->set(lines.join(QLatin1Char(' ')));
}

QString CompareText::describe(std::size_t side, std::int64_t token) const {
    const CompareSide& own = side == 0 ? shown_.sides.left : shown_.sides.right;
    if (token < 0 || !own.study) return {};
    const auto left = side == 0 ? std::optional(token) : shown_.link ? shown_.link->to_left(token) : std::nullopt;
    const auto right = side == 1 ? std::optional(token) : shown_.link ? shown_.link->to_right(token) : std::nullopt;
    QString text = tr("‘%1’ · token %2").arg(token_label(own.keys(), token, 60), QString::number(token));
    if (!left || !right) return text + tr("\nno partner in the other text");
    const float a = value_at(shown_.mass[0], *left), b = value_at(shown_.mass[1], *right);
    text += tr("\nattention received: left %1, right %2").arg(number(a), number(b));
    if (std::isnan(a) || std::isnan(b)) return text;
    return text + tr(", difference %1%2").arg(b > a ? QStringLiteral("+") : QString(), number(b - a));
}

QJsonObject CompareText::state() const {
    return {{"scope", scope_->currentData().toString()}, {"scale", scale_->currentData().toString()}};
}

void CompareText::restore(const QJsonObject& state) {
    const auto take = [&state](QComboBox* box, const char* name) {
        const int index = box->findData(state[QLatin1String(name)].toString());
        if (index >= 0) box->setCurrentIndex(index);
    };
    take(scope_, "scope");
    take(scale_, "scale");
}

}  // namespace headscope::widgets
