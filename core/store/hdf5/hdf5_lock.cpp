// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/store/hdf5/hdf5_lock.h"

namespace headscope::store {

std::recursive_mutex& Hdf5Lock::mutex() {
    static auto* const mutex = new std::recursive_mutex;
    return *mutex;
}

}  // namespace headscope::store
