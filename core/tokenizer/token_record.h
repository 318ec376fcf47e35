// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/tokenizer/tokenizer.h"
#include "core/tokenizer/varint.h"

namespace headscope::tokenizer {

/// The tokens of a text, to be read in order: some four bytes each, where an Encoding has twenty-one.
class TokenRecord final : public TokenSink {
public:
    void add(const FoundToken& token) override;
    std::size_t size() const noexcept { return size_; }
    /// Calls take(token) for each, in order.
    template <class Take>
    void each(const Take& take) const {
        std::uint32_t last = 0;
        for (const std::string& block : blocks_) {
            for (const char* at = block.data(); at != block.data() + block.size();) {
                take(static_cast<const FoundToken&>(read(at, last)));
            }
        }
    }

private:
    static FoundToken read(const char*& at, std::uint32_t& last);

    std::vector<std::string> blocks_;  ///< whole tokens each
    std::size_t size_ = 0;
    std::uint32_t last_ = 0;  ///< where the last token ends
};

}  // namespace headscope::tokenizer
