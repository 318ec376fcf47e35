// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// Random tensors whose every number is a pure function of a key and of its place, so that neither threads nor what is
// drawn elsewhere change it.

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

namespace headscope::model {

/// A key for something with a name, of a seed.
std::uint64_t random_key(std::uint64_t seed, std::string_view name);

/// N(0, deviation^2) into `into`, any floating type and strides; drawn in float64 and rounded.
void fill_normal(const at::Tensor& into, std::uint64_t key, double deviation);
/// The same of numbers that are no farther from 0 than two deviations: others are drawn again.
void fill_cut_normal(const at::Tensor& into, std::uint64_t key, double deviation);
/// U(0, 1), as fill_normal.
void fill_uniform(const at::Tensor& into, std::uint64_t key);
/// Whole numbers from 0 to limit - 1 into `into` (int64, contiguous).
void fill_integers(const at::Tensor& into, std::uint64_t key, std::int64_t limit);

/// x with a share `dropout` of its numbers set to 0 and the others divided by 1 - dropout; recorded by autograd. x is
/// the part of something larger that begins at its number `first`, or all of it.
at::Tensor drop(const at::Tensor& x, double dropout, std::uint64_t key, std::int64_t first = 0);

}  // namespace headscope::model
