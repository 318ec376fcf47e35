// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/item_source.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/data/permutation.h"

namespace headscope::data {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& values) {
    return static_cast<std::int64_t>(values.size());
}

/// Tokens of the texts of a pair where `room` are left for both.
std::pair<std::int64_t, std::int64_t> cut_pair(std::int64_t first, std::int64_t second, std::int64_t room) {
    const std::int64_t half = room / 2;
    if (first + second <= room) return {first, second};
    if (second <= half) return {room - second, second};
    if (first <= half) return {first, room - first};
    return {half, half};
}

bool translates(const ItemForm& form) {
    return form.objective.kind == "translation";
}

}  // namespace

ItemRows stored_items(std::shared_ptr<const TokenFile> file, Split split, std::uint64_t seed, std::int64_t tokens) {
    const TokenRange items = file->items(split);
    if (items.size() == 0) {
        throw Error(ErrorCode::usage, split == Split::validation ? "data.validation" : "data.text",
                    "expected at least one item", "found none");
    }
    return {items.size(), [file = std::move(file), items, seed, tokens](std::int64_t index) {
                const std::int64_t count = items.size();
                const std::int64_t document =
                    2 * (items.begin +
                         permuted(index % count, count, key_of(seed, static_cast<std::uint64_t>(index / count))));
                TokenItem item;
                const auto read = [&](std::int64_t at, std::vector<std::int64_t>& to) {
                    const TokenRange range = file->document(at);
                    const std::int64_t size = std::min(range.size(), tokens * file->info().numbers_per_token);
                    to.resize(static_cast<std::size_t>(size));
                    file->copy(range.begin, size, to.data());
                };
                read(document, item.text);
                read(document + 1, item.other);
                item.label = file->label(document);
                item.has_other = file->label(document + 1) > 0;
                return item;
            }};
}

ItemRows made_items(std::function<TextItem(std::int64_t index)> make, TokenCode code) {
    return {
        0, [make = std::move(make), code = std::move(code)](std::int64_t index) {
            const TextItem text = make(index);
            const auto numbers = [&](const std::string& of) {
                const std::vector<std::int32_t> narrow = code.encode(of, nullptr);
                return std::vector<std::int64_t>(narrow.begin(), narrow.end());
            };
            return TokenItem{numbers(text.text), numbers(text.other), text.has_other, static_cast<float>(text.label)};
        }};
}

void check(const ItemForm& form) {
    const auto need_token = [](std::int64_t id, const char* names) {
        if (id >= 0) return;
        throw Error(ErrorCode::usage, "data.tokenizer", std::string("expected a tokenizer with ") + names,
                    "found none");
    };
    if (translates(form)) {
        if (form.code.hashed()) {
            throw Error(ErrorCode::usage, "objective.kind", "expected another objective for a hash embedding",
                        "found translation, which wants a vocabulary to say words of");
        }
        need_token(form.special.first, "a token that begins what is said: <s>, [CLS] or <pad>");
        need_token(form.special.last, "a token that ends a text: </s> or [SEP]");
    }
    const Frame& frame = form.frame;
    const std::int64_t around = std::max(
        count_of(frame.before) + count_of(frame.after),
        translates(form) ? 1 : count_of(frame.pair_before) + count_of(frame.between) + count_of(frame.pair_after) + 1);
    if (form.length > around) return;
    throw Error(ErrorCode::usage, "data.sequence_length",
                "expected a number above " + std::to_string(around) + ", the tokens around texts",
                "found " + std::to_string(form.length));
}

ItemSource::ItemSource(ItemRows rows, ItemForm form)
    : BatchSource(form.length, form.code.ids()), rows_(std::move(rows)), form_(std::move(form)) {}

SpoiltSequence ItemSource::framed(const TokenItem& item) const {
    const Frame& frame = form_.frame;
    const bool pair = item.has_other && !translates(form_);
    const std::vector<std::int64_t>& before = pair ? frame.pair_before : frame.before;
    const std::vector<std::int64_t>& middle = pair ? frame.between : frame.after;
    std::int64_t room = form_.length - count_of(before) - count_of(middle);
    if (pair) room -= count_of(frame.pair_after);
    const std::int64_t width = form_.code.width();
    const auto [first, second] = cut_pair(count_of(item.text) / width, pair ? count_of(item.other) / width : 0, room);
    SpoiltSequence out;
    const auto special = [&](const std::vector<std::int64_t>& ids) {
        for (const std::int64_t id : ids) form_.code.append_special(id, out);
    };
    const auto text = [&](const std::vector<std::int64_t>& numbers, std::int64_t tokens) {
        form_.code.unpack(std::span(numbers).first(static_cast<std::size_t>(tokens * width)), out);
    };
    special(before);
    text(item.text, first);
    special(middle);
    if (pair) {
        text(item.other, second);
        special(frame.pair_after);
    }
    // A model reads at least one token.
    if (out.ids.empty()) special({std::max<std::int64_t>(form_.special.padding, 0)});
    return out;
}

void ItemSource::add_targets(const std::vector<TokenItem>& items, DataBatch& batch) const {
    for (const TokenItem& item : items) {
        batch.target_lengths.push_back(std::min(count_of(item.other), form_.length - 1) + 1);
        batch.target_length = std::max(batch.target_length, batch.target_lengths.back());
    }
    const auto size = static_cast<std::size_t>(batch.sequences * batch.target_length);
    batch.target_ids.assign(size, std::max<std::int64_t>(form_.special.padding, 0));
    batch.targets.assign(size, no_target);
    for (std::size_t i = 0; i < items.size(); ++i) {
        const auto row = static_cast<std::ptrdiff_t>(i) * batch.target_length;
        const std::int64_t tokens = batch.target_lengths[i] - 1;
        batch.target_ids[static_cast<std::size_t>(row)] = form_.special.first;
        std::copy_n(items[i].other.begin(), tokens, batch.target_ids.begin() + row + 1);
        std::copy_n(items[i].other.begin(), tokens, batch.targets.begin() + row);
        batch.targets[static_cast<std::size_t>(row + tokens)] = form_.special.last;
        batch.counted += tokens + 1;
    }
}

DataBatch ItemSource::read(std::int64_t first, std::int64_t count) const {
    check_range(first, count);
    std::vector<TokenItem> items;
    std::vector<SpoiltSequence> sequences;
    for (std::int64_t i = 0; i < count; ++i) {
        items.push_back(rows_.read(first + i));
        sequences.push_back(framed(items.back()));
    }
    DataBatch batch = form_.code.batch(sequences, form_.special.padding);
    if (translates(form_)) {
        add_targets(items, batch);
        return batch;
    }
    batch.counted = count;
    for (const TokenItem& item : items) {
        if (form_.objective.classes == 1)
            batch.values.push_back(item.label);
        else
            batch.targets.push_back(std::llround(item.label));
    }
    return batch;
}

}  // namespace headscope::data
