// SPDX-License-Identifier: GPL-3.0-or-later
// One training step of a small decoder (Qwen2's kind): forward, loss, backward, norm, clipping, AdamW.
//
//     bench_train_step [--type float32|bfloat16] [--length 512] [--batch 8] [--vocabulary 8192] [--hidden 256]
//                      [--layers 4] [--threads 2] [--steps 10] [--mixer NAME] [--default-allocator] [--serve]
//
// Prints seconds a step: median and best of --steps, and what is left of memory at its peak beyond the libraries. With
// --serve it reads lines: "step" is answered by a step's seconds, its seconds of processor time and its loss, "memory"
// by the bytes; the other program (train_ratio.py) can then take turns with it.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>

#include "core/base/machine/process.h"
#include "core/model/heads/head_loss.h"
#include "core/model/trainable.h"
#include "kernels/optimizer.h"
#include "kernels/parallel.h"

using namespace headscope;

namespace {

struct Options {
    bool bfloat16 = false, serve = false, keep_memory = true;
    std::string mixer = "standard";  ///< of every layer
    std::int64_t length = 512, batch = 8, vocabulary = 8192, hidden = 256, layers = 4, threads = 2, steps = 10;
};

Options read(int count, char** words) {
    Options options;
    for (int n = 1; n < count; ++n) {
        const std::string word = words[n];
        const auto value = [&] { return n + 1 < count ? std::string(words[++n]) : std::string(); };
        const auto number = [&](const char* name, std::int64_t& to) {
            if (word != name) return false;
            to = std::atoll(value().c_str());
            return to > 0;
        };
        if (word == "--serve")
            options.serve = true;
        else if (word == "--default-allocator")
            options.keep_memory = false;
        else if (word == "--type")
            options.bfloat16 = value() == "bfloat16";
        else if (word == "--mixer")
            options.mixer = value();
        else if (!number("--length", options.length) && !number("--batch", options.batch) &&
                 !number("--vocabulary", options.vocabulary) && !number("--hidden", options.hidden) &&
                 !number("--layers", options.layers) && !number("--threads", options.threads) &&
                 !number("--steps", options.steps)) {
            std::cerr << "bench_train_step: expected an option with a number, found " << word << '\n';
            std::exit(2);
        }
    }
    return options;
}

std::string config_of(const Options& o) {
    const auto text = [](std::int64_t number) { return std::to_string(number); };
    std::string layers;
    for (std::int64_t n = 0; n < o.layers; ++n) layers += (n == 0 ? "\"" : ", \"") + o.mixer + "\"";
    return R"({"model_type": "headscope", "attention_bias": true, "hidden_act": "silu", "rms_norm_eps": 1e-6,
               "rope_theta": 10000.0, "initializer_range": 0.02, "tie_word_embeddings": false, "hidden_size": )" +
           text(o.hidden) + ", \"intermediate_size\": " + text(4 * o.hidden) + ", \"layers\": [" + layers +
           "], \"num_hidden_layers\": " + text(o.layers) + ", \"num_attention_heads\": " + text(o.hidden / 64) +
           ", \"num_key_value_heads\": " + text(o.hidden / 64) + ", \"vocab_size\": " + text(o.vocabulary) +
           ", \"max_position_embeddings\": " + text(std::max<std::int64_t>(o.length, 2048)) + "}";
}

/// Bytes of the process now, or at most so far.
std::int64_t resident(const char* field) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.rfind(field, 0) == 0) return std::atoll(line.c_str() + std::string(field).size() + 1) * 1024;
    }
    return 0;
}

class Training {
public:
    explicit Training(const Options& options)
        : options_(options),
          before_(resident("VmRSS")),
          type_(options.bfloat16 ? at::kBFloat16 : at::kFloat),
          model_(model::Trainable::create(config_of(options), 1, type_)) {
        const std::int64_t size = model_->weights().numel();
        first_ = at::zeros({size}, at::kFloat);
        second_ = at::zeros({size}, at::kFloat);
        if (options.bfloat16) master_ = model_->weights().to(at::kFloat);
        const at::Tensor count = at::arange(options.batch * (options.length + 1), at::kLong);
        const at::Tensor ids = ((count * 7919 + count.square()) % options.vocabulary).view({options.batch, -1});
        batch_.ids = ids.narrow(1, 0, options.length).contiguous();
        targets_ = ids.narrow(1, 1, options.length).flatten().contiguous();
    }

    /// Returns the mean loss in nats.
    double step() {
        const at::Tensor hidden = model_->forward(batch_);
        const model::LossSum loss = model_->loss(hidden.flatten(0, 1), targets_);
        loss.sum.backward();
        at::Tensor weights = model_->weights(), gradients = model_->gradients();
        const auto type = options_.bfloat16 ? kernels::ElementType::bfloat16 : kernels::ElementType::float32;
        const double scale = 1.0 / static_cast<double>(loss.rows);
        const double norm =
            scale * std::sqrt(kernels::squared_norm(gradients.const_data_ptr(), type, gradients.numel()));
        kernels::FlatParameters flat{weights.numel(),
                                     model_->decayed(),
                                     type,
                                     weights.mutable_data_ptr(),
                                     options_.bfloat16 ? master_.mutable_data_ptr<float>() : nullptr,
                                     type,
                                     gradients.mutable_data_ptr(),
                                     first_.mutable_data_ptr<float>(),
                                     second_.mutable_data_ptr<float>()};
        kernels::AdamWSettings settings{3e-4, 0.9, 0.95, 1e-8, 0.1, ++updates_};
        settings.gradient_scale = norm > 1.0 ? scale / norm : scale;
        settings.clear_gradients = true;
        kernels::adamw_step(flat, settings);
        return loss.cross_entropy.value() * scale;
    }

    std::int64_t peak() const { return resident("VmHWM") - before_; }

private:
    Options options_;
    std::int64_t before_, updates_ = 0;
    at::ScalarType type_;
    std::unique_ptr<model::Trainable> model_;
    at::Tensor first_, second_, master_, targets_;
    model::Batch batch_;
};

/// Seconds of all threads.
double processor_time() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(Training& training, double* loss) {
    const auto begin = std::chrono::steady_clock::now();
    *loss = training.step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int main(int count, char** words) {
    const Options options = read(count, words);
    if (options.keep_memory) keep_freed_memory();
    kernels::set_threads(static_cast<int>(options.threads));
    at::set_num_threads(static_cast<int>(options.threads));
    Training training(options);
    double loss = 0.0;
    if (options.serve) {
        for (std::string line; std::getline(std::cin, line);) {
            if (line == "step") {
                const double before = processor_time(), seconds = seconds_of(training, &loss);
                std::printf("%.6f %.6f %.6f\n", seconds, processor_time() - before, loss);
            } else if (line == "memory") {
                std::printf("%lld\n", static_cast<long long>(training.peak()));
            }
            std::fflush(stdout);
        }
        return 0;
    }
    std::vector<double> seconds;
    for (int n = 0; n < 2; ++n) seconds_of(training, &loss);
    for (std::int64_t n = 0; n < options.steps; ++n) seconds.push_back(seconds_of(training, &loss));
    std::sort(seconds.begin(), seconds.end());
    std::printf("median %.1f ms, best %.1f ms a step, loss %.4f, peak %.0f MB beyond the libraries\n",
                seconds[seconds.size() / 2] * 1e3, seconds.front() * 1e3, loss,
                static_cast<double>(training.peak()) / 1e6);
    return 0;
}
