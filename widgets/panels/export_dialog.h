// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>
#include <QImage>
#include <QTimer>

#include "widgets/desk/desk.h"
#include "widgets/panels/figure_maker.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QListWidget;
class QPushButton;

namespace headscope::widgets {

class FigureForm;

/// A figure of open analyses, runs or sizes: what of them, how it looks, and where it goes, with a preview at true size
/// and the command that makes the same file.
class ExportDialog : public QDialog {
    Q_OBJECT
public:
    ExportDialog(Desk* desk, std::string program, QWidget* parent = nullptr);

    /// Sets the figure to draw; the style stays.
    void show_wish(const FigureRequest& wish);
    /// Puts a figure on the clipboard, on the page that the dialog has: "png", "svg", "csv".
    void copy(const FigureRequest& wish, const QString& format);
    /// Request and input files with which the command line draws a figure in the current style.
    struct Drawing {
        figures::FigureRequest request;
        std::vector<std::string> files;
    };
    Drawing drawing(const FigureRequest& wish) const;
    /// With the names that the user gave the analyses, where the form has no others.
    figures::FigureRequest request() const;
    /// The equivalent command line, as shown.
    QString command() const;

Q_SIGNALS:
    void told(const QString& text);
    void failed(const QString& text);  ///< a copy, while the dialog is not shown

private:
    void build();
    void list_inputs(const QStringList& chosen);
    QStringList paths_of(const FigureRequest& wish) const;
    std::vector<std::string> files() const;
    void changed();
    void show_picture();
    void ask_output();

    Desk* desk_;
    FigureMaker maker_;
    QComboBox *recipe_ = nullptr, *zoom_ = nullptr;
    QListWidget* inputs_ = nullptr;
    FigureForm* form_ = nullptr;
    QLabel *picture_ = nullptr, *note_ = nullptr, *problem_ = nullptr;
    QLineEdit* command_ = nullptr;
    QPushButton *save_ = nullptr, *copy_ = nullptr;
    QImage image_;
    QTimer soon_;
    bool filling_ = false;
};

}  // namespace headscope::widgets
