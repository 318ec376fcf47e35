// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>
#include <span>

#include <ATen/ops/log_softmax.h>
#include <c10/core/InferenceMode.h>

#include "core/analysis/estimate.h"
#include "core/analysis/measuring_probe.h"
#include "core/analysis/request.h"
#include "core/analysis/work_plan.h"
#include "core/base/error.h"
#include "core/base/text/text.h"
#include "core/model/heads/text_rows.h"
#include "core/model/model.h"
#include "core/model/towers/check_batch.h"
#include "core/store/analysis/analysis_writer.h"
#include "core/store/analysis/file_size.h"
#include "kernels/backend.h"

namespace headscope::analysis {
namespace {

void check_layers(const std::set<int>& layers, std::int64_t count, const char* where) {
    for (const int layer : layers) {
        if (layer < 0 || layer >= count) {
            throw Error(ErrorCode::usage, where, "expected layers from 0 to " + std::to_string(count - 1),
                        "found " + std::to_string(layer));
        }
    }
}

/// Layers that are measured: those asked for, less those left out. Empty: all.
std::set<int> measured_layers(const AnalysisRequest& request, std::int64_t count) {
    if (request.layers.empty() && request.skip_layers.empty()) return {};
    std::set<int> measured;
    for (int layer = 0; layer < count; ++layer) {
        const bool asked = request.layers.empty() || request.layers.contains(layer);
        if (asked && !request.skip_layers.contains(layer)) measured.insert(layer);
    }
    if (measured.empty()) {
        throw Error(ErrorCode::usage, "--layers", "expected a layer that is not left out", "found none");
    }
    return measured;
}

/// A label for each token of each sequence, where the head says one of each.
void check_labels(const model::ModelConfig& config, bool has_head, const AnalysisRequest& request) {
    if (request.labels.empty()) return;
    const auto refuse = [](ErrorCode code, const std::string& expected, const std::string& found) {
        throw Error(code, "--labels", "expected " + expected, "found " + found);
    };
    const bool token_wise = config.head == model::HeadKind::vocabulary || config.head == model::HeadKind::token_classes;
    if (config.causal || config.encoder || !has_head || !token_wise) {
        refuse(ErrorCode::unsupported, "an encoder with a head for tokens, or for classes of tokens",
               config.encoder  ? "an encoder-decoder"
               : config.causal ? "a decoder"
                               : "another head, or none");
    }
    if (request.labels.size() != request.sequences.size())
        refuse(ErrorCode::mismatch, "labels of " + std::to_string(request.sequences.size()) + " sequences",
               std::to_string(request.labels.size()));
    for (std::size_t s = 0; s < request.labels.size(); ++s) {
        const auto& labels = request.labels[s];
        const std::string of = " of sequence " + std::to_string(s);
        if (const std::size_t tokens = request.sequences[s].ids.size(); labels.size() != tokens)
            refuse(ErrorCode::mismatch, "a label for each of the " + std::to_string(tokens) + " tokens" + of,
                   std::to_string(labels.size()));
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (labels[i] == no_label || (labels[i] >= 0 && labels[i] < config.head_columns())) continue;
            refuse(ErrorCode::limit, "numbers from 0 to " + std::to_string(config.head_columns() - 1) + ", or -100",
                   std::to_string(labels[i]) + " for token " + std::to_string(i) + of);
        }
    }
}

void check_settings(const model::ModelConfig& config, const std::vector<Site>& sites, bool has_head,
                    const AnalysisRequest& request) {
    if (request.sequences.empty())
        throw Error(ErrorCode::usage, "analysis", "expected a sequence of tokens", "found none");
    const std::size_t wanted = config.encoder ? request.sequences.size() : 0;
    if (request.targets.size() != wanted) {
        throw Error(ErrorCode::usage, "analysis", "expected " + std::to_string(wanted) + " targets",
                    "found " + std::to_string(request.targets.size()));
    }
    for (const auto* list : {&request.sequences, &request.targets}) {
        for (const auto& sequence : *list) {
            if (sequence.ids.empty())
                throw Error(ErrorCode::usage, "analysis", "expected at least one token in each sequence", "found none");
        }
    }
    check_labels(config, has_head, request);
    if (request.record.logits && !has_head) {
        throw Error(ErrorCode::usage, "--record logits", "expected a model with a head for the vocabulary or classes",
                    "found none");
    }
    if (request.record.experts && (config.experts < 1 || config.experts > store::most_experts)) {
        throw Error(ErrorCode::usage, "--record experts",
                    "expected a model with a mixture of experts, at most " + std::to_string(store::most_experts),
                    "found " + (config.experts < 1 ? "none" : std::to_string(config.experts)));
    }
    const auto some = [&](const auto& holds) { return std::any_of(sites.begin(), sites.end(), holds); };
    if (request.record.implicit && !some([](const Site& site) { return site.has_implicit; })) {
        throw Error(ErrorCode::usage, "--record implicit",
                    "expected a model with a recurrent mixer, whose outputs are a matrix times values",
                    "found attention matrices alone, which are --record attention");
    }
    if (request.record.branches && type_chunk(sites) == 0) {
        throw Error(ErrorCode::usage, "--record branch-weights", "expected a model with NAtS-L layers", "found none");
    }
    model::check_segments(request.segments, config);
    check_layers(request.layers, config.all_layers(), "--layers");
    check_layers(request.skip_layers, config.all_layers(), "--skip");
    measured_layers(request, config.all_layers());
    model::Interventions(request.interventions, config, sites);
    std::vector<std::int64_t> lengths;
    for (const auto* texts : {&request.sequences, &request.targets})
        for (const store::SequenceTokens& text : *texts) lengths.push_back(std::ssize(text.ids));
    model::check_positions(request.interventions, lengths);
}

/// Throws what the model would refuse.
void check_batches(const model::ModelConfig& config, const std::vector<WorkBatch>& plan,
                   const AnalysisRequest& request) {
    for (const WorkBatch& work : plan)
        model::check_batch(
            make_batch(request.sequences, request.targets, work.sequences, config.reads_types(), config.hashed), config,
            0, request.beyond_positions);
}

store::AnalysisHeader make_header(const model::Model& model, const AnalysisRequest& request) {
    const model::ModelConfig& config = model.config();
    check_settings(config, model.sites(), model.has_head() || model.has_classes(), request);
    store::AnalysisHeader header;
    header.program_version = request.program_version.empty() ? HEADSCOPE_VERSION : request.program_version;
    header.created = utc_now();
    header.model_name = request.model_name.empty() ? config.name : request.model_name;
    header.model_type = config.family;
    header.model_sha256 = request.model_sha256;
    header.config_json = request.config_json.empty() ? config.to_json() : request.config_json;
    header.settings_json = request.settings_json.empty() ? "{}" : request.settings_json;
    header.seed = request.seed;
    header.mixers = model.mixers();
    header.sites = model.sites();
    header.sequences = request.sequences;
    if (config.encoder) header.streams["target"] = request.targets;
    header.measured_layers = measured_layers(request, config.all_layers());
    header.record = request.record;
    header.hidden_boundaries = config.all_layers() + 1;
    header.vocabulary = config.head_columns();
    if (config.head == model::HeadKind::sequence_classes && request.record.logits) {
        header.classes = config.classes;
        header.record.logits = false;
    }
    header.type_chunk = type_chunk(header.sites);
    header.take_parameters();
    header.experts = config.experts;
    header.experts_per_token = config.experts_per_token;
    header.max_positions = config.max_positions;
    header.histogram_row_step = request.all_rows ? 1 : 0;
    if (request.maps_int16) header.map_type = store::MapType::int16;
    return header;
}

/// Sums the batches' costs and reports progress.
class Meter {
public:
    Meter(Progress& progress, const std::vector<WorkBatch>& plan) : progress_(progress) {
        for (const WorkBatch& batch : plan)
            total_ += std::accumulate(batch.layer_costs.begin(), batch.layer_costs.end(), batch.loss_cost);
    }
    void add(double cost, const std::string& what) {
        done_ += cost;
        progress_.advance(done_, total_, what);
    }

private:
    Progress& progress_;
    double done_ = 0, total_ = 0;
};

class Run {
public:
    Run(model::Model& model, const AnalysisRequest& request, const store::AnalysisHeader& header,
        store::AnalysisWriter& writer, const Cancellation& cancellation)
        : model_(model),
          request_(request),
          header_(header),
          waiting_{request.waiting_bytes, writer.partial_path().parent_path()},
          writer_(writer),
          cancellation_(cancellation),
          edits_(request.interventions, model.config(), model.sites()),
          problems_(model) {}

