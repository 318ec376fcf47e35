// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/text/text.h"
#include "core/store/analysis/analysis_file_impl.h"
#include "core/store/analysis/analysis_header_read.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/analysis/schema.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {

using hdf5::Shape;
using hdf5::Type;

namespace {

// How much of a file may be holes: sizes in it are compared with its size, which costs nothing to claim.
constexpr std::uint64_t emptiest = 16;
constexpr std::int64_t most_problems = 1000;
constexpr std::uint64_t small = std::uint64_t{64} << 20U;

}  // namespace

AnalysisFile::AnalysisFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnalysisFile::~AnalysisFile() {
    const Hdf5Lock lock;
    impl_.reset();
}

std::shared_ptr<AnalysisFile> AnalysisFile::open(const std::filesystem::path& path) {
    const Hdf5Lock lock;
    hdf5::prepare();
    auto impl = std::make_unique<Impl>(path);
    if (impl->source.size() > emptiest * impl->source.stored() + small) {
        throw Error(ErrorCode::format, impl->where, "expected an analysis file of " + size_text(impl->source.size()),
                    "found only " + size_text(impl->source.stored()) + " of it on the disk, and holes");
    }
    impl->header = std::make_shared<const AnalysisHeader>(read_header(impl->handle.get(), impl->bytes(), impl->where));
    impl->schema = make_schema(*impl->header);
    impl->read_mark();
    impl->fixed = impl->complete;
    return std::shared_ptr<AnalysisFile>(new AnalysisFile(std::move(impl)));
}

const std::filesystem::path& AnalysisFile::path() const {
    return impl_->path;
}
const AnalysisHeader& AnalysisFile::header() const {
    return *impl_->header;
}
std::shared_ptr<const AnalysisHeader> AnalysisFile::shared_header() const {
    return impl_->header;
}
bool AnalysisFile::complete() const {
    return impl_->complete;
}

bool AnalysisFile::site_done(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    return impl_->block("/sites/done", {s, site}, {1, 1}, 2).data.front() == 1.0;
}

std::set<std::pair<std::int64_t, std::int64_t>> AnalysisFile::done_sites() const {
    const Hdf5Lock lock;
    const Values flags = impl_->all("/sites/done");
    const std::int64_t sites = flags.shape.at(1);
    std::set<std::pair<std::int64_t, std::int64_t>> done;
    for (std::int64_t i = 0; i < std::ssize(flags.data); ++i)
        if (flags.data[static_cast<std::size_t>(i)] == 1.0) done.emplace(i / sites, i % sites);
    return done;
}

std::vector<std::string> AnalysisFile::indicators() const {
    const std::string group = "/indicators/";
    std::vector<std::string> names;
    for (const DatasetSpec& spec : impl_->schema.datasets) {
        if (spec.path.starts_with(group) && spec.path != group + "column_mass")
            names.push_back(spec.path.substr(group.size()));
    }
    return names;
}

Values AnalysisFile::indicator(const std::string& name) const {
    const Hdf5Lock lock;
    return impl_->all("/indicators/" + name);
}

Values AnalysisFile::column_mass(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    return impl_->at("/indicators/column_mass", s, site);
}

std::vector<double> AnalysisFile::histogram_edges() const {
    const Hdf5Lock lock;
    return impl_->all("/logits/edges").data;
}
Values AnalysisFile::histogram(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    return impl_->at("/logits/counts", s, site);
}
std::int64_t AnalysisFile::histogram_row_step() const {
    return impl_->header->histogram_row_step;
}
Values AnalysisFile::score_statistic(const std::string& which) const {
    const Hdf5Lock lock;
    return impl_->all("/logits/" + which);
}

Values AnalysisFile::thumbnail(const std::string& which, std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    return impl_->at("/thumbnails/" + which, s, site);
}

Values AnalysisFile::loss(std::int64_t s) const {
    const Hdf5Lock lock;
    return impl_->block("/output/loss", {s, 0}, {1, impl_->header->longest()}, 1);
}

std::optional<Values> AnalysisFile::class_logits(std::int64_t s) const {
    const Hdf5Lock lock;
    if (impl_->header->classes == 0) return std::nullopt;
    return impl_->block("/output/class_logits", {s, 0}, {1, impl_->header->classes}, 1);
}

std::optional<Values> AnalysisFile::logits(std::int64_t s, std::int64_t first, std::int64_t count) const {
    const Hdf5Lock lock;
    if (!impl_->header->record.logits) return std::nullopt;
    return impl_->block("/output/logits", {s, first, 0}, {1, count, impl_->header->vocabulary}, 1);
}

