// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QListWidget>
#include <string>
#include <vector>

#include "widgets/theme.h"

namespace headscope::widgets {

/// A stack of layers, the first on top, each with its mixer as colour and name. Click: the next mixer; drag: the mixer
/// of the layer where it began goes to all that are passed; Shift or Ctrl with click or arrows choose several, a
/// number key gives them that mixer, space the next one.
class LayerColumn : public QListWidget {
    Q_OBJECT
public:
    explicit LayerColumn(QWidget* parent = nullptr);

    /// The mixers that there are, in the order in which clicks go and number keys count.
    void set_mixers(std::vector<std::string> mixers);
    const std::vector<std::string>& mixers() const { return mixers_; }
    void set_layers(const std::vector<std::string>& layers);
    const std::vector<std::string>& layers() const { return layers_; }
    void set_theme(const Theme& theme);
    /// Gives the chosen layers a mixer.
    void give(const std::string& mixer);

Q_SIGNALS:
    void edited();  ///< by the user: layers() is another

protected:
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;
    QItemSelectionModel::SelectionFlags selectionCommand(const QModelIndex& index,
                                                         const QEvent* event = nullptr) const override;

private:
    class Painter;
    void set(int row, const std::string& mixer);
    std::string next(const std::string& mixer) const;
    void fit_rows();

    std::vector<std::string> mixers_, layers_, pressed_layers_;
    Theme theme_;
    int pressed_ = -1;
    bool filled_ = false;
};

}  // namespace headscope::widgets
