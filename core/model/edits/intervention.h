// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Interventions: a list of edits by point, layer, head and position, and the Editor that applies them.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/site.h"
#include "core/model/edits/editor.h"

namespace headscope::model {

struct ModelConfig;

/// Replacements of a value.
enum class Action : std::uint8_t {
    zero,
    mean,       ///< mean over the positions of the same text, without padding
    reference,  ///< mean over all positions of reference texts
    run,        ///< the value at the same positions of another run
    add,        ///< a vector times a factor is added
    set,        ///< a given tensor
    forbid,     ///< scores: -inf for edges from queries to keys
    uniform,    ///< pattern: 1 / number of visible keys
};
inline constexpr std::int64_t kActions = 8;
std::string_view name(Action action);

/// Both inclusive; negative ones count from the text's own end, -1 being the last token.
struct PositionRange {
    std::int64_t first = 0, last = 0;
    bool operator==(const PositionRange&) const = default;
};

struct Intervention {
    Point point = Point::head_output;
    std::vector<std::int64_t> layers;      ///< empty: all that have the point
    std::string attention;                 ///< self, cross, or a branch; empty: every site of the layer
    std::vector<std::int64_t> heads;       ///< empty: all; of `key` and `value` they count key-value heads
    std::vector<PositionRange> positions;  ///< empty: all; of matrices the query rows
    Action action = Action::zero;
    double factor = 1;                         ///< of `add`
    std::int64_t shift = 0;                    ///< `run`: position p takes the value at p + shift
    std::vector<PositionRange> queries, keys;  ///< of `forbid`; empty: all
    /// Values of add, set, reference and run by place. Shapes, trailing axes first given: [size], [heads, size],
    /// [heads, L, size] or [B, heads, L, size]; without heads [d], [L, d] or [B, L, d]. Rows are absolute positions.
    std::map<PointKey, at::Tensor> values;
    /// One tensor for all places without an entry in `values`; undefined: those places are left as they are.
    at::Tensor value{};
};

/// Places of the model with this point that the intervention selects. Throws usage for a layer, head or attention that
/// the model lacks ("layer 0 (gated_deltanet) has no pattern"), for an action that the point cannot have, and if
/// nothing is selected. `number`: of the intervention, from 0, for messages.
std::vector<PointKey> places_of(const Intervention& intervention, const ModelConfig& config,
                                const std::vector<Site>& sites, std::size_t number = 0);

/// Throws usage for positions, queries or keys that none of the texts has. `lengths`: tokens of each; empty: no check.
void check_positions(std::span<const Intervention> list, std::span<const std::int64_t> lengths);

/// Scores or weights of attention are edited: their matrices are made.
bool edits_matrices(std::span<const Intervention> list);

/// All places of a point in the model, in the order of layers and sites.
std::vector<PointKey> places_of(Point point, const ModelConfig& config, const std::vector<Site>& sites);

/// Heads of a value at a place; 0: it has no head axis.
std::int64_t heads_at(const PointKey& key, const std::vector<Site>& sites);

/// Applies interventions in the order of the list. mean and run take the value before all edits of the point.
class Interventions final : public Editor {
public:
    /// Throws as places_of().
    Interventions(std::vector<Intervention> list, const ModelConfig& config, const std::vector<Site>& sites);

    bool empty() const { return list_.empty(); }
    /// Refuses mean and negative positions with a cache: they need the whole text.
    void begin(const Start& start) override;
    bool edits(const PointKey& key) const override { return by_place_.contains(key); }
    at::Tensor edit(const EditPlace& place, const at::Tensor& value) override;
    /// Refuses an edit whose place the pass did not reach: a mixer that has no such value.
    void end() override;

private:
    const ModelConfig* config_;
    std::vector<Intervention> list_;
    std::map<PointKey, std::vector<std::size_t>> by_place_;
    std::set<PointKey> reached_;
    Start start_;
};

/// Keeps copies of values, unedited by itself; as the last of a chain it sees what earlier editors made.
class PointRecorder final : public Editor {
public:
    explicit PointRecorder(std::set<PointKey> wanted) : wanted_(std::move(wanted)) {}
    bool edits(const PointKey& key) const override { return wanted_.contains(key); }
    at::Tensor edit(const EditPlace& place, const at::Tensor& value) override;
    std::map<PointKey, at::Tensor> values;

private:
    std::set<PointKey> wanted_;
};

/// Each in turn, on the result of the one before; null ones are left out.
class EditorChain final : public Editor {
public:
    explicit EditorChain(std::vector<Editor*> editors) : editors_(std::move(editors)) { std::erase(editors_, nullptr); }
    void begin(const Start& start) override;
    bool edits(const PointKey& key) const override;
    at::Tensor edit(const EditPlace& place, const at::Tensor& value) override;
    /// Those of the first editor that stores any.
    at::Tensor stored_heads(const PointKey& key) const override;
    /// Those of the editor of this place, if there is one alone.
    std::vector<std::int64_t> changed_heads(const PointKey& key) const override;
    void end() override;

private:
    std::vector<Editor*> editors_;
};

}  // namespace headscope::model
