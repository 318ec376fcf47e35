// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/run_shelf.h"
#include "widgets/desk/view.h"

class QSplitter;

namespace headscope::widgets {

class Banner;
class RunBar;
class RunPlots;
class RunTexts;

/// Runs while they train, and after: curves of all that are shown, controls and words of the chosen one.
class RunView : public View {
    Q_OBJECT
public:
    RunView(Desk* desk, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;

private:
    RunShelf& shelf_;
    RunBar* bar_;
    Banner* banner_;
    RunPlots* plots_;
    RunTexts* texts_;
    QSplitter* splitter_;
    bool dark_ = false;
};

}  // namespace headscope::widgets
