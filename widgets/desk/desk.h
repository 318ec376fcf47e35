// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/process/worker.h"
#include "core/figures/figure_options.h"
#include "widgets/desk/selection.h"
#include "widgets/desk/study.h"
#include "widgets/plots/map/tile_service.h"
#include "widgets/theme.h"

namespace headscope::widgets {

class AskShelf;
class EvaluationShelf;
class HeadColumns;
class HeadSetStore;
class RunShelf;
class StepSource;
class TensorSource;

/// A view's request to run the shown analysis again: the same text and model with these changes.
struct RunRequest {
    int study = 0;
    bool maps = false, states = false, logits = false, experts = false, norms = false, implicit = false,
         branches = false;  ///< recorded in addition
    struct Switch {
        std::int64_t site = 0, head = 0;
        bool mean = false;  ///< its output becomes its mean, else zero
    };
    std::vector<Switch> switched_off;
};

/// A figure that a view or the user wants exported: a recipe of core/figures over analyses, or other inputs.
struct FigureRequest {
    std::string recipe;
    figures::FigureOptions options;
    std::vector<int> studies;
    QStringList paths = {};  ///< of other inputs: folders of runs, evaluation files, ask files, presets
    QString note = {};       ///< what of the view such a figure does not show; empty: all is there
};

/// State that all views share: open analyses, the one selection, the theme, the threads that read, write and make
/// tiles. Window's thread.
class Desk : public QObject {
    Q_OBJECT
public:
    explicit Desk(QObject* parent = nullptr);
    ~Desk() override;

    Worker& reader() { return reader_; }
    /// For what the user wants kept in a file: all that is posted there is done before the desk goes. Its tasks own
    /// what they write.
    Worker& writer() { return writer_; }
    TileService& tiles() { return *tiles_; }
    /// Marks, sets and notes of heads, by model.
    HeadSetStore& head_sets() const { return *head_sets_; }

    /// Runs that train or trained, and the job that is being written.
    RunShelf& runs() const { return *runs_; }

    /// Results of evaluations that are open.
    EvaluationShelf& evaluations() const { return *evaluations_; }

    /// Open files of `headscope ask`.
    AskShelf& asks() const { return *asks_; }

    /// Study::heads() with the columns of the open ask files of the study's model. They change with AskShelf::changed.
    Reply<workspace::HeadTable> heads(Study& study, std::optional<std::int64_t> sequence) const;

    /// Takes an analysis in; the first one becomes the selected one. Returns it.
    Study* add(Study::Opened opened);
    void remove(int id);
    /// The name by which lists and figures show an analysis; empty: its file's.
    void rename_study(int id, const QString& name);
    std::vector<Study*> studies() const;              ///< in the order in which they were added
    Study* study(int id) const;                       ///< null: gone
    Study* study_of(const FileIdentity& file) const;  ///< that shows this file; null: none
    Study* current() const { return study(selection_.study); }

    const Selection& selection() const { return selection_; }
    /// The same with tokens that one_sequence() has: where all sequences are chosen others may be longer.
    const Selection& selection_in_one() const { return selection_in_one_; }
    /// Everything is kept within what the study has: a site or head too large becomes the last one.
    void select(Selection selection);
    void select_study(int id);
    void select_head(std::int64_t site, std::int64_t head);
    void select_tokens(std::optional<std::int64_t> query, std::optional<std::int64_t> key);
    /// Steps through heads and sites, staying within them.
    void step(int sites, int heads);

    /// The overview's filter (workspace::HeadFilter) as it was last understood; empty: none. Other views dim the heads
    /// that it leaves out.
    const QString& head_filter() const { return head_filter_; }
    void set_head_filter(const QString& text);

    /// Source of the tensors of open checkpoints; may be null. It outlives the desk or is reset before.
    TensorSource* tensors() const { return tensors_; }
    void set_tensors(TensorSource* source);

    /// The generation that goes step by step; may be null. It outlives the desk or is reset before.
    StepSource* stepper() const { return stepper_; }
    void set_stepper(StepSource* source);

    const Theme& theme() const { return theme_; }
    void set_dark(bool dark);

    /// studies_changed() is on its way.
    bool telling() const { return telling_.isActive(); }

Q_SIGNALS:
    void studies_changed();  ///< some came, went or got another name; a dozen times a second at most
    void study_gone();       ///< at once: who keeps a pointer drops it
    void selection_changed();
    void head_filter_changed();
    void theme_changed();
    void arrived();          ///< values of some study came
    void tensors_changed();  ///< another source
    void stepper_changed();  ///< likewise

    // Requests of views to the window.
    void run_wanted(const headscope::widgets::RunRequest& wish);
    /// The switched heads of the request as rows of the editor of interventions.
    void interventions_wanted(const headscope::widgets::RunRequest& heads);
    void export_wanted(const headscope::widgets::FigureRequest& wish);
    /// On the clipboard; format: png, svg, csv.
    void copy_wanted(const headscope::widgets::FigureRequest& wish, const QString& format);
    void view_wanted(const QString& name);    ///< of a ViewKind: brings it to the front
    void column_wanted(const QString& name);  ///< the overview colors this column, once it has it
    void told(const QString& text);           ///< a line for the status bar
    void failed(const QString& text);         ///< a line for the log
    void changed();                           ///< something worth saving and undoing

private:
    enum class Tokens { of_one, of_longest };
    Selection within(Selection selection, Tokens tokens) const;
    void announce_studies();

    Worker reader_{Worker::Order::newest_first};
    Worker writer_;
    std::unique_ptr<TileService> tiles_;
    std::unique_ptr<HeadSetStore> head_sets_;
    std::unique_ptr<RunShelf> runs_;
    std::unique_ptr<EvaluationShelf> evaluations_;
    std::unique_ptr<AskShelf> asks_;
    std::unique_ptr<HeadColumns> head_columns_;
    ValueBudget values_;
    std::map<int, std::unique_ptr<Study>> studies_;
    int last_id_ = 0;
    QTimer telling_;  ///< studies_changed() is on its way
    QElapsedTimer told_;
    Selection selection_, selection_in_one_;
    QString head_filter_;
    Theme theme_;
    TensorSource* tensors_ = nullptr;
    StepSource* stepper_ = nullptr;
};

}  // namespace headscope::widgets
