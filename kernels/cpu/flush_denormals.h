// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace headscope::kernels::cpu {

/// While it lives, results below 2^-126 are 0 on this thread, and so are such operands. Sums of squares of small
/// weights would otherwise hit the processor's slow path, and threads that LibTorch has set up differently would
/// differ in bits. Without effect on processors other than x86.
class FlushDenormals {
public:
    FlushDenormals();
    ~FlushDenormals();
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

private:
    unsigned saved_ = 0;
};

}  // namespace headscope::kernels::cpu
