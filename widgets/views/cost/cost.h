// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/cost/cost_table.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/desk/view.h"

class QComboBox;
class QLabel;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QSplitter;
class QTableWidget;

namespace headscope::widgets {

class CurvePlot;
class FittedColumns;

/// Costs of mixers by the paper's formulas at any sizes, beside costs measured here: a table at one length, curves
/// against the length.
class CostView : public View {
    Q_OBJECT
public:
    CostView(Desk* desk, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;

private:
    QWidget* make_bar();
    void fill_sizes();
    cost::CostSetting setting() const;
    CostRequest wish() const;
    /// Mixers of the job, and of open analyses and runs.
    std::vector<std::string> open_mixers() const;
    /// Those that are shown: the paper's and those of open models, or all.
    std::vector<std::string> shown_mixers() const;
    const cost::CostRow* measured(const std::string& mixer, std::int64_t length) const;
    bool measured_somewhere() const;
    /// As paper and measurement count it: what depends on numbers of other sizes, or on several machines, does not.
    bool comparable(bool bytes, bool activation) const;
    /// Content of the table.
    struct Table {
        cost::CostSetting setting;
        bool formulas = false, dark = false;
        std::vector<std::string> mixers;
        std::shared_ptr<const cost::CostTable> measured;
        bool operator==(const Table&) const = default;
    };
    void show_table();
    void show_row(int row, const cost::MixerCost& one, bool precomputed);
    void show_curves();
    void show_measuring();

    RunShelf& shelf_;
    QComboBox *sizes_, *length_, *bytes_, *mixers_, *show_, *what_;
    QSpinBox *batch_, *parallel_;
    QPushButton* measure_;
    QProgressBar* busy_;
    QLabel* words_;
    QTableWidget* table_;
    FittedColumns* columns_ = nullptr;
    CurvePlot* plot_;
    QSplitter* splitter_;
    QString wanted_sizes_;
    std::optional<Table> shown_;
    bool filling_ = false;
};

}  // namespace headscope::widgets
