// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
#include <string_view>

#include "core/base/process/cancellation_scope.h"
#include "core/base/text/text.h"
#include "core/store/hdf5/hdf5.h"
#include "core/store/hdf5/utf8.h"

namespace headscope::store::hdf5 {
namespace {

/// A chunk of someone else's (repacked) file is decoded in one piece.
constexpr std::uint64_t largest_chunk = 64U << 20U;
/// Deflate cannot do better than this, so a larger claim is a lie.
constexpr std::uint64_t best_compression = 1032;
/// Limit of unpacked data, so that a small file cannot claim all memory: this, or a multiple of the file's size.
constexpr std::uint64_t always_unpacked = std::uint64_t{256} << 20U;
constexpr std::uint64_t usual_compression = 8;
constexpr std::array<H5Z_filter_t, 4> built_in_filters{H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE, H5Z_FILTER_FLETCHER32,
                                                       H5Z_FILTER_SZIP};

std::string place(const std::string& where, std::string_view path) {
    return where + ", " + escaped(path);
}

/// Calls `step` with each prefix of an absolute path: /a, /a/b, /a/b/c.
template <class Step>
void for_each_step(const std::string& path, Step step) {
    for (std::size_t end = 0; end != std::string::npos;) {
        end = path.find('/', end + 1);
        step(path.substr(0, end));
    }
}

void check_links(hid_t file, const std::string& path, const std::string& where) {
    for_each_step(path, [&](const std::string& step) {
        check_cancellation();
        H5L_info_t info{};
        if (H5Lexists(file, step.c_str(), H5P_DEFAULT) <= 0) {
            H5Eclear2(H5E_DEFAULT);
            throw Error(ErrorCode::format, place(where, path), "expected this object", "found no " + escaped(step));
        }
        check(H5Lget_info(file, step.c_str(), &info, H5P_DEFAULT), ErrorCode::format, place(where, step),
              "expected a readable link");
        if (info.type != H5L_TYPE_HARD) {
            throw Error(ErrorCode::unsupported, place(where, step), "expected an object of this file itself",
                        info.type == H5L_TYPE_EXTERNAL ? "found a link into another file" : "found a soft link");
        }
    });
}

void check_storage(hid_t dataset, std::uint64_t bytes, std::size_t element, std::uint64_t file_bytes, Read read,
                   const std::string& at) {
    const Handle list(check(H5Dget_create_plist(dataset), ErrorCode::format, at, "expected a storage description"));
    if (H5Pget_external_count(list) != 0) {
        throw Error(ErrorCode::unsupported, at, "expected data inside this file", "found external storage");
    }
    const H5D_layout_t layout = H5Pget_layout(list);
    if (layout != H5D_CONTIGUOUS && layout != H5D_COMPACT && layout != H5D_CHUNKED) {
        throw Error(ErrorCode::unsupported, at, "expected contiguous, compact or chunked data",
                    layout == H5D_VIRTUAL ? "found a virtual dataset" : "found another layout");
    }
    const int filters = H5Pget_nfilters(list);
    for (int i = 0; i < filters; ++i) {
        unsigned flags = 0;
        std::size_t values = 0;
        const H5Z_filter_t filter =
            H5Pget_filter2(list, static_cast<unsigned>(i), &flags, &values, nullptr, 0, nullptr, nullptr);
        if (std::find(built_in_filters.begin(), built_in_filters.end(), filter) == built_in_filters.end()) {
            throw Error(ErrorCode::unsupported, at, "expected no filters but deflate, shuffle, fletcher32 and szip",
                        "found filter " + std::to_string(filter));
        }
    }
    if (layout == H5D_CHUNKED) {
        std::array<hsize_t, H5S_MAX_RANK> dims{};
        const int rank = check(H5Pget_chunk(list, H5S_MAX_RANK, dims.data()), ErrorCode::format, at, "expected chunks");
        std::uint64_t chunk = element;
        for (int i = 0; i < rank; ++i) {
            const hsize_t size = dims[static_cast<std::size_t>(i)];
            if (size == 0 || chunk > largest_chunk / size) {
                throw Error(ErrorCode::limit, at,
                            "expected chunks of at most " + std::to_string(largest_chunk) + " bytes",
                            "found larger ones");
            }
            chunk *= size;
        }
    }
    std::uint64_t limit = file_bytes;
    if (layout == H5D_CHUNKED) {
        limit *= best_compression;
        if (read == Read::whole) limit = std::min(limit, std::max(file_bytes * usual_compression, always_unpacked));
    }
    if (bytes > limit) {
        throw Error(ErrorCode::format, at,
                    "expected data that fits this file of " + std::to_string(file_bytes) + " bytes",
                    "found a dataset of " + std::to_string(bytes));
    }
    if (layout == H5D_CONTIGUOUS && bytes > 0 && filters == 0) {
        // A partial file's space is allocated when it is created, so this holds for it too.
        const haddr_t offset = H5Dget_offset(dataset);
        if (H5Dget_storage_size(dataset) < bytes || offset == HADDR_UNDEF || offset > file_bytes ||
            file_bytes - offset < bytes) {
            throw Error(ErrorCode::format, at, "expected data within the file", "found storage that ends beyond it");
        }
    }
}

std::vector<hsize_t> sizes(const Shape& shape) {
    return {shape.begin(), shape.end()};
}

/// Selects a block in a dataset's space; the memory's space for it.
struct Selection {
    Handle file, memory;
};

Selection select(hid_t dataset, const Shape& start, const Shape& count, const std::string& where) {
    const auto from = sizes(start);
    const auto size = sizes(count);
    Selection selection{
        Handle(check(H5Dget_space(dataset), ErrorCode::format, where, "expected a dataspace")),
        Handle(check(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr), ErrorCode::internal, where,
                     "expected an HDF5 dataspace")),
    };
    if (H5Sget_simple_extent_ndims(selection.file) != static_cast<int>(start.size())) {
        throw Error(ErrorCode::internal, where, "expected a block of the dataset's rank", "found another rank");
    }
    if (!size.empty()) {
        check(H5Sselect_hyperslab(selection.file, H5S_SELECT_SET, from.data(), nullptr, size.data(), nullptr),
              ErrorCode::internal, where, "expected a block within the dataset");
    }
    return selection;
}

/// Holds the texts of one read, up to a limit.
struct TextMemory {
    std::uint64_t most, taken;
    std::vector<std::unique_ptr<char[]>> pieces;

