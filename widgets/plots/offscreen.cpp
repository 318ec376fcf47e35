// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/plots/offscreen.h"

#include <QApplication>
#include <QHashFunctions>
#include <clocale>

#include "widgets/quiet_qt.h"

namespace headscope::widgets {
namespace {

// QApplication keeps references to both for as long as it lives.
int argument_count = 1;
char program_name[] = "headscope";
char* arguments[] = {program_name, nullptr};

}  // namespace

void ensure_application() {
    if (QCoreApplication::instance() != nullptr) return;
    const QuietQt quiet;
    qputenv("QT_QPA_PLATFORM", "offscreen");
    // PDF files list their fonts in the order of a hash.
    QHashSeed::setDeterministicGlobalSeed();
    // Never destroyed: there is no place before Qt's own globals go at which nothing can draw any more.
    static auto* const application = new QApplication(argument_count, arguments);
    Q_UNUSED(application)
    // Qt takes over the user's locale; a decimal comma must not get into files that the program writes.
    std::setlocale(LC_NUMERIC, "C");
}

}  // namespace headscope::widgets
