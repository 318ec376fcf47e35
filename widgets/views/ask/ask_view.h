// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/figures/options/option_list.h"
#include "widgets/desk/view.h"
#include "widgets/views/ask/ask_maker.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace headscope::widgets {

class Banner;
class FigureView;
struct OpenAsk;

/// A row of the table of views of ask files (ask_pages.cpp). Controls follow from the options that the recipe reads:
/// a box for choices and texts, a check box for flags, a line for words.
struct AskPage {
    const char *tool, *recipe;
    /// Values that the file offers for a word option, as "site"; null or none: the option is a line to type into.
    std::vector<std::string> (*values)(const store::AskRecord& record, const std::string& option) = nullptr;
    const char* standard = "all";  ///< label of a box without a value; a number where that is the default
    bool one_text = false;         ///< without a choice the recipe draws the first text, not the mean of all
    /// False for an option that the recipe reads of other inputs alone; null: it reads all of ask files.
    bool (*reads)(const std::string& option) = nullptr;
};

/// A recipe's figure of an ask file. A click on a cell selects its head in an open analysis of the same model.
class AskView : public View {
    Q_OBJECT
public:
    /// `page` outlives the view.
    AskView(Desk* desk, const AskPage& page, QWidget* parent);
    QJsonObject state() const override;
    void restore(const QJsonObject& state) override;
    std::optional<FigureRequest> figure() const override;

protected:
    void refresh() override;

private:
    void add_option(const figures::FigureOption& option);
    void set_option(const std::string& name, const std::string& value);
    void fill_files();
    void fill_values(const std::shared_ptr<const store::AskRecord>& shown);
    figures::FigureOptions options(const store::AskRecord& record) const;
    void draw();
    void mark_selected();
    void clicked(const figures::Subject& subject);
    void show_words(const QString& pointed = {});
    void add_overview_button();
    /// Selects an analysis of the file's model and colors the file's main column in the overview.
    void show_in_overview();
    const OpenAsk* file() const;
    /// The selected analysis if it is of the file's model, else another open one of it; null: none.
    Study* study_of(const store::AskRecord& record) const;
    /// The same for a file whose scores are columns of the analysis; null: none.
    Study* study_with_columns() const;

    const AskPage& page_;
    AskMaker* maker_;
    QWidget* bar_;
    QComboBox* files_;
    Banner* failure_;
    FigureView* picture_;
    QLabel* pointed_;
    QPushButton* overview_ = nullptr;  ///< of tools whose scores are columns
    /// Boxes whose entries depend on the file, by option.
    std::map<std::string, QComboBox*> by_file_;
    /// Controls of all options, for restore(): each sets its own value without a signal.
    std::map<std::string, std::function<void(const std::string&)>> show_value_;
    std::map<std::string, std::string> values_;       ///< by option; none: its default; of a flag any text is "on"
    std::shared_ptr<const store::AskRecord> filled_;  ///< the record and the values that the boxes show
    std::map<std::string, std::string> filled_values_;
    bool filling_ = false;
};

/// ViewKind::make of a view that a page describes.
template <const AskPage& page>
View* make_ask_view(Desk* desk, QWidget* parent) {
    return new AskView(desk, page, parent);
}

}  // namespace headscope::widgets
