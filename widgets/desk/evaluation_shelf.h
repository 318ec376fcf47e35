// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <memory>
#include <vector>

namespace headscope::store {
struct Evaluation;
}

namespace headscope::widgets {

/// An evaluation file that is open: what models scored on tasks at lengths.
struct OpenEvaluation {
    int id = 0;
    QString path, name;
    bool shown = true;  ///< in the figures
    std::shared_ptr<const store::Evaluation> record;
};

/// One item's text, to be analysed by the model that was evaluated on it.
struct ItemAnalysis {
    QString model, adapter;         ///< where they were read from; adapter: empty: none
    QString context, continuation;  ///< an encoder-decoder reads the one and says the other
    QString what;                   ///< "item 12 of copa"
    bool operator==(const ItemAnalysis&) const = default;
};

/// The evaluation files that are open, and what views want done about them. Window's thread.
class EvaluationShelf : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    /// Takes in what was read of a file; of one that is open it is the newer text. Its id.
    int take(const QString& path, std::shared_ptr<const store::Evaluation> record);
    void remove(int id);
    const std::vector<OpenEvaluation>& all() const { return all_; }
    const OpenEvaluation* at(const QString& path) const;  ///< null: not open
    const OpenEvaluation* find(int id) const;
    void set_shown(int id, bool shown);
    QStringList shown_paths() const;

    /// Name of the evaluation that runs; empty: none runs.
    const QString& evaluating() const { return evaluating_; }
    void set_evaluating(const QString& what);
    /// How far that is, as the process reports it; empty: nothing yet.
    const QString& progress() const { return progress_; }
    void set_progress(const QString& words);
    /// Both, a line each.
    QString evaluating_words() const;

    /// "1 model, 24 results".
    static QString about(const store::Evaluation& record);

Q_SIGNALS:
    void changed();  ///< one came, went, was read again, or is shown or not
    void evaluating_changed();
    void progressed();

    // Requests of views to the window.
    void open_wanted();      ///< asks for a file
    void evaluate_wanted();  ///< of the open runs, in a process of its own
    void evaluate_unwanted();
    void plan_wanted();  ///< asks what is to be evaluated
    void analyse_wanted(const headscope::widgets::ItemAnalysis& item);

private:
    std::vector<OpenEvaluation> all_;
    int last_id_ = 0;
    QString evaluating_, progress_;
};

}  // namespace headscope::widgets
