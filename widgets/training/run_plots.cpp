// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/run_plots.h"

#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/error.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/flow_layout.h"
#include "widgets/training/facts.h"

namespace headscope::widgets {
namespace {

using figures::ScaleKind;
using workspace::RunAxis;

constexpr int kBesideFrom = 760;  ///< from here small plots go beside
constexpr std::array<double, 8> kSmoothings{0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995};
constexpr int kFiner = 160;  // ms

}  // namespace

RunPlots::RunPlots(RunShelf* shelf, QWidget* parent)
    : QWidget(parent), shelf_(shelf), maker_(&shelf->worker()), theme_(make_theme(false)) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(make_bar());
    grid_ = new QGridLayout;
    grid_->setSpacing(6);
    column->addLayout(grid_, 1);
    const auto plot = [this](const char* name, const QString& title) {
        auto* made = new CurvePlot(this);
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(title);
        made->set_title(title);
        plots_.push_back(made);
        connect(made, &CurvePlot::range_changed, this, [this, made] { share_range(made); });
        connect(made, &CurvePlot::cursor_moved, this, [this, made] {
            for (CurvePlot* other : plots_)
                if (other != made) other->set_cursor(made->cursor());
        });
        return made;
    };
    loss_ = plot("run_loss", tr("Loss (nats a token)"));
    accuracy_ = plot("run_accuracy", tr("Share of right answers"));
    accuracy_->set_y({}, ScaleKind::linear, [](double share) { return tr("%1 %").arg(100 * share, 0, 'g', 4); });
    accuracy_->hide();
    rate_ = plot("run_rate", tr("Learning rate"));
    norm_ = plot("run_norm", tr("Gradient norm"));
    speed_ = plot("run_speed", tr("Tokens a second"));
    memory_ = plot("run_memory", tr("Memory"));
    rate_->set_y_least(0);
    speed_->set_y_least(0);
    speed_->set_y({}, ScaleKind::linear, count_words);
    memory_->set_y({}, ScaleKind::linear, bytes_words);
    norm_->set_y({}, ScaleKind::logarithmic);
    connect(loss_, &CurvePlot::chosen, this, [this](double, int id) {
        if (id > 0) shelf_->choose(id);
    });
    soon_.setSingleShot(true);
    soon_.setInterval(kFiner);
    connect(&soon_, &QTimer::timeout, this, &RunPlots::refresh);
    connect(&maker_, &CurveMaker::made, this, &RunPlots::draw);
    set_axis();
    arrange();
}

QWidget* RunPlots::make_bar() {
    auto* bar = new QWidget(this);
    auto* row = new FlowLayout(bar);
    axis_ = new QComboBox(bar);
    axis_->setObjectName(QStringLiteral("run_axis"));
    axis_->setAccessibleName(tr("Axis of the curves"));
    axis_->setToolTip(axis_->accessibleName());
    axis_->addItem(tr("by step"), QStringLiteral("step"));
    axis_->addItem(tr("by tokens"), QStringLiteral("tokens"));
    axis_->addItem(tr("by time"), QStringLiteral("seconds"));
    smoothing_ = new QSlider(Qt::Horizontal, bar);
    smoothing_->setObjectName(QStringLiteral("run_smoothing"));
    smoothing_->setAccessibleName(tr("Smoothing"));
    smoothing_->setToolTip(tr("Weight of older values in the running mean. The raw values stay visible, faint"));
    smoothing_->setRange(0, static_cast<int>(kSmoothings.size()) - 1);
    smoothing_->setValue(3);
    smoothing_->setPageStep(1);
    smoothing_->setFixedWidth(110);
    smoothing_words_ = new QLabel(bar);
    smoothing_words_->setMinimumWidth(smoothing_words_->fontMetrics().horizontalAdvance(tr("smoothing %1").arg(0.995)));
    log_ = new QCheckBox(tr("log loss"), bar);
    log_->setObjectName(QStringLiteral("run_log"));
    log_->setAccessibleName(tr("Logarithmic loss"));
    log_->setToolTip(tr("Make both axes of the loss logarithmic: power laws become straight lines"));
    perplexity_ = new QCheckBox(tr("perplexity"), bar);
    perplexity_->setObjectName(QStringLiteral("run_perplexity"));
    perplexity_->setAccessibleName(tr("Perplexity instead of loss"));
    perplexity_->setToolTip(tr("Perplexity: exp(loss)"));
    for (QWidget* one : std::initializer_list<QWidget*>{axis_, smoothing_, smoothing_words_, log_, perplexity_})
        row->addWidget(one);
    const auto words = [this] {
        smoothing_words_->setText(tr("smoothing %1").arg(kSmoothings[static_cast<std::size_t>(smoothing_->value())]));
    };
    words();
    connect(axis_, &QComboBox::currentIndexChanged, this, [this] {
        range_.reset();
        set_axis();
        refresh();
        Q_EMIT state_changed();
    });
    connect(smoothing_, &QSlider::valueChanged, this, [this, words] {
        words();
        refresh();
        Q_EMIT state_changed();
    });
    connect(perplexity_, &QCheckBox::toggled, this, [this] {
        refresh();
        Q_EMIT state_changed();
    });
    connect(log_, &QCheckBox::toggled, this, [this] {
        set_axis();
        draw();
        Q_EMIT state_changed();
    });
    return bar;
}

