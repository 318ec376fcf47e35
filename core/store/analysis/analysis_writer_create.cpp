// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/analysis/analysis_writer_create.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <unordered_map>

#include "core/base/io/free_space.h"
#include "core/base/process/os_error.h"
#include "core/store/analysis/rule_storage.h"
#include "core/store/analysis/scale_storage.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store {
namespace {

using hdf5::Handle;
using hdf5::Type;

class Creator {
public:
    Creator(const std::filesystem::path& path, const AnalysisHeader& header, const Schema& schema)
        : path_(path), where_(shown(path)), header_(header), schema_(schema) {}

    Handle run() {
        check_free_space();
        file_ = hdf5::create_file(path_);
        root_attributes();
        create_all();
        model_and_sites();
        tokens("/tokens", header_.sequences);
        for (const auto& [name, stream] : header_.streams) tokens("/streams/" + name, stream);
        histogram();
        if (header_.type_chunk > 0) {
            attribute("/token_types", "chunk_size", Type::int64, &header_.type_chunk);
            fill_bytes("/token_types", -1);
        }
        if (header_.record.experts) attribute("/experts/index", "experts", Type::int64, &header_.experts);
        if (header_.record.maps) rules();
        if (header_.record.logits) absent_logits();
        fill_bytes("/sites/done", 0);
        datasets_.clear();
        hdf5::flush(file_, where_);
        reserve_space();
        return std::move(file_);
    }

private:
    hid_t dataset(const std::string& path) { return datasets_.at(path); }

    /// A disk that is full is found now, not after an hour of computing.
    void check_free_space() const {
        double bytes = 0;
        for (const DatasetSpec& spec : schema_.datasets) {
            double size = spec.type == Type::text ? static_cast<double>(spec.text_bytes)
                                                  : static_cast<double>(hdf5::type_size(spec.type));
            for (const std::int64_t dimension : spec.shape) size *= static_cast<double>(dimension);
            bytes += size;
        }
        expect_free_space(path_, bytes, "this analysis file");
    }

    /// Datasets that are written later hold no disk blocks yet: ask for them, where the file system can promise.
    void reserve_space() const {
        const int descriptor = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
        if (descriptor < 0) throw os_error(errno, path_, "expected to write this analysis file");
        struct stat status {};
        int result = ::fstat(descriptor, &status);
        if (result == 0 && status.st_size > 0) result = ::fallocate(descriptor, 0, 0, status.st_size);
        const int number = errno;
        ::close(descriptor);
        if (result != 0 && (number == ENOSPC || number == EDQUOT || number == EFBIG || number == EIO)) {
            throw os_error(number, path_, "expected to reserve this analysis file's space");
        }
    }

    void root_attributes() {
        const auto text = [&](const char* name, const std::string& value) {
            hdf5::write_attribute(file_, name, value, where_);
        };
        text("format", format_name);
        hdf5::write_attribute(file_, "format_version", Type::int32, &format_version, 1, true, where_);
        text("program_version", header_.program_version);
        text("created", header_.created);
        text("model_name", header_.model_name);
        text("model_type", header_.model_type);
        text("model_sha256", header_.model_sha256);
        text("settings", header_.settings_json);
        hdf5::write_attribute(file_, "seed", Type::uint64, &header_.seed, 1, true, where_);
        hdf5::write_attribute(file_, "max_positions", Type::int64, &header_.max_positions, 1, true, where_);
        if (header_.record.maps) text("map_type", map_type_name(header_.map_type));
        const std::int32_t complete = 0;
        hdf5::write_attribute(file_, "complete", Type::int32, &complete, 1, true, where_);
    }

    void create_all() {
        std::unordered_map<std::string, Handle> scales;
        for (const ScaleSpec& spec : schema_.scales) scales[spec.path] = create_scale(file_, spec, where_);
        for (const DatasetSpec& spec : schema_.datasets) {
            Handle created = create_dataset(file_, spec, where_);
            for (std::size_t i = 0; i < spec.dimensions.size(); ++i) {
                attach_scale(created, scales.at(spec.dimensions[i]), i, where_ + ", " + spec.path);
            }
            hdf5::check_writes(file_, where_);
            // Handles of large files run into tens of thousands: keep only what is written here.
            if (spec.fill == Fill::absent || spec.path == "/output/logits") datasets_[spec.path] = std::move(created);
        }
    }

