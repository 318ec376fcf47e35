// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/cost/cost.h"

#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QSplitter>
#include <QTableWidget>
#include <QVBoxLayout>
#include <array>
#include <cmath>

#include "widgets/desk/presence.h"
#include "widgets/fitted_columns.h"
#include "widgets/plain_controls.h"
#include "widgets/table_copy.h"
#include "widgets/text/flow_layout.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/facts.h"
#include "widgets/training/mixer_style.h"
#include "widgets/views/cost/cost_quantities.h"

namespace headscope::widgets {
namespace {

constexpr int kWide = 1800;  ///< pixels
constexpr std::int64_t kShortest = 64, kLongest = 65'536;
constexpr std::int64_t kMeasured = 4;  ///< bytes of a number in what is measured
const std::vector<std::int64_t> kMeasuredLengths{64, 256, 1024};

}  // namespace

CostView::CostView(Desk* desk, QWidget* parent) : View(desk, parent, Of::training), shelf_(desk->runs()) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    column->addWidget(make_bar());
    words_ = new QLabel(content());
    words_->setObjectName(QStringLiteral("cost_words"));
    words_->setWordWrap(true);
    words_->setTextFormat(Qt::PlainText);
    column->addWidget(words_);
    table_ = new QTableWidget(content());
    copy_rows_by_key(table_);
    table_->setObjectName(QStringLiteral("cost_table"));
    table_->setAccessibleName(tr("Cost of each mixer, by the paper and measured"));
    table_->setColumnCount(kCostColumns + 2 * static_cast<int>(kCostQuantities.size()));
    QStringList heads{tr("Mixer"), tr("Time")};
    for (const CostQuantity& quantity : kCostQuantities) heads << tr(quantity.title) << tr("measured");
    table_->setHorizontalHeaderLabels(heads);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    table_->setShowGrid(false);
    table_->setAlternatingRowColors(true);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
    columns_ = new FittedColumns(table_);
    columns_->set_whole({0});
    std::vector<int> papers{0};  // what was measured comes behind these
    for (int paper = kCostColumns; paper < table_->columnCount(); paper += 2) papers.push_back(paper);
    columns_->set_order(std::move(papers));
    plot_ = new CurvePlot(content());
    plot_->setObjectName(QStringLiteral("cost_plot"));
    plot_->setAccessibleName(tr("Cost against length"));
    plot_->set_end_names(true);
    splitter_ = new QSplitter(Qt::Vertical, content());
    splitter_->setObjectName(QStringLiteral("cost_splitter"));
    splitter_->addWidget(table_);
    splitter_->addWidget(plot_);
    splitter_->setSizes({250, 320});
    splitter_->setStretchFactor(1, 1);
    column->addWidget(splitter_, 1);
    connect(table_, &QTableWidget::currentCellChanged, this, [this](int row) {
        const auto* item = table_->item(row, 0);
        plot_->set_stressed(item ? item->data(Qt::UserRole).toInt() : -1);
    });
    connect(plot_, &CurvePlot::chosen, this, [this](double, int id) {
        for (int row = 0; id >= 0 && row < table_->rowCount(); ++row)
            if (table_->item(row, 0)->data(Qt::UserRole).toInt() == id) return table_->setCurrentCell(row, 0);
    });
    connect(&shelf_.draft(), &JobDraft::estimate_changed, this, &CostView::refresh_later);
    connect(&shelf_.draft(), &JobDraft::choices_changed, this, &CostView::refresh_later);
    connect(&shelf_, &RunShelf::cost_changed, this, &CostView::refresh_later);
    connect(&shelf_, &RunShelf::runs_changed, this, &CostView::refresh_later);
    connect(desk, &Desk::studies_changed, this, &CostView::refresh_later);
    show_content();
}

/// Side by side where a row of the table would be too long to be followed.
void CostView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    const Qt::Orientation wanted = width() > kWide ? Qt::Horizontal : Qt::Vertical;
    if (wanted == splitter_->orientation()) return;
    splitter_->setOrientation(wanted);
    splitter_->setSizes(wanted == Qt::Horizontal ? QList<int>{kWide / 2, width() - kWide / 2} : QList<int>{250, 320});
}

