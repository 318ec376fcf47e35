// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTabWidget>

#include "widgets/desk/run_shelf.h"
#include "widgets/theme.h"

class QPlainTextEdit;
class QTableWidget;

namespace headscope::widgets {

class FittedColumns;

/// A run's texts: samples that it wrote, its log, its snapshots, its job.
class RunTexts : public QTabWidget {
    Q_OBJECT
public:
    explicit RunTexts(RunShelf* shelf, QWidget* parent = nullptr);
    void refresh(const Theme& theme);

private:
    void show_samples(const Run& run, const Theme& theme);
    void show_log(const Run& run, const Theme& theme);
    void show_snapshots(const Run& run);

    RunShelf* shelf_;
    QPlainTextEdit *samples_, *log_, *job_;
    QTableWidget* snapshots_;
    FittedColumns* columns_;
    // Shown content, so that nothing is filled twice.
    int run_ = 0;
    std::size_t first_sample_ = 0, shown_samples_ = 0;  ///< of all that were written, also before those that are held
    std::uint64_t shown_lines_ = 0;
    std::vector<std::string> shown_snapshots_;
    std::string shown_job_;
    bool dark_ = false;
};

}  // namespace headscope::widgets