    void attribute(const std::string& path, const char* name, Type type, const void* value) {
        hdf5::write_attribute(dataset(path), name, type, value, 1, true, where_ + ", " + path);
    }

    void write(const std::string& path, Type type, const void* values) {
        const DatasetSpec& spec = *schema_.find(path);
        hdf5::write_block(dataset(path), type, hdf5::Shape(spec.shape.size(), 0), spec.shape, values,
                          where_ + ", " + path);
    }

    void fill_bytes(const std::string& path, std::int8_t value) {
        const DatasetSpec& spec = *schema_.find(path);
        std::int64_t count = 1;
        for (const std::int64_t size : spec.shape) count *= size;
        const std::vector<std::int8_t> values(static_cast<std::size_t>(count), value);
        write(path, Type::int8, values.data());
    }

    /// `texts` in the order of the dataset's elements; missing ones at the end stay empty.
    void write_texts(const std::string& path, const std::vector<std::string>& texts) {
        hdf5::write_texts(dataset(path), schema_.find(path)->shape, texts, where_ + ", " + path);
    }

    void model_and_sites() {
        write_texts("/model/config", {header_.config_json});
        write_texts("/model/mixer", header_.mixers);
        const auto texts = [&](const char* name, std::string Site::*member) {
            std::vector<std::string> values;
            for (const Site& site : header_.sites) values.push_back(site.*member);
            write_texts(std::string("/sites/") + name, values);
        };
        const auto numbers = [&](const char* name, auto member) {
            std::vector<std::int32_t> values;
            for (const Site& site : header_.sites) values.push_back(static_cast<std::int32_t>(site.*member));
            write(std::string("/sites/") + name, Type::int32, values.data());
        };
        texts("stack", &Site::stack);
        texts("kind", &Site::kind);
        texts("branch", &Site::branch);
        texts("query_stream", &Site::query_stream);
        texts("key_stream", &Site::key_stream);
        numbers("layer", &Site::layer);
        numbers("heads", &Site::heads);
        numbers("key_value_heads", &Site::key_value_heads);
        numbers("key_size", &Site::key_size);
        numbers("value_size", &Site::value_size);
        numbers("causal", &Site::causal);
        numbers("has_matrix", &Site::has_matrix);
        if (header_.has_implicit()) numbers("has_implicit", &Site::has_implicit);
        std::vector<std::int32_t> measured;
        for (const Site& site : header_.sites)
            measured.push_back(header_.measured(site) || header_.measured_implicit(site) ? 1 : 0);
        write("/sites/measured", Type::int32, measured.data());
    }

    void tokens(const std::string& group, const std::vector<SequenceTokens>& sequences) {
        const auto longest = static_cast<std::size_t>(header_.longest());
        std::vector<std::int32_t> lengths, ids, offsets;
        std::vector<std::string> pieces, hashes, texts;
        for (const SequenceTokens& sequence : sequences) {
            lengths.push_back(static_cast<std::int32_t>(sequence.ids.size()));
            ids.insert(ids.end(), sequence.ids.begin(), sequence.ids.end());
            ids.resize(lengths.size() * longest, -1);
            pieces.insert(pieces.end(), sequence.pieces.begin(), sequence.pieces.end());
            pieces.resize(lengths.size() * longest);
            hashes.insert(hashes.end(), sequence.hashes.begin(), sequence.hashes.end());
            hashes.resize(lengths.size() * longest);
            for (const auto& [begin, end] : sequence.offsets) {
                if (end > std::numeric_limits<std::int32_t>::max()) {
                    throw Error(ErrorCode::limit, where_, "expected texts below 2 GiB", "found a longer one");
                }
                offsets.push_back(static_cast<std::int32_t>(begin));
                offsets.push_back(static_cast<std::int32_t>(end));
            }
            offsets.resize(lengths.size() * longest * 2, -1);
            texts.push_back(sequence.text);
        }
        write(group + "/length", Type::int32, lengths.data());
        write(group + "/ids", Type::int32, ids.data());
        write(group + "/offset", Type::int32, offsets.data());
        write_texts(group + "/piece", pieces);
        write_texts(group + "/text", texts);
        if (schema_.find(group + "/hash") != nullptr) write_texts(group + "/hash", hashes);
        if (schema_.find(group + "/region") == nullptr) return;
        marks(group + "/type", sequences, &SequenceTokens::types);
        marks(group + "/region", sequences, &SequenceTokens::regions);
    }

