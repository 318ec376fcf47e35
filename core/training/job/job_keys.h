// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The table of a job's keys. Reading TOML, --set, the window's form and writing TOML use it: a new key is one entry.

#include <functional>
#include <string>
#include <vector>

#include "core/base/option.h"
#include "core/training/job/job.h"

namespace headscope::training {

/// An option without `standard`: the default is what get() returns for JobFile().
struct JobKey : Option {
    std::string section;      ///< "" at the top
    bool may_change = false;  ///< when a run is resumed: it changes no computed number
    bool ends_run = false;    ///< may change on resume by the rule of run_end.h

    /// null where the key is not given. set(null) removes it; only optional keys accept that.
    std::function<nlohmann::json(const JobFile&)> get = {};
    std::function<void(JobFile&, const nlohmann::json&)> set = {};

    std::string full_name() const { return section.empty() ? name : section + "." + name; }
};

/// In file order, section after section.
const std::vector<JobKey>& job_keys();
const JobKey* find_key(const std::string& full_name);

/// headscope::checked_value(), and the content of tables: the form that set() accepts. `place` names the key in errors.
nlohmann::json checked_value(const JobKey& key, const nlohmann::json& value, const std::string& place);

/// Rules across keys: one of steps, tokens and minutes, one source of data, and so on.
void check_together(const JobFile& job);
/// The part that --set checks too: the tokens of an update fit a limit.
void check_sizes(const JobFile& job);

}  // namespace headscope::training
