// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/tasks_controller.h"

#include <QDir>
#include <QFile>

#include "app/window/files/model_place.h"
#include "core/base/error.h"
#include "core/reproduce/outlook.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/panels/ask/ask_dialog.h"
#include "widgets/panels/convert_dialog.h"
#include "widgets/panels/guide_window.h"
#include "widgets/panels/reproduce_dialog.h"

namespace headscope::app {

TasksController::TasksController(Context& context) : context_(context), service_(context.program) {
    build_actions();
    connect(&service_, &TaskService::changed, &context_, &Context::updated);
    connect(&context_, &Context::updated, this, &TasksController::update);
    connect(&service_, &TaskService::stopped, this, [this] {
        if (running_) running_->set_failure(tr("Stopped"));
        context_.report(tr("%1: stopped").arg(title()));
    });
    connect(&service_, &TaskService::ended, this, &TasksController::ended);
    connect(&context_.engine, &Engine::models_changed, this, &TasksController::offer_models);
    connect(context_.text, &widgets::TextPanel::changed, this, &TasksController::offer_asked);
    connect(&context_.desk.asks(), &widgets::AskShelf::ask_wanted, this, &TasksController::show_ask);
}

void TasksController::build_actions() {
    const auto add = [this](const char* name, const QString& text, const QString& tip, std::function<void()> act) {
        context_.actions.add(name, text, {}, tip, std::move(act));
    };
    add("ask", tr("&Ask a model…"),
        tr("Lens, patching, ablation, attribution: in a process of its own, into an ask file"),
        [this] { show_ask({}); });
    add("reproduce", tr("&Reproduce a paper…"), tr("Trains, evaluates and reports, small, in a process of its own"),
        [this] { show_reproduce(); });
    add("convert", tr("&Convert a checkpoint…"), tr("To safetensors, in another number type"),
        [this] { show_convert(convert_, false); });
    add("swap_mixers", tr("&Swap mixers…"), tr("A checkpoint with other mixers in some layers"),
        [this] { show_convert(swap_, true); });
    add("stop_task", tr("Stop the command"), tr("That one of these dialogs started"), [this] { service_.stop(); });
}

void TasksController::show_ask(const QString& tool) {
    if (!ask_) {
        ask_ = new widgets::AskDialog(context_.window);
        connect_dialog(ask_);
    }
    if (!context_.folder.empty()) {
        const std::filesystem::path folder = context_.folder / "asks";
        context_.disk.post(this, [this, folder, send = mailbox_.sender()](const Cancellation&) {
            std::error_code error;
            std::filesystem::create_directories(folder, error);
            if (!error) return;
            const QString message =
                tr("[%1] expected to make this folder; found %2")
                    .arg(QString::fromStdString(folder.string()), QString::fromStdString(error.message()));
            send([this, message] { context_.problem(message); });
        });
        ask_->set_folder(QString::fromStdString(folder.string()));
    }
    if (!tool.isEmpty()) ask_->choose_tool(tool);
    show(ask_);
}

/// Checkpoints with the reason where the command cannot read them, and the text panel's texts.
void TasksController::offer_asked() {
    if (!ask_) return;
    std::vector<widgets::AskSource> sources;
    QString chosen;
    const widgets::TextChoice texts = context_.text->choice();
    for (const auto& card : context_.engine.models()) {
        const ModelPlace place = ModelPlace::of(card.path);
        widgets::AskSource source{
            place.adapter.isEmpty() ? place.path : card.path, card.name, {}, card.encoder_decoder};
        if (card.tensors_only)
            source.problem = card.note;
        else if (!place.adapter.isEmpty())
            source.problem = tr("%1 has an adapter: merge it with Convert a checkpoint first").arg(card.name);
        else if (!card.head || (!card.causal && !card.encoder_decoder))
            source.problem = tr("%1 is no decoder with a head for the vocabulary").arg(card.name);
        else if (!card.tokenizer)
            source.problem = tr("%1 has no tokenizer for the texts").arg(card.name);
        sources.push_back(source);
        if (card.id == texts.model) chosen = sources.back().path;
    }
    ask_->set_texts(texts, context_.text->examples());
    ask_->set_sources(sources, chosen);
}

void TasksController::show_reproduce() {
    if (!reproduce_) {
        std::vector<widgets::ReproduceDialog::Paper> papers;
        for (const reproduce::Paper& paper : reproduce::papers())
            papers.push_back({QString::fromStdString(paper.name), QString::fromStdString(paper.title),
                              QString::fromStdString(paper.summary)});
        reproduce_ = new widgets::ReproduceDialog(papers, reproduce::Settings().minutes, context_.window);
        connect_dialog(reproduce_);
        connect(reproduce_, &widgets::ReproduceDialog::outlook_wanted, this, &TasksController::look_ahead);
    }
    show(reproduce_);
    reproduce_->ask_outlook();
}

void TasksController::show_convert(widgets::ConvertDialog*& dialog, bool mixers) {
    if (!dialog) {
        using What = widgets::ConvertDialog::What;
        dialog = new widgets::ConvertDialog(mixers ? What::mixers : What::type, context_.window);
        connect_dialog(dialog);
    }
    show(dialog);
}

void TasksController::connect_dialog(widgets::TaskDialog* dialog) {
    connect(dialog, &widgets::TaskDialog::start_wanted, this,
            [this, dialog](const QStringList& words, const QString& output) {
                if (running()) return;
                running_ = dialog;
                output_ = output;
                service_.start(dialog->windowTitle(), words);
            });
    connect(dialog, &widgets::TaskDialog::stop_wanted, &service_, &TaskService::stop);
    connect(dialog, &widgets::TaskDialog::open_wanted, this, [this, dialog](const QString& output) {
        if (dialog == reproduce_)
            show_report(output);
        else
            Q_EMIT open_wanted(output);
    });
}

void TasksController::show(widgets::TaskDialog* dialog) {
    offer_models();
    dialog->set_running(running(), running_ == dialog);
    dialog->show();
    dialog->raise();
    dialog->activateWindow();
}

/// Warns when these minutes cannot decide the paper's claims, by its last calibration on this machine.
void TasksController::look_ahead(const QString& paper, double minutes, int seeds, int threads) {
    static const char outlooks = 0;  // owner of these tasks: the latest choice replaces the others
    reproduce::Settings settings;
    settings.minutes = minutes;
    settings.seeds = seeds;
    settings.threads = threads;
    context_.disk.cancel(&outlooks);
    context_.disk.post(&outlooks, [this, paper, settings, send = mailbox_.sender()](const Cancellation&) {
        QString warning;
        try {
            warning = QString::fromStdString(reproduce::minutes_warning(paper.toStdString(), settings));
        } catch (const Error&) {  // no calibration yet
        }
        send([this, paper, minutes = settings.minutes, warning] {
            if (reproduce_) reproduce_->set_outlook(paper, minutes, warning);
        });
    });
}

void TasksController::offer_models() {
    std::vector<widgets::ConvertDialog::Source> sources;
    QString chosen;
    for (const auto& card : context_.engine.models()) {
        const ModelPlace place = ModelPlace::of(card.path);
        sources.push_back({place.path, place.adapter, card.name, card.layers});
        if (card.id == context_.text->choice().model) chosen = place.path;
    }
    for (widgets::ConvertDialog* dialog : {convert_, swap_})
        if (dialog) dialog->set_sources(sources, chosen);
    offer_asked();
}

void TasksController::update() {
    context_.actions.enable("stop_task", running());
    for (widgets::TaskDialog* dialog : std::initializer_list<widgets::TaskDialog*>{ask_, reproduce_, convert_, swap_})
        if (dialog) dialog->set_running(running(), running_ == dialog);
    if (running_ && running()) running_->set_progress(service_.progress());
}

QString TasksController::status() const {
    return running() ? tr("%1: %2").arg(title(), service_.progress()) : QString();
}

void TasksController::ended(const QString& failure) {
    if (!failure.isEmpty()) {
        if (running_) running_->set_failure(failure);
        return context_.problem(failure);
    }
    if (running_) running_->set_result(tr("Done: %1").arg(output_));
    context_.report(tr("%1: done").arg(title()));
    if (!ask_ || running_ != ask_) return;
    ask_->suggest_output();
    Q_EMIT open_wanted(output_);
}

/// Shows the report as text. Its files open from the folder like any other.
void TasksController::show_report(const QString& folder) {
    context_.ask_disk(folder, [this, folder, send = mailbox_.sender()] {
        std::map<QString, QString> pages;
        const QDir place(folder);
        const QStringList names = place.entryList(QStringList{QStringLiteral("*.md")}, QDir::Files);
        for (const QString& name : names) {
            QFile file(place.filePath(name));
            if (file.open(QIODevice::ReadOnly)) pages[name] = QString::fromUtf8(file.readAll());
        }
        send([this, folder, pages] { show_pages(folder, pages); });
    });
}

void TasksController::show_pages(const QString& folder, const std::map<QString, QString>& pages) {
    const QString first = QStringLiteral("report.md");
    const auto read = [pages](const QString& page) {
        const auto found = pages.find(page);
        return found == pages.end() ? QString() : found->second;
    };
    if (read(first).isEmpty())
        return context_.problem(tr("[%1] expected the report of a replay, report.md; found none").arg(folder));
    auto* window = new widgets::GuideWindow(read, context_.window);
    window->setObjectName(QStringLiteral("report_window"));
    window->setWindowTitle(tr("Report: %1").arg(folder));
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->show();
    window->show_topic(first, {});
}

}  // namespace headscope::app
