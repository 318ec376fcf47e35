// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The dialog of `headscope ask` without its widgets: tools with their options, problems, and the command's words.

#include <QString>
#include <QStringList>
#include <map>
#include <vector>

#include "widgets/panels/text_choice.h"

namespace headscope::widgets {

/// An open checkpoint.
struct AskSource {
    QString path, name;
    QString problem;               ///< why it cannot be asked; empty: it can
    bool encoder_decoder = false;  ///< its decoder reads a text of its own
    bool operator==(const AskSource&) const = default;
};

/// The control of an option of core/ask/options.
struct AskControl {
    const char* option;  ///< "--how"
    const char* label;
    bool of_decoder = false;  ///< the text of an encoder-decoder's decoder
};
/// In the order of the dialog.
const std::vector<AskControl>& ask_controls();
/// Other options of the command that the dialog or the text panel has: positional ones without dashes.
const std::vector<const char*>& ask_own_controls();
/// The rest: views save tables, and the window computes with all processors and the weights that fit.
const std::vector<const char*>& ask_left_out();

/// A tool of `headscope ask`.
struct AskToolForm {
    const char *tool, *title, *about;
    /// panel: texts of the panel, optional: it may have none, pair: a clean and a corrupted text.
    enum class Texts { panel, optional, pair, none } texts = Texts::panel;
    const char* metric = nullptr;  ///< the default of --metric; null: it has none
    bool answer = false;           ///< reads --answer, --against and --position
    bool models = false;           ///< reads checkpoints from disk in place of an open one
};
const std::vector<AskToolForm>& ask_forms();
const AskToolForm* find_ask_form(const QString& tool);  ///< null: unknown

/// Values of --metric, and what each reads.
struct AskMetric {
    const char *name, *title;
    bool answer, against;  ///< needs them
};
const std::vector<AskMetric>& ask_metrics();

struct AskChoice {
    QString tool, model;  ///< model: a path
    QStringList models;   ///< paths, for a tool that reads several
    TextChoice texts;     ///< sources, first token, length and device of the text panel
    QString clean, corrupted;
    QString metric;  ///< empty: the tool's default
    QString answer, against, position;
    QString interventions;               ///< a file; empty: none
    std::map<QString, QString> options;  ///< by name; of a flag any value is "on"
    bool resume = false;
    QString output;
};

/// Why the command cannot be started yet; empty: it can.
QString problem_of(const AskChoice& choice, const std::vector<AskSource>& sources);

/// `examples`: the bundled texts, which the command reads as --text.
QStringList ask_words(const AskChoice& choice, const std::vector<TextExample>& examples);

}  // namespace headscope::widgets
