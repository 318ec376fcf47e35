// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QJsonObject>
#include <map>
#include <vector>

#include "widgets/panels/ask/ask_choice.h"
#include "widgets/panels/task_dialog.h"

class QCheckBox;
class QComboBox;

namespace headscope::widgets {

class PlainEdit;

/// `headscope ask`: a tool over an open checkpoint and the text panel's texts. Its owner passes both.
class AskDialog : public TaskDialog {
    Q_OBJECT
public:
    explicit AskDialog(QWidget* parent = nullptr);

    /// The open checkpoints; the chosen one stays, else it is the one of that path.
    void set_sources(const std::vector<AskSource>& sources, const QString& chosen);
    void set_texts(const TextChoice& texts, const std::vector<TextExample>& examples);
    /// Results go to this folder unless the user names a file.
    void set_folder(const QString& folder);
    void choose_tool(const QString& tool);
    /// A new name for the next result, in place of one that was suggested.
    void suggest_output();

    AskChoice choice() const;
    QStringList words() const override;
    QString problem() const override;
    QString output() const override;

private:
    void build_models();
    void build_pair();
    void build_metric();
    void build_options();
    void show_rows();
    QLineEdit* add_line(const char* name, const QString& label, const QString& tip);
    QStringList models() const;
    bool encoder_decoder() const;  ///< of the chosen checkpoint

    std::vector<AskSource> sources_;
    TextChoice texts_;
    std::vector<TextExample> examples_;
    QString folder_, suggested_;
    QComboBox *tool_, *source_, *metric_ = nullptr;
    QLabel *about_, *texts_shown_;
    QLineEdit *clean_ = nullptr, *corrupted_ = nullptr, *answer_ = nullptr, *against_ = nullptr, *position_ = nullptr,
              *interventions_ = nullptr, *output_ = nullptr;
    PlainEdit* models_ = nullptr;  ///< paths, one a line
    QCheckBox* resume_ = nullptr;
    std::map<QString, QWidget*> options_;  ///< controls by option
};

}  // namespace headscope::widgets
