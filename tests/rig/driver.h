// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QSocketNotifier>

namespace headscope::app {

class MainWindow;

/// Lets a test look into the window that it works with mouse and keyboard: requests on standard input, answers on
/// standard output, a JSON object a line each. Asked for by the hidden option --drive.
///
///     {"find": NAME}        -> {"found", "visible", "enabled", "focus", "window": its name, "text",
///                              "rect": [x, y, width, height] on the screen}; false, empty, 0 where none is found
///     {"state": true}       -> selection, analyses, whether something runs, problems, stalls, the view in front,
///                              the entry of an open menu
///     {"shot": PATH}        -> a picture of the window
///     {"actions": true}     -> {"actions": [{"name", "text", "keys", "enabled"}]}, in the order of the menus
///     {"action": NAME}      -> triggers an action of the menus
///     {"resize": [w, h]}    -> {"size": [w, h]}: that the window then has
///     {"faults": NAME, "most": [w, h]} -> {"faults": [...]} of the window (empty name) or of a dialog
///     (layout_faults.h)
///     {"wheel": true}       -> {"faults": [...], "walked"}: controls whose value the wheel changed
///     {"tabs": true}        -> {"tabs": names of the views on tabs of the page in front, "shown": [left, right]}
///     {"cell": [row, head]} -> {"rect"} of a cell of the overview, in heat_map
///     {"menu": NAME, "entry": NAME} -> triggers an entry of a menu that is filled when it opens
///     {"click": NAME, "at": [x, y]}, {"key": "Ctrl+K"}, {"type": TEXT}, {"drop": PATH, "on": NAME}: for platforms
///                              without a real mouse
class Driver : public QObject {
    Q_OBJECT
public:
    explicit Driver(MainWindow* window);

private:
    void read();
    QJsonObject answer(const QJsonObject& request);
    QJsonObject find(const QString& name) const;
    QJsonObject actions() const;
    QJsonObject state() const;

    MainWindow* window_;
    QSocketNotifier input_;
    QByteArray waiting_;
};

}  // namespace headscope::app
