// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/desk.h"

#include <algorithm>
#include <chrono>

#include "widgets/desk/ask_shelf.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/head_columns.h"
#include "widgets/desk/head_set_store.h"
#include "widgets/desk/run_shelf.h"

namespace headscope::widgets {
namespace {

constexpr std::chrono::milliseconds kTellEvery{80};

std::optional<std::int64_t> cut(std::optional<std::int64_t> index, std::size_t size) {
    if (!index || size == 0) return std::nullopt;
    return std::clamp<std::int64_t>(*index, 0, static_cast<std::int64_t>(size) - 1);
}

}  // namespace

Desk::Desk(QObject* parent)
    : QObject(parent),
      tiles_(std::make_unique<TileService>()),
      head_sets_(std::make_unique<HeadSetStore>()),
      runs_(std::make_unique<RunShelf>()),
      evaluations_(std::make_unique<EvaluationShelf>()),
      asks_(std::make_unique<AskShelf>()),
      head_columns_(std::make_unique<HeadColumns>(*asks_)),
      theme_(make_theme(false)) {
    telling_.setSingleShot(true);
    connect(&telling_, &QTimer::timeout, this, [this] {
        told_.start();
        Q_EMIT studies_changed();
    });
    connect(head_sets_.get(), &HeadSetStore::changed, this, &Desk::changed);
    connect(tiles_.get(), &TileService::failed, this, &Desk::failed);
    connect(this, &Desk::selection_changed, runs_.get(), [this] {
        if (current()) runs_->choose_head(selection_.site, selection_.head);
    });
}

Desk::~Desk() {
    writer_.finish();
    tiles_.reset();  // before the maps that it makes tiles of
    studies_.clear();
}

Reply<workspace::HeadTable> Desk::heads(Study& study, std::optional<std::int64_t> sequence) const {
    Reply<workspace::HeadTable> reply = study.heads(sequence);
    reply.value = head_columns_->with_columns(study, reply.value);
    return reply;
}

Study* Desk::add(Study::Opened opened) {
    const int id = ++last_id_;
    auto study = std::make_unique<Study>(id, &reader_, &values_, std::move(opened));
    Study* added = study.get();
    connect(added, &Study::arrived, this, &Desk::arrived);
    connect(added, &Study::renamed, this, &Desk::announce_studies);
    studies_.emplace(id, std::move(study));
    if (!current()) select_study(id);
    announce_studies();
    Q_EMIT changed();
    return added;
}

void Desk::remove(int id) {
    const auto place = studies_.find(id);
    if (place == studies_.end()) return;
    const std::unique_ptr<Study> gone = std::move(place->second);
    studies_.erase(place);
    if (selection_.study == id) {
        Selection next;
        next.study = studies_.empty() ? 0 : studies_.rbegin()->first;
        select(next);
    }
    Q_EMIT study_gone();
    announce_studies();
    Q_EMIT changed();
}

void Desk::rename_study(int id, const QString& name) {
    Study* study = this->study(id);
    if (!study) return;
    const QString before = study->name();
    study->set_name(name);
    if (study->name() != before) Q_EMIT changed();
}

/// Announces a lone change at once, and a burst (two hundred files in a row) once every kTellEvery.
void Desk::announce_studies() {
    if (telling_.isActive()) return;
    const auto since = told_.isValid() ? std::chrono::milliseconds(told_.elapsed()) : kTellEvery;
    telling_.start(std::max(kTellEvery - since, std::chrono::milliseconds(0)));
}

std::vector<Study*> Desk::studies() const {
    std::vector<Study*> all;
    for (const auto& [id, study] : studies_) all.push_back(study.get());
    return all;
}

Study* Desk::study(int id) const {
    const auto place = studies_.find(id);
    return place == studies_.end() ? nullptr : place->second.get();
}

Study* Desk::study_of(const FileIdentity& file) const {
    for (const auto& [id, study] : studies_)
        if (study->is(file)) return study.get();
    return nullptr;
}

Selection Desk::within(Selection selection, Tokens tokens) const {
    const Study* study = this->study(selection.study);
    if (!study) return Selection{};
    if (selection.sequence)
        selection.sequence = std::clamp<std::int64_t>(*selection.sequence, 0, study->sequences() - 1);
    const auto sites = static_cast<std::int64_t>(study->sites().size());
    selection.site = std::clamp<std::int64_t>(selection.site, 0, std::max<std::int64_t>(0, sites - 1));
    if (sites == 0) return selection;
    const auto heads = study->sites()[static_cast<std::size_t>(selection.site)].heads;
    selection.head = std::clamp<std::int64_t>(selection.head, 0, std::max(0, heads - 1));
    std::optional<std::int64_t> of = selection.sequence;
    if (tokens == Tokens::of_one) of = selection.one_sequence();
    selection.query = cut(selection.query, static_cast<std::size_t>(study->query_count(of, selection.site)));
    selection.key = cut(selection.key, static_cast<std::size_t>(study->key_count(of, selection.site)));
    return selection;
}

void Desk::select(Selection selection) {
    selection = within(selection, Tokens::of_longest);
    if (selection == selection_) return;
    selection_ = selection;
    selection_in_one_ = within(selection, Tokens::of_one);
    Q_EMIT selection_changed();
    Q_EMIT changed();
}

void Desk::select_study(int id) {
    Selection selection = selection_;
    selection.study = id;
    select(selection);
}

void Desk::select_head(std::int64_t site, std::int64_t head) {
    Selection selection = selection_;
    selection.site = site;
    selection.head = head;
    select(selection);
}

void Desk::select_tokens(std::optional<std::int64_t> query, std::optional<std::int64_t> key) {
    Selection selection = selection_;
    selection.query = query;
    selection.key = key;
    select(selection);
}

void Desk::step(int sites, int heads) {
    Selection selection = selection_;
    selection.site = std::max<std::int64_t>(0, selection.site + sites);
    selection.head = std::max<std::int64_t>(0, selection.head + heads);
    select(selection);
}

void Desk::set_head_filter(const QString& text) {
    if (text == head_filter_) return;
    head_filter_ = text;
    Q_EMIT head_filter_changed();
}

void Desk::set_tensors(TensorSource* source) {
    tensors_ = source;
    Q_EMIT tensors_changed();
}

void Desk::set_stepper(StepSource* source) {
    stepper_ = source;
    Q_EMIT stepper_changed();
}

void Desk::set_dark(bool dark) {
    if (dark == theme_.dark) return;
    theme_ = make_theme(dark);
    Q_EMIT theme_changed();
}

}  // namespace headscope::widgets
