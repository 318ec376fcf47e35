// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Which tensors of a file go where. Parts of a model declare what they want; check() compares all of it with the file
// before a single tensor is read; load() reads each one straight into its place.
//
// Errors: Error(mismatch) names the tensor, its expected shape with the configuration's keys that ask for it, and what
// the file has; Error(unsupported) for element types that are no weights. Threads: one.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/base/progress.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/load/recipe.h"
#include "core/model/load/residence.h"
#include "core/model/model.h"

namespace headscope::model {

class ExpertLoader;  // core/model/load/expert_loader.h
class PackedMatrix;  // core/model/load/packed_matrix.h
class RowTable;      // core/model/load/row_table.h

/// A length and the keys of config.json that it comes from, for error texts.
struct Dimension {
    std::int64_t size = 0;
    std::string keys;
};

/// Initial value of a tensor that no file has.
enum class Initial {
    usual,       ///< normal for matrices and embeddings, zeros for vectors
    gain,        ///< of a norm: 1 in effect (ModelConfig::norm_gain_offset)
    bias,        ///< zeros, and no weight decay: biases that are no vector
    guide,       ///< normal, and not trained
    ids,         ///< int64, tokens drawn at random, not trained
    rate_log,    ///< ln of numbers from U(0, 16): how fast a recurrent state decays
    step_bias,   ///< what softplus turns into step sizes from 0.001 to 0.1, evenly by their logarithm
    drawn,       ///< normal, of deviation Want::number, vectors too
    number,      ///< Want::number, trained
    fixed,       ///< the same, not trained
    hyperplane,  ///< N(0, 1), not trained: of hashes of words
    /// rate_log, from U(1, 16) (Mamba2).
    rate_log_from_1,
    slopes,  ///< ALiBi's, a number for each head
};

class TensorPlan {
public:
    explicit TensorPlan(const checkpoint::Checkpoint& file) : file_(&file) {}
    /// Without a file everything is fresh (Want::fresh). With one, a tensor that it lacks, or has in another shape, may
    /// be fresh where `may_be_fresh` returns true for its name.
    TensorPlan() = default;
    TensorPlan(const checkpoint::Checkpoint& file, std::function<bool(const std::string& tensor)> may_be_fresh)
        : file_(&file), may_be_fresh_(std::move(may_be_fresh)) {}

    /// Category of a tensor's parameters: token mixers with their output projections, word inputs.
    enum class Part { other, attention, embedding };

    struct Want {
        at::Tensor* into = nullptr;
        std::string tensor;
        std::vector<Dimension> shape;  ///< as the file has it
        bool transposed = false;
        std::int64_t row = -1, rows = 0;    ///< of a fused tensor; -1: none
        std::int64_t heads = 0, parts = 0;  ///< rows to regroup; 0: none
        bool exact = false;                 ///< float32 at least, whatever the weights are read as
        Initial initial = Initial::usual;
        double number = 0;   ///< Initial::number, fixed
        bool fresh = false;  ///< not read from the file; set by check()
        Part part = Part::other;
        std::int64_t layer = -1;                     ///< that needs it, as the file counts them; -1: none, or several
        bool after_mixer = false;                    ///< that layer's mixers are done before it is used
        std::shared_ptr<RowTable>* table = nullptr;  ///< who can do without `into`: reads it by rows
        std::shared_ptr<const PackedMatrix>* packed = nullptr;  ///< the same: multiplies it as stored
        ExpertLoader** experts = nullptr;  ///< user that asks for each expert's matrices before it uses them
        std::int64_t expert = -1;          ///< that the matrix is of; -1: of all, along the first dimension

        /// Precision for weights read as `weights`.
        checkpoint::LoadAs precision(checkpoint::LoadAs weights) const {
            const bool half = weights == checkpoint::LoadAs::bfloat16 || weights == checkpoint::LoadAs::float16;
            return exact && half ? checkpoint::LoadAs::float32 : weights;
        }
        /// Not trained.
        bool given() const {
            return initial == Initial::guide || initial == Initial::ids || initial == Initial::fixed ||
                   initial == Initial::hyperplane;
        }
        std::vector<std::int64_t> sizes() const;
    };

    /// Later declarations belong to a tower with this configuration, which must outlive the plan.
    void begin_tower(const ModelConfig& config, const TensorNames& names);

    const ModelConfig& config() const { return *config_; }
    const SizeKeys& keys() const { return keys_; }
    /// Without a file, and of what is renewed: always. What is there and cannot be read (Checkpoint::unreadable) is
    /// there too: wanted, it is refused by name (check), instead of being passed over as a part that the file lacks.
    bool has(const std::string& tensor) const;
    /// The tensor's first dimension in the file; 0: there is none.
    std::int64_t rows_in_file(const std::string& tensor) const;
    bool from_file() const { return file_ != nullptr; }
    /// A tied head is the embedding even where the file has a copy of it. Without a file there is none.
    void share_tied_head() { shares_tied_head_ = true; }
    bool shares_tied_head() const { return shares_tied_head_ || !file_; }

