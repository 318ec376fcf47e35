// SPDX-License-Identifier: GPL-3.0-or-later
// Names of an analysis and of its sites, as lists and figures show them.
#include "core/base/error.h"
#include "core/base/site_name.h"
#include "core/figures/analysis_labels.h"
#include "widgets/desk/study.h"

namespace headscope::widgets {

QString Study::model_name() const {
    return QString::fromStdString(escaped(header_->model_name, 60));
}

QString Study::file_name() const {
    QString file = QString::fromStdString(escaped(path_.filename().string(), 80));
    for (const char* ending : {".partial", ".headscope.h5"})
        if (file.endsWith(QLatin1String(ending))) file.chop(static_cast<int>(QLatin1String(ending).size()));
    return file;
}

void Study::set_name(const QString& name) {
    QString kept = name.simplified().left(kMostName);
    if (kept == file_name()) kept.clear();
    if (kept == given_name_) return;
    given_name_ = kept;
    Q_EMIT renamed();
}

QString Study::site_name(std::int64_t site) const {
    return QString::fromStdString(site_label(header_->sites, site));
}

QString Study::site_title(std::int64_t site) const {
    return QString::fromStdString(headscope::site_title(header_->sites, site));
}

QString Study::site_heading(std::int64_t site) const {
    return QString::fromStdString(headscope::site_heading(header_->sites, site));
}

std::string Study::mixer(std::int64_t site) const {
    const auto layer = static_cast<std::size_t>(header_->sites.at(static_cast<std::size_t>(site)).layer);
    return layer < header_->mixers.size() ? header_->mixers[layer] : std::string();
}

std::vector<QString> study_labels(const std::vector<const Study*>& studies) {
    constexpr std::size_t longest = 120;
    std::vector<figures::UnnamedAnalysis> unnamed;
    for (const Study* one : studies)
        unnamed.push_back({&one->header(), one->path().filename().string(), one->given_name().toStdString()});
    std::vector<QString> labels;
    for (const std::string& label : figures::analysis_labels(unnamed))
        labels.push_back(QString::fromStdString(escaped(label, longest)));
    return labels;
}

std::vector<std::string> given_names(const std::vector<const Study*>& studies) {
    std::vector<std::string> names;
    bool given = false;
    for (const Study* one : studies) {
        names.push_back(one->given_name().toStdString());
        given = given || !names.back().empty();
    }
    return given ? names : std::vector<std::string>{};
}

}  // namespace headscope::widgets
