// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QActionGroup>
#include <QMainWindow>
#include <QTemporaryDir>
#include <QTimer>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/window/engine.h"
#include "app/window/files/adapter_found.h"
#include "app/window/files/opener.h"
#include "app/window/files/path_states.h"
#include "app/window/pages/cost_service.h"
#include "app/window/pages/task_service.h"
#include "app/window/pages/tensor_service.h"
#include "app/window/session/session.h"
#include "app/window/session/session_keeper.h"
#include "app/window/training/evaluation_service.h"
#include "app/window/training/run_service.h"
#include "app/window/watchdog.h"
#include "widgets/desk/desk.h"
#include "widgets/desk/evaluation_shelf.h"
#include "widgets/desk/history.h"
#include "widgets/desk/view.h"
#include "widgets/panels/evaluate_choice.h"
#include "widgets/panels/export_dialog.h"

class QDockWidget;
class QLabel;
class QMenu;
class QStackedWidget;
class QToolButton;

namespace headscope::widgets {
class EvaluateDialog;
class ConvertDialog;
class FigureHandle;
class FigureMaker;
class GuideWindow;
class LogPanel;
class ProjectTree;
class ReproduceDialog;
class SelectionBar;
class StartPage;
class TaskDialog;
class TextPanel;
class ViewArea;
}  // namespace headscope::widgets

namespace headscope::app {

/// The window: joins panels and views to the engine. Every part of it is a widget that knows values only.
class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    struct Options {
        QStringList paths;    ///< to open
        std::string program;  ///< argv[0], for child processes
        bool restore = true;  ///< bring the last session back
        int threads = 0;      ///< 0: all processors
        bool watch = false;   ///< report when the window does not answer
    };
    explicit MainWindow(const Options& options);
    ~MainWindow() override;

