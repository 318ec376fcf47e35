// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figures/token_chips.h"

#include <algorithm>

#include "core/figures/token_text.h"

namespace headscope::figures {
namespace {

constexpr std::size_t kLongest = 160;  ///< characters of a token that are shown

bool inside_character(const std::string& text, std::int64_t at) {
    return at > 0 && at < std::ssize(text) &&
           (static_cast<unsigned char>(text[static_cast<std::size_t>(at)]) & 0xC0) == 0x80;
}

class Grouping {
public:
    Grouping(const store::SequenceTokens& tokens, std::int64_t first, std::int64_t end)
        : tokens_(tokens), first_(first), end_(end) {}

    std::vector<TokenGroup> make() {
        std::vector<TokenGroup> groups;
        // End of the text before this part, so that a gap at its begin is none.
        std::int64_t before = first_ < end_ && placed(first_) ? begin_of(first_) : -1;
        for (std::int64_t i = first_; i < end_;) {
            std::int64_t next = i + 1;
            while (next < end_ && joined(next - 1, next)) ++next;
            TokenGroup group{i, next, "", false, false, 0, 0};
            group.special = !placed(i) && !tokens_.text.empty();  // without a text nothing has a place
            if (placed(i)) {
                add_gap(group, before);
                before = end_of(next - 1);
            }
            add_text(group);
            groups.push_back(std::move(group));
            i = next;
        }
        return groups;
    }

private:
    bool placed(std::int64_t i) const { return i < std::ssize(tokens_.offsets) && end_of(i) > begin_of(i); }
    std::int64_t begin_of(std::int64_t i) const { return tokens_.offsets[static_cast<std::size_t>(i)][0]; }
    std::int64_t end_of(std::int64_t i) const { return tokens_.offsets[static_cast<std::size_t>(i)][1]; }

    /// The two share a character: the first ends, or the second begins, within one, or both name the same bytes.
    bool joined(std::int64_t i, std::int64_t next) const {
        if (!placed(i) || !placed(next)) return false;
        return begin_of(next) < end_of(i) || (begin_of(next) == end_of(i) && inside_character(tokens_.text, end_of(i)));
    }

    void add_gap(TokenGroup& group, std::int64_t before) const {
        const std::int64_t begin = begin_of(group.first);
        if (before < 0 || begin <= before || begin > std::ssize(tokens_.text)) return;
        group.space_before = true;
        const auto gap = tokens_.text.begin();
        group.breaks_before = static_cast<int>(std::count(gap + before, gap + begin, '\n'));
    }

    void add_text(TokenGroup& group) const {
        std::string text;
        for (std::int64_t i = group.first; i < group.end; ++i) text += tokens_.pieces[static_cast<std::size_t>(i)];
        const std::int64_t begin = placed(group.first) ? begin_of(group.first) : 0;
        const std::int64_t end = placed(group.first) ? end_of(group.end - 1) : 0;
        const bool whole = begin >= 0 && end > begin && end <= std::ssize(tokens_.text) &&
                           !inside_character(tokens_.text, begin) && !inside_character(tokens_.text, end);
        // Pieces of a character are bytes: only the text has the character.
        if (whole) text = tokens_.text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        group.breaks_after = group.special ? 0 : static_cast<int>(std::count(text.begin(), text.end(), '\n'));
        const bool word = text.size() > 1 && text[0] == ' ' && text[1] != ' ' && text[1] != '\n' && text[1] != '\t';
        group.text =
            word ? " " + visible_token(std::string_view(text).substr(1), kLongest) : visible_token(text, kLongest);
    }

    const store::SequenceTokens& tokens_;
    std::int64_t first_, end_;
};

}  // namespace

std::vector<TokenGroup> token_groups(const store::SequenceTokens& tokens, std::int64_t first, std::int64_t end) {
    return Grouping(tokens, first, end).make();
}

TextBlock text_block(const store::SequenceTokens& tokens, std::int64_t first, std::int64_t end,
                     const std::vector<float>& values, std::int64_t chosen, const ColourScale& colours) {
    TextBlock drawn;
    drawn.colours = colours;
    for (const auto& group : token_groups(tokens, first, end)) {
        TextBlock::Chip chip;
        chip.text = group.text;
        for (auto i = group.first; i < group.end; ++i) chip.values.push_back(values[static_cast<std::size_t>(i)]);
        chip.outlined = group.special;
        chip.stressed = chosen >= group.first && chosen < group.end;
        chip.space_before = group.space_before;
        chip.breaks_before = group.breaks_before;
        chip.breaks_after = group.breaks_after;
        drawn.chips.push_back(std::move(chip));
    }
    return drawn;
}

}  // namespace headscope::figures
