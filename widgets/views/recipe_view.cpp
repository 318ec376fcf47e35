// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/recipe_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QJsonArray>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "widgets/text/banner.h"
#include "widgets/text/elided.h"
#include "widgets/text/flow_layout.h"
#include "widgets/text/line_label.h"

namespace headscope::widgets {
namespace {

constexpr int kAgain = 300;  // ms between figures of a run that goes on
constexpr int kName = 190;   // pixels that the name of an analysis has at least
constexpr int kBox = 40;     // of a box to tick, with what is around it
constexpr std::size_t kMostBoxes = 16;

QString path_of(const Study& study) {
    return QString::fromStdString(study.path().string());
}

}  // namespace

RecipeView::RecipeView(Desk* desk, const char* recipe, QWidget* parent)
    : View(desk, parent),
      recipe_(recipe),
      tools_(new FlowLayout),
      with_(new QWidget(content())),
      with_label_(new QLabel(tr("Compare with:"), with_)),
      banner_(new Banner(content())),
      failure_(new Banner(content())),
      picture_(new FigureView(content())),
      pointed_(new LineLabel(content())) {
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 6, 8, 4);
    column->setSpacing(6);
    column->addLayout(tools_);
    column->addWidget(with_);
    column->addWidget(banner_);
    column->addWidget(failure_);
    failure_->setObjectName(QStringLiteral("failure"));
    column->addWidget(picture_, 1);
    column->addWidget(pointed_);
    auto* with = new FlowLayout(with_);
    with->addWidget(with_label_);
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    pointed_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    connect(picture_, &FigureView::clicked, this, [this](int panel, int row, int cell) {
        if (study() && current_) clicked(panel, row, cell);
    });
    connect(picture_, &FigureView::pointed, this, [this](const QString& text) {
        if (text.isEmpty()) return show_words();
        pointed_->setText(text);
        pointed_->setToolTip(text);
    });
    again_.setSingleShot(true);
    connect(&again_, &QTimer::timeout, this, &RecipeView::refresh_later);
}

QComboBox* RecipeView::add_choice(const char* name, const QString& label, const QString& tip,
                                  const std::vector<std::pair<const char*, QString>>& choices) {
    auto* box = new QComboBox(content());
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(label);
    box->setToolTip(tip);
    for (const auto& [value, text] : choices) box->addItem(text, QLatin1String(value));
    connect(box, &QComboBox::currentIndexChanged, this, [this] {
        refresh_later();
        Q_EMIT state_changed();
    });
    tools_->addWidget(box);
    choices_.push_back(box);
    for (int item = 0; item < box->count(); ++item)
        add_command(
            qPrintable(box->objectName() + QLatin1Char('_') + box->itemData(item).toString()),
            QStringLiteral("%1: %2").arg(label, box->itemText(item)), {}, tip,
            [box, item] { box->setCurrentIndex(item); },
            [box, item] { return box->isEnabled() && box->currentIndex() != item; });
    return box;
}

QString RecipeView::choice(const QComboBox* box) const {
    return box->currentData().toString();
}

figures::FigureOptions RecipeView::options() const {
    figures::FigureOptions options;
    options.sequence = selection().sequence;
    options.all_sequences = !selection().sequence;
    return options;
}

bool RecipeView::can_join(const Study& study) const {
    return !selection().sequence || *selection().sequence < study.sequences();
}

std::vector<Study*> RecipeView::others() const {
    std::vector<Study*> joined;
    for (Study* one : desk().studies())
        if (one != study() && ticked_.contains(one->id()) && can_join(*one)) joined.push_back(one);
    return joined;
}

std::vector<Study*> RecipeView::shown_studies() const {
    std::vector<Study*> all = others();
    if (study()) all.insert(all.begin(), study());
    return all;
}

