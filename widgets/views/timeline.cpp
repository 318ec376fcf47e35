// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/timeline.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QSplitter>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/base/site_name.h"
#include "core/workspace/measures.h"
#include "core/workspace/probe_series.h"
#include "widgets/desk/presence.h"
#include "widgets/plain_controls.h"
#include "widgets/plots/colour_map.h"
#include "widgets/plots/figure/figure_view.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/training/curve_plot.h"
#include "widgets/training/moment_maker.h"
#include "widgets/training/thumbnail_wall.h"

namespace headscope::widgets {
namespace {

constexpr int kPlay = 350;              // ms a probe
constexpr std::size_t kCategories = 6;  ///< lines that still have colours of their own

/// A moment may be of another run than the one that is chosen now.
QString site_words(const std::vector<Site>& sites, std::int64_t site) {
    return site < std::ssize(sites) ? QString::fromStdString(site_title(sites, site)) : QString();
}

QLabel* heading(QWidget* parent) {
    auto* label = new QLabel(parent);
    QFont bold = label->font();
    bold.setBold(true);
    label->setFont(bold);
    label->setTextFormat(Qt::PlainText);
    label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    return label;
}

}  // namespace

TimelineView::TimelineView(Desk* desk, QWidget* parent)
    : View(desk, parent, Of::training), shelf_(desk->runs()), maker_(new MomentMaker(&shelf_.worker(), this)) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    column->addWidget(make_bar());
    nothing_ = new Banner(content());
    column->addWidget(nothing_);
    auto* left = new QWidget(content());
    auto* left_column = new QVBoxLayout(left);
    left_column->setContentsMargins(0, 0, 0, 0);
    plot_ = new CurvePlot(left);
    plot_->setObjectName(QStringLiteral("timeline_plot"));
    plot_->setAccessibleName(tr("Indicator against step"));
    plot_->set_end_names(true);
    left_column->addWidget(plot_, 1);
    left_column->addWidget(make_scrubber());
    auto* right = new QSplitter(Qt::Vertical, content());
    auto* upper = new QWidget(right);
    auto* upper_column = new QVBoxLayout(upper);
    upper_column->setContentsMargins(0, 0, 0, 0);
    radar_title_ = heading(upper);
    radars_ = new FigureView(upper);
    radars_->setObjectName(QStringLiteral("timeline_radars"));
    radars_->setAccessibleName(tr("Radars of all layers at this step"));
    upper_column->addWidget(radar_title_);
    upper_column->addWidget(radars_, 1);
    auto* lower = new QWidget(right);
    auto* lower_column = new QVBoxLayout(lower);
    lower_column->setContentsMargins(0, 0, 0, 0);
    wall_title_ = heading(lower);
    wall_ = new ThumbnailWall(lower);
    lower_column->addWidget(wall_title_);
    lower_column->addWidget(wall_, 1);
    right->addWidget(upper);
    right->addWidget(lower);
    splitter_ = new QSplitter(Qt::Horizontal, content());
    splitter_->setObjectName(QStringLiteral("timeline_splitter"));
    splitter_->addWidget(left);
    splitter_->addWidget(right);
    splitter_->setStretchFactor(0, 5);
    splitter_->setStretchFactor(1, 4);
    splitter_->setSizes({540, 460});
    right->setStretchFactor(0, 2);
    right->setStretchFactor(1, 3);
    right->setSizes({230, 300});
    column->addWidget(splitter_, 1);
    column->addStretch();

