// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/train.h"

#include <QCheckBox>
#include <QFileInfo>
#include <QLabel>
#include <QPushButton>
#include <QSplitter>
#include <QVBoxLayout>
#include <cmath>

#include "widgets/desk/presence.h"
#include "widgets/text/banner.h"
#include "widgets/text/flow_layout.h"
#include "widgets/training/facts.h"
#include "widgets/training/job_editor.h"
#include "widgets/training/job_form.h"

namespace headscope::widgets {
namespace {

constexpr int kWidestForm = 800;  ///< pixels: a field's value stays beside its name

QPushButton* button(QWidget* parent, const char* name, const QString& text, const QString& tip) {
    auto* made = new QPushButton(text, parent);
    made->setObjectName(QLatin1String(name));
    made->setAccessibleName(text);
    made->setToolTip(tip);
    return made;
}

}  // namespace

TrainView::TrainView(Desk* desk, QWidget* parent)
    : View(desk, parent, Of::training),
      draft_(desk->runs().draft()),
      form_(new JobForm(&draft_, content())),
      editor_(new JobEditor(&draft_, content())),
      facts_(new Facts(content())),
      banner_(new Banner(content())),
      splitter_(new QSplitter(Qt::Horizontal, content())) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    column->addWidget(make_bar());
    column->addWidget(make_fork());
    column->addWidget(facts_);
    column->addWidget(banner_);
    column->addWidget(splitter_, 1);
    splitter_->setObjectName(QStringLiteral("job_splitter"));
    splitter_->addWidget(form_);
    splitter_->addWidget(editor_);
    splitter_->setChildrenCollapsible(true);
    splitter_->setSizes({520, 480});
    form_->setMaximumWidth(kWidestForm);
    connect(form_, &JobForm::focused, editor_, &JobEditor::show_key);
    connect(form_, &JobForm::all_changed, this, [this] { Q_EMIT state_changed(); });
    connect(&draft_, &JobDraft::changed, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    connect(&draft_, &JobDraft::estimate_changed, this, &TrainView::refresh_later);
    connect(&desk->runs(), &RunShelf::starting_changed, this, &TrainView::refresh_later);
    show_content();
}

QWidget* TrainView::make_bar() {
    auto* bar = new QWidget(content());
    auto* row = new FlowLayout(bar);
    RunShelf& shelf = desk().runs();
    start_ = button(bar, "job_start", tr("Start"), tr("Check the job and train it in a process of its own"));
    QFont bold = start_->font();
    bold.setBold(true);
    start_->setFont(bold);
    start_->setMinimumWidth(110);
    measure_ = button(bar, "job_measure", tr("Measure speed"), tr("Train for about a second to estimate the time"));
    auto* layout = button(bar, "job_layout", tr("Layers…"), tr("Choose each layer's mixer in the layout editor"));
    auto* open = button(bar, "job_open_run", tr("Open a run…"), tr("Open the folder of a training run"));
    auto* read = button(bar, "job_read", tr("Read a job…"), tr("Read a TOML file into form and text"));
    auto* save = button(bar, "job_save", tr("Save the job…"), tr("Save as TOML, for headscope train on any machine"));
    auto* fresh = button(bar, "job_fresh", tr("Reset"), tr("Start from the default job; Undo restores this one"));
    for (QWidget* one : {start_, measure_, layout, open, read, save, fresh}) row->addWidget(one);
    connect(start_, &QPushButton::clicked, &shelf, &RunShelf::start_wanted);
    connect(measure_, &QPushButton::clicked, &shelf, &RunShelf::calibrate_wanted);
    connect(layout, &QPushButton::clicked, this, [this] { Q_EMIT desk().view_wanted(QStringLiteral("layout")); });
    connect(open, &QPushButton::clicked, &shelf, &RunShelf::open_wanted);
    connect(read, &QPushButton::clicked, &shelf, &RunShelf::read_job_wanted);
    connect(save, &QPushButton::clicked, &shelf, &RunShelf::save_job_wanted);
    connect(fresh, &QPushButton::clicked, this, [this] {
        draft_.set_fork({});
        draft_.set_text(JobDraft::first_text());
    });
    return bar;
}

QWidget* TrainView::make_fork() {
    fork_ = new QWidget(content());
    auto* row = new FlowLayout(fork_);
    fork_words_ = new QLabel(fork_);
    fork_words_->setObjectName(QStringLiteral("job_fork_words"));
    fork_words_->setTextFormat(Qt::PlainText);
    fork_optimizer_ = new QCheckBox(tr("with the optimizer's state and the position in the data"), fork_);
    fork_optimizer_->setObjectName(QStringLiteral("job_fork_optimizer"));
    fork_optimizer_->setAccessibleName(fork_optimizer_->text());
    fork_optimizer_->setToolTip(tr("Off: take only the weights, and count steps from 0"));
    auto* not_from = button(fork_, "job_fork_off", tr("Use fresh weights"),
                            tr("Start from fresh weights instead of the checkpoint"));
    for (QWidget* one : std::initializer_list<QWidget*>{fork_words_, fork_optimizer_, not_from}) row->addWidget(one);
    connect(fork_optimizer_, &QCheckBox::clicked, this, [this](bool on) {
        JobFork fork = draft_.fork();
        fork.keep_optimizer = on;
        draft_.set_fork(fork);
    });
    connect(not_from, &QPushButton::clicked, this, [this] { draft_.set_fork({}); });
    return fork_;
}

void TrainView::show_fork() {
    const JobFork& fork = draft_.fork();
    fork_->setVisible(!fork.path.isEmpty());
    fork_words_->setText(tr("Continues from %1").arg(fork.name));
    fork_words_->setToolTip(fork.path);
    fork_optimizer_->setChecked(fork.keep_optimizer);
}

void TrainView::refresh() {
    show_fork();
    const Theme& theme = desk().theme();
    if (!themed_ || theme.dark != shown_theme_.dark) {
        themed_ = true;
        shown_theme_ = theme;
        editor_->set_theme(theme);
        form_->set_theme(theme);
    }
    const QString starting = desk().runs().starting();
    const bool wrong = draft_.problem() || draft_.estimate().problem;
    start_->setEnabled(!wrong && starting.isEmpty());
    measure_->setEnabled(!wrong && starting.isEmpty());
    start_->setText(starting.isEmpty() ? tr("Start") : starting);
    show_summary();
}

void TrainView::show_summary() {
    const JobEstimate& e = draft_.estimate();
    std::vector<Facts::Fact> facts;
    const bool wrong = draft_.problem().has_value();
    const auto add = [&](const QString& name, double value, const QString& words, const QString& hint) {
        const bool known = value > 0 && std::isfinite(value) && !wrong;
        facts.push_back({name, known ? words : QStringLiteral("–"), hint, !known});
    };
    add(tr("parameters"), e.parameters, count_words(e.parameters),
        e.printed_parameters > 0 ? tr("The paper prints %1 for these sizes").arg(count_words(e.printed_parameters))
                                 : tr("Trained numbers of the model"));
    add(tr("layers"), static_cast<double>(e.layers.size()), QString::number(e.layers.size()),
        tr("%1 wide, %2 heads").arg(e.hidden).arg(e.heads));
    add(tr("memory"), e.memory, bytes_words(e.memory),
        tr("Estimate: weights, gradients, optimizer state and activations of one step"));
    add(tr("FLOPs a token"), e.flops_per_token, count_words(e.flops_per_token),
        tr("Floating-point operations of forward and backward"));
    add(tr("tokens"), e.tokens, count_words(e.tokens), tr("Tokens of the whole job, repetitions included"));
    add(tr("speed"), e.tokens_per_second, tr("%1/s").arg(count_words(e.tokens_per_second)),
        e.calibration.isEmpty() ? tr("Tokens per second. Press Measure speed to know it") : e.calibration);
    add(tr("expected time"), e.seconds, time_words(e.seconds),
        e.calibration.isEmpty() ? tr("Press Measure speed") : e.calibration);
    if (const training::JobFile& job = draft_.job(); !wrong && !job.model.from.empty() && !job.data.generator) {
        const bool own = job.data.tokenizer == training::standard_tokenizer(job);
        const QString name = QFileInfo(QString::fromStdString(job.data.tokenizer)).fileName();
        facts.push_back({tr("tokenizer"), own ? tr("the checkpoint's") : name,
                         own ? tr("The tokenizer that the checkpoint was trained with")
                             : tr("Not the checkpoint's own tokenizer: its ids stand for other texts than in training"),
                         false});
    }
    for (const auto& line : e.lines) facts.push_back({line.name, line.value, line.hint, false});
    facts_->set(facts);
    QStringList said;
    if (e.calibration.startsWith(QLatin1Char('['))) said << e.calibration;
    // A fork begins at its snapshot's step, which the estimate does not know.
    if (!wrong && draft_.fork().path.isEmpty()) said << e.warnings;
    banner_->set(said.join(QLatin1Char('\n')));
}

QJsonObject TrainView::state() const {
    const JobFork& fork = draft_.fork();
    return {{"job", draft_.text()},
            {"all", form_->all()},
            {"from", QJsonObject{{"path", fork.path}, {"name", fork.name}, {"optimizer", fork.keep_optimizer}}}};
}

void TrainView::restore(const QJsonObject& state) {
    if (state["job"].isString()) draft_.set_text(state["job"].toString());
    const QJsonObject from = state["from"].toObject();
    draft_.set_fork({from["path"].toString(), from["name"].toString(), from["optimizer"].toBool(true)});
    form_->set_all(state["all"].toBool());
    refresh_later();
}

extern const ViewKind kTrain{"train",
                             "New training",
                             "What to train: a job as form and text, and what it will take",
                             [](Desk* desk, QWidget* parent) -> View* { return new TrainView(desk, parent); },
                             ViewGroup::job,
                             always};

}  // namespace headscope::widgets
