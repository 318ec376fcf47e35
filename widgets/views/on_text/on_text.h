// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "widgets/desk/view.h"
#include "widgets/panels/token_weights.h"

class QComboBox;
class QLabel;
class QSplitter;
class QToolButton;

namespace headscope::widgets {

class Banner;
class ColourKey;
class TokenTable;
class TokenTextArea;

/// The text itself, coloured by what a chosen token looks at, by who looks at it, or by how much each is looked at.
/// Texts are of one sequence: the first one where all are chosen.
class OnTextView : public View {
    Q_OBJECT
public:
    OnTextView(Desk* desk, QWidget* parent);

    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;
    void resizeEvent(QResizeEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QComboBox* choice(const char* name, const QString& title, const QString& hint, const QStringList& names,
                      const QStringList& values);
    void build();
    TextColouring colouring() const;
    HeadScope scope() const;
    /// Values of rows and columns: weights, norms or rollout.
    figures::MapValues kind() const;
    bool implicit() const;
    bool crossed() const;  ///< queries and keys are of different texts
    std::string query_stream() const;
    std::string key_stream() const;
    bool text_is_keys() const;
    bool words() const;
    /// Tokens of a stream, or its words; what is shown counts in them, the desk in tokens.
    const store::SequenceTokens& tokens(const std::string& stream) const;
    std::optional<std::int64_t> shown_unit(std::optional<std::int64_t> token, const std::string& stream) const;
    std::int64_t chosen() const;
    void choose(std::int64_t token, bool in_keys);
    void step(int tokens);

    bool refresh_texts();
    void refresh_colours();
    void refresh_banner(const TextValues& values);
    void refresh_heading(const TextValues& values);
    void refresh_list();
    void refresh_strip();
    void refresh_pointed(std::int64_t token);
    figures::ColourScale colour_scale() const;
    QString describe(std::int64_t token) const;

    QComboBox *colouring_ = nullptr, *scope_ = nullptr, *what_ = nullptr, *scale_ = nullptr, *range_ = nullptr;
    QComboBox* units_ = nullptr;
    QToolButton *list_shown_ = nullptr, *experts_shown_ = nullptr, *types_shown_ = nullptr;
    ColourKey* key_ = nullptr;
    Banner* banner_ = nullptr;
    QLabel *heading_ = nullptr, *other_title_ = nullptr, *list_title_ = nullptr, *pointed_ = nullptr;
    QSplitter *split_ = nullptr, *texts_ = nullptr;
    TokenTextArea *text_ = nullptr, *other_ = nullptr;  ///< coloured; where a token is chosen of another text
    QWidget *other_panel_ = nullptr, *list_panel_ = nullptr;
    TokenTable* list_ = nullptr;
    TokenWeights weights_;
    std::vector<float> values_;
    std::shared_ptr<const store::AnalysisFile::Experts> experts_;  ///< of the shown text and layer; null: none shown
    std::vector<std::int32_t> types_;                              ///< of the shown text's tokens, where they are shown
    mutable std::shared_ptr<const StudyWords> query_words_, key_words_;  ///< kept while tokens() hands them out
    TextRequest shown_wish_;
    bool arranged_ = true;  ///< the splitter's sizes suit its direction
};

}  // namespace headscope::widgets
