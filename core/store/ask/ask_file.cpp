// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/ask/ask_file.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/base/process/os_error.h"
#include "core/base/text/text.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {
namespace {

using hdf5::Type;

constexpr const char* kAskFormat = "headscope-ask";
constexpr std::int32_t kAskVersion = 1;
const std::string kTargets = "/streams/target";
constexpr std::int64_t kMostTables = 4096, kMostCells = std::int64_t{1} << 31U;

std::int64_t count_of(const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
}

/// Creates datasets with their scales and writes all of their numbers.
class AskWriter {
public:
    AskWriter(hid_t file, const AskRecord& record, std::string where)
        : file_(file), record_(record), where_(std::move(where)) {}

    void run() {
        attributes();
        scale("/table", std::ssize(record_.tables), "table, counted from 0");
        for (const AskDimension& dimension : record_.dimensions)
            scale(dimension.path, dimension.size, dimension.long_name);
        texts("/model/config", {}, "the model's configuration as JSON", {record_.config_json});
        texts("/model/mixer", {"/layer"}, "mixer of each layer", record_.mixers);
        texts("/interventions", {}, "interventions, TOML", {record_.interventions});
        sites();
        tokens();
        targets();
        std::vector<std::string> paths, axes, names, units;
        for (const AskTable& table : record_.tables) {
            paths.push_back(table.path);
            axes.emplace_back();
            for (const std::string& dimension : table.dimensions)
                axes.back() += (axes.back().empty() ? "" : ",") + dimension;
            names.push_back(table.long_name);
            units.push_back(table.units);
            write_numbers(table);
        }
        texts("/contents/path", {"/table"}, "paths of the tool's tables", paths);
        texts("/contents/dimensions", {"/table"}, "their dimensions", axes);
        texts("/contents/long_name", {"/table"}, "their meaning", names);
        texts("/contents/units", {"/table"}, "their units", units);
        words();
        scale("/name", std::ssize(record_.names), "list of names, counted from 0");
        std::vector<std::string> lists, along;
        for (const AskNames& list : record_.names) {
            lists.push_back(list.path);
            along.push_back(list.dimension);
            texts(list.path, {list.dimension}, list.long_name, list.values);
        }
        texts("/contents/name_path", {"/name"}, "paths of the tool's lists of names", lists);
        texts("/contents/name_dimension", {"/name"}, "their dimensions", along);
    }

private:
    void attributes() {
        const auto text = [&](const char* name, const std::string& value) {
            hdf5::write_attribute(file_, name, readable_utf8(value), where_);
        };
        text("format", kAskFormat);
        hdf5::write_attribute(file_, "format_version", Type::int32, &kAskVersion, 1, true, where_);
        text("tool", record_.tool);
        text("program_version", record_.program_version.empty() ? HEADSCOPE_VERSION : record_.program_version);
        text("created", record_.created.empty() ? utc_now() : record_.created);
        text("model_name", record_.model_name);
        text("model_type", record_.model_type);
        text("model_sha256", record_.model_sha256);
        text("settings", record_.settings_json);
        const std::int32_t complete = record_.complete ? 1 : 0;
        hdf5::write_attribute(file_, "complete", Type::int32, &complete, 1, true, where_);
    }

    void scale(const std::string& path, std::int64_t size, const std::string& long_name) {
        sizes_[path] = size;
        scales_[path] = create_scale(file_, {path, size, long_name, {}, ""}, where_);
    }

    hdf5::Handle create(const std::string& path, Type type, const std::vector<std::string>& dimensions,
                        const std::string& long_name, const std::string& units, hdf5::Shape& shape) {
        DatasetSpec spec;
        spec.path = path;
        spec.type = type;
        spec.dimensions = dimensions;
        for (const std::string& dimension : dimensions) spec.shape.push_back(sizes_.at(dimension));
        spec.long_name = long_name;
        spec.units = units;
        shape = spec.shape;
        hdf5::Handle dataset = create_dataset(file_, spec, where_);
        for (std::size_t i = 0; i < dimensions.size(); ++i)
            attach_scale(dataset, scales_.at(dimensions[i]), i, where_ + ", " + path);
        return dataset;
    }

    void texts(const std::string& path, const std::vector<std::string>& dimensions, const std::string& long_name,
               std::vector<std::string> values) {
        hdf5::Shape shape;
        const hdf5::Handle dataset = create(path, Type::text, dimensions, long_name, "", shape);
        for (std::string& value : values) value = readable_utf8(value);
        if (count_of(shape) > 0) hdf5::write_texts(dataset, shape, values, where_ + ", " + path);
    }

