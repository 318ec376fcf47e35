// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Query-key and output-value products of heads (Elhage et al. 2021, "A Mathematical Framework for Transformer
// Circuits") as thin factors: no d x d matrix is made for a head. Rows act on vectors from the left: QK = Q K^T, OV =
// V O. Threads: the compute thread, under inference mode.

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace headscope::model {
struct Layer;
class Model;
}  // namespace headscope::model

namespace headscope::ask::circuits {

/// Weights of one site's heads, keys and values repeated over their groups. float32. In cross-attention keys and values
/// read the encoder's output: d is then that stream's.
struct HeadFactors {
    at::Tensor query, key;  ///< [H, d, dk]
    at::Tensor value;       ///< [H, d, dv]
    at::Tensor output;      ///< [H, dv, d]
};

/// Upper triangles of the QR decompositions of the factors' columns: products with them have the singular values and
/// the Frobenius norm of products with the factors. float64, [H, min(d, size), size].
struct Triangles {
    at::Tensor query, key, value;
    at::Tensor output;  ///< of O^T
};

/// Reads the maps of a model's heads. `fold`: the gain of the norm ahead scales their rows, and a layer norm centers
/// them; ahead of keys and values of cross-attention is the encoder's final norm.
class HeadReader {
public:
    /// Throws unsupported for weights that are not in float32 in memory, layers without a norm ahead of attention with
    /// `fold`, and where no layer has softmax attention with maps of its own.
    HeadReader(const model::Model& model, bool fold);

    /// Sites with maps, in the order of the computation.
    const std::vector<std::int64_t>& sites() const { return sites_; }
    HeadFactors factors(std::int64_t site) const;

private:
    struct Place {
        const model::Layer* block;
        bool cross;
    };
    Place place(std::int64_t site) const;

    const model::Model* model_;
    bool fold_;
    std::vector<std::int64_t> sites_;
};

Triangles triangles(const HeadFactors& factors);

/// Singular values of Q K^T and of V O, [H, min(d, size)] descending.
at::Tensor qk_singular_values(const Triangles& of);
at::Tensor ov_singular_values(const Triangles& of);

/// Sum of the real parts of the eigenvalues over the sum of their absolute values, [H], of square matrices [H, n, n].
at::Tensor eigenvalue_score(const at::Tensor& matrices);

/// Parts that a later head makes of the stream that an earlier one writes: in one stack all three.
struct ReadParts {
    bool query = true, key = true, value = true;
};

/// ||OV_a M_b|| / (||OV_a|| ||M_b||) of an earlier site a and a later site b: [Ha, Hb] each; undefined where `reads` is
/// false.
struct Composition {
    at::Tensor query;  ///< M = QK
    at::Tensor key;    ///< M = QK^T
    at::Tensor value;  ///< M = OV
};
Composition composition(const HeadFactors& earlier, const Triangles& of_earlier, const HeadFactors& later,
                        const Triangles& of_later, const ReadParts& reads);

}  // namespace headscope::ask::circuits
