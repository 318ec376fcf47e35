// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/training/job/job.h"
#include "widgets/device_box.h"

namespace headscope::widgets {

/// An error of a job, with a line of its text and a key of its form.
struct JobProblem {
    QString text;
    int line = 0;  ///< from 1; 0: not known
    QString key;   ///< "training.steps"; empty: not known

    bool operator==(const JobProblem&) const = default;
};

/// A value with a name, for choices of a form.
struct JobChoice {
    QString value, title, hint;
};

struct PresetChoice : JobChoice {
    std::int64_t hidden = 0, heads = 0;
};

/// A layout of the paper's: which of n layers are standard beside the chosen mixer.
struct LayoutChoice {
    QString name, hint;
    std::function<std::vector<bool>(std::int64_t layers)> standard;
};

/// Names to choose from, as the engine lists them.
struct JobChoices {
    std::vector<PresetChoice> presets;
    std::vector<JobChoice> mixers, corpora, generators;
    std::vector<LayoutChoice> layouts;
    std::vector<DeviceCard> devices;
};

/// Estimated needs of a job. NaN and 0: not known.
struct JobEstimate {
    struct Line {
        QString name, value, hint;
    };
    double parameters = 0, printed_parameters = 0;  ///< printed: by the paper, of a preset of its sizes
    double memory = 0;                              ///< bytes while training
    double flops_per_token = 0;                     ///< of forward and backward
    double tokens = 0, steps = 0;                   ///< of the whole job; 0: until a time is over
    double seconds = 0;                             ///< of the whole job, of what was measured here
    double tokens_per_second = 0;                   ///< measured; 0: not yet
    QString calibration;                            ///< what is known about the speed, or why nothing is
    std::vector<Line> lines;                        ///< further ones, in their order
    QStringList warnings;                           ///< what the job is too short for
    std::vector<std::string> layers;                ///< the mixer of each layer
    std::int64_t hidden = 0, heads = 0;
    std::optional<JobProblem> problem;  ///< what the check found beyond what reading the text says
};

/// The snapshot of another run that a job goes on from.
struct JobFork {
    QString path;  ///< the snapshot's folder; empty: none
    QString name;
    bool keep_optimizer = true;  ///< else only the weights are taken

    bool operator==(const JobFork&) const = default;
};

/// The job that the window's form, its text and the layout editor change: the text is the truth, all else follows it.
class JobDraft : public QObject {
    Q_OBJECT
public:
    explicit JobDraft(QObject* parent = nullptr);

    const QString& text() const { return text_; }
    /// As typed: it may be wrong, which problem() then says; job() stays what it was when it last was right.
    void set_text(const QString& text);
    const training::JobFile& job() const { return job_; }
    const std::optional<JobProblem>& problem() const { return problem_; }

    /// Puts one key in, "training.steps=500", and keeps the rest of the text. Refused: what is wrong with it, and
    /// nothing changes.
    std::optional<JobProblem> set(const std::string& key, const std::string& value);
    /// Takes one key out: it has its default again. Refused as set() does.
    std::optional<JobProblem> unset(const std::string& key);
    /// The mixer of each layer, in the shortest way that says it: a mixer and a layout by name, or a list.
    void set_layers(const std::vector<std::string>& layers);

    const JobFork& fork() const { return fork_; }
    void set_fork(const JobFork& fork);

    const JobChoices& choices() const { return choices_; }
    void set_choices(JobChoices choices);
    const JobEstimate& estimate() const { return estimate_; }
    void set_estimate(JobEstimate estimate);

    /// Job and text that a new window begins with.
    static QString first_text();

Q_SIGNALS:
    void changed();  ///< the text
    void choices_changed();
    void estimate_changed();

private:
    void read();

    QString text_;
    training::JobFile job_;
    std::optional<JobProblem> problem_;
    JobFork fork_;
    JobChoices choices_;
    JobEstimate estimate_;
};

/// The problem of a text, from the error that reading it threw.
JobProblem job_problem(const Error& error, const QString& text);

/// The mixers of `layers` layers of a named layout; empty: no such layout.
std::vector<std::string> layers_of_layout(const JobChoices& choices, const QString& layout, const std::string& mixer,
                                          std::int64_t layers);

}  // namespace headscope::widgets
