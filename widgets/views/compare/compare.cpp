// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/compare/compare.h"

#include <QAbstractButton>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>
#include <array>

#include "core/base/text/text.h"
#include "core/figures/recipe.h"
#include "widgets/desk/presence.h"
#include "widgets/plots/map/map_plot.h"
#include "widgets/views/compare/heads_page.h"
#include "widgets/views/compare/maps_page.h"
#include "widgets/views/compare/text_page.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

constexpr std::array kModes{"maps", "heads", "text"};

}  // namespace

CompareView::CompareView(Desk* desk, QWidget* parent)
    : View(desk, parent),
      bar_(new CompareBar(content())),
      pages_(new QStackedWidget(content())),
      maps_(new CompareMaps(desk, pages_)),
      heads_(new CompareHeads(desk, pages_)),
      text_(new CompareText(desk, pages_)),
      note_(new QWidget(pages_)),
      note_title_(new QLabel(note_)),
      note_text_(new QLabel(note_)) {
    make_note();
    for (QWidget* page : std::initializer_list<QWidget*>{maps_, heads_, text_, note_}) pages_->addWidget(page);
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addWidget(bar_);
    column->addWidget(pages_, 1);
    bar_->set_mode(mode_);
    connect(bar_, &CompareBar::mode_chosen, this, &CompareView::set_mode);
    connect(bar_, &CompareBar::choice_changed, this, &CompareView::set_choice);
    connect(bar_, &CompareBar::swap_wanted, this, &CompareView::swap);
    connect(heads_, &CompareHeads::opened, this, [this] { set_mode(CompareMode::maps); });
    connect(maps_, &CompareMaps::state_changed, this, &View::state_changed);
    connect(heads_, &CompareHeads::state_changed, this, &View::state_changed);
    connect(text_, &CompareText::state_changed, this, &View::state_changed);
    make_commands();
}

void CompareView::make_commands() {
    const auto of_bar = [this](const char* name, const QString& text) {
        add_command(bar_->findChild<QAbstractButton*>(QLatin1String(name)), text);
    };
    of_bar("compare_swap", tr("Swap sides"));
    of_bar("compare_maps", tr("Compare maps"));
    of_bar("compare_heads", tr("Compare all heads"));
    of_bar("compare_text", tr("Compare texts"));
    for (QPushButton* button : note_->findChildren<QPushButton*>()) add_command(button, button->text());
    const auto pages = [this] { return pages_->currentWidget() == maps_; };
    add_command(
        "compare_zoom_all", tr("Show the whole maps"), {}, tr("As 0 does"),
        [this] { maps_->plot(CompareMaps::left)->show_all(); }, pages);
}

void CompareView::make_note() {
    QFont large = note_title_->font();
    large.setPointSizeF(large.pointSizeF() * 1.3);
    note_title_->setFont(large);
    note_title_->setObjectName(QStringLiteral("compare_note"));
    auto* column = new QVBoxLayout(note_);
    column->addStretch(2);
    for (QLabel* label : {note_title_, note_text_}) {
        label->setAlignment(Qt::AlignHCenter);
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        column->addWidget(label);
    }
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    const auto add = [&](const char* name, const QString& text, const QString& tip, auto act) {
        auto* button = new QPushButton(text, note_);
        button->setObjectName(QLatin1String(name));
        button->setToolTip(tip);
        connect(button, &QPushButton::clicked, this, act);
        buttons->addWidget(button);
    };
    add("compare_next_head", tr("Compare with the next head"), tr("The head beside the selected one, of this layer"),
        [this] {
            const auto now = sides();
            if (!now) return;
            CompareChoice choice = choice_;
            choice.study = choice.study.value_or(0);
            choice.head = (now->selected().head + 1) % std::max(1, now->selected().place().heads);
            set_choice(choice);
            if (mode_ == CompareMode::heads) set_mode(CompareMode::maps);
        });
    add("compare_next_layer", tr("Compare with the next layer"), tr("The same head of the layer behind"), [this] {
        const auto now = sides();
        if (!now) return;
        CompareChoice choice = choice_;
        choice.study = choice.study.value_or(0);
        choice.site = (now->selected().site + 1) % std::ssize(now->selected().study->sites());
        set_choice(choice);
        if (mode_ == CompareMode::heads) set_mode(CompareMode::maps);
    });
    buttons->addStretch();
    column->addLayout(buttons);
    column->addStretch(3);
}

std::optional<CompareSides> CompareView::sides() const {
    if (!study() || study()->sites().empty()) return std::nullopt;
    return choice_.sides(desk());
}

