// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtGlobal>

namespace headscope::widgets {

/// While it lives, Qt's remarks (fonts without OpenType tables, a missing XDG_RUNTIME_DIR) stay off standard error,
/// where they would stand between the program's own lines.
class QuietQt {
public:
    QuietQt() : before_(qInstallMessageHandler([](QtMsgType, const QMessageLogContext&, const QString&) {})) {}
    ~QuietQt() { qInstallMessageHandler(before_); }
    QuietQt(const QuietQt&) = delete;
    QuietQt& operator=(const QuietQt&) = delete;

private:
    QtMessageHandler before_;
};

}  // namespace headscope::widgets
