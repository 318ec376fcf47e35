// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/palette.h"

namespace headscope::widgets {
namespace {

QColor mixed(const QColor& a, const QColor& b, double share) {
    const auto mix = [share](int x, int y) { return static_cast<int>(x + (y - x) * share + 0.5); };
    return {mix(a.red(), b.red()), mix(a.green(), b.green()), mix(a.blue(), b.blue())};
}

}  // namespace

QPalette make_palette(const Theme& theme) {
    const QColor frame = mixed(theme.background, theme.text, theme.dark ? 0.08 : 0.05);
    const QColor button = mixed(theme.background, theme.text, theme.dark ? 0.14 : 0.08);
    const QColor faint = mixed(theme.background, theme.text, 0.45);
    QPalette palette;
    palette.setColor(QPalette::Window, frame);
    palette.setColor(QPalette::WindowText, theme.text);
    palette.setColor(QPalette::Base, theme.background);
    palette.setColor(QPalette::AlternateBase, mixed(theme.background, theme.text, 0.04));
    palette.setColor(QPalette::Text, theme.text);
    palette.setColor(QPalette::PlaceholderText, faint);
    palette.setColor(QPalette::Button, button);
    palette.setColor(QPalette::ButtonText, theme.text);
    palette.setColor(QPalette::BrightText, theme.accent);
    palette.setColor(QPalette::Light, mixed(button, theme.dark ? theme.text : theme.background, 0.3));
    palette.setColor(QPalette::Midlight, mixed(button, theme.background, 0.3));
    palette.setColor(QPalette::Mid, mixed(theme.background, theme.text, 0.25));
    palette.setColor(QPalette::Dark, mixed(theme.background, theme.text, theme.dark ? 0.35 : 0.3));
    palette.setColor(QPalette::Shadow, mixed(theme.background, Qt::black, 0.6));
    palette.setColor(QPalette::Link, theme.accent);
    palette.setColor(QPalette::LinkVisited, theme.accent);
    const QColor chosen = mixed(theme.background, theme.categorical(0), theme.dark ? 0.55 : 0.85);
    palette.setColor(QPalette::Highlight, chosen);
    palette.setColor(QPalette::HighlightedText, readable_on(chosen));
    palette.setColor(QPalette::ToolTipBase, mixed(theme.background, theme.text, 0.1));
    palette.setColor(QPalette::ToolTipText, theme.text);
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
        palette.setColor(QPalette::Disabled, role, faint);
    palette.setColor(QPalette::Disabled, QPalette::Highlight, mixed(theme.background, theme.text, 0.2));
    return palette;
}

}  // namespace headscope::widgets