bool CompareView::note_for(const CompareSides& sides) {
    if (!sides.same_text() || (mode_ != CompareMode::heads && !sides.same_heads())) return false;
    const bool alone = desk().studies().size() <= 1;
    note_title_->setText(mode_ == CompareMode::heads ? tr("Left and right are the same analysis of the same text")
                                                     : tr("Left and right are the same head of the same text"));
    QString text = alone ? tr("Open another analysis, from the start page or by dropping one onto this window: another "
                              "model on this text, another text, or a run with heads switched off (Overview).")
                         : tr("Choose another analysis above.");
    if (sides.left.study->sequences() > 1)
        text += QLatin1Char(' ') + tr("Another sequence of this one can be chosen above.");
    text += QLatin1Char(' ') + tr("Two heads or two layers of this analysis can be compared as well:");
    note_text_->setText(text);
    return true;
}

void CompareView::refresh() {
    if (notice_without_study()) return;
    if (study()->sites().empty()) return show_notice(tr("This model has no attention heads"));
    if (!wanted_path_.isEmpty()) {
        for (const Study* other : desk().studies()) {
            if (QString::fromStdString(other->path().string()) != wanted_path_) continue;
            choice_.study = other->id();
            wanted_path_.clear();
            break;
        }
    }
    // The chosen analysis is gone.
    if (choice_.study.value_or(0) != 0 && !desk().study(*choice_.study)) choice_.study.reset();
    const CompareSides now = *sides();
    show_content();
    bar_->show_choice(desk(), now, choice_);
    if (note_for(now)) return pages_->setCurrentWidget(note_);
    switch (mode_) {
        case CompareMode::maps:
            pages_->setCurrentWidget(maps_);
            return maps_->show_sides(now);
        case CompareMode::heads:
            pages_->setCurrentWidget(heads_);
            return heads_->show_sides(now);
        case CompareMode::text:
            pages_->setCurrentWidget(text_);
            return text_->show_sides(now);
    }
}

void CompareView::set_mode(CompareMode mode) {
    bar_->set_mode(mode);
    if (mode == mode_) return;
    mode_ = mode;
    refresh_later();
    Q_EMIT state_changed();
}

void CompareView::set_choice(const CompareChoice& choice) {
    wanted_path_.clear();
    if (choice == choice_) return;
    choice_ = choice;
    refresh_later();
    Q_EMIT state_changed();
}

/// The other side becomes the baseline; the selection stays.
void CompareView::swap() {
    const auto now = sides();
    if (!now || now->left == now->right) return;
    CompareChoice choice = choice_;
    choice.study = now->left.study == now->right.study ? 0 : now->other().study->id();
    choice.swapped = !choice.swapped;
    set_choice(choice);
}

void CompareView::keyPressEvent(QKeyEvent* event) {
    const auto held = event->modifiers() & ~Qt::KeypadModifier;
    MapPlot* plot = maps_->plot(CompareMaps::left);
    const bool maps = mode_ == CompareMode::maps && pages_->currentWidget() == maps_;
    if (maps && (held == Qt::NoModifier || held == Qt::ShiftModifier)) {
        switch (event->key()) {
            case Qt::Key_Plus:
            case Qt::Key_Equal:
                return plot->zoom(kZoomStep);
            case Qt::Key_Minus:
            case Qt::Key_Underscore:
                return plot->zoom(1 / kZoomStep);
            case Qt::Key_0:
                return plot->show_all();
            default:
                break;
        }
    }
    if (maps && held == Qt::ShiftModifier) {
        switch (event->key()) {
            case Qt::Key_Left:
                return plot->pan(-kPanStep, 0);
            case Qt::Key_Right:
                return plot->pan(kPanStep, 0);
            case Qt::Key_Up:
                return plot->pan(0, -kPanStep);
            case Qt::Key_Down:
                return plot->pan(0, kPanStep);
            default:
                break;
        }
    }
    View::keyPressEvent(event);
}

QJsonObject CompareView::state() const {
    QJsonObject state;
    state[QLatin1String("mode")] = QLatin1String(kModes[static_cast<std::size_t>(mode_)]);
    // Numbers of studies are of one session, paths are of all.
    if (!wanted_path_.isEmpty())
        state[QLatin1String("right")] = wanted_path_;
    else if (const Study* right = desk().study(choice_.study.value_or(0)))
        state[QLatin1String("right")] = QString::fromStdString(right->path().string());
    else if (choice_.study)
        state[QLatin1String("right")] = QString(QLatin1String(""));
    const auto put = [&state](const char* name, const std::optional<std::int64_t>& value) {
        if (value) state[QLatin1String(name)] = static_cast<double>(*value);
    };
    put("sequence", choice_.sequence);
    put("site", choice_.site);
    put("head", choice_.head);
    if (choice_.swapped) state[QLatin1String("swapped")] = true;
    state[QLatin1String("maps")] = maps_->state();
    state[QLatin1String("heads")] = heads_->state();
    state[QLatin1String("text")] = text_->state();
    return state;
}

