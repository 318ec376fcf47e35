// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <map>
#include <memory>
#include <string>

#include "widgets/desk/desk.h"
#include "widgets/desk/mailbox.h"

namespace headscope::store {
struct Evaluation;
}

namespace headscope::app {

/// Opens analysis files into the desk, and reads evaluation files: a file says itself which it is. HDF5's parser has
/// had memory errors, and a file may come from anywhere: a child process (`headscope info FILE --json`) reads it first,
/// and what crashes that does not reach the window.
class Opener : public QObject {
    Q_OBJECT
public:
    Opener(widgets::Desk* desk, std::string program, QObject* parent = nullptr);

    /// `ours`: this process has just written it or is writing it, so that no child needs to look at it first.
    void open(const QString& path, bool ours = false);
    /// A file of ours that is being opened is not wanted any more: neither signal comes.
    void give_up(const QString& path);
    /// What a path is, told by its name alone.
    static bool looks_like_analysis(const QString& path);

Q_SIGNALS:
    void opened(headscope::widgets::Study* study);
    void evaluation_read(const QString& path, const std::shared_ptr<const headscope::store::Evaluation>& record);
    void failed(const QString& path, const QString& message);

private:
    void read(const QString& path, const std::shared_ptr<bool>& wanted = nullptr);

    widgets::Desk* desk_;
    std::string program_;
    std::map<QString, std::shared_ptr<bool>> ours_;  ///< being opened, and whether they are wanted
    widgets::Mailbox mailbox_{this};
};

}  // namespace headscope::app
