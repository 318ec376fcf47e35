// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/pages_controller.h"

#include <QActionGroup>
#include <QApplication>
#include <QHBoxLayout>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/palette.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/selection_bar.h"

namespace headscope::app {
namespace {

QJsonValue json_of(const std::optional<std::int64_t>& value) {
    return value ? QJsonValue(static_cast<double>(*value)) : QJsonValue();
}

std::optional<std::int64_t> optional_from(const QJsonValue& value) {
    return value.isDouble() ? std::optional<std::int64_t>(static_cast<std::int64_t>(value.toDouble())) : std::nullopt;
}

}  // namespace

PagesController::PagesController(Context& context)
    : context_(context),
      tensors_(&context.engine),
      steps_(&context.engine, [text = context.text] { return text ? text->choice() : widgets::TextChoice(); }),
      history_([this] { return looks(); }, [this](const QJsonObject& looks) { restore_looks(looks); }) {
    build();
    build_switches();
    build_actions();
    build_theme_actions();
    context_.desk.set_tensors(&tensors_);
    context_.desk.set_stepper(&steps_);
    connect(&history_, &widgets::History::moved, &context_, &Context::updated);
    connect(&context_, &Context::updated, this, &PagesController::update);
    connect(&context_.desk, &widgets::Desk::changed, &history_, &widgets::History::note);
    connect(&context_.desk, &widgets::Desk::view_wanted, this, [this](const QString& name) { show_view(name); });
    connect(&context_.desk, &widgets::Desk::studies_changed, this, [this] {
        if (page() != Page::training) show_page(has_analyses() ? Page::analysis : Page::start);
    });
    connect(&context_.desk.asks(), &widgets::AskShelf::changed, this, [this] {
        if (page() == Page::analysis && !has_analyses()) show_page(Page::start);
    });
    connect(context_.text, &widgets::TextPanel::changed, &steps_, &StepService::follow_choice);
    connect(&steps_, &StepService::saved, this,
            [this](const QString& path, const std::shared_ptr<const store::AskRecord>& record) {
                context_.desk.asks().take(path, record);
                context_.report(tr("Saved %1").arg(path));
            });
    connect(context_.tree, &widgets::ProjectTree::tensors_wanted, this, &PagesController::show_tensors);
    connect(context_.start, &widgets::StartPage::training_wanted, this, [this] { show_view(QStringLiteral("train")); });
    apply_theme();
    show_page(Page::start);
}

PagesController::~PagesController() {
    delete widget_;  // views use the desk and the tensors until they are gone
    context_.desk.set_tensors(nullptr);
    context_.desk.set_stepper(nullptr);
}

void PagesController::build() {
    widget_ = new QWidget(context_.window);
    auto* column = new QVBoxLayout(widget_);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    bar_ = new widgets::SelectionBar(&context_.desk, widget_);
    pages_ = new QStackedWidget(widget_);
    pages_->addWidget(context_.start);
    const auto make_area = [this](const char* name, widgets::ViewKind::Area which) {
        auto* area = new widgets::ViewArea(&context_.desk, which, pages_);
        area->setObjectName(QLatin1String(name));
        pages_->addWidget(area);
        views_.insert(area->views().begin(), area->views().end());
        connect(area, &widgets::ViewArea::changed, &context_, &Context::changed);
        return area;
    };
    area_ = make_area("views", widgets::ViewKind::Area::analysis);
    training_area_ = make_area("training_views", widgets::ViewKind::Area::training);
    column->addWidget(bar_);
    column->addWidget(pages_, 1);
    for (const auto& [name, view] : views_) {
        connect(view, &widgets::View::state_changed, &history_, &widgets::History::note);
        connect(view, &widgets::View::state_changed, &context_, &Context::changed);
    }
}

bool PagesController::has_analyses() const {
    return !context_.desk.studies().empty() || !context_.desk.asks().all().empty();
}

void PagesController::build_switches() {
    switches_ = new QWidget(context_.window);
    auto* row = new QHBoxLayout(switches_);
    row->setContentsMargins(0, 0, 4, 0);
    row->setSpacing(0);
    const auto add = [&](const char* name, const QString& text, const QString& tip, Page page) {
        auto* button = new QToolButton(switches_);
        button->setObjectName(QLatin1String(name));
        button->setText(text);
        button->setAccessibleName(text);
        button->setToolTip(tip);
        button->setCheckable(true);
        button->setAutoRaise(true);
        row->addWidget(button);
        connect(button, &QToolButton::clicked, this, [this, page] {
            const bool empty = page == Page::analysis && !has_analyses();
            show_page(empty ? Page::start : page);
        });
        return button;
    };
    analysis_switch_ = add("page_analysis", tr("Analysis"), tr("Views of analyses"), Page::analysis);
    training_switch_ =
        add("page_training", tr("Training"), tr("Jobs, runs, timelines, costs, evaluations"), Page::training);
}

void PagesController::build_actions() {
    Actions& actions = context_.actions;
    widgets::Desk& desk = context_.desk;
    actions.add("start_page", tr("S&tart page"), QKeySequence(tr("Ctrl+Home")), tr("What can be opened, and what was"),
                [this] { show_page(Page::start); });
    actions.add("train_new", tr("&New training"), QKeySequence(tr("Ctrl+N")), tr("Describe a job and start it"),
                [this] { show_view(QStringLiteral("train")); });
    actions.add("undo", tr("&Undo"), QKeySequence::Undo, tr("Back to what was shown before"),
                [this] { history_.undo(); });
    actions.add("redo", tr("&Redo"), QKeySequence::Redo, tr("Forward again"), [this] { history_.redo(); });
    const auto step = [&](const char* name, const QString& text, const char* keys, int sites, int heads) {
        actions.add(name, text, QKeySequence(QLatin1String(keys)), text,
                    [&desk, sites, heads] { desk.step(sites, heads); });
    };
    step("next_head", tr("&Next head"), "Alt+Right", 0, 1);
    step("previous_head", tr("&Previous head"), "Alt+Left", 0, -1);
    step("next_layer", tr("Next &layer"), "Alt+Down", 1, 0);
    step("previous_layer", tr("Previous l&ayer"), "Alt+Up", -1, 0);
    actions.add("next_analysis", tr("Next anal&ysis"), QKeySequence(tr("Ctrl+Tab")), tr("The next open analysis"),
                [&desk] {
                    const auto studies = desk.studies();
                    for (std::size_t i = 0; i < studies.size(); ++i)
                        if (studies[i] == desk.current()) {
                            desk.select_study(studies[(i + 1) % studies.size()]->id());
                            return;
                        }
                });
    int number = 1;
    for (const widgets::ViewKind* kind : widgets::view_kinds()) {
        const QString name = QString::fromLatin1(kind->name);
        const QKeySequence keys = number <= 9 ? QKeySequence(tr("Ctrl+%1").arg(number)) : QKeySequence();
        actions.add(("view_" + std::string(kind->name)).c_str(), tr(kind->title), keys, tr(kind->hint),
                    [this, name] { show_view(name, true); });
        ++number;
    }
    actions.add("side_by_side", tr("Two views side &by side"), QKeySequence(tr("Ctrl+\\")),
                tr("The map with the text, or any other two; again: the left one alone"), [this] {
                    if (widgets::ViewArea* area = front_area()) area->set_split(!area->split());
                });
}

void PagesController::build_theme_actions() {
    auto* themes = new QActionGroup(this);
    const auto add = [&](const char* name, const QString& text) {
        QAction* action = context_.actions.add(name, text, {}, text, [this, name] {
            theme_ = QString::fromLatin1(name).section(QLatin1Char('_'), 1);
            apply_theme();
            Q_EMIT context_.changed();
        });
        action->setCheckable(true);
        themes->addAction(action);
    };
    add("theme_system", tr("As the &system"));
    add("theme_light", tr("&Light"));
    add("theme_dark", tr("&Dark"));
    context_.actions.at("theme_system")->setChecked(true);
}

void PagesController::set_theme(const QString& theme) {
    theme_ = theme;
    if (QAction* action = context_.actions.find(QStringLiteral("theme_") + theme)) action->setChecked(true);
    apply_theme();
}

void PagesController::apply_theme() {
    // Qt 6.4 does not report the system's scheme; its palette shows it.
    static const bool system_is_dark = QApplication::palette().color(QPalette::Window).lightness() < 128;
    const bool dark = theme_ == QLatin1String("dark") || (theme_ == QLatin1String("system") && system_is_dark);
    context_.desk.set_dark(dark);
    qApp->setPalette(widgets::make_palette(context_.desk.theme()));
    context_.text->set_theme(context_.desk.theme());
}

void PagesController::update() {
    Actions& actions = context_.actions;
    actions.enable("undo", history_.can_undo());
    actions.enable("redo", history_.can_redo());
    actions.enable("side_by_side", page() != Page::start);
    for (const char* name : {"next_head", "previous_head", "next_layer", "previous_layer", "next_analysis"})
        actions.enable(name, context_.desk.current() != nullptr);
}

PagesController::Page PagesController::page() const {
    if (pages_->currentWidget() == training_area_) return Page::training;
    return pages_->currentWidget() == area_ ? Page::analysis : Page::start;
}

void PagesController::show_page(Page page) {
    const bool training = page == Page::training;
    if (training != (this->page() == Page::training)) Q_EMIT training_comes(training);
    QWidget* shown = context_.start;
    if (page != Page::start) shown = training ? training_area_ : area_;
    pages_->setCurrentWidget(shown);
    bar_->setVisible(page == Page::analysis);
    analysis_switch_->setChecked(!training);
    training_switch_->setChecked(training);
    Q_EMIT context_.updated();
}

void PagesController::show_view(const QString& name, bool empty_too) {
    const bool training = training_area_->views().contains(name);
    if (!training && !area_->views().contains(name)) return;
    if (training || empty_too || !context_.desk.studies().empty())
        show_page(training ? Page::training : Page::analysis);
    (training ? training_area_ : area_)->show_view(name);
}

void PagesController::show_tensors(int model) {
    tensors_.choose(model);
    show_view(QStringLiteral("tensors"), true);
}

widgets::ViewArea* PagesController::front_area() const {
    if (page() == Page::start) return nullptr;
    return page() == Page::training ? training_area_ : area_;
}

widgets::View* PagesController::front_view() const {
    const widgets::ViewArea* area = front_area();
    return area ? area->front_view() : nullptr;
}

QString PagesController::front_name() const {
    const widgets::ViewArea* area = front_area();
    return area ? area->front() : QString();
}

QList<QAction*> PagesController::view_commands() const {
    const widgets::View* front = front_view();
    return front ? front->commands() : QList<QAction*>();
}

QJsonObject PagesController::looks() const {
    const widgets::Selection& selection = context_.desk.selection();
    QJsonObject views;
    for (const auto& [name, view] : views_) views[name] = view->state();
    return {{"selection", QJsonObject{{"study", selection.study},
                                      {"sequence", json_of(selection.sequence)},
                                      {"site", static_cast<double>(selection.site)},
                                      {"head", static_cast<double>(selection.head)},
                                      {"query", json_of(selection.query)},
                                      {"key", json_of(selection.key)}}},
            {"views", views}};
}

void PagesController::restore_looks(const QJsonObject& looks) {
    const QJsonObject stored = looks["selection"].toObject();
    widgets::Selection selection = context_.desk.selection();
    const int study = stored["study"].toInt();
    if (context_.desk.study(study)) selection.study = study;
    selection.sequence = optional_from(stored["sequence"]);
    selection.site = static_cast<std::int64_t>(stored["site"].toDouble());
    selection.head = static_cast<std::int64_t>(stored["head"].toDouble());
    selection.query = optional_from(stored["query"]);
    selection.key = optional_from(stored["key"]);
    context_.desk.select(selection);
    const QJsonObject views = looks["views"].toObject();
    for (const auto& [name, view] : views_)
        if (views.contains(name)) view->restore(views[name].toObject());
}

QJsonObject PagesController::state() const {
    return {{"views", area_->state()}, {"training", training_area_->state()}};
}

void PagesController::restore(const QJsonObject& state) {
    area_->restore(state["views"].toObject());
    training_area_->restore(state["training"].toObject());
}

}  // namespace headscope::app
