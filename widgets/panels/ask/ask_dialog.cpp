// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/ask/ask_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDateTime>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalBlocker>
#include <algorithm>

#include "core/ask/options/tool_options.h"
#include "widgets/file_dialog.h"
#include "widgets/plain_edit.h"

namespace headscope::widgets {
namespace {

/// The help of the command line, which begins in lower case.
QString option_tip(const ask::ToolOption& option) {
    QString tip = QString::fromStdString(option.help);
    if (!tip.isEmpty()) tip[0] = tip[0].toUpper();
    return tip;
}

/// Entries of a box; empty: the option is no choice. Two that go together give all their sets.
QStringList entries_of(const ask::ToolOption& option) {
    const bool sets = option.kind == OptionKind::choices && option.choices.size() == 2;
    if (option.kind != OptionKind::choice && !sets) return {};
    QStringList entries;
    for (const std::string& one : option.choices) entries << QString::fromStdString(one);
    if (sets) entries << entries.join(QLatin1Char(','));
    if (ask::standard_text(option).empty()) entries.prepend(QString());
    return entries;
}

/// The row of a control: of a path the layout that also holds its button.
void set_row_visible(QFormLayout* form, QWidget* control, bool visible) {
    for (int row = 0; row < form->rowCount(); ++row) {
        QLayoutItem* item = form->itemAt(row, QFormLayout::FieldRole);
        if (!item) continue;
        const bool held = item->layout() && item->layout()->indexOf(control) >= 0;
        if (item->widget() == control || held) return form->setRowVisible(row, visible);
    }
}

/// Choices of the text panel that the command has not.
QStringList unread_choices(const TextChoice& texts) {
    QStringList names;
    if (texts.chat) names << AskDialog::tr("chat template");
    if (!texts.pair.isEmpty()) names << AskDialog::tr("second text of a pair");
    if (texts.windows) names << AskDialog::tr("windows");
    if (texts.repeat_token) names << AskDialog::tr("repeated first token");
    if (!texts.interventions.toml.isEmpty()) names << AskDialog::tr("interventions");
    return names;
}

}  // namespace

AskDialog::AskDialog(QWidget* parent)
    : TaskDialog("ask_dialog", tr("Ask a model"),
                 tr("Reads or edits values inside a model and stores the numbers in a file, which opens when it is "
                    "done."),
                 parent) {
    tool_ = named(new QComboBox(this), "tool", tr("Tool"), tr("What is asked of the model"));
    for (const AskToolForm& form : ask_forms()) tool_->addItem(tr(form.title), QString::fromLatin1(form.tool));
    about_ = new QLabel(this);
    about_->setObjectName(QStringLiteral("ask_dialog_tool_about"));
    about_->setWordWrap(true);
    about_->setTextFormat(Qt::PlainText);
    source_ = named(new QComboBox(this), "source", tr("Checkpoint"), tr("One of the open checkpoints"));
    source_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    texts_shown_ = named(new QLabel(this), "texts", tr("Texts"), tr("The ticked texts of the text panel"));
    texts_shown_->setTextFormat(Qt::PlainText);
    texts_shown_->setWordWrap(true);
    form()->addRow(tr("Tool"), tool_);
    form()->addRow(about_);
    form()->addRow(tr("Checkpoint"), source_);
    build_models();
    form()->addRow(tr("Texts"), texts_shown_);
    build_pair();
    build_metric();
    build_options();
    interventions_ = add_path("interventions", tr("Interventions"),
                              tr("A TOML file of edits that apply to every run; empty: none"), Wants::files);
    output_ = add_path("output", tr("Result"), tr("The file that is written: NAME.ask.h5"), Wants::new_folder);
    resume_ = named(new QCheckBox(tr("Continue this file"), this), "resume", tr("Continue"),
                    tr("Resumes a run of the same command that was stopped"));
    form()->addRow(QString(), resume_);
    connect(resume_, &QCheckBox::toggled, this, &AskDialog::update_state);
    const auto refit = [this] {
        show_rows();
        suggest_output();
        update_state();
    };
    connect(tool_, &QComboBox::currentIndexChanged, this, refit);
    connect(source_, &QComboBox::currentIndexChanged, this, refit);
    connect(metric_, &QComboBox::currentIndexChanged, this, [this] {
        show_rows();
        update_state();
    });
    set_texts({}, {});
    refit();
}

QLineEdit* AskDialog::add_line(const char* name, const QString& label, const QString& tip) {
    auto* line = named(new QLineEdit(this), name, label, tip);
    form()->addRow(label, line);
    connect(line, &QLineEdit::textChanged, this, &AskDialog::update_state);
    return line;
}

void AskDialog::build_models() {
    const QString label = tr("Checkpoints");
    models_ = named(new PlainEdit(this), "models", label,
                    tr("Checkpoints of one model in their order, a path a line; or a folder of folders whose names end "
                       "in steps, such as a run's snapshots"));
    models_->setTabChangesFocus(true);
    models_->setLineWrapMode(QPlainTextEdit::NoWrap);
    models_->setFixedHeight(5 * models_->fontMetrics().lineSpacing());
    auto* add = named(new QPushButton(tr("Add…"), this), "models_add", tr("Add a folder"),
                      tr("Add a checkpoint, or a folder that holds several"));
    add->setAutoDefault(false);
    auto* row = new QHBoxLayout;
    row->addWidget(models_, 1);
    row->addWidget(add, 0, Qt::AlignTop);
    form()->addRow(label, row);
    connect(models_, &PlainEdit::textChanged, this, [this] {
        suggest_output();
        update_state();
    });
    connect(add, &QPushButton::clicked, this, [this] {
        FileQuestion question;
        question.title = tr("Add a checkpoint or a folder of checkpoints");
        question.mode = QFileDialog::Directory;
        ask_for_file(this, question, [this](const QString& path) { models_->appendPlainText(path); });
    });
}

QStringList AskDialog::models() const {
    QStringList paths;
    for (const QString& line : models_->toPlainText().split(QLatin1Char('\n')))
        if (const QString path = line.trimmed(); !path.isEmpty()) paths << path;
    return paths;
}

void AskDialog::build_pair() {
    clean_ = add_line("clean", tr("Clean text"), tr("The text whose values are taken"));
    corrupted_ = add_line("corrupted", tr("Corrupted text"), tr("A text of as many tokens, into which they are put"));
}

void AskDialog::build_metric() {
    metric_ = named(new QComboBox(this), "metric", tr("Metric"), tr("The number that is read of each run"));
    for (const AskMetric& one : ask_metrics()) metric_->addItem(tr(one.title), QString::fromLatin1(one.name));
    form()->addRow(tr("Metric"), metric_);
    answer_ = add_line("answer", tr("Answer"), tr("Tokens, as ids or in quotes: \" Paris\",464"));
    against_ = add_line("against", tr("Against"), tr("Tokens that the answer is compared with"));
    position_ = add_line("position", tr("Position"), tr("Where logits are read: an index, -1 the last, or all"));
    position_->setText(QStringLiteral("-1"));
}

void AskDialog::build_options() {
    for (const AskControl& one : ask_controls()) {
        const ask::ToolOption& option = ask::tool_option(one.option);
        const QByteArray name = QByteArray::fromStdString(option.name).replace('-', '_');
        const QString label = tr(one.label), tip = option_tip(option);
        const QString standard = QString::fromStdString(ask::standard_text(option));
        QWidget* control = nullptr;
        if (const QStringList entries = entries_of(option); !entries.isEmpty()) {
            auto* box = named(new QComboBox(this), name.constData(), label, tip);
            for (const QString& entry : entries) box->addItem(entry.isEmpty() ? tr("none") : entry, entry);
            box->setCurrentIndex(std::max(0, static_cast<int>(entries.indexOf(standard))));
            connect(box, &QComboBox::currentIndexChanged, this, &AskDialog::update_state);
            form()->addRow(label, box);
            control = box;
        } else if (option.kind == OptionKind::flag) {
            auto* check = named(new QCheckBox(this), name.constData(), label, tip);
            connect(check, &QCheckBox::toggled, this, &AskDialog::update_state);
            form()->addRow(label, check);
            control = check;
        } else if (option.kind == OptionKind::path || option.kind == OptionKind::paths) {
            const Wants wants = option.written ? Wants::new_folder : option.folder ? Wants::folder : Wants::files;
            control = add_path(name.constData(), label, tip, wants);
        } else {
            auto* line = add_line(name.constData(), label, tip);
            line->setText(standard);
            control = line;
        }
        options_[QLatin1String(one.option)] = control;
    }
}

/// Shows the rows that the chosen tool and metric read.
void AskDialog::show_rows() {
    const AskToolForm* form = find_ask_form(tool_->currentData().toString());
    if (!form) return;
    about_->setText(tr(form->about));
    const bool pair = form->texts == AskToolForm::Texts::pair;
    if (form->metric && metric_->property("of").toString() != QLatin1String(form->tool)) {
        const QSignalBlocker quiet(metric_);
        metric_->setProperty("of", QString::fromLatin1(form->tool));
        metric_->setCurrentIndex(metric_->findData(QString::fromLatin1(form->metric)));
    }
    const AskMetric& metric = ask_metrics().at(static_cast<std::size_t>(std::max(0, metric_->currentIndex())));
    const bool answer = form->answer && (!form->metric || metric.answer);
    const auto show = [this](QWidget* control, bool visible) { set_row_visible(this->form(), control, visible); };
    show(source_, !form->models);
    show(models_, form->models);
    show(texts_shown_, !pair && form->texts != AskToolForm::Texts::none);
    show(clean_, pair);
    show(corrupted_, pair);
    show(metric_, form->metric != nullptr);
    show(answer_, answer);
    show(against_, answer && (!form->metric || metric.against));
    show(position_, form->answer && (!form->metric || QLatin1String(metric.name) != QLatin1String("loss")));
    for (const AskControl& one : ask_controls())
        show(options_.at(QLatin1String(one.option)),
             ask::reads_option(form->tool, ask::tool_option(one.option)) && (!one.of_decoder || encoder_decoder()));
}

bool AskDialog::encoder_decoder() const {
    const int at = source_->currentIndex();
    return at >= 0 && at < std::ssize(sources_) && sources_[static_cast<std::size_t>(at)].encoder_decoder;
}

void AskDialog::set_sources(const std::vector<AskSource>& sources, const QString& chosen) {
    if (sources == sources_) return;
    const int at = source_->currentIndex();
    const QString before = at >= 0 ? sources_.at(static_cast<std::size_t>(at)).path : chosen;
    {
        const QSignalBlocker quiet(source_);
        sources_ = sources;
        source_->clear();
        int now = sources_.empty() ? -1 : 0;
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            source_->addItem(sources_[i].name);
            source_->setItemData(static_cast<int>(i), sources_[i].path, Qt::ToolTipRole);
            if (sources_[i].path == before) now = static_cast<int>(i);
        }
        source_->setCurrentIndex(now);
    }
    show_rows();
    suggest_output();
    update_state();
}

