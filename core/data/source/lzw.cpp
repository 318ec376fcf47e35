// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/data/source/lzw.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/base/error.h"

namespace headscope::data {
namespace {

constexpr unsigned least_bits = 9;
constexpr std::uint32_t clear_code = 256;
constexpr std::uint32_t first_free = 257;

/// Codes as they lie in the stream. What is left of a group of eight codes is passed over when their width changes.
class CodeReader {
public:
    explicit CodeReader(std::string_view bytes) : bytes_(bytes) {}

    bool next(unsigned width, std::uint32_t& code) {
        if (at_ + width > bytes_.size() * 8) return false;
        code = 0;
        for (unsigned bit = 0; bit < width;) {
            const std::size_t place = at_ + bit;
            const unsigned within = place % 8;
            const unsigned count = std::min(8 - within, width - bit);
            const unsigned part = (static_cast<unsigned char>(bytes_[place / 8]) >> within) & ((1U << count) - 1);
            code |= part << bit;
            bit += count;
        }
        at_ += width;
        return true;
    }
    void end_group(unsigned width) {
        const std::size_t group = std::size_t{width} * 8;
        group_ += (at_ - group_ + group - 1) / group * group;
        at_ = group_;
    }

private:
    std::string_view bytes_;
    std::size_t at_ = 0;     ///< bit
    std::size_t group_ = 0;  ///< bit where codes of this width began
};

}  // namespace

std::string decompress_lzw(std::string_view bytes, unsigned most_bits, std::size_t largest, const std::string& where) {
    const std::uint32_t most_codes = std::uint32_t{1} << most_bits;
    std::vector<std::uint32_t> prefixes(most_codes, 0);
    std::vector<char> last(most_codes, 0);
    std::uint32_t free = first_free;
    unsigned width = least_bits;
    std::string out, word;
    std::uint32_t previous = 0;
    bool has_previous = false;
    CodeReader reader(bytes);
    for (std::uint32_t code = 0;;) {
        if (free > (std::uint32_t{1} << width) - 1 && width < most_bits) reader.end_group(width++);
        if (!reader.next(width, code)) return out;
        if (code == clear_code) {
            reader.end_group(width);
            width = least_bits;
            free = first_free;
            has_previous = false;
            continue;
        }
        const bool known = code < clear_code || code < free;
        if ((!known && code != free) || (!has_previous && code > clear_code)) {
            throw Error(ErrorCode::format, where, "expected compressed text", "found a code that means nothing");
        }
        word.clear();
        // A code that is just being made: the previous word with its own first character behind.
        for (std::uint32_t at = known ? code : previous;;) {
            if (at < clear_code) {
                word.push_back(static_cast<char>(at));
                break;
            }
            word.push_back(last[at]);
            at = prefixes[at];
        }
        std::reverse(word.begin(), word.end());
        if (!known) word.push_back(word.front());
        if (out.size() + word.size() > largest) {
            throw Error(ErrorCode::limit, where, "expected text of at most " + std::to_string(largest) + " bytes",
                        "found more");
        }
        out += word;
        if (has_previous && free < most_codes) {
            prefixes[free] = previous;
            last[free] = word.front();
            ++free;
        }
        previous = code;
        has_previous = true;
    }
}

}  // namespace headscope::data
