// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/text/text_area_access.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <algorithm>

#include "widgets/text/text_area.h"

namespace headscope::widgets {
namespace {

class TextAreaAccess final : public QAccessibleWidget, public QAccessibleTextInterface {
public:
    explicit TextAreaAccess(TokenTextArea* area) : QAccessibleWidget(area, QAccessible::EditableText) {}

    void* interface_cast(QAccessible::InterfaceType type) override {
        if (type == QAccessible::TextInterface) return static_cast<QAccessibleTextInterface*>(this);
        return QAccessibleWidget::interface_cast(type);
    }
    QAccessible::State state() const override {
        QAccessible::State state = QAccessibleWidget::state();
        state.readOnly = true;
        state.multiLine = true;
        return state;
    }

    int characterCount() const override { return static_cast<int>(shown().size()); }
    QString text(int begin, int end) const override {
        begin = std::clamp(begin, 0, characterCount());
        return shown().mid(begin, std::clamp(end, begin, characterCount()) - begin);
    }
    int cursorPosition() const override {
        const auto token = area()->outlined();
        return token ? static_cast<int>(place(*token).begin) : 0;
    }
    void setCursorPosition(int position) override {
        if (const std::int64_t token = token_at(position); token >= 0) Q_EMIT area()->clicked(token, {});
    }
    QRect characterRect(int offset) const override {
        const QRect rect = area()->token_rect(token_at(offset));
        return {area()->viewport()->mapToGlobal(rect.topLeft()), rect.size()};
    }
    int offsetAtPoint(const QPoint& point) const override {
        const std::int64_t token = area()->token_at(area()->viewport()->mapFromGlobal(point));
        return token < 0 ? -1 : static_cast<int>(place(token).begin);
    }
    QString attributes(int offset, int* begin, int* end) const override {
        const std::int64_t token = token_at(offset);
        *begin = token < 0 ? offset : static_cast<int>(place(token).begin);
        *end = token < 0 ? offset + 1 : static_cast<int>(place(token).end);
        const QColor colour = area()->colour(token);
        if (!colour.isValid()) return {};
        return QStringLiteral("background-color:rgb(%1,%2,%3);token-value:%4;")
            .arg(colour.red())
            .arg(colour.green())
            .arg(colour.blue())
            .arg(static_cast<double>(area()->values()[static_cast<std::size_t>(token)]), 0, 'g', 3);
    }
    void scrollToSubstring(int begin, int) override {
        if (const std::int64_t token = token_at(begin); token >= 0) area()->show_token(token);
    }
    void selection(int, int* begin, int* end) const override { *begin = *end = 0; }
    int selectionCount() const override { return 0; }
    void addSelection(int, int) override {}
    void removeSelection(int) override {}
    void setSelection(int, int, int) override {}

private:
    TokenTextArea* area() const { return static_cast<TokenTextArea*>(widget()); }
    const QString& shown() const {
        static const QString none;
        return area()->text() ? area()->text()->text : none;
    }
    std::int64_t token_at(int offset) const { return area()->text() ? area()->text()->token_at(offset) : -1; }
    ShownText::Token place(std::int64_t token) const {
        const auto& text = area()->text();
        if (!text || token < 0 || token >= std::ssize(text->tokens)) return {};
        return text->tokens[static_cast<std::size_t>(token)];
    }
};

QAccessibleInterface* make_access(const QString&, QObject* object) {
    auto* area = qobject_cast<TokenTextArea*>(object);
    return area ? new TextAreaAccess(area) : nullptr;
}

}  // namespace

void enable_text_access() {
    static const bool once = (QAccessible::installFactory(make_access), true);
    Q_UNUSED(once);
}

void tell_text_changed(TokenTextArea* area) {
    if (!QAccessible::isActive()) return;
    QAccessibleTextInsertEvent event(area, 0, area->text() ? area->text()->text : QString());
    QAccessible::updateAccessibility(&event);
}

void tell_token_chosen(TokenTextArea* area, std::int64_t token) {
    if (!QAccessible::isActive() || !area->text() || token >= std::ssize(area->text()->tokens)) return;
    QAccessibleTextCursorEvent event(area,
                                     static_cast<int>(area->text()->tokens[static_cast<std::size_t>(token)].begin));
    QAccessible::updateAccessibility(&event);
}

}  // namespace headscope::widgets