    /// Wants of `copy` take the tensor of `original`, whose numbers are the same: one tensor for both.
    void share(const std::string& copy, const std::string& original) { shared_[copy] = original; }

    /// The tensor under the first of `names` that the file has goes into `into`, which must stay where it is until
    /// load.
    void want(at::Tensor* into, const std::vector<std::string>& names, std::vector<Dimension> shape,
              Initial initial = Initial::usual);
    /// One number, of shape `shape`, [1] or []; `fresh` where no file has it.
    void want_number(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape, double fresh,
                     Initial initial);
    /// Numbers that are no weights: read in float32 at least, and not trained.
    void want_exact(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape);
    /// The tensor asked for last is read in float32 at least, trained or not.
    void keep_exact();
    /// Linear weight [out, in]; a file with transposed weights has [in, out] and `into` becomes a view of that.
    void want_linear(at::Tensor* into, const std::string& stem, Dimension out, Dimension in);
    /// The tensor asked for last is a matrix that may also be read by rows (LayerWeights).
    void allow_rows(std::shared_ptr<RowTable>* table);
    /// The tensor asked for last is a matrix, or rows of one, that may also be multiplied as stored.
    void allow_product(std::shared_ptr<const PackedMatrix>* packed);
    /// The tensor asked for last has matrices of experts, of one or of all (-1), which may be read when `loader`, then
    /// not null, is asked for them (LayerExperts).
    void allow_experts(ExpertLoader** loader, std::int64_t expert = -1);
    /// Rows [row, row + its first dimension) of one fused tensor of `rows` rows, made when the first part is read.
    void want_rows(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape, std::int64_t row,
                   std::int64_t rows, Initial initial = Initial::usual);

    /// A fused tensor whose rows come head by head, `parts` pieces in each (FusedLayout::by_head), regrouped on
    /// reading: the first piece of all heads, then the second.
    void want_by_head(at::Tensor* into, const std::string& tensor, std::vector<Dimension> shape, std::int64_t heads,
                      std::int64_t parts);

    /// An optional part that the file lacks, for the report.
    void note_missing(const std::string& tensor) { report_.missing.push_back(tensor); }
    void note(const std::string& text) { report_.notes.push_back(text); }

    /// Wants of names with these prefixes are fresh, whatever the file has.
    void renew(std::vector<std::string> begins) { renewed_ = std::move(begins); }

    /// Everything wanted is there with its shape and a type of weights; nothing of the file belongs to a layer that the
    /// configuration lacks. Fills in the report.
    LoadReport check();
    /// Elements of all tensors that are wanted and not given (guides), each counted once: the model's parameters.
    std::int64_t elements() const;
    /// Sizes of the file's tensors, after check().
    WeightSizes sizes() const;
    /// Assigns wants() from number `first` on to this part.
    void count_as(Part part, std::size_t first);
    /// The same for Want::layer.
    void assign_to_layer(std::int64_t layer, std::size_t first);
    /// The same for Want::after_mixer: such tensors may take the memory of the layer's others (LayerWeights).
    void use_after_mixer(std::size_t first);
    /// Elements of its weights: the same without vectors (biases, gains).
    std::int64_t weights(Part part) const;
    const std::vector<Want>& wants() const { return wants_; }
    /// Reads all tensors but those (numbers in wants()) that `skipped` returns true for; none may be fresh. Adds to the
    /// report what of them is NaN or infinite.
    void load(checkpoint::LoadAs precision, Progress* progress, const Cancellation* cancellation,
              const std::function<bool(std::size_t want)>& skipped = {});
    const LoadReport& report() const { return report_; }

private:
    void check_one(const Want& want) const;
    static std::int64_t elements(const Want& want);
    void check_left_overs();
    /// How many numbers of it are NaN or infinite.
    std::int64_t load_one(const Want& want, checkpoint::LoadAs precision, const Cancellation* cancellation) const;

    bool fresh(const Want& want) const;
    bool renewed(const std::string& tensor) const;

    const checkpoint::Checkpoint* file_ = nullptr;
    std::function<bool(const std::string&)> may_be_fresh_;
    std::vector<std::string> renewed_;
    struct TowerLayers {
        std::string begin;  ///< what stands before a layer's number in every name of the tower
        std::int64_t layers;
        std::string key;           ///< of config.json
        std::int64_t further = 0;  ///< ModelConfig::further_layers
    };
    const ModelConfig* config_ = nullptr;
    SizeKeys keys_;
    bool transposed_ = false;
    bool shares_tied_head_ = false;
    std::map<std::string, std::string> shared_;
    std::vector<TowerLayers> towers_;
    std::vector<std::string> buffers_;
    std::vector<Want> wants_;
    LoadReport report_;
};

}  // namespace headscope::model
