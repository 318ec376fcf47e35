// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/export_dialog.h"

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QSplitter>
#include <QVBoxLayout>

#include "core/figures/make_figure.h"
#include "core/figures/options/figure_arguments.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/file_dialog.h"
#include "widgets/panels/figure_form.h"
#include "widgets/views/tensors/tensor_source.h"

namespace headscope::widgets {
namespace {

constexpr int kExportPause = 300;  // ms after the last change

QString path_of(const Study& study) {
    return QString::fromStdString(study.path().string());
}

}  // namespace

ExportDialog::ExportDialog(Desk* desk, std::string program, QWidget* parent)
    : QDialog(parent), desk_(desk), maker_(std::move(program), &desk->reader()) {
    setWindowTitle(tr("Export a figure"));
    setObjectName(QStringLiteral("export_dialog"));
    resize(1080, 640);
    build();
    soon_.setSingleShot(true);
    soon_.setInterval(kExportPause);
    connect(&soon_, &QTimer::timeout, this, [this] {
        if (files().empty() || !form_->problem().isEmpty()) return;
        figures::FigureRequest preview = request();
        const double zoom = zoom_->currentData().toDouble();
        preview.style.dpi = std::clamp(screen()->logicalDotsPerInch() * devicePixelRatioF() * zoom, 36.0, 600.0);
        maker_.preview(preview, files());
    });
    connect(&maker_, &FigureMaker::previewed, this, [this](const QImage& picture) {
        image_ = picture;  // a message stays: a file may be written before its preview is drawn
        show_picture();
    });
    connect(&maker_, &FigureMaker::preview_failed, this, [this](const QString& message) {
        image_ = QImage();
        picture_->clear();
        problem_->setText(message);
    });
    connect(&maker_, &FigureMaker::written, this, [this](const QString& path) {
        problem_->setText(tr("Written: %1").arg(path));
        Q_EMIT told(tr("Exported %1").arg(path));
    });
    connect(&maker_, &FigureMaker::failed, this, [this](const QString& message) {
        problem_->setText(message);
        if (!isVisible()) Q_EMIT failed(message);
    });
    connect(&maker_, &FigureMaker::copied, this, [this](const FigureMaker::Copy& copy) {
        auto* mime = new QMimeData;
        if (copy.format == QLatin1String("png")) {
            mime->setImageData(copy.picture);
        } else {
            if (copy.format == QLatin1String("svg")) mime->setData(QStringLiteral("image/svg+xml"), copy.bytes);
            mime->setText(copy.text);
        }
        QApplication::clipboard()->setMimeData(mime);
        problem_->setText(tr("Copied to the clipboard"));
        Q_EMIT told(tr("Copied to the clipboard"));
    });
    connect(desk_, &Desk::studies_changed, this, [this] { list_inputs({}); });
    connect(&desk_->runs(), &RunShelf::runs_changed, this, [this] { list_inputs({}); });
    connect(&desk_->evaluations(), &EvaluationShelf::changed, this, [this] { list_inputs({}); });
    connect(&desk_->asks(), &AskShelf::changed, this, [this] { list_inputs({}); });
    if (desk_->tensors()) connect(desk_->tensors(), &TensorSource::models_changed, this, [this] { list_inputs({}); });
}

void ExportDialog::build() {
    auto* left = new QWidget(this);
    auto* column = new QVBoxLayout(left);
    recipe_ = new QComboBox(left);
    recipe_->setObjectName(QStringLiteral("export_recipe"));
    recipe_->setAccessibleName(tr("Figure"));
    for (const auto* recipe : figures::recipes()) {
        const QString name = QString::fromStdString(recipe->name);
        recipe_->addItem(name, name);
        recipe_->setItemData(
            recipe_->count() - 1,
            tr("%1\nNeeds %2").arg(QString::fromStdString(recipe->description), QString::fromStdString(recipe->needs)),
            Qt::ToolTipRole);
    }
    inputs_ = new QListWidget(left);
    inputs_->setObjectName(QStringLiteral("export_studies"));
    inputs_->setAccessibleName(tr("What is drawn"));
    inputs_->setMaximumHeight(84);
    form_ = new FigureForm(left);
    form_->set_dark_window(desk_->theme().dark);
    connect(desk_, &Desk::theme_changed, this, [this] { form_->set_dark_window(desk_->theme().dark); });
    auto* scroll = new QScrollArea(left);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(form_);
    column->addWidget(new QLabel(tr("Figure"), left));
    column->addWidget(recipe_);
    column->addWidget(new QLabel(tr("Of these"), left));
    column->addWidget(inputs_);
    column->addWidget(scroll, 1);

    auto* right = new QWidget(this);
    auto* page = new QVBoxLayout(right);
    zoom_ = new QComboBox(right);
    zoom_->setObjectName(QStringLiteral("export_zoom"));
    zoom_->setAccessibleName(tr("Size of the preview"));
    for (const double zoom : {0.5, 1.0, 1.5, 2.0}) {
        const QString text = zoom == 1.0 ? tr("true size") : tr("%1 %").arg(qRound(zoom * 100));
        zoom_->addItem(text, zoom);
    }
    zoom_->setCurrentIndex(1);
    picture_ = new QLabel(right);
    picture_->setObjectName(QStringLiteral("export_preview"));
    picture_->setAlignment(Qt::AlignCenter);
    auto* paper = new QScrollArea(right);
    paper->setWidget(picture_);
    paper->setWidgetResizable(true);
    paper->setBackgroundRole(QPalette::Mid);
    note_ = new QLabel(right);
    note_->setObjectName(QStringLiteral("export_note"));
    note_->setWordWrap(true);
    note_->setTextFormat(Qt::PlainText);
    note_->hide();
    problem_ = new QLabel(right);
    problem_->setObjectName(QStringLiteral("export_problem"));
    problem_->setWordWrap(true);
    problem_->setTextFormat(Qt::PlainText);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    command_ = new QLineEdit(right);
    command_->setObjectName(QStringLiteral("export_command"));
    command_->setAccessibleName(tr("The command that makes the same file"));
    command_->setReadOnly(true);
    auto* copy_command = new QPushButton(tr("Copy command"), right);
    copy_command->setObjectName(QStringLiteral("export_copy_command"));
    save_ = new QPushButton(tr("Export…"), right);
    save_->setObjectName(QStringLiteral("export_save"));
    save_->setDefault(true);
    copy_ = new QPushButton(tr("Copy"), right);
    copy_->setObjectName(QStringLiteral("export_copy"));
    auto* formats = new QMenu(copy_);
    for (const char* format : {"png", "svg", "csv"})
        formats->addAction(QString::fromLatin1(format).toUpper(), this,
                           [this, format] { maker_.copy(request(), files(), QLatin1String(format)); });
    copy_->setMenu(formats);
    auto* close = new QPushButton(tr("Close"), right);
    auto* top = new QHBoxLayout;
    top->addWidget(new QLabel(tr("Preview"), right));
    top->addWidget(zoom_);
    top->addStretch();
    auto* line = new QHBoxLayout;
    line->addWidget(command_, 1);
    line->addWidget(copy_command);
    auto* buttons = new QHBoxLayout;
    buttons->addStretch();
    buttons->addWidget(copy_);
    buttons->addWidget(save_);
    buttons->addWidget(close);
    page->addLayout(top);
    page->addWidget(paper, 1);
    page->addWidget(note_);
    page->addWidget(problem_);
    page->addLayout(line);
    page->addLayout(buttons);

    auto* splitter = new QSplitter(this);
    splitter->addWidget(left);
    splitter->addWidget(right);
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({300, 780});
    auto* whole = new QVBoxLayout(this);
    whole->addWidget(splitter);

    connect(recipe_, &QComboBox::activated, this, [this] {
        figures::FigureRequest request = form_->request();
        request.recipe = recipe_->currentData().toString().toStdString();
        note_->hide();  // it was about the view's own figure
        form_->set_request(request);
        list_inputs({});
    });
    connect(inputs_, &QListWidget::itemChanged, this, [this] {
        if (!filling_) changed();
    });
    connect(form_, &FigureForm::changed, this, &ExportDialog::changed);
    connect(zoom_, &QComboBox::activated, this, &ExportDialog::changed);
    connect(copy_command, &QPushButton::clicked, this,
            [this] { QApplication::clipboard()->setText(command_->text()); });
    connect(save_, &QPushButton::clicked, this, &ExportDialog::ask_output);
    connect(close, &QPushButton::clicked, this, &QDialog::close);
}

void ExportDialog::show_wish(const FigureRequest& wish) {
    figures::FigureRequest request = form_->request();
    request.recipe = wish.recipe;
    request.options = wish.options;
    request.options.names.clear();  // those of what is ticked, see request()
    note_->setText(wish.note);
    note_->setVisible(!wish.note.isEmpty());
    // Drop the picture of another request.
    image_ = QImage();
    picture_->setText(tr("Drawing…"));
    picture_->resize(picture_->sizeHint());
    problem_->clear();
    recipe_->setCurrentIndex(recipe_->findData(QString::fromStdString(wish.recipe)));
    form_->set_request(request);
    list_inputs(paths_of(wish));
}

ExportDialog::Drawing ExportDialog::drawing(const FigureRequest& wish) const {
    Drawing drawing{{wish.recipe, wish.options, form_->request().style}, {}};
    for (const QString& path : paths_of(wish)) drawing.files.push_back(path.toStdString());
    return drawing;
}

void ExportDialog::copy(const FigureRequest& wish, const QString& format) {
    const Drawing made = drawing(wish);
    maker_.copy(made.request, made.files, format);
}

QStringList ExportDialog::paths_of(const FigureRequest& wish) const {
    QStringList paths = wish.paths;
    for (const int id : wish.studies)
        if (const Study* study = desk_->study(id)) paths << path_of(*study);
    return paths;
}

/// Lists open items of the kinds that the recipe takes, ticked ones first.
void ExportDialog::list_inputs(const QStringList& chosen) {
    QStringList ticked = chosen;
    if (ticked.isEmpty())
        for (const std::string& file : files()) ticked << QString::fromStdString(file);
    const figures::Recipe* recipe = figures::find_recipe(request().recipe);
    using Inputs = figures::RecipeInputs;
    const auto takes = [recipe](Inputs inputs) { return recipe != nullptr && recipe->is_of(inputs); };
    struct Entry {
        QString path, name;
        bool able = false;
    };
    std::vector<Entry> entries;
    const auto add = [&entries](const QString& path, const QString& name, bool able) {
        entries.push_back({path, name, able});
    };
    if ((recipe != nullptr && recipe->of_analyses != nullptr) || takes(Inputs::models)) {
        const auto studies = desk_->studies();
        const std::vector<QString> labels = study_labels({studies.begin(), studies.end()});
        for (std::size_t i = 0; i < labels.size(); ++i)
            add(path_of(*studies[i]), studies[i]->complete() ? labels[i] : tr("%1 (not complete)").arg(labels[i]),
                studies[i]->complete());
    }
    if (takes(Inputs::runs) || takes(Inputs::models))
        for (const Run& run : desk_->runs().runs())
            add(run.path, tr("Run: %1").arg(run.name), run.record->steps.size() > 0);
    if (takes(Inputs::evaluations))
        for (const OpenEvaluation& one : desk_->evaluations().all())
            add(one.path, tr("Evaluation: %1").arg(one.name), true);
    if (takes(Inputs::asks))
        for (const OpenAsk& one : desk_->asks().all()) add(one.path, tr("Ask file: %1").arg(one.name), true);
    if (takes(Inputs::tensors) && desk_->tensors())
        for (const auto& model : desk_->tensors()->models()) add(model.path, model.name, true);
    if (takes(Inputs::hashes)) {
        add(QStringLiteral("md5"), tr("MD5"), true);
        add(QStringLiteral("lsh"), tr("LSH of English n-grams"), true);
        for (const auto& model : desk_->tensors() ? desk_->tensors()->models() : std::vector<TensorSource::Model>{})
            if (model.hash && model.hash->settings().has_bits() && !model.path.isEmpty())
                add(model.path, model.name, true);
    }
    if (takes(Inputs::models)) {
        for (const PresetChoice& preset : desk_->runs().draft().choices().presets)
            add(preset.value, preset.title, true);
        for (const QString& path : ticked)
            if (std::none_of(entries.begin(), entries.end(), [&](const Entry& one) { return one.path == path; }) &&
                path.contains(QLatin1Char('/')) && !desk_->runs().run_at(path) && !desk_->evaluations().at(path))
                add(path, path, true);
    }
    // Those that were chosen in front and in their order: a difference is the second minus the first.
    const auto place = [&ticked](const Entry& one) {
        const auto at = ticked.indexOf(one.path);
        return at < 0 ? ticked.size() : at;
    };
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const Entry& one, const Entry& other) { return place(one) < place(other); });
    filling_ = true;
    inputs_->clear();
    for (const Entry& entry : entries) {
        auto* item = new QListWidgetItem(entry.name, inputs_);
        item->setData(Qt::UserRole, entry.path);
        item->setToolTip(entry.path);
        item->setFlags(entry.able ? Qt::ItemIsEnabled | Qt::ItemIsUserCheckable | Qt::ItemIsSelectable
                                  : Qt::ItemFlags());
        item->setCheckState(entry.able && ticked.contains(entry.path) ? Qt::Checked : Qt::Unchecked);
    }
    filling_ = false;
    changed();
}

