// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <map>
#include <string>
#include <vector>

#include "core/workspace/head_sets.h"

namespace headscope::widgets {

class Study;

/// Marks, named sets and notes of the heads of every model of this session; they stay when an analysis is closed, and
/// all analyses of one checkpoint share them. Window's thread.
class HeadSetStore : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    /// Sets of the study's model; without any, empty ones that name the model.
    workspace::HeadSets of(const Study& study) const;
    /// Replaces what there is of that model.
    void put(workspace::HeadSets sets);

    /// For the session file: those that are not empty.
    std::vector<workspace::HeadSets> all() const;
    /// In place of all that there is.
    void restore(std::vector<workspace::HeadSets> all);

Q_SIGNALS:
    void changed();

private:
    std::map<std::string, workspace::HeadSets> sets_;  ///< by fingerprint, or name where there is none
};

}  // namespace headscope::widgets
