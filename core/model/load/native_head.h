// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string_view>

#include "core/model/config.h"

namespace headscope::model {

/// "head.kind" of a native configuration.
struct NativeHead {
    const char* name;
    HeadKind head;
    bool transform = false;                  ///< a map and an activation before it
    bool transform_norm = false;             ///< and a norm
    std::optional<Activation> activation{};  ///< of the transform, if it is not the model's
    bool bias = false;
    bool reads_bias = false;  ///< key head_bias

    /// True if the number of classes is a choice: key head.classes.
    bool has_classes() const { return head == HeadKind::token_classes || head == HeadKind::sequence_classes; }
};

inline constexpr NativeHead kNativeHeads[] = {
    {.name = "language", .head = HeadKind::vocabulary, .reads_bias = true},
    {.name = "masked_language", .head = HeadKind::vocabulary, .transform = true, .transform_norm = true, .bias = true},
    {.name = "token_classes", .head = HeadKind::token_classes, .bias = true},
    {.name = "sequence_classes",
     .head = HeadKind::sequence_classes,
     .transform = true,
     .activation = Activation::tanh,
     .bias = true},
    {.name = "spans", .head = HeadKind::spans, .bias = true},
    {.name = "none", .head = HeadKind::none}};

/// Null for an unknown name.
inline const NativeHead* find_native_head(std::string_view name) {
    for (const NativeHead& one : kNativeHeads)
        if (name == one.name) return &one;
    return nullptr;
}

}  // namespace headscope::model
