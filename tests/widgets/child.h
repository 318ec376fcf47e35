// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include <catch2/catch.hpp>

namespace headscope::tests {

/// The part of that name and kind; fails the test without one.
template <class T>
T* child(QWidget& parent, const char* name) {
    T* found = parent.findChild<T*>(QLatin1String(name));
    INFO(name);
    REQUIRE(found);
    return found;
}

}  // namespace headscope::tests
