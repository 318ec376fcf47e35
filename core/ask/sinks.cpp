// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/ask/sinks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include <c10/core/InferenceMode.h>

#include "core/analysis/dense_rows.h"
#include "core/analysis/tensor_values.h"
#include "core/ask/answers.h"
#include "core/ask/cells.h"
#include "core/ask/readers.h"
#include "core/ask/sweep.h"
#include "core/model/edits/intervention.h"
#include "core/model/model.h"
#include "kernels/indicators.h"

namespace headscope::ask {
namespace {

using model::Point;
using model::PointKey;

constexpr std::int64_t kThresholds = 19;  // 0.05, 0.10, .., 0.95
constexpr const char* kSoftmaxSites = "/sinks/softmax";

std::string sinks_path(const std::string& name) {
    return "/sinks/" + name;
}

void add_sink_tables(store::AskRecord& record) {
    const std::vector<std::string> heads{"/sequence", "/site", "/head"}, bounds{"/sequence", "/boundary"};
    record.add_table("/sinks/column_mass", {"/sequence", "/site", "/head", "/token"},
                     "mean weight of a key over the queries from it on; without a causal mask over all");
    record.add_table("/sinks/rate", {"/token"},
                     "share of softmax heads of all texts whose mean weight is above epsilon");
    record.add_table("/sinks/rate_by_site", {"/site", "/token"}, "the same by site, whatever its normalizer");
    record.add_table("/sinks/threshold", {"/threshold"}, "values of epsilon");
    record.add_table("/sinks/rate_by_threshold", {"/threshold"}, "rate of the first token by epsilon");
    record.add_table("/sinks/secondary", heads, "sinks other than the first token", "", true);
    record.add_table("/sinks/secondary_position", heads, "strongest of them", "", true);
    for (const kernels::Indicator* one : kernels::indicators_of(kernels::IndicatorKind::weights)) {
        const std::string name = one->name, unit(one->file_unit());
        record.add_table(sinks_path(name), heads, one->file_text, unit);
        record.add_table(sinks_path(name + "_without_first_token"), heads,
                         std::string(one->file_text) + ", of the text without its first token", unit);
    }
    record.add_table("/sinks/entropy_row_mean_without_first_column", heads,
                     "entropy per query of the weights of keys other than the first, scaled to sum to 1", "nat");
    record.add_table("/sinks/value_norm", {"/sequence", "/site", "/key_value_head", "/token"}, "L2 norm of values");
    record.add_table("/sinks/activation_median", bounds, "median of absolute activations");
    record.add_table("/sinks/activation_maximum", bounds, "activation of largest absolute value");
    record.add_table("/sinks/activation_position", bounds, "its position", "", true);
    record.add_table("/sinks/activation_channel", bounds, "its channel", "", true);
    record.add_table("/sinks/massive", bounds, "activations above 100 and 1000 medians", "", true);
    const std::vector<std::string> tokens{"/sequence", "/boundary", "/token"};
    record.add_table("/sinks/token_maximum", tokens, "activation of largest absolute value of each token");
    record.add_table("/sinks/token_channel", tokens, "its channel", "", true);
    record.add_table("/sinks/hidden_norm", tokens, "L2 norm of the residual stream");
}

/// Even counts: the mean of the two in the middle.
double median_of(std::vector<float> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (static_cast<double>(*middle) + static_cast<double>(*std::max_element(values.begin(), middle))) / 2;
}

/// Boundaries of the residual stream: of an encoder-decoder the encoder's, then the decoder's.
std::int64_t boundary_count(const model::ModelConfig& config) {
    return config.all_layers() + (config.encoder ? 2 : 1);
}

/// The boundary ahead of a layer, or behind it.
std::int64_t boundary_of(const PointKey& key, const model::ModelConfig& config) {
    const bool decodes = config.encoder && key.layer >= config.encoder->layers;
    return key.layer + (decodes ? 1 : 0) + (key.point == Point::hidden ? 1 : 0);
}

/// Edits of a text in a run without its first token: positions are those of the whole text. The decoder's input of an
/// encoder-decoder is whole.
class WithoutFirstToken final : public model::Editor {
public:
    WithoutFirstToken(model::Editor& whole, const model::Model& model) : whole_(whole), model_(model) {}