QWidget* CostView::make_bar() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    const auto box = [&](const char* name, const QString& about) {
        auto* made = make_combo(bar, name, about);
        row->addWidget(made);
        connect(made, &QComboBox::currentIndexChanged, this, [this] {
            if (filling_) return;
            refresh_later();
            Q_EMIT state_changed();
        });
        return made;
    };
    sizes_ = box("cost_sizes", tr("The sizes that costs are of"));
    length_ = box("cost_length", tr("Tokens of the table"));
    bytes_ = box("cost_bytes", tr("Bytes of a number"));
    mixers_ = box("cost_mixers", tr("The mixers that are shown"));
    show_ = box("cost_show", tr("What the table shows of the paper"));
    what_ = box("cost_what", tr("What the curves show"));
    filling_ = true;
    for (std::int64_t length = kShortest; length <= kLongest; length *= 2)
        length_->addItem(tr("%1 tokens").arg(length), QString::number(length));
    length_->setCurrentIndex(length_->findData(QStringLiteral("2048")));
    bytes_->addItem(tr("float32: 4 bytes"), QStringLiteral("4"));
    bytes_->addItem(tr("as printed: 2 bytes"), QStringLiteral("2"));
    mixers_->addItem(tr("The paper's mixers and those of open models"), QStringLiteral("open"));
    mixers_->addItem(tr("All mixers"), QStringLiteral("all"));
    show_->addItem(tr("Numbers"), QStringLiteral("numbers"));
    show_->addItem(tr("Formulas"), QStringLiteral("formulas"));
    for (const CostQuantity& quantity : kCostQuantities)
        what_->addItem(tr("Curves: %1").arg(tr(quantity.title)), QLatin1String(quantity.name));
    filling_ = false;
    const auto number = [&](const char* name, const QString& called, const QString& tip, const QString& prefix) {
        auto* made = new QSpinBox(bar);
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(called);
        made->setToolTip(tip);
        made->setPrefix(prefix);
        made->setRange(1, 1 << 16);
        row->addWidget(made);
        connect(made, &QSpinBox::valueChanged, this, [this] {
            refresh_later();
            Q_EMIT state_changed();
        });
        return made;
    };
    batch_ = number("cost_batch", tr("Sequences"), tr("B of the formulas: sequences at once"), tr("batch "));
    parallel_ = number("cost_parallel", tr("Tensor-parallel machines"),
                       tr("t of the formulas: machines that share the activations of a layer"), tr("t = "));
    measure_ = new QPushButton(bar);
    measure_->setObjectName(QStringLiteral("cost_measure"));
    measure_->setToolTip(
        tr("Counts the operations that run here, and the memory, on two layers of each mixer at these "
           "sizes; in a process of its own"));
    row->addWidget(measure_);
    add_command(measure_);
    connect(measure_, &QPushButton::clicked, this, [this] {
        if (shelf_.cost().busy)
            Q_EMIT shelf_.cost_unwanted();
        else
            Q_EMIT shelf_.cost_wanted(wish());
    });
    busy_ = new QProgressBar(bar);
    busy_->setObjectName(QStringLiteral("cost_busy"));
    busy_->setAccessibleName(tr("Measuring"));
    busy_->setRange(0, 0);
    busy_->setFixedWidth(90);
    busy_->hide();
    row->addWidget(busy_);
    return bar;
}

void CostView::fill_sizes() {
    const auto& presets = shelf_.draft().choices().presets;
    if (sizes_->count() == static_cast<int>(presets.size()) + 1) return;
    const QString now = sizes_->currentData().isValid() ? sizes_->currentData().toString() : wanted_sizes_;
    filling_ = true;
    sizes_->clear();
    sizes_->addItem(tr("The job's model"), QString());
    for (const PresetChoice& preset : presets) sizes_->addItem(preset.title, preset.value);
    sizes_->setCurrentIndex(std::max(0, sizes_->findData(wanted_sizes_.isEmpty() ? now : wanted_sizes_)));
    filling_ = false;
}

cost::CostSetting CostView::setting() const {
    cost::CostSetting setting;
    setting.batch = batch_->value();
    setting.length = length_->currentData().toString().toLongLong();
    setting.tensor_parallel = parallel_->value();
    setting.bytes = bytes_->currentData().toString().toLongLong();
    setting.hidden = shelf_.draft().estimate().hidden;
    setting.heads = shelf_.draft().estimate().heads;
    for (const PresetChoice& preset : shelf_.draft().choices().presets) {
        if (preset.value != sizes_->currentData().toString()) continue;
        setting.hidden = preset.hidden;
        setting.heads = preset.heads;
    }
    return setting;
}

