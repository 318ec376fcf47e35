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

/// The site of `study` with the name of `other`'s site.
std::optional<std::int64_t> site_like(const Study& study, const Study& other, std::int64_t site) {
    if (site < 0 || site >= std::ssize(other.sites())) return std::nullopt;
    if (&study == &other) return site;
    const QString name = other.site_name(site);
    for (std::int64_t own = 0; own < std::ssize(study.sites()); ++own)
        if (study.site_name(own) == name) return own;
    return std::nullopt;
}

QString path_of(const Study& study) {
    return QString::fromStdString(study.path().string());
}

}  // namespace

RecipeView::RecipeView(Desk* desk, const RecipePage& page, QWidget* parent)
    : View(desk, parent),
      page_(page),
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
    connect(picture_, &FigureView::clicked, this, [this](const figures::Subject& subject) {
        if (study() && current_) clicked(subject);
    });
    connect(picture_, &FigureView::pointed, this, [this](const QString& text) {
        if (text.isEmpty()) return show_words();
        pointed_->setText(text);
        pointed_->setToolTip(text);
    });
    again_.setSingleShot(true);
    connect(&again_, &QTimer::timeout, this, &RecipeView::refresh_later);
    for (const RecipeChoice& one : page.choices) add_choice(one);
    if (page.tool_tip) picture_->setToolTip(page.tool_tip());
}

void RecipeView::add_choice(const RecipeChoice& choice) {
    auto* box = new QComboBox(content());
    const QString label = tr(choice.label), tip = tr(choice.tip);
    box->setObjectName(QLatin1String(choice.name));
    box->setAccessibleName(label);
    box->setToolTip(tip);
    for (const auto& value : choice.values) box->addItem(tr(value.text), QLatin1String(value.name));
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
}

QString RecipeView::choice(std::size_t index) const {
    return choices_.at(index)->currentData().toString();
}

figures::FigureOptions RecipeView::options() const {
    figures::FigureOptions options;
    if (page_.texts == RecipePage::Texts::chosen) {
        options.sequence = selection().sequence;
        options.all_sequences = !selection().sequence;
    } else if (page_.texts == RecipePage::Texts::first) {
        options.sequence = selection().one_sequence();
    }
    for (std::size_t i = 0; i < choices_.size(); ++i) {
        const auto& value = page_.choices[i].values.at(static_cast<std::size_t>(choices_[i]->currentIndex()));
        if (value.set) value.set(options, *study(), selection());
    }
    return options;
}

bool RecipeView::can_join(const Study& study) const {
    const bool has_text =
        page_.texts == RecipePage::Texts::none || !selection().sequence || *selection().sequence < study.sequences();
    return has_text && !(page_.missing && page_.missing(study));
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

/// Shortens names to the room, and keeps their ends, which distinguish analyses of one model.
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
    if (const auto missing = page_.missing ? page_.missing(*study()) : std::nullopt) {
        return show_notice(missing->title, missing->text, study()->running() ? QString() : missing->action,
                           [this, wish = missing->run]() mutable {
                               if (!study()) return;
                               wish.study = study()->id();
                               Q_EMIT desk().run_wanted(wish);
                           });
    }
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
        mark_selected();
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
    FigureRequest wish{page_.recipe, options(), {}};
    for (const Study* one : all) wish.studies.push_back(one->id());
    wish = named(std::move(wish));
    if (last_ && (last_->studies != wish.studies || last_->options != wish.options)) {
        std::vector<Study*> earlier;
        for (const int id : last_->studies)
            if (Study* one = desk().study(id)) earlier.push_back(one);
        if (earlier.size() == last_->studies.size()) {
            const std::vector<Study*> beside(earlier.begin() + 1, earlier.end());
            // While a run grows, another request would restart it; refresh() takes its time then.
            const bool still = std::none_of(earlier.begin(), earlier.end(), [](Study* one) { return one->running(); });
            if (still && earlier.front()->figure(page_.recipe, last_->options, beside).pending)
                return {nullptr, {}, true};
        }
    }
    last_ = wish;
    return study()->figure(page_.recipe, wish.options, {all.begin() + 1, all.end()});
}

void RecipeView::show_words() {
    if (!current_ && failure_->text().isEmpty()) return pointed_->setText(tr("Reading…"));
    const QString text = picture_->figure() && study() ? words(*picture_->figure()) : QString();
    pointed_->setText(text);
    pointed_->setToolTip(text);
}

std::pair<std::int64_t, std::int64_t> RecipeView::marked() const {
    return {selection().site, selection().head};
}

/// The marked head in the selected analysis, and its like in the others.
void RecipeView::mark_selected() {
    std::vector<FigureView::Selected> selected;
    const auto [site, head] = marked();
    const auto shown = shown_studies();
    for (std::size_t a = 0; a < shown.size(); ++a)
        if (const auto own = site_like(*shown[a], *study(), site))
            selected.push_back({static_cast<std::int64_t>(a), *own, head});
    picture_->set_selected(std::move(selected));
}

/// Selects the head in the selected analysis, whichever analysis was clicked.
void RecipeView::clicked(const figures::Subject& subject) {
    if (subject.empty()) return;
    std::int64_t site = selection().site;
    if (!subject.sites.empty()) {
        const auto shown = shown_studies();
        const auto analysis = static_cast<std::size_t>(subject.analysis.value_or(0));
        if (analysis >= shown.size()) return;
        std::vector<std::int64_t> sites;
        for (const auto one : subject.sites)
            if (const auto own = site_like(*study(), *shown[analysis], one)) sites.push_back(*own);
        if (sites.empty()) return;
        // Keeps the selected one of several layers.
        if (std::find(sites.begin(), sites.end(), site) == sites.end()) site = sites.front();
    }
    const std::int64_t head = subject.head.value_or(selection().head);
    if (subject.head && head >= study()->sites().at(static_cast<std::size_t>(site)).heads) return;
    desk().select_head(site, head);
}

QString RecipeView::words(const figures::FigureData&) const {
    if (page_.words) return page_.words(*study(), selection(), choices_.empty() ? QString() : choice());
    return tr("Click chooses a layer · ↑ ↓ layers · ← → heads");
}

QJsonObject RecipeView::state() const {
    QJsonObject state;
    for (const QComboBox* box : choices_) state[box->objectName()] = box->currentData().toString();
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

std::optional<FigureRequest> RecipeView::figure() const {
    if (!study() || !picture_->figure()) return std::nullopt;
    FigureRequest wish{page_.recipe, options(), {}};
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

}  // namespace headscope::widgets