    /// A number a token; -1 where a sequence has none.
    void marks(const std::string& path, const std::vector<SequenceTokens>& sequences,
               std::vector<std::int32_t> SequenceTokens::*member) {
        const auto longest = static_cast<std::size_t>(header_.longest());
        std::vector<std::int32_t> values;
        for (std::size_t s = 0; s < sequences.size(); ++s) {
            const auto& numbers = sequences[s].*member;
            values.insert(values.end(), numbers.begin(), numbers.end());
            values.resize((s + 1) * longest, -1);
        }
        write(path, Type::int32, values.data());
    }

    void histogram() {
        write("/logits/edges", Type::float64, kernels::histogram_edges().data());
        const std::int64_t row_step = header_.row_step();
        attribute("/logits/counts", "row_step", Type::int64, &row_step);
    }

    void rules() {
        for (std::size_t s = 0; s < header_.sequences.size(); ++s) {
            for (std::size_t i = 0; i < header_.sites.size(); ++i) {
                if (!header_.measured(header_.sites[i])) continue;
                const std::string path = map_group(static_cast<std::int64_t>(s), static_cast<std::int64_t>(i));
                create_rule(hdf5::open_group(file_, path, where_), header_.sites[i].heads, where_ + ", " + path);
            }
        }
    }

    /// The logits are allocated without being filled; what no one will write, past the ends, is marked absent here.
    void absent_logits() {
        const std::string path = "/output/logits";
        const std::vector<float> row(static_cast<std::size_t>(header_.vocabulary),
                                     std::numeric_limits<float>::quiet_NaN());
        const std::vector<SequenceTokens>& sequences = header_.output_sequences();
        for (std::size_t s = 0; s < sequences.size(); ++s) {
            for (auto i = static_cast<std::int64_t>(sequences[s].ids.size()); i < header_.longest(); ++i) {
                hdf5::write_block(dataset(path), Type::float32, {static_cast<std::int64_t>(s), i, 0},
                                  {1, 1, header_.vocabulary}, row.data(), where_ + ", " + path);
            }
        }
    }

    const std::filesystem::path& path_;
    const std::string where_;
    const AnalysisHeader& header_;
    const Schema& schema_;
    Handle file_;
    std::unordered_map<std::string, Handle> datasets_;
};

void make_readable(std::vector<SequenceTokens>& sequences) {
    for (SequenceTokens& sequence : sequences) {
        for (std::string& piece : sequence.pieces) piece = readable_utf8(piece);
        sequence.text = readable_utf8(sequence.text);
    }
}

}  // namespace

AnalysisHeader checked_header(const AnalysisHeader& header) {
    AnalysisHeader out = header;
    make_readable(out.sequences);
    const auto refuse_unless = [](bool good, const char* expected, const char* found) {
        if (!good) throw Error(ErrorCode::internal, "analysis header", expected, found);
    };
    refuse_unless(out.map_type != MapType::float16, "expected maps of float32 or int16", "found float16");
    refuse_unless(!out.sequences.empty() && out.longest() > 0, "expected a sequence with a token", "found none");
    for (auto& [name, stream] : out.streams) {
        make_readable(stream);
        refuse_unless(is_stream_name(name), "expected stream names of letters, digits and _", "found another");
        refuse_unless(stream.size() == out.sequences.size(), "expected as many sequences in each stream",
                      "found others");
    }
    for (const SequenceTokens& sequence : out.sequences) {
        refuse_unless(sequence.pieces.empty() || sequence.pieces.size() == sequence.ids.size(),
                      "expected a piece for each token", "found another number");
        refuse_unless(sequence.hashes.empty() || sequence.hashes.size() == sequence.ids.size(),
                      "expected a hash for each token", "found another number");
        for (const auto* marks : {&sequence.types, &sequence.regions})
            refuse_unless(marks->empty() || marks->size() == sequence.ids.size(),
                          "expected a type and a region for each token of a pair", "found another number");
        refuse_unless(sequence.offsets.empty() || sequence.offsets.size() == sequence.ids.size(),
                      "expected an offset for each token", "found another number");
    }
    return out;
}

Handle create_analysis(const std::filesystem::path& path, const AnalysisHeader& header, const Schema& schema) {
    return Creator(path, header, schema).run();
}

}  // namespace headscope::store
