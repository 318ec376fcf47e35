// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/run_texts.h"

#include <QDateTime>
#include <QFontDatabase>
#include <QHeaderView>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollBar>
#include <QTableWidget>
#include <algorithm>

#include "core/base/text/text.h"
#include "widgets/fitted_columns.h"
#include "widgets/training/facts.h"

namespace headscope::widgets {
namespace {

// A journal may come from anywhere. Bytes, and texts that are shown when a run is opened.
constexpr std::size_t kLongestJob = 1'000'000, kLongestSample = 16'000, kLongestLine = 2'000;
constexpr std::size_t kMostSamples = workspace::LiveRun::kMostSamples;
constexpr std::size_t kMoreSamples = 50;  ///< before the first samples go: all are laid out again then

QPlainTextEdit* reader(QWidget* parent, const char* name, const QString& title, const QString& nothing) {
    auto* made = new QPlainTextEdit(parent);
    made->setObjectName(QLatin1String(name));
    made->setAccessibleName(title);
    made->setReadOnly(true);
    made->setUndoRedoEnabled(false);  // read only: keep no second copy of the text
    made->setPlaceholderText(nothing);
    made->setFrameShape(QFrame::NoFrame);
    made->setTabChangesFocus(true);
    return made;
}

void append(QPlainTextEdit* edit, const QString& text, const QColor& colour, bool bold = false) {
    QTextCursor cursor(edit->document());
    cursor.movePosition(QTextCursor::End);
    QTextCharFormat format;
    format.setForeground(colour);
    if (bold) format.setFontWeight(QFont::Bold);
    cursor.insertText(text, format);
}

/// Many lines at once, as those of a run that is opened, are laid out once.
class OneEdit {
public:
    explicit OneEdit(QPlainTextEdit* edit) : cursor_(edit->document()) { cursor_.beginEditBlock(); }
    ~OneEdit() { cursor_.endEditBlock(); }
    OneEdit(const OneEdit&) = delete;
    OneEdit& operator=(const OneEdit&) = delete;

private:
    QTextCursor cursor_;
};

bool at_end(const QPlainTextEdit* edit) {
    return edit->verticalScrollBar()->value() >= edit->verticalScrollBar()->maximum() - 2;
}

void to_end(QPlainTextEdit* edit) {
    edit->verticalScrollBar()->setValue(edit->verticalScrollBar()->maximum());
}

}  // namespace

RunTexts::RunTexts(RunShelf* shelf, QWidget* parent)
    : QTabWidget(parent),
      shelf_(shelf),
      samples_(reader(this, "run_samples", tr("Texts that the model wrote"),
                      tr("No texts yet. The model writes one every sample.every steps"))),
      log_(reader(this, "run_log_text", tr("Log of the run"), tr("No messages yet"))),
      job_(reader(this, "run_job", tr("The job of this run"), tr("The run has not begun"))),
      snapshots_(new QTableWidget(this)) {
    setObjectName(QStringLiteral("run_texts"));
    log_->setMaximumBlockCount(4000);
    setDocumentMode(true);
    job_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    job_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
    snapshots_->setObjectName(QStringLiteral("run_snapshots"));
    snapshots_->setAccessibleName(tr("Snapshots"));
    snapshots_->setColumnCount(5);
    snapshots_->setHorizontalHeaderLabels({tr("Step"), tr("Size"), tr("Note"), QString(), QString()});
    snapshots_->verticalHeader()->hide();
    snapshots_->setShowGrid(false);
    snapshots_->setFrameShape(QFrame::NoFrame);
    snapshots_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    snapshots_->setSelectionBehavior(QAbstractItemView::SelectRows);
    columns_ = new FittedColumns(snapshots_);
    columns_->set_whole({0, 1});
    addTab(samples_, tr("Samples"));
    addTab(log_, tr("Log"));
    addTab(snapshots_, tr("Snapshots"));
    addTab(job_, tr("Job"));
}

void RunTexts::refresh(const Theme& theme) {
    const Run* run = shelf_->current();
    setVisible(run != nullptr);
    if (!run) return;
    if (run->id != run_ || theme.dark != dark_) {
        run_ = run->id;
        dark_ = theme.dark;
        shown_samples_ = 0;
        shown_lines_ = 0;
        shown_snapshots_ = {std::string()};
        shown_job_.clear();
        for (QPlainTextEdit* edit : {samples_, log_, job_}) edit->clear();
    }
    show_samples(*run, theme);
    show_log(*run, theme);
    show_snapshots(*run);
    const std::string job = run->record->started ? run->record->started->job : std::string();
    if (job != shown_job_) {
        shown_job_ = job;
        job_->setPlainText(QString::fromStdString(job.substr(0, kLongestJob)));
    }
}

void RunTexts::show_samples(const Run& run, const Theme& theme) {
    const auto& samples = run.record->samples;
    const std::size_t older = run.record->older_samples.size(), all = older + samples.size();
    if (all == shown_samples_) return;
    const bool follow = at_end(samples_) || shown_samples_ == 0;
    const int from_end = samples_->verticalScrollBar()->maximum() - samples_->verticalScrollBar()->value();
    const bool anew =
        all < shown_samples_ || older > shown_samples_ || all - first_sample_ > kMostSamples + kMoreSamples;
    if (anew) {
        samples_->clear();
        shown_samples_ = 0;
    }
    {
        const OneEdit one(samples_);
        if (shown_samples_ == 0) {
            first_sample_ = shown_samples_ = std::max(older, all - std::min(all, kMostSamples));
            if (first_sample_ > 0)
                append(samples_, tr("… %1 earlier texts are in the run's files").arg(first_sample_), theme.muted);
        }
        for (; shown_samples_ < all; ++shown_samples_) {
            const auto& sample = samples[shown_samples_ - older];
            const QString gap = shown_samples_ > 0 ? QStringLiteral("\n\n") : QString();
            append(samples_, gap + tr("step %1").arg(sample.step) + QLatin1Char('\n'), theme.accent, true);
            append(samples_, QString::fromStdString(shortened(sample.prompt, kLongestSample)), theme.muted);
            append(samples_, QString::fromStdString(shortened(sample.text, kLongestSample)), theme.text);
        }
    }
    if (follow)
        to_end(samples_);
    else if (anew)
        samples_->verticalScrollBar()->setValue(samples_->verticalScrollBar()->maximum() - from_end);
}

void RunTexts::show_log(const Run& run, const Theme& theme) {
    const auto& log = run.record->log;
    const std::uint64_t lines = run.record->lines;
    if (lines == shown_lines_) return;
    const bool follow = at_end(log_) || shown_lines_ == 0;
    if (lines < shown_lines_ || lines - shown_lines_ > log.size()) {
        log_->clear();
        shown_lines_ = lines - std::min<std::uint64_t>(lines, log.size());
    }
    {
        const OneEdit one(log_);
        for (auto i = static_cast<std::size_t>(log.size() - (lines - shown_lines_)); i < log.size(); ++i) {
            const auto& line = log[i];
            const QString time =
                QDateTime::fromSecsSinceEpoch(static_cast<qint64>(line.time)).toString(QStringLiteral("HH:mm:ss"));
            const QString end = log_->document()->isEmpty() ? QString() : QStringLiteral("\n");
            append(log_, tr("%1%2  step %3  ").arg(end, time).arg(line.step), theme.muted);
            const bool plain = line.level == training::LogLevel::note;
            append(log_, QString::fromStdString(shortened(line.text, kLongestLine)), plain ? theme.text : theme.accent,
                   line.level == training::LogLevel::error);
        }
    }
    shown_lines_ = lines;
    if (follow) to_end(log_);
}

void RunTexts::show_snapshots(const Run& run) {
    std::vector<std::string> names;
    for (const auto& snapshot : run.record->snapshots) names.push_back(snapshot.name + (snapshot.best ? "*" : ""));
    if (names == shown_snapshots_) return;
    shown_snapshots_ = names;
    const auto& snapshots = run.record->snapshots;
    snapshots_->setRowCount(static_cast<int>(snapshots.size()));
    int row = 0;
    for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot, ++row) {
        const QString name = QString::fromStdString(snapshot->name);
        snapshots_->setItem(row, 0, new QTableWidgetItem(QString::number(snapshot->step)));
        snapshots_->setItem(row, 1, new QTableWidgetItem(bytes_words(static_cast<double>(snapshot->bytes))));
        snapshots_->setItem(row, 2, new QTableWidgetItem(snapshot->best ? tr("the best on held-out text") : QString()));
        const auto button = [&](int column, const QString& text, const QString& about, auto act) {
            auto* made = new QPushButton(text, snapshots_);
            made->setAccessibleName(about);
            made->setToolTip(about);
            made->setFlat(true);
            connect(made, &QPushButton::clicked, this, act);
            snapshots_->setCellWidget(row, column, made);
        };
        button(3, tr("Analyze"), tr("Analyze the snapshot of step %1").arg(snapshot->step),
               [this, id = run.id, name] { Q_EMIT shelf_->analyse_wanted(id, name); });
        button(4, tr("Fork"), tr("Start a new job from the snapshot of step %1").arg(snapshot->step),
               [this, id = run.id, name] { Q_EMIT shelf_->fork_wanted(id, name); });
    }
    columns_->fit();
}

}  // namespace headscope::widgets