    /// The batches pass each layer together; `names` begin their lines of progress.
    void batches(std::span<const WorkBatch> group, std::span<const std::string> names, Meter& meter) {
        cancellation_.check();
        std::vector<model::Batch> batches;
        std::deque<MeasuringProbe> probes;
        std::vector<model::Model::Pass> passes;
        batches.reserve(group.size());
        for (std::size_t i = 0; i < group.size(); ++i) {
            batches.push_back(make_batch(request_.sequences, request_.targets, group[i].sequences,
                                         model_.config().reads_types(), model_.config().hashed));
            probes.emplace_back(writer_, problems_, header_, request_, group[i].sequences, cancellation_);
            passes.push_back({&batches.back(), options_for(group[i], probes.back(), names[i], meter)});
        }
        model_.forward_each(passes, waiting_, [&](std::size_t i, const at::Tensor& hidden) {
            predict(group[i], batches[i], hidden, names[i], meter);
        });
    }

    const Problems& problems() const { return problems_; }

private:
    model::ForwardOptions options_for(const WorkBatch& work, MeasuringProbe& probe, const std::string& name,
                                      Meter& meter) {
        model::ForwardOptions options;
        options.probe = &probe;
        options.skip_layers = request_.skip_layers;
        if (!edits_.empty()) options.editor = &edits_;
        options.segments = request_.segments;
        options.beyond_positions = request_.beyond_positions;
        options.cancellation = &cancellation_;
        const std::string layers = std::to_string(model_.config().all_layers());
        options.after_layer = [&work, &name, &meter, layers](int layer) {
            meter.add(work.layer_costs.at(static_cast<std::size_t>(layer)),
                      name + "layer " + std::to_string(layer) + " of " + layers);
        };
        return options;
    }

