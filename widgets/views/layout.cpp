// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/layout.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListWidget>
#include <QPainter>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>
#include <map>

#include "core/cost/mixer_cost.h"
#include "core/mixers/types/type.h"
#include "widgets/desk/presence.h"
#include "widgets/fitted_columns.h"
#include "widgets/table_copy.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/facts.h"
#include "widgets/training/layer_column.h"
#include "widgets/training/mixer_style.h"

namespace headscope::widgets {
namespace {

constexpr int kGlyph = 34, kSpacing = 12;
constexpr int kLeastColumn = 110, kMostColumn = 340;  ///< pixels, of layers and of layouts
constexpr int kNarrowLayout = 900;                    ///< below, mixers stand in one column
constexpr int kLeastCost = 24, kUsualCost = 84;       ///< of a column of costs
constexpr int kLeastCosts = 240;                      ///< of the table: fit_costs() gives it more where there is more

/// A layout as a small column of stripes.
QIcon glyph(const std::vector<std::string>& layers, const Theme& theme, double ratio) {
    QPixmap picture(QSize(kGlyph / 2, kGlyph) * ratio);
    picture.setDevicePixelRatio(ratio);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    const double height = static_cast<double>(kGlyph) / static_cast<double>(std::max<std::size_t>(1, layers.size()));
    for (std::size_t i = 0; i < layers.size(); ++i)
        painter.fillRect(QRectF(0, static_cast<double>(i) * height, kGlyph / 2.0, height - (height > 3 ? 1 : 0.3)),
                         mixer_color(theme, layers[i]));
    QIcon icon(picture);
    icon.addPixmap(picture, QIcon::Selected);  // in its own colours there too
    return icon;
}

QLabel* heading(const QString& text, QWidget* parent) {
    auto* label = new QLabel(text, parent);
    QFont bold = label->font();
    bold.setBold(true);
    label->setFont(bold);
    label->setWordWrap(true);
    return label;
}

}  // namespace

LayoutView::LayoutView(Desk* desk, QWidget* parent)
    : View(desk, parent, Of::training),
      draft_(desk->runs().draft()),
      column_(new LayerColumn(content())),
      facts_(new Facts(content())),
      costs_(new QTableWidget(content())),
      costs_title_(heading(tr("Cost of the attention sublayers"), content())),
      legend_(new QLabel(content())) {
    // In a wide window the plots get what the names of layers and mixers do not need.
    const auto names = [this](QWidget*& side) {
        side = new QWidget(content());
        side->setMaximumWidth(kMostColumn);
        auto* column = new QVBoxLayout(side);
        column->setContentsMargins(0, 0, 0, 0);
        return column;
    };
    QWidget *left_side = nullptr, *middle_side = nullptr;
    column_->setMinimumWidth(kLeastColumn);
    auto* left = names(left_side);
    left->addWidget(heading(tr("Layers, from first to last"), content()));
    left->addWidget(column_, 1);
    auto* middle = names(middle_side);
    middle->addWidget(heading(tr("Mixers"), content()));
    middle->addWidget(make_mixers());
    middle->addWidget(heading(tr("Layouts of the paper"), content()));
    middle->addWidget(make_layouts(), 1);
    auto* right = new QVBoxLayout;
    right->addWidget(facts_);
    right->addWidget(costs_title_);
    right->addWidget(costs_);
    const auto plot = [&](const char* name, const QString& title, bool bytes) {
        auto* made = new CurvePlot(content());
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(title);
        made->set_title(title);
        made->set_x(tr("tokens"), figures::ScaleKind::logarithmic,
                    [](double x) { return QString::number(std::llround(x)); });
        made->set_y({}, figures::ScaleKind::logarithmic, bytes ? bytes_words : count_words);
        return made;
    };
    decode_ = plot("layout_decode", tr("Decode FLOPs of all layers"), false);
    cache_ = plot("layout_cache", tr("Cache of all layers"), true);
    legend_->setObjectName(QStringLiteral("layout_legend"));
    legend_->setTextFormat(Qt::RichText);
    right->addWidget(legend_);
    auto* plots = new QHBoxLayout;
    plots->addWidget(decode_);
    plots->addWidget(cache_);
    right->addLayout(plots, 1);
    auto* row = new QHBoxLayout(content());
    row->setContentsMargins(8, 6, 8, 6);
    row->setSpacing(kSpacing);
    row->addWidget(left_side, 3);
    row->addWidget(middle_side, 3);
    row->addLayout(right, 6);

    costs_->setObjectName(QStringLiteral("layout_costs"));
    copy_rows_by_key(costs_);
    costs_->setAccessibleName(tr("Cost of the attention sublayers"));
    costs_->setEditTriggers(QAbstractItemView::NoEditTriggers);
    costs_->setSelectionMode(QAbstractItemView::NoSelection);
    costs_->verticalHeader()->hide();
    costs_->setColumnCount(6);
    columns_ = new FittedColumns(costs_);
    const QStringList columns{tr("Mixer"),         tr("Layers"),      tr("Prefill\nFLOPs"),
                              tr("Decode\nFLOPs"), tr("Activations"), tr("Cache")};
    const QStringList tips{{},
                           tr("Layers that have it"),
                           tr("Operations to read the whole text"),
                           tr("Operations to decode one more token"),
                           tr("Bytes of activations kept for the backward pass"),
                           tr("Bytes of the cache while decoding")};
    for (int column = 0; column < 6; ++column) {
        auto* item = new QTableWidgetItem(columns[column]);
        item->setToolTip(tips[column]);
        item->setTextAlignment((column == 0 ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        costs_->setHorizontalHeaderItem(column, item);
    }
    costs_->setShowGrid(false);
    costs_->setAlternatingRowColors(true);

    connect(column_, &LayerColumn::edited, this, [this] { draft_.set_layers(column_->layers()); });
    connect(layouts_, &QListWidget::itemClicked, this, [this](const QListWidgetItem* item) {
        const auto layers = layers_of_layout(draft_.choices(), item->data(Qt::UserRole).toString(), other_mixer(),
                                             std::ssize(column_->layers()));
        if (!layers.empty()) draft_.set_layers(layers);
    });
    connect(layouts_, &QListWidget::itemActivated, layouts_, &QListWidget::itemClicked);
    connect(&draft_, &JobDraft::estimate_changed, this, &LayoutView::refresh_later);
    connect(&draft_, &JobDraft::changed, this, &LayoutView::refresh_later);
    connect(&draft_, &JobDraft::choices_changed, this, [this] {
        filled_ = false;
        refresh_later();
    });
}

QWidget* LayoutView::make_mixers() {
    mixers_ = new QWidget(content());
    auto* grid = new QGridLayout(mixers_);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setSpacing(2);
    grid->setColumnStretch(2, 1);
    return mixers_;
}

QWidget* LayoutView::make_layouts() {
    layouts_ = new QListWidget(content());
    layouts_->setObjectName(QStringLiteral("layout_names"));
    layouts_->setAccessibleName(tr("Layouts of the paper"));
    layouts_->setToolTip(tr("Choose which layers stay Standard. The others get the second mixer of the stack"));
    layouts_->setIconSize({kGlyph / 2, kGlyph});
    layouts_->setFrameShape(QFrame::NoFrame);
    return layouts_;
}

/// In one column where the table of costs needs the room.
void LayoutView::place_mixers() {
    auto* grid = static_cast<QGridLayout*>(mixers_->layout());
    const int columns = width() < kNarrowLayout ? 1 : 2;
    int place = 0;
    for (QToolButton* button : mixer_buttons_) {
        grid->addWidget(button, place / columns, place % columns, Qt::AlignLeft);
        ++place;
    }
    mixers_->updateGeometry();
}

void LayoutView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    place_mixers();
    fit_costs();
}

std::vector<std::string> LayoutView::layers() const {
    const training::ModelSettings& model = draft_.job().model;
    const auto& estimated = draft_.estimate().layers;
    if (!model.layers.empty()) return model.layers;
    if (model.mixer.empty()) return estimated;
    const auto named =
        layers_of_layout(draft_.choices(), QString::fromStdString(model.layout), model.mixer, std::ssize(estimated));
    return named.empty() ? estimated : named;
}

std::string LayoutView::other_mixer() const {
    // A mixer chosen in the column other than standard; else the first other one; else the last used.
    for (const QModelIndex& index : column_->selectionModel()->selectedIndexes()) {
        const std::string& mixer = column_->layers()[static_cast<std::size_t>(index.row())];
        if (!mixers::is_standard(mixer)) return mixer;
    }
    for (const std::string& mixer : column_->layers())
        if (!mixers::is_standard(mixer)) return mixer;
    return last_mixer_;
}

void LayoutView::fill_choices() {
    const bool same = filled_ && dark_ == desk().theme().dark;
    if (same) return;
    filled_ = true;
    dark_ = desk().theme().dark;
    qDeleteAll(mixer_buttons_);
    mixer_buttons_.clear();
    shown_mixers_.clear();
    int number = 1;
    for (const JobChoice& choice : draft_.choices().mixers) {
        const std::string mixer = choice.value.toStdString();
        shown_mixers_.push_back(mixer);
        auto* made = new QToolButton(mixers_);
        made->setObjectName(QStringLiteral("mixer_") + choice.value);
        made->setText(mixer_title(mixer));
        made->setIcon(swatch(mixer_color(desk().theme(), mixer)));
        made->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        made->setAutoRaise(true);
        made->setAccessibleName(tr("Give the chosen layers: %1").arg(mixer_title(mixer)));
        made->setToolTip(tr("Give the chosen layers this mixer (key %1)\n%2").arg(number++).arg(choice.hint));
        connect(made, &QToolButton::clicked, this, [this, mixer] { column_->give(mixer); });
        made->show();
        mixer_buttons_.push_back(made);
    }
    place_mixers();
    column_->set_mixers(shown_mixers_);
    column_->set_theme(desk().theme());
}

void LayoutView::refresh() {
    fill_choices();
    const JobEstimate& estimate = draft_.estimate();
    if (draft_.problem()) {
        show_notice(tr("The job cannot be read"), draft_.problem()->text, tr("To the job"),
                    [this] { Q_EMIT desk().view_wanted(QStringLiteral("train")); });
        return;
    }
    if (estimate.layers.empty()) {
        if (estimate.problem)
            show_notice(tr("This job has no stack of layers"), estimate.problem->text, tr("To the job"),
                        [this] { Q_EMIT desk().view_wanted(QStringLiteral("train")); });
        else
            show_reading();
        return;
    }
    show_content();
    const std::vector<std::string> now = this->layers();
    if (column_->layers() != now) column_->set_layers(now);
    for (const std::string& mixer : now)
        if (!mixers::is_standard(mixer)) last_mixer_ = mixer;
    const std::string other = other_mixer();
    const auto& choices = draft_.choices().layouts;
    while (layouts_->count() > static_cast<int>(choices.size())) delete layouts_->takeItem(layouts_->count() - 1);
    while (layouts_->count() < static_cast<int>(choices.size())) new QListWidgetItem(layouts_);
    int current = -1;
    for (std::size_t i = 0; i < choices.size(); ++i) {
        QListWidgetItem* item = layouts_->item(static_cast<int>(i));
        const auto layers = layers_of_layout(draft_.choices(), choices[i].name, other, std::ssize(now));
        item->setText(choices[i].name);
        item->setToolTip(choices[i].hint);
        item->setData(Qt::UserRole, choices[i].name);
        item->setSizeHint({0, kGlyph + 8});
        item->setIcon(glyph(layers, desk().theme(), devicePixelRatioF()));
        if (layers == now && current < 0) current = static_cast<int>(i);
    }
    layouts_->setCurrentRow(current);
    show_costs();
}

/// The stack as it is, and as if all its layers were standard.
void LayoutView::show_growth() {
    constexpr std::int64_t kShortest = 64, kLongest = 65'536;
    const JobEstimate& e = draft_.estimate();
    const std::vector<std::string> now = this->layers(), standard = mixers::standard_layers(std::ssize(now));
    const auto line = [&](const std::vector<std::string>& layers, double cost::CostNumbers::*what) {
        CurvePlot::Points points;
        for (std::int64_t length = kShortest; length <= kLongest; length *= 4) {
            cost::CostSetting setting;
            setting.length = length;
            setting.hidden = e.hidden;
            setting.heads = e.heads;
            setting.bytes = draft_.job().training.precision == "bfloat16" ? 2 : 4;
            double sum = 0;
            for (const std::string& mixer : layers) {
                if (!cost::has_cost(mixer)) continue;
                const double own = cost::evaluate(cost::mixer_cost(mixer), setting).*what;
                if (std::isfinite(own)) sum += own;  // what encoders alone have decodes nothing
            }
            points.x.push_back(static_cast<double>(length));
            points.y.push_back(sum);
        }
        return std::make_shared<const CurvePlot::Points>(std::move(points));
    };
    const Theme& theme = desk().theme();
    const auto key = [](const QColor& colour, const QString& text) {
        return QStringLiteral("<span style=\"color:%1\"><b>━━</b></span> %2").arg(colour.name(), text);
    };
    legend_->setText(key(theme.accent, tr("these layers")) + QStringLiteral("&nbsp;&nbsp;&nbsp;") +
                     key(theme.muted, tr("all Standard")));
    for (const auto& [plot, what] :
         {std::pair{decode_, &cost::CostNumbers::decode}, std::pair{cache_, &cost::CostNumbers::cache}}) {
        plot->set_theme(theme);
        plot->set_lines({{tr("all Standard"), theme.muted, CurvePlot::Look::line, line(standard, what), 0},
                         {tr("these layers"), theme.accent, CurvePlot::Look::line, line(now, what), 1}});
        plot->set_marks({{static_cast<double>(draft_.job().data.sequence_length), tr("the job"), theme.muted, false}});
    }
}

void LayoutView::show_costs() {
    show_growth();
    const JobEstimate& e = draft_.estimate();
    std::map<std::string, int> counts;
    const std::vector<std::string> now = this->layers();
    for (const std::string& mixer : now) ++counts[mixer];
    cost::CostSetting setting;
    setting.batch = draft_.job().training.batch;
    setting.length = draft_.job().data.sequence_length;
    setting.hidden = e.hidden;
    setting.heads = e.heads;
    setting.bytes = draft_.job().training.precision == "bfloat16" ? 2 : 4;
    costs_title_->setText(tr("Attention sublayers: batch %1, %2 tokens, width %3")
                              .arg(setting.batch)
                              .arg(setting.length)
                              .arg(setting.hidden));
    costs_->setRowCount(static_cast<int>(counts.size()) + 1);
    cost::CostNumbers sum;
    int row = 0;
    const auto cell = [&](int column, const QString& text, bool bold) {
        auto* item = new QTableWidgetItem(text);
        if (column > 0) item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        QFont font = costs_->font();
        font.setBold(bold);
        item->setFont(font);
        costs_->setItem(row, column, item);
        return item;
    };
    for (const auto& [mixer, count] : counts) {
        auto* name = cell(0, mixer_title(mixer), false);
        name->setIcon(swatch(mixer_color(desk().theme(), mixer)));
        cell(1, QString::number(count), false);
        if (cost::has_cost(mixer)) {
            const cost::MixerCost& formulas = cost::mixer_cost(mixer);
            const cost::CostNumbers one = cost::evaluate(formulas, setting);
            const double layers = count;
            cell(2, count_words(one.prefill * layers), false)
                ->setToolTip(QString::fromStdString(formulas.prefill.pretty()));
            cell(3, count_words(one.decode * layers), false)
                ->setToolTip(QString::fromStdString(formulas.decode.pretty()));
            cell(4, bytes_words(one.activation * layers), false)
                ->setToolTip(QString::fromStdString(formulas.activation.pretty()));
            cell(5, bytes_words(one.cache * layers), false)
                ->setToolTip(QString::fromStdString(formulas.cache.pretty()));
            sum.prefill += one.prefill * layers;
            sum.decode += one.decode * layers;
            sum.activation += one.activation * layers;
            sum.cache += one.cache * layers;
        } else {
            for (int column = 2; column < 6; ++column) cell(column, QStringLiteral("–"), false);
        }
        ++row;
    }
    cell(0, tr("All layers"), true);
    cell(1, QString::number(now.size()), true);
    cell(2, count_words(sum.prefill), true);
    cell(3, count_words(sum.decode), true);
    cell(4, bytes_words(sum.activation), true);
    cell(5, bytes_words(sum.cache), true);
    fit_costs();
    facts_->set({{tr("parameters"), e.parameters > 0 ? count_words(e.parameters) : QStringLiteral("–"),
                  tr("The seven mixers of Deconstructing Attention have the same number"), e.parameters <= 0},
                 {tr("memory"), e.memory > 0 ? bytes_words(e.memory) : QStringLiteral("–"), tr("While training, about"),
                  e.memory <= 0},
                 {tr("FLOPs a token"), e.flops_per_token > 0 ? count_words(e.flops_per_token) : QStringLiteral("–"),
                  tr("Of the whole model, forward and backward"), e.flops_per_token <= 0}});
}

/// The need of a narrow page, not of the table of costs in a wide one.
QSize LayoutView::minimumSizeHint() const {
    const QSize least = View::minimumSizeHint();
    return {least.width() - std::max(0, costs_->minimumWidth() - kLeastCosts), least.height()};
}

/// The table has the room that its words and numbers need, as far as there is any.
void LayoutView::fit_costs() {
    QHeaderView* header = costs_->horizontalHeader();
    header->setMinimumSectionSize(width() < kNarrowLayout ? kLeastCost : kUsualCost);
    columns_->fit();
    const int needed = 2 * costs_->frameWidth() + columns_->needed();
    const int layers = std::max(kLeastColumn, column_->parentWidget()->minimumSizeHint().width());
    const int others = layers + mixers_->minimumSizeHint().width() + 2 * kSpacing + 16;
    costs_->setMinimumWidth(std::clamp(needed, 0, std::max(0, width() - others)));
    costs_->setFixedHeight(header->sizeHint().height() + 6 +
                           costs_->rowCount() * costs_->verticalHeader()->defaultSectionSize());
}

extern const ViewKind kLayout{"layout",
                              "Layers",
                              "Which layer mixes how: the layout editor",
                              [](Desk* desk, QWidget* parent) -> View* { return new LayoutView(desk, parent); },
                              ViewGroup::job,
                              always};

}  // namespace headscope::widgets
