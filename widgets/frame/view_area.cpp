// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/frame/view_area.h"

#include <QApplication>
#include <QButtonGroup>
#include <QFrame>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QMenu>
#include <QPainter>
#include <QScrollArea>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/frame/tab_button.h"
#include "widgets/text/flow_layout.h"
#include "widgets/views/stepper/step_source.h"
#include "widgets/views/tensors/tensor_source.h"

namespace headscope::widgets {
namespace {

constexpr QSize kLeastPage(300, 220);
constexpr int kLeastPane = 140;  ///< pixels of one of two views
const QString kMapName = QStringLiteral("map"), kOnTextName = QStringLiteral("on_text");

const char* group_name(ViewGroup group) {
    constexpr const char* kNames[kViewGroups] = {"heads",   "map",  "text", "distributions", "layers",  "asked",
                                                 "compare", "more", "job",  "runs",          "results", "cost"};
    return kNames[static_cast<int>(group)];
}

/// Its picture is two halves of a window, in the color of text.
class SplitButton final : public QToolButton {
public:
    explicit SplitButton(QWidget* parent) : QToolButton(parent) { draw(); }

protected:
    void changeEvent(QEvent* event) override {
        QToolButton::changeEvent(event);
        if (event->type() == QEvent::PaletteChange) draw();
    }

private:
    void draw() {
        QPixmap picture(32, 32);
        picture.fill(Qt::transparent);
        QPainter painter(&picture);
        painter.setPen(QPen(palette().color(QPalette::WindowText), 2));
        painter.drawRect(4, 6, 24, 20);
        painter.drawLine(16, 6, 16, 26);
        setIcon(picture);
    }
};

QScrollArea* make_scroll(View* view, const QString& name) {
    auto* scroll = new QScrollArea;
    scroll->setObjectName(QStringLiteral("scroll_") + name);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setMinimumSize(1, 1);
    scroll->setWidget(view);
    return scroll;
}

}  // namespace

QString ViewArea::group_title(ViewGroup group) {
    switch (group) {
        case ViewGroup::heads:
            return tr("Heads");
        case ViewGroup::map:
            return tr("Map");
        case ViewGroup::text:
            return tr("Text");
        case ViewGroup::distributions:
            return tr("Distributions");
        case ViewGroup::layers:
            return tr("Layers");
        case ViewGroup::asked:
            return tr("Ask");
        case ViewGroup::compare:
            return tr("Compare");
        case ViewGroup::other:
            return tr("More");
        case ViewGroup::job:
            return tr("Job");
        case ViewGroup::runs:
            return tr("Runs");
        case ViewGroup::results:
            return tr("Results");
        case ViewGroup::cost:
            return tr("Cost");
    }
    return {};
}

ViewArea::ViewArea(Desk* desk, ViewKind::Area area, QWidget* parent) : QWidget(parent), desk_(desk), area_(area) {
    for (const ViewKind* kind : view_kinds()) {
        if (kind->area() != area_) continue;
        kinds_.push_back(kind);
        const QString name = QLatin1String(kind->name);
        View* view = kind->make(desk_, nullptr);
        view->setAccessibleName(tr(kind->title));
        view->setWhatsThis(tr(kind->hint));
        views_[name] = view;
        scrolls_[name] = make_scroll(view, name);
    }
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    build_tabs();
    build_places();
    column->addWidget(tab_row_);
    column->addWidget(view_row_);
    column->addWidget(places_, 1);
    first_ = QLatin1String(kinds_.front()->name);
    place_views();
    area_ == ViewKind::Area::analysis ? follow_analyses() : follow_training();
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) { follow_focus(now); });
    update_tabs();
}

void ViewArea::follow_analyses() {
    connect(desk_, &Desk::studies_changed, this, &ViewArea::update_tabs);
    connect(desk_, &Desk::study_gone, this, &ViewArea::update_tabs);
    connect(&desk_->asks(), &AskShelf::changed, this, &ViewArea::update_tabs);
    connect(desk_, &Desk::selection_changed, this, [this] {
        if (std::exchange(study_, desk_->selection().study) != desk_->selection().study) update_tabs();
    });
    const auto follow = [this](auto source, auto models_changed, auto another_source) {
        const auto join = [this, source, models_changed] {
            if (auto* now = (desk_->*source)()) connect(now, models_changed, this, &ViewArea::update_tabs);
            update_tabs();
        };
        connect(desk_, another_source, this, join);
        join();
    };
    follow(&Desk::tensors, &TensorSource::models_changed, &Desk::tensors_changed);
    follow(&Desk::stepper, &StepSource::models_changed, &Desk::stepper_changed);
}

