// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/context.h"

#include <chrono>
#include <utility>

#include "core/base/error.h"
#include "core/base/process/ask_async.h"
#include "widgets/desk/head_set_store.h"

namespace headscope::app {
namespace {

constexpr std::chrono::milliseconds kDiskPatience{200};

}  // namespace

Context::Context(QWidget* dialogs_parent, std::string program_name, int threads)
    : window(dialogs_parent),
      program(std::move(program_name)),
      engine(threads),
      opener(&desk, program),
      actions(dialogs_parent),
      start(new widgets::StartPage),
      tree(new widgets::ProjectTree(&desk)),
      text(new widgets::TextPanel) {
    connect(&desk, &widgets::Desk::told, this, &Context::reported);
    connect(&desk, &widgets::Desk::failed, this, &Context::problem_found);
    connect(&desk, &widgets::Desk::changed, this, &Context::changed);
    connect(&desk.head_sets(), &widgets::HeadSetStore::changed, this, &Context::changed);
    connect(&desk, &widgets::Desk::selection_changed, this, &Context::updated);
    connect(&desk, &widgets::Desk::studies_changed, this, &Context::updated);
    connect(&engine, &Engine::models_changed, this, [this] {
        text->set_models(engine.models());
        tree->set_models(engine.models());
        Q_EMIT changed();
        Q_EMIT updated();
    });
}

Context::~Context() {
    mailbox_.close();
    // Panels use the desk until they are gone.
    delete start;
    delete tree;
    delete text;
}

void Context::ask_disk(const QString& path, const std::function<void()>& question) {
    disk.post(this, [this, path, question, send = mailbox_.sender()](const Cancellation&) {
        try {
            const auto answer = ask_async([question] { return question(), true; });
            if (answer.wait_for(kDiskPatience) != std::future_status::ready)
                send([this, path] { report(tr("Waiting for the disk of %1").arg(path)); });
        } catch (const Error&) {
            question();  // the system gives no further thread
        }
    });
}

}  // namespace headscope::app