CostRequest CostView::wish() const {
    CostRequest wish{sizes_->currentData().toString(), batch_->value(), kMeasuredLengths};
    const std::int64_t length = setting().length;
    if (length <= kMeasuredLengths.back() * 2 &&
        std::find(wish.lengths.begin(), wish.lengths.end(), length) == wish.lengths.end())
        wish.lengths.push_back(length);
    return wish;
}

std::vector<std::string> CostView::open_mixers() const {
    std::vector<std::string> mixers = shelf_.draft().estimate().layers;
    const auto add = [&mixers](const std::vector<std::string>& more) {
        mixers.insert(mixers.end(), more.begin(), more.end());
    };
    for (const Study* study : desk().studies()) add(study->header().mixers);
    for (const Run& run : shelf_.runs())
        if (run.record->started) add(run.record->started->mixers);
    return mixers;
}

std::vector<std::string> CostView::shown_mixers() const {
    if (mixers_->currentData().toString() != QLatin1String("all")) return cost::shown_mixers(open_mixers());
    std::vector<std::string> all;
    for (const cost::MixerCost& one : cost::mixer_costs()) all.push_back(one.mixer);
    return all;
}

const cost::CostRow* CostView::measured(const std::string& mixer, std::int64_t length) const {
    const CostAnswer& answer = shelf_.cost();
    const cost::CostSetting now = setting();
    if (!answer.table || answer.table->setting.hidden != now.hidden || answer.table->setting.heads != now.heads ||
        answer.table->setting.batch != now.batch)
        return nullptr;
    for (const cost::CostRow& row : answer.table->rows)
        if (row.mixer == mixer && row.length == length && row.measured) return &row;
    return nullptr;
}

bool CostView::comparable(bool bytes, bool activation) const {
    const cost::CostSetting now = setting();
    return (!bytes || now.bytes == kMeasured) && (!activation || now.tensor_parallel == 1);
}

/// At these sizes, at any length.
bool CostView::measured_somewhere() const {
    const CostAnswer& answer = shelf_.cost();
    return answer.table && std::any_of(answer.table->rows.begin(), answer.table->rows.end(),
                                       [this](const auto& row) { return measured(row.mixer, row.length) != nullptr; });
}

void CostView::refresh() {
    fill_sizes();
    if (setting().hidden <= 0) {
        show_notice(tr("No sizes are known"), tr("The job's model cannot be read: choose a preset there."),
                    tr("To the job"), [this] { Q_EMIT desk().view_wanted(QStringLiteral("train")); });
        return;
    }
    show_content();
    plot_->set_theme(desk().theme());
    show_measuring();
    show_table();
    show_curves();
}

void CostView::show_measuring() {
    const CostAnswer& answer = shelf_.cost();
    measure_->setText(answer.busy ? tr("Stop measuring") : tr("Measure here"));
    measure_->setAccessibleName(measure_->text());
    busy_->setVisible(answer.busy);
    const cost::CostSetting now = setting();
    QString words =
        tr("One layer's mixer without its output projection, width %1, %2 heads.").arg(now.hidden).arg(now.heads);
    if (!answer.words.isEmpty()) words += QLatin1Char(' ') + answer.words;
    if (measured_somewhere())
        words += QLatin1Char(' ') +
                 tr("A causal token sees half of the pairs that the paper counts and no L × L matrix is kept; the "
                    "paper's Approximate is its diagonal form; guides, computed once for all layers, are left out.");
    words_->setText(words);
}

