// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The one table of a job's keys. Reading a TOML file, --set, the window's form and the writing of a full TOML file are
// all made of it: a new key is one entry there.

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/training/job/job.h"

namespace headscope::training {

enum class KeyKind {
    boolean,
    integer,  ///< also written 5e6
    number,
    text,
    choice,          ///< one of JobKey::choices
    path,            ///< a text that names a file or folder
    texts,           ///< a list of texts, or one
    paths,           ///< a list of files, folders, patterns, or one
    choices,         ///< a list of JobKey::choices
    pair,            ///< two numbers
    share_or_paths,  ///< a number, or a list of paths
    table,           ///< a generator with its options; options by mixer; a fixed token
};

struct JobKey {
    std::string section;  ///< "" at the top
    std::string name;
    KeyKind kind = KeyKind::text;
    std::string help;  ///< one line, for a form's tool tip and an explained file
    double lowest = -std::numeric_limits<double>::infinity(), highest = std::numeric_limits<double>::infinity();
    bool above = false;  ///< `lowest` itself is not allowed
    std::vector<std::string> choices = {};
    bool may_change = false;  ///< of a run that is resumed: it does not change what is computed
    bool ends_run = false;    ///< may change on resume by the rule of run_end.h

    /// Null: not given. set(null) takes it back to that; only keys that can be left out take it.
    std::function<nlohmann::json(const JobFile&)> get = {};
    std::function<void(JobFile&, const nlohmann::json&)> set = {};

    std::string full_name() const { return section.empty() ? name : section + "." + name; }
};

/// In the order in which a file has them, section after section.
const std::vector<JobKey>& job_keys();
const JobKey* find_key(const std::string& full_name);

/// Checks kind and range and brings the value into the form that set() takes. `place` names the key in errors.
nlohmann::json checked_value(const JobKey& key, const nlohmann::json& value, const std::string& place);

/// Rules across keys: one of steps, tokens and minutes, one thing to train on, and so on.
void check_together(const JobFile& job);
/// The part of it that --set must not pass by: an update's tokens are a number that can be counted.
void check_sizes(const JobFile& job);

}  // namespace headscope::training
