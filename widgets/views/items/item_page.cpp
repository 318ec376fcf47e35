// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/items/item_page.h"

#include <QCoreApplication>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"

namespace headscope::widgets {
namespace {

constexpr std::size_t kMostPlaces = 500;  ///< of one answer in one text that are marked

QString tr_page(const char* text) {
    return QCoreApplication::translate("ItemPage", text);
}

QString number_words(double value, int digits) {
    return std::isfinite(value) ? QString::number(value, 'f', digits) : QStringLiteral("–");
}

class PageMaker {
public:
    PageMaker(const store::EvaluatedItem& item, const workspace::ItemTexts& texts, std::span<const std::string> classes)
        : item_(item), texts_(texts), classes_(classes) {}

    ItemPage make() {
        if (texts_.said)
            say();
        else
            list_options();
        page_.text = std::make_shared<const ShownText>(std::move(shown_));
        return std::move(page_);
    }

private:
    void heading(const QString& words) {
        if (!shown_.text.isEmpty()) shown_.text += QStringLiteral("\n\n");
        shown_.text += words + QLatin1Char('\n');
    }

    /// Appends bytes that belong to no token.
    void plain(std::string_view bytes) { append_shown(shown_.text, bytes); }

    void token(std::string_view bytes, float value, const QString& hint = {}) {
        const qsizetype begin = shown_.text.size();
        append_shown(shown_.text, bytes);
        if (shown_.text.size() == begin) shown_.text += QStringLiteral("∅");
        shown_.tokens.push_back({begin, shown_.text.size()});
        page_.values.push_back(value);
        page_.hints << hint;
    }

    /// "✓ right": signs and words, for colours belong to the tokens.
    QString marks(std::size_t option) const {
        const auto number = static_cast<std::int64_t>(option);
        QString words;
        if (number == item_.gold) words += QStringLiteral("   ✓ ") + tr_page("right");
        if (number == item_.chosen) words += QStringLiteral("   ● ") + tr_page("chosen");
        return words;
    }

    void list_options() {
        const bool one = texts_.one_context() && !texts_.requests.empty();
        const bool options = texts_.requests.size() > 1;
        if (one && !texts_.requests.front().context.empty()) {
            heading(tr_page("Context"));
            plain(texts_.requests.front().context);
        }
        double most = 1;
        for (std::size_t i = 0; i < texts_.requests.size(); ++i) {
            const workspace::ScoredText& request = texts_.requests[i];
            if (i < classes_.size()) {
                heading(QString::fromStdString(escaped(classes_[i])) + marks(i) + QStringLiteral("   ") +
                        tr_page("log-probability %1").arg(number_words(request.loglikelihood, 3)));
                continue;
            }
            heading((options ? tr_page("Option %1").arg(i + 1) : tr_page("Continuation")) + marks(i) +
                    QStringLiteral("   ") +
                    tr_page("log-likelihood %1, by character %2")
                        .arg(number_words(request.loglikelihood, 3), number_words(request.per_character(), 4)) +
                    (request.greedy ? QStringLiteral("   ") + tr_page("each token was the likeliest") : QString()));
            if (!one) plain(request.context);
            if (request.pieces.empty()) plain(request.continuation);
            for (const auto& [piece, loglikelihood] : request.pieces) {
                token(piece, static_cast<float>(-loglikelihood),
                      tr_page("log-likelihood %1\nprobability %2 %")
                          .arg(number_words(loglikelihood, 4), number_words(100 * std::exp(loglikelihood), 3)));
                if (std::isfinite(loglikelihood)) most = std::max(most, -loglikelihood);
                page_.scored = true;
            }
        }
        page_.scale.label = tr_page("minus log-likelihood (nats)").toStdString();
        page_.scale.maximum = most;
    }

    struct Place {
        qsizetype begin = 0, end = 0;
        QString answer;
    };

    /// Places of the answers, ignoring case; of overlapping ones the first and longest.
    std::vector<Place> places(const QString& text) const {
        std::vector<Place> all;
        for (const std::string& answer : texts_.answers) {
            const QString wanted = QString::fromStdString(answer).trimmed();
            if (wanted.isEmpty()) continue;
            std::size_t count = 0;
            for (qsizetype at = text.indexOf(wanted, 0, Qt::CaseInsensitive); at >= 0 && count < kMostPlaces;
                 at = text.indexOf(wanted, at + wanted.size(), Qt::CaseInsensitive), ++count)
                all.push_back({at, at + wanted.size(), wanted});
        }
        std::sort(all.begin(), all.end(), [](const Place& one, const Place& two) {
            return std::pair(one.begin, -one.end) < std::pair(two.begin, -two.end);
        });
        std::vector<Place> apart;
        for (Place& place : all)
            if (apart.empty() || place.begin >= apart.back().end) apart.push_back(std::move(place));
        return apart;
    }

    /// `tokens`: what stands between answers is one, too.
    void marked(const QString& text, bool tokens) {
        qsizetype done = 0;
        const auto rest = [&](qsizetype end) {
            if (end <= done) return;
            const std::string between = text.mid(done, end - done).toStdString();
            tokens ? token(between, 0) : plain(between);
        };
        for (const Place& place : places(text)) {
            rest(place.begin);
            token(text.mid(place.begin, place.end - place.begin).toStdString(), 1,
                  tr_page("the answer “%1”, from character %2 on").arg(place.answer, QString::number(place.begin + 1)));
            done = place.end;
        }
        rest(text.size());
    }

    void say() {
        const QString generated = QString::fromStdString(texts_.generated);
        heading(tr_page("Prompt"));
        marked(QString::fromStdString(texts_.prompt), false);
        heading(tr_page("What the model said") + QStringLiteral("   ") +
                (item_.right ? QStringLiteral("✓ ") + tr_page("right") : QStringLiteral("✗ ") + tr_page("wrong")));
        if (generated.isEmpty())
            token({}, 0);
        else
            marked(generated, true);
        heading(tr_page("Answers"));
        for (std::size_t i = 0; i < texts_.answers.size(); ++i) {
            if (i > 0) shown_.text += QLatin1Char('\n');
            const QString answer = QString::fromStdString(texts_.answers[i]);
            const qsizetype at = generated.indexOf(answer.trimmed(), 0, Qt::CaseInsensitive);
            const QString where = at < 0 ? tr_page("not said") : tr_page("said, from character %1 on").arg(at + 1);
            shown_.text += (at < 0 ? QStringLiteral("✗ ") : QStringLiteral("✓ ")) + where + QStringLiteral(":  ");
            plain(texts_.answers[i]);
        }
        page_.scale.label = tr_page("where an answer stands").toStdString();
    }

    const store::EvaluatedItem& item_;
    const workspace::ItemTexts& texts_;
    std::span<const std::string> classes_;
    ShownText shown_;
    ItemPage page_;
};

}  // namespace

ItemPage make_item_page(const store::EvaluatedItem& item, const workspace::ItemTexts& texts,
                        std::span<const std::string> classes) {
    return PageMaker(item, texts, classes).make();
}

}  // namespace headscope::widgets