    connect(&shelf_, &RunShelf::runs_changed, this, &TimelineView::refresh_later);
    connect(&shelf_, &RunShelf::updated, this, &TimelineView::refresh_later);
    connect(&shelf_, &RunShelf::moment_changed, this, &TimelineView::refresh_later);
    connect(&shelf_, &RunShelf::head_changed, this, &TimelineView::refresh_later);
    connect(maker_, &MomentMaker::made, this, &TimelineView::draw);
    connect(wall_, &ThumbnailWall::chosen, this, &TimelineView::choose_head);
    connect(wall_, &ThumbnailWall::resized, this, &TimelineView::refresh_later);
    connect(radars_, &FigureView::clicked, this, [this](const figures::Subject& subject) {
        if (!subject.sites.empty()) choose_head(subject.sites.front(), shelf_.head());
    });
    connect(plot_, &CurvePlot::chosen, this, [this](double x, int id) {
        shelf_.choose_step(std::llround(x));
        if (id < 0) return;
        of_heads() ? choose_head(shelf_.site(), id) : choose_head(id, shelf_.head());
    });
    connect(&playing_, &QTimer::timeout, this, [this] {
        if (scrubber_->value() >= scrubber_->maximum()) return play(false);
        step(1);
    });
}

QWidget* TimelineView::make_bar() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    run_ = make_combo(bar, "timeline_run", tr("Run"));
    run_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    run_->setMinimumContentsLength(18);
    indicator_ = make_combo(bar, "timeline_indicator", tr("Indicator"));
    of_ = make_combo(bar, "timeline_of", tr("Draw one line per layer, or per head of the chosen layer"));
    of_->addItem(tr("Layers, means over heads"), QStringLiteral("layers"));
    of_->addItem(tr("Heads of the chosen layer"), QStringLiteral("heads"));
    radar_of_ = make_combo(bar, "timeline_radar", tr("Radars of means over heads, or of the chosen head"));
    radar_of_->addItem(tr("Radars: means over heads"), QStringLiteral("mean"));
    radar_of_->addItem(tr("Radars: the chosen head"), QStringLiteral("head"));
    for (QComboBox* one : {run_, indicator_, of_, radar_of_}) row->addWidget(one);
    connect(run_, &QComboBox::activated, this, [this](int index) { shelf_.choose(run_->itemData(index).toInt()); });
    for (QComboBox* one : {indicator_, of_, radar_of_})
        connect(one, &QComboBox::currentIndexChanged, this, [this] {
            if (filling_) return;
            wanted_indicator_ = indicator();
            refresh_later();
            Q_EMIT state_changed();
        });
    return bar;
}

QWidget* TimelineView::make_scrubber() {
    auto* box = new QWidget(content());
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    play_ = new QToolButton(box);
    play_->setObjectName(QStringLiteral("timeline_play"));
    play_->setText(QStringLiteral("▶"));
    play_->setAccessibleName(tr("Play"));
    play_->setToolTip(tr("Step through the run"));
    scrubber_ = new QSlider(Qt::Horizontal, box);
    scrubber_->setObjectName(QStringLiteral("timeline_scrubber"));
    scrubber_->setAccessibleName(tr("Step"));
    scrubber_->setToolTip(tr("Step of the radars and maps"));
    scrubber_->setPageStep(5);
    step_ = new QLabel(box);
    step_->setObjectName(QStringLiteral("timeline_step"));
    step_->setMinimumWidth(step_->fontMetrics().horizontalAdvance(tr("step %1").arg(8888888)));
    analyse_ = new QPushButton(tr("Open this snapshot's analysis"), box);
    analyse_->setObjectName(QStringLiteral("timeline_analyse"));
    analyse_->setAccessibleName(analyse_->text());
    row->addWidget(play_);
    row->addWidget(scrubber_, 1);
    row->addWidget(step_);
    row->addWidget(analyse_);
    connect(play_, &QToolButton::clicked, this, [this] { play(!playing_.isActive()); });
    add_command(play_, tr("Play or pause the timeline"));
    add_command(analyse_, analyse_->text());
    connect(scrubber_, &QSlider::valueChanged, this, [this](int value) {
        const Run* run = shelf_.current();
        if (filling_ || !run || value < 0 || value >= std::ssize(run->record->probes)) return;
        const bool last = value + 1 == std::ssize(run->record->probes);
        shelf_.choose_step(
            last ? std::nullopt
                 : std::optional<std::int64_t>(run->record->probes[static_cast<std::size_t>(value)]->step));
    });
    connect(analyse_, &QPushButton::clicked, this, [this] {
        const Run* run = shelf_.current();
        if (!run) return;
        const QString name = analyse_->property("snapshot").toString();
        if (!name.isEmpty()) Q_EMIT shelf_.analyse_wanted(run->id, name);
    });
    return box;
}

