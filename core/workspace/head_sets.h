// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A researcher's marks, named sets and notes on the heads of one model. Values only; the session file holds
// them as JSON, people get them as CSV.

#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/figures/table.h"
#include "core/workspace/head_table.h"

namespace headscope {
class JsonView;
}

namespace headscope::workspace {

/// One head of a model, as HeadRow names it. Ordered as tables are.
struct HeadKey {
    std::int32_t layer = 0;
    std::int64_t site = 0;
    std::int32_t head = 0;
    friend auto operator<=>(const HeadKey&, const HeadKey&) = default;
};
using Heads = std::set<HeadKey>;

HeadKey key_of(const HeadRow& row);
/// Heads that a filter text picks (HeadFilter); throws Error (usage) for what is no filter.
Heads heads_where(std::string_view filter, const HeadTable& table);
/// Rows of a table that belong to these heads, in its order.
std::vector<std::size_t> rows_of(const Heads& heads, const HeadTable& table);
Heads united(const Heads& a, const Heads& b);
Heads common(const Heads& a, const Heads& b);
Heads without(const Heads& a, const Heads& b);

class HeadSets {
public:
    std::string model_sha256;  ///< of the checkpoint that the heads belong to; may be empty
    std::string model_name;

    const Heads& marked() const { return marked_; }
    bool is_marked(const HeadKey& head) const { return marked_.contains(head); }
    void mark(const HeadKey& head, bool marked);
    void set_marked(Heads heads) { marked_ = std::move(heads); }

    /// By name, in alphabetical order.
    const std::map<std::string, Heads>& sets() const { return sets_; }
    /// Makes or replaces a set; an empty one stays until it is removed. Throws Error (usage) for a name that is empty,
    /// longer than 200 bytes, not UTF-8 or of control characters, and for more than 1000 sets.
    void put(const std::string& name, Heads heads);
    /// Throws Error (usage) where there is no such set, or one of the new name already.
    void rename(const std::string& from, const std::string& to);
    void remove(const std::string& name);
    /// Names of the sets that have this head.
    std::vector<std::string> sets_with(const HeadKey& head) const;

    const std::map<HeadKey, std::string>& notes() const { return notes_; }
    std::string note(const HeadKey& head) const;
    /// An empty text takes the note away. Throws Error (usage) for more than 10 000 bytes and for text that is not
    /// UTF-8.
    void set_note(const HeadKey& head, std::string text);

    bool empty() const { return marked_.empty() && sets_.empty() && notes_.empty(); }
    friend bool operator==(const HeadSets&, const HeadSets&) = default;

    /// {"version": 1, "model_sha256", "model_name", "marked": [[layer, site, head], ...],
    ///  "sets": [{"name", "heads": [...]}], "notes": [{"head": [layer, site, head], "text"}]}
    nlohmann::json to_json() const;
    /// Throws Error: unsupported for another version, format for unknown keys and whatever is not as above, limit.
    static HeadSets from_json(const JsonView& view);

    /// A row for each head that is marked, in a set or noted: layer, site, head, marked (0 or 1), sets ("a; b"), note.
    figures::Table plain_table() const;

private:
    Heads marked_;
    std::map<std::string, Heads> sets_;
    std::map<HeadKey, std::string> notes_;
};

}  // namespace headscope::workspace
