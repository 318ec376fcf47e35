// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <memory>

#include "app/window/context.h"

namespace headscope::app {

class FilesController;
class PagesController;

/// Opens and lists files of `headscope ask`.
class AsksController : public QObject {
    Q_OBJECT
public:
    AsksController(Context& context, PagesController& pages, FilesController& files);

    /// Brings a view of an open file to the front: the one in front if it shows the file's tool, else the tool's first.
    void show(int id);

private:
    void build_actions();
    void choose_file();
    void opened(const QString& path, const std::shared_ptr<const store::AskRecord>& record);

    Context& context_;
    PagesController& pages_;
    FilesController& files_;
};

}  // namespace headscope::app
