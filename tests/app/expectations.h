// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "program.h"

namespace headscope::testing {

/// Exit status 1, exactly one line `headscope: [where] what was expected; what was found`, nothing on standard output.
void check_refusal(const Outcome& outcome);

/// check_refusal, and the line holds `part`.
void check_refusal(const Outcome& outcome, const std::string& part);

/// Exit status 2 and one line that begins with "headscope: ".
void check_usage_error(const Outcome& outcome);

void check_success(const Outcome& outcome);

}  // namespace headscope::testing
