// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/gradient_exchange.h"

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

namespace headscope::training {

/// Called by autograd when a leaf's gradient has been added to.
class GradientExchange::Hook final : public torch::autograd::PostAccumulateGradHook {
public:
    Hook(GradientExchange& owner, std::int64_t offset, std::int64_t elements)
        : owner_(owner), offset_(offset), elements_(elements) {}
    void operator()(const torch::autograd::Variable&) override { owner_.leaf_done(offset_, elements_); }

private:
    GradientExchange& owner_;
    std::int64_t offset_, elements_;
};

GradientExchange::GradientExchange(const model::Trainable& model, Processes& processes, std::unique_ptr<BlockSums> sums,
                                   std::int64_t block_bytes)
    : model_(model), processes_(processes), sums_(std::move(sums)) {
    const at::Tensor gradients = model.gradients();
    const std::int64_t size = gradients.numel();
    const std::int64_t most = std::max<std::int64_t>(1, block_bytes / gradients.element_size());
    // Gains and biases, behind the others, are a block of their own: the first layer's are known last.
    for (const auto& [begin, end] : {std::pair{std::int64_t{0}, model.decayed()}, std::pair{model.decayed(), size}})
        for (std::int64_t at = begin; at < end; at += most) blocks_.push_back({at, std::min(at + most, end), 0, 0});
    for (const at::Tensor& leaf : model.leaves()) {
        const std::int64_t offset = leaf.grad().storage_offset(), elements = leaf.numel();
        for (Block& block : blocks_)
            if (offset < block.end && offset + elements > block.begin) ++block.leaves;
        torch::autograd::impl::set_post_acc_grad_hooks(leaf, std::make_unique<Hook>(*this, offset, elements));
    }
    // Backward goes from the end; embedding and gains come last.
    for (std::size_t i = blocks_.size(); i-- > 0;)
        if (blocks_[i].end <= model.decayed()) order_.push_back(i);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
        if (blocks_[i].end > model.decayed()) order_.push_back(i);
}

GradientExchange::~GradientExchange() {
    for (const at::Tensor& leaf : model_.leaves()) torch::autograd::impl::set_post_acc_grad_hooks(leaf, nullptr);
}

void GradientExchange::arm() {
    for (Block& block : blocks_) block.left = block.leaves;
    sent_ = 0;
    armed_ = true;
}

void GradientExchange::leaf_done(std::int64_t offset, std::int64_t elements) {
    if (!armed_) return;
    for (Block& block : blocks_)
        if (offset < block.end && offset + elements > block.begin) --block.left;
    send_ready(false);
}

void GradientExchange::send_ready(bool all) {
    const at::Tensor gradients = model_.gradients();
    for (; sent_ < order_.size() && (all || blocks_[order_[sent_]].left <= 0); ++sent_) {
        const Block& block = blocks_[order_[sent_]];
        sums_->start(gradients, block.begin, block.end);
    }
}

void GradientExchange::sum(const at::Tensor& flat) {
    for (const std::size_t block : order_) sums_->start(flat, blocks_[block].begin, blocks_[block].end);
    sums_->finish(flat);
}

void GradientExchange::finish() {
    send_ready(true);
    armed_ = false;
    sums_->finish(model_.gradients());
}

}  // namespace headscope::training