    static void* take(std::size_t bytes, void* self) {
        auto& memory = *static_cast<TextMemory*>(self);
        memory.taken += bytes;
        if (memory.taken > memory.most) return nullptr;
        try {
            memory.pieces.push_back(std::make_unique<char[]>(bytes));
        } catch (const std::bad_alloc&) {  // no exception may pass through the library
            return nullptr;
        }
        return memory.pieces.back().get();
    }
    static void give_back(void*, void*) {}
};

bool is_empty(const Shape& count) {
    return std::find(count.begin(), count.end(), 0) != count.end();
}

}  // namespace

std::string shape_text(const Shape& shape) {
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

bool exists(hid_t file, const std::string& path) {
    check_cancellation();
    bool all = true;
    for_each_step(path, [&](const std::string& step) { all = all && H5Lexists(file, step.c_str(), H5P_DEFAULT) > 0; });
    if (!all) H5Eclear2(H5E_DEFAULT);
    return all;
}

Handle open_group(hid_t file, const std::string& path, const std::string& where) {
    if (path != "/") check_links(file, path, where);
    return Handle(
        check(H5Gopen2(file, path.c_str(), H5P_DEFAULT), ErrorCode::format, place(where, path), "expected a group"));
}

CheckedDataset open_dataset(hid_t file, const std::string& path, Type type, std::size_t rank, std::uint64_t file_bytes,
                            const std::string& where, Read read) {
    check_links(file, path, where);
    const std::string at = place(where, path);
    CheckedDataset out;
    out.id = Handle(check(H5Dopen2(file, path.c_str(), H5P_DEFAULT), ErrorCode::format, at, "expected a dataset"));

    const Handle stored(check(H5Dget_type(out.id), ErrorCode::format, at, "expected a type"));
    const std::size_t element = H5Tget_size(stored);
    const bool fits = type == Type::text ? H5Tget_class(stored) == H5T_STRING : H5Tequal(stored, file_type(type)) > 0;
    if (!fits || element == 0) {
        throw Error(ErrorCode::format, at, "expected values of type " + type_name(type), "found another type");
    }
    if (type == Type::text && H5Tis_variable_str(stored) == 0) out.text_bytes = element;

    const Handle space(check(H5Dget_space(out.id), ErrorCode::format, at, "expected a dataspace"));
    const int found_rank = H5Sget_simple_extent_ndims(space);
    if (H5Sis_simple(space) <= 0 || found_rank != static_cast<int>(rank)) {
        throw Error(ErrorCode::format, at, "expected " + std::to_string(rank) + " dimensions",
                    "found " + std::to_string(found_rank));
    }
    std::vector<hsize_t> dims(rank);
    if (rank > 0) {
        check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), ErrorCode::format, at, "expected dimensions");
    }
    std::uint64_t bytes = element;
    const auto longest = read == Read::whole ? hsize_t{std::numeric_limits<std::int32_t>::max()} : hsize_t{1} << 40U;
    for (const hsize_t size : dims) {
        if (size > longest ||
            (size != 0 && bytes > std::numeric_limits<std::uint64_t>::max() / best_compression / size)) {
            throw Error(ErrorCode::format, at, "expected dimensions of a possible size",
                        "found one of " + std::to_string(size));
        }
        bytes *= size;
        out.shape.push_back(static_cast<std::int64_t>(size));
    }
    check_storage(out.id, bytes, element, file_bytes, read, at);
    return out;
}

