// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/study.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/site_name.h"
#include "core/figures/make_figure.h"
#include "core/figures/options/figure_arguments.h"
#include "core/figures/token_text.h"
#include "core/maps/map_reader.h"
#include "widgets/idle_queue.h"

namespace headscope::widgets {
namespace {

constexpr int kStillWanted = 3;            // rounds in which something came
constexpr std::int64_t kLeastBytes = 256;  // of a value, or of the word that there is none

QStringList problems_of(const store::AnalysisFile& file) {
    QStringList problems;
    for (const std::string& problem : file.problems()) problems << QString::fromStdString(escaped(problem, 1000));
    return problems;
}

std::string key_of(const char* what, std::initializer_list<std::int64_t> numbers) {
    std::string key = what;
    for (const std::int64_t number : numbers) key += ":" + std::to_string(number);
    return key;
}

}  // namespace

std::int64_t bytes_of(const figures::FigureData& figure) {
    std::size_t bytes = 4096;
    for (const auto& panel : figure.panels) {
        bytes += sizeof panel;
        if (const auto* map = std::get_if<figures::HeatMap>(&panel.content)) bytes += map->values.size() * 4;
        if (const auto* mosaic = std::get_if<figures::Mosaic>(&panel.content)) bytes += mosaic->values.size() * 4;
        if (const auto* curves = std::get_if<figures::Curves>(&panel.content))
            for (const auto& curve : curves->curves) bytes += sizeof curve + curve.x.size() * 24;
        if (const auto* ridges = std::get_if<figures::Ridges>(&panel.content))
            for (const auto& ridge : ridges->ridges) bytes += sizeof ridge + ridge.edges.size() * 16;
        if (const auto* text = std::get_if<figures::TextBlock>(&panel.content)) bytes += text->chips.size() * 128;
        if (const auto* links = std::get_if<figures::Links>(&panel.content)) bytes += links->links.size() * 32;
    }
    return static_cast<std::int64_t>(bytes);
}

Study::Opened Study::open(const std::filesystem::path& path) {
    Opened opened;
    opened.identity = identity_of(path);
    opened.file = store::AnalysisFile::open(path);
    opened.header = opened.file->shared_header();
    opened.complete = opened.file->complete();
    if (opened.complete) {
        opened.problems = problems_of(*opened.file);
        return opened;
    }
    opened.done = opened.file->done_sites();
    return opened;
}

Study::Study(int id, Worker* reader, ValueBudget* budget, Opened opened, QObject* parent)
    : QObject(parent),
      id_(id),
      reader_(reader),
      budget_(budget),
      file_(std::move(opened.file)),
      header_(std::move(opened.header)),
      path_(file_->path()),
      complete_(opened.complete),
      identity_(opened.identity),
      done_(std::move(opened.done)),
      problems_(std::move(opened.problems)) {}

Study::~Study() {
    mailbox_.close();
    reader_->cancel(this);
    for (const auto& [key, entry] : cache_) budget_->remove(entry.place);
    // The file is closed where it was opened.
    reader_->let_go(std::move(file_));
}

bool Study::is(const FileIdentity& file) const {
    if (!identity_ || file.device != identity_->device || file.number != identity_->number) return false;
    return written_here_ || file.modified == identity_->modified;
}

void Study::set_path(const std::filesystem::path& path) {
    path_ = path;
    Q_EMIT renamed();
}

const store::SequenceTokens& Study::tokens(const std::string& stream, std::int64_t sequence) const {
    const auto& all = stream == "tokens" ? header_->sequences : header_->streams.at(stream);
    return all.at(static_cast<std::size_t>(sequence));
}

const store::SequenceTokens& Study::query_tokens(std::int64_t sequence, std::int64_t site) const {
    return tokens(sites().at(static_cast<std::size_t>(site)).query_stream, sequence);
}

const store::SequenceTokens& Study::key_tokens(std::int64_t sequence, std::int64_t site) const {
    return tokens(sites().at(static_cast<std::size_t>(site)).key_stream, sequence);
}

std::int64_t Study::query_count(std::optional<std::int64_t> sequence, std::int64_t site) const {
    return token_count(sites().at(static_cast<std::size_t>(site)).query_stream, sequence);
}

std::int64_t Study::key_count(std::optional<std::int64_t> sequence, std::int64_t site) const {
    return token_count(sites().at(static_cast<std::size_t>(site)).key_stream, sequence);
}

std::int64_t Study::token_count(const std::string& stream, std::optional<std::int64_t> sequence) const {
    if (sequence) return std::ssize(tokens(stream, *sequence).ids);
    std::int64_t longest = 0;
    for (std::int64_t s = 0; s < sequences(); ++s) longest = std::max(longest, std::ssize(tokens(stream, s).ids));
    return longest;
}

bool Study::site_done(std::int64_t sequence, std::int64_t site) const {
    return complete_ || done_.contains({sequence, site});
}

Reply<workspace::HeadTable> Study::heads(std::optional<std::int64_t> sequence) {
    return ask<workspace::HeadTable>(
        key_of("heads", {sequence.value_or(-1)}), sequence.value_or(-1), -1,
        [sequence](const store::AnalysisFile& file) {
            return std::make_shared<const workspace::HeadTable>(workspace::read_head_table(file, sequence));
        });
}

Reply<store::Values> Study::thumbnails(const std::string& which, std::int64_t sequence, std::int64_t site) {
    return ask<store::Values>(key_of(("thumbnails " + which).c_str(), {sequence, site}), sequence, site,
                              [which, sequence, site](const store::AnalysisFile& file) {
                                  return std::make_shared<const store::Values>(file.thumbnail(which, sequence, site));
                              });
}

Reply<store::Values> Study::column_mass(std::int64_t sequence, std::int64_t site) {
    return ask<store::Values>(key_of("mass", {sequence, site}), sequence, site,
                              [sequence, site](const store::AnalysisFile& file) {
                                  return std::make_shared<const store::Values>(file.column_mass(sequence, site));
                              });
}

Reply<store::AnalysisFile::Experts> Study::experts(std::int64_t sequence, std::int64_t layer) {
    using Experts = store::AnalysisFile::Experts;
    return ask<Experts>(key_of("experts", {sequence, layer}), -1, -1,
                        [sequence, layer](const store::AnalysisFile& file) -> std::shared_ptr<const Experts> {
                            const auto found = file.experts(sequence, layer);
                            return found ? std::make_shared<const Experts>(*found) : nullptr;
                        });
}

Reply<store::Values> Study::token_types(std::int64_t sequence, std::int64_t site) {
    return ask<store::Values>(key_of("types", {sequence, site}), sequence, site,
                              [sequence, site](const store::AnalysisFile& file) {
                                  const auto found = file.token_types(sequence, site);
                                  return found ? std::make_shared<const store::Values>(*found) : nullptr;
                              });
}

Reply<store::Values> Study::loss(std::int64_t sequence) {
    return ask<store::Values>(key_of("loss", {sequence}), sequence, -2, [sequence](const store::AnalysisFile& file) {
        return std::make_shared<const store::Values>(file.loss(sequence));
    });
}

Reply<maps::HeadMap> Study::map(std::int64_t sequence, std::int64_t site, std::int64_t head) {
    return ask<maps::HeadMap>(key_of("map", {sequence, site, head}), sequence, site,
                              [sequence, site, head](const store::AnalysisFile& file) {
                                  return maps::read_head_map(file, sequence, site, head);
                              });
}

Reply<maps::MeanMap> Study::mean_map(std::int64_t site, std::int64_t head) {
    return ask<maps::MeanMap>(
        key_of("mean map", {site, head}), -1, site,
        [site, head](const store::AnalysisFile& file) { return maps::read_mean_map(file, site, head); });
}

Reply<maps::ValueMap> Study::computed_map(std::int64_t sequence, std::int64_t site, std::int64_t head,
                                          figures::MapValues values) {
    using Map = std::shared_ptr<const maps::ValueMap>;
    if (figures::of_layer(values)) head = -1;
    return ask<maps::ValueMap>(key_of("computed map", {sequence, site, head, static_cast<int>(values)}), sequence, site,
                               [=](const store::AnalysisFile& file) -> Map {
                                   if (values == figures::MapValues::rollout)
                                       return maps::read_rollout(file, sequence, site);
                                   if (values == figures::MapValues::implicit)
                                       return maps::read_implicit_map(file, sequence, site, head);
                                   return maps::read_norm_map(file, sequence, site,
                                                              head < 0 ? std::nullopt : std::optional(head));
                               });
}

Reply<maps::PairMap> Study::weights_map(std::int64_t sequence, std::int64_t site, std::int64_t head) {
    Reply<maps::PairMap> found;
    const auto take = [&found](const auto& reply) {
        found.value = reply.value;
        found.failure = reply.failure;
        found.pending = reply.pending;
    };
    if (sites().at(static_cast<std::size_t>(site)).has_implicit)
        take(computed_map(sequence, site, head, figures::MapValues::implicit));
    else
        take(map(sequence, site, head));
    return found;
}

Reply<Profile> Study::row(std::int64_t sequence, std::int64_t site, std::int64_t head, std::int64_t query) {
    const auto map = weights_map(sequence, site, head);
    return ask<Profile>(key_of("row", {sequence, site, head, query, map ? 1 : 0}), sequence, site,
                        [map = map.value, query](const store::AnalysisFile&) -> std::shared_ptr<const Profile> {
                            if (!map || query >= map->queries()) return nullptr;
                            const maps::Cells cells{query, query + 1, 0, map->keys()};
                            return std::make_shared<const Profile>(Profile{map->values(cells), map->scores(cells)});
                        });
}

Reply<Profile> Study::column(std::int64_t sequence, std::int64_t site, std::int64_t head, std::int64_t key) {
    const auto map = weights_map(sequence, site, head);
    return ask<Profile>(key_of("column", {sequence, site, head, key, map ? 1 : 0}), sequence, site,
                        [map = map.value, key](const store::AnalysisFile&) -> std::shared_ptr<const Profile> {
                            if (!map || key >= map->keys()) return nullptr;
                            const maps::Cells cells{0, map->queries(), key, key + 1};
                            return std::make_shared<const Profile>(Profile{map->values(cells), map->scores(cells)});
                        });
}

std::int64_t StudyWords::word_of(std::int64_t piece) const {
    const auto after = std::upper_bound(units.begins.begin(), units.begins.end(), piece);
    return std::clamp<std::int64_t>(after - units.begins.begin() - 1, 0, std::max<std::int64_t>(0, size() - 1));
}

std::int64_t StudyWords::first_piece(std::int64_t word) const {
    return word >= 0 && word < size() ? units.begins[static_cast<std::size_t>(word)] : 0;
}

Reply<maps::WordMap> Study::word_map(std::int64_t sequence, std::int64_t site, std::int64_t head) {
    return ask<maps::WordMap>(
        "word map" + key_of("", {sequence, site, head}), sequence, site,
        [=](const store::AnalysisFile& file) { return figures::SiteWords(file, sequence, site, "map").map(head); });
}

Reply<StudyWords> Study::words(const std::string& stream, std::int64_t sequence) {
    return ask<StudyWords>(
        "words " + stream + key_of("", {sequence}), -3, -3, [stream, sequence](const store::AnalysisFile& file) {
            auto words = std::make_shared<StudyWords>();
            words->units = figures::word_units(figures::stream_tokens(file.header(), sequence, stream));
            for (const std::string& word : words->units.tokens.pieces)
                words->labels.push_back(QString::fromStdString(figures::visible_token(word)));
            return std::shared_ptr<const StudyWords>(std::move(words));
        });
}

Reply<std::vector<QString>> Study::labels(const std::string& stream, std::int64_t sequence) {
    return ask<std::vector<QString>>("labels " + stream + key_of("", {sequence}), -3, -3,
                                     [header = header_, stream, sequence](const store::AnalysisFile&) {
                                         const auto& all =
                                             stream == "tokens" ? header->sequences : header->streams.at(stream);
                                         std::vector<QString> labels;
                                         for (const auto& piece : all.at(static_cast<std::size_t>(sequence)).pieces)
                                             labels.push_back(QString::fromStdString(figures::visible_token(piece)));
                                         return std::make_shared<const std::vector<QString>>(std::move(labels));
                                     });
}

Reply<figures::FigureData> Study::figure(const std::string& recipe, const figures::FigureOptions& options,
                                         const std::vector<Study*>& others) {
    std::vector<std::shared_ptr<store::AnalysisFile>> files{file_};
    std::string key = "figure";
    for (const std::string& word : figures::figure_arguments({recipe, options, {}}, {}, "")) key += " " + word;
    for (const Study* other : others) {
        files.push_back(other->file_);
        key += ":" + std::to_string(other->id_);
        if (!other->complete_) key += "." + std::to_string(other->done_sites());
    }
    return ask<figures::FigureData>(key, options.sequence.value_or(-1), -1, [=](const store::AnalysisFile&) {
        auto figure = std::make_shared<figures::FigureData>(figures::make_figure(recipe, files, options));
        figure->table = nullptr;  // it may hold every number of the analysis
        return std::shared_ptr<const figures::FigureData>(std::move(figure));
    });
}

const Study::Entry& Study::find(const std::string& key, std::int64_t sequence, std::int64_t site, Read read) {
    const auto [found, fresh] = cache_.try_emplace(key);
    Entry& entry = found->second;
    if (fresh)
        entry.place = budget_->add(this, key);
    else
        budget_->touch(entry.place);
    entry.sequence = sequence;
    entry.site = site;
    *entry.wanted = budget_->rounds()->load();
    if (entry.pending || (entry.known && !entry.stale)) return entry;
    entry.pending = true;
    entry.stale = false;
    reader_->post(this, [file = file_, key, read = std::move(read), send = mailbox_.sender(), wanted = entry.wanted,
                         rounds = budget_->rounds(), this](const Cancellation& cancellation) {
        // A user who walks through heads requests each of them, and looks at the last.
        if (rounds->load() - wanted->load() > kStillWanted) {
            send([this, key] { drop(key); });
            return;
        }
        auto loaded = std::make_shared<Loaded>();
        QString failure;
        try {
            *loaded = read(*file);
        } catch (const Stopped&) {
            if (!cancellation.requested()) send([this, key] { drop(key); });
            return;
        } catch (...) {
            try {
                failure = QString::fromUtf8(current_error("analysis").what());
            } catch (const Stopped&) {
                return;
            }
        }
        if (cancellation.requested()) return;
        send([this, key, loaded, failure] { take(key, std::move(*loaded), failure); });
    });
    return entry;
}

void Study::take(const std::string& key, Loaded loaded, const QString& failure) {
    const auto place = cache_.find(key);
    if (place == cache_.end()) return;
    Entry& entry = place->second;
    entry.pending = false;
    entry.known = true;
    entry.failure = failure;
    if (failure.isEmpty()) entry.value = std::move(loaded.value);
    budget_->set_bytes(entry.place, std::max(loaded.bytes, kLeastBytes));
    budget_->trim();
    announce();
}

/// Forgets a value that was not read because no view requested it any more; a later request reads it.
void Study::drop(const std::string& key) {
    const auto place = cache_.find(key);
    if (place == cache_.end()) return;
    if (place->second.known) {
        place->second.pending = false;
        place->second.stale = true;
    } else {
        erase(place);
    }
    announce();
}

void Study::drop_value(const std::string& key) {
    const auto place = cache_.find(key);
    if (place != cache_.end() && !place->second.pending) erase(place);
}

void Study::erase(std::map<std::string, Entry>::const_iterator place) {
    budget_->remove(place->second.place);
    cache_.erase(place);
}

void Study::announce() {
    if (announced_) return;
    announced_ = true;
    QMetaObject::invokeMethod(
        this,
        [this] {
            announced_ = false;
            // While views still ask in their turns the round is not over.
            if (IdleQueue::of_window().empty()) budget_->next_round();
            Q_EMIT arrived();
        },
        Qt::QueuedConnection);
}

void Study::spoil(std::int64_t sequence, std::int64_t site) {
    for (auto& [key, entry] : cache_) {
        const bool of_sequence = entry.sequence == -1 || entry.sequence == sequence;
        const bool of_site = entry.site == -1 || entry.site == site;
        if (of_sequence && of_site) entry.stale = true;
    }
    announce();
}

void Study::tell_site_done(std::int64_t sequence, std::int64_t site) {
    done_.insert({sequence, site});
    spoil(sequence, site);
}

void Study::tell_loss_done(std::int64_t sequence) {
    spoil(sequence, -2);
}

void Study::set_running() {
    running_ = written_here_ = true;
    Q_EMIT renamed();
}

void Study::tell_complete(const std::filesystem::path& path) {
    complete_ = true;
    running_ = false;
    written_here_ = true;
    set_path(path);
    announce();
    read_problems();
}

void Study::read_problems() {
    reader_->post(this, [file = file_, send = mailbox_.sender(), this](const Cancellation&) {
        try {
            const QStringList found = problems_of(*file);
            if (found.isEmpty()) return;
            send([this, found] {
                problems_ = found;
                Q_EMIT renamed();
                Q_EMIT problems_found();
            });
        } catch (const std::exception&) {
            // Stopped; or the next read of the file fails likewise and reports it.
        }
    });
}

void Study::tell_stopped() {
    running_ = false;
    Q_EMIT renamed();
    announce();
}

}  // namespace headscope::widgets
