// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/view.h"
#include "widgets/text/shown_text.h"
#include "widgets/views/loss/predictions.h"

class QComboBox;
class QLabel;
class QPushButton;
class QSplitter;
class QToolButton;

namespace headscope::widgets {

class Banner;
class ColourKey;
class LossCurve;
class TokenTable;
class TokenTextArea;

/// How well the model foresees its text: each token coloured by the loss with which it was predicted from those before
/// it, the curve by position, the most surprising tokens, and what was expected in place of a chosen one. Of encoders
/// and heads of classes what they say of a token, or of the text.
class LossView : public View {
    Q_OBJECT
public:
    LossView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    static constexpr double kFixedRange = 10;  ///< nats; one in 22 000

    void build();
    QWidget* build_lists();
    const store::SequenceTokens& tokens() const;
    bool up_to_date() const;
    bool linked() const;  ///< the selection's query is a token of this text
    std::optional<std::int64_t> chosen() const;
    void choose(std::int64_t token);
    void step(int tokens);
    void refresh_heading();
    void refresh_surprises();
    void refresh_predictions();
    void show_predictions(const Predictions& found, std::int64_t token);
    void show_classes(const Predictions& found);
    void ask_for_logits();
    /// The logits are of the text's classes, not of its tokens.
    bool of_text() const { return study()->header().classes > 0; }
    figures::OutputKind output() const { return known_ ? known_->output : figures::OutputKind{}; }
    figures::ColourScale colour_scale() const;
    QString describe(std::int64_t token) const;
    QString name_of(std::int32_t id) const;

    QComboBox* range_ = nullptr;
    QToolButton* numbers_ = nullptr;
    ColourKey* key_ = nullptr;
    Banner *banner_ = nullptr, *no_logits_ = nullptr;
    QLabel *heading_ = nullptr, *surprises_title_ = nullptr, *predictions_title_ = nullptr, *pointed_ = nullptr;
    QSplitter *split_ = nullptr, *left_ = nullptr, *right_ = nullptr;
    TokenTextArea* text_ = nullptr;
    LossCurve* curve_ = nullptr;
    TokenTable *surprises_ = nullptr, *predictions_ = nullptr;

    std::string stream_ = "tokens";
    int shown_study_ = 0;
    std::vector<float> values_;   ///< of each token, the loss at the position before it
    bool has_loss_ = false;       ///< some token has one
    std::vector<float> classes_;  ///< of each token, where its class is shown instead
    std::optional<std::int64_t> own_token_;
    bool arranged_ = false;  ///< the splitters' sizes suit their directions
    std::shared_ptr<const KnownPieces> known_;
};

}  // namespace headscope::widgets
