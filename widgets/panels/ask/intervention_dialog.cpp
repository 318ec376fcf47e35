// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/ask/intervention_dialog.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>
#include <array>
#include <functional>
#include <set>
#include <string_view>

#include "core/base/edit_names.h"
#include "core/base/error.h"
#include "widgets/file_dialog.h"
#include "widgets/plain_edit.h"

namespace headscope::widgets {
namespace {

enum InterventionColumn { kPointColumn, kLayersColumn, kHeadsColumn, kPositionsColumn, kWhatColumn, kMoreColumn };
constexpr int kInterventionColumns = 6, kTextLines = 8, kPointWidth = 190, kWhatWidth = 120;

template <std::size_t N>
QComboBox* name_box(QWidget* parent, const std::array<std::string_view, N>& names, const std::string& chosen) {
    auto* box = new QComboBox(parent);
    for (const std::string_view name : names)
        box->addItem(QString::fromLatin1(name.data(), static_cast<qsizetype>(name.size())));
    const QString wanted = QString::fromStdString(chosen);
    if (box->findText(wanted) < 0) box->addItem(wanted);  // refused when the text is read for a model
    box->setCurrentText(wanted);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);  // as wide as its column
    return box;
}

}  // namespace

InterventionDialog::InterventionDialog(QWidget* parent) : QDialog(parent) {
    setObjectName(QStringLiteral("intervention_dialog"));
    setWindowTitle(tr("Interventions"));
    resize(720, 560);
    build();
    set_interventions({});
}

void InterventionDialog::build() {
    auto* about =
        new QLabel(tr("Values that the model computes are replaced in the next runs. An empty cell: all layers, "
                      "heads or positions. The text panel lists what the model lacks."),
                   this);
    about->setWordWrap(true);
    table_ = new QTableWidget(0, kInterventionColumns, this);
    table_->setObjectName(QStringLiteral("intervention_table"));
    table_->setAccessibleName(tr("Interventions"));
    table_->setHorizontalHeaderLabels(
        {tr("Point"), tr("Layers"), tr("Heads"), tr("Positions"), tr("What"), tr("More")});
    table_->horizontalHeaderItem(kLayersColumn)->setToolTip(tr("As 3,5-7"));
    table_->horizontalHeaderItem(kHeadsColumn)->setToolTip(tr("As 1,4; of key and value: key-value heads"));
    table_->horizontalHeaderItem(kPositionsColumn)->setToolTip(tr("As 2-5; -1 is the last token"));
    table_->horizontalHeaderItem(kMoreColumn)
        ->setToolTip(tr("Other keys, as factor = 2, vector = \"steer.gguf\" or queries = \"8-11\""));
    table_->horizontalHeader()->setSectionResizeMode(kMoreColumn, QHeaderView::Stretch);
    table_->verticalHeader()->hide();
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setTabKeyNavigation(false);
    table_->setColumnWidth(kPointColumn, kPointWidth);
    table_->setColumnWidth(kWhatColumn, kWhatWidth);
    text_ = new PlainEdit(this);
    text_->setObjectName(QStringLiteral("intervention_text"));
    text_->setAccessibleName(tr("Interventions as TOML"));
    text_->setToolTip(tr("The file of --interventions; other texts that edits refer to are [[text]] tables"));
    text_->setTabChangesFocus(true);
    text_->setMinimumHeight(kTextLines * fontMetrics().lineSpacing());
    const auto line = [this](const char* name) {
        auto* label = new QLabel(this);
        label->setObjectName(QLatin1String(name));
        label->setWordWrap(true);
        label->setTextFormat(Qt::PlainText);
        label->setTextInteractionFlags(Qt::TextSelectableByMouse);
        return label;
    };
    place_shown_ = line("intervention_place");
    problem_ = line("intervention_problem");
    const auto button = [this](const char* name, const QString& text, const QString& tip) {
        auto* made = new QPushButton(text, this);
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(text);
        made->setToolTip(tip);
        made->setAutoDefault(false);
        return made;
    };
    auto* add = button("intervention_add", tr("Add"), tr("A row that silences a head"));
    auto* remove = button("intervention_remove", tr("Remove"), tr("Removes the selected rows"));
    auto* open = button("intervention_open", tr("Open…"), tr("Reads a TOML file of interventions"));
    save_ = button("intervention_save", tr("Save as…"), tr("Writes them as a file, for the command line too"));
    apply_ = button("intervention_apply", tr("Use in the next runs"), tr("The text panel shows how many there are"));
    auto* none = button("intervention_none", tr("Use none"), tr("The next runs are those of the model as it is"));
    auto* close = button("intervention_close", tr("Close"), tr("Changes that are not used are dropped"));
    apply_->setDefault(true);
    auto* edits = new QHBoxLayout;
    for (QPushButton* one : {add, remove, open, save_}) edits->addWidget(one);
    edits->addStretch();
    auto* ends = new QHBoxLayout;
    for (QPushButton* one : {apply_, none}) ends->addWidget(one);
    ends->addStretch();
    ends->addWidget(close);
    auto* column = new QVBoxLayout(this);
    column->addWidget(about);
    column->addWidget(table_, 2);
    column->addLayout(edits);
    column->addWidget(text_, 1);
    column->addWidget(place_shown_);
    column->addWidget(problem_);
    column->addLayout(ends);
    connect(table_, &QTableWidget::itemChanged, this, &InterventionDialog::take_table);
    connect(text_, &QPlainTextEdit::textChanged, this, &InterventionDialog::take_text);
    connect(add, &QPushButton::clicked, this, [this] { add_rows({workspace::InterventionRow{}}); });
    connect(remove, &QPushButton::clicked, this, &InterventionDialog::remove_rows);
    connect(open, &QPushButton::clicked, this, [this] {
        ask_for_file(this, {tr("Open interventions"), tr("TOML files (*.toml);;All files (*)")},
                     [this](const QString& path) { Q_EMIT read_wanted(path); });
    });
    connect(save_, &QPushButton::clicked, this, &InterventionDialog::ask_where_to_save);
    connect(apply_, &QPushButton::clicked, this, [this] {
        Q_EMIT applied(interventions());
        QDialog::close();
    });
    connect(none, &QPushButton::clicked, this, [this] {
        Q_EMIT applied({});
        QDialog::close();
    });
    connect(close, &QPushButton::clicked, this, &QDialog::close);
}

