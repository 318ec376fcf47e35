// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/training/trainer/exchange/nccl_sums.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/streams.h"

namespace headscope::training {

NcclSums::NcclSums(Processes& processes, const at::Device& device, NcclLibrary nccl)
    : processes_(processes), nccl_(std::move(nccl)), stream_(model::another_stream(device)) {
    NcclId id;
    expect_success("ncclGetUniqueId", processes_.rank() == 0 ? nccl_.unique_id(&id) : 0);
    processes_.broadcast(id.bytes.data(), id.bytes.size());
    const c10::DeviceGuard guard(device);
    expect_success("ncclCommInitRank", nccl_.init_rank(&communicator_, processes_.size(), id, processes_.rank()));
}

NcclSums::~NcclSums() {
    if (communicator_ != nullptr) static_cast<void>(nccl_.destroy(communicator_));
}

void NcclSums::expect_success(const std::string& call, int result) {
    const std::vector<double> results = of_all(processes_, result);
    const auto failed = [](double one) { return one != 0; };
    if (std::none_of(results.begin(), results.end(), failed)) return;
    if (communicator_ != nullptr) static_cast<void>(nccl_.abort(std::exchange(communicator_, nullptr)));
    if (processes_.rank() > 0) throw Stopped();
    // A failure in one is a remote error in the others.
    auto first = std::find_if(results.begin(), results.end(),
                              [&](double one) { return failed(one) && one != kNcclRemoteError; });
    if (first == results.end()) first = std::find_if(results.begin(), results.end(), failed);
    throw Error(ErrorCode::io, "NCCL",
                "expected " + call + " to succeed in process " + std::to_string(first - results.begin()),
                "found " + nccl_.error_text(static_cast<int>(*first)) +
                    ": with HEADSCOPE_NCCL=none gradients are added up in memory of the processor");
}

void NcclSums::start(const at::Tensor& flat, std::int64_t begin, std::int64_t end) {
    if (failure_ != 0) return;
    model::follow(stream_, model::current_stream(flat.device()));
    const c10::StreamGuard guard(stream_);
    auto* const values = static_cast<char*>(flat.mutable_data_ptr()) + begin * flat.element_size();
    const int type = flat.scalar_type() == at::kBFloat16 ? kNcclBfloat16 : kNcclFloat32;
    failure_ = nccl_.all_reduce(values, values, static_cast<std::size_t>(end - begin), type, kNcclSum, communicator_,
                                c10::impl::VirtualGuardImpl(stream_.device_type()).getStreamNativeHandle(stream_));
}

void NcclSums::finish(const at::Tensor& flat) {
    expect_success("ncclAllReduce", std::exchange(failure_, 0));
    model::follow(model::current_stream(flat.device()), stream_);
}

}  // namespace headscope::training