    void begin(const Start& start) override { whole_.begin(start); }
    bool edits(const PointKey& key) const override { return whole_.edits(key); }
    at::Tensor edit(const model::EditPlace& place, const at::Tensor& value) override {
        model::EditPlace in_whole = place;
        if (!counts_target(place.key, model_)) ++in_whole.first_position;
        if (!model::is_matrix(place.key.point) || !keys_count_target(place.key, model_)) ++in_whole.first_key;
        return whole_.edit(in_whole, value);
    }
    void end() override { whole_.end(); }

private:
    model::Editor& whole_;
    const model::Model& model_;
};

class Sinks {
public:
    Sinks(model::Model& model, const SinksOptions& options, store::AskRecord& record)
        : model_(model), options_(options), record_(record) {
        const model::ModelConfig& config = model.config();
        places_ = model::places_of(Point::residual_before, config, model.sites());
        if (config.encoder) places_.push_back({Point::hidden, config.encoder->layers - 1, -1});
        places_.push_back({Point::hidden, config.all_layers() - 1, -1});
        for (const PointKey& key : model::places_of(Point::value, config, model.sites())) places_.push_back(key);
    }

    /// The last boundary's numbers are written last.
    void sequence(std::int64_t s, const Cancellation& cancellation) {
        const store::SequenceTokens& text = record_.sequences[static_cast<std::size_t>(s)];
        if (text.ids.size() > 1) {
            store::SequenceTokens rest;
            rest.ids.assign(text.ids.begin() + 1, text.ids.end());
            rest.target = text.target;
            SiteReader reader(model_.sites(), rest, [&](const model::AttentionRecord& record) {
                indicators(s, record, "_without_first_token");
            });
            std::optional<WithoutFirstToken> edits;
            if (options_.editor != nullptr) edits.emplace(*options_.editor, model_);
            read_run(model_, text_input(rest), reader, nullptr, edits ? &*edits : nullptr, cancellation);
        }
        SiteReader reader(model_.sites(), text, [&](const model::AttentionRecord& record) {
            indicators(s, record, "");
            weights(s, record, cancellation);
        });
        ValueReader values(places_, [&](const PointKey& key, const at::Tensor& value) {
            if (key.point == Point::value)
                value_norms(s, key.site, value);
            else
                activations(s, boundary_of(key, model_.config()), value);
        });
        read_run(model_, text_input(text), reader, &values, options_.editor, cancellation);
    }

    /// Shares over all texts.
    void rates() {
        const store::AskTable& mass = record_.table("/sinks/column_mass");
        const std::int64_t tokens = record_.size_of("/token"), sites = std::ssize(record_.sites);
        const std::int64_t heads = record_.size_of("/head");
        const std::vector<double>& softmax = record_.table(kSoftmaxSites).values;
        std::vector<double> above(static_cast<std::size_t>(sites * tokens)), all = above;
        std::vector<double> first;
        for (std::size_t cell = 0; cell < mass.values.size(); ++cell) {
            const double value = mass.values[cell];
            if (std::isnan(value)) continue;
            const auto token = static_cast<std::int64_t>(cell) % tokens;
            const std::int64_t site = static_cast<std::int64_t>(cell) / (tokens * heads) % sites;
            const auto place = static_cast<std::size_t>(site * tokens + token);
            ++all[place];
            if (value > options_.epsilon) ++above[place];
            if (token == 0 && softmax[static_cast<std::size_t>(site)] == 1) first.push_back(value);
        }
        for (std::int64_t token = 0; token < tokens; ++token) {
            double sinks = 0, count = 0;
            for (std::int64_t site = 0; site < sites; ++site) {
                const auto place = static_cast<std::size_t>(site * tokens + token);
                if (all[place] > 0) put(record_, "/sinks/rate_by_site", {site, token}, above[place] / all[place]);
                if (softmax[static_cast<std::size_t>(site)] != 1) continue;
                sinks += above[place];
                count += all[place];
            }
            if (count > 0) put(record_, "/sinks/rate", {token}, sinks / count);
        }
        for (std::int64_t t = 0; t < kThresholds; ++t) {
            const double threshold = static_cast<double>(t + 1) / (kThresholds + 1);
            const auto sinks = std::count_if(first.begin(), first.end(), [&](double one) { return one > threshold; });
            put(record_, "/sinks/threshold", {t}, threshold);
            if (!first.empty())
                put(record_, "/sinks/rate_by_threshold", {t},
                    static_cast<double>(sinks) / static_cast<double>(first.size()));
        }
    }

private:
    void indicators(std::int64_t s, const model::AttentionRecord& record, const std::string& behind) {
        for (const kernels::Indicator* one : kernels::indicators_of(kernels::IndicatorKind::weights)) {
            const std::vector<double>& values = record.statistics.*one->values;
            for (std::int64_t head = 0; head < std::ssize(values); ++head)
                put(record_, sinks_path(one->name + behind), {s, record.site.value, head},
                    values[static_cast<std::size_t>(head)]);
        }
    }

