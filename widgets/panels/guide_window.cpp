// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/panels/guide_window.h"

#include <QDialogButtonBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QScrollBar>
#include <QTextBlock>
#include <QTextBrowser>
#include <QVBoxLayout>
#include <utility>

namespace headscope::widgets {

GuideWindow::GuideWindow(std::function<QString(const QString&)> read, QWidget* parent)
    : QDialog(parent), read_(std::move(read)), text_(new QTextBrowser(this)), field_(new QLineEdit(this)) {
    setObjectName(QStringLiteral("guide_window"));
    setWindowTitle(tr("User guide"));
    resize(680, 560);
    text_->setObjectName(QStringLiteral("guide_text"));
    text_->setAccessibleName(tr("User guide"));
    text_->setOpenLinks(false);
    field_->setObjectName(QStringLiteral("guide_find"));
    field_->setAccessibleName(tr("Find in this page"));
    field_->setPlaceholderText(tr("Find in this page"));
    field_->setToolTip(tr("Return finds the next place"));
    auto* contents = new QPushButton(tr("To the top"), this);
    contents->setObjectName(QStringLiteral("guide_top"));
    contents->setAutoDefault(false);
    auto* head = new QHBoxLayout;
    head->addWidget(field_, 1);
    head->addWidget(contents);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    auto* column = new QVBoxLayout(this);
    column->addLayout(head);
    column->addWidget(text_, 1);
    column->addWidget(buttons);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(contents, &QPushButton::clicked, this, [this] { text_->verticalScrollBar()->setValue(0); });
    connect(field_, &QLineEdit::returnPressed, this, &GuideWindow::find_again);
    connect(text_, &QTextBrowser::anchorClicked, this, [this](const QUrl& link) {
        if (link.isRelative() && link.path().endsWith(QLatin1String(".md"))) open_page(link.path());
    });
}

QString GuideWindow::plain(const QString& markdown) {
    static const QRegularExpression comment(QStringLiteral("<!--.*?-->\\n?"),
                                            QRegularExpression::DotMatchesEverythingOption),
        picture(QStringLiteral("^!\\[[^\\]]*\\]\\([^)]*\\)\\n?"), QRegularExpression::MultilineOption);
    return QString(markdown).remove(comment).remove(picture);
}

void GuideWindow::open_page(const QString& page) {
    const QString text = page == page_ ? QString() : plain(read_(page));
    if (text.isEmpty()) return;
    page_ = page;
    text_->setMarkdown(text);
    text_->verticalScrollBar()->setValue(0);
}

bool GuideWindow::show_topic(const QString& page, const QString& topic) {
    open_page(page);
    if (topic.isEmpty()) return page == page_;
    for (QTextBlock block = text_->document()->begin(); block.isValid(); block = block.next()) {
        const QString words = block.text();
        const bool whole = words.size() == topic.size() || !words.mid(topic.size(), 1).front().isLetterOrNumber();
        if (!words.startsWith(topic) || words.isEmpty() || !whole) continue;
        QTextCursor place(block);
        place.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
        text_->moveCursor(QTextCursor::End);  // so that the paragraph comes to the top
        text_->setTextCursor(place);
        text_->ensureCursorVisible();
        return true;
    }
    return false;
}

void GuideWindow::find_again() {
    if (field_->text().isEmpty() || text_->find(field_->text())) return;
    text_->moveCursor(QTextCursor::Start);
    text_->find(field_->text());
}

}  // namespace headscope::widgets