void write_block(hid_t dataset, Type type, const Shape& start, const Shape& count, const void* values,
                 const std::string& where, std::size_t text_bytes) {
    if (is_empty(count)) return;
    const Selection selection = select(dataset, start, count, where);
    check(H5Dwrite(dataset, memory_type(type, text_bytes), selection.memory, selection.file, H5P_DEFAULT, values),
          ErrorCode::io, where, "expected to write these values");
}

void read_block(hid_t dataset, Type type, const Shape& start, const Shape& count, void* values,
                const std::string& where, std::size_t text_bytes) {
    if (is_empty(count)) return;
    check_cancellation();  // the driver does not test it where a writer shares the file
    const Selection selection = select(dataset, start, count, where);
    check(H5Dread(dataset, memory_type(type, text_bytes), selection.memory, selection.file, H5P_DEFAULT, values),
          ErrorCode::format, where, "expected to read these values");
}

void write_texts(hid_t dataset, const Shape& shape, const std::vector<std::string>& texts, const std::string& where) {
    if (is_empty(shape)) return;
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    const auto must_change = [](const std::string& text) {
        return text.find('\0') < text.size() || find_invalid_utf8(text) < text.size();
    };
    std::vector<std::string> kept;  // those that had to be changed
    kept.reserve(static_cast<std::size_t>(std::count_if(texts.begin(), texts.end(), must_change)));
    std::vector<const char*> values(count, "");
    for (std::size_t i = 0; i < std::min(count, texts.size()); ++i) {
        values[i] = texts[i].c_str();
        if (!must_change(texts[i])) continue;
        kept.push_back(readable_utf8(texts[i]));
        std::replace(kept.back().begin(), kept.back().end(), '\0', '\1');
        values[i] = kept.back().c_str();
    }
    write_block(dataset, Type::text, Shape(shape.size(), 0), shape, values.data(), where);
}

std::vector<std::string> read_texts(const CheckedDataset& dataset, const std::string& where) {
    constexpr std::uint64_t most = std::uint64_t{256} << 20U;
    std::size_t count = 1;
    for (const std::int64_t size : dataset.shape) count *= static_cast<std::size_t>(size);
    std::vector<std::string> texts(count);
    if (count == 0) return texts;
    const auto check_size = [&](std::uint64_t bytes) {
        if (bytes > most)
            throw Error(ErrorCode::limit, where, "expected at most " + size_text(most) + " of text",
                        "found " + size_text(bytes));
    };
    const Shape start(dataset.shape.size(), 0);
    if (const std::size_t room = dataset.text_bytes; room > 0) {
        check_size(count > most / room ? most + 1 : count * room);
        std::string packed(count * room, '\0');
        read_block(dataset.id, Type::text, start, dataset.shape, packed.data(), where, room);
        for (std::size_t i = 0; i < count; ++i) {
            texts[i] = packed.substr(i * room, room);
            texts[i].resize(texts[i].find_last_not_of('\0') + 1);
        }
        return texts;
    }
    check_cancellation();
    // A file may name one long text a million times: the library asks us for the memory of each.
    TextMemory memory{most, 0, {}};
    const Handle transfer(check(H5Pcreate(H5P_DATASET_XFER), ErrorCode::internal, where, "expected a property list"));
    check(H5Pset_vlen_mem_manager(transfer, TextMemory::take, &memory, TextMemory::give_back, &memory),
          ErrorCode::internal, where, "expected HDF5 to take its settings");
    std::vector<char*> values(count, nullptr);
    const Selection selection = select(dataset.id, start, dataset.shape, where);
    const herr_t result = H5Dread(dataset.id, memory_type(Type::text), selection.memory, selection.file, transfer,
                                  static_cast<void*>(values.data()));
    if (result < 0 && memory.taken > most) {
        H5Eclear2(H5E_DEFAULT);
        check_size(memory.taken);
    }
    check(result, ErrorCode::format, where, "expected to read these texts");
    for (std::size_t i = 0; i < count; ++i) texts[i] = values[i] == nullptr ? "" : values[i];
    return texts;
}

}  // namespace headscope::store::hdf5
