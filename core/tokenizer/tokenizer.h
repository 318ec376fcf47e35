// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Text to ids and back, equal to the `tokenizers` library on the same tokenizer.json. Immutable after construction;
// const members are safe from several threads. Errors: headscope::Error.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {
class Cancellation;
}

namespace headscope::tokenizer {

struct Encoding {
    std::vector<std::int32_t> ids;
    std::vector<std::array<std::int64_t, 2>> offsets;  ///< bytes [begin, end) of the UTF-8 text; {0, 0} for inserted tokens
    std::vector<std::uint8_t> special;                  ///< 1 for tokens the post-processor inserted
};

class Tokenizer {
public:
    /// From a checkpoint folder's tokenizer.json. `where` names it in errors.
    static std::shared_ptr<const Tokenizer> from_file(const std::filesystem::path& path);
    static std::shared_ptr<const Tokenizer> from_json(std::string_view json, const std::string& where);
    /// Ids 0..255 are bytes; no special tokens.
    static std::shared_ptr<const Tokenizer> bytes();
    virtual ~Tokenizer();

    virtual Encoding encode(std::string_view text, bool add_special_tokens = true,
                            const Cancellation* cancellation = nullptr) const = 0;
    virtual std::string decode(std::span<const std::int32_t> ids, bool skip_special_tokens = false) const = 0;
    /// The vocabulary's own spelling of an id ("Ġthe", "##ing", "▁a"); empty for an id it lacks.
    virtual std::string piece(std::int32_t id) const = 0;
    /// What the piece reads as, for labels: bytes decoded, "Ġ" and "▁" as spaces; may be part of a UTF-8 sequence.
    virtual std::string surface(std::int32_t id) const = 0;
    virtual std::int64_t vocabulary_size() const = 0;   ///< highest id + 1, added tokens included
    virtual std::optional<std::int32_t> id_of(std::string_view piece) const = 0;
    /// True when add_special_tokens puts a token before the text.
    virtual bool adds_first_token() const = 0;
};

}  // namespace headscope::tokenizer
