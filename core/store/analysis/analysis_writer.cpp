// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_writer.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/store/analysis/analysis_file.h"
#include "core/store/analysis/analysis_writer_create.h"
#include "core/store/analysis/rule_storage.h"
#include "core/store/analysis/signed_thumbnails.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/hdf5/read_handle.h"
#include "core/store/hdf5/rounded_map.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/analysis/schema.h"
#include "core/store/hdf5/utf8.h"
#include "kernels/recurrent.h"

namespace headscope::store {

using hdf5::Handle;
using hdf5::Shape;
using hdf5::Type;
struct AnalysisWriter::Impl {
    Impl(const std::filesystem::path& path, const AnalysisHeader& wanted, std::span<const std::filesystem::path> inputs)
        : header(checked_header(wanted)),
          schema(make_schema(header)),
          output(path, inputs, "analysis"),
          where(shown(output.target())) {
        const Hdf5Lock lock;
        hdf5::prepare();
        file = create_analysis(output.partial_path(), header, schema);
    }
    ~Impl() { close(); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    /// Closes the file for HDF5 too: readers of this process, which share it, open it again by themselves.
    void close() noexcept {
        const Hdf5Lock lock;
        open.clear();
        passing.reset();
        if (file < 0) return;
        ReadHandle::close_readers(output.partial_path());
        file.reset();
    }

    const Site& site_at(std::int64_t s, std::int64_t site) const {
        if (s < 0 || s >= static_cast<std::int64_t>(header.sequences.size()) || site < 0 ||
            site >= static_cast<std::int64_t>(header.sites.size())) {
            throw Error(ErrorCode::internal, where, "expected a sequence and site of this file",
                        "found " + std::to_string(s) + ", " + std::to_string(site));
        }
        return header.sites[static_cast<std::size_t>(site)];
    }

    void write(const std::string& path, Type type, const Shape& start, const Shape& count, const void* values,
               std::size_t size) {
        const Hdf5Lock lock;
        std::size_t wanted = 1;
        for (const std::int64_t n : count) wanted *= static_cast<std::size_t>(n);
        if (size < wanted) {
            throw Error(ErrorCode::internal, where + ", " + path, "expected " + std::to_string(wanted) + " values",
                        "found " + std::to_string(size));
        }
        hdf5::write_block(dataset(path), type, start, count, values, where + ", " + path);
    }

    /// Opened once; those of one site (maps, attention) are not kept.
    hid_t dataset(const std::string& path) {
        const auto known = open.find(path);
        if (known != open.end()) return known->second;
        const DatasetSpec* spec = schema.find(path);
        if (spec == nullptr) {
            throw Error(ErrorCode::internal, where, "expected a dataset of this file", "found none named " + path);
        }
        Handle opened(hdf5::check(H5Dopen2(file, path.c_str(), H5P_DEFAULT), ErrorCode::internal, where + ", " + path,
                                  "expected this dataset"));
        if (spec->fill == Fill::absent) return open.emplace(path, std::move(opened)).first->second;
        passing = std::move(opened);
        return passing;
    }

    void flush() {
        const Hdf5Lock lock;
        hdf5::flush(file, where);
    }

    void mark_done(std::int64_t s, std::int64_t site) {
        const Hdf5Lock lock;
        flush();  // the mark comes after what it vouches for
        const std::int8_t done = 1;
        write("/sites/done", Type::int8, {s, site}, {1, 1}, &done, 1);
        flush();
    }

    AnalysisHeader header;
    Schema schema;
    OutputFile output;
    std::string where;
    Handle file;
    std::unordered_map<std::string, Handle> open;
    Handle passing;
};

AnalysisWriter::AnalysisWriter(std::filesystem::path path, const AnalysisHeader& header,
                               std::span<const std::filesystem::path> inputs)
    : impl_(std::make_unique<Impl>(path, header, inputs)) {}

AnalysisWriter::~AnalysisWriter() = default;

const std::filesystem::path& AnalysisWriter::partial_path() const {
    return impl_->output.partial_path();
}
void AnalysisWriter::keep_partial() {
    impl_->output.keep_partial();
}

void AnalysisWriter::write_site(std::int64_t s, std::int64_t site, const kernels::Statistics& statistics,
                                std::int64_t b) {
    Impl& f = *impl_;
    const Site& description = f.site_at(s, site);
    const std::int64_t heads = description.heads;
    const std::int64_t keys = f.header.keys(s, description);
    if (statistics.heads != heads || b < 0 || b >= statistics.batch || statistics.keys < keys ||
        statistics.queries < f.header.queries(s, description)) {
        throw Error(ErrorCode::internal, f.where, "expected statistics of this site's heads, queries and keys",
                    "found others");
    }
    // Each part of the statistics is [batch, heads, ...]; what was not asked for is empty and stays absent.
    const auto per_head = [&](const std::string& path, Type type, const auto& values, std::int64_t columns) {
        if (values.empty()) return;
        const auto row = static_cast<std::size_t>(heads * columns);
        const std::size_t first = row * static_cast<std::size_t>(b);
        if (values.size() < first + row)
            throw Error(ErrorCode::internal, path, "expected all heads", "found fewer values");
        Shape start{s, site, 0}, count{1, 1, heads};
        if (columns != 1) {
            start.push_back(0);
            count.push_back(columns);
        }
        f.write(path, type, start, count, values.data() + first, row);
    };
    for (const auto* one : kernels::indicators_of(kernels::IndicatorKind::weights))
        per_head(std::string("/indicators/") + one->name, Type::float64, statistics.*one->values, 1);
    const auto distances = static_cast<std::int64_t>(f.header.local_distances.size());
    if (distances > 0 && !statistics.local_focus.empty()) {
        // [heads, distances] even when there is one distance.
        const auto row = static_cast<std::size_t>(heads * distances);
        f.write("/indicators/local_focus", Type::float64, {s, site, 0, 0}, {1, 1, heads, distances},
                statistics.local_focus.data() + row * static_cast<std::size_t>(b), row);
    }
    if (!statistics.head_diversity.empty()) {
        f.write("/indicators/head_diversity", Type::float64, {s, site}, {1, 1},
                &statistics.head_diversity.at(static_cast<std::size_t>(b)), 1);
    }
    if (!statistics.column_mass.empty()) {
        std::vector<float> mass;
        for (std::int64_t h = 0; h < heads; ++h) {
            const auto row = statistics.column_mass.begin() + (b * heads + h) * statistics.keys;
            mass.insert(mass.end(), row, row + keys);
        }
        f.write("/indicators/column_mass", Type::float32, {s, site, 0, 0}, {1, 1, heads, keys}, mass.data(),
                mass.size());
    }
    per_head("/logits/counts", Type::uint64, statistics.histogram, kernels::kHistogramBins);
    per_head("/logits/minimum", Type::float64, statistics.score_minimum, 1);
    per_head("/logits/maximum", Type::float64, statistics.score_maximum, 1);
    per_head("/logits/mean", Type::float64, statistics.score_mean, 1);
    per_head("/logits/variance", Type::float64, statistics.score_variance, 1);
    per_head("/logits/above", Type::uint64, statistics.score_above, 3);

    const std::int64_t rows = statistics.thumbnail_rows, columns = statistics.thumbnail_columns;
    const auto thumbnail = [&](const char* path, const std::vector<float>& values) {
        if (values.empty()) return;
        const auto size = static_cast<std::size_t>(heads * rows * columns);
        const float* first = values.data() + size * static_cast<std::size_t>(b);
        f.write(path, Type::float32, {s, site, 0, 0, 0}, {1, 1, heads, rows, columns}, first, size);
    };
    thumbnail("/thumbnails/mean", statistics.thumbnail_mean);
    thumbnail("/thumbnails/maximum", statistics.thumbnail_maximum);
    f.mark_done(s, site);
}

void AnalysisWriter::write_region_means(std::int64_t s, std::int64_t site, std::span<const double> means) {
    Impl& f = *impl_;
    const auto heads = static_cast<std::size_t>(f.site_at(s, site).heads), pairs = region_indicators().size();
    if (means.size() != heads * pairs)
        throw Error(ErrorCode::internal, f.where, "expected means of each head and pair of regions", "found others");
    std::vector<double> values(heads);
    for (std::size_t k = 0; k < pairs; ++k) {
        for (std::size_t h = 0; h < heads; ++h) values[h] = means[h * pairs + k];
        f.write(std::string("/indicators/") + region_indicators()[k]->name, Type::float64, {s, site, 0},
                {1, 1, static_cast<std::int64_t>(heads)}, values.data(), heads);
    }
}

void AnalysisWriter::write_map(std::int64_t s, std::int64_t site, std::span<const float> q, std::span<const float> k,
                               std::span<const float> row_constant, const kernels::ScoreRule& rule, std::int64_t b) {
    Impl& f = *impl_;
    const Site& d = f.site_at(s, site);
    const std::int64_t queries = f.header.queries(s, d), keys = f.header.keys(s, d), size = d.key_size;
    if (static_cast<std::int64_t>(q.size()) != d.heads * queries * size ||
        static_cast<std::int64_t>(k.size()) != d.key_value_heads * keys * size) {
        throw Error(ErrorCode::internal, f.where, "expected queries and keys of this site", "found another size");
    }
    const std::string group = map_group(s, site);
    const kernels::ScoreRule row = rule_of_row(rule, b, d.heads);
    const Shape zero{0, 0, 0}, query_shape{d.heads, queries, size}, key_shape{d.key_value_heads, keys, size};
    RoundedMap rounded;
    const bool integers = f.header.map_type == MapType::int16;
    if (integers) {
        rounded = round_map(q, k, row, d.heads, d.key_value_heads, queries, keys, size);
        row_constant = rounded.row_constant;
    }
    const auto write = [&](const std::string& path, const Shape& shape, std::span<const float> numbers,
                           const Rounded& whole) {
        if (!integers) return f.write(path, Type::float32, zero, shape, numbers.data(), numbers.size());
        f.write(path, Type::int16, zero, shape, whole.values.data(), whole.values.size());
        const Hdf5Lock lock;
        hdf5::overwrite_attribute(f.dataset(path), scale_factor, Type::float32, &whole.scale, 1, f.where + ", " + path);
    };
    write(group + "/query", query_shape, q, rounded.query);
    write(group + "/key", key_shape, k, rounded.key);
    f.write(group + "/row_constant", Type::float32, {0, 0}, {d.heads, queries}, row_constant.data(),
            row_constant.size());
    const Hdf5Lock lock;
    write_rule(hdf5::open_group(f.file, group, f.where), row, d.heads, f.where + ", " + group);
    f.flush();
}

void AnalysisWriter::write_value_products(std::int64_t s, std::int64_t site, std::span<const float> products) {
    const Site& d = impl_->site_at(s, site);
    impl_->write(products_path(s, site), Type::float32, {0, 0, 0}, {impl_->header.keys(s, d), d.heads, d.heads},
                 products.data(), products.size());
    impl_->flush();
}

void AnalysisWriter::write_attention_rows(std::int64_t s, std::int64_t site, std::int64_t head, std::int64_t first,
                                          std::span<const float> rows, std::int64_t keys) {
    const auto count = static_cast<std::int64_t>(rows.size()) / keys;
    impl_->write(attention_path(s, site), Type::float32, {head, first, 0}, {1, count, keys}, rows.data(), rows.size());
    impl_->flush();
}

void AnalysisWriter::write_branch_weights(std::int64_t s, std::int64_t site, std::span<const float> weights) {
    const Site& d = impl_->site_at(s, site);
    impl_->write("/branch_weights", Type::float32, {s, site, 0, 0, 0}, {1, 1, d.heads, impl_->header.queries(s, d), 2},
                 weights.data(), weights.size());
    impl_->flush();
}

void AnalysisWriter::write_implicit(std::int64_t s, std::int64_t site, std::span<const float> matrix,
                                    double deviation) {
    Impl& f = *impl_;
    const Site& d = f.site_at(s, site);
    const std::int64_t heads = d.heads, length = f.header.queries(s, d);
    const std::string path = implicit_path(s, site);
    f.write(path, Type::float32, {0, 0, 0}, {heads, length, length}, matrix.data(), matrix.size());
    const std::int64_t side = std::min(thumbnail_size(f.header), length);
    const SignedThumbnails small = signed_thumbnails(matrix, heads, length, side);
    const Shape start{s, site, 0, 0, 0}, count{1, 1, heads, side, side};
    f.write("/thumbnails/mean", Type::float32, start, count, small.mean.data(), small.mean.size());
    f.write("/thumbnails/maximum", Type::float32, start, count, small.extreme.data(), small.extreme.size());
    const Hdf5Lock lock;
    hdf5::overwrite_attribute(f.dataset(path), largest_deviation, Type::float64, &deviation, 1, f.where + ", " + path);
    f.flush();
}

void AnalysisWriter::write_implicit_site(std::int64_t s, std::int64_t site,
                                         const kernels::ImplicitStatistics& statistics, std::int64_t b) {
    Impl& f = *impl_;
    const std::int64_t heads = f.site_at(s, site).heads;
    const std::pair<const char*, const std::vector<double>*> values[] = {
        {"entropy", &statistics.entropy},
        {"entropy_row_mean", &statistics.entropy_row_mean},
        {"concentration", &statistics.concentration}};
    for (const auto& [name, all] : values) {
        const std::string path = std::string("/indicators/") + name;
        if (b < 0 || std::ssize(*all) < (b + 1) * heads)
            throw Error(ErrorCode::internal, path, "expected all heads", "found fewer values");
        f.write(path, Type::float64, {s, site, 0}, {1, 1, heads}, all->data() + b * heads,
                static_cast<std::size_t>(heads));
    }
    f.mark_done(s, site);
}

void AnalysisWriter::write_state(std::int64_t s, std::int64_t site, const std::string& which,
                                 std::span<const float> values, std::int64_t heads) {
    impl_->site_at(s, site);
    const auto length = static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(heads, 1);
    impl_->write("/states/" + which, Type::float32, {s, site, 0, 0}, {1, 1, heads, length}, values.data(),
                 values.size());
    impl_->flush();
}

void AnalysisWriter::write_hidden_state(std::int64_t s, std::int64_t boundary, const std::string& which,
                                        std::span<const float> values) {
    impl_->write("/states/" + which, Type::float32, {s, boundary, 0}, {1, 1, static_cast<std::int64_t>(values.size())},
                 values.data(), values.size());
    impl_->flush();
}

void AnalysisWriter::write_experts(std::int64_t s, std::int64_t layer, std::span<const std::int16_t> index,
                                   std::span<const float> weight) {
    const std::int64_t each = std::max<std::int64_t>(impl_->header.experts_per_token, 1);
    const Shape start{s, layer, 0, 0}, count{1, 1, static_cast<std::int64_t>(index.size()) / each, each};
    impl_->write("/experts/weight", Type::float32, start, count, weight.data(), weight.size());
    impl_->write("/experts/index", Type::int16, start, count, index.data(), index.size());
    impl_->flush();
}

void AnalysisWriter::write_loss(std::int64_t s, std::span<const float> loss) {
    impl_->write("/output/loss", Type::float32, {s, 0}, {1, static_cast<std::int64_t>(loss.size())}, loss.data(),
                 loss.size());
    impl_->flush();
}

void AnalysisWriter::write_logits(std::int64_t s, std::int64_t first_row, std::span<const float> rows) {
    const std::int64_t vocabulary = impl_->header.vocabulary;
    const auto count = static_cast<std::int64_t>(rows.size()) / std::max<std::int64_t>(vocabulary, 1);
    impl_->write("/output/logits", Type::float32, {s, first_row, 0}, {1, count, vocabulary}, rows.data(), rows.size());
    impl_->flush();
}

void AnalysisWriter::write_class_logits(std::int64_t s, std::span<const float> logits) {
    impl_->write("/output/class_logits", Type::float32, {s, 0}, {1, static_cast<std::int64_t>(logits.size())},
                 logits.data(), logits.size());
    impl_->flush();
}

void AnalysisWriter::write_token_types(std::int64_t s, std::int64_t site, std::span<const std::int8_t> types,
                                       std::span<const double> fraction, std::int64_t heads) {
    const auto chunks = static_cast<std::int64_t>(types.size()) / std::max<std::int64_t>(heads, 1);
    impl_->write("/token_types", Type::int8, {s, site, 0, 0}, {1, 1, heads, chunks}, types.data(), types.size());
    impl_->write("/indicators/softmax_fraction", Type::float64, {s, site, 0}, {1, 1, heads}, fraction.data(),
                 fraction.size());
    impl_->flush();
}

void AnalysisWriter::write_parameters(std::int64_t site, std::span<const float> offset, std::span<const float> slope,
                                      std::span<const float> distance_bias) {
    const auto by_head = [&](const char* path, std::span<const float> values) {
        const auto heads = static_cast<std::int64_t>(values.size());
        if (heads > 0) impl_->write(path, Type::float32, {site, 0}, {1, heads}, values.data(), values.size());
    };
    by_head("/parameters/offset", offset);
    by_head("/parameters/slope", slope);
    if (const std::int64_t window = impl_->header.bias_window; window > 0 && !distance_bias.empty()) {
        const std::int64_t heads = static_cast<std::int64_t>(distance_bias.size()) / window;
        impl_->write("/parameters/distance_bias", Type::float32, {site, 0, 0}, {1, heads, window}, distance_bias.data(),
                     distance_bias.size());
    }
    impl_->flush();
}

void AnalysisWriter::write_head_embeddings(std::int64_t site, std::span<const float> embeddings) {
    const std::int64_t size = impl_->header.head_embedding_size;
    const std::int64_t heads = static_cast<std::int64_t>(embeddings.size()) / (3 * size);
    impl_->write("/parameters/head_embedding", Type::float32, {site, 0, 0, 0}, {1, 3, heads, size}, embeddings.data(),
                 embeddings.size());
    impl_->flush();
}

void AnalysisWriter::write_problems(const std::vector<std::string>& problems) {
    if (problems.empty()) return;
    Impl& f = *impl_;
    const Hdf5Lock lock;
    const auto count = static_cast<std::int64_t>(problems.size());
    const std::string path = problems_path, scale_path = "/problem";
    const Handle scale = create_scale(f.file, {scale_path, count, "problem, counted from 0", {}, ""}, f.where);
    const DatasetSpec spec{
        path, Type::text, {scale_path}, {count}, "", "what is NaN or infinite and should be a number", Fill::absent, 0};
    const Handle made = create_dataset(f.file, spec, f.where);
    attach_scale(made, scale, 0, f.where + ", " + path);
    hdf5::write_texts(made, spec.shape, problems, f.where + ", " + path);
    f.flush();
}

void AnalysisWriter::publish() {
    Impl& f = *impl_;
    {
        const Hdf5Lock lock;
        const std::int32_t complete = 1;
        hdf5::overwrite_attribute(f.file, "complete", Type::int32, &complete, 1, f.where);
        f.flush();
        f.close();
        const auto written = AnalysisFile::open(f.output.partial_path());
        written->check();
        if (!written->complete()) throw Error(ErrorCode::io, f.where, "expected a file marked complete", "found none");
    }
    f.output.publish();  // without the lock: the disk may take seconds
}

}  // namespace headscope::store
