// SPDX-License-Identifier: GPL-3.0-or-later
// Times attention on the backend that HEADSCOPE_KERNELS names: bench_gpu OPERATION TYPE LENGTH HEADS SIZE ROUNDS.
//
// OPERATION: forward (O and row constants), statistics (O and every indicator) or backward (gradients of q, k and v).
// TYPE of q, k, v and d loss / d O: float32 or bfloat16. Causal softmax, one text. Prints one line of JSON with medians
// in seconds: "call" with operands in memory of the processor, copies included; "kernel" with operands in memory of the
// GPU, launches and workspace included, null on the processor. bench.py reads it.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention.h"
#include "kernels/attention_backward.h"
#include "kernels/backend.h"
#include "kernels/gpu/host/plugin.h"

using namespace headscope::kernels;

namespace {

struct Shape {
    ElementType type = ElementType::float32;
    std::int64_t length = 0, heads = 0, size = 0;
    std::int64_t numbers() const { return heads * length * size; }
    std::int64_t bytes() const { return numbers() * (type == ElementType::float32 ? 4 : 2); }
};

/// [1, heads, length, size] in [-1, 1).
std::vector<char> random_numbers(const Shape& s, std::uint32_t seed) {
    const bool single = s.type == ElementType::float32;
    const std::size_t width = single ? 4 : 2;
    std::vector<char> bytes(static_cast<std::size_t>(s.numbers()) * width);
    for (std::size_t n = 0; n < bytes.size(); n += width) {
        seed = seed * 1664525U + 1013904223U;
        const float x = static_cast<float>(seed >> 8U) * 0x1p-23F - 1.0F;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &x, 4);
        if (!single) bits >>= 16U;  // the lower half of a float32 is dropped
        std::memcpy(bytes.data() + n, &bits, width);
    }
    return bytes;
}

/// Operands and results in one kind of memory.
struct Operands {
    Device device = Device::cpu;
    const void *query = nullptr, *key = nullptr, *value = nullptr, *output_gradient = nullptr;
    float *output = nullptr, *shift = nullptr, *factor = nullptr;
    float *query_gradient = nullptr, *key_gradient = nullptr, *value_gradient = nullptr;
};

/// One operation on operands.
class Work {
public:
    Work(std::string operation, const Shape& shape) : operation_(std::move(operation)), shape_(shape) {
        rule_.scale = 1.0 / std::sqrt(static_cast<double>(shape.size));
        for (std::int64_t i = 0; i < shape.length; ++i)
            request_.tokens.push_back(static_cast<std::int32_t>(i * i / 7 % 997));
    }

    /// O and row constants, which the backward pass reads.
    void prepare(const Operands& x) const { forward(x); }

    void run(const Operands& x) const {
        if (operation_ == "forward") return forward(x);
        if (operation_ == "backward")
            return attention_backward(input(x), view(x.output, ElementType::float32, x.device),
                                      view(x.output_gradient, shape_.type, x.device), {x.shift, x.factor},
                                      {target(x.query_gradient), target(x.key_gradient), target(x.value_gradient)});
        Statistics statistics;
        const MutableView place = target(x.output);
        attention(input(x), {x.output, place.batch_stride, place.head_stride, place.row_stride}, &request_,
                  &statistics);
    }

private:
    void forward(const Operands& x) const {
        attention_forward(input(x), target(x.output), SoftmaxRows{x.shift, x.factor});
    }
    TensorView view(const void* data, ElementType type, Device device) const {
        const Shape& s = shape_;
        return {data, type, 1, s.heads, s.length, s.size, s.numbers(), s.length * s.size, s.size, device};
    }
    MutableView target(float* data) const {
        return {data, ElementType::float32, shape_.numbers(), shape_.length * shape_.size, shape_.size};
    }
    AttentionInput input(const Operands& x) const {
        return {view(x.query, shape_.type, x.device), view(x.key, shape_.type, x.device),
                view(x.value, shape_.type, x.device), &rule_, nullptr};
    }

    std::string operation_;
    Shape shape_;
    ScoreRule rule_;
    StatisticsRequest request_;
};

/// Median seconds of `rounds`, after a few that do not count.
double median_seconds(const std::function<void()>& work, int rounds) {
    std::vector<double> seconds;
    for (int round = -(rounds + 6) / 7; round < rounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        if (round >= 0) seconds.push_back(taken.count());
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

/// Operands in memory of the GPU are copies of these.
double seconds_on_device(const Work& work, const Shape& s, const Operands& host, int rounds) {
    gpu::Memory memory(gpu::plugin("bench_gpu"), "bench_gpu");
    const auto copied = [&](const void* from, std::int64_t bytes) {
        return memory.upload(static_cast<const char*>(from), bytes);
    };
    const auto results = [&] { return memory.take<float>(s.numbers()); };
    Operands x;
    x.device = Device::gpu;
    x.query = copied(host.query, s.bytes());
    x.key = copied(host.key, s.bytes());
    x.value = copied(host.value, s.bytes());
    x.output_gradient = copied(host.output_gradient, s.bytes());
    x.output = results();
    x.query_gradient = results();
    x.key_gradient = results();
    x.value_gradient = results();
    x.shift = memory.take<float>(s.heads * s.length);
    x.factor = memory.take<float>(s.heads * s.length);
    work.prepare(x);
    return median_seconds([&] { work.run(x); }, rounds);
}

std::int64_t number_of(const char* text) {
    const std::int64_t number = std::atoll(text);
    if (number < 1 || number > (1 << 20))
        throw std::runtime_error(std::string("expected a number from 1 to 1048576; found ") + text);
    return number;
}

int run(int argc, char** argv) {
    const std::string operation = argc > 1 ? argv[1] : "", type = argc > 2 ? argv[2] : "";
    const bool known = operation == "forward" || operation == "statistics" || operation == "backward";
    if (argc != 7 || !known || (type != "float32" && type != "bfloat16"))
        throw std::runtime_error("expected forward|statistics|backward float32|bfloat16 LENGTH HEADS SIZE ROUNDS");
    const Shape s{type == "float32" ? ElementType::float32 : ElementType::bfloat16, number_of(argv[3]),
                  number_of(argv[4]), number_of(argv[5])};
    const int rounds = static_cast<int>(number_of(argv[6]));
    const std::vector<char> query = random_numbers(s, 1), key = random_numbers(s, 2), value = random_numbers(s, 3),
                            gradient = random_numbers(s, 4);
    const auto count = static_cast<std::size_t>(s.numbers()), rows = static_cast<std::size_t>(s.heads * s.length);
    std::vector<float> output(count), query_gradient(count), key_gradient(count), value_gradient(count);
    std::vector<float> shift(rows), factor(rows);
    const Operands host{Device::cpu,           query.data(),        key.data(),           value.data(),
                        gradient.data(),       output.data(),       shift.data(),         factor.data(),
                        query_gradient.data(), key_gradient.data(), value_gradient.data()};
    const Work work(operation, s);
    work.prepare(host);
    const double call = median_seconds([&] { work.run(host); }, rounds);
    const std::string backend = chosen_backend();
    const auto gpus = gpu::backend_names();
    const bool on_gpu = std::find(gpus.begin(), gpus.end(), backend) != gpus.end();
    std::printf("{\"backend\": \"%s\", \"device\": \"%s\", \"call\": %.9f, \"kernel\": ", backend.c_str(),
                chosen_device().c_str(), call);
    if (on_gpu)
        std::printf("%.9f}\n", seconds_on_device(work, s, host, rounds));
    else
        std::printf("null}\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_gpu: %s\n", error.what());
        return 1;
    }
}
