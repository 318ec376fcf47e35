// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <cstdint>
#include <vector>

namespace headscope::widgets {

/// A few numbers that matter, each large with its name below it; as many beside each other as fit.
class Facts : public QWidget {
    Q_OBJECT
public:
    struct Fact {
        QString name, value, hint;
        bool faint = false;  ///< not known yet, or a guess
    };
    explicit Facts(QWidget* parent = nullptr);
    void set(const std::vector<Fact>& facts);

private:
    class Card;
    std::vector<Card*> cards_;
};

/// "1.05 M", "30.2 k", "812".
QString count_words(double count);
/// "1.2 GB".
QString bytes_words(double bytes);
/// "under 1 s", "12 s", "4 min", "2 h 10 min".
QString time_words(double seconds);
/// "1 sequence", "3 sequences".
QString sequences_words(std::int64_t count);

}  // namespace headscope::widgets
