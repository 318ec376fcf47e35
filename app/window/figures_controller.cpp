// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/figures_controller.h"

#include <QHBoxLayout>
#include <QPrintDialog>
#include <QPrinter>
#include <QToolButton>
#include <algorithm>

#include "app/window/pages_controller.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/frame/figure_handle.h"
#include "widgets/frame/print_picture.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/figure_maker.h"

namespace headscope::app {
namespace {

constexpr int kPrintDots = 600;  ///< per inch

}  // namespace

FiguresController::FiguresController(Context& context, PagesController& pages) : context_(context), pages_(pages) {
    build_actions();
    build_handles();
    connect(&context_, &Context::updated, this, &FiguresController::update);
    connect(&context_.desk, &widgets::Desk::export_wanted, this, &FiguresController::export_figure);
    connect(&context_.desk, &widgets::Desk::copy_wanted, this,
            [this](const widgets::FigureRequest& wish, const QString& format) { dialog()->copy(wish, format); });
}

FiguresController::~FiguresController() {
    // They use the desk, and would outlive it as children of the window.
    delete dialog_;
    delete printed_;
    delete dragged_;
}

void FiguresController::build_actions() {
    Actions& actions = context_.actions;
    actions.add("export", tr("&Export a figure…"), QKeySequence(tr("Ctrl+E")),
                tr("The view in front as PDF, SVG, PNG or CSV, or any other figure"), [this] { export_front(); });
    // Without a key: lists and texts use Ctrl+C themselves, and views have it for their picture.
    actions.add("copy_picture", tr("Copy the p&icture") + QStringLiteral("\tCtrl+C"), {},
                tr("The figure of the view in front, as Export draws it"), [this] {
                    if (widgets::View* view = pages_.front_view()) view->copy_picture();
                });
    actions.add("copy_numbers", tr("Copy the &numbers as CSV"), {},
                tr("The numbers of the figure of the view in front"), [this] {
                    widgets::View* view = pages_.front_view();
                    if (!view || !view->copy_numbers())
                        context_.report(tr("There is no figure of what is shown, and so no numbers of it"));
                });
    actions.add("print", tr("&Print the figure…"), QKeySequence::Print, tr("The view in front"),
                [this] { print_front(); });
}

void FiguresController::build_handles() {
    for (widgets::ViewArea* area : pages_.areas()) {
        auto* handle = new widgets::FigureHandle(area);
        area->add_corner(handle);
        area->add_corner(make_buttons(area));
        connect(handle, &widgets::FigureHandle::file_wanted, this,
                [this, handle](const QString& format) { prepare_drag(handle, format); });
    }
}

QWidget* FiguresController::make_buttons(QWidget* parent) {
    auto* buttons = new QWidget(parent);
    auto* row = new QHBoxLayout(buttons);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(2);
    const auto add = [&](const char* name, const QString& text) {
        auto* button = new QToolButton(buttons);
        QAction* action = context_.actions.at(name);
        button->setObjectName(QLatin1String(name) + QStringLiteral("_button"));
        button->setText(text);
        button->setAccessibleName(text);
        button->setToolTip(action->toolTip());
        button->setAutoRaise(true);
        connect(button, &QToolButton::clicked, action, &QAction::trigger);
        row->addWidget(button);
    };
    add("copy_picture", tr("Copy"));
    add("export", tr("Export…"));
    return buttons;
}

void FiguresController::update() {
    const bool any = context_.desk.current() != nullptr || !context_.engine.models().empty() ||
                     !context_.desk.runs().runs().empty() || !context_.desk.asks().all().empty();
    context_.actions.enable("export", any || pages_.page() == PagesController::Page::training);
    context_.actions.enable("print", pages_.page() != PagesController::Page::start);
}

void FiguresController::export_front() {
    const widgets::Study* study = context_.desk.current();
    const widgets::View* view = pages_.front_view();
    const auto wish = view ? view->figure() : std::nullopt;
    // The view in front may be a list, which is saved as a table.
    const QList<QAction*> commands = pages_.view_commands();
    const auto table = std::find_if(commands.begin(), commands.end(), [this](const QAction* command) {
        return command->objectName() == pages_.front_name() + QLatin1String("_save_table");
    });
    if (wish) {
        export_figure(*wish);
    } else if (table != commands.end()) {
        context_.report(tr("No tensor is chosen: their list is saved as CSV"));
        (*table)->trigger();
    } else if (study && pages_.page() != PagesController::Page::training) {
        export_figure({"indicators",
                       {},
                       {study->id()},
                       {},
                       tr("What is in front has no figure as it is now: these are the indicators of the analysis.")});
    } else {
        context_.report(
            context_.desk.runs().runs().empty() && context_.desk.evaluations().all().empty()
                ? tr("There is no figure of what is shown: open a run or an evaluation first")
                : tr("This view has no figure as it is now: runs, their timeline, costs and evaluations have"));
    }
}

widgets::ExportDialog* FiguresController::dialog() {
    if (!dialog_) {
        dialog_ = new widgets::ExportDialog(&context_.desk, context_.program, context_.window);
        connect(dialog_, &widgets::ExportDialog::told, &context_, &Context::report);
        connect(dialog_, &widgets::ExportDialog::failed, &context_, &Context::problem);
    }
    return dialog_;
}

void FiguresController::export_figure(const widgets::FigureRequest& wish) {
    dialog()->show_wish(wish);
    dialog_->show();
    dialog_->raise();
    dialog_->activateWindow();
}

std::optional<widgets::ExportDialog::Drawing> FiguresController::front_figure() {
    const widgets::View* view = pages_.front_view();
    if (view && view->can_export()) return dialog()->drawing(*view->figure());
    context_.report(view && view->figure() ? tr("The figure can be drawn when the analysis is complete")
                                           : tr("This view has no figure as it is now"));
    return std::nullopt;
}

widgets::FigureMaker* FiguresController::make_maker() {
    auto* maker = new widgets::FigureMaker(context_.program, &context_.desk.reader(), this);
    connect(maker, &widgets::FigureMaker::failed, &context_, &Context::problem);
    return maker;
}

/// Makes the file in a folder that lasts as long as the window: programs read what was dropped onto them later.
void FiguresController::prepare_drag(widgets::FigureHandle* handle, const QString& format) {
    const auto figure = front_figure();
    if (!figure) return;
    if (!dragged_) {
        dragged_ = make_maker();
        connect(dragged_, &widgets::FigureMaker::written, this, [this](const QString& path) {
            if (dragging_) dragging_->begin(path);
        });
    }
    dragging_ = handle;
    const QString path = drag_folder_.filePath(
        QStringLiteral("%1-%2.%3").arg(QString::fromStdString(figure->request.recipe)).arg(++drags_).arg(format));
    dragged_->write(figure->request, figure->files, path);
}

void FiguresController::print_front() {
    auto figure = front_figure();
    if (!figure) return;
    figure->request.style.dpi = kPrintDots;
    if (!printed_) {
        printed_ = make_maker();
        connect(printed_, &widgets::FigureMaker::copied, this,
                [this](const widgets::FigureMaker::Copy& copy) { print(copy.picture); });
    }
    context_.report(tr("Drawing the figure for the printer…"));
    printed_->copy(figure->request, figure->files, QStringLiteral("png"));
}

void FiguresController::print(const QImage& picture) {
    auto printer = std::make_shared<QPrinter>(QPrinter::HighResolution);
    printer->setDocName(context_.window->windowTitle());
    auto* dialog = new QPrintDialog(printer.get(), context_.window);
    dialog->setObjectName(QStringLiteral("print_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, qOverload<QPrinter*>(&QPrintDialog::accepted), this, [this, printer, picture] {
        if (widgets::print_picture(*printer, picture, kPrintDots))
            context_.report(printer->outputFileName().isEmpty() ? tr("Printed")
                                                                : tr("Printed to %1").arg(printer->outputFileName()));
        else
            context_.problem(tr("[printer] expected a printer that takes a page; found none"));
    });
    connect(dialog, &QObject::destroyed, [printer] {});  // the dialog points to the printer
    dialog->open();
}

}  // namespace headscope::app
