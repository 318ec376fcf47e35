// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/training/training_run.h"

#include <ATen/Parallel.h>

#include "core/run/run_folder.h"
#include "kernels/parallel.h"

namespace headscope::test {

namespace fs = std::filesystem;
using namespace training;

std::string small_text(std::size_t bytes) {
    const std::vector<std::string> words = {"one ", "two ", "three ", "four.\n"};
    std::string text;
    std::uint32_t state = 12345;
    while (text.size() < bytes) {
        state = state * 1664525U + 1013904223U;
        text += words[state >> 30U];
    }
    text.resize(bytes);
    return text;
}

JobFile small_job(const TemporaryFolder& folder, const std::vector<std::string>& extra) {
    if (!fs::exists(folder / "text.txt")) write_file(folder / "text.txt", small_text());
    JobFile job = read_job("[data]\ntext = \"" + (folder / "text.txt").string() + "\"\n", "job");
    for (const char* line : {"model.preset=nano-100k",
                             "model.hidden_size=32",
                             "model.intermediate_size=48",
                             "model.num_attention_heads=2",
                             "data.sequence_length=32",
                             "data.validation=0.1",
                             "training.steps=12",
                             "training.batch=4",
                             "training.threads=1",
                             "optimizer.learning_rate=5e-3",
                             "schedule.warmup_steps=3",
                             "schedule.minimum_rate=1e-3",
                             "evaluation.every=4",
                             "evaluation.batches=2",
                             "snapshots.every=4",
                             "probe.every=6",
                             "probe.sequences=2",
                             "probe.length=16",
                             "sample.every=6",
                             "sample.tokens=5"})
        set_key(job, line);
    for (const std::string& line : extra) set_key(job, line);
    return job;
}

TrainRequest fresh(const JobFile& job, const fs::path& run) {
    TrainRequest request;
    request.job = job;
    request.run = run;
    request.program_version = "test";
    return request;
}

TrainRequest resumed(const fs::path& run) {
    TrainRequest request = fresh(stored_job(run), run);
    request.start = TrainRequest::Start::resume;
    return request;
}

Told run(TrainRequest request, int threads) {
    Told told;
    const auto others = request.on_event;
    request.on_event = [&](const Event& event) {
        told.events.push_back(event);
        if (others) others(event);
    };
    kernels::set_threads(threads);
    at::set_num_threads(threads);
    NoProgress progress;
    const Cancellation cancellation;
    told.outcome = train(request, progress, cancellation);
    return told;
}

std::string weights_of(const fs::path& folder, std::int64_t step) {
    return read_file(RunFolder{folder}.snapshots() / snapshot_name(step) / "model.safetensors");
}

std::string optimizer_of(const fs::path& folder, std::int64_t step) {
    return read_file(RunFolder{folder}.snapshots() / snapshot_name(step) / "optimizer.safetensors");
}

}  // namespace headscope::test