QString TimelineView::indicator() const {
    return indicator_->currentData().toString();
}

bool TimelineView::of_heads() const {
    return of_->currentData().toString() == QLatin1String("heads");
}

void TimelineView::choose_head(std::int64_t site, std::int64_t head) {
    shelf_.choose_head(site, head);
    if (desk().current()) desk().select_head(site, head);
}

void TimelineView::step(int probes) {
    scrubber_->setValue(scrubber_->value() + probes);
}

void TimelineView::play(bool on) {
    play_->setText(on ? QStringLiteral("❚❚") : QStringLiteral("▶"));
    play_->setAccessibleName(on ? tr("Pause playing") : tr("Play"));
    if (!on) return playing_.stop();
    if (scrubber_->value() >= scrubber_->maximum()) scrubber_->setValue(0);
    playing_.start(kPlay);
}

void TimelineView::keyPressEvent(QKeyEvent* event) {
    const bool plain = !(event->modifiers() & ~Qt::KeypadModifier);
    switch (plain ? event->key() : 0) {
        case Qt::Key_Space:
            return play(!playing_.isActive());
        case Qt::Key_Left:
            return step(-1);
        case Qt::Key_Right:
            return step(1);
        case Qt::Key_Up:
            return choose_head(std::max<std::int64_t>(0, shelf_.site() - 1), shelf_.head());
        case Qt::Key_Down:
            return choose_head(std::min(shelf_.site() + 1, std::max<std::int64_t>(0, maker_->made_moment().sites - 1)),
                               shelf_.head());
        default:
            View::keyPressEvent(event);
    }
}

void TimelineView::fill_runs() {
    const QSignalBlocker quiet(run_);
    const auto& runs = shelf_.runs();
    while (run_->count() > static_cast<int>(runs.size())) run_->removeItem(run_->count() - 1);
    for (int i = 0; i < static_cast<int>(runs.size()); ++i) {
        const Run& run = runs[static_cast<std::size_t>(i)];
        if (i >= run_->count()) run_->addItem(QString());
        run_->setItemText(i, run.name);
        run_->setItemData(i, run.id);
        if (run.id == shelf_.moment().run) run_->setCurrentIndex(i);
    }
}

void TimelineView::fill_indicators(const workspace::LiveRun& record) {
    auto names = workspace::probe_indicators(record);
    if (names == listed_) return;
    listed_ = names;
    filling_ = true;
    const QString wanted = wanted_indicator_.isEmpty() ? QStringLiteral("entropy") : wanted_indicator_;
    indicator_->clear();
    for (const std::string& name : names) {
        const auto* measure = workspace::find_measure(name);
        indicator_->addItem(QString::fromUtf8(measure->title.data(), static_cast<int>(measure->title.size())),
                            QString::fromStdString(name));
        indicator_->setItemData(
            indicator_->count() - 1,
            QString::fromUtf8(measure->definition.data(), static_cast<int>(measure->definition.size())),
            Qt::ToolTipRole);
    }
    indicator_->setCurrentIndex(std::max(0, indicator_->findData(wanted)));
    filling_ = false;
}