figures::FigureRequest ExportDialog::request() const {
    figures::FigureRequest request = form_->request();
    if (!request.options.names.empty()) return request;
    std::vector<const Study*> ticked;
    for (const std::string& file : files()) {
        const auto all = desk_->studies();
        const auto study = std::find_if(all.begin(), all.end(), [&](const Study* one) { return one->path() == file; });
        if (study == all.end()) return request;
        ticked.push_back(*study);
    }
    if (figures::has_option(request.recipe, *figures::find_figure_option("names")))
        request.options.names = given_names(ticked);
    return request;
}

std::vector<std::string> ExportDialog::files() const {
    std::vector<std::string> files;
    for (int row = 0; row < inputs_->count(); ++row) {
        const QListWidgetItem* item = inputs_->item(row);
        if (item->checkState() == Qt::Checked) files.push_back(item->data(Qt::UserRole).toString().toStdString());
    }
    return files;
}

QString ExportDialog::command() const {
    return command_->text();
}

void ExportDialog::changed() {
    const auto chosen = files();
    const QString problem = chosen.empty() ? tr("Tick what it is to be made of: an analysis that is complete, a run, "
                                                "an evaluation, an ask file, a checkpoint, sizes")
                                           : form_->problem();
    problem_->setText(problem);
    save_->setEnabled(problem.isEmpty());
    copy_->setEnabled(problem.isEmpty());
    const std::string output = request().recipe + ".pdf";
    command_->setText(
        QString::fromStdString(figures::shell_command(figures::figure_arguments(request(), chosen, output))));
    command_->setCursorPosition(0);
    soon_.start();
}

