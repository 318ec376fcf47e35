// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files_controller.h"

#include <QFile>
#include <QFileInfo>
#include <QInputDialog>
#include <QStandardPaths>
#include <algorithm>

#include "app/window/analysis_controller.h"
#include "app/window/files/copy_file.h"
#include "app/window/files/leftovers.h"
#include "app/window/pages_controller.h"
#include "app/window/training/run_service.h"
#include "core/ask/corpus/headvis_tree.h"
#include "core/base/error.h"
#include "core/base/io/file_identity.h"
#include "core/base/process/spawned.h"
#include "widgets/file_dialog.h"

namespace headscope::app {
namespace {

constexpr int kMostNames = 500;

QString path_of(const widgets::Study* study) {
    return QString::fromStdString(study->path().string());
}

}  // namespace

FilesController::FilesController(Context& context, PagesController& pages, AnalysisController& analysis)
    : context_(context), pages_(pages), analysis_(analysis), adapters_(context), recent_(context) {
    build_actions();
    connect(&context_, &Context::updated, this, &FilesController::update);
    connect(&adapters_, &AdapterController::open_wanted, this, &FilesController::open);
    connect(&recent_, &RecentItems::chosen, this, &FilesController::open);
    connect(&context_.engine, &Engine::model_opened, this, &FilesController::opened_model);
    connect(&context_.engine, &Engine::model_failed, this, [this](const QString& path, const QString& message) {
        analysis_.model_failed(path);
        settle_failed(path, message);
    });
    connect(&context_.opener, &Opener::opened, this, &FilesController::opened_study);
    connect(&context_.opener, &Opener::was_open, this, [this](const QString& path, widgets::Study* study) {
        context_.restoration.brought_back(path) ? recent_.remember(*study) : show(study);
        context_.restoration.settle(path);
    });
    connect(&context_.opener, &Opener::failed, this, [this](const QString& path, const QString& message) {
        analysis_.file_failed(path);
        settle_failed(path, message);
    });
    connect(&analysis_, &AnalysisController::completed, this, [this](widgets::Study* study) {
        recent_.remember(*study);
        recent_.picture(study);
    });
    const widgets::StartPage* start = context_.start;
    connect(start, &widgets::StartPage::open_model_wanted, this, &FilesController::choose_model);
    connect(start, &widgets::StartPage::open_analysis_wanted, this, &FilesController::choose_analysis);
    connect(start, &widgets::StartPage::sample_wanted, this, &FilesController::open_sample);
    connect(start, &widgets::StartPage::removal_wanted, this, &FilesController::remove_leftover);
    connect(context_.text, &widgets::TextPanel::open_model_wanted, this, &FilesController::choose_model);
    const widgets::ProjectTree* tree = context_.tree;
    connect(tree, &widgets::ProjectTree::study_close_wanted, &context_.desk, &widgets::Desk::remove);
    connect(tree, &widgets::ProjectTree::study_rename_wanted, this, &FilesController::ask_name);
    connect(tree, &widgets::ProjectTree::study_save_wanted, this, &FilesController::save_copy);
    connect(tree, &widgets::ProjectTree::folder_wanted, this, &FilesController::show_folder);
}

void FilesController::build_actions() {
    Actions& actions = context_.actions;
    const auto selected = [this] { return context_.desk.selection().study; };
    actions.add("open_model", tr("&Open checkpoint…"), QKeySequence::Open, tr("A folder or file of weights"),
                [this] { choose_model(); });
    actions.add("open_analysis", tr("Open &analysis…"), QKeySequence(tr("Ctrl+Shift+O")),
                tr("A file NAME.headscope.h5"), [this] { choose_analysis(); });
    actions.add("open_sample", tr("Open the &sample"), {}, tr("A small checkpoint with a text"),
                [this] { open_sample(); });
    actions.add("rename_analysis", tr("Re&name the analysis…"), QKeySequence(Qt::Key_F2),
                tr("Its name in lists and figures; the file keeps its own"),
                [this, selected] { ask_name(selected()); });
    actions.add("save_copy", tr("Save a &copy of the analysis…"), QKeySequence::SaveAs,
                tr("The shown analysis, to a place of your own"), [this, selected] { save_copy(selected()); });
    actions.add("close_analysis", tr("&Close the analysis"), QKeySequence::Close, tr("Its file stays"),
                [this, selected] { context_.desk.remove(selected()); });
}

void FilesController::update() {
    const widgets::Study* study = context_.desk.current();
    context_.actions.enable("save_copy", study && study->complete());
    context_.actions.enable("close_analysis", study != nullptr);
    context_.actions.enable("rename_analysis", study != nullptr);
}

void FilesController::choose_model() {
    widgets::ask_for_file(context_.window,
                          {tr("Open a checkpoint: a folder with config.json and weights"), {}, QFileDialog::Directory},
                          [this](const QString& path) { open(path); });
}

void FilesController::choose_analysis() {
    widgets::ask_for_file(
        context_.window,
        {tr("Open an analysis"), tr("Analyses, evaluations and ask files (*.h5 *.partial);;All files (*)")},
        [this](const QString& path) { open(path); });
}

void FilesController::open_sample() {
    const std::filesystem::path folder =
        std::filesystem::path(context_.engine.resources()) / "samples" / "llama-kjv-shakespeare";
    widgets::TextChoice choice = context_.text->choice();
    choice.sources.assign(1, {widgets::TextSource::Kind::example, QStringLiteral("lantern")});
    choice.length = 0;
    context_.text->set_choice(choice);
    open(QString::fromStdString(folder.string()));
}

/// The most likely kind of a path. Reads the disk: not for the window's thread.
FilesController::Kind FilesController::kind_of(const QString& path) {
    if (Opener::looks_like_analysis(path)) return Kind::analysis;
    const QFileInfo info(path);
    if (info.isDir() && ask::corpus::is_headvis_tree(path.toStdString())) return Kind::analysis;
    if (info.isDir() && looks_like_run(path)) return Kind::run;
    if (info.isDir() || !info.exists()) return Kind::model;
    if (path.endsWith(QLatin1String(".toml"))) return Kind::job;
    for (const char* ending : {".safetensors", ".gguf", ".bin", ".pt", ".pth", ".ckpt", ".index.json", "config.json"})
        if (path.endsWith(QLatin1String(ending))) return Kind::model;
    return Kind::text;
}

void FilesController::open(const QString& path) {
    context_.restoration.request(path);
    context_.ask_disk(path, [this, path, runs = analysis_.study() != nullptr, send = mailbox_.sender()] {
        const Kind kind = kind_of(path);
        const AdapterFound adapter = kind == Kind::model ? find_adapter(path) : AdapterFound{};
        const auto file = runs ? identity_of(path.toStdString()) : std::nullopt;
        send([this, path, kind, adapter, file] {
            widgets::Study* running = file ? analysis_.study() : nullptr;
            if (running && running->running() && running->is(*file))
                show(running);  // no other process can read a file that is being written
            else
                open_found(path, kind, adapter);
        });
    });
}

void FilesController::open_found(const QString& path, Kind kind, const AdapterFound& adapter) {
    if (kind == Kind::analysis)
        context_.opener.open(path);
    else if (kind == Kind::run)
        Q_EMIT run_found(path);
    else if (kind != Kind::model && context_.restoration.postpone(path))
        return;
    else if (kind == Kind::job)
        Q_EMIT job_found(path);
    else if (kind == Kind::text)
        Q_EMIT text_found(path);
    else if (!adapter.text.isEmpty())
        adapters_.offer(path, adapter);
    else
        context_.engine.open_model(path);
}

void FilesController::show(widgets::Study* study) {
    context_.desk.select_study(study->id());
    pages_.show_page(PagesController::Page::analysis);
    recent_.remember(*study);
}

void FilesController::show_model(int model) {
    context_.text->begin_with_model(model);
    for (const auto& card : context_.engine.models())
        if (card.id == model && card.tensors_only) return pages_.show_tensors(model);
    // The page's notice says what comes next; a run that waits for the checkpoint brings its own text.
    if (pages_.page() != PagesController::Page::analysis && !analysis_.waits_with_text())
        pages_.show_page(PagesController::Page::analysis);
    context_.text->focus_next_step();
}

void FilesController::opened_model(int id) {
    const auto& models = context_.engine.models();
    const auto opened = std::find_if(models.begin(), models.end(), [id](const auto& card) { return card.id == id; });
    if (opened == models.end()) return;
    const widgets::ModelCard card = *opened;
    context_.report(card.tensors_only ? tr("Opened %1. %2").arg(card.name, card.note)
                                      : tr("Opened %1. Ctrl+Enter runs the text").arg(card.name));
    const bool back = context_.restoration.brought_back(card.path);
    recent_.remember({card.path,
                      card.name,
                      card.tensors_only ? tr("tensors only") : tr("%1, %2 layers").arg(card.family).arg(card.layers),
                      QStringLiteral("model"),
                      {}});
    if (!back)
        show_model(id);
    else if (context_.restoration.active() && !context_.restoration.touched())
        context_.text->choose_model(id);
    analysis_.model_opened(id);
    context_.restoration.settle(card.path);
}

void FilesController::opened_study(widgets::Study* study) {
    const QString path = path_of(study);
    give_name(study);
    const auto part = analysis_.take(study);
    if (part != AnalysisController::Part::running)
        context_.restoration.brought_back(path) ? recent_.remember(*study) : show(study);
    if (part == AnalysisController::Part::ended && study->complete()) analysis_.show_changes();
    const auto report_problems = [this, study] {
        for (const QString& text : study->problems()) context_.problem(tr("%1: %2").arg(study->name(), text));
    };
    report_problems();
    connect(study, &widgets::Study::problems_found, this, report_problems);
    connect(study, &widgets::Study::arrived, this, [this, study] { recent_.picture(study); });
    recent_.picture(study);
    context_.restoration.settle(path);
    if (leftovers_.contains(path)) offer_leftovers();
}

void FilesController::settle_failed(const QString& path, const QString& message) {
    context_.problem(message);
    context_.restoration.settle(path);
}

void FilesController::save_copy(int id) {
    const widgets::Study* study = context_.desk.study(id);
    if (!study || !study->complete()) return;
    const std::filesystem::path source = study->path();
    widgets::ask_for_file(
        context_.window, {tr("Save a copy of the analysis"), tr("Analyses (*.headscope.h5)"), QFileDialog::AnyFile},
        [this, source](const QString& chosen) {
            QString path = chosen;
            if (!path.endsWith(QLatin1String(".h5"))) path += QStringLiteral(".headscope.h5");
            copier_.post(this, [this, source, path, send = mailbox_.sender()](const Cancellation& cancellation) {
                try {
                    copy_whole(source, path.toStdString(), cancellation);
                    send([this, path] { context_.report(tr("Saved %1").arg(path)); });
                } catch (const Stopped&) {
                } catch (const Error& error) {
                    const QString message = QString::fromUtf8(error.what());
                    send([this, message] { context_.problem(message); });
                }
            });
        });
}

/// Not by QDesktopServices, which forks on the window's thread.
void FilesController::show_folder(const QString& path) {
    if (folder_program_.isEmpty()) return;
    context_.disk.post(this, [this, path, program = folder_program_, send = mailbox_.sender()](const Cancellation&) {
        try {
            SpawnOptions options;
            options.program = QStandardPaths::findExecutable(program).toStdString();
            options.arguments = {path.toStdString()};
            options.own_session = true;
            if (options.program.empty())
                throw Error(ErrorCode::io, path.toStdString(),
                            "expected the program " + program.toStdString() + " to show this folder",
                            "found no program of that name");
            Spawned::start(options);
        } catch (const Error& error) {
            const QString message = QString::fromUtf8(error.what());
            send([this, message] { context_.problem(message); });
        }
    });
}

void FilesController::ask_name(int id) {
    const widgets::Study* study = context_.desk.study(id);
    if (!study) return;
    auto* question = new QInputDialog(context_.window);
    question->setObjectName(QStringLiteral("rename_dialog"));
    question->setAttribute(Qt::WA_DeleteOnClose);
    question->setWindowTitle(tr("Rename the analysis"));
    question->setLabelText(tr("Name in lists and figures; empty: that of the file, %1").arg(study->file_name()));
    question->setTextValue(study->name());
    connect(question, &QInputDialog::textValueSelected, this, [this, id](const QString& name) {
        widgets::Study* renamed = context_.desk.study(id);
        if (!renamed) return;
        context_.desk.rename_study(id, name);
        names_ = names();
        recent_.remember(*renamed);
    });
    question->open();
}

/// The name that an analysis of this path had before.
void FilesController::give_name(widgets::Study* study) {
    const QString name = names_[path_of(study)].toString();
    if (!name.isEmpty()) context_.desk.rename_study(study->id(), name);
}

QJsonObject FilesController::names() const {
    QJsonObject names;
    QStringList open;
    for (const widgets::Study* study : context_.desk.studies()) {
        open << path_of(study);
        if (!study->given_name().isEmpty()) names[path_of(study)] = study->given_name();
    }
    for (auto name = names_.begin(); name != names_.end() && names.size() < kMostNames; ++name) {
        const bool listed = recent_.contain(name.key()) || context_.restoration.expects(name.key());
        if (!open.contains(name.key()) && listed) names[name.key()] = *name;
    }
    return names;
}

void FilesController::look_for_leftovers(const QStringList& of_session) {
    context_.disk.post(
        this, [this, folder = context_.folder / "analyses", of_session, send = mailbox_.sender()](const Cancellation&) {
            QStringList found;
            for (const std::filesystem::path& path : find_leftovers(folder))
                if (const QString name = QString::fromStdString(path.string()); !of_session.contains(name))
                    found << name;
            send([this, found] {
                leftovers_ = found;
                offer_leftovers();
            });
        });
}

void FilesController::offer_leftovers() {
    for (const widgets::Study* study : context_.desk.studies()) leftovers_.removeAll(path_of(study));
    context_.start->offer_leftovers(leftovers_);
}

void FilesController::remove_leftover(const QString& path) {
    leftovers_.removeAll(path);
    offer_leftovers();
    context_.disk.post(this, [this, path, send = mailbox_.sender()](const Cancellation&) {
        const bool removed = QFile::remove(path);
        send([this, path, removed] {
            removed ? context_.report(tr("Removed %1").arg(path))
                    : context_.problem(tr("[%1] expected to remove this file").arg(path));
        });
    });
}

}  // namespace headscope::app