std::optional<Values> AnalysisFile::state(const std::string& which, std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    const std::string name = "/states/" + which;
    if (impl_->schema.find(name) == nullptr) return std::nullopt;
    return impl_->at(name, s, site);
}

std::optional<AnalysisFile::Experts> AnalysisFile::experts(std::int64_t s, std::int64_t layer) const {
    const Hdf5Lock lock;
    if (!impl_->header->record.experts) return std::nullopt;
    Experts experts{impl_->at("/experts/index", s, layer), impl_->at("/experts/weight", s, layer)};
    const auto count = static_cast<double>(impl_->header->experts);
    for (const double index : experts.index.data) {
        if (index >= -1 && index < count) continue;
        throw Error(ErrorCode::format, impl_->where + ", /experts/index",
                    "expected experts below " + std::to_string(impl_->header->experts) + ", or -1",
                    "found " + std::to_string(static_cast<std::int64_t>(index)));
    }
    return experts;
}

std::optional<Values> AnalysisFile::attention_rows(std::int64_t s, std::int64_t site, std::int64_t head,
                                                   std::int64_t first, std::int64_t count) const {
    const Hdf5Lock lock;
    const DatasetSpec* spec = impl_->schema.find(attention_path(s, site));
    if (spec == nullptr) return std::nullopt;
    return impl_->block(spec->path, {head, first, 0}, {1, count, spec->shape[2]}, 1);
}

std::optional<Values> AnalysisFile::value_products(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    const DatasetSpec* spec = impl_->schema.find(products_path(s, site));
    if (spec == nullptr || !site_done(s, site)) return std::nullopt;
    return impl_->all(spec->path);
}

std::optional<Values> AnalysisFile::token_types(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    if (impl_->header->type_chunk == 0) return std::nullopt;
    Values types = impl_->at("/token_types", s, site);
    for (const double type : types.data) {
        if (type == -1 || type == 0 || type == 1) continue;
        throw Error(ErrorCode::format, impl_->where + ", /token_types", "expected types of 0, 1, or -1",
                    "found " + std::to_string(static_cast<std::int64_t>(type)));
    }
    return types;
}

std::optional<Values> AnalysisFile::branch_weights(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    if (!impl_->header->record.branches) return std::nullopt;
    return impl_->at("/branch_weights", s, site);
}

bool AnalysisFile::has_implicit(std::int64_t s, std::int64_t site) const {
    return impl_->schema.find(implicit_path(s, site)) != nullptr && site_done(s, site);
}

std::optional<std::vector<float>> AnalysisFile::implicit(std::int64_t s, std::int64_t site, std::int64_t head,
                                                         std::array<std::int64_t, 2> queries,
                                                         std::array<std::int64_t, 2> keys) const {
    const Hdf5Lock lock;
    if (!has_implicit(s, site)) return std::nullopt;
    const DatasetSpec& spec = impl_->spec(implicit_path(s, site));
    return impl_->floats(spec, {head, queries[0], keys[0]}, {1, queries[1] - queries[0], keys[1] - keys[0]});
}

double AnalysisFile::implicit_deviation(std::int64_t s, std::int64_t site) const {
    const Hdf5Lock lock;
    double deviation = std::numeric_limits<double>::quiet_NaN();
    const DatasetSpec* spec = impl_->schema.find(implicit_path(s, site));
    if (spec == nullptr) return deviation;
    hdf5::read_attribute(impl_->open(*spec).id, largest_deviation, Type::float64, &deviation, 1,
                         impl_->where + ", " + spec->path);
    return deviation;
}

std::optional<Values> AnalysisFile::parameters(const std::string& which) const {
    const Hdf5Lock lock;
    if (impl_->schema.find("/parameters/" + which) == nullptr) return std::nullopt;
    return impl_->all("/parameters/" + which);
}

std::vector<std::string> AnalysisFile::problems() const {
    const Hdf5Lock lock;
    const hid_t file = impl_->file();
    const std::string path = problems_path;
    if (!hdf5::exists(file, path)) return {};
    const auto opened = hdf5::open_dataset(file, path, Type::text, 1, impl_->bytes(), impl_->where);
    if (opened.shape[0] > most_problems) {
        throw Error(ErrorCode::limit, impl_->where + ", " + path,
                    "expected at most " + std::to_string(most_problems) + " problems",
                    "found " + std::to_string(opened.shape[0]));
    }
    std::vector<std::string> problems = hdf5::read_texts(opened, impl_->where + ", " + path);
    for (std::string& problem : problems) problem = readable_utf8(problem);
    return problems;
}

void AnalysisFile::check() const {
    const Hdf5Lock lock;
    for (const DatasetSpec& spec : impl_->schema.datasets) impl_->open(spec);
    problems();
}

}  // namespace headscope::store
