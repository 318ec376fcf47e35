// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace headscope::store {
struct AskRecord;
}

namespace headscope::widgets {

/// An open file of `headscope ask`.
struct OpenAsk {
    int id = 0;
    QString path, name;
    std::shared_ptr<const store::AskRecord> record;
};

/// The open ask files, and for each tool the one that its views draw. Window's thread.
class AskShelf : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    /// Adds a file and chooses it for its tool; replaces the record of a file that is open. Returns its id.
    int take(const QString& path, std::shared_ptr<const store::AskRecord> record);
    void remove(int id);
    const std::vector<OpenAsk>& all() const { return all_; }
    const OpenAsk* at(const QString& path) const;  ///< null: not open
    const OpenAsk* find(int id) const;
    /// Files of a tool, in the order of opening.
    std::vector<const OpenAsk*> of_tool(const std::string& tool) const;
    /// The chosen file of a tool, else its newest; null: none is open.
    const OpenAsk* chosen(const std::string& tool) const;
    void choose(int id);

    /// "lens, 3 texts", "patch, 1 text, incomplete".
    static QString about(const store::AskRecord& record);

Q_SIGNALS:
    void changed();  ///< a file came, went, was read again or chosen

    // Requests of views to the window.
    void open_wanted();  ///< shows the file dialog
    void ask_wanted(const QString& tool);

private:
    std::vector<OpenAsk> all_;
    std::map<std::string, int> chosen_;  ///< ids by tool
    int last_id_ = 0;
};

}  // namespace headscope::widgets