    widgets::Desk& desk() { return desk_; }
    Engine& engine() { return engine_; }
    Watchdog& watchdog() { return watchdog_; }
    RunService& training() { return service_; }
    /// Closes without a question: the system asks.
    void end();
    /// After the end: waits for the session to be on the disk, not for what others' disks keep waiting.
    void let_go();
    /// The program that is given a folder to show; empty: none is.
    void show_folders_with(const QString& program) { folder_program_ = program; }
    /// Every action by name, for the palette, the list of keys and the tests.
    QList<QAction*> all_actions() const { return actions_; }
    /// What can be done now in the view in front.
    QList<QAction*> view_commands() const;
    QString front_name() const;  ///< of the view in front; empty: the start page
    int problems() const;        ///< errors told so far

protected:
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    bool eventFilter(QObject* object, QEvent* event) override;
    void closeEvent(QCloseEvent* event) override;

private:
    // main_window.cpp: how it is put together
    void build_panels();
    void build_views();
    void build_status();
    void connect_engine();
    void connect_desk();
    // main_window_actions.cpp
    void build_actions();
    void build_file_menu();
    void build_edit_and_run_menus();
    void build_go_menu();
    void build_view_menu();
    void build_help_menu();
    QAction* add_action(const char* name, const QString& text, const QKeySequence& keys, const QString& tip,
                        std::function<void()> act);
    void update_actions();
    // main_window_files.cpp: opening; main_window_session.cpp, main_window_restore.cpp
    void choose_model();
    void choose_analysis();
    void open_sample();
    void open_path(const QString& path);
    // main_window_adapters.cpp
    QString chosen_base() const;  ///< path of the checkpoint in the text panel; empty: none that can be run
    void choose_adapter();
    void offer_adapter(const QString& path, const AdapterFound& found);
    void ask_disk(const QString& path, const std::function<void()>& question);
    void opened_study(widgets::Study* study);
    void show_study(widgets::Study* study);  ///< brings it to the front
    void show_model(int model);
    void remember(const Recent& item);
    void remember(const widgets::Study& study);
    void show_recent();
    // main_window_recent.cpp: names and leftovers
    void fill_recent_menu();
    void ask_name(int study);  ///< renames it
    void give_name(widgets::Study* study);
    QJsonObject given_names() const;  ///< by path, of what is open and of what was
    void look_for_leftovers(const QStringList& of_session);
    void offer_leftovers();
    void remove_leftover(const QString& path);
    void picture_recent(widgets::Study* study);
    void save_copy(int study);
    /// What is on the disk when the window opens; read on a worker.
    struct Stored {
        std::filesystem::path folder;
        std::vector<Recent> recent;
        std::shared_ptr<SessionKeeper> keeper;  ///< null: none is kept
        FoundSession session;
        QString theme;
        std::optional<double> rate;  ///< of analyses on this machine
        QString problem;
    };
    static Stored read_stored(int threads, bool restore);
    void load_state();
    void begin(const Stored& stored);
    void keep_rate(double rate);
    void open_given_paths();
    void settle_lost_session(bool bring_back);
    void restore_session(Session session);
    void restore_layout(const Session& session);
    void restore_head_sets(const Session& session);
    bool brought_back(const QString& path) const;
    void settled(const QString& path);  ///< open, or it cannot be opened
    void stop_restoring();
    void end_restoring();
    void show_given();
    void restore_shown(const Session& session);
    void see_deed();
    void begin_recording();
    QJsonObject looks() const;  ///< selection and states of the views
    void restore_looks(const QJsonObject& looks);
    Session session(bool closed) const;
    void save_soon();
    void save_now(bool closed);
    void save_ended(const QString& failure);
    void leave_session_to_another();
    void export_front();
    void export_figure(const widgets::FigureWish& wish);
    widgets::ExportDialog* export_dialog();
    QWidget* make_figure_buttons(QWidget* parent);
    // main_window_figures.cpp: the figure in front leaves the window
    std::optional<widgets::ExportDialog::Drawing> front_figure();  ///< empty: there is none, and the status bar says so
    void build_figure_handles();
    void print_front();
    void print(const QImage& picture);
    void ready_drag(widgets::FigureHandle* handle, const QString& format);
    // main_window_help.cpp
    void show_guide();
    // main_window_tasks.cpp: commands of the command line as dialogs
    void build_task_actions();
    void look_ahead(const QString& paper, double minutes, int seeds, int threads);
    void update_tasks();
    void show_task(widgets::TaskDialog* dialog);
    void offer_task_models();
    void make_task(widgets::TaskDialog* dialog);
    void show_report(const QString& folder);
    // main_window_training.cpp
    void connect_training();
    void build_training_actions();
    void update_training();
    void opened_run(int run);
    void choose_run();
    void choose_job();
    void read_job(const QString& path);
    void save_job();
    void analyse_snapshot(int run, const QString& snapshot);
    void run_snapshot(int model);
    void offer_interrupted();
    bool ask_about_work();  ///< true: the window may close now
    QStringList work_that_ends() const;
    // main_window_evaluations.cpp
    void connect_evaluations();
    void build_evaluation_actions(QMenu* menu);
    void update_evaluations();
    void choose_evaluation();
    void opened_evaluation(const QString& path, const std::shared_ptr<const store::Evaluation>& record);
    void show_evaluation(const store::Evaluation& record);
    void ask_what_to_evaluate();
    void offer_models();
    void show_offer();
    void analyse_item(const widgets::ItemAnalysis& item);
    void run_item(int model);
    // main_window_run.cpp
    void run(const widgets::TextChoice& choice);
    void run_again(const widgets::RunWish& wish);
    void give_spelling();  ///< to analyses whose model is open
    void show_changes();   ///< of all heads, after a run with heads switched off
    void began(const QString& partial);
    void open_finished(const QString& output);
    void ended(const QString& output, const QString& message);

    // main_window_pages.cpp
    void take_first_size();
    void share_left(bool training);
    void show_message(const QString& text, int milliseconds);
    void take_text(const QString& path);
    void show_folder(const QString& path);
    widgets::View* front_view() const;
    enum class Page { start, analysis, training };
    void show_page(Page page);
    Page page() const;
    /// `empty_too`: where no analysis is open, too; the view says then what is missing.
    void show_view(const QString& name, bool empty_too = false);
    void show_tensors(int model);
    void apply_theme();
    void tell(const QString& text);
    void problem(const QString& text);

    Options options_;
    std::filesystem::path data_;
    widgets::Desk desk_;
    Engine engine_;
    TensorService tensors_{&engine_};
    Opener opener_;
    RunService service_;
    CostService costs_;
    EvaluationService evaluations_;
    TaskService tasks_;
    Watchdog watchdog_;
    // One thread each, so that a disk that does not answer holds up its own kind alone:
    Worker saver_;                 ///< what is ours and small: the session, recent items, this machine's speed
    Worker looker_;                ///< what paths are, jobs that are read
    PathStates states_of_recent_;  ///< of the next one's thread
    Worker recents_;               ///< whether recent items are still there
    Worker copier_;
    widgets::Mailbox mailbox_{this};

