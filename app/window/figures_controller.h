// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTemporaryDir>
#include <optional>

#include "app/window/context.h"
#include "widgets/panels/export_dialog.h"

namespace headscope::widgets {
class FigureHandle;
class FigureMaker;
}  // namespace headscope::widgets

namespace headscope::app {

class PagesController;

/// Exports, copies, prints and drags out the figure of the view in front.
class FiguresController : public QObject {
    Q_OBJECT
public:
    FiguresController(Context& context, PagesController& pages);
    ~FiguresController() override;

private:
    void build_actions();
    void build_handles();
    QWidget* make_buttons(QWidget* parent);
    void update();
    void export_front();
    void export_figure(const widgets::FigureRequest& wish);
    widgets::ExportDialog* dialog();
    std::optional<widgets::ExportDialog::Drawing> front_figure();  ///< empty: reports why the view has none
    widgets::FigureMaker* make_maker();
    void print_front();
    void print(const QImage& picture);
    void prepare_drag(widgets::FigureHandle* handle, const QString& format);

    Context& context_;
    PagesController& pages_;
    widgets::ExportDialog* dialog_ = nullptr;
    widgets::FigureMaker *printed_ = nullptr, *dragged_ = nullptr;
    widgets::FigureHandle* dragging_ = nullptr;  ///< waits for its file
    QTemporaryDir drag_folder_;
    int drags_ = 0;
};

}  // namespace headscope::app