    /// Begin of a row of the last axis, in AskTable::values.
    double* row_of(const std::string& path, std::vector<std::int64_t> index) {
        store::AskTable& table = answer_table(record_, path);
        index.push_back(0);
        return table.values.data() + cell_of(record_, table, index);
    }

    void weights(std::int64_t s, const model::AttentionRecord& record, const Cancellation& cancellation) {
        const std::int64_t heads = record.query.size(1), site = record.site.value;
        const std::int64_t queries = record.query.size(2), keys = record.key.size(2);
        const bool causal = record.description.causal;
        put(record_, kSoftmaxSites, {site}, record.rule.normaliser == kernels::Normaliser::softmax ? 1 : 0);
        std::vector<double> mass(static_cast<std::size_t>(heads * keys)), entropy(static_cast<std::size_t>(heads)),
            rows_of(entropy.size());
        analysis::for_dense_rows(record, 0, cancellation,
                                 [&](std::int64_t head, std::int64_t first, std::span<const float> block) {
                                     double* const columns = mass.data() + head * keys;
                                     const std::int64_t rows = std::ssize(block) / keys;
                                     for (std::int64_t i = 0; i < rows; ++i) {
                                         const float* const row = block.data() + i * keys;
                                         const std::int64_t seen = causal ? first + i + 1 : keys;
                                         double rest = 0, logs = 0;
                                         for (std::int64_t j = 0; j < seen; ++j) {
                                             const double weight = row[j];
                                             columns[j] += weight;
                                             if (j == 0 || weight <= 0) continue;
                                             rest += weight;
                                             logs += weight * std::log(weight);
                                         }
                                         if (rest <= 0) continue;
                                         entropy[static_cast<std::size_t>(head)] += std::log(rest) - logs / rest;
                                         ++rows_of[static_cast<std::size_t>(head)];
                                     }
                                 });
        for (std::int64_t head = 0; head < heads; ++head) {
            double* const cells = row_of("/sinks/column_mass", {s, site, head});
            std::int64_t others = 0, strongest = -1;
            for (std::int64_t k = 0; k < keys; ++k) {
                const std::int64_t counted = causal ? queries - k : queries;
                cells[k] = mass[static_cast<std::size_t>(head * keys + k)] / static_cast<double>(counted);
                if (k == 0 || cells[k] <= options_.epsilon) continue;
                ++others;
                if (strongest < 0 || cells[k] > cells[strongest]) strongest = k;
            }
            put(record_, "/sinks/secondary", {s, site, head}, static_cast<double>(others));
            put(record_, "/sinks/secondary_position", {s, site, head}, static_cast<double>(strongest));
            const auto h = static_cast<std::size_t>(head);
            if (rows_of[h] > 0)
                put(record_, "/sinks/entropy_row_mean_without_first_column", {s, site, head}, entropy[h] / rows_of[h]);
        }
    }

