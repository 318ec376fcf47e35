// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/figure/offscreen.h"

#include <sys/stat.h>
#include <unistd.h>

#include <QApplication>
#include <QHashFunctions>
#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "widgets/quiet_qt.h"

namespace headscope::widgets {
namespace {

// QApplication keeps references to both for as long as it lives.
int argument_count = 1;
char program_name[] = "headscope";
char* arguments[] = {program_name, nullptr};

/// Sets a runtime folder that goes with the process. Without one Qt makes one of a fixed name in the temporary folder
/// and leaves it there.
void ensure_runtime_folder() {
    const char* given = std::getenv("XDG_RUNTIME_DIR");
    struct stat status {};
    const bool good = given != nullptr && ::stat(given, &status) == 0 && S_ISDIR(status.st_mode) &&
                      (status.st_mode & 0777U) == 0700U && status.st_uid == ::geteuid();
    if (good) return;
    std::error_code error;
    static std::string folder = (std::filesystem::temp_directory_path(error) / "headscope-XXXXXX").string();
    if (error || ::mkdtemp(folder.data()) == nullptr) return;
    qputenv("XDG_RUNTIME_DIR", folder.c_str());
    const auto remove = [] { ::rmdir(folder.c_str()); };
    std::atexit(remove);
    std::at_quick_exit(remove);  // the end of processes that read files for others (app/child.h)
}

}  // namespace

void ensure_application() {
    if (QCoreApplication::instance() != nullptr) return;
    const QuietQt quiet;
    qputenv("QT_QPA_PLATFORM", "offscreen");
    ensure_runtime_folder();
    // PDF files list their fonts in the order of a hash.
    QHashSeed::setDeterministicGlobalSeed();
    // Never destroyed: there is no place before Qt's own globals go at which nothing can draw any more.
    static auto* const application = new QApplication(argument_count, arguments);
    Q_UNUSED(application)
    // Qt takes over the user's locale; a decimal comma must not get into files that the program writes.
    std::setlocale(LC_NUMERIC, "C");
}

}  // namespace headscope::widgets
