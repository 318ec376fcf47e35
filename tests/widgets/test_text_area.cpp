// SPDX-License-Identifier: GPL-3.0-or-later
// Texts with coloured tokens: what is shown of a text, where lines end, where tokens stand.
#include <QAccessible>
#include <QApplication>
#include <QScrollBar>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>
#include <catch2/catch.hpp>

#include "widgets/fonts.h"
#include "widgets/plots/figure/offscreen.h"
#include "widgets/text/text_area.h"

using namespace headscope;
using namespace headscope::widgets;

namespace {

/// Tokens that stand one behind the other in a text.
store::SequenceTokens tokens_of(const std::vector<std::string>& pieces) {
    store::SequenceTokens tokens;
    for (const std::string& piece : pieces) {
        const auto begin = static_cast<std::int64_t>(tokens.text.size());
        tokens.text += piece;
        tokens.ids.push_back(static_cast<std::int32_t>(tokens.ids.size()));
        tokens.pieces.push_back(piece);
        tokens.offsets.push_back({begin, static_cast<std::int64_t>(tokens.text.size())});
    }
    return tokens;
}

QString shown(const ShownText& text, std::size_t token) {
    return text.text.mid(text.tokens[token].begin, text.tokens[token].end - text.tokens[token].begin);
}

struct Area {
    Area() {
        ensure_application();
        area.resize(500, 400);
        area.show();
    }
    void set(const store::SequenceTokens& tokens) {
        area.set_text(std::make_shared<const ShownText>(show_text(tokens)));
        finish();
    }
    void finish() {
        for (int i = 0; i < 100000 && !area.laid_out(); ++i) QApplication::processEvents();
        REQUIRE(area.laid_out());
    }
    bool application = (ensure_application(), true);
    TokenTextArea area;
};

store::SequenceTokens long_text(std::size_t count) {
    const std::vector<std::string> words{" the", " wind", "ow", " of", " light", ",", " unto", " 月", "\n", " him"};
    std::vector<std::string> pieces;
    for (std::size_t i = 0; i < count; ++i) {
        const std::string& word = words[i * 7 % 10];
        pieces.push_back(word == "\n" ? word : word + std::to_string(i));  // each is measured by itself
    }
    return tokens_of(pieces);
}

}  // namespace

TEST_CASE("A text is shown with its own characters, and nothing in it hides", "[text]") {
    auto tokens = tokens_of({"A", " b", "\n", "\t", "\u202E", "\x01"});
    const ShownText text = show_text(tokens);
    CHECK(text.text == QStringLiteral("A b↵\n⇥\u2003‹U+202E›‹U+0001›"));
    CHECK(shown(text, 1) == " b");
    CHECK(shown(text, 2) == QStringLiteral("↵\n"));
    CHECK(text.token_at(0) == 0);
    CHECK(text.token_at(2) == 1);
    CHECK(text.token_at(text.text.size()) == -1);
}

TEST_CASE("Bytes of one character share its place, spaces without a token stay between", "[text]") {
    store::SequenceTokens tokens;
    tokens.text = "ab 月 c";
    tokens.pieces = {"ab", "\xE6", "\x9C", "\x88", "c"};
    tokens.offsets = {{0, 2}, {3, 6}, {3, 6}, {3, 6}, {7, 8}};
    tokens.ids = {1, 2, 3, 4, 5};
    const ShownText text = show_text(tokens);
    CHECK(text.text == QStringLiteral("ab 月 c"));
    for (std::size_t t = 1; t <= 3; ++t) {
        CHECK(shown(text, t) == QStringLiteral("月"));
        CHECK(text.tokens[t].parts == 3);
        CHECK(text.tokens[t].part == static_cast<int>(t) - 1);
    }
    CHECK(shown(text, 4) == "c");
    CHECK(text.token_at(2) == -1);
}

TEST_CASE("Special tokens are named, repeated ones written out, half characters shown as bytes", "[text]") {
    store::SequenceTokens tokens;
    tokens.text = "the rest of a text";
    tokens.pieces = {"<s>", "the", "the", "the"};
    tokens.offsets = {{0, 0}, {0, 3}, {0, 3}, {0, 3}};
    tokens.ids = {0, 5, 5, 5};
    const ShownText text = show_text(tokens);
    CHECK(text.tokens[0].special);
    CHECK(shown(text, 0).contains("<s>"));
    CHECK(shown(text, 3) == "the");
    CHECK_FALSE(text.text.contains("rest"));

    store::SequenceTokens bytes;
    bytes.pieces = {"x", "\x9C", "y"};
    bytes.offsets = {{0, 0}, {0, 0}, {0, 0}};
    bytes.ids = {1, 2, 3};
    CHECK(show_text(bytes).text == QStringLiteral("x‹x9C›y"));
}

