// SPDX-License-Identifier: GPL-3.0-or-later
// Precompiled for every library without LibTorch: what half of their files include, and little else. Each file
// instantiates what templates the inline functions of these headers use, wanted or not: nlohmann-json here would cost
// 0.4 s in each of them.
#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
