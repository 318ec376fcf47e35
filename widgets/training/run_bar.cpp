// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/run_bar.h"

#include <QCheckBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPainter>
#include <QProgressBar>
#include <QPushButton>
#include <QSlider>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/training/job/job.h"
#include "widgets/plots/ticks.h"
#include "widgets/text/flow_layout.h"
#include "widgets/training/facts.h"

namespace headscope::widgets {
namespace {

using workspace::RunStatus;

constexpr int kSteps = 100;  ///< of the rate's slider, for a factor of 10 to either side
constexpr int kNameLength = 30;

/// From the middle: forks differ in their ends.
QString short_name(const QString& name) {
    if (name.size() <= kNameLength) return name;
    return name.left(kNameLength / 2) + QStringLiteral("…") + name.right(kNameLength / 2 - 1);
}

/// The peak that holds now: the last one that was asked for, else the job's.
double peak_of(const workspace::LiveRun& record) {
    for (auto done = record.controls.rbegin(); done != record.controls.rend(); ++done) {
        bool number = false;
        const double value = QString::fromStdString(done->control.value).toDouble(&number);
        if (done->control.action == "learning_rate" && number) return value;
    }
    if (!record.started) return 0;
    try {
        return training::read_job(record.started->job, "job").optimizer.learning_rate;
    } catch (const Error&) {
        return 0;
    }
}

}  // namespace

RunBar::RunBar(RunShelf* shelf, QWidget* parent)
    : QWidget(parent), shelf_(shelf), chips_(new QWidget(this)), controls_(new QWidget(this)) {
    new FlowLayout(chips_, 10);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(4);
    column->addWidget(chips_);
    column->addWidget(controls_);
    build_controls();
}

void RunBar::build_controls() {
    auto* column = new QVBoxLayout(controls_);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(5);
    column->addWidget(build_state());
    column->addWidget(build_buttons());
}

/// How the run is, in a row of its own: its words change their length all the time, and buttons stay where they are.
QWidget* RunBar::build_state() {
    auto* box = new QWidget(controls_);
    auto* row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    state_ = new QLabel(box);
    state_->setObjectName(QStringLiteral("run_state"));
    state_->setTextFormat(Qt::PlainText);
    state_->setContentsMargins(8, 3, 8, 3);
    state_->setAutoFillBackground(true);
    progress_ = new QProgressBar(box);
    progress_->setObjectName(QStringLiteral("run_progress"));
    progress_->setAccessibleName(tr("Progress of the run"));
    progress_->setRange(0, 1000);
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setRetainSizeWhenHidden(true);
    progress_->setSizePolicy(policy);
    row->addWidget(state_);
    row->addWidget(progress_, 1);
    return box;
}

QWidget* RunBar::build_buttons() {
    auto* box = new QWidget(controls_);
    auto* row = new FlowLayout(box);
    const auto button = [&](const char* name, const QString& text, const QString& tip) {
        auto* made = new QPushButton(text, box);
        made->setObjectName(QLatin1String(name));
        made->setAccessibleName(text);
        made->setToolTip(tip);
        row->addWidget(made);
        return made;
    };
    const auto menu = [&](const char* name, const QString& text, const QString& tip) {
        auto* made = button(name, text, tip);
        made->setMenu(new QMenu(made));
        return made;
    };
    pause_ = button("run_pause", tr("Pause"), tr("Pause after the current step; the process stays"));
    resume_ = button("run_resume", tr("Resume"), tr("Continue"));
    stop_ = button("run_stop", tr("Stop"), tr("Stop with a snapshot, from which it can be resumed"));
    snapshot_ = button("run_snapshot", tr("Snapshot"), tr("Write a checkpoint now"));
    evaluate_ = button("run_evaluate", tr("Evaluate"), tr("Measure the held-out loss now"));
    fork_ = menu("run_fork", tr("Fork"), tr("Start a new job from a snapshot's weights"));
    analyse_ =
        menu("run_analyse", tr("Analyze"), tr("Run the text panel's text through a snapshot and open the analysis"));
    row->addWidget(build_rate(box));
    const auto wish = [this](const char* action) {
        if (const Run* run = shelf_->current()) Q_EMIT shelf_->control_wanted(run->id, QLatin1String(action), {});
    };
    connect(pause_, &QPushButton::clicked, this, [wish] { wish("pause"); });
    connect(stop_, &QPushButton::clicked, this, [wish] { wish("stop"); });
    connect(snapshot_, &QPushButton::clicked, this, [wish] { wish("snapshot"); });
    connect(evaluate_, &QPushButton::clicked, this, [wish] { wish("evaluate"); });
    connect(resume_, &QPushButton::clicked, this, [this, wish] {
        const Run* run = shelf_->current();
        if (!run) return;
        if (run->alive())
            wish("resume");
        else
            Q_EMIT shelf_->resume_wanted(run->id);
    });
    return box;
}

/// The words and their slider stay together where the row breaks.
QWidget* RunBar::build_rate(QWidget* parent) {
    rate_box_ = new QWidget(parent);
    rate_ = new QSlider(Qt::Horizontal, rate_box_);
    rate_->setObjectName(QStringLiteral("run_rate_slider"));
    rate_->setAccessibleName(tr("Learning rate"));
    rate_->setToolTip(tr("The schedule's peak rate, from a tenth to ten times its value; applied on release"));
    rate_->setRange(-kSteps, kSteps);
    rate_->setFixedWidth(130);
    rate_words_ = new QLabel(rate_box_);
    rate_words_->setObjectName(QStringLiteral("run_rate_words"));
    rate_words_->setMinimumWidth(rate_words_->fontMetrics().horizontalAdvance(tr("peak rate %1").arg("8.88·10⁻⁸")));
    auto* row = new QHBoxLayout(rate_box_);
    row->setContentsMargins(6, 0, 0, 0);
    row->addWidget(rate_words_);
    row->addWidget(rate_);
    connect(rate_, &QSlider::valueChanged, this, [this] {
        rate_words_->setText(tr("peak rate %1").arg(number_label(slider_rate())));
        rate_->setAccessibleDescription(rate_words_->text());
    });
    const auto give_rate = [this] {
        const Run* run = shelf_->current();
        if (!run || rate_->value() == 0 || peak_ <= 0) return;
        Q_EMIT shelf_->control_wanted(run->id, QStringLiteral("learning_rate"), QString::number(slider_rate(), 'g', 3));
        rate_of_ = 0;  // about the new peak, as soon as that is acknowledged
    };
    connect(rate_, &QSlider::sliderReleased, this, give_rate);
    connect(rate_, &QSlider::actionTriggered, this, [this, give_rate](int action) {
        // Keys give it too; a drag gives it at its end.
        if (action != QAbstractSlider::SliderMove && !rate_->isSliderDown())
            QMetaObject::invokeMethod(rate_, give_rate, Qt::QueuedConnection);
    });
    return rate_box_;
}

double RunBar::slider_rate() const {
    return peak_ * std::pow(10.0, static_cast<double>(rate_->value()) / kSteps);
}

void RunBar::refresh(const Theme& theme) {
    fill_chips(theme);
    const Run* run = shelf_->current();
    controls_->setVisible(run != nullptr);
    if (!run) return;
    const workspace::LiveRun& record = *run->record;
    const RunStatus status = run->status();
    QString words = run->failure.isEmpty() ? status_words(status) : tr("cannot be read");
    if (status == RunStatus::failed || status == RunStatus::interrupted)
        if (!record.state_text.empty()) state_->setToolTip(QString::fromStdString(record.state_text));
    if (!run->failure.isEmpty()) state_->setToolTip(run->failure);
    const auto planned = record.planned_steps();
    words += planned > 0 ? tr(" · step %1 of %2").arg(record.last_step()).arg(planned)
                         : tr(" · step %1").arg(record.last_step());
    if (const auto left = record.seconds_left(); left && status == RunStatus::running)
        words += tr(" · %1 left").arg(time_words(*left));
    if (!run->waiting.isEmpty()) words += tr(" · requested: %1").arg(run->waiting.join(QStringLiteral(", ")));
    state_->setText(words);
    const bool bad = status == RunStatus::failed || status == RunStatus::interrupted || !run->failure.isEmpty();
    QColor ground = bad ? theme.accent : status == RunStatus::running ? theme.categorical(2) : theme.categorical(0);
    if (status == RunStatus::stopped || status == RunStatus::finished) ground = theme.none;
    if (status == RunStatus::paused) ground = theme.categorical(4);
    QPalette colours = state_->palette();
    colours.setColor(QPalette::Window, ground);
    colours.setColor(QPalette::WindowText, readable_on(ground));
    state_->setPalette(colours);
    progress_->setVisible(planned > 0);
    if (planned > 0)
        progress_->setValue(static_cast<int>(1000.0 * record.share_done()));
    const bool alive = run->alive();
    pause_->setEnabled(status == RunStatus::running);
    const bool again = status == RunStatus::stopped || status == RunStatus::interrupted || status == RunStatus::failed;
    const bool resumable = status == RunStatus::paused || again;
    pause_->setVisible(!resumable);
    resume_->setVisible(resumable);
    resume_->setEnabled(shelf_->starting().isEmpty());
    for (QPushButton* one : {stop_, snapshot_, evaluate_}) one->setEnabled(alive);
    fork_->setEnabled(!record.snapshots.empty());
    analyse_->setEnabled(!record.snapshots.empty());
    fill_menus(*run);
    show_rate(*run);
}

void RunBar::fill_chips(const Theme& theme) {
    const auto& runs = shelf_->runs();
    while (made_.size() > runs.size()) {
        delete made_.back().box;
        made_.pop_back();
    }
    while (made_.size() < runs.size()) {
        Chip chip;
        chip.box = new QWidget(chips_);
        auto* row = new QHBoxLayout(chip.box);
        row->setContentsMargins(0, 0, 0, 0);
        row->setSpacing(2);
        chip.shown = new QCheckBox(chip.box);
        chip.name = new QToolButton(chip.box);
        chip.name->setCheckable(true);
        chip.name->setAutoRaise(true);
        chip.name->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        row->addWidget(chip.shown);
        row->addWidget(chip.name);
        chips_->layout()->addWidget(chip.box);
        chip.box->show();
        const std::size_t at = made_.size();
        connect(chip.shown, &QCheckBox::toggled, this, [this, at](bool on) { shelf_->set_shown(made_[at].id, on); });
        connect(chip.name, &QToolButton::clicked, this, [this, at] {
            shelf_->choose(made_[at].id);
            made_[at].name->setChecked(shelf_->moment().run == made_[at].id);
        });
        made_.push_back(chip);
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const Run& run = runs[i];
        Chip& chip = made_[i];
        chip.id = run.id;
        const QSignalBlocker quiet(chip.shown);
        chip.shown->setChecked(run.shown);
        chip.shown->setVisible(runs.size() > 1);
        chip.shown->setObjectName(QStringLiteral("run_shown_%1").arg(i));
        chip.shown->setAccessibleName(tr("Draw %1").arg(run.name));
        chip.shown->setToolTip(chip.shown->accessibleName());
        QPixmap dot(14, 14);
        dot.fill(Qt::transparent);
        QPainter painter(&dot);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.categorical(run.colour));
        painter.drawEllipse(QRectF(2, 2, 10, 10));
        painter.end();
        chip.name->setIcon(QIcon(dot));
        chip.name->setText(tr("%1 – %2").arg(short_name(run.name), status_words(run.status())));
        chip.name->setChecked(run.id == shelf_->moment().run);
        chip.name->setObjectName(QStringLiteral("run_chip_%1").arg(i));
        chip.name->setAccessibleName(tr("Run %1").arg(run.name));
        chip.name->setToolTip(run.path);
    }
    chips_->updateGeometry();
}

