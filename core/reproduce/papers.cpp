// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/reproduce/papers.h"

namespace headscope::reproduce {

const std::vector<Paper>& papers() {
    static const std::vector<Paper> all{
        {"deconattn", "Deconstructing Attention", "seven mixers, uniform and in hybrids, in several layouts", true},
        {"natsl", "Neural Attention Search Linear", "NAtS-L, its hybrid and what they are compared with; ablations",
         false},
        {"lazy", "Attention Needs to Focus", "Lazy Attention, its ablations, seven formulations, rivals", false},
        {"thesis-mhe", "Xue's thesis, chapter 3",
         "multiple-head embeddings and rival attentions as encoders, decoders and encoder-decoders", true},
        {"thesis-hash", "Xue's thesis, chapter 2", "HashFormers, BERT with MLM and S+R, ProFormer, a CANINE-like",
         true},
    };
    return all;
}

}  // namespace headscope::reproduce
