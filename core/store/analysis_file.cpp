// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/base/input_file.h"
#include "core/base/os_error.h"
#include "core/base/text.h"
#include "core/store/analysis_header_read.h"
#include "core/store/half.h"
#include "core/store/hdf5.h"
#include "core/store/hdf5_lock.h"
#include "core/store/read_handle.h"
#include "core/store/rounded_map.h"
#include "core/store/rule_storage.h"
#include "core/store/scale_storage.h"
#include "core/store/schema.h"
#include "core/store/utf8.h"
#include "kernels/head_rule.h"

namespace headscope::store {

using hdf5::Shape;
using hdf5::Type;

namespace {

std::size_t elements(const Shape& shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    return count;
}

// How much of a file may be holes: sizes in it are compared with its size, which costs nothing to claim.
constexpr std::uint64_t emptiest = 16;
constexpr std::int64_t most_problems = 1000;
constexpr std::uint64_t small = std::uint64_t{64} << 20U;

}  // namespace

struct AnalysisFile::Impl {
    explicit Impl(const std::filesystem::path& wanted)
        : path(wanted), where(shown(wanted)), source(wanted, "analysis file"), handle(wanted) {}

    std::filesystem::path path;
    std::string where;
    InputFile source;  ///< beside HDF5's own: refuses what is no regular file, and notices changes
    ReadHandle handle;
    std::shared_ptr<const AnalysisHeader> header;
    Schema schema;
    bool complete = false;
    bool mark_known = false;  ///< `complete` was read since the file was opened
    bool fixed = false;       ///< complete when opened: it no longer changes

    /// The file itself; opened again when a writer in this process took it to publish it.
    hid_t file() {
        if (handle.dropped()) mark_known = false;
        const hid_t opened = handle.get();
        if (!mark_known) read_mark();
        return opened;
    }

    void read_mark() {
        const hid_t opened = handle.get();
        std::int32_t mark = 0;
        hdf5::read_attribute(opened, "complete", Type::int32, &mark, 1, where);
        complete = mark == 1;
        mark_known = true;
        if (!complete || !hdf5::is_held(opened)) return;
        handle.drop();
        hdf5::refuse_held(where);  // no job of ours: one that is done has let go of its file
    }

    /// Bytes that bound its sizes. A file being written grows when a rule adds a table.
    std::uint64_t bytes() const { return fixed ? source.size() : handle.bytes(); }

    /// Forgets what was read of an unfinished file's structures: another process may have changed them since.
    void refresh() {
        if (!complete) handle.drop();
    }

    const DatasetSpec& spec(const std::string& name) const {
        const DatasetSpec* found = schema.find(name);
        if (found == nullptr) {
            throw Error(ErrorCode::usage, where, "expected a dataset that the file has", "found no " + escaped(name));
        }
        return *found;
    }

    hdf5::CheckedDataset open(const DatasetSpec& wanted) {
        auto opened = hdf5::open_dataset(file(), wanted.path, wanted.type, wanted.shape.size(), bytes(), where);
        if (opened.shape != wanted.shape) {
            throw Error(ErrorCode::format, where + ", " + wanted.path,
                        "expected the shape " + hdf5::shape_text(wanted.shape),
                        "found " + hdf5::shape_text(opened.shape));
        }
        return opened;
    }

    template <class T>
    std::vector<T> read(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        const auto opened = open(wanted);
        for (std::size_t i = 0; i < start.size(); ++i) {
            if (start[i] < 0 || count[i] < 0 || start[i] > wanted.shape[i] - count[i]) {
                throw Error(ErrorCode::usage, where + ", " + wanted.path,
                            "expected indices within " + hdf5::shape_text(wanted.shape),
                            "found " + hdf5::shape_text(start) + " + " + hdf5::shape_text(count));
            }
        }
        std::vector<T> values(elements(count));
        hdf5::read_block(opened.id, wanted.type, start, count, values.data(), where + ", " + wanted.path);
        if (fixed) source.check_unchanged();
        return values;
    }

    template <class T>
    static std::vector<double> widened(const std::vector<T>& values) {
        return {values.begin(), values.end()};
    }

    /// Any numeric dataset's block as float64; leading dimensions of `start` are dropped from the result's shape.
    Values block(const std::string& name, const Shape& start, const Shape& count, std::size_t dropped) {
        const DatasetSpec& wanted = spec(name);
        Values values;
        values.shape.assign(count.begin() + static_cast<std::ptrdiff_t>(dropped), count.end());
        switch (wanted.type) {
            case Type::float64:
                values.data = read<double>(wanted, start, count);
                break;
            case Type::float32:
                values.data = widened(read<float>(wanted, start, count));
                break;
            case Type::uint64:
                values.data = widened(read<std::uint64_t>(wanted, start, count));
                break;
            case Type::int64:
                values.data = widened(read<std::int64_t>(wanted, start, count));
                break;
            case Type::int32:
                values.data = widened(read<std::int32_t>(wanted, start, count));
                break;
            case Type::int16:
                values.data = wanted.scaled ? widened(floats(wanted, start, count))
                                            : widened(read<std::int16_t>(wanted, start, count));
                break;
            case Type::int8:
                values.data = widened(read<std::int8_t>(wanted, start, count));
                break;
            case Type::float16:
                values.data = widened(floats(wanted, start, count));
                break;
            case Type::text:
                throw Error(ErrorCode::internal, where, "expected a numeric dataset", "found text");
        }
        return values;
    }