void TimelineView::refresh() {
    const Run* run = shelf_.current();
    if (!run) {
        show_notice(tr("No run is open"), tr("Start a run, or drop the folder of one onto this window."),
                    tr("New training"), [this] { Q_EMIT desk().view_wanted(QStringLiteral("train")); });
        return;
    }
    const workspace::LiveRun& record = *run->record;
    show_content();
    fill_runs();
    show_nothing(*run);
    if (record.probes.empty()) return;
    fill_indicators(record);
    plot_->set_theme(desk().theme());
    radars_->set_theme(desk().theme());
    wall_->set_theme(desk().theme());
    const std::size_t at = *workspace::probe_at(record, shelf_.moment().step);
    filling_ = true;
    scrubber_->setRange(0, static_cast<int>(record.probes.size()) - 1);
    scrubber_->setValue(static_cast<int>(at));
    filling_ = false;
    const std::int64_t step = record.probes[at]->step;
    step_->setText(record.probe_gap > 0 ? tr("step %1, one in %2 steps shown").arg(step).arg(record.probe_gap)
                                        : tr("step %1").arg(step));
    step_->setToolTip(
        record.probe_gap > 0
            ? tr("Memory holds only some of the probes. The run's files and exported figures have all of them")
            : QString());
    // The nearest snapshot that is kept.
    const training::Snapshot* nearest = nullptr;
    for (const auto& snapshot : record.snapshots)
        if (!nearest || std::abs(snapshot.step - step) < std::abs(nearest->step - step)) nearest = &snapshot;
    analyse_->setEnabled(nearest != nullptr);
    analyse_->setProperty("snapshot", nearest ? QString::fromStdString(nearest->name) : QString());
    analyse_->setText(nearest && nearest->step != step ? tr("Open the analysis of step %1").arg(nearest->step)
                                                       : tr("Open this snapshot's analysis"));
    analyse_->setToolTip(nearest ? tr("Run the text panel's text through the snapshot of step %1").arg(nearest->step)
                                 : tr("The run has kept no snapshot yet"));
    ask();
    draw();
}

/// Another run can still be chosen.
void TimelineView::show_nothing(const Run& run) {
    const bool nothing = run.record->probes.empty();
    splitter_->setVisible(!nothing);
    for (QComboBox* one : {indicator_, of_, radar_of_}) one->setEnabled(!nothing);
    if (nothing) play(false);
    const QString why =
        run.alive()
            ? tr("No indicators yet. The job measures them every probe.every steps.")
            : tr("This run has no indicators: its job has probe.every = 0, or it ended before the first probe.");
    nothing_->set(nothing ? why : QString(), tr("To the runs"),
                  [this] { Q_EMIT desk().view_wanted(QStringLiteral("run")); });
}

void TimelineView::ask() {
    const Run* run = shelf_.current();
    if (!run || run->record->probes.empty()) return;
    MomentRequest wish;
    wish.record = run->record;
    wish.probe = *workspace::probe_at(*run->record, shelf_.moment().step);
    if (radar_of_->currentData().toString() == QLatin1String("head")) wish.radar_head = shelf_.head();
    wish.indicator = indicator().toStdString();
    if (of_heads()) wish.of_site = shelf_.site();
    wish.wall = wall_->room();
    wish.dark = desk().theme().dark;
    maker_->ask(wish);
}