workspace::RunCurveOptions RunPlots::options() const {
    workspace::RunCurveOptions options;
    options.axis = static_cast<RunAxis>(std::max(0, axis_->currentIndex()));
    options.smoothing = kSmoothings[static_cast<std::size_t>(smoothing_->value())];
    options.range = range_;
    options.perplexity = perplexity_->isChecked();
    return options;
}

bool RunPlots::logarithmic() const {
    return log_->isChecked();
}

void RunPlots::set_axis() {
    const auto axis = options().axis;
    const QString label = axis == RunAxis::step ? tr("step") : axis == RunAxis::tokens ? tr("tokens") : tr("time");
    CurvePlot::Words words;
    if (axis == RunAxis::tokens) words = count_words;
    if (axis == RunAxis::seconds) words = [](double seconds) { return seconds == 0 ? tr("0") : time_words(seconds); };
    if (axis == RunAxis::step) words = [](double step) { return QString::number(std::llround(step)); };
    const bool log = log_->isChecked();
    for (CurvePlot* plot : plots_) {
        const bool this_log = log && plot == loss_;
        plot->set_x(plot == loss_ ? label : QString(), this_log ? ScaleKind::logarithmic : ScaleKind::linear, words);
        plot->set_range(range_);
    }
    loss_->set_y({}, log ? ScaleKind::logarithmic : ScaleKind::linear,
                 [](double loss) { return QString::number(loss, 'g', 4); });
}

void RunPlots::arrange() {
    const bool wide = width() >= kBesideFrom;
    const bool accurate = !accuracy_->isHidden();
    if (arranged_ && wide == wide_ && accurate == accurate_) return;
    arranged_ = true;
    wide_ = wide;
    accurate_ = accurate;
    for (CurvePlot* plot : plots_) grid_->removeWidget(plot);
    for (int i = 0; i < 5; ++i) {
        grid_->setColumnStretch(i, 0);
        grid_->setRowStretch(i, 0);
    }
    if (wide) {
        grid_->addWidget(loss_, 0, 0, accurate ? 1 : 2, 1);
        if (accurate) grid_->addWidget(accuracy_, 1, 0);
        grid_->addWidget(rate_, 0, 1);
        grid_->addWidget(norm_, 0, 2);
        grid_->addWidget(speed_, 1, 1);
        grid_->addWidget(memory_, 1, 2);
        grid_->setColumnStretch(0, 5);
        grid_->setColumnStretch(1, 3);
        grid_->setColumnStretch(2, 3);
        grid_->setRowStretch(0, 1);
        grid_->setRowStretch(1, 1);
    } else {
        const int below = accurate ? 2 : 1;
        grid_->addWidget(loss_, 0, 0, 1, 2);
        if (accurate) grid_->addWidget(accuracy_, 1, 0, 1, 2);
        grid_->addWidget(rate_, below, 0);
        grid_->addWidget(norm_, below, 1);
        grid_->addWidget(speed_, below + 1, 0);
        grid_->addWidget(memory_, below + 1, 1);
        grid_->setColumnStretch(0, 1);
        grid_->setColumnStretch(1, 1);
        grid_->setRowStretch(0, 3);
        for (int row = 1; row <= below + 1; ++row) grid_->setRowStretch(row, 2);
    }
}

void RunPlots::resizeEvent(QResizeEvent* event) {
    QWidget::resizeEvent(event);
    arrange();
}

void RunPlots::set_theme(const Theme& theme) {
    theme_ = theme;
    for (CurvePlot* plot : plots_) plot->set_theme(theme);
    draw();
}

void RunPlots::share_range(const CurvePlot* from) {
    range_ = from->range();
    for (CurvePlot* plot : plots_) plot->set_range(range_);
    soon_.start();
}

void RunPlots::refresh() {
    CurveMaker::Records records;
    for (const Run& run : shelf_->runs())
        if (run.shown || run.id == shelf_->moment().run) records[run.id] = run.record;
    maker_.ask(std::move(records), options());
    draw();
}