/// One box for each open analysis but the selected one; they stay while nothing about them changes. Hundreds would
/// leave no room for the figure: the newest, and those that are ticked.
void RecipeView::fill_boxes() {
    std::vector<Study*> candidates;
    for (Study* one : desk().studies()) {
        if (wanted_.erase(path_of(*one)) > 0) ticked_.insert(one->id());
        if (one != study()) candidates.push_back(one);
    }
    std::erase_if(ticked_, [this](int id) { return desk().study(id) == nullptr; });
    with_->setVisible(!candidates.empty());
    const std::size_t all = candidates.size();
    std::size_t from_newest = all;
    std::erase_if(candidates,
                  [&](const Study* one) { return from_newest-- > kMostBoxes && !ticked_.contains(one->id()); });
    with_label_->setText(candidates.size() < all ? tr("Compare with the newest of %1:").arg(all) : tr("Compare with:"));
    with_label_->setToolTip(candidates.size() < all ? tr("The export dialog offers all of them") : QString());
    while (boxes_.size() > candidates.size()) {
        delete boxes_.back();
        boxes_.pop_back();
    }
    while (boxes_.size() < candidates.size()) {
        auto* box = new QCheckBox(with_);
        with_->layout()->addWidget(box);
        box->show();
        connect(box, &QCheckBox::toggled, this, [this, box](bool on) {
            const int id = box->property("study").toInt();
            on ? static_cast<void>(ticked_.insert(id)) : static_cast<void>(ticked_.erase(id));
            refresh_later();
            Q_EMIT state_changed();
        });
        boxes_.push_back(box);
    }
    const std::vector<QString> labels = study_labels({candidates.begin(), candidates.end()});
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        QCheckBox* box = boxes_[i];
        const Study& one = *candidates[i];
        const QSignalBlocker quiet(box);
        box->setProperty("study", one.id());
        const QString& name = labels[i];
        box->setProperty("name", name);
        const bool able = can_join(one);
        box->setEnabled(able);
        box->setChecked(ticked_.contains(one.id()));
        box->setAccessibleName(tr("Draw %1 in the same figure").arg(name));
        box->setToolTip(able ? tr("Draw this analysis in the same figure:\n%1\n%2").arg(one.model_name(), name)
                             : tr("%1 lacks the data of this figure, or the chosen sequence").arg(name));
    }
    name_boxes();
}

/// As much of the names as there is room for, and their ends, with which analyses of one model are told apart.
void RecipeView::name_boxes() {
    if (boxes_.empty()) return;
    const int free = content()->width() - with_label_->sizeHint().width() - 30;
    const int each = free / static_cast<int>(boxes_.size()) - kBox;
    const int room = std::max(std::min(kName, free - kBox), each);
    for (QCheckBox* box : boxes_) {
        QString text = elided_middle(box->font(), box->property("name").toString(), room);
        text.replace(QLatin1Char('&'), QStringLiteral("&&"));
        if (box->text() != text) box->setText(text);
    }
    with_->updateGeometry();
}

void RecipeView::resizeEvent(QResizeEvent* event) {
    View::resizeEvent(event);
    name_boxes();
}

void RecipeView::refresh() {
    if (notice_without_study()) return;
    fill_boxes();
    if (missing()) return;
    picture_->set_theme(desk().theme());
    bool running = false;
    for (const Study* one : shown_studies()) running |= one->running();
    const bool same_study = last_ && last_->studies.front() == study()->id();
    if (running && same_study && picture_->figure() && asked_.isValid() && asked_.elapsed() < kAgain) {
        again_.start(static_cast<int>(kAgain - asked_.elapsed()));
        return;
    }
    asked_.start();
    const auto reply = ask();
    current_ = static_cast<bool>(reply);
    failure_->set(reply.failure);
    if (reply) {
        picture_->set_figure(reply.value);
        picture_->set_marks(marks(*reply));
    } else if (!reply.failure.isEmpty() || !same_study) {
        picture_->set_figure(nullptr);
    }
    if (!picture_->figure() && reply.failure.isEmpty()) return show_reading();
    show_content();
    show_words();
}

