// SPDX-License-Identifier: GPL-3.0-or-later
// The plugin's entry `attention`: launches of the passes, in the order that the normalizer needs.
#include "kernels/gpu/device/attend_launch.h"

namespace headscope::gpu {
namespace {

constexpr long long kBandBlocks = 8192;  ///< of a launch: the cancel flag is read between launches

class AttentionCall {
public:
    AttentionCall(const HsAttention& attention, Launcher& launcher) : a_(attention), launcher_(launcher) {
        const HsRule& rule = a_.rule;
        normaliser_ = static_cast<Normaliser>(a_.normaliser);
        adjusted_ = rule.far_distance >= 0 || rule.relative != nullptr || rule.soft_cap > 0.0f || rule.block_size > 0 ||
                    rule.dropout_threshold != 0U || kernels::traits_of(normaliser_).diagonal;
        mma_ = takes_mma(a_);
        blocks_ = static_cast<long long>((a_.queries + kTile - 1) / kTile) * a_.heads;
    }

    void run() {
        const bool softmax = normaliser_ == Normaliser::softmax;
        if (softmax || normaliser_ == Normaliser::elastic) {
            HsAttention first = a_;
            if (!softmax) first.output.data = nullptr;
            attend(Pass::online, first);
        } else {
            constants();
        }
        if (!softmax && (a_.output.data != nullptr || a_.statistics != nullptr)) attend(Pass::weigh, a_);
        if (a_.statistics != nullptr) measure();
    }

private:
    void launch(Pass pass, const AttendArgs& args, long long count, bool wide, bool statistics) {
        const Instance instance{wide, statistics, adjusted_, mma_};
        if (pass == Pass::online)
            launch_online(launcher_, args, count, instance);
        else if (pass == Pass::sums)
            launch_sums(launcher_, args, count, instance);
        else
            launch_weigh(launcher_, args, count, instance);
    }

    void attend(Pass pass, const HsAttention& a) {
        constexpr int kNarrow = 64;
        const int columns = a.output.data != nullptr ? a.value_size : 1;
        for (int column = 0, width = 0; column < columns; column += width) {
            AttendArgs args{a, {}, 0, column, column == 0 ? 1 : 0};
            const bool statistics = a.statistics != nullptr && column == 0;
            const bool wide = columns - column > kNarrow && !(statistics && pass == Pass::weigh);
            width = wide ? 2 * kNarrow : kNarrow;
            if (statistics) args.s = *a.statistics;
            for (; args.begin < blocks_; args.begin += kBandBlocks) {
                const long long count = blocks_ - args.begin < kBandBlocks ? blocks_ - args.begin : kBandBlocks;
                launch(pass, args, count, wide, statistics);
            }
        }
    }

    /// Row constants of normalizers without an online sweep, with the statistics of scores.
    void constants() {
        AttendArgs args{a_, {}, 0, 0, 1};
        args.a.output.data = nullptr;
        const bool statistics = a_.statistics != nullptr;
        if (statistics) args.s = *a_.statistics;
        const bool searched = kernels::traits_of(normaliser_).sweep == kernels::Sweep::panel;
        const long long band = searched ? a_.panel_rows / kTile : kBandBlocks;
        for (; args.begin < blocks_; args.begin += band) {
            const long long count = blocks_ - args.begin < band ? blocks_ - args.begin : band;
            launch(Pass::sums, args, count, /*wide=*/false, statistics);
            if (!searched) continue;
            const SearchArgs search{a_, statistics ? a_.statistics->constant : nullptr, args.begin};
            launch_search(launcher_, search, count * kTile);
        }
    }

    void measure() {
        const long long tiles =
            static_cast<long long>((a_.queries + kTile - 1) / kTile) * ((a_.keys + kTile - 1) / kTile);
        MeasureArgs args{a_, *a_.statistics, 0};
        for (; args.begin < tiles; args.begin += kBandBlocks) {
            const long long count = tiles - args.begin < kBandBlocks ? tiles - args.begin : kBandBlocks;
            launch_measure(launcher_, args, count, {false, true, adjusted_, mma_});
        }
    }

    const HsAttention& a_;
    Launcher& launcher_;
    Normaliser normaliser_;
    bool adjusted_, mma_;
    long long blocks_;
};

}  // namespace

int attention_mma(int normaliser) {
    // Diagonal normalizers need products of squares, which are no bfloat16 numbers.
    return has_mma() && !kernels::traits_of(static_cast<Normaliser>(normaliser)).diagonal ? 1 : 0;
}

bool takes_mma(const HsAttention& a) {
    return a.query.type == HS_BFLOAT16 && a.key.type == HS_BFLOAT16 && a.value.type == HS_BFLOAT16 &&
           attention_mma(a.normaliser) != 0;
}

void attention_entry(const HsAttention* attention, const HsCall* call, HsOutcome* outcome) {
    Launcher launcher(*call, *outcome);
    AttentionCall(*attention, launcher).run();
}

}  // namespace headscope::gpu
