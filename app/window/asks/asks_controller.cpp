// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/asks/asks_controller.h"

#include "app/window/files_controller.h"
#include "app/window/pages_controller.h"
#include "core/store/ask/ask_file.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/file_dialog.h"

namespace headscope::app {
namespace {

QStringList views_of(const std::string& tool) {
    QStringList names;
    for (const widgets::ViewKind* kind : widgets::view_kinds())
        if (kind->ask_tool && kind->ask_tool == tool) names << QLatin1String(kind->name);
    return names;
}

}  // namespace

AsksController::AsksController(Context& context, PagesController& pages, FilesController& files)
    : context_(context), pages_(pages), files_(files) {
    build_actions();
    const widgets::AskShelf* shelf = &context_.desk.asks();
    connect(shelf, &widgets::AskShelf::changed, &context_, &Context::updated);
    connect(shelf, &widgets::AskShelf::changed, &context_, &Context::changed);
    connect(shelf, &widgets::AskShelf::open_wanted, this, &AsksController::choose_file);
    connect(&context_, &Context::updated, this,
            [this] { context_.actions.enable("close_asks", !context_.desk.asks().all().empty()); });
    connect(&context_.opener, &Opener::ask_read, this, &AsksController::opened);
    connect(context_.tree, &widgets::ProjectTree::ask_chosen, this, &AsksController::show);
    connect(context_.tree, &widgets::ProjectTree::ask_close_wanted, shelf,
            [this](int id) { context_.desk.asks().remove(id); });
}

void AsksController::build_actions() {
    const auto add = [this](const char* name, const QString& text, const QString& tip, std::function<void()> act) {
        context_.actions.add(name, text, {}, tip, std::move(act));
    };
    add("open_ask", tr("Open an as&k file…"), tr("Open a file NAME.ask.h5, as headscope ask writes it"),
        [this] { choose_file(); });
    add("close_asks", tr("Close the ask files"), tr("Close them; the files stay"), [this] {
        while (!context_.desk.asks().all().empty()) context_.desk.asks().remove(context_.desk.asks().all().back().id);
    });
}

void AsksController::choose_file() {
    widgets::ask_for_file(context_.window,
                          {tr("Open an ask file"), tr("Ask files (*.ask.h5);;HDF5 files (*.h5);;All files (*)")},
                          [this](const QString& path) { files_.open(path); });
}

void AsksController::opened(const QString& path, const std::shared_ptr<const store::AskRecord>& record) {
    const int id = context_.desk.asks().take(path, record);
    const widgets::OpenAsk& one = *context_.desk.asks().find(id);
    files_.recent().remember({one.path, one.name, widgets::AskShelf::about(*record), QStringLiteral("ask"), {}});
    if (!context_.restoration.brought_back(path)) show(id);
    context_.restoration.settle(path);
}

void AsksController::show(int id) {
    const widgets::OpenAsk* one = context_.desk.asks().find(id);
    if (!one) return;
    const std::string tool = one->record->tool;
    context_.desk.asks().choose(id);
    const QStringList views = views_of(tool);
    if (views.isEmpty())
        return context_.report(tr("This version has no view of files of “ask %1”").arg(QString::fromStdString(tool)));
    pages_.show_view(views.contains(pages_.front_name()) ? pages_.front_name() : views.front(), true);
}

}  // namespace headscope::app
