// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/painting_thread.h"

#include <dlfcn.h>

#include <QThread>
#include <QThreadPool>
#include <atomic>

namespace {

std::atomic<const QThread*> painting_thread{nullptr};

}  // namespace

/// Takes the place of Qt's own function, for Qt has no setting for this: the raster engine asks it whether it runs on a
/// thread of the pool already, and then does the whole work itself. The program's symbols come before its libraries'.
bool QThreadPool::contains(const QThread* thread) const {
    if (thread != nullptr && thread == painting_thread) return true;
    using Contains = bool (*)(const QThreadPool*, const QThread*);
    static const auto of_qt = reinterpret_cast<Contains>(::dlsym(RTLD_NEXT, "_ZNK11QThreadPool8containsEPK7QThread"));
    return of_qt != nullptr && of_qt(this, thread);
}

namespace headscope::widgets {

void paint_on_this_thread_alone() {
    painting_thread = QThread::currentThread();
}

}  // namespace headscope::widgets