void TimelineView::draw() {
    const Moment& moment = maker_->made_moment();
    const Run* run = shelf_.current();
    if (!run || !moment.wish.record || run->record->probes.empty() || !run->record->started) return;
    const std::vector<Site>& sites = run->record->started->sites;
    const Theme& theme = desk().theme();
    std::vector<CurvePlot::Line> lines;
    const bool heads = moment.wish.of_site.has_value();
    for (std::size_t i = 0; i < moment.lines.size(); ++i) {
        const MomentLine& line = moment.lines[i];
        const double shade = moment.lines.size() > kCategories
                                 ? static_cast<double>(i) / static_cast<double>(moment.lines.size() - 1)
                                 : figures::kNoShade;
        const std::int64_t id = heads && line.head >= 0 ? line.head : line.site;
        lines.push_back({heads && line.head >= 0 ? tr("head %1").arg(line.head) : site_words(sites, line.site),
                         member_colour(theme, static_cast<int>(i), shade), CurvePlot::Look::line, line.points,
                         static_cast<int>(id)});
    }
    plot_->set_lines(std::move(lines));
    plot_->set_stressed(static_cast<int>(heads ? shelf_.head() : shelf_.site()));
    plot_->set_x(tr("step"), figures::ScaleKind::linear, [](double x) { return QString::number(std::llround(x)); });
    const auto* measure = workspace::find_measure(moment.wish.indicator);
    if (measure) {
        QString title = QString::fromUtf8(measure->title.data(), static_cast<int>(measure->title.size()));
        if (!measure->unit.empty())
            title += QStringLiteral(" (%1)").arg(
                QString::fromUtf8(measure->unit.data(), static_cast<int>(measure->unit.size())));
        title += heads ? tr(", heads of %1").arg(site_words(sites, *moment.wish.of_site)) : tr(", layer by layer");
        plot_->set_title(title);
    }
    const std::size_t at = *workspace::probe_at(*run->record, shelf_.moment().step);
    const double step = static_cast<double>(run->record->probes[at]->step);
    std::vector<CurvePlot::Mark> marks;
    for (const auto& snapshot : run->record->snapshots)
        marks.push_back({static_cast<double>(snapshot.step), {}, theme.muted, false});
    marks.push_back({step, tr("step %1").arg(run->record->probes[at]->step), theme.accent, true});
    std::sort(marks.begin(), marks.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    plot_->set_marks(std::move(marks));
    if (radars_->figure() != moment.radars.get()) radars_->set_figure(moment.radars);
    radars_->set_selected({{0, shelf_.site(), 0}});
    radar_title_->setText(moment.wish.radar_head
                              ? tr("Indicators of head %1 at step %2").arg(*moment.wish.radar_head).arg(step)
                              : tr("Indicators of all layers at step %1").arg(step));
    QStringList labels, titles;
    for (std::int64_t s = 0; s < std::min(moment.sites, std::ssize(sites)); ++s) {
        labels << QString::fromStdString(site_label(sites, s));
        titles << QString::fromStdString(site_heading(sites, s));
    }
    wall_->set(moment.wall, labels, titles, moment.heads, tr("This run recorded no maps with its probes."));
    wall_->set_chosen(shelf_.site(), shelf_.head());
    wall_title_->setText(
        moment.wall.isNull()
            ? tr("Maps of all heads")
            : tr("Maps at step %1 · rows: layers · colors end at %2").arg(step).arg(number_label(moment.highest)));
    wall_title_->setToolTip(tr("Mean weights of all heads, one row per layer and one column per head. Colors end at %1")
                                .arg(number_label(moment.highest)));
}

QJsonObject TimelineView::state() const {
    return {{"indicator", wanted_indicator_.isEmpty() ? indicator() : wanted_indicator_},
            {"of", of_->currentData().toString()},
            {"radar", radar_of_->currentData().toString()}};
}

void TimelineView::restore(const QJsonObject& state) {
    wanted_indicator_ = state["indicator"].toString();
    listed_.clear();
    for (const auto& [box, name] : {std::pair{of_, "of"}, std::pair{radar_of_, "radar"}})
        if (const int index = box->findData(state[QLatin1String(name)].toString()); index >= 0)
            box->setCurrentIndex(index);
    refresh_later();
}

std::optional<FigureRequest> TimelineView::figure() const {
    const Run* run = shelf_.current();
    if (!run || run->record->probes.empty()) return std::nullopt;
    FigureRequest wish{"timeline", {}, {}};
    wish.paths << run->path;
    wish.options.indicator = indicator().toStdString();
    if (of_heads() && run->record->started && shelf_.site() < std::ssize(run->record->started->sites))
        wish.options.layer = run->record->started->sites[static_cast<std::size_t>(shelf_.site())].layer;
    if (const auto at = workspace::probe_at(*run->record, shelf_.moment().step))
        wish.options.step = run->record->probes[*at]->step;
    QStringList left_out;
    if (of_heads()) left_out << tr("Radar and maps of the other layers are left out.");
    if (radar_of_->currentData().toString() != QLatin1String("mean"))
        left_out << tr("The figure's radars are means over heads.");
    wish.note = left_out.join(QLatin1Char(' '));
    return wish;
}

extern const ViewKind kTimeline{"timeline",
                                "Timeline",
                                "How indicators and maps of a run change while it trains",
                                [](Desk* desk, QWidget* parent) -> View* { return new TimelineView(desk, parent); },
                                ViewGroup::runs,
                                with_runs};

}  // namespace headscope::widgets
