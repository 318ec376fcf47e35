// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "kernels/cpu/backward.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elastic_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/backward_pass-inl.h"
#include "kernels/cpu/normaliser_elastic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace headscope::kernels::cpu::HWY_NAMESPACE {
namespace {

void ElasticBackward(const BackwardTask& task) {
    BackwardPass<Elastic>(task).Run();
}

}  // namespace
}  // namespace headscope::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace headscope::kernels::cpu {

HWY_EXPORT(ElasticBackward);

template <>
void backward_pass<Normaliser::elastic>(const BackwardTask& task) {
    HWY_DYNAMIC_DISPATCH(ElasticBackward)(task);
}

}  // namespace headscope::kernels::cpu
#endif
