// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/patch.h"

#include <algorithm>
#include <cmath>

#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/base/error.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

std::string table_path(Point point) {
    return "/patch/value/" + std::string(model::name(point));
}

/// One dimension of a point's table after the text's.
bool by_head(Point point, SweepBy by) {
    return model::has_heads(point) && by != SweepBy::position;
}
bool by_position(Point point, SweepBy by) {
    return !model::has_heads(point) || by != SweepBy::head;
}
bool by_column(Point point, SweepBy by) {
    return model::is_matrix(point) && by == SweepBy::cell;
}

class Patch {
public:
    Patch(model::Model& model, const PatchOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        options.metric.check(model);
        check();
    }

    void tables() {
        record_.add_dimension("/key_value_head", most_key_heads(), "key-value head, counted from 0");
        record_.add_dimension("/key_token", record_.size_of("/token"), "key, counted from 0");
        if (!record_.tables.empty()) return;
        record_.add_table("/patch/clean", {"/sequence"}, "metric of the clean run");
        record_.add_table("/patch/corrupted", {"/sequence"}, "metric of the corrupted run");
        for (const Point point : options_.points)
            record_.add_table(table_path(point), dimensions(point),
                              "metric of the corrupted run with " + std::string(model::name(point)) +
                                  " of the clean one; NaN where there is none");
    }

    std::int64_t cells(std::int64_t s) const {
        std::int64_t count = 0;
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        const AlignedTexts same = aligned_texts(text, text, Alignment::equal, s);
        for (const Point point : options_.points) count += std::ssize(cells_of(point, s, same));
        return count;
    }

    void pair(std::int64_t s, const store::SequenceTokens& clean, const Cancellation& cancellation,
              const std::function<void()>& step) {
        const store::SequenceTokens& own = record_.sequences[static_cast<std::size_t>(s)];
        const AlignedTexts from = aligned_texts(clean, own, options_.alignment, s);
        const TextInput clean_input = text_input(clean), input = text_input(own);
        Measure measure(model_, options_.metric);
        bool measured = has(record_, "/patch/corrupted", {s}) && !measure.needs_reference();
        RunValues ahead;  // of the corrupted run
        for (const Point point : options_.points) {
            const std::vector<Cell> open = cells_of(point, s, from);
            if (open.empty() && has(record_, "/patch/corrupted", {s})) continue;
            at::Tensor hidden;
            const RunValues values =
                record_run(model_, clean_input, model::places_of(point, model_.config(), model_.sites()),
                           options_.editor, cancellation, &hidden);
            if (!measured) {
                measure.set_reference(hidden);
                put(record_, "/patch/clean", {s}, measure.values(clean_input.predicted().unsqueeze(0), hidden)[0]);
                std::vector<PointKey> places;
                if (!options_.editor) places = places_ahead(model_, input.tokens());
                ahead = record_run(model_, input, places, options_.editor, cancellation, &hidden);
                put(record_, "/patch/corrupted", {s}, measure.values(input.predicted().unsqueeze(0), hidden)[0]);
                measured = true;
            }
            store::AskTable& table = answer_table(record_, table_path(point));
            run_cells(
                model_, input, open, &values, measure, options_.editor, cancellation,
                [&](const Cell& cell, double found) {
                    table.values[cell.result] = found;
                    step();
                },
                &ahead);
        }
    }

private:
    void check() const {
        if (options_.points.empty()) throw Error(ErrorCode::usage, "--sites", "expected points to patch", "found none");
        for (const Point point : options_.points) {
            const std::string name(model::name(point));
            if (model::places_of(point, model_.config(), model_.sites()).empty())
                throw Error(ErrorCode::usage, "--sites", "expected points that a layer of the model has",
                            "found " + name);
            const bool whole = model::has_heads(point) && options_.by == SweepBy::head;
            if (options_.alignment == Alignment::edges && (whole || model::is_matrix(point)))
                throw Error(ErrorCode::usage, "--align edges", "expected points swept by position",
                            "found " + name + (whole ? " by head" : ""));
            if (options_.by == SweepBy::cell && !model::is_matrix(point))
                throw Error(ErrorCode::usage, "--by cell", "expected scores or pattern", "found " + name);
        }
    }

    std::int64_t most_key_heads() const {
        std::int64_t most = 1;
        for (const Point point : {Point::key, Point::value})
            for (const PointKey& key : model::places_of(point, model_.config(), model_.sites()))
                most = std::max(most, model::heads_at(key, model_.sites()));
        return most;
    }

    std::vector<std::string> dimensions(Point point) const {
        std::vector<std::string> names{"/sequence", row_dimension(point, model_)};
        const bool groups = point == Point::key || point == Point::value;
        if (by_head(point, options_.by)) names.emplace_back(groups ? "/key_value_head" : "/head");
        if (by_position(point, options_.by)) names.emplace_back("/token");
        if (by_column(point, options_.by)) names.emplace_back("/key_token");
        return names;
    }