void InterventionDialog::ask_where_to_save() {
    FileQuestion question{tr("Save interventions"), tr("TOML files (*.toml)")};
    question.mode = QFileDialog::AnyFile;
    question.suggestion = QStringLiteral("interventions.toml");
    question.suffix = QStringLiteral("toml");
    ask_for_file(this, question, [this](const QString& path) { Q_EMIT save_wanted(path, text_->toPlainText()); });
}

void InterventionDialog::set_interventions(const InterventionText& interventions) {
    place_ = interventions.place;
    place_shown_->setText(place_.isEmpty() ? QString() : tr("File: %1").arg(place_));
    place_shown_->setVisible(!place_.isEmpty());
    if (text_->toPlainText() != interventions.toml) text_->setPlainText(interventions.toml);
    take_text();
}

InterventionText InterventionDialog::interventions() const {
    const QString toml = text_->toPlainText();
    return table_->rowCount() == 0 ? InterventionText{} : InterventionText{toml, place_};
}

void InterventionDialog::add_row(const workspace::InterventionRow& row) {
    const int at = table_->rowCount();
    table_->insertRow(at);
    const auto box = [&](int column, QComboBox* made, const QString& name) {
        made->setObjectName(QStringLiteral("intervention_%1_%2").arg(name).arg(at));
        made->setAccessibleName(tr("%1 of intervention %2").arg(name).arg(at + 1));
        made->setToolTip(made->accessibleName());
        table_->setCellWidget(at, column, made);
        connect(made, &QComboBox::currentIndexChanged, this, &InterventionDialog::take_table);
    };
    box(kPointColumn, name_box(table_, kPointNames, row.point), QStringLiteral("point"));
    box(kWhatColumn, name_box(table_, kActionNames, row.what), QStringLiteral("what"));
    const auto cell = [&](int column, const std::string& text) {
        table_->setItem(at, column, new QTableWidgetItem(QString::fromStdString(text)));
    };
    cell(kLayersColumn, row.layers);
    cell(kHeadsColumn, row.heads);
    cell(kPositionsColumn, row.positions);
    cell(kMoreColumn, row.more);
}

void InterventionDialog::add_rows(const std::vector<workspace::InterventionRow>& rows) {
    filling_ = true;
    for (const workspace::InterventionRow& row : rows) add_row(row);
    filling_ = false;
    take_table();
    table_->setCurrentCell(table_->rowCount() - 1, kLayersColumn);
}

void InterventionDialog::remove_rows() {
    std::set<int, std::greater<>> chosen;
    for (const QModelIndex& index : table_->selectionModel()->selectedIndexes()) chosen.insert(index.row());
    if (chosen.empty() && table_->currentRow() >= 0) chosen.insert(table_->currentRow());
    filling_ = true;
    for (const int row : chosen) table_->removeRow(row);
    filling_ = false;
    take_table();
}

std::vector<workspace::InterventionRow> InterventionDialog::rows() const {
    std::vector<workspace::InterventionRow> rows;
    for (int at = 0; at < table_->rowCount(); ++at) {
        const auto word = [&](int column) {
            return static_cast<const QComboBox*>(table_->cellWidget(at, column))->currentText().toStdString();
        };
        const auto cell = [&](int column) {
            const QTableWidgetItem* item = table_->item(at, column);
            return item ? item->text().trimmed().toStdString() : std::string();
        };
        rows.push_back({word(kPointColumn), cell(kLayersColumn), cell(kHeadsColumn), cell(kPositionsColumn),
                        word(kWhatColumn), cell(kMoreColumn)});
    }
    return rows;
}

/// Rewrites the text; where a cell is wrong the text stays as it was.
void InterventionDialog::take_table() {
    if (filling_) return;
    try {
        const std::string toml = workspace::edited_interventions(text_->toPlainText().toStdString(), rows(), "text");
        filling_ = true;
        text_->setPlainText(QString::fromStdString(toml));
        filling_ = false;
        show_problem({});
    } catch (const Error& error) {
        show_problem(QString::fromUtf8(error.what()));
    }
}

/// Fills the table; it stays while the text is wrong.
void InterventionDialog::take_text() {
    if (filling_) return;
    try {
        const auto rows = workspace::intervention_rows(text_->toPlainText().toStdString(), "text");
        filling_ = true;
        table_->setRowCount(0);
        for (const workspace::InterventionRow& row : rows) add_row(row);
        filling_ = false;
        show_problem({});
    } catch (const Error& error) {
        show_problem(QString::fromUtf8(error.what()));
    }
}

void InterventionDialog::show_problem(const QString& problem) {
    problem_->setText(problem);
    apply_->setEnabled(problem.isEmpty());
    save_->setEnabled(problem.isEmpty() && !text_->toPlainText().trimmed().isEmpty());
}

}  // namespace headscope::widgets