    void predict(const WorkBatch& work, const model::Batch& batch, const at::Tensor& hidden, const std::string& name,
                 Meter& meter) {
        cancellation_.check();
        if (!model_.has_head() && !model_.has_classes()) return;
        const auto keep = [&](std::int64_t row, std::int64_t first, const at::Tensor& logits) {
            const std::int64_t sequence = work.sequences[static_cast<std::size_t>(row)];
            if (!predicts_next()) problems_.logits(logits, first, sequence);
            if (header_.record.logits) writer_.write_logits(sequence, first, float_values(logits));
        };
        if (model_.config().head == model::HeadKind::sequence_classes)
            class_logits(work, batch, hidden);
        else if (predicts_next())
            loss(work, batch, hidden, keep);
        else if (header_.record.logits || !request_.labels.empty())
            all_logits(work, hidden, keep);
        meter.add(work.loss_cost, name + "loss");
    }

    bool predicts_next() const { return model_.causal() && model_.has_head(); }

    void class_logits(const WorkBatch& work, const model::Batch& batch, const at::Tensor& hidden) {
        if (header_.classes == 0) return;
        const at::Tensor logits = model::text_logits(model_, hidden, batch);
        for (std::size_t b = 0; b < work.sequences.size(); ++b)
            writer_.write_class_logits(work.sequences[b], float_values(logits.select(0, static_cast<std::int64_t>(b))));
    }

    void loss(const WorkBatch& work, const model::Batch& batch, const at::Tensor& hidden,
              const model::Model::LogitRows& keep) {
        const model::Model::LogitRows rows = header_.record.logits ? keep : model::Model::LogitRows();
        const at::Tensor loss = model_.next_token_loss(batch, hidden, rows, &cancellation_);
        for (std::size_t b = 0; b < work.sequences.size(); ++b) {
            const std::vector<float> values = float_values(loss.select(0, static_cast<std::int64_t>(b)));
            problems_.loss(values, work.sequences[b]);
            writer_.write_loss(work.sequences[b], values);
            if (request_.loss_done) request_.loss_done(work.sequences[b]);
        }
    }

