// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "widgets/desk/view.h"

namespace headscope::tests {

/// Opens an analysis into a desk, as the window does.
widgets::Study* open_study(widgets::Desk& desk, const std::filesystem::path& path);

/// Turns the event loop until nothing is read or drawn any more (at most `seconds`; then the test fails by what it
/// finds).
void settle(widgets::Desk& desk, double seconds = 20);

/// The view kind of that name; fails the test without one.
const widgets::ViewKind& view_kind(const std::string& name);

}  // namespace headscope::tests
