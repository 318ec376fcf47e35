// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Weights of a model's layers that exist in the type the model computes in only while their layer runs: a layer's
// tensors are views into one buffer that the layers share. A feed-forward that begins after the layer's mixers takes
// their memory (TensorPlan::Want::after_mixer). Experts are read and converted when they are used (LayerExperts). Small
// tensors stay. On a device with streams, half a layer (its mixers, or the feed-forward after them) is copied while the
// half before it computes (CopySlots). Threads: the compute thread; a second one reads ahead, and converts for a
// device.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/process/read_ahead.h"
#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/checkpoint/stored_tensor.h"
#include "core/model/load/copy_slots.h"
#include "core/model/load/layer_buffer.h"
#include "core/model/load/layer_experts.h"
#include "core/model/load/packed_matrix.h"
#include "core/model/load/residence.h"
#include "core/model/load/row_table.h"
#include "core/model/load/tensor_plan.h"

namespace headscope::model {

class LayerWeights {
public:
    /// Loads what stays of `plan`, which has been checked, and of the layers what `residence` (file or stream) asks
    /// for. What the plan's wants point to must outlive this.
    LayerWeights(TensorPlan& plan, std::shared_ptr<const checkpoint::Checkpoint> file, checkpoint::LoadAs precision,
                 Residence residence, Progress* progress, const Cancellation* cancellation);
    LayerWeights(const LayerWeights&) = delete;
    LayerWeights& operator=(const LayerWeights&) = delete;

    Residence residence() const { return residence_; }
    /// Fills the tensors of a layer (TensorPlan::Want::layer), up to those used after its mixers; another layer's are
    /// undefined from then on. For few tokens, matrices that can be multiplied as stored are
    /// (TensorPlan::Want::packed), and their tensors stay undefined.
    void enter(std::int64_t layer, PassSize size, const Cancellation* cancellation);
    /// Fills the other tensors of the layer that was entered, in the memory of the first, which are undefined from then
    /// on. Does nothing where enter() filled all.
    void enter_feed_forward(const Cancellation* cancellation);
    /// No layer runs now.
    void leave();
    /// The same for longer: memory that only layers need is given back, but not between passes of few tokens in `file`.
    void release();
    /// Words are not needed now: drops tables that are not kept (RowTable::release).
    void release_tables();
    /// Layers are converted on the processor and then copied to this device. Experts and matrices that are multiplied
    /// as stored stay.
    void set_device(const at::Device& device);
    /// NaN or infinite numbers among the weights that were read so far.
    const std::vector<NotFinite>& not_finite() const { return not_finite_; }

private:
    /// In the order of layers_.
    using Parts = std::vector<std::shared_ptr<const checkpoint::StoredTensor>>;
    struct Place {
        std::size_t want = 0;    ///< index
        std::int64_t begin = 0;  ///< byte of the buffer; parts of one tensor share it
    };

    /// Wants that make up one matrix which can be multiplied as stored: indices of Parts.
    using Product = std::vector<std::size_t>;

    struct Half {
        std::int64_t layer = 0;
        bool after_mixer = false;
    };
    /// The numbers of a layer's place, by its index; null where write() leaves it out.
    using Source = std::function<std::shared_ptr<const checkpoint::StoredTensor>(std::size_t index)>;
    /// Numbers that write() looks at: stored ones, and those that are made (StoredTensor::is_made).
    struct Counts {
        bool stored = false, made = false;
    };

    void choose();
    void find_products();
    void set_products(std::int64_t layer, const Parts& parts);
    void make_tables(const Cancellation& cancellation);
    void lay_out();
    Parts read(std::int64_t layer, const Cancellation& cancellation) const;
    const Parts& parts(std::int64_t layer) const;
    /// Sets the tensors of half a layer, but those that are multiplied as stored, to their places in `bytes`.
    void show(const Half& half, const at::Tensor& bytes) const;
    /// Writes the numbers of half a layer to their places in `bytes`, memory of the processor; adds NaN and infinite
    /// ones to `found`. Returns where the last place that was written ends.
    std::int64_t write(const Half& half, const at::Tensor& bytes, const Source& source, const Counts& counts,
                       std::vector<NotFinite>& found, const Cancellation& cancellation) const;
    void fill(bool after_mixer, const Cancellation* cancellation);
    void move(std::int64_t layer, bool after_mixer) const;
    bool has_slots(std::int64_t layer, bool few) const;
    std::int64_t convert(std::int64_t piece, const at::Tensor& host, const Cancellation& cancellation);
    void take(std::int64_t layer, bool after_mixer, const Cancellation* cancellation);
    void count(std::int64_t layer, const Parts& parts);
    LayerExperts* experts(std::int64_t layer) const;

    std::vector<TensorPlan::Want> wants_;
    std::shared_ptr<const checkpoint::Checkpoint> file_;
    checkpoint::LoadAs precision_;
    Residence residence_;
    bool uncached_;  ///< the system keeps no pages of what is streamed
    at::Device device_ = at::kCPU;
    std::set<std::size_t> deferred_;  ///< wants that are not loaded at once
    std::map<std::int64_t, std::vector<Place>> layers_;
    std::set<std::int64_t> in_steps_;  ///< layers with tensors that are filled after their mixers
    std::int64_t slot_bytes_ = 0;      ///< of the largest half of a layer, without experts
    std::map<std::string, std::shared_ptr<RowTable>> tables_;
    std::map<std::int64_t, Parts> held_;
    std::map<std::int64_t, std::vector<Product>> products_;
    std::map<std::int64_t, std::vector<std::shared_ptr<const PackedMatrix>>> held_products_;
    LayerBuffer buffer_;
    std::int64_t entered_ = -1;
    bool entered_few_ = false, entered_many_ = false;
    bool in_slots_ = false;                                   ///< the entered layer
    bool holds_mixers_ = false, holds_feed_forward_ = false;  ///< content of the buffer
    Parts read_;  ///< while streaming: parts of the entered layer that are still to be converted
    /// Layers, before and after the mixers, whose numbers were looked at: stored ones, and those that are made
    /// (StoredTensor::is_made).
    std::set<std::pair<std::int64_t, bool>> counted_, unpacked_;
    std::vector<NotFinite> not_finite_, converted_not_finite_;  ///< the latter of the last convert()
    std::map<std::int64_t, std::unique_ptr<LayerExperts>> experts_;
    ReadAhead<Parts> ahead_;
    std::unique_ptr<CopySlots> slots_;  ///< null: layers are copied when they are entered
};

}  // namespace headscope::model
