// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/cost.h"

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
#include "widgets/text/flow_layout.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/facts.h"
#include "widgets/training/mixer_look.h"

namespace headscope::widgets {
namespace {

struct Quantity {
    const char* name;
    const char* title;
    bool bytes;
    cost::Formula cost::MixerCost::*formula;
    double cost::CostNumbers::*paper;
    double cost::MeasuredMixer::*measured;
};
constexpr std::array<Quantity, 4> kQuantities{{
    {"prefill", QT_TRANSLATE_NOOP("CostView", "Prefill FLOPs"), false, &cost::MixerCost::prefill,
     &cost::CostNumbers::prefill, &cost::MeasuredMixer::prefill_flops},
    {"decode", QT_TRANSLATE_NOOP("CostView", "Decode FLOPs"), false, &cost::MixerCost::decode,
     &cost::CostNumbers::decode, &cost::MeasuredMixer::decode_flops},
    {"activation", QT_TRANSLATE_NOOP("CostView", "Activation bytes"), true, &cost::MixerCost::activation,
     &cost::CostNumbers::activation, &cost::MeasuredMixer::activation_bytes},
    {"cache", QT_TRANSLATE_NOOP("CostView", "Cache bytes"), true, &cost::MixerCost::cache, &cost::CostNumbers::cache,
     &cost::MeasuredMixer::cache_bytes},
}};
constexpr int kFirst = 2;    ///< column of the first quantity; each has two, and before them are name and time
constexpr int kWide = 1800;  ///< pixels
constexpr std::int64_t kShortest = 64, kLongest = 65'536;
constexpr std::int64_t kMeasured = 4;  ///< bytes of a number in what is measured
const std::vector<std::int64_t> kMeasuredLengths{64, 256, 1024};

QString amount(double value, bool bytes) {
    if (!std::isfinite(value)) return QStringLiteral("–");
    if (value == 0) return QStringLiteral("0");
    if (!bytes) return count_words(value);
    return count_words(value) + (value < 1000 ? QStringLiteral(" B") : QStringLiteral("B"));
}

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
    table_->setObjectName(QStringLiteral("cost_table"));
    table_->setAccessibleName(tr("Cost of each mixer, by the paper and measured"));
    table_->setColumnCount(kFirst + 2 * static_cast<int>(kQuantities.size()));
    QStringList heads{tr("Mixer"), tr("Time")};
    for (const Quantity& quantity : kQuantities) heads << tr(quantity.title) << tr("measured");
    table_->setHorizontalHeaderLabels(heads);
    table_->verticalHeader()->hide();
    table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    table_->setShowGrid(false);
    table_->setAlternatingRowColors(true);
    table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_->setSelectionMode(QAbstractItemView::SingleSelection);
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
        auto* made = new QComboBox(bar);
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(about);
        made->setToolTip(about);
        made->setSizeAdjustPolicy(QComboBox::AdjustToContents);
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
    show_ = box("cost_show", tr("What the table shows of the paper"));
    what_ = box("cost_what", tr("What the curves show"));
    filling_ = true;
    for (std::int64_t length = kShortest; length <= kLongest; length *= 2)
        length_->addItem(tr("%1 tokens").arg(length), QString::number(length));
    length_->setCurrentIndex(length_->findData(QStringLiteral("2048")));
    bytes_->addItem(tr("float32: 4 bytes"), QStringLiteral("4"));
    bytes_->addItem(tr("as printed: 2 bytes"), QStringLiteral("2"));
    show_->addItem(tr("Numbers"), QStringLiteral("numbers"));
    show_->addItem(tr("Formulas"), QStringLiteral("formulas"));
    for (const Quantity& quantity : kQuantities)
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

CostWish CostView::wish() const {
    CostWish wish{sizes_->currentData().toString(), batch_->value(), kMeasuredLengths};
    const std::int64_t length = setting().length;
    if (length <= kMeasuredLengths.back() * 2 &&
        std::find(wish.lengths.begin(), wish.lengths.end(), length) == wish.lengths.end())
        wish.lengths.push_back(length);
    return wish;
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

void CostView::show_table() {
    const bool formulas = show_->currentData().toString() == QLatin1String("formulas");
    const Table table{setting(), formulas, desk().theme().dark, shelf_.cost().table};
    if (table == shown_) return;
    shown_ = table;
    const auto& costs = cost::mixer_costs();
    int rows = static_cast<int>(costs.size());
    for (const cost::MixerCost& one : costs) rows += one.precomputed_prefill ? 1 : 0;
    table_->setRowCount(rows);
    // Columns that follow their contents would be measured anew for every cell.
    table_->horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    for (int column = 0; column < table_->columnCount(); ++column)
        table_->horizontalHeaderItem(column)->setTextAlignment(
            (column == 0 || (formulas && (column == 1 || column % 2 == 0)) ? Qt::AlignLeft : Qt::AlignRight) |
            Qt::AlignVCenter);
    table_->horizontalHeaderItem(1)->setToolTip(tr("How it grows, up to a constant"));
    const bool any = measured_somewhere();
    for (int column = kFirst + 1; column < table_->columnCount(); column += 2) table_->setColumnHidden(column, !any);
    int row = 0;
    for (const cost::MixerCost& one : costs) {
        show_row(row++, one, false);
        if (one.precomputed_prefill) show_row(row++, one, true);
    }
    table_->horizontalHeader()->setSectionResizeMode(formulas ? QHeaderView::ResizeToContents : QHeaderView::Stretch);
    table_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    table_->horizontalHeader()->setStretchLastSection(formulas);
}

/// `precomputed`: the entries of a mixer whose maps are there already.
void CostView::show_row(int row, const cost::MixerCost& one, bool precomputed) {
    const bool formulas = show_->currentData().toString() == QLatin1String("formulas");
    const cost::CostSetting now = setting();
    const cost::CostNumbers paper = cost::evaluate(one, now);
    const cost::CostRow* here = precomputed ? nullptr : measured(one.mixer, now.length);
    const auto place = std::find_if(cost::mixer_costs().begin(), cost::mixer_costs().end(),
                                    [&](const auto& other) { return other.mixer == one.mixer; });
    const QString label = QString::fromStdString(one.label);
    auto* name = precomputed ? new QTableWidgetItem(swatch(Qt::transparent), tr("maps computed before"))
                             : new QTableWidgetItem(swatch(mixer_colour(desk().theme(), one.mixer)), label);
    name->setData(Qt::UserRole, static_cast<int>(place - cost::mixer_costs().begin()));
    if (precomputed)
        name->setToolTip(tr("%1 depends on no text: with its maps kept from before (Appendix F)").arg(label));
    table_->setItem(row, 0, name);
    const auto set = [&](int column, double value, const QString& formula, bool bytes) {
        auto* cell = new QTableWidgetItem(formulas ? formula : amount(value, bytes));
        cell->setToolTip(formulas ? amount(value, bytes) : formula);
        cell->setTextAlignment((formulas ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        table_->setItem(row, column, cell);
    };
    const auto empty = [&](int column) { table_->setItem(row, column, new QTableWidgetItem); };
    if (precomputed)
        empty(1);
    else
        set(1, paper.time, tr("O(%1)").arg(QString::fromStdString(one.time.pretty())), false);
    int column = kFirst;
    for (const Quantity& quantity : kQuantities) {
        double value = paper.*quantity.paper;
        const cost::Formula* formula = &(one.*quantity.formula);
        if (precomputed) {
            const bool prefill = quantity.paper == &cost::CostNumbers::prefill;
            const bool decode = quantity.paper == &cost::CostNumbers::decode;
            if (!prefill && !decode) {
                empty(column++);
                empty(column++);
                continue;
            }
            value = (prefill ? paper.precomputed_prefill : paper.precomputed_decode).value_or(std::nan(""));
            formula = prefill ? &*one.precomputed_prefill : &*one.precomputed_decode;
        }
        set(column++, value, QString::fromStdString(formula->pretty()), quantity.bytes);
        const bool like = comparable(quantity.bytes, quantity.paper == &cost::CostNumbers::activation);
        const double measured_value = here && like ? *here->measured.*quantity.measured : std::nan("");
        auto* beside = new QTableWidgetItem(precomputed ? QString() : amount(measured_value, quantity.bytes));
        beside->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        if (std::isfinite(measured_value) && value > 0)
            beside->setToolTip(tr("%1 times the paper's").arg(measured_value / value, 0, 'g', 3));
        else
            beside->setForeground(desk().theme().muted);
        if (here && !like) beside->setToolTip(tr("Measured with 4 bytes a number, on one machine"));
        table_->setItem(row, column++, beside);
    }
}

void CostView::show_curves() {
    const auto quantity = std::find_if(kQuantities.begin(), kQuantities.end(), [this](const Quantity& one) {
        return what_->currentData().toString() == QLatin1String(one.name);
    });
    if (quantity == kQuantities.end()) return;
    std::vector<CurvePlot::Line> lines;
    int id = 0;
    for (const cost::MixerCost& one : cost::mixer_costs()) {
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
        const QColor colour = mixer_colour(desk().theme(), one.mixer);
        const QString name = QString::fromStdString(one.label);
        if (!paper.x.empty())
            lines.push_back(
                {name, colour, CurvePlot::Look::line, std::make_shared<const CurvePlot::Points>(std::move(paper)), id});
        if (!here.x.empty())
            lines.push_back({tr("%1, measured").arg(name), colour, CurvePlot::Look::dots,
                             std::make_shared<const CurvePlot::Points>(std::move(here)), id});
        ++id;
    }
    plot_->set_lines(std::move(lines));
    const bool bytes = quantity->bytes;
    plot_->set_x(tr("tokens"), figures::ScaleKind::logarithmic,
                 [](double x) { return QString::number(std::llround(x)); });
    plot_->set_y({}, figures::ScaleKind::logarithmic, [bytes](double y) { return amount(y, bytes); });
    plot_->set_title(measured_somewhere() ? tr("%1 against length, dots measured here").arg(tr(quantity->title))
                                          : tr("%1 against length").arg(tr(quantity->title)));
    plot_->set_marks({{static_cast<double>(setting().length), tr("table"), desk().theme().muted, false}});
}

QJsonObject CostView::state() const {
    return {{"sizes", sizes_->count() > 0 ? sizes_->currentData().toString() : wanted_sizes_},
            {"length", length_->currentData().toString()},
            {"bytes", bytes_->currentData().toString()},
            {"show", show_->currentData().toString()},
            {"what", what_->currentData().toString()},
            {"batch", batch_->value()},
            {"parallel", parallel_->value()}};
}

void CostView::restore(const QJsonObject& state) {
    wanted_sizes_ = state["sizes"].toString();
    if (const int at = sizes_->findData(wanted_sizes_); at >= 0) sizes_->setCurrentIndex(at);
    for (const auto& [box, name] :
         {std::pair{length_, "length"}, std::pair{bytes_, "bytes"}, std::pair{show_, "show"}, std::pair{what_, "what"}})
        if (const int at = box->findData(state[QLatin1String(name)].toString()); at >= 0) box->setCurrentIndex(at);
    if (state["batch"].isDouble()) batch_->setValue(state["batch"].toInt());
    if (state["parallel"].isDouble()) parallel_->setValue(state["parallel"].toInt());
    refresh_later();
}

std::optional<FigureWish> CostView::figure() const {
    FigureWish wish{"cost", {}, {}};
    wish.options.length = setting().length;
    const training::ModelSettings& model = shelf_.draft().job().model;
    QString sizes = sizes_->currentData().toString();
    if (sizes.isEmpty()) sizes = QString::fromStdString(model.from.empty() ? model.preset : model.from);
    if (sizes.isEmpty()) return std::nullopt;
    wish.paths << sizes;
    if (batch_->value() != 1 || parallel_->value() != 1 || setting().bytes != cost::CostSetting().bytes)
        wish.note = tr("The figure is of one sequence, t = 1 and 2 bytes a number.");
    return wish;
}

extern const ViewKind kCost{"cost",
                            "Cost",
                            "What mixers cost by the paper, and here",
                            [](Desk* desk, QWidget* parent) -> View* { return new CostView(desk, parent); },
                            ViewGroup::cost,
                            always};

}  // namespace headscope::widgets
