// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_header_read.h"

#include <algorithm>
#include <limits>
#include <span>

#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/store/analysis/schema.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {
namespace {

using hdf5::Type;

constexpr std::int64_t most_heads_of_a_site = std::int64_t{1} << 20U;
// Content read at opening is held in memory, several times its bytes in the file.
constexpr std::int64_t most_tokens = std::int64_t{1} << 23U;  ///< sequences times the longest one
constexpr std::int64_t most_sites = std::int64_t{1} << 16U;
/// A dataset's description in the file is never smaller, so that a small file cannot name a million of them.
constexpr std::uint64_t least_description = 128;
constexpr double most_distance = 1 << 24;

class Reader {
public:
    Reader(hid_t file, std::uint64_t bytes, const std::string& where) : file_(file), bytes_(bytes), where_(where) {}

    AnalysisHeader run() {
        root_attributes();
        model_and_sites();
        h_.sequences = tokens("/tokens", -1);
        pairs();
        hashes();
        for (const Site& site : h_.sites) {
            stream(site.query_stream);
            stream(site.key_stream);
        }
        const auto longest = hdf5::open_dataset(file_, "/tokens/ids", Type::int32, 2, bytes_, where_).shape[1];
        if (longest != h_.longest() || longest == 0) {
            refuse("/tokens/length", "expected a longest sequence of " + std::to_string(longest) + " tokens",
                   "found " + std::to_string(h_.longest()));
        }
        records();
        return std::move(h_);
    }

private:
    [[noreturn]] void refuse(const std::string& path, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, where_ + ", " + path, expected, found);
    }

    void root_attributes() {
        const hdf5::Handle root = hdf5::open_group(file_, "/", where_);
        check_cancellation();
        if (H5Aexists(root, "format") <= 0 || hdf5::read_text_attribute(root, "format", where_) != format_name) {
            throw Error(ErrorCode::format, where_, "expected an analysis file (attribute format = headscope-analysis)",
                        "found another HDF5 file");
        }
        std::int32_t version = 0;
        hdf5::read_attribute(root, "format_version", Type::int32, &version, 1, where_);
        if (version < 1 || version > format_version) {
            throw Error(ErrorCode::unsupported, where_,
                        "expected format_version 1 or " + std::to_string(format_version),
                        "found " + std::to_string(version));
        }
        h_.thumbnails_float16 = version == 1;
        const auto text = [&](const char* name) { return hdf5::read_text_attribute(root, name, where_); };
        h_.program_version = text("program_version");
        h_.created = text("created");
        h_.model_name = text("model_name");
        h_.model_type = text("model_type");
        h_.model_sha256 = text("model_sha256");
        h_.settings_json = text("settings");
        hdf5::read_attribute(root, "seed", Type::uint64, &h_.seed, 1, where_);
        hdf5::read_attribute(root, "max_positions", Type::int64, &h_.max_positions, 1, where_);
        h_.record.maps = hdf5::exists(file_, "/maps") || H5Aexists(root, "map_type") > 0;
        if (!h_.record.maps) return;
        const std::string type = text("map_type");
        for (const MapType known : {MapType::float32, MapType::int16, MapType::float16})
            if (type == map_type_name(known)) {
                h_.map_type = known;
                return;
            }
        refuse("/maps", "expected map_type float32, int16 or float16", "found " + escaped(type));
    }

    std::vector<std::string> texts(const std::string& path, const hdf5::Shape& shape) {
        const auto opened = open(path, Type::text, shape);
        std::vector<std::string> values = hdf5::read_texts(opened, where_ + ", " + path);
        for (std::string& value : values) value = readable_utf8(value);
        return values;
    }

    std::vector<std::int32_t> integers(const std::string& path, const hdf5::Shape& shape) {
        const auto opened = open(path, Type::int32, shape);
        std::size_t count = 1;
        for (const std::int64_t size : opened.shape) count *= static_cast<std::size_t>(size);
        std::vector<std::int32_t> values(count);
        hdf5::read_block(opened.id, Type::int32, hdf5::Shape(opened.shape.size(), 0), opened.shape, values.data(),
                         where_ + ", " + path);
        return values;
    }