/// The figure of what is selected, unless an earlier one is still being made: then nothing yet. Figures can take
/// seconds, and the reader's thread is everybody's, so that steps through layers must not queue up there.
Reply<figures::FigureData> RecipeView::ask() {
    const auto all = shown_studies();
    FigureWish wish{recipe_, options(), {}};
    for (const Study* one : all) wish.studies.push_back(one->id());
    wish = named(std::move(wish));
    if (last_ && (last_->studies != wish.studies || last_->options != wish.options)) {
        std::vector<Study*> earlier;
        for (const int id : last_->studies)
            if (Study* one = desk().study(id)) earlier.push_back(one);
        if (earlier.size() == last_->studies.size()) {
            const std::vector<Study*> beside(earlier.begin() + 1, earlier.end());
            // While a run goes on asking would begin it anew; refresh() takes its time then.
            const bool still = std::none_of(earlier.begin(), earlier.end(), [](Study* one) { return one->running(); });
            if (still && earlier.front()->figure(recipe_, last_->options, beside).pending) return {nullptr, {}, true};
        }
    }
    last_ = wish;
    return study()->figure(recipe_, wish.options, {all.begin() + 1, all.end()});
}

void RecipeView::show_words() {
    if (!current_ && failure_->text().isEmpty()) return pointed_->setText(tr("Reading…"));
    const QString text = picture_->figure() && study() ? words(*picture_->figure()) : QString();
    pointed_->setText(text);
    pointed_->setToolTip(text);
}

QString RecipeView::words(const figures::FigureData&) const {
    return tr("Click chooses a layer · ↑ ↓ layers · ← → heads");
}

QJsonObject RecipeView::state() const {
    QJsonObject state;
    for (const QComboBox* box : choices_) state[box->objectName()] = choice(box);
    QJsonArray with;
    for (const Study* one : desk().studies())
        if (ticked_.contains(one->id())) with.append(path_of(*one));
    for (const QString& path : wanted_) with.append(path);
    state[QLatin1String("with")] = with;
    return state;
}

void RecipeView::restore(const QJsonObject& state) {
    for (QComboBox* box : choices_) {
        const int index = box->findData(state.value(box->objectName()).toString());
        if (index >= 0) box->setCurrentIndex(index);
    }
    if (const QJsonValue with = state.value(QLatin1String("with")); with.isArray()) {
        ticked_.clear();
        wanted_.clear();
        for (const QJsonValue path : with.toArray()) wanted_.insert(path.toString());
    }
    refresh_later();
}

std::optional<FigureWish> RecipeView::figure() const {
    if (!study() || !picture_->figure()) return std::nullopt;
    FigureWish wish{recipe_, options(), {}};
    for (const Study* one : shown_studies()) wish.studies.push_back(one->id());
    return named(wish);
}

std::vector<std::int64_t> measured_sites(const Study& study) {
    std::vector<std::int64_t> sites;
    const auto& measured = study.header().measured_layers;
    for (std::int64_t s = 0; s < std::ssize(study.sites()); ++s)
        if (measured.empty() || measured.contains(study.sites()[static_cast<std::size_t>(s)].layer)) sites.push_back(s);
    return sites;
}

std::optional<std::int64_t> measured_site(const Study& study, const std::string& name) {
    const QString wanted = QString::fromStdString(name);
    for (const auto site : measured_sites(study))
        if (study.site_name(site) == wanted) return site;
    return std::nullopt;
}

std::vector<std::int64_t> sites_of_layer(const Study& study, std::int64_t site) {
    const auto layer = [&](std::int64_t s) { return study.sites().at(static_cast<std::size_t>(s)).layer; };
    std::vector<std::int64_t> sites = measured_sites(study);
    std::erase_if(sites, [&](std::int64_t s) { return layer(s) != layer(site); });
    return sites;
}

}  // namespace headscope::widgets
