// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <map>
#include <vector>

#include "widgets/desk/view.h"
#include "widgets/views/lines/window_weights.h"

class QComboBox;
class QLabel;
class QSlider;
class QSpinBox;
class QToolButton;

namespace headscope::widgets {

class HeadChips;
class LinesCanvas;

/// Queries left, keys right, lines for the weights of one or several heads of the selected layer. Of a long text a
/// window of tokens that follows the selection and can be moved.
class LinesView : public View {
    Q_OBJECT
public:
    LinesView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    /// Weights that the slider stops at.
    static constexpr std::array kThresholds{0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2,
                                            0.25,  0.3,  0.4,  0.5,  0.6,  0.7,  0.8, 0.9};

    void build();
    bool notice_without_maps();
    void follow_head();
    void follow_tokens();
    void show_head(int head, bool shown);
    void show_only(int head);
    void move_window(std::int64_t first);
    void step(int tokens);
    void refresh_strip();
    void refresh_counts();
    double threshold() const;
    std::int64_t window_size() const;
    TokenWindow window() const;
    std::int64_t queries() const;
    std::int64_t keys() const;
    bool crossed() const;
    bool words() const;
    /// The words of the queries' text, or of the keys'; null: pieces are shown, or they are not there yet.
    std::shared_ptr<const StudyWords> words_of(bool query) const;
    /// The desk's, counted in what is shown; and back.
    std::optional<std::int64_t> chosen(bool query) const;
    void select_units(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    std::vector<std::int32_t> regions(std::int64_t begin, std::int64_t end) const;

    HeadChips* strip_ = nullptr;
    QToolButton *every_ = nullptr, *earlier_ = nullptr, *later_ = nullptr;
    QSlider* threshold_ = nullptr;
    QSpinBox* first_shown_ = nullptr;
    QComboBox *size_ = nullptr, *units_ = nullptr;
    QLabel *threshold_text_ = nullptr, *range_text_ = nullptr, *counts_ = nullptr, *pointed_ = nullptr;
    QWidget* window_tools_ = nullptr;
    LinesCanvas* canvas_ = nullptr;

    std::map<int, int> heads_;    ///< shown, with their colours
    std::int64_t first_ = 0;      ///< the window's first query
    std::int64_t first_key_ = 0;  ///< and key, where those are of another text
    Selection last_;
    std::optional<std::int64_t> seen_query_;  ///< that was scrolled to
};

}  // namespace headscope::widgets
