// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/token_storage.h"

#include <algorithm>
#include <limits>

#include "core/base/io/input_file.h"
#include "core/base/io/sha256.h"
#include "core/base/process/os_error.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/hdf5_lock.h"

namespace headscope::store {
namespace {

using hdf5::Handle;
using hdf5::Type;

constexpr std::int64_t format_version = 2;  // 1: texts of fixed length
constexpr auto format_name = "headscope-tokens";

hid_t token_type(int bytes_per_token) {
    return bytes_per_token == 2 ? H5T_STD_U16LE : H5T_STD_U32LE;
}

class Creator {
public:
    explicit Creator(const std::filesystem::path& path)
        : where_(shown(path)), file_(hdf5::create_file(path)), root_(hdf5::open_group(file_, "/", where_)) {}

    void attribute(const std::string& name, const std::string& text) {
        hdf5::write_attribute(root_, name, text, where_);
    }
    void attribute(const std::string& name, std::int64_t value) {
        hdf5::write_attribute(root_, name, Type::int64, &value, 1, true, where_);
    }

    void group(const std::string& path) {
        const Handle made(check(H5Gcreate2(file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    }

    /// One contiguous block, allocated at once and never filled.
    Handle dataset(const std::string& path, hid_t type, std::int64_t size, const std::string& long_name,
                   H5D_fill_time_t fill = H5D_FILL_TIME_NEVER) {
        const auto count = static_cast<hsize_t>(size);
        const Handle space(check(H5Screate_simple(1, &count, nullptr)));
        const Handle list(check(H5Pcreate(H5P_DATASET_CREATE)));
        check(H5Pset_layout(list, H5D_CONTIGUOUS));
        check(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
        check(H5Pset_fill_time(list, fill));
        check(H5Pset_obj_track_times(list, false));
        Handle made(check(H5Dcreate2(file_, path.c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT)));
        hdf5::write_attribute(made, "long_name", long_name, where_);
        return made;
    }

    std::uint64_t place(hid_t dataset) {
        const haddr_t offset = H5Dget_offset(dataset);
        if (offset == HADDR_UNDEF) hdf5::fail(ErrorCode::io, where_, wish);
        return offset;
    }

    void texts(const std::string& path, const std::vector<std::string>& values, const std::string& long_name) {
        const auto count = static_cast<std::int64_t>(values.size());
        const Handle made = dataset(path, hdf5::file_type(Type::text), count, long_name, H5D_FILL_TIME_ALLOC);
        hdf5::write_texts(made, {count}, values, where_);
    }

    void numbers(const std::string& path, const std::vector<std::int64_t>& values, const std::string& long_name) {
        const Handle made = dataset(path, H5T_STD_I64LE, static_cast<std::int64_t>(values.size()), long_name);
        if (!values.empty()) check(H5Dwrite(made, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
    }

    void finish() { hdf5::flush(file_, where_); }

private:
    template <class Result>
    Result check(Result result) {
        return hdf5::check(result, ErrorCode::io, where_, wish);
    }

    static constexpr auto wish = "expected to write this token file";
    std::string where_;
    Handle file_, root_;
};

class Opened {
public:
    explicit Opened(const std::filesystem::path& path)
        : where_(shown(path)), bytes_(InputFile(path, "token file").size()), file_(hdf5::open_file(path, where_)) {
        if (hdf5::is_held(file_)) hdf5::refuse_held(where_);
        root_ = hdf5::open_group(file_, "/", where_);
    }

    std::string text(const std::string& name) { return hdf5::read_text_attribute(root_, name, where_); }

    std::int64_t number(const std::string& name, std::int64_t lowest, std::int64_t highest) {
        std::int64_t value = 0;
        hdf5::read_attribute(root_, name, Type::int64, &value, 1, where_);
        if (value < lowest || value > highest) {
            refuse(name, "expected a number from " + std::to_string(lowest) + " to " + std::to_string(highest),
                   "found " + std::to_string(value));
        }
        return value;
    }

    bool has(const std::string& name) { return H5Aexists(root_, name.c_str()) > 0; }

    std::string hash(const std::string& name) {
        std::string value = text(name);
        if (!is_sha256_hex(value)) refuse(name, "expected a SHA-256", "found \"" + escaped(value, 80) + '"');
        return value;
    }

    [[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& found) const {
        throw Error(ErrorCode::format, where_ + ", " + what, expected, found);
    }

    /// /tokens: its length is 64 bits wide, unlike that of the datasets that open_dataset checks.
    void tokens(StoredTokens& out) {
        H5L_info_t link{};
        if (H5Lexists(file_, "tokens", H5P_DEFAULT) <= 0 || H5Lget_info(file_, "tokens", &link, H5P_DEFAULT) < 0 ||
            link.type != H5L_TYPE_HARD) {
            refuse("/tokens", "expected this dataset", "found none");
        }
        const Handle data(hdf5::check(H5Dopen2(file_, "tokens", H5P_DEFAULT), ErrorCode::format, where_ + ", /tokens",
                                      "expected a dataset"));
        const Handle type(H5Dget_type(data));
        const Handle space(H5Dget_space(data));
        const Handle list(H5Dget_create_plist(data));
        if (type < 0 || space < 0 || list < 0) refuse("/tokens", "expected a readable dataset", "found none");
        const bool narrow = H5Tequal(type, H5T_STD_U16LE) > 0;
        if (!narrow && H5Tequal(type, H5T_STD_U32LE) <= 0)
            refuse("/tokens", "expected uint16 or uint32", "found another type");
        hsize_t count = 0;
        if (H5Sget_simple_extent_ndims(space) != 1 || H5Sget_simple_extent_dims(space, &count, nullptr) != 1) {
            refuse("/tokens", "expected one dimension", "found another number");
        }
        if (H5Pget_layout(list) != H5D_CONTIGUOUS || H5Pget_external_count(list) != 0 || H5Pget_nfilters(list) != 0) {
            refuse("/tokens", "expected one uncompressed block inside this file", "found another storage");
        }
        out.info.bytes_per_token = narrow ? 2 : 4;
        out.info.tokens = static_cast<std::int64_t>(count);
        out.blocks.tokens = block(data, "/tokens", count, narrow ? 2 : 4);
    }

    std::uint64_t indices(const std::string& path, Type type, std::int64_t size) {
        const auto data = hdf5::open_dataset(file_, path, type, 1, bytes_, where_);
        if (data.shape[0] != size) {
            refuse(path, "expected " + std::to_string(size) + " values", "found " + std::to_string(data.shape[0]));
        }
        return block(data.id, path, static_cast<hsize_t>(size), hdf5::type_size(type));
    }

    std::vector<TokenSource> sources() {
        const auto paths = hdf5::open_dataset(file_, "/sources/path", Type::text, 1, bytes_, where_);
        const auto hashes = hdf5::open_dataset(file_, "/sources/sha256", Type::text, 1, bytes_, where_);
        const auto sizes = hdf5::open_dataset(file_, "/sources/bytes", Type::int64, 1, bytes_, where_);
        if (hashes.shape != paths.shape || sizes.shape != paths.shape) {
            refuse("/sources", "expected lists of one length", "found different ones");
        }
        const auto count = static_cast<std::size_t>(paths.shape[0]);
        std::vector<TokenSource> all(count);
        std::vector<std::int64_t> bytes(count);
        hdf5::read_block(sizes.id, Type::int64, {0}, sizes.shape, bytes.data(), where_);
        const auto fill = [&](const hdf5::CheckedDataset& data, std::string TokenSource::*member) {
            std::vector<std::string> texts = hdf5::read_texts(data, where_);
            for (std::size_t i = 0; i < count; ++i) all[i].*member = std::move(texts[i]);
        };
        fill(paths, &TokenSource::path);
        fill(hashes, &TokenSource::sha256);
        for (std::size_t i = 0; i < count; ++i) all[i].bytes = bytes[i];
        return all;
    }

private:
    std::uint64_t block(hid_t data, const std::string& path, hsize_t count, std::size_t element) const {
        const haddr_t offset = H5Dget_offset(data);
        if (count == 0 || offset == HADDR_UNDEF || offset > bytes_ || (bytes_ - offset) / element < count) {
            refuse(path, "expected values within the file of " + std::to_string(bytes_) + " bytes",
                   "found " + std::to_string(count) + " that are not");
        }
        return offset;
    }

    std::string where_;
    std::uint64_t bytes_;
    Handle file_, root_;
};

}  // namespace

TokenBlocks create_token_file(const std::filesystem::path& path, const TokenFileInfo& info) {
    const Hdf5Lock lock;
    hdf5::prepare();
    Creator file(path);
    file.attribute("format", format_name);
    file.attribute("format_version", format_version);
    file.attribute("vocabulary", info.vocabulary);
    file.attribute("separator", info.separator);
    file.attribute("documents", info.documents);
    file.attribute("validation_begin", info.validation_begin);
    file.attribute("tokenizer", info.tokenizer);
    file.attribute("tokenizer_sha256", info.tokenizer_sha256);
    file.attribute("key", info.key);
    file.attribute("tokens_sha256", info.tokens_sha256);
    const bool items = info.documents_per_item > 1;
    if (info.numbers_per_token > 1) file.attribute("numbers_per_token", info.numbers_per_token);
    if (items) file.attribute("documents_per_item", info.documents_per_item);
    if (items) file.attribute("documents_sha256", info.documents_sha256);
    std::vector<std::string> paths, hashes;
    std::vector<std::int64_t> bytes;
    for (const TokenSource& source : info.sources) {
        paths.push_back(source.path);
        hashes.push_back(source.sha256);
        bytes.push_back(source.bytes);
    }
    file.group("/sources");
    file.texts("/sources/path", paths, "file that the tokens were made of");
    file.texts("/sources/sha256", hashes, "SHA-256 of the file");
    file.numbers("/sources/bytes", bytes, "size of the file");
    file.group("/documents");
    TokenBlocks blocks;
    blocks.document_begin = file.place(file.dataset("/documents/begin", H5T_STD_I64LE, info.documents + 1,
                                                    "first token of each document, and the number of tokens"));
    blocks.document_source = file.place(
        file.dataset("/documents/source", H5T_STD_I32LE, info.documents, "index in /sources of each document"));
    if (items) {
        blocks.document_label = file.place(file.dataset("/documents/label", H5T_IEEE_F32LE, info.documents,
                                                        "label of each text; of its pair: 1 where there is one"));
    }
    blocks.tokens = file.place(
        file.dataset("/tokens", token_type(info.bytes_per_token), info.tokens, "ids, document after document"));
    file.finish();
    return blocks;
}

StoredTokens read_token_file(const std::filesystem::path& path) {
    const Hdf5Lock lock;
    hdf5::prepare();
    Opened file(path);
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (const std::string format = file.text("format"); format != format_name) {
        file.refuse("attribute format", std::string("expected ") + format_name, "found \"" + escaped(format, 60) + '"');
    }
    file.number("format_version", 1, format_version);
    StoredTokens out;
    out.info.vocabulary = file.number("vocabulary", 1, most);
    out.info.separator = file.number("separator", -1, out.info.vocabulary - 1);
    out.info.tokenizer = file.text("tokenizer");
    out.info.tokenizer_sha256 = file.hash("tokenizer_sha256");
    out.info.key = file.hash("key");
    out.info.tokens_sha256 = file.hash("tokens_sha256");
    file.tokens(out);
    out.info.validation_begin = file.number("validation_begin", 0, out.info.tokens);
    out.info.sources = file.sources();
    if (file.has("numbers_per_token"))
        out.info.numbers_per_token = file.number("numbers_per_token", 1, out.info.tokens);
    const bool items = file.has("documents_per_item");
    if (items) {
        out.info.documents_per_item = file.number("documents_per_item", 2, 2);
        out.info.documents_sha256 = file.hash("documents_sha256");
    }
    // Without items a document has at least one token.
    out.info.documents = file.number("documents", 1, items ? most - 1 : std::min(most - 1, out.info.tokens));
    if (items) {
        if (out.info.documents % 2 != 0)
            file.refuse("attribute documents", "expected an even number",
                        "found " + std::to_string(out.info.documents));
        out.blocks.document_label = file.indices("/documents/label", Type::float32, out.info.documents);
    }
    out.blocks.document_begin = file.indices("/documents/begin", Type::int64, out.info.documents + 1);
    out.blocks.document_source = file.indices("/documents/source", Type::int32, out.info.documents);
    return out;
}

}  // namespace headscope::store