void AskDialog::set_texts(const TextChoice& texts, const std::vector<TextExample>& examples) {
    texts_ = texts;
    examples_ = examples;
    const auto used = std::count_if(texts_.sources.begin(), texts_.sources.end(),
                                    [](const TextSource& one) { return one.used && !one.value.isEmpty(); });
    QString shown = used == 0   ? tr("none in the text panel")
                    : used == 1 ? tr("the text of the text panel")
                                : tr("%1 texts of the text panel").arg(used);
    if (const QStringList unread = unread_choices(texts_); used > 0 && !unread.isEmpty())
        shown += tr(", without: %1").arg(unread.join(QStringLiteral(", ")));
    texts_shown_->setText(shown);
    update_state();
}

void AskDialog::set_folder(const QString& folder) {
    folder_ = folder;
    suggest_output();
}

void AskDialog::choose_tool(const QString& tool) {
    if (const int at = tool_->findData(tool); at >= 0) tool_->setCurrentIndex(at);
}

void AskDialog::suggest_output() {
    if (!output_ || folder_.isEmpty() || output_->text() != suggested_) return;
    const QString tool = tool_->currentData().toString();
    const AskToolForm* form = find_ask_form(tool);
    QString shown = source_->currentText(), name;
    if (form && form->models) shown = models().value(0).section(QLatin1Char('/'), -1, -1, QString::SectionSkipEmpty);
    for (const QChar c : shown)
        name += c.isLetterOrNumber() || c == QLatin1Char('-') || c == QLatin1Char('.') ? c : QLatin1Char('_');
    suggested_ = QStringLiteral("%1/%2-%3-%4.ask.h5")
                     .arg(folder_, name.isEmpty() ? QStringLiteral("model") : name, tool,
                          QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss")));
    output_->setText(suggested_);
}

AskChoice AskDialog::choice() const {
    AskChoice choice;
    if (!resume_) return choice;  // the dialog is being built
    choice.tool = tool_->currentData().toString();
    const int at = source_->currentIndex();
    if (at >= 0 && at < std::ssize(sources_)) choice.model = sources_[static_cast<std::size_t>(at)].path;
    choice.models = models();
    choice.texts = texts_;
    choice.clean = clean_->text();
    choice.corrupted = corrupted_->text();
    choice.metric = metric_->currentData().toString();
    choice.answer = answer_->text().trimmed();
    choice.against = against_->text().trimmed();
    choice.position = position_->text().trimmed();
    choice.interventions = interventions_->text().trimmed();
    choice.resume = resume_->isChecked();
    choice.output = output();
    for (const AskControl& one : ask_controls()) {
        const QString option = QLatin1String(one.option);
        if (one.of_decoder && !encoder_decoder()) continue;
        const QWidget* control = options_.at(option);
        QString value;
        if (const auto* box = qobject_cast<const QComboBox*>(control)) value = box->currentData().toString();
        if (const auto* check = qobject_cast<const QCheckBox*>(control)) value = check->isChecked() ? "on" : "";
        if (const auto* line = qobject_cast<const QLineEdit*>(control)) value = line->text().trimmed();
        if (option.endsWith(QLatin1String("sites")) || option == QLatin1String("--factors") ||
            option == QLatin1String("--ratios") || option == QLatin1String("--scorers"))
            value.remove(QLatin1Char(' '));
        if (!value.isEmpty()) choice.options[option] = value;
    }
    return choice;
}

QStringList AskDialog::words() const {
    return ask_words(choice(), examples_);
}

QString AskDialog::problem() const {
    return problem_of(choice(), sources_);
}

QString AskDialog::output() const {
    return output_ ? output_->text().trimmed() : QString();
}

}  // namespace headscope::widgets