TEST_CASE("Lines cover the text in order and keep to the width", "[text]") {
    ensure_application();
    QFont font = figure_font(8);
    font.setPixelSize(15);
    const auto width = GENERATE(90.0, 333.0, 2000.0);
    const ShownText text = show_text(long_text(3000));
    LineBreaker breaker;
    breaker.set_width(width);
    breaker.set_text(text.text + QString(400, QLatin1Char('m')), font);
    while (!breaker.work(1000)) {
    }
    const auto& lines = breaker.lines();
    REQUIRE(lines.size() > 3);
    qsizetype at = 0;
    for (const auto& line : lines) {
        // Between lines there is at most the line feed.
        REQUIRE((line.begin == at || (line.begin == at + 1 && text.text[at] == QLatin1Char('\n'))));
        at = line.end;
    }
    CHECK(at >= text.text.size() + 399);
    const QString all = text.text + QString(400, QLatin1Char('m'));
    for (std::size_t i = 0; i < lines.size(); i += 7) {
        QString one = all.mid(lines[i].begin, lines[i].end - lines[i].begin);
        while (one.endsWith(QLatin1Char(' '))) one.chop(1);
        CHECK(text_width(font, one) <= width + 2.0);
        CHECK(breaker.line_of(lines[i].begin) == i);
    }
}

TEST_CASE("A line that begins with spaces is a line of its own", "[text]") {
    ensure_application();
    LineBreaker breaker;
    breaker.set_width(1000);
    breaker.set_text(QStringLiteral("one\n two\n\n  three"), figure_font(8));
    while (!breaker.work(1000)) {
    }
    REQUIRE(breaker.lines().size() == 4);
    CHECK(breaker.lines()[1].begin == 4);
    CHECK(breaker.lines()[3].begin == 10);
}

TEST_CASE("Every token can be pointed at where it is drawn", "[text]") {
    Area a;
    a.set(tokens_of(
        {"A", " text", ",", " שלום", " עולם", " and", " مرح", "با", "\n", " 月", "e\u0301", "é", "🙂", "\u200D"}));
    for (std::int64_t t = 0; t < 14; ++t) {
        INFO("token " << t);
        const QRect rect = a.area.token_rect(t);
        REQUIRE(rect.width() > 0);
        CHECK(a.area.viewport()->rect().contains(rect.center()));
        if (t < 13) CHECK(a.area.token_at(rect.center()) == t);  // a joiner stands within what it joins
    }
}

TEST_CASE("Text from right to left is read from there", "[text]") {
    Area a;
    a.set(tokens_of({"שלום", " עולם", " abc", "\n", "first", " שלום"}));
    CHECK(a.area.token_rect(0).left() > a.area.token_rect(1).left());
    CHECK(a.area.token_rect(0).right() > a.area.viewport()->width() / 2);
    CHECK(a.area.token_rect(4).left() < a.area.viewport()->width() / 4);
    CHECK(a.area.token_rect(5).left() > a.area.token_rect(4).left());
    QSignalSpy clicked(&a.area, &TokenTextArea::clicked);
    QTest::mouseClick(a.area.viewport(), Qt::LeftButton, {}, a.area.token_rect(1).center());
    REQUIRE(clicked.count() == 1);
    CHECK(clicked[0][0].toLongLong() == 1);
}

TEST_CASE("A text of 32 000 tokens is laid out while the window goes on", "[text]") {
    Area a;
    const auto text = std::make_shared<const ShownText>(show_text(long_text(32000)));
    a.area.set_text(text);
    CHECK_FALSE(a.area.laid_out());
    int beats = 0;  // what else the window does meanwhile
    QTimer beat;
    QObject::connect(&beat, &QTimer::timeout, [&] { beats += a.area.laid_out() ? 0 : 1; });
    beat.start(0);
    a.finish();
    beat.stop();
    CHECK(beats > 3);
    CHECK(a.area.lines() > 500);
    a.area.show_token(31990);
    CHECK(a.area.viewport()->rect().intersects(a.area.token_rect(31990)));
    // Narrower, and what was at the top stays there.
    a.area.resize(330, 400);
    a.finish();
    QApplication::processEvents();
    CHECK(a.area.viewport()->rect().adjusted(0, -400, 0, 400).intersects(a.area.token_rect(31980)));
}

TEST_CASE("A token that is wanted before its line is there is shown when it is", "[text]") {
    Area a;
    a.area.set_text(std::make_shared<const ShownText>(show_text(long_text(90000))));
    REQUIRE_FALSE(a.area.laid_out());
    a.area.show_token(89000);
    CHECK(a.area.verticalScrollBar()->value() == 0);
    a.finish();
    CHECK(a.area.viewport()->rect().intersects(a.area.token_rect(89000)));
}

TEST_CASE("Screen readers get the text and the values", "[text]") {
    Area a;
    a.set(tokens_of({"In", " the", " beginning"}));
    a.area.set_values({0.1F, 0.5F, std::numeric_limits<float>::quiet_NaN()}, {});
    QAccessibleInterface* access = QAccessible::queryAccessibleInterface(&a.area);
    REQUIRE(access != nullptr);
    QAccessibleTextInterface* text = access->textInterface();
    REQUIRE(text != nullptr);
    CHECK(text->text(0, text->characterCount()) == "In the beginning");
    int begin = 0, end = 0;
    CHECK(text->attributes(4, &begin, &end).contains("token-value:0.5"));
    CHECK(begin == 2);
    CHECK(end == 6);
    CHECK(text->attributes(8, &begin, &end).isEmpty());
    QSignalSpy clicked(&a.area, &TokenTextArea::clicked);
    text->setCursorPosition(8);
    REQUIRE(clicked.count() == 1);
    CHECK(clicked[0][0].toLongLong() == 2);
    a.area.set_outlined(1);
    CHECK(text->cursorPosition() == 2);
}
