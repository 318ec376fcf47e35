// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <array>

#include "widgets/text/text_area.h"
#include "widgets/views/compare/sides.h"

class QComboBox;
class QLabel;
class QSplitter;

namespace headscope::widgets {

class Banner;
class ColourKey;

/// How much each token is looked at: the mean of its column over the queries.
struct TokenMass {
    std::vector<float> values;  ///< one a token
};
std::int64_t bytes_of(const TokenMass& mass);

/// A text whose tokens without a partner are underlined with dots.
class PairedTextArea : public TokenTextArea {
    Q_OBJECT
public:
    using TokenTextArea::TokenTextArea;
    /// Partner of each token of this text; -1: none.
    void set_partners(const std::vector<std::int64_t>& partners);
    std::int64_t unpaired() const { return std::ssize(alone_); }

protected:
    void paintEvent(QPaintEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    std::vector<std::int64_t> alone_;
};

/// Both texts, each token coloured by how much more its partner, or it, is looked at on the right than on the left.
class CompareText : public QWidget {
    Q_OBJECT
public:
    CompareText(Desk* desk, QWidget* parent);

    /// Asks for what is missing; call it again when values have arrived.
    void show_sides(const CompareSides& sides);
    bool of_layer() const;  ///< the mean over its heads, not one of them
    PairedTextArea* area(bool right) const { return areas_[right ? 1 : 0]; }

    QJsonObject state() const;
    void restore(const QJsonObject& state);

Q_SIGNALS:
    void state_changed();

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Shown {
        CompareSides sides;
        bool layer = false;
        std::array<std::shared_ptr<const ShownText>, 2> texts;
        std::array<std::shared_ptr<const TokenMass>, 2> mass;
        std::shared_ptr<const TokenLink> link;
        bool operator==(const Shown&) const = default;
    };
    void show_values();
    void show_chosen();
    void show_message();
    void choose(std::size_t side, std::int64_t token);
    std::size_t selected_side() const { return shown_.sides.selected_right ? 1 : 0; }
    QString describe(std::size_t side, std::int64_t token) const;

    Desk* desk_;
    TokenLinks links_;
    Shown shown_;
    QString failure_;
    Theme theme_;
    std::optional<std::int64_t> key_;  ///< shown as chosen last
    QComboBox *scope_ = nullptr, *scale_ = nullptr;
    ColourKey* colours_ = nullptr;
    Banner* banner_ = nullptr;
    QSplitter* split_ = nullptr;
    std::array<QLabel*, 2> titles_{};
    std::array<PairedTextArea*, 2> areas_{};
    QLabel* pointed_ = nullptr;
};

}  // namespace headscope::widgets