    template <class Number>
    void numbers(const std::string& path, Type type, const std::vector<std::string>& dimensions,
                 const std::string& long_name, const std::string& units, const std::vector<Number>& values) {
        hdf5::Shape shape;
        const hdf5::Handle dataset = create(path, type, dimensions, long_name, units, shape);
        if (!values.empty())
            hdf5::write_block(dataset, type, hdf5::Shape(shape.size(), 0), shape, values.data(), where_ + ", " + path);
    }

    void write_numbers(const AskTable& table) {
        if (!table.whole)
            return numbers(table.path, Type::float64, table.dimensions, table.long_name, table.units, table.values);
        std::vector<std::int64_t> whole;
        for (const double value : table.values)
            whole.push_back(std::isnan(value) ? -1 : static_cast<std::int64_t>(value));
        numbers(table.path, Type::int64, table.dimensions, table.long_name, table.units, whole);
    }

    void sites() {
        const auto text = [&](const char* name, std::string Site::*member, const char* long_name) {
            std::vector<std::string> values;
            for (const Site& site : record_.sites) values.push_back(site.*member);
            texts(std::string("/sites/") + name, {"/site"}, long_name, values);
        };
        const auto number = [&](const char* name, auto member, const char* long_name) {
            std::vector<std::int32_t> values;
            for (const Site& site : record_.sites) values.push_back(static_cast<std::int32_t>(site.*member));
            numbers(std::string("/sites/") + name, Type::int32, {"/site"}, long_name, "", values);
        };
        number("layer", &Site::layer, "layer that the site belongs to");
        text("stack", &Site::stack, "text, encoder or decoder");
        text("kind", &Site::kind, "self or cross");
        text("branch", &Site::branch, "empty, softmax, linear or difference");
        number("heads", &Site::heads, "query heads");
        number("key_value_heads", &Site::key_value_heads, "key-value heads");
        number("key_size", &Site::key_size, "size of a head's keys");
        number("value_size", &Site::value_size, "size of a head's values");
        number("has_matrix", &Site::has_matrix, "0: no attention matrix");
    }

    void tokens() { tokens("/tokens", record_.sequences); }

    void targets() {
        std::vector<SequenceTokens> read;
        bool any = false;
        for (const SequenceTokens& sequence : record_.sequences) {
            any = any || sequence.target;
            read.push_back(sequence.target ? *sequence.target : SequenceTokens());
        }
        if (any) tokens(kTargets, read);
    }

    void tokens(const std::string& group, const std::vector<SequenceTokens>& sequences) {
        const auto longest = static_cast<std::size_t>(sizes_.at("/token"));
        std::vector<std::int32_t> lengths, ids;
        std::vector<std::string> pieces, whole;
        for (const SequenceTokens& sequence : sequences) {
            lengths.push_back(static_cast<std::int32_t>(sequence.ids.size()));
            ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
            ids.resize(lengths.size() * longest, -1);
            pieces.insert(pieces.end(), sequence.pieces.begin(), sequence.pieces.end());
            pieces.resize(lengths.size() * longest);
            whole.push_back(sequence.text);
        }
        numbers(group + "/ids", Type::int32, {"/sequence", "/token"}, "token ids; -1 past a sequence's end", "", ids);
        numbers(group + "/length", Type::int32, {"/sequence"}, "tokens of each sequence", "token", lengths);
        texts(group + "/piece", {"/sequence", "/token"}, "what each token reads as", pieces);
        texts(group + "/text", {"/sequence"}, "the text", whole);
    }

    void words() {
        std::vector<std::int64_t> ids;
        std::vector<std::string> written;
        for (const auto& [id, text] : record_.words) {
            ids.push_back(id);
            written.push_back(text);
        }
        scale("/word", std::ssize(ids), "token of the tables, counted from 0");
        numbers("/words/id", Type::int64, {"/word"}, "token ids in the tables", kTokenUnits, ids);
        texts("/words/text", {"/word"}, "what they read as", written);
    }

    hid_t file_;
    const AskRecord& record_;
    std::string where_;
    std::map<std::string, hdf5::Handle> scales_;
    std::map<std::string, std::int64_t> sizes_;
};

class AskReader {
public:
    AskReader(hid_t file, std::uint64_t bytes, std::string where)
        : file_(file), bytes_(bytes), where_(std::move(where)) {}