    /// An encoder's, or of classes: there is no next token, so the loss is that of labels.
    void all_logits(const WorkBatch& work, const at::Tensor& hidden, const model::Model::LogitRows& keep) {
        const std::int64_t length = hidden.size(1), step = model_.logit_rows();
        for (std::int64_t b = 0; b < hidden.size(0); ++b) {
            const std::int64_t sequence = work.sequences[static_cast<std::size_t>(b)];
            std::vector<float> loss(static_cast<std::size_t>(length), std::numeric_limits<float>::quiet_NaN());
            for (std::int64_t first = 0; first < length; first += step) {
                cancellation_.check();
                const at::Tensor rows =
                    model_.logits(hidden.select(0, b).narrow(0, first, std::min(step, length - first)));
                keep(b, first, rows);
                if (!request_.labels.empty()) add_label_loss(sequence, first, rows, loss);
            }
            if (request_.labels.empty()) continue;
            writer_.write_loss(sequence, loss);
            if (request_.loss_done) request_.loss_done(sequence);
        }
    }

    /// Cross-entropy of logits [n, V] of tokens from `first` on, where they have a label.
    void add_label_loss(std::int64_t sequence, std::int64_t first, const at::Tensor& rows,
                        std::vector<float>& loss) const {
        const auto& labels = request_.labels[static_cast<std::size_t>(sequence)];
        for (std::int64_t i = 0; i < rows.size(0); ++i) {
            const auto token = static_cast<std::size_t>(first + i);
            if (labels[token] == no_label) continue;
            const at::Tensor logs = at::log_softmax(rows.select(0, i), 0, at::kDouble);
            loss[token] = static_cast<float>(-logs.const_data_ptr<double>()[labels[token]]);
        }
    }

    model::Model& model_;
    const AnalysisRequest& request_;
    const store::AnalysisHeader& header_;
    model::WaitingPlace waiting_;
    store::AnalysisWriter& writer_;
    const Cancellation& cancellation_;
    model::Interventions edits_;
    Problems problems_;
};

void run_all(model::Model& model, const AnalysisRequest& request, const std::filesystem::path& output,
             const std::vector<std::filesystem::path>& inputs, Progress& progress, const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    const store::AnalysisHeader header = make_header(model, request);
    const std::vector<WorkBatch> plan =
        plan_work(request.sequences, request.targets, model.config(), request.batch_tokens, model.has_head());
    check_batches(model.config(), plan, request);  // before a file appears
    const std::vector<WorkGroup> groups = group_work(plan, model.config(), model.residence(), request.waiting_bytes);
    double spilled = 0;
    for (const WorkGroup& group : groups) spilled = std::max(spilled, group.spilled_bytes);
    if (spilled > 0) expect_disk_space(output, store::expected_file_bytes(header), spilled);
    cancellation.check();
    store::AnalysisWriter writer(output, header, inputs);
    if (request.keep_partial_on_stop) writer.keep_partial();
    if (request.created) request.created(writer.partial_path());
    Meter meter(progress, plan);
    Run run(model, request, header, writer, cancellation);
    std::vector<std::string> names(plan.size());
    for (std::size_t i = 0; plan.size() > 1 && i < plan.size(); ++i)
        names[i] = "batch " + std::to_string(i + 1) + " of " + std::to_string(plan.size()) + ", ";
    std::size_t first = 0;
    for (const WorkGroup& group : groups) {
        run.batches(std::span(plan).subspan(first, group.batches), std::span(names).subspan(first, group.batches),
                    meter);
        first += group.batches;
    }
    cancellation.check();
    writer.write_problems(run.problems().sentences());
    writer.publish();
}

}  // namespace

void check_request(const model::Inspection& inspection, const AnalysisRequest& request) {
    try {
        check_settings(inspection.config, inspection.sites, inspection.has_head || inspection.has_classes, request);
        check_batches(
            inspection.config,
            plan_work(request.sequences, request.targets, inspection.config, request.batch_tokens, inspection.has_head),
            request);
    } catch (...) {
        throw current_error("analysis");
    }
}

void run(model::Model& model, const AnalysisRequest& request, const std::filesystem::path& output,
         std::vector<std::filesystem::path> inputs, Progress& progress, const Cancellation& cancellation) {
    try {
        run_all(model, request, output, inputs, progress, cancellation);
    } catch (const kernels::Cancelled&) {
        throw Stopped();
    } catch (...) {
        throw current_error("analysis");
    }
}

}  // namespace headscope::analysis