    /// Cells of a text that have no number yet.
    std::vector<Cell> cells_of(Point point, std::int64_t s, const AlignedTexts& texts) const {
        const store::AskTable& table = record_.table(table_path(point));
        std::vector<Cell> cells;
        std::vector<std::int64_t> index;
        const auto add = [&](Cell cell) {
            cell.result = cell_of(record_, table, index);
            if (std::isnan(table.values[cell.result])) cells.push_back(cell);
        };
        const auto columns = [&](Cell cell) {
            if (!by_column(point, options_.by)) return add(cell);
            const auto length = std::ssize(keys_count_target(cell.key, model_) ? texts.target : texts.own);
            for (cell.column = 0; cell.column < length; ++cell.column) {
                index.push_back(cell.column);
                add(cell);
                index.pop_back();
            }
        };
        const auto rows = [&](Cell cell) {
            if (!by_position(point, options_.by)) return columns(cell);
            const std::vector<std::int64_t>& from = texts.rows_of(cell.key, model_);
            for (cell.position = 0; cell.position < std::ssize(from); ++cell.position) {
                cell.from = from[static_cast<std::size_t>(cell.position)];
                if (cell.from < 0) continue;
                index.push_back(cell.position);
                columns(cell);
                index.pop_back();
            }
        };
        for (const PointKey& key : model::places_of(point, model_.config(), model_.sites())) {
            index = {s, row_of(key, model_)};
            const std::int64_t heads = by_head(point, options_.by) ? model::heads_at(key, model_.sites()) : 0;
            if (heads == 0) rows({key});
            for (std::int64_t head = 0; head < heads; ++head) {
                index.push_back(head);
                rows({key, head});
                index.pop_back();
            }
        }
        return cells;
    }

    model::Model& model_;
    const PatchOptions& options_;
    store::AskRecord& record_;
};

/// aligned() of a pair that errors name `where`.
std::vector<std::int64_t> aligned_at(const std::string& where, const std::vector<std::int32_t>& clean,
                                     const std::vector<std::int32_t>& corrupted, Alignment alignment) {
    const std::size_t length = corrupted.size();
    std::vector<std::int64_t> from(length, -1);
    if (alignment == Alignment::equal) {
        if (clean.size() != length)
            throw Error(ErrorCode::usage, where,
                        std::to_string(clean.size()) + " and " + std::to_string(length) + " tokens",
                        "use --align edges");
        for (std::size_t p = 0; p < length; ++p) from[p] = static_cast<std::int64_t>(p);
        return from;
    }
    const std::size_t shorter = std::min(clean.size(), length);
    std::size_t prefix = 0, suffix = 0;
    while (prefix < shorter && clean[prefix] == corrupted[prefix]) ++prefix;
    while (suffix < shorter - prefix && clean[clean.size() - 1 - suffix] == corrupted[length - 1 - suffix]) ++suffix;
    for (std::size_t p = 0; p < prefix; ++p) from[p] = static_cast<std::int64_t>(p);
    for (std::size_t p = 1; p <= suffix; ++p) from[length - p] = static_cast<std::int64_t>(clean.size() - p);
    return from;
}

}  // namespace

std::vector<std::int64_t> aligned(const std::vector<std::int32_t>& clean, const std::vector<std::int32_t>& corrupted,
                                  Alignment alignment, std::int64_t pair) {
    return aligned_at("pair " + std::to_string(pair), clean, corrupted, alignment);
}

const std::vector<std::int64_t>& AlignedTexts::rows_of(const PointKey& place, const model::Model& model) const {
    return counts_target(place, model) ? target : own;
}

AlignedTexts aligned_texts(const store::SequenceTokens& clean, const store::SequenceTokens& corrupted,
                           Alignment alignment, std::int64_t pair) {
    AlignedTexts texts;
    texts.own = aligned(clean.ids, corrupted.ids, alignment, pair);
    if (clean.target && corrupted.target)
        texts.target =
            aligned_at("targets of pair " + std::to_string(pair), clean.target->ids, corrupted.target->ids, alignment);
    return texts;
}

void run_patch(model::Model& model, const std::vector<store::SequenceTokens>& clean, const PatchOptions& options,
               store::AskRecord& record, Progress& progress, const Cancellation& cancellation) {
    if (clean.size() != record.sequences.size())
        throw Error(ErrorCode::usage, "ask patch",
                    "expected " + std::to_string(clean.size()) + " corrupted texts, one for each clean one",
                    "found " + std::to_string(record.sequences.size()));
    for (std::size_t s = 0; s < clean.size(); ++s) {
        const auto &ours = clean[s].predicted().ids, &others = record.sequences[s].predicted().ids;
        aligned_texts(clean[s], record.sequences[s], options.alignment, static_cast<std::int64_t>(s));
        if (ours.size() != others.size() && options.metric.kind == MetricKind::kl && options.metric.all_positions)
            throw Error(ErrorCode::usage, "--position",
                        "expected an index for --metric kl, as the texts of pair " + std::to_string(s) + " have " +
                            std::to_string(ours.size()) + " and " + std::to_string(others.size()) + " tokens",
                        "found all");
    }
    options.metric.check_texts(clean);
    options.metric.check_texts(record.sequences);
    Patch patch(model, options, record);
    patch.tables();
    double all = 0, done = 0;
    for (std::int64_t s = 0; s < std::ssize(clean); ++s) all += static_cast<double>(patch.cells(s));
    for (std::int64_t s = 0; s < std::ssize(clean); ++s) {
        patch.pair(s, clean[static_cast<std::size_t>(s)], cancellation, [&] {
            progress.advance(++done, all, "pair " + std::to_string(s + 1) + " of " + std::to_string(clean.size()));
            if (options.saved) options.saved();
        });
    }
    record.complete = true;
}

}  // namespace headscope::ask
