// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "widgets/desk/study.h"
#include "widgets/text/shown_text.h"

namespace headscope::widgets {

/// Value that colors a text.
enum class TextColouring {
    row,     ///< weights of a chosen query's row
    column,  ///< weights of a chosen key's column
    mass,    ///< mean of each key's column over queries
};

/// One head, the mean over the heads of a layer, or the mean over all heads of layers that see the same tokens.
enum class HeadScope { head, layer, all };

struct TextRequest {
    std::int64_t sequence = 0, site = 0, head = 0;
    TextColouring colouring = TextColouring::row;
    HeadScope scope = HeadScope::head;
    std::int64_t token = 0;  ///< row: the query; column: the key
    /// Values of rows and columns: weights; norms (of several heads: of all of the layer together); rollout up to the
    /// layer, or through all.
    figures::MapValues values = figures::MapValues::weights;
    bool words = false;  ///< in place of pieces: `token` counts in them, and so do the values
    bool operator==(const TextRequest&) const = default;
};

/// One value a token; NaN: the mask forbids the pair.
struct TextValues {
    std::vector<float> values;  ///< empty: none yet
    std::int64_t sites = 0;     ///< that are in the mean so far, of
    std::int64_t of_sites = 0;  ///< that will be
    bool pending = false;
    bool without_maps = false;  ///< the colouring needs maps, and the file has none of these sites
    QString failure;
};

/// Gets such values of a study: read on its thread, layer by layer where many are asked for; what is asked for first
/// is given up when something else is. Window's thread.
class TokenWeights {
public:
    TextValues get(Study& study, const TextRequest& wish);

private:
    static TextValues computed(Study& study, const TextRequest& wish);
    using Number = std::atomic<std::uint64_t>;
    /// The mean over the heads of one site; of words, of the one head where that is asked for.
    Reply<std::vector<float>> site_mean(Study& study, const TextRequest& wish, std::int64_t site) const;

    TextRequest last_;
    int last_study_ = 0;
    std::shared_ptr<Number> wanted_ = std::make_shared<Number>(0);
};

inline std::int64_t bytes_of(const std::vector<float>& values) {
    return static_cast<std::int64_t>(values.size() * sizeof(float));
}

/// The text of a stream's tokens, or of its words as if they were tokens, made on the reader's thread.
Reply<ShownText> shown_text(Study& study, const std::string& stream, std::int64_t sequence, bool words = false);

/// "␣keeper": a token's piece as a label, "🙂 2/3" of one whose bytes are part of a character; "–": no such
/// token.
QString token_label(const store::SequenceTokens& tokens, std::int64_t token, std::size_t limit = 24);

/// The mean over those of `rows` that are not NaN, place by place; NaN where all are. Rows may be empty.
std::vector<float> mean_of(const std::vector<const std::vector<float>*>& rows);

/// The places of the largest values, falling; NaN left out.
std::vector<std::int64_t> largest(const std::vector<float>& values, std::size_t most);

}  // namespace headscope::widgets