void ViewArea::follow_training() {
    connect(&desk_->runs(), &RunShelf::runs_changed, this, &ViewArea::update_tabs);
    connect(&desk_->evaluations(), &EvaluationShelf::changed, this, &ViewArea::update_tabs);
    connect(&desk_->evaluations(), &EvaluationShelf::evaluating_changed, this, &ViewArea::update_tabs);
}

void ViewArea::build_tabs() {
    tab_row_ = new QWidget(this);
    view_row_ = new QWidget(this);
    auto* row = new QHBoxLayout(tab_row_);
    row->setContentsMargins(4, 0, 4, 0);
    row->setSpacing(2);
    auto* flow = new FlowLayout(nullptr, 2);
    auto* views = new FlowLayout(view_row_, 2);
    views->setContentsMargins(4, 2, 4, 2);
    auto* exclusive = new QButtonGroup(this);
    auto* exclusive_views = new QButtonGroup(this);
    const auto add_group = [&](ViewGroup group) {
        auto* button = new TabButton(group_title(group), TabButton::Row::groups, tab_row_);
        button->setObjectName(QStringLiteral("group_") + QLatin1String(group_name(group)));
        exclusive->addButton(button);
        flow->addWidget(button);
        groups_[group] = button;
        return button;
    };
    for (const ViewKind* kind : kinds_) {
        const QString name = QLatin1String(kind->name);
        auto* tab = new TabButton(tr(kind->title), TabButton::Row::views, view_row_);
        tab->setObjectName(QStringLiteral("tab_") + name);
        tab->setToolTip(tr(kind->hint));
        exclusive_views->addButton(tab);
        tabs_[name] = tab;
        connect(tab, &QAbstractButton::clicked, this, [this, name] { show_view(name); });
    }
    // Both rows in the order of groups, not of the list of views.
    for (int at = 0; at < kViewGroups; ++at) {
        const auto group = static_cast<ViewGroup>(at);
        QStringList titles;
        for (const ViewKind* kind : kinds_) {
            if (kind->group != group) continue;
            views->addWidget(tabs_[QLatin1String(kind->name)]);
            titles << tr(kind->title);
        }
        if (titles.isEmpty() || group == ViewGroup::other) continue;
        TabButton* button = add_group(group);
        button->setToolTip(titles.join(QStringLiteral(", ")));
        connect(button, &QAbstractButton::clicked, this, [this, group] { choose_group(group); });
    }
    more_ = add_group(ViewGroup::other);
    more_->setObjectName(QStringLiteral("group_more"));
    more_->setToolTip(tr("All other views, and those without data here"));
    more_->setPopupMode(QToolButton::InstantPopup);
    more_->setMenu(new QMenu(more_));
    more_->menu()->setToolTipsVisible(true);
    connect(more_->menu(), &QMenu::aboutToShow, this, &ViewArea::fill_more);
    row->addLayout(flow, 1);
    corner_ = new QHBoxLayout;
    corner_->setSpacing(2);
    split_ = new SplitButton(tab_row_);
    split_->setObjectName(area_ == ViewKind::Area::analysis ? QStringLiteral("split_views")
                                                            : QStringLiteral("split_training_views"));
    split_->setAccessibleName(tr("Two views side by side"));
    split_->setToolTip(tr("Two views side by side: the map with the text, or any other two"));
    split_->setCheckable(true);
    split_->setAutoRaise(true);
    corner_->addWidget(split_);
    row->addLayout(corner_);
    connect(split_, &QAbstractButton::clicked, this, &ViewArea::set_split);
}

