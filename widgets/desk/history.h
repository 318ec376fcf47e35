// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QTimer>
#include <functional>
#include <vector>

namespace headscope::widgets {

/// Undo and redo of what is looked at: states of the selection and of the views, as they are saved. Changes that follow
/// each other within a moment are one step.
class History : public QObject {
    Q_OBJECT
public:
    using Take = std::function<QJsonObject()>;
    using Restore = std::function<void(const QJsonObject&)>;
    History(Take take, Restore restore, QObject* parent = nullptr);

    /// Something changed: remembers the state when things are quiet.
    void note();
    void undo();
    void redo();
    bool can_undo() const { return at_ > 0; }
    bool can_redo() const { return at_ + 1 < states_.size(); }
    /// Forgets everything; the present state is the first.
    void begin();

Q_SIGNALS:
    void moved();

private:
    void remember();
    void go(std::size_t place);

    Take take_;
    Restore restore_;
    std::vector<QJsonObject> states_;
    std::size_t at_ = 0;
    bool restoring_ = false;
    QTimer quiet_;
};

}  // namespace headscope::widgets
