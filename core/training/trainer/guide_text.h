// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/training/trainer/trainer_session.h"

namespace headscope::training {

/// Sets the tokens that fixed_seq_qk layers read: the first of model.mixers.fixed_seq_qk.text under the data's
/// tokenizer, else of the training text. Without that file a checkpoint that was trained with such layers keeps its
/// own. Throws Error usage for a file with fewer tokens than the model has positions, and for one that no layer reads.
void set_guide(Session& session, Progress& progress, const Cancellation& cancellation);

}  // namespace headscope::training