void CostView::show_curves() {
    const auto quantity = std::find_if(kCostQuantities.begin(), kCostQuantities.end(), [this](const CostQuantity& one) {
        return what_->currentData().toString() == QLatin1String(one.name);
    });
    if (quantity == kCostQuantities.end()) return;
    std::vector<CurvePlot::Line> lines;
    const std::vector<std::string> mixers = shown_mixers();
    int id = -1;
    for (const cost::MixerCost& one : cost::mixer_costs()) {
        ++id;
        if (std::find(mixers.begin(), mixers.end(), one.mixer) == mixers.end()) continue;
        CurvePlot::Points paper, here;
        cost::CostSetting at = setting();
        for (std::int64_t length = kShortest; length <= kLongest; length *= 2) {
            at.length = length;
            const double value = cost::evaluate(one, at).*quantity->paper;
            if (std::isfinite(value)) {
                paper.x.push_back(static_cast<double>(length));
                paper.y.push_back(value);
            }
            const cost::CostRow* row = measured(one.mixer, length);
            if (!row || !comparable(quantity->bytes, quantity->paper == &cost::CostNumbers::activation)) continue;
            const double found = *row->measured.*quantity->measured;
            if (!std::isfinite(found)) continue;
            here.x.push_back(static_cast<double>(length));
            here.y.push_back(found);
        }
        const QColor colour = mixer_color(desk().theme(), one.mixer);
        const QString name = QString::fromStdString(one.title);
        if (!paper.x.empty())
            lines.push_back(
                {name, colour, CurvePlot::Look::line, std::make_shared<const CurvePlot::Points>(std::move(paper)), id});
        if (!here.x.empty())
            lines.push_back({tr("%1, measured").arg(name), colour, CurvePlot::Look::dots,
                             std::make_shared<const CurvePlot::Points>(std::move(here)), id});
    }
    plot_->set_lines(std::move(lines));
    const bool bytes = quantity->bytes;
    plot_->set_x(tr("tokens"), figures::ScaleKind::logarithmic,
                 [](double x) { return QString::number(std::llround(x)); });
    plot_->set_y({}, figures::ScaleKind::logarithmic, [bytes](double y) { return cost_words(y, bytes); });
    plot_->set_title(measured_somewhere() ? tr("%1 against length, dots measured here").arg(tr(quantity->title))
                                          : tr("%1 against length").arg(tr(quantity->title)));
    plot_->set_marks({{static_cast<double>(setting().length), tr("table"), desk().theme().muted, false}});
}

QJsonObject CostView::state() const {
    return {{"sizes", sizes_->count() > 0 ? sizes_->currentData().toString() : wanted_sizes_},
            {"length", length_->currentData().toString()},
            {"bytes", bytes_->currentData().toString()},
            {"mixers", mixers_->currentData().toString()},
            {"show", show_->currentData().toString()},
            {"what", what_->currentData().toString()},
            {"batch", batch_->value()},
            {"parallel", parallel_->value()}};
}

void CostView::restore(const QJsonObject& state) {
    wanted_sizes_ = state["sizes"].toString();
    if (const int at = sizes_->findData(wanted_sizes_); at >= 0) sizes_->setCurrentIndex(at);
    for (const auto& [box, name] : {std::pair{length_, "length"}, std::pair{bytes_, "bytes"},
                                    std::pair{mixers_, "mixers"}, std::pair{show_, "show"}, std::pair{what_, "what"}})
        if (const int at = box->findData(state[QLatin1String(name)].toString()); at >= 0) box->setCurrentIndex(at);
    if (state["batch"].isDouble()) batch_->setValue(state["batch"].toInt());
    if (state["parallel"].isDouble()) parallel_->setValue(state["parallel"].toInt());
    refresh_later();
}

std::optional<FigureRequest> CostView::figure() const {
    FigureRequest wish{"cost", {}, {}};
    const cost::CostSetting now = setting(), usual;
    wish.options.length = now.length;
    if (now.batch != usual.batch) wish.options.batch = now.batch;
    if (now.tensor_parallel != usual.tensor_parallel) wish.options.tensor_parallel = now.tensor_parallel;
    if (now.bytes != usual.bytes) wish.options.bytes = now.bytes;
    if (mixers_->currentData().toString() == QLatin1String("all"))
        wish.options.mixers = {"all"};
    else if (const auto shown = shown_mixers(); shown != cost::paper_mixers())
        wish.options.mixers = shown;
    const training::ModelSettings& model = shelf_.draft().job().model;
    QString sizes = sizes_->currentData().toString();
    if (sizes.isEmpty()) sizes = QString::fromStdString(model.from.empty() ? model.preset : model.from);
    if (sizes.isEmpty()) return std::nullopt;
    wish.paths << sizes;
    return wish;
}

extern const ViewKind kCost{"cost",
                            "Cost",
                            "What mixers cost by the paper, and here",
                            [](Desk* desk, QWidget* parent) -> View* { return new CostView(desk, parent); },
                            ViewGroup::cost,
                            always};

}  // namespace headscope::widgets
