// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/job_editor.h"

#include <QFontDatabase>
#include <QLabel>
#include <QLocale>
#include <QRegularExpression>
#include <QSyntaxHighlighter>
#include <QTextBlock>
#include <QVBoxLayout>

namespace headscope::widgets {
namespace {

constexpr int kEditPause = 250;  // ms without a key before the text is read

/// The block of the line that sets `key`; invalid: none.
QTextBlock block_of(const QTextDocument& document, const QString& key) {
    const QString section = key.contains(QLatin1Char('.')) ? key.section(QLatin1Char('.'), 0, 0) : QString();
    const QString name = key.section(QLatin1Char('.'), -1);
    static const QRegularExpression header(QStringLiteral(R"(^\s*\[([A-Za-z_]+)\])"));
    const QRegularExpression line(QStringLiteral(R"(^\s*%1\s*[.=])").arg(QRegularExpression::escape(name)));
    QString now;
    for (QTextBlock block = document.begin(); block.isValid(); block = block.next()) {
        if (const auto found = header.match(block.text()); found.hasMatch()) now = found.captured(1);
        if (now == section && line.match(block.text()).hasMatch()) return block;
    }
    return {};
}

}  // namespace

class TomlColours final : public QSyntaxHighlighter {
public:
    using QSyntaxHighlighter::QSyntaxHighlighter;
    void set_theme(const Theme& theme) {
        theme_ = theme;
        rehighlight();
    }

protected:
    void highlightBlock(const QString& text) override {
        static const QRegularExpression header(QStringLiteral(R"(^\s*\[[^\]]*\])"));
        static const QRegularExpression name(QStringLiteral(R"(^\s*[A-Za-z_0-9.\-"]+\s*(?==))"));
        static const QRegularExpression literal(QStringLiteral(
            R"re("(?:[^"\\]|\\.)*"|'[^']*'|\b(?:true|false)\b|[-+]?\b\d[\d_]*(?:\.\d+)?(?:[eE][-+]?\d+)?\b)re"));
        int comment = -1;
        bool quoted = false;
        for (int i = 0; i < text.size() && comment < 0; ++i) {
            if (text[i] == QLatin1Char('"')) quoted = !quoted;
            if (text[i] == QLatin1Char('#') && !quoted) comment = i;
        }
        const QString code = comment < 0 ? text : text.left(comment);
        QTextCharFormat format;
        for (auto at = literal.globalMatch(code); at.hasNext();) {
            const auto found = at.next();
            format.setForeground(theme_.categorical(found.captured().startsWith(QLatin1Char('"')) ? 2 : 0));
            setFormat(static_cast<int>(found.capturedStart()), static_cast<int>(found.capturedLength()), format);
        }
        format = {};
        if (const auto found = name.match(code); found.hasMatch()) {
            format.setForeground(theme_.text);
            setFormat(0, static_cast<int>(found.capturedLength()), format);
        }
        if (const auto found = header.match(code); found.hasMatch()) {
            format.setForeground(theme_.categorical(1));
            format.setFontWeight(QFont::Bold);
            setFormat(0, static_cast<int>(found.capturedLength()), format);
        }
        if (comment >= 0) {
            format = {};
            format.setForeground(theme_.muted);
            format.setFontItalic(true);
            setFormat(comment, static_cast<int>(text.size()) - comment, format);
        }
    }

private:
    Theme theme_ = make_theme(false);
};

JobEditor::JobEditor(JobDraft* draft, QWidget* parent)
    : QWidget(parent),
      draft_(draft),
      text_(new PlainEdit(this)),
      problem_(new QLabel(this)),
      colours_(new TomlColours(text_->document())),
      theme_(make_theme(false)) {
    text_->setObjectName(QStringLiteral("job_text"));
    text_->setAccessibleName(tr("The job as TOML"));
    text_->setToolTip(tr("The job as TOML. The text and the form show the same job"));
    text_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    text_->setLineWrapMode(QPlainTextEdit::WidgetWidth);
    text_->setTabChangesFocus(true);
    text_->setAcceptDrops(false);
    problem_->setObjectName(QStringLiteral("job_problem"));
    problem_->setWordWrap(true);
    problem_->setTextFormat(Qt::PlainText);
    problem_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(3);
    column->addWidget(text_, 1);
    column->addWidget(problem_);
    soon_.setSingleShot(true);
    soon_.setInterval(kEditPause);
    connect(&soon_, &QTimer::timeout, this, &JobEditor::take);
    connect(text_, &QPlainTextEdit::textChanged, this, [this] {
        if (!following_) soon_.start();
    });
    connect(text_, &PlainEdit::too_long, this, [this](const QString&, qsizetype characters) {
        problem_->setText(tr("[job] expected at most %1; found %2. Nothing was pasted.")
                              .arg(characters_in_words(text_->most()), QLocale::c().toString(characters)));
        problem_->show();
    });
    connect(draft_, &JobDraft::changed, this, &JobEditor::follow);
    connect(draft_, &JobDraft::estimate_changed, this, &JobEditor::mark);
    follow();
}

void JobEditor::take() {
    soon_.stop();
    draft_->set_text(text_->toPlainText());
    mark();
}

void JobEditor::follow() {
    if (text_->toPlainText() != draft_->text()) {
        following_ = true;
        // As one edit, so that the text's own undo has it and the cursor stays about where it was.
        const int place = text_->textCursor().position();
        QTextCursor cursor(text_->document());
        cursor.beginEditBlock();
        cursor.select(QTextCursor::Document);
        cursor.insertText(draft_->text());
        cursor.endEditBlock();
        cursor.setPosition(std::min<int>(place, static_cast<int>(draft_->text().size())));
        text_->setTextCursor(cursor);
        following_ = false;
    }
    mark();
}

void JobEditor::mark() {
    const auto& problem = draft_->problem() ? draft_->problem() : draft_->estimate().problem;
    problem_->setText(problem ? problem->text : QString());
    problem_->setVisible(problem.has_value());
    QPalette colours;
    colours.setColor(QPalette::WindowText, theme_.accent);
    problem_->setPalette(colours);
    QList<QTextEdit::ExtraSelection> selections;
    const auto add = [&](const QTextBlock& block, QColor colour, float strength) {
        if (!block.isValid()) return;
        QTextEdit::ExtraSelection selection;
        colour.setAlphaF(strength);
        selection.format.setBackground(colour);
        selection.format.setProperty(QTextFormat::FullWidthSelection, true);
        selection.cursor = QTextCursor(block);
        selections << selection;
    };
    if (!key_.isEmpty()) add(block_of(*text_->document(), key_), theme_.categorical(0), theme_.dark ? 0.22F : 0.12F);
    if (problem) {
        QTextBlock block;
        if (problem->line > 0) block = text_->document()->findBlockByNumber(problem->line - 1);
        if (!block.isValid() && !problem->key.isEmpty()) block = block_of(*text_->document(), problem->key);
        add(block, theme_.accent, theme_.dark ? 0.4F : 0.22F);
    }
    text_->setExtraSelections(selections);
}

void JobEditor::show_key(const QString& key) {
    key_ = key;
    mark();
    const QTextBlock block = block_of(*text_->document(), key);
    if (!block.isValid() || text_->hasFocus()) return;
    text_->setTextCursor(QTextCursor(block));
    text_->ensureCursorVisible();
}

void JobEditor::set_theme(const Theme& theme) {
    theme_ = theme;
    colours_->set_theme(theme);
    mark();
}

}  // namespace headscope::widgets
