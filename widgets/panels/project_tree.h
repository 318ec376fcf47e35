// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTreeWidget>

#include "widgets/desk/desk.h"
#include "widgets/panels/text_choice.h"

namespace headscope::widgets {

/// Open models, texts and analyses (done, running, stopped). A click shows an analysis or chooses a model.
class ProjectTree : public QTreeWidget {
    Q_OBJECT
public:
    explicit ProjectTree(Desk* desk, QWidget* parent = nullptr);
    void set_models(const std::vector<ModelCard>& models);
    /// Texts of this session, as labels.
    void set_texts(const QStringList& texts);

Q_SIGNALS:
    void model_chosen(int id);
    void model_close_wanted(int id);
    void tensors_wanted(int id);
    void text_chosen(int index);
    void study_close_wanted(int id);
    void study_rename_wanted(int id);
    void study_save_wanted(int id);
    void folder_wanted(const QString& path);
    void run_chosen(int id);
    void evaluation_chosen(int id);
    void evaluation_close_wanted(int id);
    void ask_chosen(int id);
    void ask_close_wanted(int id);

private:
    void fill_studies();
    void fill_runs();
    void fill_evaluations();
    void fill_asks();
    void follow();
    void open_menu(const QPoint& place);

    Desk* desk_;
    QTreeWidgetItem *models_, *texts_, *studies_, *runs_, *evaluations_, *asks_;
    QStringList shown_texts_{QString()};  ///< unlike any list that is set first
    bool filling_ = false;
};

}  // namespace headscope::widgets
