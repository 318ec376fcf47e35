// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/hdf5_driver.h"

#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

namespace headscope::store::hdf5 {
namespace {

/// The library sees `base` and fills it in; it must come first.
struct LatchingFile {
    H5FD_t base;
    H5FD_t* inner;
    int failure;
    bool read_only;
    bool held_by_writer;
    bool unsound;
};

LatchingFile* ours(H5FD_t* file) {
    return reinterpret_cast<LatchingFile*>(file);
}
const LatchingFile* ours(const H5FD_t* file) {
    return reinterpret_cast<const LatchingFile*>(file);
}

/// The system's error of the last failed open or lock on this thread: the library's clean-up clears its stack.
thread_local int refusal = 0;

/// Records a failure and reports success to the library.
herr_t latch(LatchingFile* file, herr_t result) {
    if (result >= 0) return 0;
    const int number = system_error_on_stack();
    if (file->failure == 0) file->failure = number != 0 ? number : EIO;
    H5Eclear2(H5E_DEFAULT);
    return 0;
}

H5FD_t* open_file(const char* name, unsigned flags, hid_t, haddr_t most) {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list < 0) return nullptr;
    H5FD_t* inner = H5Pset_fapl_sec2(list) < 0 ? nullptr : H5FDopen(name, flags, list, most);
    if (inner == nullptr) refusal = system_error_on_stack();
    // Programs that are started while a file is open must not hold it: a training job outlives the window.
    if (void* handle = nullptr; inner != nullptr && H5FDget_vfd_handle(inner, list, &handle) >= 0 && handle != nullptr)
        ::fcntl(*static_cast<int*>(handle), F_SETFD, FD_CLOEXEC);
    H5Idec_ref(list);
    if (inner == nullptr) return nullptr;
    auto* file = new (std::nothrow) LatchingFile{{}, inner, 0, (flags & H5F_ACC_RDWR) == 0, false, false};
    if (file == nullptr) {
        H5FDclose(inner);
        return nullptr;
    }
    return &file->base;
}

herr_t close_file(H5FD_t* file) {
    const herr_t result = H5FDclose(ours(file)->inner);
    delete ours(file);
    return result;
}

int compare(const H5FD_t* a, const H5FD_t* b) {
    return H5FDcmp(ours(a)->inner, ours(b)->inner);
}

herr_t query(const H5FD_t*, unsigned long* flags) {
    // Flags of the POSIX driver; the last one keeps the driver's name out of the file.
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    return 0;
}

haddr_t get_eoa(const H5FD_t* file, H5FD_mem_t type) {
    return H5FDget_eoa(ours(file)->inner, type);
}
herr_t set_eoa(H5FD_t* file, H5FD_mem_t type, haddr_t address) {
    return H5FDset_eoa(ours(file)->inner, type, address);
}
haddr_t get_eof(const H5FD_t* file, H5FD_mem_t type) {
    return H5FDget_eof(ours(file)->inner, type);
}

herr_t get_handle(H5FD_t* file, hid_t, void** handle) {
    *handle = ours(file);
    return 0;
}

herr_t read(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void* to) {
    // Cancellation acts between the library's calls (hdf5_dataset.cpp): a failed read spoils its view of the file's
    // structure for all who have it open.
    const herr_t result = H5FDread(ours(file)->inner, type, transfer, address, size, to);
    if (result < 0) ours(file)->unsound = true;
    return result;
}

herr_t write(H5FD_t* file, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, const void* from) {
    if (ours(file)->failure != 0) return 0;
    return latch(ours(file), H5FDwrite(ours(file)->inner, type, transfer, address, size, from));
}

herr_t flush(H5FD_t* file, hid_t transfer, hbool_t closing) {
    if (ours(file)->failure != 0) return 0;
    return latch(ours(file), H5FDflush(ours(file)->inner, transfer, closing));
}

herr_t truncate(H5FD_t* file, hid_t transfer, hbool_t closing) {
    if (ours(file)->failure != 0) return 0;
    return latch(ours(file), H5FDtruncate(ours(file)->inner, transfer, closing));
}

herr_t lock(H5FD_t* file, hbool_t exclusive) {
    const herr_t result = H5FDlock(ours(file)->inner, exclusive);
    if (result >= 0) return result;
    refusal = system_error_on_stack();
    if (exclusive || !ours(file)->read_only || refusal != EAGAIN) return result;
    refusal = 0;
    H5Eclear2(H5E_DEFAULT);
    ours(file)->held_by_writer = true;
    return 0;
}

herr_t unlock(H5FD_t* file) {
    return H5FDunlock(ours(file)->inner);
}

const H5FD_class_t& driver_class() {
    static const H5FD_class_t driver = [] {
        H5FD_class_t d{};
        d.name = "headscope";
        d.maxaddr = (static_cast<haddr_t>(1) << (8 * sizeof(off_t) - 1)) - 1;
        d.fc_degree = H5F_CLOSE_WEAK;
        d.open = open_file;
        d.close = close_file;
        d.cmp = compare;
        d.query = query;
        d.get_eoa = get_eoa;
        d.set_eoa = set_eoa;
        d.get_eof = get_eof;
        d.get_handle = get_handle;
        d.read = read;
        d.write = write;
        d.flush = flush;
        d.truncate = truncate;
        d.lock = lock;
        d.unlock = unlock;
        const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
        for (int i = 0; i < H5FD_MEM_NTYPES; ++i) d.fl_map[i] = map[i];
        return d;
    }();
    return driver;
}

const LatchingFile* behind(hid_t file) {
    void* open = nullptr;
    return H5Fget_vfd_handle(file, H5P_DEFAULT, &open) < 0 ? nullptr : static_cast<const LatchingFile*>(open);
}

herr_t find_number(unsigned, const H5E_error2_t* error, void* out) {
    auto& number = *static_cast<int*>(out);
    const std::string_view text = error->desc != nullptr ? error->desc : "";
    constexpr std::string_view mark = "errno = ";
    const auto at = text.find(mark);
    if (number == 0 && at != std::string_view::npos) number = std::atoi(text.data() + at + mark.size());
    return 0;
}

}  // namespace

herr_t use_latching_driver(hid_t access_list) {
    // Registered once a process; the library gives drivers back when it ends.
    static const hid_t driver = H5FDregister(&driver_class());
    return driver < 0 ? -1 : H5Pset_driver(access_list, driver, nullptr);
}

int write_failure(hid_t file) {
    const LatchingFile* open = behind(file);
    return open == nullptr ? 0 : open->failure;
}

bool held_by_writer(hid_t file) {
    const LatchingFile* open = behind(file);
    return open != nullptr && open->held_by_writer;
}

bool unsound(hid_t file) {
    const LatchingFile* open = behind(file);
    return open != nullptr && open->unsound;
}

int take_refusal() {
    return std::exchange(refusal, 0);
}

int system_error_on_stack() {
    int number = 0;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_number, &number);
    return number;
}

}  // namespace headscope::store::hdf5