void RunBar::fill_menus(const Run& run) {
    std::vector<std::string> names{std::to_string(run.id)};
    for (const auto& snapshot : run.record->snapshots) names.push_back(snapshot.name + (snapshot.best ? "*" : ""));
    if (names == listed_) return;
    listed_ = names;
    fork_->menu()->clear();
    analyse_->menu()->clear();
    const auto& snapshots = run.record->snapshots;
    for (auto snapshot = snapshots.rbegin(); snapshot != snapshots.rend(); ++snapshot) {
        const QString text =
            snapshot->best ? tr("step %1, the best").arg(snapshot->step) : tr("step %1").arg(snapshot->step);
        const QString name = QString::fromStdString(snapshot->name);
        fork_->menu()->addAction(text, this, [this, id = run.id, name] { Q_EMIT shelf_->fork_wanted(id, name); });
        analyse_->menu()->addAction(text, this, [this, id = run.id, name] { Q_EMIT shelf_->analyse_wanted(id, name); });
    }
}

void RunBar::show_rate(const Run& run) {
    const bool alive = run.alive();
    rate_->setEnabled(alive);
    rate_box_->setVisible(alive);
    if (rate_->isSliderDown()) return;
    if (rate_of_ == run.id && peak_ > 0) return;
    if (!run.waiting.isEmpty()) return;
    peak_ = peak_of(*run.record);
    rate_of_ = peak_ > 0 ? run.id : 0;
    const QSignalBlocker quiet(rate_);
    rate_->setValue(0);
    rate_words_->setText(peak_ > 0 ? tr("peak rate %1").arg(number_label(peak_)) : QString());
}

}  // namespace headscope::widgets
