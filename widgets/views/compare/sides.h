// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "widgets/desk/desk.h"
#include "widgets/views/compare/token_link.h"

namespace headscope::widgets {

/// Content of one side of a comparison.
struct CompareSide {
    Study* study = nullptr;
    std::optional<std::int64_t> sequence = 0;  ///< empty: all
    std::int64_t site = 0, head = 0;
    QString label = {};  ///< of the analysis, beside the other side's

    std::int64_t one_sequence() const { return sequence.value_or(0); }
    const Site& place() const { return study->sites()[static_cast<std::size_t>(site)]; }
    bool done() const { return study->site_done(one_sequence(), site); }
    const store::SequenceTokens& queries() const { return study->query_tokens(one_sequence(), site); }
    const store::SequenceTokens& keys() const { return study->key_tokens(one_sequence(), site); }
    /// "model · layer 1 · head 2"; the sequence where there are several.
    QString name(bool with_head = true) const;
    bool operator==(const CompareSide&) const = default;
};

/// The left side is the baseline: differences are right minus left. One of the sides is the desk's selection.
struct CompareSides {
    CompareSide left, right;
    bool selected_right = false;

    const CompareSide& selected() const { return selected_right ? right : left; }
    const CompareSide& other() const { return selected_right ? left : right; }
    bool same_heads() const { return left.site == right.site && left.head == right.head; }
    bool same_text() const { return left.study == right.study && left.sequence == right.sequence; }
    /// True while both studies are among the desk's; the desk emits while a closing one still exists.
    bool open(const Desk& desk) const;
    bool operator==(const CompareSides&) const = default;
};

/// Target of the comparison; empty members equal the selection.
struct CompareChoice {
    /// 0: the same analysis. Empty: not chosen yet, then the analysis opened first, or last if the first is selected.
    std::optional<int> study;
    std::optional<std::int64_t> sequence, site, head;
    /// The baseline is the analysis opened first, and of one analysis the selection; swapped: the other one.
    bool swapped = false;

    /// Indices beyond the other side become its last. The desk must have a current study with heads.
    CompareSides sides(const Desk& desk) const;
    bool operator==(const CompareChoice&) const = default;
};

/// Which tokens of both sides are each other, worked out on the reader's thread.
class TokenLinks {
public:
    /// Links of the queries and of the keys. The reply is the left study's.
    Reply<TokenLink> queries(const CompareSides& sides) { return get(sides, true); }
    Reply<TokenLink> keys(const CompareSides& sides) { return get(sides, false); }

private:
    using Tokens = std::shared_ptr<const store::SequenceTokens>;
    Reply<TokenLink> get(const CompareSides& sides, bool queries);

    std::map<std::string, Tokens> copies_;  ///< of right texts: their study may go while they are read
};

/// The measures of an analysis are by site and head: true when those of both mean the same. `why`: what differs.
bool same_shape(const Study& left, const Study& right, QString* why);

/// Layers whose mixers differ: "Layer 2: Standard on the left, MLP on the right." Empty: none.
QString replaced_layers(const Study& left, const Study& right);

/// "identical", "aligned by characters: 3 tokens …".
QString link_words(const TokenLink& queries, const TokenLink& keys);

}  // namespace headscope::widgets
