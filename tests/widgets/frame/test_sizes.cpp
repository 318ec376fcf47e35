// SPDX-License-Identifier: GPL-3.0-or-later
// Views, panels and dialogs in a window of 900 x 600: nothing needs more, nothing is cut, and the wheel changes
// nothing.
#include <QtTest/qtestspontaneevent.h>
#include <QDialog>
#include <QSignalSpy>

#include "tests/rig/layout_faults.h"
#include "tests/widgets/frame/frame_fixture.h"
#include "widgets/panels/ask/ask_dialog.h"
#include "widgets/panels/ask/intervention_dialog.h"
#include "widgets/panels/convert_dialog.h"
#include "widgets/panels/evaluate_dialog.h"
#include "widgets/panels/export_dialog.h"
#include "widgets/panels/guide_window.h"
#include "widgets/panels/log_panel.h"
#include "widgets/panels/project_tree.h"
#include "widgets/panels/reproduce_dialog.h"
#include "widgets/panels/selection_bar.h"
#include "widgets/panels/start_page.h"
#include "widgets/panels/text_panel.h"
#include "widgets/wheel_filter.h"

using namespace headscope;
using namespace headscope::widgets;
using tests::Frame;

namespace {

/// Size of a page of views in a window of 900 x 600 with its panels (MainWindow: 210 or 300 pixels), bars and log.
constexpr QSize kAnalysisPage(600, 480), kTrainingPage(690, 510);
constexpr QSize kWindow(900, 600);

void open_all(Frame& frame) {
    frame.open_plain(true);
    frame.open_heads();
    frame.open_lazy();
    frame.open_recurrent();
    frame.open_run();
    frame.open_evaluations();
    frame.open_asks();
    frame.desk.set_tensors(&frame.tensors);
    frame.desk.set_stepper(&frame.steps);
}

/// Panels and dialogs, each shown in its least size.
std::vector<std::unique_ptr<QWidget>> panels_and_dialogs(Frame& frame) {
    std::vector<std::unique_ptr<QWidget>> all;
    all.push_back(std::make_unique<StartPage>());
    all.push_back(std::make_unique<TextPanel>());
    all.push_back(std::make_unique<ProjectTree>(&frame.desk));
    all.push_back(std::make_unique<SelectionBar>(&frame.desk));
    all.push_back(std::make_unique<LogPanel>());
    all.push_back(std::make_unique<ExportDialog>(&frame.desk, "headscope"));
    all.push_back(std::make_unique<EvaluateDialog>());
    auto ask = std::make_unique<AskDialog>();
    ask->set_sources({{"/a", "a", {}}}, {});
    ask->set_folder(QStringLiteral("/made"));
    all.push_back(std::move(ask));
    auto interventions = std::make_unique<InterventionDialog>();
    interventions->add_rows({workspace::InterventionRow{}});
    all.push_back(std::move(interventions));
    auto type = std::make_unique<ConvertDialog>(ConvertDialog::What::type);
    auto mixers = std::make_unique<ConvertDialog>(ConvertDialog::What::mixers);
    for (ConvertDialog* dialog : {type.get(), mixers.get()}) dialog->set_sources({{"/a", "", "a", 30}}, {});
    all.push_back(std::move(type));
    all.push_back(std::move(mixers));
    all.push_back(std::make_unique<ReproduceDialog>(
        std::vector<ReproduceDialog::Paper>{{"deconattn", "Deconstructing Attention", "seven mixers"}}, 40.0));
    all.push_back(std::make_unique<GuideWindow>([](const QString&) { return QStringLiteral("# Guide"); }));
    return all;
}

std::string lines(const QStringList& faults) {
    return faults.join(QLatin1Char('\n')).toStdString();
}

}  // namespace

TEST_CASE("Every view fits a window of 900 x 600", "[frame][sizes]") {
    Frame frame;
    open_all(frame);
    std::vector<std::string> seen;
    for (Study* study : frame.desk.studies()) {
        frame.choose(study);
        for (const auto which : {ViewKind::Area::analysis, ViewKind::Area::training}) {
            const QSize size = which == ViewKind::Area::training ? kTrainingPage : kAnalysisPage;
            if (which == ViewKind::Area::training && study != frame.desk.studies().front()) continue;
            ViewArea& area = frame.page(which, size);
            for (const QString& name : area.on_tabs()) {
                area.show_view(name);
                tests::settle(frame.desk);
                tests::settle(frame.desk.runs());
                INFO(study->name().toStdString() << ": " << name.toStdString());
                CHECK(lines(tests::layout_faults(&area, size)) == "");
                CHECK(area.size() == size);
                seen.push_back(name.toStdString());
            }
        }
    }
    // All of them were there to be looked at, but two that need a file of items and a model that hashes.
    for (const ViewKind* kind : view_kinds()) {
        const std::string name = kind->name;
        if (name == "items" || name == "hash") continue;
        INFO(name);
        CHECK(std::find(seen.begin(), seen.end(), name) != seen.end());
    }
    frame.shown.reset();
    frame.desk.set_tensors(nullptr);
}