    QStackedWidget* pages_ = nullptr;
    widgets::ViewArea *area_ = nullptr, *training_area_ = nullptr;  ///< views of analyses, and of training
    QToolButton *analysis_switch_ = nullptr, *training_switch_ = nullptr;
    widgets::StartPage* start_ = nullptr;
    widgets::SelectionBar* bar_ = nullptr;
    widgets::ProjectTree* tree_ = nullptr;
    widgets::TextPanel* text_ = nullptr;
    widgets::LogPanel* log_ = nullptr;
    QDockWidget *tree_dock_ = nullptr, *text_dock_ = nullptr, *log_dock_ = nullptr;
    std::map<QString, widgets::View*> views_;  ///< of both
    QLabel *model_status_ = nullptr, *training_status_ = nullptr, *compute_status_ = nullptr, *memory_status_ = nullptr;
    QList<QAction*> actions_;
    std::map<QString, QAction*> by_name_;
    QActionGroup* themes_ = nullptr;
    std::unique_ptr<widgets::History> history_;

    widgets::ExportDialog* export_ = nullptr;
    widgets::FigureMaker *printed_ = nullptr, *dragged_ = nullptr;
    widgets::FigureHandle* dragging_ = nullptr;  ///< that waits for its file
    QTemporaryDir drag_folder_;
    int drags_ = 0;
    widgets::GuideWindow* guide_ = nullptr;
    widgets::ReproduceDialog* reproduce_ = nullptr;
    widgets::ConvertDialog *convert_ = nullptr, *swap_ = nullptr;
    widgets::TaskDialog* task_ = nullptr;  ///< whose command runs
    QMenu* recent_menu_ = nullptr;
    QJsonObject names_;      ///< that the user gave to analyses, by path
    QStringList leftovers_;  ///< partial files of analyses that did not end
    widgets::EvaluateDialog* evaluate_ = nullptr;
    QJsonObject evaluate_kept_;                                      ///< what was chosen in it
    std::map<QString, widgets::EvaluateOffer::Model> offered_runs_;  ///< by folder

    std::vector<Recent> recent_;
    std::optional<Session> lost_session_;    ///< of a program that died, offered
    bool answered_ = false;                  ///< that offer: its file goes when what it held is saved, or was declined
    std::shared_ptr<SessionKeeper> keeper_;  ///< what it points to is the saver's
    std::optional<Session> restoring_;
    struct Paths {
        QStringList models, analyses, runs;
        bool empty() const { return models.isEmpty() && analyses.isEmpty() && runs.isEmpty(); }
        bool contain(const QString& path) const;
        bool remove(const QString& path);  ///< false: it was not there
    };
    Paths opening_;                        ///< of the session that is being restored
    Paths late_;                           ///< of it what had not answered when that ended: it is kept
    std::optional<Session> late_session_;  ///< how it was looked at, until all of that is there
    QTimer restoring_timer_;
    bool touched_ = false, in_deed_ = false;     ///< the user did something since restoring began, and does just now
    QJsonObject states_before_;                  ///< of the views, then
    QStringList given_, given_texts_;            ///< by the user meanwhile; texts and jobs, which wait for the session
    std::vector<std::string> unread_head_sets_;  ///< of another version: kept as they are
    QTimer save_timer_;
    int save_pause_ = 0;      ///< ms from a save that failed to the next one; 0: the last one did not
    bool recording_ = false;  ///< the session may be written: the one before was read
    int running_study_ = 0;
    /// Done while what the run writes was not open yet: it may have been read just before.
    std::vector<std::pair<qint64, qint64>> early_sites_;
    QString run_file_;                                   ///< what the run writes or wrote, while it is not open yet
    std::optional<widgets::ItemAnalysis> waiting_item_;  ///< for its checkpoint to be open
    std::optional<widgets::RunWish> waiting_wish_;       ///< for its checkpoint to be open
    std::optional<widgets::TextChoice> run_choice_;
    QString waiting_snapshot_;  ///< a checkpoint that is being opened to be run
    bool closing_ = false;      ///< what goes on was asked about
    bool text_wanted_ = true;   ///< the text panel, beside the views of analyses
    int left_width_ = 300;      ///< of the panels beside them
    QStringList interrupted_;   ///< folders of runs that can be resumed
    QString theme_ = QStringLiteral("system");
    QString folder_program_ = QStringLiteral("xdg-open");
};

}  // namespace headscope::app
