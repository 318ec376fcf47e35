// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "widgets/desk/desk.h"

class QComboBox;
class QLabel;
class QSpinBox;

namespace headscope::widgets {

/// The desk's selection as controls: analysis, sequence or all of them, site, head, query and key token.
class SelectionBar : public QWidget {
    Q_OBJECT
public:
    explicit SelectionBar(Desk* desk, QWidget* parent = nullptr);

private:
    void fill_studies();
    void follow();
    void fill_sequences(const Study& study);
    void fill_sites(const Study& study);
    void show_tokens(const Study* study);

    Desk* desk_;
    QComboBox *study_, *sequence_, *site_;
    QSpinBox *head_, *query_, *key_;
    QLabel *query_token_, *key_token_;
    int filled_for_ = 0;  ///< the study whose sequences and sites are listed
    bool following_ = false;
};

}  // namespace headscope::widgets
