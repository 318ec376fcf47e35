// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/batch/item_source.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/data/batch/frame_texts.h"
#include "core/data/batch/truncation.h"
#include "core/data/objectives/list.h"
#include "core/data/permutation.h"

namespace headscope::data {
namespace {

std::int64_t count_of(const std::vector<std::int64_t>& values) {
    return static_cast<std::int64_t>(values.size());
}

bool translates(const ItemForm& form) {
    return kind_of(form.objective).translates;
}

}  // namespace

TokenRange items_of(const TokenFile& file, Split split) {
    const TokenRange items = file.items(split);
    if (items.size() > 0) return items;
    throw Error(ErrorCode::usage, split == Split::validation ? "data.validation" : "data.text",
                "expected at least one item", "found none");
}

ItemRows stored_items(std::shared_ptr<const TokenFile> file, Split split, std::uint64_t seed, std::int64_t tokens,
                      bool keep_end) {
    const TokenRange items = items_of(*file, split);
    return {items.size(), [file = std::move(file), items, seed, tokens, keep_end](std::int64_t index) {
                const std::int64_t count = items.size();
                const std::int64_t document =
                    2 * (items.begin +
                         permuted(index % count, count, key_of(seed, static_cast<std::uint64_t>(index / count))));
                TokenItem item;
                const auto read = [&](std::int64_t at, std::vector<std::int64_t>& to) {
                    const TokenRange range = file->document(at);
                    const std::int64_t size = std::min(range.size(), tokens * file->info().numbers_per_token);
                    to.resize(static_cast<std::size_t>(size));
                    file->copy(keep_end ? range.begin + range.size() - size : range.begin, size, to.data());
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
        need_token(form.special.first, "a token that begins an answer: <s>, [CLS] or <pad>");
        need_token(form.special.last, "a token that ends a text: </s> or [SEP]");
    }
    const bool spans = kind_of(form.objective).spans;
    const std::int64_t around =
        spans ? form.frame.inserted(true) + form.objective.stride
              : std::max(form.frame.inserted(false), translates(form) ? 1 : form.frame.inserted(true) + 1);
    if (form.length > around) return;
    throw Error(ErrorCode::usage, "data.sequence_length",
                "expected a number above " + std::to_string(around) + ", the tokens around texts" +
                    (spans ? " and the stride" : ""),
                "found " + std::to_string(form.length));
}

ItemSource::ItemSource(ItemRows rows, ItemForm form)
    : BatchSource(form.length, form.code.ids()), rows_(std::move(rows)), form_(std::move(form)) {}

SpoiltSequence ItemSource::framed(const TokenItem& item, bool& cut) const {
    const bool pair = item.has_other && !translates(form_);
    const std::int64_t width = form_.code.width(), room = form_.length - form_.frame.inserted(pair);
    const std::int64_t all[] = {count_of(item.text) / width, pair ? count_of(item.other) / width : 0};
    const auto [first, second] = longest_first(all[0], all[1], room);
    const std::int64_t kept[] = {first, second};
    cut = kept[0] < all[0] || kept[1] < all[1];
    const auto part_of = [&](const std::vector<std::int64_t>& numbers, int text) {
        const std::int64_t skipped = form_.keep_end ? all[text] - kept[text] : 0;
        return std::span(numbers).subspan(static_cast<std::size_t>(skipped * width),
                                          static_cast<std::size_t>(kept[text] * width));
    };
    return frame_texts(form_.code, pair ? form_.frame.two : form_.frame.one, part_of(item.text, 0),
                       pair ? part_of(item.other, 1) : std::span<const std::int64_t>(), form_.special.padding);
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
        const auto begin = form_.keep_end ? items[i].other.end() - tokens : items[i].other.begin();
        std::copy_n(begin, tokens, batch.target_ids.begin() + row + 1);
        std::copy_n(begin, tokens, batch.targets.begin() + row);
        batch.targets[static_cast<std::size_t>(row + tokens)] = form_.special.last;
        batch.counted += tokens + 1;
    }
}

DataBatch ItemSource::read(std::int64_t first, std::int64_t count) const {
    check_range(first, count);
    std::vector<TokenItem> items;
    std::vector<SpoiltSequence> sequences;
    std::int64_t cut = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        const TokenItem& item = items.emplace_back(rows_.read(first + i));
        bool shorter = false;
        sequences.push_back(framed(item, shorter));
        shorter = shorter || (translates(form_) && count_of(item.other) > form_.length - 1);
        cut += shorter ? 1 : 0;
    }
    DataBatch batch = form_.code.batch(sequences, form_.special.padding);
    batch.cut = cut;
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