void RunPlots::draw() {
    std::vector<CurvePlot::Line> loss, accuracy, rate, norm, speed, memory;
    bool accurate = false;
    std::vector<CurvePlot::Mark> marks;
    std::size_t shown = 0;
    for (const Run& run : shelf_->runs()) shown += maker_.lines(run.id) ? 1 : 0;
    for (const Run& run : shelf_->runs()) {
        const RunLines* lines = maker_.lines(run.id);
        if (!lines) continue;
        const QColor colour = theme_.categorical(run.colour);
        const auto named = [&](const QString& what) { return shown > 1 ? run.name : what; };
        using Look = CurvePlot::Look;
        loss.push_back({{}, colour, Look::faint, lines->loss, run.id});
        loss.push_back({shown > 1 ? run.name : tr("training"), colour, Look::line, lines->smooth_loss, run.id});
        const QColor held =
            shown > 1 ? (theme_.dark ? colour.lighter(135) : colour.darker(135)) : theme_.categorical(1);
        loss.push_back({shown > 1 ? tr("%1, validation").arg(run.name) : tr("validation"), held, Look::dots,
                        lines->validation, run.id});
        accuracy.push_back({{}, colour, Look::faint, lines->accuracy, run.id});
        accuracy.push_back({shown > 1 ? run.name : tr("training"), colour, Look::line, lines->smooth_accuracy, run.id});
        accuracy.push_back({shown > 1 ? tr("%1, validation").arg(run.name) : tr("validation"), held, Look::dots,
                            lines->validation_accuracy, run.id});
        accurate |= !lines->accuracy->x.empty() || !lines->validation_accuracy->x.empty();
        rate.push_back({named(tr("rate")), colour, Look::line, lines->learning_rate, run.id});
        norm.push_back({{}, colour, Look::faint, lines->gradient_norm, run.id});
        norm.push_back({named(tr("norm")), colour, Look::line, lines->smooth_norm, run.id});
        speed.push_back({{}, colour, Look::faint, lines->speed, run.id});
        speed.push_back({named(tr("speed")), colour, Look::line, lines->smooth_speed, run.id});
        memory.push_back({named(tr("memory")), colour, Look::line, lines->memory, run.id});
        if (run.id != shelf_->moment().run) continue;
        for (const auto& snapshot : run.record->snapshots)
            marks.push_back({workspace::axis_place(*run.record, options().axis, static_cast<double>(snapshot.step)),
                             snapshot.best ? tr("best") : QString(), theme_.muted, false});
        for (const auto& done : run.record->controls)
            marks.push_back(
                {workspace::axis_place(*run.record, options().axis, static_cast<double>(done.control.step)),
                 QString::fromStdString(done.control.action == "learning_rate" ? "rate " + done.control.value
                                                                               : done.control.action),
                 theme_.accent, false});
    }
    std::erase_if(marks, [](const auto& mark) { return !std::isfinite(mark.x); });  // times in a file from elsewhere
    std::sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    const int current = shown > 1 ? shelf_->moment().run : -1;
    for (CurvePlot* plot : plots_) plot->set_stressed(current);
    loss_->set_lines(std::move(loss));
    accuracy_->set_lines(std::move(accuracy));
    accuracy_->setVisible(accurate);
    arrange();
    loss_->set_marks(std::move(marks));
    rate_->set_lines(std::move(rate));
    norm_->set_lines(std::move(norm));
    speed_->set_lines(std::move(speed));
    memory_->set_lines(std::move(memory));
    const bool exponential = perplexity_->isChecked();
    const auto number = [exponential](double value) {
        return exponential ? QString::number(std::exp(value), 'g', 4) : QString::number(value, 'f', 3);
    };
    QString title = exponential ? tr("Perplexity") : tr("Loss (nats a token)");
    if (const Run* run = shelf_->current(); run && run->record->steps.size() > 0 && shown == 1) {
        const training::LossWords& words = words_of(*run);
        QString name = QString::fromLatin1(words.name);
        name[0] = name[0].toUpper();
        const QString value = number(run->record->steps.loss.back());
        title = exponential ? tr("Perplexity %1").arg(value)
                            : QStringLiteral("%1 %2 %3").arg(name, value, QLatin1String(words.unit)).trimmed();
        if (!run->record->validations.loss.empty())
            title += tr(" · validation %1").arg(number(run->record->validations.loss.back()));
    }
    loss_->set_title(title);
}

const training::LossWords& RunPlots::words_of(const Run& run) {
    const std::string job = run.record->started ? run.record->started->job : std::string();
    if (job == job_) return loss_words_;
    job_ = job;
    loss_words_ = training::loss_words({});
    try {
        if (!job.empty()) loss_words_ = training::loss_words(training::read_job(job, "job").data.objective);
    } catch (const Error&) {  // of another version, or damaged
    }
    return loss_words_;
}

QJsonObject RunPlots::state() const {
    return {{"axis", axis_->currentData().toString()},
            {"smoothing", smoothing_->value()},
            {"log", log_->isChecked()},
            {"perplexity", perplexity_->isChecked()}};
}

void RunPlots::restore(const QJsonObject& state) {
    const int axis = axis_->findData(state["axis"].toString());
    if (axis >= 0) axis_->setCurrentIndex(axis);
    if (state["smoothing"].isDouble()) smoothing_->setValue(state["smoothing"].toInt());
    if (state["log"].isBool()) log_->setChecked(state["log"].toBool());
    if (state["perplexity"].isBool()) perplexity_->setChecked(state["perplexity"].toBool());
}

}  // namespace headscope::widgets