    /// -1 in `shape`: any size.
    hdf5::CheckedDataset open(const std::string& path, Type type, const hdf5::Shape& shape) {
        auto opened = hdf5::open_dataset(file_, path, type, shape.size(), bytes_, where_);
        for (std::size_t i = 0; i < shape.size(); ++i) {
            if (shape[i] >= 0 && shape[i] != opened.shape[i]) {
                refuse(path, "expected the shape " + hdf5::shape_text(shape),
                       "found " + hdf5::shape_text(opened.shape));
            }
        }
        return opened;
    }

    void model_and_sites() {
        h_.config_json = texts("/model/config", {}).front();
        h_.mixers = texts("/model/mixer", {-1});
        const std::vector<std::int32_t> layers = integers("/sites/layer", {-1});
        const auto n = static_cast<std::int64_t>(layers.size());
        if (n < 1 || n > most_sites)
            refuse("/sites", "expected 1 to " + std::to_string(most_sites), "found " + std::to_string(n));
        h_.sites.resize(layers.size());
        const auto text = [&](const char* name, std::string Site::*member) {
            const auto values = texts(std::string("/sites/") + name, {n});
            for (std::size_t i = 0; i < values.size(); ++i) h_.sites[i].*member = values[i];
        };
        const auto number = [&](const char* name, auto member, std::int64_t most) {
            const std::string path = std::string("/sites/") + name;
            const auto values = integers(path, {n});
            for (std::size_t i = 0; i < values.size(); ++i) {
                if (values[i] < 0 || values[i] > most)
                    refuse(path, "expected 0 to " + std::to_string(most), "found " + std::to_string(values[i]));
                h_.sites[i].*member = static_cast<std::remove_reference_t<decltype(h_.sites[i].*member)>>(values[i]);
            }
        };
        number("layer", &Site::layer, static_cast<std::int64_t>(h_.mixers.size()) - 1);
        text("stack", &Site::stack);
        text("kind", &Site::kind);
        text("branch", &Site::branch);
        text("query_stream", &Site::query_stream);
        text("key_stream", &Site::key_stream);
        number("heads", &Site::heads, most_heads_of_a_site);
        number("key_value_heads", &Site::key_value_heads, most_heads_of_a_site);
        number("key_size", &Site::key_size, most_heads_of_a_site);
        number("value_size", &Site::value_size, most_heads_of_a_site);
        number("causal", &Site::causal, 1);
        number("has_matrix", &Site::has_matrix, 1);
        if (hdf5::exists(file_, "/sites/has_implicit")) number("has_implicit", &Site::has_implicit, 1);
        for (const Site& site : h_.sites) {
            if ((site.has_matrix || site.has_implicit) && (site.heads < 1 || site.key_value_heads < 1))
                refuse("/sites/heads", "expected heads at every site with a matrix", "found none");
            if (site.has_matrix && site.has_implicit)
                refuse("/sites/has_implicit", "expected 0 at every site with a matrix of its own", "found 1");
            if (site.has_implicit && site.query_stream != site.key_stream)
                refuse("/sites/has_implicit", "expected 0 where queries and keys are of two texts", "found 1");
        }
        measured_layers(integers("/sites/measured", {n}));
    }

    void measured_layers(const std::vector<std::int32_t>& measured) {
        bool all = true;
        for (std::size_t i = 0; i < measured.size(); ++i)
            all = all && (measured[i] != 0 || !(h_.sites[i].has_matrix || h_.sites[i].has_implicit));
        if (all) return;
        h_.measured_layers.insert(-1);  // an empty set would mean all
        for (std::size_t i = 0; i < measured.size(); ++i) {
            if (measured[i] != 0) h_.measured_layers.insert(h_.sites[i].layer);
        }
    }