void ViewArea::build_places() {
    places_ = new QSplitter(Qt::Horizontal, this);
    places_->setObjectName(QStringLiteral("places"));
    places_->setChildrenCollapsible(false);
    left_ = new QStackedWidget(places_);
    right_place_ = new QWidget(places_);
    right_ = new QStackedWidget(right_place_);
    left_->setMinimumSize(kLeastPane, 1);
    right_place_->setMinimumSize(kLeastPane, 1);
    auto* column = new QVBoxLayout(right_place_);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    auto* head = new QHBoxLayout;
    head->setContentsMargins(4, 2, 4, 2);
    second_title_ = new TabButton({}, TabButton::Row::groups, right_place_);
    second_title_->setObjectName(QStringLiteral("beside_view"));
    second_title_->setToolTip(tr("Another view in this place"));
    second_title_->setPopupMode(QToolButton::InstantPopup);
    second_title_->setMenu(new QMenu(second_title_));
    second_title_->menu()->setToolTipsVisible(true);
    second_title_->setChecked(true);
    auto* close = new QToolButton(right_place_);
    close->setObjectName(QStringLiteral("beside_close"));
    close->setAccessibleName(tr("Close this place"));
    close->setToolTip(tr("Show the left view alone"));
    close->setText(QStringLiteral("×"));
    close->setAutoRaise(true);
    head->addWidget(second_title_);
    head->addStretch();
    head->addWidget(close);
    column->addLayout(head);
    column->addWidget(right_, 1);
    places_->addWidget(left_);
    places_->addWidget(right_place_);
    places_->setStretchFactor(0, 1);
    places_->setStretchFactor(1, 1);
    for (const auto& [name, scroll] : scrolls_) left_->addWidget(scroll);
    connect(close, &QAbstractButton::clicked, this, [this] { set_split(false); });
    connect(second_title_->menu(), &QMenu::aboutToShow, this, &ViewArea::fill_second_menu);
    connect(places_, &QSplitter::splitterMoved, this, &ViewArea::changed);
}

const ViewKind* ViewArea::kind(const QString& name) const {
    const auto place = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&](const ViewKind* kind) { return name == QLatin1String(kind->name); });
    return place == kinds_.end() ? nullptr : *place;
}

bool ViewArea::on_tab(const ViewKind& kind) const {
    const QLatin1String name(kind.name);
    return name == first_ || name == second_ || kind.presence(*desk_) == Presence::filled;
}

QStringList ViewArea::on_tabs() const {
    QStringList names;
    for (int at = 0; at < kViewGroups; ++at)
        for (const ViewKind* kind : kinds_)
            if (kind->group == static_cast<ViewGroup>(at) && on_tab(*kind)) names << QLatin1String(kind->name);
    return names;
}

void ViewArea::update_tabs() {
    const ViewKind& shown = *kind(first_);
    std::map<ViewGroup, int> counts;
    bool others = false;
    for (const ViewKind* one : kinds_) {
        const bool on = on_tab(*one);
        counts[one->group] += on ? 1 : 0;
        others = others || !on || one->group == ViewGroup::other;
    }
    for (const ViewKind* one : kinds_) {
        TabButton* tab = tabs_.at(QLatin1String(one->name));
        tab->setVisible(one->group == shown.group && on_tab(*one));
        if (QLatin1String(one->name) == first_) tab->setChecked(true);
    }
    for (const auto& [group, button] : groups_)
        button->setVisible(group == ViewGroup::other ? others : counts[group] > 0);
    groups_.at(shown.group)->setChecked(true);
    groups_.at(shown.group)->set_in_front(!second_in_front_);
    view_row_->setVisible(counts[shown.group] > 1 || shown.group == ViewGroup::other);
    split_->setChecked(split());
    if (!split()) return;
    second_title_->setText(tr(kind(second_)->title));
    second_title_->set_in_front(second_in_front_);
    second_title_->updateGeometry();
}

void ViewArea::place_views() {
    QWidget* first = scrolls_.at(first_);
    if (left_->indexOf(first) < 0) left_->addWidget(first);
    left_->setCurrentWidget(first);
    if (split()) {
        QWidget* second = scrolls_.at(second_);
        if (right_->indexOf(second) < 0) right_->addWidget(second);
        right_->setCurrentWidget(second);
    }
    right_place_->setVisible(split());
    last_[kind(first_)->group] = first_;
    update_tabs();
}

void ViewArea::show_view(const QString& name) {
    if (!kind(name)) return;
    const bool second = name == second_;
    if (!second) first_ = name;
    second_in_front_ = second;
    place_views();
    views_.at(name)->setFocus();
    Q_EMIT changed();
}

void ViewArea::choose_group(ViewGroup group) {
    const auto last = last_.find(group);
    if (last != last_.end() && on_tab(*kind(last->second))) return show_view(last->second);
    for (const ViewKind* one : kinds_)
        if (one->group == group && on_tab(*one)) return show_view(QLatin1String(one->name));
}

