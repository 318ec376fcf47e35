// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/fuzz/targets/hdf5_edits.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "tests/core/base/temporary_folder.h"
#include "tests/fuzz/check.h"

namespace headscope::fuzz {
namespace {

constexpr std::size_t most_edits = 6;
constexpr std::size_t most_values = 1 << 12;

herr_t add_attribute(hid_t, const char* name, const H5A_info_t*, void* names) {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
    return 0;
}

herr_t add_object(hid_t file, const char* name, const H5O_info_t* info, void* objects) {
    HdfObject object{std::string(name) == "." ? "/" : "/" + std::string(name), info->type == H5O_TYPE_GROUP, {}};
    const hid_t id = H5Oopen(file, object.path.c_str(), H5P_DEFAULT);
    hsize_t at = 0;
    H5Aiterate2(id, H5_INDEX_NAME, H5_ITER_INC, &at, add_attribute, &object.attributes);
    H5Oclose(id);
    static_cast<std::vector<HdfObject>*>(objects)->push_back(std::move(object));
    return 0;
}

/// Bytes of the input, one choice after the other; zeros once it is used up.
class Choices {
public:
    explicit Choices(std::string_view bytes) : bytes_(bytes) {}
    bool empty() const { return bytes_.empty(); }
    std::uint8_t byte() {
        if (bytes_.empty()) return 0;
        const auto value = static_cast<std::uint8_t>(bytes_.front());
        bytes_.remove_prefix(1);
        return value;
    }
    template <class List>
    auto one_of(const List& list) {
        return list[byte() % std::size(list)];
    }

private:
    std::string_view bytes_;
};

hid_t type_of(Choices& choices) {
    switch (choices.byte() % 14) {
        case 0:
            return H5Tcopy(H5T_STD_I8LE);
        case 1:
            return H5Tcopy(H5T_STD_I32LE);
        case 2:
            return H5Tcopy(H5T_STD_I64LE);
        case 3:
            return H5Tcopy(H5T_STD_U64LE);
        case 4:
            return H5Tcopy(H5T_IEEE_F32LE);
        case 5:
            return H5Tcopy(H5T_IEEE_F64LE);
        case 6:
            return H5Tcopy(H5T_IEEE_F64BE);
        case 7:
            return H5Tcopy(H5T_STD_REF_OBJ);
        case 8: {
            const hid_t text = H5Tcopy(H5T_C_S1);
            H5Tset_size(text, H5T_VARIABLE);
            H5Tset_cset(text, H5T_CSET_UTF8);
            return text;
        }
        case 9:
            return H5Tvlen_create(H5T_STD_I32LE);
        case 10: {
            const hid_t compound = H5Tcreate(H5T_COMPOUND, 8);
            H5Tinsert(compound, "a", 0, H5T_STD_I32LE);
            return compound;
        }
        case 11: {
            const hsize_t size = 3;
            return H5Tarray_create2(H5T_STD_I32LE, 1, &size);
        }
        default: {
            const hid_t text = H5Tcopy(H5T_C_S1);
            H5Tset_size(text, std::size_t{1} << (choices.byte() % 18));
            H5Tset_cset(text, choices.byte() % 2 == 0 ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
            H5Tset_strpad(text, choices.one_of(std::array{H5T_STR_NULLPAD, H5T_STR_NULLTERM, H5T_STR_SPACEPAD}));
            return text;
        }
    }
}

constexpr std::array<hsize_t, 16> sizes = {0,  1,   2,    3,     4,          5,          6,          8,
                                           16, 139, 1000, 65536, 2147483647, 4294967296, 1ULL << 40, 1ULL << 62};

hid_t space_of(Choices& choices) {
    const int rank = choices.byte() % 6;
    if (rank == 5) return H5Screate(choices.byte() % 2 == 0 ? H5S_NULL : H5S_SCALAR);
    std::array<hsize_t, 5> now{}, most{};
    const bool grows = choices.byte() % 4 == 3;
    for (int i = 0; i < rank; ++i) {
        now.at(static_cast<std::size_t>(i)) = choices.one_of(sizes);
        most.at(static_cast<std::size_t>(i)) = H5S_UNLIMITED;
    }
    return H5Screate_simple(rank, now.data(), grows ? most.data() : nullptr);
}

/// Storage: plain, chunked with filters, compact, in another file, or virtual.
hid_t storage_of(Choices& choices, hid_t space) {
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(list, choices.one_of(std::array{H5D_ALLOC_TIME_LATE, H5D_ALLOC_TIME_INCR}));
    const int rank = std::max(H5Sget_simple_extent_ndims(space), 0);
    switch (choices.byte() % 6) {
        case 1: {
            std::array<hsize_t, 5> chunk{};
            for (int i = 0; i < rank; ++i) chunk.at(static_cast<std::size_t>(i)) = choices.one_of(sizes);
            H5Pset_chunk(list, rank, chunk.data());
            const std::uint8_t filters = choices.byte();
            if ((filters & 1U) != 0) H5Pset_shuffle(list);
            if ((filters & 2U) != 0) H5Pset_deflate(list, 6);
            if ((filters & 4U) != 0) H5Pset_fletcher32(list);
            if ((filters & 8U) != 0) H5Pset_nbit(list);
            if ((filters & 16U) != 0) H5Pset_scaleoffset(list, H5Z_SO_INT, 0);
            break;
        }
        case 2:
            H5Pset_layout(list, H5D_COMPACT);
            break;
        case 3:
            H5Pset_external(list, "/etc/passwd", 0, H5F_UNLIMITED);
            break;
        case 4:
            H5Pset_virtual(list, space, "other.h5", "/x", space);
            break;
        default:
            break;
    }
    return list;
}

/// Sixteen bytes that are awkward as integers, as floats and as text.
std::string value_of(Choices& choices) {
    static const std::array<std::string, 12> values = {
        std::string(16, '\0'),           std::string(16, '\xff'),
        std::string(16, '\x7f'),         std::string("\1\0\0\0\0\0\0\0", 8),
        std::string("\0\0\0\x80", 4),    std::string("\0\0\0\0\0\0\0\x80", 8),
        std::string("\0\0\x80\x7f", 4),  std::string("\0\0\0\0\0\0\xf0\x7f", 8),
        std::string("ab\x1b[31m\n\xc3"), std::string("softmax"),
        std::string("\xe4\xb8\xad\xe6"), std::string("{\"a\":")};
    std::string value = choices.one_of(values);
    const std::uint8_t poke = choices.byte();
    if (poke != 0) value[poke % value.size()] = static_cast<char>(choices.byte());
    return value;
}

/// HDF5 1.10.8 writes behind its buffers where it packs some types by these filters: such datasets stay empty.
bool packs_bits(hid_t dataset) {
    const hid_t list = H5Dget_create_plist(dataset);
    unsigned flags = 0;
    bool packs = false;
    for (const H5Z_filter_t filter : {H5Z_FILTER_NBIT, H5Z_FILTER_SCALEOFFSET})
        packs = packs || H5Pget_filter_by_id2(list, filter, &flags, nullptr, nullptr, 0, nullptr, nullptr) >= 0;
    H5Pclose(list);
    return packs;
}

/// A new dataset or attribute is filled only where that needs little memory.
void write_values(hid_t id, hid_t type, hid_t space, const std::string& value, bool attribute) {
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const std::size_t size = H5Tget_size(type);
    if (count <= 0 || size == 0 || static_cast<std::size_t>(count) > most_values * 8 / size) return;
    if (H5Tdetect_class(type, H5T_VLEN) > 0 || H5Tis_variable_str(type) > 0 || H5Tget_class(type) == H5T_REFERENCE) {
        return;  // their memory would be pointers
    }
    if (!attribute && packs_bits(id)) return;
    std::string bytes;
    while (bytes.size() < static_cast<std::size_t>(count) * size) bytes += value;
    if (attribute) {
        H5Awrite(id, type, bytes.data());
    } else {
        H5Dwrite(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
    }
}

void replace_dataset(hid_t file, const std::string& path, Choices& choices) {
    const hid_t type = type_of(choices), space = space_of(choices), list = storage_of(choices, space);
    H5Ldelete(file, path.c_str(), H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (dataset >= 0 && H5Pget_external_count(list) == 0) write_values(dataset, type, space, value_of(choices), false);
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
    H5Tclose(type);
}

void fill_dataset(hid_t file, const std::string& path, Choices& choices) {
    const hid_t dataset = H5Dopen2(file, path.c_str(), H5P_DEFAULT);
    if (dataset < 0) return;
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    write_values(dataset, type, space, value_of(choices), false);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
}

void replace_attribute(hid_t file, const HdfObject& object, Choices& choices) {
    if (object.attributes.empty()) return;
    const std::string name = choices.one_of(object.attributes);
    const std::uint8_t how = choices.byte() % 3;
    const hid_t id = H5Oopen(file, object.path.c_str(), H5P_DEFAULT);
    if (id < 0) return;
    hid_t type = -1, space = -1, attribute = -1;
    if (how == 0) {  // other values
        attribute = H5Aopen(id, name.c_str(), H5P_DEFAULT);
        if (attribute >= 0) {
            type = H5Aget_type(attribute);
            space = H5Aget_space(attribute);
        }
    } else {
        H5Adelete(id, name.c_str());
        if (how == 1) {
            type = type_of(choices);
            space = space_of(choices);
            attribute = H5Acreate2(id, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
        }
    }
    if (attribute >= 0) {
        write_values(attribute, type, space, value_of(choices), true);
        H5Aclose(attribute);
    }
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Oclose(id);
}

void replace_link(hid_t file, const std::vector<HdfObject>& objects, const std::string& path, Choices& choices) {
    const std::string other = choices.one_of(objects).path;
    const std::uint8_t how = choices.byte() % 5;
    H5Ldelete(file, path.c_str(), H5P_DEFAULT);
    if (how == 1) H5Lcreate_soft(other.c_str(), file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (how == 2) H5Lcreate_external("/etc/passwd", other.c_str(), file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (how == 3) H5Lcreate_hard(file, other.c_str(), file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (how == 4) H5Gclose(H5Gcreate2(file, path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

}  // namespace

std::vector<HdfObject> list_objects(const std::filesystem::path& path) {
    std::vector<HdfObject> objects;
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
    H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, add_object, &objects, H5O_INFO_BASIC);
    H5Fclose(file);
    std::sort(objects.begin(), objects.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return objects;
}

void apply_edits(const std::filesystem::path& path, const std::vector<HdfObject>& objects, std::string_view edits) {
    Choices choices(edits);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
    H5Pclose(access);
    if (file < 0) finding("the target cannot open the file that it made");
    for (std::size_t count = 0; count < most_edits && !choices.empty(); ++count) {
        const std::uint8_t what = choices.byte() % 5;
        const HdfObject& object = choices.one_of(objects);
        if (what == 3) {
            replace_attribute(file, object, choices);
        } else if (object.path == "/") {
            continue;
        } else if (what == 4) {
            replace_link(file, objects, object.path, choices);
        } else if (what == 0 || object.is_group) {
            replace_dataset(file, object.path, choices);
        } else {
            fill_dataset(file, object.path, choices);
        }
    }
    H5Fclose(file);
    H5Eclear2(H5E_DEFAULT);
}

EditedFile::EditedFile(const std::function<void(const std::filesystem::path&)>& write) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    const auto path = folder_.path() / "base.h5";
    write(path);
    bytes_ = test::read_file(path);
    objects_ = list_objects(path);
}

std::filesystem::path EditedFile::edited(std::string_view edits) const {
    const auto path = replaced(bytes_);
    apply_edits(path, objects_, edits);
    return path;
}

std::filesystem::path EditedFile::replaced(std::string_view bytes) const {
    return folder_.write("changed.h5", bytes);
}

}  // namespace headscope::fuzz
