// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/desk/job_draft.h"

#include <QRegularExpression>
#include <algorithm>
#include <utility>

#include "core/mixers/types/standard.h"
#include "core/training/job/job_keys.h"
#include "core/workspace/job_edit.h"

namespace headscope::widgets {
namespace {

constexpr const char* kWhere = "job";

/// The key that a line of a TOML text sets; empty: none.
QString key_at(const QString& text, int line) {
    static const QRegularExpression header(QStringLiteral(R"(^\s*\[([A-Za-z_]+)\])"));
    static const QRegularExpression name(QStringLiteral(R"(^\s*([A-Za-z_]+)\s*[.=])"));
    QString section, key;
    const QStringList lines = text.split(QLatin1Char('\n'));
    for (int i = 0; i < std::min<int>(line, static_cast<int>(lines.size())); ++i) {
        if (const auto found = header.match(lines[i]); found.hasMatch()) {
            section = found.captured(1);
            key.clear();
        }
        if (const auto found = name.match(lines[i]); found.hasMatch()) key = found.captured(1);
    }
    if (key.isEmpty()) return {};
    return section.isEmpty() ? key : section + QLatin1Char('.') + key;
}

}  // namespace

JobProblem job_problem(const Error& error, const QString& text) {
    static const QRegularExpression line(QStringLiteral(R"(line (\d+))"));
    JobProblem problem;
    problem.text = QString::fromUtf8(error.what());
    if (const auto found = line.match(problem.text); found.hasMatch()) problem.line = found.captured(1).toInt();
    for (const training::JobKey& key : training::job_keys()) {
        const QString full = QString::fromStdString(key.full_name());
        if (!key.section.empty() && problem.text.contains(full)) problem.key = full;
    }
    if (problem.key.isEmpty() && problem.line > 0) problem.key = key_at(text, problem.line);
    return problem;
}

JobDraft::JobDraft(QObject* parent) : QObject(parent), text_(first_text()) {
    read();
}

QString JobDraft::first_text() {
    return QStringLiteral(
        "name = \"my first run\"\n"
        "seed = 1\n"
        "\n"
        "[model]\n"
        "preset = \"tiny-1m\"\n"
        "mixer = \"standard\"\n"
        "layout = \"uniform\"\n"
        "\n"
        "[data]\n"
        "corpus = \"kjv\"            # or text = [\"my/*.txt\"]\n"
        "# tokenizer = \"train:2048\"\n"
        "sequence_length = 256\n"
        "\n"
        "[training]\n"
        "steps = 1000              # or minutes = 10\n"
        "batch = 16\n"
        "\n"
        "[optimizer]\n"
        "learning_rate = 4e-4\n"
        "\n"
        "[probe]\n"
        "every = 50                # all heads are measured\n");
}

void JobDraft::read() {
    try {
        job_ = training::read_job(text_.toStdString(), kWhere);
        problem_.reset();
    } catch (const Error& error) {
        problem_ = job_problem(error, text_);
    }
}

void JobDraft::set_text(const QString& text) {
    if (text == text_) return;
    text_ = text;
    read();
    Q_EMIT changed();
}

std::optional<JobProblem> JobDraft::set(const std::string& key, const std::string& value) {
    try {
        const std::string made = workspace::edited_job(text_.toStdString(), key + "=" + value, kWhere);
        set_text(QString::fromStdString(made));
        return std::nullopt;
    } catch (const Error& error) {
        JobProblem problem = job_problem(error, text_);
        // A text that is wrong elsewhere takes no value either: say that, there.
        if (!problem_) {
            problem.key = QString::fromStdString(key);
            problem.line = 0;
        }
        return problem;
    }
}

std::optional<JobProblem> JobDraft::unset(const std::string& key) {
    const training::JobKey* known = training::find_key(key);
    if (!known || problem_) return problem_;
    try {
        training::JobFile wanted = job_;
        known->set(wanted, known->get(training::JobFile{}));
        if (key == "model.from" && wanted.model.preset.empty()) wanted.model.preset = training::JobFile{}.model.preset;
        if (key == "data.tokenizer") wanted.tokenizer_given = false;
        if (!wanted.tokenizer_given) wanted.data.tokenizer = training::standard_tokenizer(wanted);
        training::check_together(wanted);
        set_text(QString::fromStdString(workspace::edited_job(text_.toStdString(), wanted)));
        return std::nullopt;
    } catch (const Error& error) {
        JobProblem problem = job_problem(error, text_);
        problem.key = QString::fromStdString(key);
        return problem;
    }
}

std::vector<std::string> layers_of_layout(const JobChoices& choices, const QString& layout, const std::string& mixer,
                                          std::int64_t layers) {
    for (const LayoutChoice& choice : choices.layouts) {
        if (choice.name != layout || !choice.standard) continue;
        std::vector<std::string> made;
        for (const bool standard : choice.standard(layers)) made.push_back(standard ? mixers::kStandard.name : mixer);
        return made;
    }
    return {};
}

void JobDraft::set_layers(const std::vector<std::string>& layers) {
    if (layers.empty() || problem_) return;
    std::string mixer;
    bool two = false;
    for (const std::string& layer : layers) {
        if (mixers::is_standard(layer)) continue;
        two |= !mixer.empty() && mixer != layer;
        mixer = layer;
    }
    training::JobFile wanted = job_;
    wanted.model.layers = layers;
    wanted.model.mixer.clear();
    wanted.model.layout.clear();
    const auto named = [&](const QString& layout, const std::string& other) {
        wanted.model.layers.clear();
        wanted.model.mixer = other;
        wanted.model.layout = layout.toStdString();
    };
    if (mixer.empty()) {
        named(QString::fromStdString(training::ModelSettings{}.layout), mixers::kStandard.name);
    } else if (!two) {
        for (const LayoutChoice& choice : choices_.layouts) {
            if (layers_of_layout(choices_, choice.name, mixer, std::ssize(layers)) != layers) continue;
            named(choice.name, mixer);
            break;
        }
    }
    try {
        set_text(QString::fromStdString(workspace::edited_job(text_.toStdString(), wanted)));
    } catch (const Error& error) {
        problem_ = job_problem(error, text_);
        Q_EMIT changed();
    }
}

void JobDraft::set_fork(const JobFork& fork) {
    if (fork == fork_) return;
    fork_ = fork;
    Q_EMIT changed();
}

void JobDraft::set_choices(JobChoices choices) {
    choices_ = std::move(choices);
    Q_EMIT choices_changed();
}

void JobDraft::set_estimate(JobEstimate estimate) {
    estimate_ = std::move(estimate);
    Q_EMIT estimate_changed();
}

}  // namespace headscope::widgets