    AskRecord run() {
        AskRecord record;
        const auto text = [&](const char* name) { return hdf5::read_text_attribute(file_, name, where_); };
        if (const std::string format = text("format"); format != kAskFormat)
            throw Error(ErrorCode::format, where_, "expected answers of headscope ask",
                        "found format " + escaped(format));
        std::int32_t version = 0, complete = 0;
        hdf5::read_attribute(file_, "format_version", Type::int32, &version, 1, where_);
        if (version != kAskVersion)
            throw Error(ErrorCode::unsupported, where_, "expected format version 1",
                        "found " + std::to_string(version));
        hdf5::read_attribute(file_, "complete", Type::int32, &complete, 1, where_);
        record.complete = complete != 0;
        record.tool = text("tool");
        record.program_version = text("program_version");
        record.created = text("created");
        record.model_name = text("model_name");
        record.model_type = text("model_type");
        record.model_sha256 = text("model_sha256");
        record.settings_json = text("settings");
        record.config_json = texts("/model/config", 0).at(0);
        record.interventions = texts("/interventions", 0).at(0);
        record.mixers = texts("/model/mixer", 1);
        sites(record);
        record.sequences = tokens("/tokens");
        if (hdf5::exists(file_, kTargets + "/ids")) targets(record);
        tables(record);
        if (hdf5::exists(file_, "/words/id")) words(record);
        if (hdf5::exists(file_, "/contents/name_path")) names(record);
        return record;
    }

private:
    std::vector<std::string> texts(const std::string& path, std::size_t rank) {
        std::vector<std::string> found =
            hdf5::read_texts(hdf5::open_dataset(file_, path, Type::text, rank, bytes_, where_), where_ + ", " + path);
        for (std::string& one : found) one = readable_utf8(one);
        return found;
    }

    template <class Number>
    std::vector<Number> numbers(const std::string& path, Type type, std::size_t rank, hdf5::Shape* shape = nullptr) {
        const auto opened = hdf5::open_dataset(file_, path, type, rank, bytes_, where_);
        const std::int64_t count = count_of(opened.shape);
        if (count < 0 || count > kMostCells)
            throw Error(ErrorCode::limit, where_ + ", " + path, "expected fewer numbers", "found too many");
        std::vector<Number> values(static_cast<std::size_t>(count));
        if (count > 0)
            hdf5::read_block(opened.id, type, hdf5::Shape(rank, 0), opened.shape, values.data(), where_ + ", " + path);
        if (shape) *shape = opened.shape;
        return values;
    }

    [[noreturn]] void uneven(const std::string& path) const {
        throw Error(ErrorCode::format, where_ + ", " + path, "expected as many rows as its neighbours",
                    "found another number");
    }

    void sites(AskRecord& record) {
        const auto layers = numbers<std::int32_t>("/sites/layer", Type::int32, 1);
        record.sites.resize(layers.size());
        const auto number = [&](const std::string& path, const auto& set) {
            const auto values = numbers<std::int32_t>(path, Type::int32, 1);
            if (values.size() != layers.size()) uneven(path);
            for (std::size_t i = 0; i < values.size(); ++i) set(record.sites[i], values[i]);
        };
        const auto text = [&](const std::string& path, std::string Site::*member) {
            const auto values = texts(path, 1);
            if (values.size() != layers.size()) uneven(path);
            for (std::size_t i = 0; i < values.size(); ++i) record.sites[i].*member = values[i];
        };
        number("/sites/layer", [](Site& site, std::int32_t value) { site.layer = value; });
        number("/sites/heads", [](Site& site, std::int32_t value) { site.heads = value; });
        number("/sites/key_value_heads", [](Site& site, std::int32_t value) { site.key_value_heads = value; });
        number("/sites/key_size", [](Site& site, std::int32_t value) { site.key_size = value; });
        number("/sites/value_size", [](Site& site, std::int32_t value) { site.value_size = value; });
        number("/sites/has_matrix", [](Site& site, std::int32_t value) { site.has_matrix = value != 0; });
        text("/sites/stack", &Site::stack);
        text("/sites/kind", &Site::kind);
        text("/sites/branch", &Site::branch);
    }

    void targets(AskRecord& record) {
        std::vector<SequenceTokens> read = tokens(kTargets);
        if (read.size() != record.sequences.size()) uneven(kTargets);
        for (std::size_t s = 0; s < read.size(); ++s)
            record.sequences[s].target = std::make_shared<const SequenceTokens>(std::move(read[s]));
    }

