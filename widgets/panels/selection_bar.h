// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "widgets/desk/desk.h"

class QBoxLayout;
class QComboBox;
class QHBoxLayout;
class QLabel;
class QSpinBox;

namespace headscope::widgets {

/// The desk's selection as controls: analysis, sequence or all of them, site, head, query and key token. One row, or
/// two where the window is narrow.
class SelectionBar : public QWidget {
    Q_OBJECT
public:
    explicit SelectionBar(Desk* desk, QWidget* parent = nullptr);
    QSize minimumSizeHint() const override;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    int label_width() const;  ///< of what the chosen tokens read as
    void arrange();
    void fill_studies();
    void follow();
    void fill_sequences(const Study& study);
    void fill_sites(const Study& study);
    void show_tokens(const Study* study);

    Desk* desk_;
    QBoxLayout* rows_;
    QHBoxLayout *what_, *where_;
    QComboBox *study_, *sequence_, *site_;
    QSpinBox *head_, *query_, *key_;
    QLabel *query_token_, *key_token_;
    int filled_for_ = 0;  ///< the study whose sequences and sites are listed
    bool following_ = false;
};

}  // namespace headscope::widgets