    Values all(const std::string& name) {
        const Shape& shape = spec(name).shape;
        return block(name, Shape(shape.size(), 0), shape, 0);
    }

    /// Values of dataset [first, second, ...] at (first, second).
    Values at(const std::string& name, std::int64_t first, std::int64_t second) {
        Shape count = spec(name).shape, start(count.size(), 0);
        start.at(0) = first;
        start.at(1) = second;
        count[0] = count[1] = 1;
        return block(name, start, count, 2);
    }

    std::vector<float> scaled(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        Rounded rounded;
        rounded.values = read<std::int16_t>(wanted, start, count);
        const std::string at = where + ", " + wanted.path;
        hdf5::read_attribute(open(wanted).id, scale_factor, Type::float32, &rounded.scale, 1, at);
        if (!std::isnormal(rounded.scale) || rounded.scale < 0) {
            throw Error(ErrorCode::format, at, "expected a scale_factor above 0",
                        "found " + std::to_string(rounded.scale));
        }
        return rounded.back();
    }

    std::vector<float> floats(const DatasetSpec& wanted, const Shape& start, const Shape& count) {
        if (wanted.type == Type::float32) return read<float>(wanted, start, count);
        if (wanted.type == Type::int16) return scaled(wanted, start, count);
        const auto halves = read<std::uint16_t>(wanted, start, count);
        std::vector<float> values(halves.size());
        std::transform(halves.begin(), halves.end(), values.begin(), float_from_half);
        return values;
    }
};

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

kernels::AttentionInput AnalysisFile::Map::input() const {
    kernels::AttentionInput input;
    input.query = {query.data(),
                   kernels::ElementType::float32,
                   1,
                   heads,
                   queries,
                   key_size,
                   heads * queries * key_size,
                   queries * key_size,
                   key_size};
    input.key = {key.data(),
                 kernels::ElementType::float32,
                 1,
                 key_value_heads,
                 keys,
                 key_size,
                 key_value_heads * keys * key_size,
                 keys * key_size,
                 key_size};
    input.value = input.key;  // attention_weights reads no values; a view that is valid all the same
    input.rule = &rule;
    return input;
}

std::optional<AnalysisFile::Map> AnalysisFile::map(std::int64_t s, std::int64_t site) const {
    return read_map(s, site, std::nullopt);
}

std::optional<AnalysisFile::Map> AnalysisFile::map_of_head(std::int64_t s, std::int64_t site, std::int64_t head) const {
    return read_map(s, site, head);
}

std::optional<AnalysisFile::Map> AnalysisFile::read_map(std::int64_t s, std::int64_t site,
                                                        std::optional<std::int64_t> head) const {
    const Hdf5Lock lock;
    const std::string group = map_group(s, site);
    const DatasetSpec* query = impl_->schema.find(group + "/query");
    if (query == nullptr || !site_done(s, site)) return std::nullopt;
    impl_->refresh();
    const DatasetSpec& key = impl_->spec(group + "/key");
    const DatasetSpec& row_constant = impl_->spec(group + "/row_constant");
    const std::string at = impl_->where + ", " + group;
    const std::int64_t heads = query->shape[0], groups = key.shape[0];
    if (groups == 0 || heads % groups != 0) {
        throw Error(ErrorCode::format, at, "expected heads that the key-value heads divide",
                    "found " + std::to_string(heads) + " and " + std::to_string(groups));
    }
    if (head && (*head < 0 || *head >= heads)) {
        throw Error(ErrorCode::usage, at, "expected a head from 0 to " + std::to_string(heads - 1),
                    "found " + std::to_string(*head));
    }
    Map map;
    map.heads = head ? 1 : heads;
    map.key_value_heads = head ? 1 : groups;
    map.queries = query->shape[1];
    map.keys = key.shape[1];
    map.key_size = query->shape[2];
    const std::int64_t first = head.value_or(0), first_group = head ? *head / (heads / groups) : 0;
    map.query = impl_->floats(*query, {first, 0, 0}, {map.heads, map.queries, map.key_size});
    map.key = impl_->floats(key, {first_group, 0, 0}, {map.key_value_heads, map.keys, map.key_size});
    map.row_constant = impl_->floats(row_constant, {first, 0}, {map.heads, map.queries});
    map.rule = read_rule(impl_->file(), group, heads, impl_->bytes(), impl_->where);
    const kernels::BlockVisibility& blocks = map.rule.blocks;
    if (blocks.block_size > 0 && (map.keys + blocks.block_size - 1) / blocks.block_size > blocks.blocks) {
        throw Error(ErrorCode::format, at, "expected block visibility for every key", "found too few blocks");
    }
    if (head) map.rule = kernels::rule_of_head(map.rule, 0, *head, heads);
    return map;
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
