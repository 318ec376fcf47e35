// SPDX-License-Identifier: GPL-3.0-or-later
// The figure of the view in front goes to a printer, or out of the window by the mouse.
#include <QPrintDialog>
#include <QPrinter>

#include "app/window/main_window.h"
#include "widgets/frame/figure_handle.h"
#include "widgets/frame/print_picture.h"
#include "widgets/frame/view_area.h"
#include "widgets/panels/figure_maker.h"

namespace headscope::app {
namespace {

constexpr int kPrintDots = 600;  ///< an inch

}  // namespace

std::optional<widgets::ExportDialog::Drawing> MainWindow::front_figure() {
    const widgets::View* view = front_view();
    if (view && view->can_export()) return export_dialog()->drawing(*view->figure());
    tell(view && view->figure() ? tr("The figure can be drawn when the analysis is complete")
                                : tr("This view has no figure as it is now"));
    return std::nullopt;
}

void MainWindow::build_figure_handles() {
    for (widgets::ViewArea* area : {area_, training_area_}) {
        auto* handle = new widgets::FigureHandle(area);
        area->add_corner(handle);
        area->add_corner(make_figure_buttons(area));
        connect(handle, &widgets::FigureHandle::file_wanted, this,
                [this, handle](const QString& format) { ready_drag(handle, format); });
        connect(&desk_, &widgets::Desk::theme_changed, handle,
                [handle] { handle->draw_icon(QApplication::palette()); });
    }
}

/// Makes the file in a folder that lasts as long as the window: programs read what was dropped onto them later.
void MainWindow::ready_drag(widgets::FigureHandle* handle, const QString& format) {
    const auto figure = front_figure();
    if (!figure) return;
    if (!dragged_) {
        dragged_ = new widgets::FigureMaker(options_.program, &desk_.reader(), this);
        connect(dragged_, &widgets::FigureMaker::failed, this, &MainWindow::problem);
        connect(dragged_, &widgets::FigureMaker::written, this, [this](const QString& path) {
            if (dragging_) dragging_->begin(path);
        });
    }
    dragging_ = handle;
    const QString path = drag_folder_.filePath(
        QStringLiteral("%1-%2.%3").arg(QString::fromStdString(figure->request.recipe)).arg(++drags_).arg(format));
    dragged_->write(figure->request, figure->files, path);
}

void MainWindow::print_front() {
    auto figure = front_figure();
    if (!figure) return;
    figure->request.style.dpi = kPrintDots;
    if (!printed_) {
        printed_ = new widgets::FigureMaker(options_.program, &desk_.reader(), this);
        connect(printed_, &widgets::FigureMaker::failed, this, &MainWindow::problem);
        connect(printed_, &widgets::FigureMaker::copied, this,
                [this](const widgets::FigureMaker::Copy& copy) { print(copy.picture); });
    }
    tell(tr("Drawing the figure for the printer…"));
    printed_->copy(figure->request, figure->files, QStringLiteral("png"));
}

void MainWindow::print(const QImage& picture) {
    auto printer = std::make_shared<QPrinter>(QPrinter::HighResolution);
    printer->setDocName(windowTitle());
    auto* dialog = new QPrintDialog(printer.get(), this);
    dialog->setObjectName(QStringLiteral("print_dialog"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    connect(dialog, qOverload<QPrinter*>(&QPrintDialog::accepted), this, [this, printer, picture] {
        if (widgets::print_picture(*printer, picture, kPrintDots))
            tell(printer->outputFileName().isEmpty() ? tr("Printed")
                                                     : tr("Printed to %1").arg(printer->outputFileName()));
        else
            problem(tr("[printer] expected a printer that takes a page; found none"));
    });
    connect(dialog, &QObject::destroyed, this, [printer] {});  // it points to the printer
    dialog->open();
}

}  // namespace headscope::app