    void value_norms(std::int64_t s, std::int64_t site, const at::Tensor& value) {
        const std::vector<float> norms = analysis::float_values(value[0].to(at::kDouble).norm(2, -1));
        const std::int64_t length = value.size(2);
        for (std::int64_t head = 0; head < value.size(1); ++head)
            std::copy_n(norms.begin() + head * length, length, row_of("/sinks/value_norm", {s, site, head}));
    }

    void activations(std::int64_t s, std::int64_t boundary, const at::Tensor& value) {
        const std::vector<float> all = analysis::float_values(value[0]);
        const std::int64_t length = value.size(1), channels = value.size(2);
        std::vector<float> sizes;
        sizes.reserve(all.size());
        for (const float one : all) sizes.push_back(std::abs(one));
        const double median = median_of(sizes);
        double* const largest = row_of("/sinks/token_maximum", {s, boundary});
        double* const channel = row_of("/sinks/token_channel", {s, boundary});
        double* const norms = row_of("/sinks/hidden_norm", {s, boundary});
        std::int64_t top = 0, massive = 0;
        for (std::int64_t p = 0; p < length; ++p) {
            const auto row = sizes.begin() + p * channels;
            const std::int64_t at = std::max_element(row, row + channels) - row;
            largest[p] = all[static_cast<std::size_t>(p * channels + at)];
            channel[p] = static_cast<double>(at);
            double squares = 0;
            for (std::int64_t c = 0; c < channels; ++c) {
                const double size = row[c];
                squares += size * size;
                massive += size > kMassiveValue && size >= kMassiveRatio * median;
            }
            norms[p] = std::sqrt(squares);
            if (std::abs(largest[p]) > std::abs(largest[top])) top = p;
        }
        put(record_, "/sinks/activation_median", {s, boundary}, median);
        put(record_, "/sinks/activation_maximum", {s, boundary}, largest[top]);
        put(record_, "/sinks/activation_position", {s, boundary}, static_cast<double>(top));
        put(record_, "/sinks/activation_channel", {s, boundary}, channel[top]);
        put(record_, "/sinks/massive", {s, boundary}, static_cast<double>(massive));
    }

    model::Model& model_;
    const SinksOptions& options_;
    store::AskRecord& record_;
    std::vector<PointKey> places_;
};

}  // namespace

void run_sinks(model::Model& model, const SinksOptions& options, store::AskRecord& record, Progress& progress,
               const Cancellation& cancellation) {
    const c10::InferenceMode inference;
    check_decoder(model, "sinks", true);
    check_scores(model, options.editor, "sinks");
    std::int64_t groups = 1;
    for (const PointKey& key : model::places_of(Point::value, model.config(), model.sites()))
        groups = std::max(groups, model::heads_at(key, model.sites()));
    const std::int64_t boundaries = boundary_count(model.config());
    record.add_dimension("/boundary", boundaries,
                         model.config().encoder
                             ? "boundary: inputs of the encoder's blocks and its output, then the decoder's"
                             : "boundary: input of block b; last: output of the blocks");
    record.add_dimension("/key_value_head", groups, "key-value head, counted from 0");
    record.add_dimension("/threshold", kThresholds, "threshold, counted from 0");
    if (record.tables.empty()) add_sink_tables(record);
    if (!record.find(kSoftmaxSites))  // files of earlier versions lack it
        record.add_table(kSoftmaxSites, {"/site"}, "1: the site's normalizer is softmax, and rate counts it", "", true);
    Sinks sinks(model, options, record);
    for_open_texts(
        record, static_cast<double>(record.sequences.size()), progress, options.saved,
        [&](std::int64_t s) {
            return has(record, "/sinks/hidden_norm", {s, boundaries - 1, 0});
        },
        [&](std::int64_t s) { sinks.sequence(s, cancellation); });
    sinks.rates();
    record.complete = true;
}

}  // namespace headscope::ask