void ViewArea::set_split(bool split) {
    if (split == this->split()) return update_tabs();
    if (split) {
        const ViewKind* map = kind(kMapName);
        const QString fellow =
            map ? (first_ == kMapName ? kOnTextName : kMapName) : QLatin1String(kinds_.front()->name);
        return show_beside(fellow == first_ ? QLatin1String(kinds_.back()->name) : fellow);
    }
    second_.clear();
    second_in_front_ = false;
    place_views();
    views_.at(first_)->setFocus();
    Q_EMIT changed();
}

void ViewArea::show_beside(const QString& name) {
    if (!kind(name) || (name == first_ && !split())) return;
    if (name == first_) first_ = second_;  // they change places
    const bool begins = !split();
    second_ = name;
    place_views();
    if (begins) places_->setSizes({1000, 1000});  // as much for either
    Q_EMIT changed();
}

void ViewArea::add_entry(QMenu* menu, const ViewKind& kind, const std::function<void()>& act) {
    QAction* entry = menu->addAction(tr(kind.title), this, act);
    entry->setObjectName(QStringLiteral("more_") + QLatin1String(kind.name));
    entry->setToolTip(tr(kind.hint));
}

void ViewArea::fill_more() {
    QMenu* menu = more_->menu();
    menu->clear();
    const auto section = [&](const QString& title, const std::function<bool(const ViewKind&)>& belongs) {
        bool begun = false;
        for (const ViewKind* one : kinds_) {
            if (!belongs(*one)) continue;
            if (!begun && !title.isEmpty()) {
                if (!menu->isEmpty()) menu->addSeparator();
                menu->addAction(title)->setEnabled(false);
            }
            begun = true;
            const QString name = QLatin1String(one->name);
            add_entry(menu, *one, [this, name] { show_view(name); });
        }
    };
    section({}, [this](const ViewKind& one) { return one.group == ViewGroup::other && on_tab(one); });
    section(tr("Not recorded in this analysis"),
            [this](const ViewKind& one) { return !on_tab(one) && one.presence(*desk_) == Presence::unrecorded; });
    section(area_ == ViewKind::Area::training ? tr("Nothing open to show") : tr("Nothing to show of this model"),
            [this](const ViewKind& one) { return !on_tab(one) && one.presence(*desk_) == Presence::none; });
}

void ViewArea::fill_second_menu() {
    QMenu* menu = second_title_->menu();
    menu->clear();
    for (const QString& name : on_tabs())
        if (name != second_) add_entry(menu, *kind(name), [this, name] { show_beside(name); });
}

void ViewArea::follow_focus(QWidget* now) {
    if (!now || !split()) return;
    if (right_place_->isAncestorOf(now)) set_second_in_front(true);
    if (left_->isAncestorOf(now)) set_second_in_front(false);
}

void ViewArea::set_second_in_front(bool second) {
    if (second == second_in_front_) return;
    second_in_front_ = second;
    update_tabs();
    Q_EMIT changed();
}

void ViewArea::add_corner(QWidget* widget) {
    corner_->insertWidget(0, widget);
}

QSize ViewArea::minimumSizeHint() const {
    return kLeastPage;
}

QJsonObject ViewArea::state() const {
    QJsonObject last;
    for (const auto& [group, name] : last_) last[QLatin1String(group_name(group))] = name;
    QJsonObject state{{"first", first_}, {"last", last}};
    if (!split()) return state;
    QJsonArray sizes;
    for (const int size : places_->sizes()) sizes.append(size);
    state["second"] = second_;
    state["sizes"] = sizes;
    state["second_in_front"] = second_in_front_;
    return state;
}

void ViewArea::restore(const QJsonObject& state) {
    const QJsonObject last = state["last"].toObject();
    for (const QJsonValue value : last)
        if (const ViewKind* one = kind(value.toString())) last_[one->group] = value.toString();
    if (const QString first = state["first"].toString(); kind(first)) first_ = first;
    const QString second = state["second"].toString();
    second_ = kind(second) && second != first_ ? second : QString();
    second_in_front_ = split() && state["second_in_front"].toBool();
    place_views();
    QList<int> sizes;
    for (const QJsonValue size : state["sizes"].toArray()) sizes << std::clamp(size.toInt(), 1, 100'000);
    if (split() && sizes.size() == 2) places_->setSizes(sizes);
}

}  // namespace headscope::widgets