void CompareView::restore(const QJsonObject& state) {
    for (std::size_t i = 0; i < kModes.size(); ++i)
        if (state[QLatin1String("mode")].toString() == QLatin1String(kModes[i])) set_mode(static_cast<CompareMode>(i));
    const auto take = [&state](const char* name) {
        const double value = state[QLatin1String(name)].toDouble(-1);
        const bool sensible = value >= 0 && value < 1e9;
        return sensible ? std::optional(static_cast<std::int64_t>(value)) : std::nullopt;
    };
    choice_ = {};
    choice_.sequence = take("sequence");
    choice_.site = take("site");
    choice_.head = take("head");
    choice_.swapped = state[QLatin1String("swapped")].toBool();
    wanted_path_.clear();
    const QJsonValue right = state[QLatin1String("right")];
    if (right.isString()) {
        wanted_path_ = right.toString();
        if (wanted_path_.isEmpty()) choice_.study = 0;
    }
    maps_->restore(state[QLatin1String("maps")].toObject());
    heads_->restore(state[QLatin1String("heads")].toObject());
    text_->restore(state[QLatin1String("text")].toObject());
    refresh_later();
}

/// No recipe colours two texts by their difference: both by their own column mass.
std::optional<FigureRequest> CompareView::text_figure(const CompareSides& now) const {
    // It takes one sequence, layer and head of two files.
    if (!now.same_heads() || now.left.study == now.right.study || now.left.sequence != now.right.sequence)
        return std::nullopt;
    FigureRequest wish;
    wish.recipe = "text";
    wish.studies = {now.left.study->id(), now.right.study->id()};
    wish.options.sequence = now.left.one_sequence();
    wish.options.layer = now.left.place().layer;
    if (!text_->of_layer()) wish.options.head = now.left.head;
    wish.options.tower = figures::tower_of(now.left.study->sites(), now.left.site);
    wish.options.colour = figures::TextColour::mass;
    wish.note =
        tr("A figure shows both texts, each by how much its tokens are looked at; the window colors by the "
           "difference of the two.");
    return wish;
}

std::optional<FigureRequest> CompareView::heads_figure(const CompareSides& now) const {
    if (!same_shape(*now.left.study, *now.right.study, nullptr)) return std::nullopt;
    if (now.left.sequence.has_value() != now.right.sequence.has_value()) return std::nullopt;
    FigureRequest wish;
    wish.options.sequence = now.left.sequence;
    wish.options.all_sequences = !now.left.sequence;
    if (now.left.sequence != now.right.sequence) wish.options.other_sequence = now.right.sequence;
    wish.options.indicator = heads_->measure().toStdString();
    if (heads_->measure().isEmpty())
        wish.note =
            tr("A figure shows the difference of each indicator; the window shows how far a head differs in all of "
               "them together.");
    return wish;
}

std::optional<FigureRequest> CompareView::maps_figure(const CompareSides& now) const {
    const auto tower = [](const CompareSide& side) { return figures::tower_of(side.study->sites(), side.site); };
    if (!now.left.study->has_maps(now.left.site) || !now.right.study->has_maps(now.right.site) ||
        tower(now.left) != tower(now.right) || now.left.place().kind != now.right.place().kind)
        return std::nullopt;
    FigureRequest wish;
    wish.options.sequence = now.left.one_sequence();
    if (now.left.one_sequence() != now.right.one_sequence()) wish.options.other_sequence = now.right.one_sequence();
    wish.options.layer = now.left.place().layer;
    wish.options.head = now.left.head;
    if (!now.same_heads()) {
        wish.options.other_layer = now.right.place().layer;
        wish.options.other_head = now.right.head;
    }
    wish.options.tower = tower(now.left);
    const bool recurrent = now.left.place().has_implicit || now.right.place().has_implicit;
    if (maps_->look().logits() && !recurrent) wish.options.values = figures::MapValues::logits;
    wish.options.sides = true;
    wish.options.scale = maps_->scale();
    const MapPlot* plot = maps_->plot(CompareMaps::left);
    const maps::Cells cells = plot->shown();
    if (cells.queries() < plot->content().queries) {
        wish.options.from_query = cells.q_begin;
        wish.options.to_query = cells.q_end;
    }
    if (cells.keys() < plot->content().keys) {
        wish.options.from_key = cells.k_begin;
        wish.options.to_key = cells.k_end;
    }
    return wish;
}

std::optional<FigureRequest> CompareView::figure() const {
    const auto now = sides();
    if (!now || (now->same_text() && (mode_ != CompareMode::maps || now->same_heads()))) return std::nullopt;
    if (mode_ == CompareMode::text) {
        const auto wish = text_figure(*now);
        return wish ? std::optional(named(*wish)) : std::nullopt;
    }
    auto wish = mode_ == CompareMode::heads ? heads_figure(*now) : maps_figure(*now);
    if (!wish) return wish;
    wish->recipe = "difference";
    wish->studies = {now->left.study->id()};
    if (now->left.study != now->right.study) wish->studies.push_back(now->right.study->id());
    return named(*wish);
}

const ViewKind kCompare{"compare",
                        "Compare",
                        "What differs: two models on one text, two texts, two heads, before and after switching off.",
                        [](Desk* desk, QWidget* parent) -> View* { return new CompareView(desk, parent); },
                        ViewGroup::compare,
                        with_sites};

}  // namespace headscope::widgets