    std::vector<SequenceTokens> tokens(const std::string& group) {
        hdf5::Shape shape;
        const auto ids = numbers<std::int32_t>(group + "/ids", Type::int32, 2, &shape);
        const auto lengths = numbers<std::int32_t>(group + "/length", Type::int32, 1);
        const auto pieces = texts(group + "/piece", 2), whole = texts(group + "/text", 1);
        if (std::ssize(lengths) != shape[0] || pieces.size() != ids.size() || whole.size() != lengths.size())
            uneven(group);
        std::vector<SequenceTokens> sequences;
        for (std::int64_t s = 0; s < shape[0]; ++s) {
            const std::int64_t length = lengths[static_cast<std::size_t>(s)], begin = s * shape[1];
            if (length < 0 || length > shape[1]) uneven(group + "/length");
            SequenceTokens sequence;
            sequence.ids.assign(ids.begin() + begin, ids.begin() + begin + length);
            sequence.pieces.assign(pieces.begin() + begin, pieces.begin() + begin + length);
            sequence.text = whole[static_cast<std::size_t>(s)];
            sequences.push_back(std::move(sequence));
        }
        return sequences;
    }

    void words(AskRecord& record) {
        const auto ids = numbers<std::int64_t>("/words/id", Type::int64, 1);
        const auto written = texts("/words/text", 1);
        if (ids.size() != written.size()) uneven("/words");
        for (std::size_t i = 0; i < ids.size(); ++i) record.words[ids[i]] = written[i];
    }

    void names(AskRecord& record) {
        const auto paths = texts("/contents/name_path", 1), along = texts("/contents/name_dimension", 1);
        if (paths.size() != along.size() || std::ssize(paths) > kMostTables) uneven("/contents/name_path");
        for (std::size_t i = 0; i < paths.size(); ++i) {
            record.names.push_back({paths[i], along[i], "", texts(paths[i], 1)});
            const std::int64_t size = std::ssize(record.names.back().values);
            record.add_dimension(along[i], size, "");
            if (record.size_of(along[i]) != size) uneven(paths[i]);
        }
    }

    void tables(AskRecord& record) {
        const auto paths = texts("/contents/path", 1), axes = texts("/contents/dimensions", 1);
        const auto names = texts("/contents/long_name", 1), units = texts("/contents/units", 1);
        const bool even = paths.size() == axes.size() && paths.size() == names.size() && paths.size() == units.size();
        if (!even || std::ssize(paths) > kMostTables) uneven("/contents");
        for (std::size_t n = 0; n < paths.size(); ++n) {
            AskTable table;
            table.path = paths[n];
            table.long_name = names[n];
            table.units = units[n];
            for (std::size_t begin = 0; begin < axes[n].size();) {
                const std::size_t end = std::min(axes[n].find(',', begin), axes[n].size());
                table.dimensions.push_back(axes[n].substr(begin, end - begin));
                begin = end + 1;
            }
            hdf5::Shape shape;
            read_numbers(table, shape);
            for (std::size_t i = 0; i < shape.size(); ++i) {
                record.add_dimension(table.dimensions[i], shape[i], "");
                if (record.size_of(table.dimensions[i]) != shape[i]) uneven(table.path);
            }
            record.tables.push_back(std::move(table));
        }
    }

    void read_numbers(AskTable& table, hdf5::Shape& shape) {
        const std::size_t rank = table.dimensions.size();
        try {
            table.values = numbers<double>(table.path, Type::float64, rank, &shape);
        } catch (const Error& error) {
            if (error.code() != ErrorCode::format) throw;
            table.whole = true;
            const auto whole = numbers<std::int64_t>(table.path, Type::int64, rank, &shape);
            table.values.assign(whole.begin(), whole.end());
        }
    }

    hid_t file_;
    std::uint64_t bytes_;
    std::string where_;
};

}  // namespace

void write_ask(const std::filesystem::path& path, const AskRecord& record,
               std::span<const std::filesystem::path> inputs) {
    OutputFile output(path, inputs, "ask file");
    {
        const Hdf5Lock lock;
        hdf5::prepare();
        const std::string where = shown(output.partial_path());
        const hdf5::Handle file = hdf5::create_file(output.partial_path());
        AskWriter(file, record, where).run();
        hdf5::flush(file, where);
        hdf5::check_writes(file, where);
    }
    output.publish();
}

AskRecord read_ask(const std::filesystem::path& path) {
    const std::uint64_t bytes = InputFile(path, "ask file").size();  // refuses what is no regular file
    const std::string where = shown(path);
    const Hdf5Lock lock;
    hdf5::prepare();
    const hdf5::Handle file = hdf5::open_file(path, where);
    return AskReader(file, bytes, where).run();
}

}  // namespace headscope::store