    std::vector<SequenceTokens> tokens(const std::string& group, std::int64_t count) {
        const auto lengths = integers(group + "/length", {count});
        const auto s = static_cast<std::int64_t>(lengths.size());
        if (s == 0) refuse(group, "expected a sequence", "found none");
        const auto shape = hdf5::open_dataset(file_, group + "/ids", Type::int32, 2, bytes_, where_).shape;
        if (shape[0] != s || shape[1] > most_tokens / s) {
            throw Error(ErrorCode::limit, where_ + ", " + group + "/ids",
                        "expected " + std::to_string(s) + " sequences of at most " + std::to_string(most_tokens) +
                            " tokens together",
                        "found " + hdf5::shape_text(shape));
        }
        const auto ids = integers(group + "/ids", {s, -1});
        const auto longest = static_cast<std::int64_t>(ids.size()) / s;
        const auto offsets = integers(group + "/offset", {s, longest, 2});
        const auto pieces = texts(group + "/piece", {s, longest});
        const auto text = texts(group + "/text", {s});
        std::vector<SequenceTokens> sequences(lengths.size());
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            if (lengths[i] < 0 || lengths[i] > longest) {
                refuse(group + "/length", "expected 0 to " + std::to_string(longest),
                       "found " + std::to_string(lengths[i]));
            }
            SequenceTokens& sequence = sequences[i];
            const auto first = static_cast<std::ptrdiff_t>(i) * longest;
            sequence.ids.assign(ids.begin() + first, ids.begin() + first + lengths[i]);
            sequence.pieces.assign(pieces.begin() + first, pieces.begin() + first + lengths[i]);
            for (std::ptrdiff_t t = first; t < first + lengths[i]; ++t) {
                sequence.offsets.push_back(
                    {offsets[static_cast<std::size_t>(2 * t)], offsets[static_cast<std::size_t>(2 * t + 1)]});
            }
            sequence.text = text[i];
        }
        return sequences;
    }

    /// Token types and regions of pairs; a sequence that is none has -1 throughout.
    void pairs() {
        if (!hdf5::exists(file_, "/tokens/region")) return;
        const auto marks = [&](const std::string& path, std::vector<std::int32_t> SequenceTokens::*member,
                               std::int32_t most) {
            const auto values = integers(path, {static_cast<std::int64_t>(h_.sequences.size()), -1});
            const std::size_t longest = values.size() / h_.sequences.size();
            for (std::size_t s = 0; s < h_.sequences.size(); ++s) {
                const std::size_t size = h_.sequences[s].ids.size();
                const auto first = values.begin() + static_cast<std::ptrdiff_t>(s * longest);
                if (size > longest) refuse(path, "expected as many values as tokens", "found fewer");
                const std::span<const std::int32_t> own(first, size);
                if (std::all_of(own.begin(), own.end(), [](std::int32_t value) { return value == -1; })) continue;
                for (const std::int32_t value : own) {
                    if (value < 0 || value > most)
                        refuse(path, "expected 0 to " + std::to_string(most), "found " + std::to_string(value));
                }
                (h_.sequences[s].*member).assign(own.begin(), own.end());
            }
        };
        marks("/tokens/region", &SequenceTokens::regions, 2);
        marks("/tokens/type", &SequenceTokens::types, std::numeric_limits<std::int32_t>::max());
    }

    void hashes() {
        if (!hdf5::exists(file_, "/tokens/hash")) return;
        const auto values = texts("/tokens/hash", {static_cast<std::int64_t>(h_.sequences.size()), -1});
        const std::size_t longest = values.size() / h_.sequences.size();
        for (std::size_t s = 0; s < h_.sequences.size(); ++s) {
            const std::size_t size = h_.sequences[s].ids.size();
            if (size > longest) refuse("/tokens/hash", "expected as many texts as tokens", "found fewer");
            const auto first = values.begin() + static_cast<std::ptrdiff_t>(s * longest);
            h_.sequences[s].hashes.assign(first, first + static_cast<std::ptrdiff_t>(size));
        }
    }

    void stream(const std::string& name) {
        if (name == "tokens" || h_.streams.contains(name)) return;
        if (!is_stream_name(name))
            refuse("/sites", "expected stream names of letters, digits and _", "found " + escaped(name));
        h_.streams[name] = tokens("/streams/" + name, static_cast<std::int64_t>(h_.sequences.size()));
    }

    void records() {
        const auto shape = [&](const char* path, Type type, std::size_t rank) {
            return hdf5::open_dataset(file_, path, type, rank, bytes_, where_).shape;
        };
        const auto counts = hdf5::open_dataset(file_, "/logits/counts", Type::uint64, 4, bytes_, where_);
        hdf5::read_attribute(counts.id, "row_step", Type::int64, &h_.histogram_row_step, 1,
                             where_ + ", /logits/counts");
        if (h_.histogram_row_step < 1) refuse("/logits/counts", "expected a row_step of at least 1", "found less");

        const auto distances = open("/local_distance", Type::float64, {-1});
        std::vector<double> values(static_cast<std::size_t>(distances.shape[0]));
        hdf5::read_block(distances.id, Type::float64, {0}, distances.shape, values.data(), where_);
        h_.local_distances.clear();
        for (const double value : values) {
            if (!(value >= 0 && value < 1e9))
                refuse("/local_distance", "expected distances of at least 0", "found another");
            h_.local_distances.push_back(static_cast<std::int64_t>(value));
        }
        h_.record.attention = hdf5::exists(file_, "/attention");
        h_.record.implicit = hdf5::exists(file_, "/implicit_attention");
        h_.record.norms = hdf5::exists(file_, "/value_products");
        h_.record.branches = hdf5::exists(file_, "/branch_weights");
        h_.record.states = hdf5::exists(file_, "/states/q_norm");
        h_.record.logits = hdf5::exists(file_, "/output/logits");
        if (h_.record.logits) h_.vocabulary = shape("/output/logits", Type::float32, 3)[2];
        if (hdf5::exists(file_, "/output/class_logits"))
            h_.classes = shape("/output/class_logits", Type::float32, 2)[1];
        if (hdf5::exists(file_, "/states/hidden_norm"))
            h_.hidden_boundaries = shape("/states/hidden_norm", Type::float32, 3)[1];
        if (hdf5::exists(file_, "/parameters/distance_bias")) {
            h_.bias_window = shape("/parameters/distance_bias", Type::float32, 3)[2];
            const auto scale = open("/distance", Type::float64, {h_.bias_window});
            double first = 0;
            hdf5::read_block(scale.id, Type::float64, {0}, {1}, &first, where_);
            if (!(std::abs(first) <= most_distance))
                refuse("/distance", "expected distances of a text", "found " + std::to_string(first));
            h_.bias_first = static_cast<std::int64_t>(first);
        }
        h_.has_slopes = hdf5::exists(file_, "/parameters/slope");
        h_.has_offsets = hdf5::exists(file_, "/parameters/offset");
        if (hdf5::exists(file_, "/parameters/head_embedding"))
            h_.head_embedding_size = shape("/parameters/head_embedding", Type::float32, 4)[3];
        if (hdf5::exists(file_, "/token_types")) {
            const auto types = hdf5::open_dataset(file_, "/token_types", Type::int8, 4, bytes_, where_);
            hdf5::read_attribute(types.id, "chunk_size", Type::int64, &h_.type_chunk, 1, where_ + ", /token_types");
            if (h_.type_chunk < 1 || h_.type_chunk > std::numeric_limits<std::int32_t>::max()) {
                refuse("/token_types", "expected a chunk_size from 1 to 2^31 - 1",
                       "found " + std::to_string(h_.type_chunk));
            }
        }
        if (hdf5::exists(file_, "/experts")) experts();
        const auto pairs = static_cast<std::uint64_t>(h_.sequences.size()) * h_.sites.size();
        if ((h_.record.maps || h_.record.attention || h_.record.implicit || h_.record.norms) &&
            pairs > bytes_ / least_description) {
            refuse(h_.record.maps ? "/maps" : "/attention",
                   "expected a file that can hold those of " + std::to_string(pairs) + " sequences and sites",
                   "found " + std::to_string(bytes_) + " bytes");
        }
    }

    void experts() {
        const auto index = hdf5::open_dataset(file_, "/experts/index", Type::int16, 4, bytes_, where_);
        hdf5::read_attribute(index.id, "experts", Type::int64, &h_.experts, 1, where_ + ", /experts/index");
        h_.record.experts = true;
        h_.experts_per_token = index.shape[3];
        if (h_.experts < 1 || h_.experts > most_experts) {
            refuse("/experts/index", "expected 1 to " + std::to_string(most_experts) + " experts",
                   "found " + std::to_string(h_.experts));
        }
        if (h_.experts_per_token < 1 || h_.experts_per_token > h_.experts) {
            refuse("/experts/index", "expected 1 to " + std::to_string(h_.experts) + " experts of a token",
                   "found " + std::to_string(h_.experts_per_token));
        }
    }

    hid_t file_;
    std::uint64_t bytes_;
    const std::string& where_;
    AnalysisHeader h_;
};

}  // namespace

AnalysisHeader read_header(hid_t file, std::uint64_t file_bytes, const std::string& where) {
    return Reader(file, file_bytes, where).run();
}

}  // namespace headscope::store
