// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/word_units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/figures/head_weights.h"
#include "core/maps/map_reader.h"

namespace headscope::figures {
namespace {

/// Bytes of the white space (Unicode's White_Space) that begins at `at`; 0: there is none.
std::size_t white_at(std::string_view text, std::size_t at) {
    const std::string_view rest = text.substr(at);
    if (rest.empty()) return 0;
    if (rest[0] == ' ' || (rest[0] >= '\t' && rest[0] <= '\r')) return 1;
    for (const std::string_view white : {"\xC2\x85", "\xC2\xA0", "\xE1\x9A\x80", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                         "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"}) {
        if (rest.starts_with(white)) return white.size();
    }
    // U+2000 to U+200A
    const bool quad = rest.starts_with("\xE2\x80") && rest.size() > 2 && static_cast<unsigned char>(rest[2]) >= 0x80 &&
                      static_cast<unsigned char>(rest[2]) <= 0x8A;
    return quad ? 3 : 0;
}

bool any_white(std::string_view text) {
    for (std::size_t at = 0; at < text.size(); ++at)
        if (white_at(text, at) > 0) return true;
    return false;
}

/// A piece's bytes without white space at its ends; empty: it has no others.
struct Place {
    std::int64_t begin = 0, end = 0;
    bool empty() const { return begin >= end; }
};

class Words {
public:
    explicit Words(const store::SequenceTokens& pieces) : pieces_(pieces), text_(pieces.text) {}

    WordUnits make() {
        const std::int64_t count = std::ssize(pieces_.ids);
        for (std::int64_t i = 0; i < count;) {
            std::int64_t end = i + 1;
            while (end < count && joined(end - 1, end)) ++end;
            add(i, end);
            i = end;
        }
        units_.begins.push_back(count);
        units_.tokens.text = pieces_.text;
        return std::move(units_);
    }

private:
    std::array<std::int64_t, 2> offsets(std::int64_t i) const {
        if (i >= std::ssize(pieces_.offsets)) return {0, 0};
        const auto [begin, end] = pieces_.offsets[static_cast<std::size_t>(i)];
        if (begin < 0 || end <= begin || end > std::ssize(text_)) return {0, 0};
        return {begin, end};
    }

    Place place(std::int64_t i) const {
        const auto [begin, end] = offsets(i);
        Place inner{end, begin};
        for (std::int64_t at = begin; at < end;) {
            const auto white = static_cast<std::int64_t>(white_at(text_, static_cast<std::size_t>(at)));
            if (white == 0) {
                inner.begin = std::min(inner.begin, at);
                inner.end = at + 1;
            }
            at += std::max<std::int64_t>(white, 1);
        }
        return inner;
    }

    bool joined(std::int64_t i, std::int64_t next) const {
        const Place here = place(i), there = place(next);
        if (here.empty() || there.empty() || there.begin < here.begin) return false;
        if (there.begin >= here.end) {
            return !any_white(
                text_.substr(static_cast<std::size_t>(here.end), static_cast<std::size_t>(there.begin - here.end)));
        }
        // They share bytes, as parts of a character do. The repeated-token probe gives every token the first one's
        // place.
        const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(next);
        const bool repeated = pieces_.ids[a] == pieces_.ids[b] && pieces_.offsets[a] == pieces_.offsets[b];
        return !repeated || (a < pieces_.pieces.size() && find_invalid_utf8(pieces_.pieces[a]) != std::string::npos);
    }

    void add(std::int64_t first, std::int64_t end) {
        const auto at = static_cast<std::size_t>(first);
        store::SequenceTokens& words = units_.tokens;
        units_.begins.push_back(first);
        words.ids.push_back(pieces_.ids[at]);
        if (at < pieces_.regions.size()) words.regions.push_back(pieces_.regions[at]);
        if (at < pieces_.types.size()) words.types.push_back(pieces_.types[at]);
        const Place begin = place(first), last = place(end - 1);
        if (!begin.empty()) {
            words.offsets.push_back({begin.begin, last.end});
            words.pieces.emplace_back(
                text_.substr(static_cast<std::size_t>(begin.begin), static_cast<std::size_t>(last.end - begin.begin)));
        } else {
            words.offsets.push_back(offsets(first));
            words.pieces.push_back(at < pieces_.pieces.size() ? pieces_.pieces[at] : std::to_string(pieces_.ids[at]));
        }
    }

    const store::SequenceTokens& pieces_;
    std::string_view text_;
    WordUnits units_;
};

}  // namespace

WordUnits word_units(const store::SequenceTokens& pieces) {
    return Words(pieces).make();
}

const store::SequenceTokens& stream_tokens(const store::AnalysisHeader& header, std::int64_t s,
                                           const std::string& stream) {
    const auto other = header.streams.find(stream);
    return (other == header.streams.end() ? header.sequences : other->second)[static_cast<std::size_t>(s)];
}

SiteWords::SiteWords(const store::AnalysisFile& file, std::int64_t s, std::int64_t site, const std::string& recipe)
    : file_(file), s_(s), site_(site) {
    const Site& about = file.header().sites[static_cast<std::size_t>(site)];
    check_recorded(file, s, site, recipe);
    queries = word_units(stream_tokens(file.header(), s, about.query_stream));
    keys = about.key_stream == about.query_stream ? queries
                                                  : word_units(stream_tokens(file.header(), s, about.key_stream));
}

std::shared_ptr<const maps::WordMap> SiteWords::map(std::int64_t head) const {
    std::shared_ptr<const maps::PairMap> pieces;
    if (file_.header().sites[static_cast<std::size_t>(site_)].has_implicit)
        pieces = maps::read_implicit_map(file_, s_, site_, head);
    else
        pieces = maps::read_head_map(file_, s_, site_, head);
    if (!pieces) {
        throw Error(ErrorCode::usage, site_title(file_, site_) + " of " + file_name(file_),
                    "expected a layer whose map was recorded", "found none");
    }
    return std::make_shared<const maps::WordMap>(std::move(pieces), queries.begins, keys.begins);
}

std::vector<double> sums_of_words(const std::vector<double>& pieces, const std::vector<std::int64_t>& begins) {
    std::vector<double> sums;
    for (std::size_t word = 0; word + 1 < begins.size(); ++word) {
        double sum = 0;
        bool any = false;
        for (std::int64_t i = begins[word]; i < std::min(begins[word + 1], std::ssize(pieces)); ++i) {
            const double value = pieces[static_cast<std::size_t>(i)];
            if (std::isnan(value)) continue;
            sum += value;
            any = true;
        }
        sums.push_back(any ? sum : std::numeric_limits<double>::quiet_NaN());
    }
    return sums;
}

}  // namespace headscope::figures
