// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/all_heads/all_heads.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <QVBoxLayout>
#include <algorithm>

#include "core/base/error.h"
#include "core/figures/recipe.h"
#include "core/workspace/head_filter.h"
#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/desk/presence.h"
#include "widgets/views/all_heads/head_wall.h"
#include "widgets/views/overview/overview_scale.h"
#include "widgets/views/views.h"

namespace headscope::widgets {
namespace {

constexpr std::int64_t kStoredSide = 128;   ///< of a stored thumbnail, where a text is that long
constexpr std::int64_t kMostAveraged = 64;  ///< reading more takes seconds a layer
constexpr int kWheelRest = 60;              ///< milliseconds after the last turn of the wheel

int index_of(int size) {
    const auto at = std::find(HeadWall::kSizes.begin(), HeadWall::kSizes.end(), size);
    return static_cast<int>(at - HeadWall::kSizes.begin());
}

QComboBox* choice(const char* name, const QString& title, const QString& tip, QWidget* parent) {
    auto* box = new QComboBox(parent);
    box->setObjectName(QLatin1String(name));
    box->setAccessibleName(title);
    box->setToolTip(tip);
    return box;
}

}  // namespace

AllHeads::AllHeads(Desk* desk, QWidget* parent)
    : View(desk, parent),
      statistic_(choice("statistic", tr("Value of a pixel"),
                        tr("Show the mean or the largest of the weights under a pixel"), this)),
      scale_(choice("scale", tr("Color scale"),
                    tr("Share one scale to compare heads, or scale each head to its own highest weight"), this)),
      slider_(new QSlider(Qt::Horizontal, this)),
      fit_(new QPushButton(tr("Fit"), this)),
      unfilter_(new QPushButton(tr("Clear filter"), this)),
      note_(new QLabel(this)),
      pointed_(new QLabel(this)),
      wall_(new HeadWall(this)),
      bar_(new ScaleBar(this)) {
    statistic_->addItem(tr("Mean weight"), QStringLiteral("mean"));
    statistic_->addItem(tr("Largest weight"), QStringLiteral("maximum"));
    scale_->addItem(tr("Shared scale"), QStringLiteral("shared"));
    scale_->addItem(tr("Scale per head"), QStringLiteral("head"));
    pointed_->setObjectName(QStringLiteral("pointed"));
    pointed_->setTextFormat(Qt::PlainText);
    auto* foot = new QHBoxLayout;
    foot->addWidget(bar_, 3);
    auto* words = new QVBoxLayout;
    words->addWidget(pointed_);
    words->addWidget(note_);
    foot->addLayout(words, 2);
    auto* column = new QVBoxLayout(content());
    column->setContentsMargins(8, 8, 8, 8);
    column->addWidget(make_bar());
    column->addWidget(wall_, 1);
    column->addLayout(foot);
    settled_.setSingleShot(true);
    settled_.setInterval(kWheelRest);
    connect(&settled_, &QTimer::timeout, this, &AllHeads::refresh_later);
    connect(statistic_, &QComboBox::activated, this, &AllHeads::changed_by_hand);
    connect(scale_, &QComboBox::activated, this, &AllHeads::changed_by_hand);
    connect(slider_, &QSlider::valueChanged, this,
            [this](int index) { wall_->set_size(HeadWall::kSizes.at(static_cast<std::size_t>(index))); });
    connect(fit_, &QPushButton::clicked, this, &AllHeads::fit);
    connect(unfilter_, &QPushButton::clicked, this, [this] { this->desk().set_head_filter({}); });
    connect(desk, &Desk::head_filter_changed, this, &AllHeads::refresh_later);
    connect(&desk->asks(), &AskShelf::changed, this, &AllHeads::refresh_later);
    connect(wall_, &HeadWall::fit_wanted, this, &AllHeads::fit);
    connect(wall_, &HeadWall::size_changed, this, [this](int size) {
        slider_->setValue(index_of(size));
        if (fitting_) return;
        settled_.start();
        sized_ = true;
        Q_EMIT state_changed();
    });
    connect(wall_, &HeadWall::visible_changed, this, &AllHeads::refresh_later);
    connect(wall_, &HeadWall::pointed, this, &AllHeads::show_pointed);
    connect(wall_, &HeadWall::chosen, this, [this](qint64 site, qint64 head) { this->desk().select_head(site, head); });
    connect(wall_, &HeadWall::stepped, this, [this](int sites, int heads) { this->desk().step(sites, heads); });
    connect(&desk->head_sets(), &HeadSetStore::changed, this, &AllHeads::refresh_later);
    connect(wall_, &HeadWall::mark_wanted, this, &AllHeads::mark);
    connect(wall_, &HeadWall::opened, this, &AllHeads::open);
    add_command(fit_, fit_->accessibleName());
    add_command(unfilter_, unfilter_->accessibleName());
    add_command("all_heads_mark", tr("Mark the head"), {}, tr("Mark the head, or remove its mark"), [this] { mark(); });
    add_command("all_heads_open_map", tr("Open the head's map"), {}, tr("Open the head in the view Map"),
                [this] { open(selection().site, selection().head); });
}

void AllHeads::mark() {
    const Study* now = study();
    if (!now || now->sites().empty()) return;
    const auto& at = selection();
    const Site& site = now->sites()[static_cast<std::size_t>(at.site)];
    const workspace::HeadKey key{site.layer, at.site, static_cast<std::int32_t>(at.head)};
    workspace::HeadSets sets = desk().head_sets().of(*now);
    sets.mark(key, !sets.is_marked(key));
    desk().head_sets().put(std::move(sets));
}

void AllHeads::open(std::int64_t site, std::int64_t head) {
    desk().select_head(site, head);
    Q_EMIT desk().view_wanted(QStringLiteral("map"));
}

QWidget* AllHeads::make_bar() {
    slider_->setObjectName(QStringLiteral("size"));
    slider_->setAccessibleName(tr("Size of the thumbnails"));
    slider_->setToolTip(tr("Size of the thumbnails. The wheel zooms, dragging moves"));
    slider_->setRange(0, static_cast<int>(HeadWall::kSizes.size()) - 1);
    slider_->setPageStep(2);
    slider_->setMaximumWidth(160);
    slider_->setValue(index_of(wall_->size()));
    fit_->setObjectName(QStringLiteral("fit"));
    fit_->setAccessibleName(tr("Fit all heads into the window"));
    fit_->setToolTip(tr("Fit all heads of a layer into the width (0)"));
    unfilter_->setObjectName(QStringLiteral("unfilter"));
    unfilter_->setAccessibleName(tr("Clear the overview's filter"));
    unfilter_->hide();
    note_->setObjectName(QStringLiteral("note"));
    note_->setTextFormat(Qt::PlainText);
    note_->setWordWrap(true);
    auto* bar = new QWidget(this);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(0, 0, 0, 0);
    row->addWidget(statistic_);
    row->addWidget(scale_);
    row->addWidget(slider_, 1);
    row->addWidget(fit_);
    row->addWidget(unfilter_);
    row->addStretch(1);
    return bar;
}

std::string AllHeads::statistic() const {
    return statistic_->currentData().toString().toStdString();
}

bool AllHeads::shared() const {
    return scale_->currentIndex() == 0;
}

void AllHeads::changed_by_hand() {
    refresh_later();
    Q_EMIT state_changed();
}

void AllHeads::set_statistic(const QString& name) {
    const int index = statistic_->findData(name);
    if (index < 0 || index == statistic_->currentIndex()) return;
    statistic_->setCurrentIndex(index);
    changed_by_hand();
}

void AllHeads::set_shared(bool shared) {
    if (shared == this->shared()) return;
    scale_->setCurrentIndex(shared ? 0 : 1);
    changed_by_hand();
}

void AllHeads::fit() {
    sized_ = false;
    refresh_later();
    Q_EMIT state_changed();
}

void AllHeads::refresh() {
    if (notice_without_study()) {
        study_ = 0;
        return;
    }
    if (study()->sites().empty()) {
        show_notice(tr("This model has no attention to show"));
        return;
    }
    show_content();
    if (study_ != study()->id()) {
        study_ = study()->id();
        wall_->forget_images();
    }
    failure_.clear();
    wall_->set_theme(desk().theme());
    bar_->set_theme(desk().theme());
    choose_sequences();
    show_rows();
    show_filter();
    if (!sized_) {
        fitting_ = true;
        wall_->fit();
        fitting_ = false;
    }
    wall_->set_selected(selection().site, selection().head);
    if (!settled_.isActive()) ask_for_strips();
    show_note();
    show_pointed(-1, -1);
}

void AllHeads::choose_sequences() {
    const Study& now = *study();
    const auto sites = std::ssize(now.sites());
    const auto sides = [&](std::int64_t s, std::int64_t site) {
        const auto side = [](const store::SequenceTokens& tokens) {
            return std::min(kStoredSide, std::ssize(tokens.ids));
        };
        return std::pair(side(now.query_tokens(s, site)), side(now.key_tokens(s, site)));
    };
    averaged_ = selection().sequence || now.sequences() < 2 ? 0 : std::min(kMostAveraged, now.sequences());
    for (std::int64_t site = 0; site < sites && averaged_ > 0; ++site)
        for (std::int64_t s = 1; s < averaged_; ++s)
            if (sides(s, site) != sides(0, site)) averaged_ = 0;
    sequences_.assign(now.sites().size(), {});
    const std::int64_t first = averaged_ > 0 ? 0 : selection().one_sequence();
    const std::int64_t last = averaged_ > 0 ? averaged_ - 1 : first;
    for (std::int64_t site = 0; site < sites; ++site)
        for (std::int64_t s = first; s <= last; ++s)
            if (now.site_done(s, site)) sequences_[static_cast<std::size_t>(site)].push_back(s);
}

void AllHeads::show_rows() {
    std::vector<HeadWall::Row> rows;
    for (std::int64_t site = 0; site < std::ssize(study()->sites()); ++site) {
        const Site& place = study()->sites()[static_cast<std::size_t>(site)];
        rows.push_back({study()->site_name(site), place.heads, group_of(place), drawn(site),
                        !sequences_[static_cast<std::size_t>(site)].empty()});
    }
    wall_->set_rows(std::move(rows));
    const workspace::HeadSets sets = desk().head_sets().of(*study());
    std::vector<std::vector<bool>> marked;
    if (!sets.marked().empty()) marked.resize(study()->sites().size());
    for (const auto& head : sets.marked()) {
        if (head.site < 0 || head.site >= std::ssize(marked)) continue;
        auto& of_site = marked[static_cast<std::size_t>(head.site)];
        of_site.resize(static_cast<std::size_t>(study()->sites()[static_cast<std::size_t>(head.site)].heads), false);
        if (head.head >= 0 && head.head < std::ssize(of_site)) of_site[static_cast<std::size_t>(head.head)] = true;
    }
    wall_->set_marked(std::move(marked));
}

void AllHeads::show_filter() {
    const QString& text = desk().head_filter();
    unfilter_->setVisible(!text.isEmpty());
    unfilter_->setToolTip(tr("The overview's filter “%1” dims the other heads. Click to clear it").arg(text));
    const auto table = text.isEmpty() ? nullptr : desk().heads(*study(), selection().sequence).value;
    if (text == filter_ && table == filter_table_) return;
    filter_ = text;
    filter_table_ = table;
    filtered_.clear();
    std::vector<std::vector<bool>> dimmed;
    if (table) {
        try {
            const workspace::HeadFilter filter(text.toStdString(), *table);
            std::size_t matching = 0;
            dimmed.resize(study()->sites().size());
            for (std::size_t row = 0; row < table->rows.size(); ++row) {
                auto& of_site = dimmed.at(static_cast<std::size_t>(table->rows[row].site));
                const bool matches = filter.matches(*table, row);
                of_site.push_back(!matches);
                matching += matches ? 1 : 0;
            }
            filtered_ = tr("%1 of %2 heads match the filter “%3”").arg(matching).arg(table->rows.size()).arg(text);
        } catch (const Error&) {  // a name that this analysis lacks: the overview reports it, and nothing is dimmed
            dimmed.clear();
            filtered_ = tr("the filter “%1” does not apply to this analysis").arg(text);
        }
    }
    wall_->set_dimmed(std::move(dimmed));
}

void AllHeads::show_note() {
    QStringList notes;
    if (!selection().sequence && study()->sequences() > 1)
        notes << (averaged_ == 0 ? tr("sequence 0: the sequences differ in length, no mean is shown")
                  : averaged_ == study()->sequences() ? tr("mean of %1 sequences").arg(averaged_)
                                                      : tr("mean of the first %1 sequences").arg(averaged_));
    const std::int64_t sites = std::ssize(sequences_);
    const auto there = std::count_if(sequences_.begin(), sequences_.end(), [](const auto& of) { return !of.empty(); });
    if (there < sites)
        notes << (study()->running() ? tr("%1 of %2 layers so far") : tr("stopped after %1 of %2 layers"))
                     .arg(there)
                     .arg(sites);
    const auto& places = study()->sites();
    if (std::any_of(places.begin(), places.end(), [](const Site& site) { return site.has_implicit; })) {
        notes << (study()->header().record.implicit
                      ? tr("recurrent layers: coefficients from minus to plus each head's greatest magnitude")
                      : tr("implicit matrices of recurrent layers were not recorded (--record implicit)"));
    }
    if (!filtered_.isEmpty()) notes << filtered_;
    if (!failure_.isEmpty()) notes << failure_;
    note_->setText(notes.join(QStringLiteral(" · ")));
    note_->setToolTip(note_->text());
    note_->setVisible(!notes.isEmpty());
}

void AllHeads::show_pointed(std::int64_t site, std::int64_t head) {
    if (!study() || study()->id() != study_ || study()->sites().empty()) return;
    if (site < 0) {
        site = selection().site;
        head = selection().head;
    }
    QString text = tr("%1, head %2").arg(study()->site_heading(site)).arg(head);
    if (site < std::ssize(sequences_) && sequences_[static_cast<std::size_t>(site)].empty())
        text += QStringLiteral(" · ") +
                (study()->running() ? tr("not computed yet") : tr("not computed: the run ended early"));
    pointed_->setText(text);
}

QJsonObject AllHeads::state() const {
    return {{QStringLiteral("statistic"), statistic_->currentData().toString()},
            {QStringLiteral("scale"), scale_->currentData().toString()},
            {QStringLiteral("size"), sized_ ? wall_->size() : 0}};
}

void AllHeads::restore(const QJsonObject& state) {
    set_statistic(state[QStringLiteral("statistic")].toString());
    const int scale = scale_->findData(state[QStringLiteral("scale")].toString());
    if (scale >= 0) set_shared(scale == 0);
    const int size = state[QStringLiteral("size")].toInt(-1);
    if (size == 0) sized_ = false;
    if (size >= HeadWall::kSizes.front() && size <= HeadWall::kSizes.back()) {
        wall_->set_size(size);
        sized_ = true;
    }
    refresh_later();
}

std::optional<FigureRequest> AllHeads::figure() const {
    if (!study() || study()->sites().empty()) return std::nullopt;
    FigureRequest wish;
    wish.recipe = "thumbnails";
    wish.options.statistic = statistic();
    wish.options.scale_per_head = !shared();
    wish.options.all_sequences = averaged_ > 1 && averaged_ == study()->sequences();
    if (!wish.options.all_sequences) wish.options.sequence = selection().one_sequence();
    if (averaged_ > 0 && !wish.options.all_sequences)
        wish.note =
            tr("A figure shows one sequence or the mean of all: this is sequence %1.").arg(selection().one_sequence());
    wish.studies = {study()->id()};
    return named(wish);
}

const ViewKind kAllHeads{"all_heads",
                         "All heads",
                         "A thumbnail of every head: what patterns are there?",
                         [](Desk* desk, QWidget* parent) -> View* { return new AllHeads(desk, parent); },
                         ViewGroup::heads,
                         with_sites};

}  // namespace headscope::widgets