void ExportDialog::show_picture() {
    image_.setDevicePixelRatio(devicePixelRatioF());
    picture_->setPixmap(QPixmap::fromImage(image_));
}

void ExportDialog::ask_output() {
    const figures::Recipe* recipe = figures::find_recipe(request().recipe);
    QStringList endings{QStringLiteral("pdf"), QStringLiteral("svg"), QStringLiteral("png"), QStringLiteral("csv")};
    FileQuestion question{tr("Export the figure"),
                          tr("PDF (*.pdf);;SVG with real text (*.svg);;PNG (*.png);;Numbers as CSV (*.csv)")};
    if (recipe != nullptr && recipe->latex) {
        question.filter += tr(";;Table for LaTeX (*.tex)");
        endings << QStringLiteral("tex");
    }
    question.mode = QFileDialog::AnyFile;
    question.suggestion = QString::fromStdString(request().recipe + ".pdf");
    question.name = QStringLiteral("export_file");
    ask_for_files(this, question, [this, endings](const QStringList& chosen, const QString& filter) {
        QString path = chosen.first();
        const QString ending = filter.section(QLatin1String("(*"), 1).section(QLatin1Char(')'), 0, 0);
        const QString has = path.section(QLatin1Char('.'), -1).toLower();
        if (!endings.contains(has)) path += ending;
        problem_->setText(tr("Writing %1…").arg(path));
        maker_.write(request(), files(), path);
    });
}

}  // namespace headscope::widgets