TEST_CASE("Views without data fit, too", "[frame][sizes]") {
    Frame frame;
    for (const auto which : {ViewKind::Area::analysis, ViewKind::Area::training}) {
        const QSize size = which == ViewKind::Area::training ? kTrainingPage : kAnalysisPage;
        ViewArea& area = frame.page(which, size);
        for (const auto& [name, view] : area.views()) {
            area.show_view(name);
            tests::settle(frame.desk);
            tests::settle(frame.desk.runs());
            INFO(name.toStdString());
            CHECK(lines(tests::layout_faults(&area, size)) == "");
        }
    }
}

TEST_CASE("Panels and dialogs fit a window of 900 x 600", "[frame][sizes]") {
    Frame frame;
    open_all(frame);
    for (const auto& widget : panels_and_dialogs(frame)) {
        INFO(widget->metaObject()->className() << " " << widget->objectName().toStdString());
        const bool dialog = qobject_cast<QDialog*>(widget.get()) || qobject_cast<StartPage*>(widget.get());
        const QSize size = qobject_cast<StartPage*>(widget.get())      ? kAnalysisPage
                           : dialog                                    ? widget->size().boundedTo(kWindow)
                           : qobject_cast<SelectionBar*>(widget.get()) ? QSize(600, 60)
                                                                       : QSize(300, 380);
        widget->resize(size);
        widget->show();
        tests::settle(frame.desk);
        CHECK(lines(tests::layout_faults(widget.get(), dialog ? kWindow : size)) == "");
        CHECK(widget->width() <= size.width());
    }
    frame.desk.set_tensors(nullptr);
}

TEST_CASE("The wheel changes no control of any view, panel or dialog", "[frame][wheel]") {
    Frame frame;
    open_all(frame);
    WheelFilter::install(qApp);
    ViewArea analysis(&frame.desk, ViewKind::Area::analysis), training(&frame.desk, ViewKind::Area::training);
    for (ViewArea* area : {&analysis, &training}) {
        area->show();
        for (const auto& [name, view] : area->views()) {
            area->show_view(name);
            tests::settle(frame.desk);
        }
    }
    const auto others = panels_and_dialogs(frame);
    int walked = 0;
    CHECK(lines(tests::wheel_faults(walked)) == "");
    CHECK(walked > 150);
    tests::settle(frame.desk);
    frame.desk.set_tensors(nullptr);
}

TEST_CASE("The walk sees a control that the wheel changes", "[frame][wheel]") {
    Frame frame;
    for (QObject* filter : qApp->findChildren<WheelFilter*>(QString(), Qt::FindDirectChildrenOnly)) delete filter;
    QComboBox box;
    box.addItems({"float32", "bfloat16"});
    box.show();
    int walked = 0;
    CHECK(tests::wheel_faults(walked).size() == 1);
    WheelFilter::install(qApp);
    box.setCurrentIndex(0);
    CHECK(tests::wheel_faults(walked).isEmpty());
    CHECK(walked == 1);
}

TEST_CASE("A wheel over a control scrolls the area around it", "[frame][wheel]") {
    Frame frame;
    WheelFilter::install(qApp);
    QScrollArea area;
    auto* content = new QWidget;
    auto* column = new QVBoxLayout(content);
    std::vector<QSpinBox*> boxes;
    for (int i = 0; i < 40; ++i) {
        boxes.push_back(new QSpinBox);
        column->addWidget(boxes.back());
    }
    area.setWidget(content);
    area.resize(200, 150);
    area.show();
    const QPointF place = QRectF(boxes[1]->rect()).center();
    QWheelEvent event(place, boxes[1]->mapToGlobal(place), {}, {0, -120}, Qt::NoButton, Qt::NoModifier,
                      Qt::NoScrollPhase, false);
    QSpontaneKeyEvent::setSpontaneous(&event);  // Qt passes only those of a real wheel on to parents
    qApp->notify(boxes[1], &event);
    CHECK(boxes[1]->value() == 0);
    CHECK(area.verticalScrollBar()->value() > 0);
}
