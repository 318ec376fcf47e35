// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "core/base/process/read_ahead.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/model/load/expert_loader.h"
#include "core/model/load/layer_buffer.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

/// Matrices of one layer's experts: each expert's are read, unless they are held, and converted on their first use
/// after enter(). Threads: as LayerWeights.
class LayerExperts final : public ExpertLoader {
public:
    /// True for a tensor whose experts can be read one by one.
    static bool takes(const checkpoint::Checkpoint& file, const TensorPlan::Want& want);

    /// `buffer` and `not_finite`, which receives what is found, must outlive this. `uncached`: as UncachedReads.
    LayerExperts(std::shared_ptr<const checkpoint::Checkpoint> file, LayerBuffer& buffer, bool uncached,
                 std::vector<NotFinite>& not_finite);

    /// A tensor that takes() accepts, in the buffer from byte `begin` on. It must outlive this.
    void add(const TensorPlan::Want& want, std::int64_t begin);
    /// Reads all experts into memory, as the file has them (Residence::file).
    void hold(const Cancellation& cancellation);

    /// TensorPlan::Want::after_mixer.
    bool after_mixer() const { return shown_.front().want->after_mixer; }
    void enter();
    void leave();
    void load(std::int64_t expert, std::int64_t next, const Cancellation* cancellation) override;

private:
    using Stored = std::vector<std::shared_ptr<const checkpoint::StoredTensor>>;
    struct Place {
        const TensorPlan::Want* want = nullptr;
        std::int64_t begin = 0;
    };

    /// In the order of places_[expert].
    Stored read(std::int64_t expert, const Cancellation& cancellation) const;
    void count(const TensorPlan::Want& want, std::int64_t numbers);

    std::shared_ptr<const checkpoint::Checkpoint> file_;
    LayerBuffer& buffer_;
    bool uncached_;
    std::vector<NotFinite>& not_finite_;
    std::map<std::int64_t, std::vector<Place>> places_;  ///< by expert
    std::vector<Place> shown_;                           ///< one of each tensor of the model
    std::map<std::int64_t, Stored> held_;
    std::set<std::int64_t> filled_;   ///< since enter()
    std::set<std::int64_t> counted_;  ///< experts whose numbers were looked at
    ReadAhead<Stored> ahead_;
};

}  // namespace headscope::model
