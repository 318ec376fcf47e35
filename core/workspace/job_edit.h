// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// A form's change of one key as a change of the job's text, so that the text stays the one truth: what a person wrote
// around it, comments and order included, is kept.

#include <string>
#include <string_view>

#include "core/training/job/job.h"

namespace headscope::workspace {

/// The text with `assignment` ("training.steps=500", as set_key() of core/training takes it) put in; removes keys that
/// it replaces. Throws Error as read_job() and set_key() do: for a text that is no job, for a value that is refused.
/// A text that cannot be edited line by line (inline tables) is rewritten, every key of it.
std::string edited_job(std::string_view text, const std::string& assignment, const std::string& where = "job");

/// The same for a job that was changed otherwise: every key in which `wanted` differs from the text's is put in.
std::string edited_job(std::string_view text, const training::JobFile& wanted);

}  // namespace headscope::workspace
