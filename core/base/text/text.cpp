// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/text/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <sstream>

#include "core/base/error.h"

namespace headscope {

std::size_t decode_utf8(std::string_view text, char32_t& point) {
    if (text.empty()) return 0;
    const auto lead = static_cast<unsigned char>(text[0]);
    std::size_t length = 0;
    char32_t lowest = 0;
    if (lead < 0x80) {
        point = lead;
        return 1;
    }
    if (lead >= 0xC2 && lead < 0xE0) {
        length = 2;
        point = lead & 0x1FU;
        lowest = 0x80;
    } else if (lead >= 0xE0 && lead < 0xF0) {
        length = 3;
        point = lead & 0x0FU;
        lowest = 0x800;
    } else if (lead >= 0xF0 && lead < 0xF5) {
        length = 4;
        point = lead & 0x07U;
        lowest = 0x10000;
    } else {
        return 0;
    }
    if (text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if ((byte & 0xC0U) != 0x80U) return 0;
        point = (point << 6U) | (byte & 0x3FU);
    }
    if (point < lowest || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return 0;
    return length;
}

std::size_t find_invalid_utf8(std::string_view text) {
    for (std::size_t i = 0; i < text.size();) {
        if (static_cast<unsigned char>(text[i]) < 0x80) {
            ++i;
            continue;
        }
        char32_t point = 0;
        const std::size_t length = decode_utf8(text.substr(i), point);
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

bool is_showable(char32_t point) {
    return !(point < 0x20 || (point >= 0x7F && point < 0xA0) || point == 0x061C || point == 0x200E || point == 0x200F ||
             (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF);
}

std::string showable_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
        out += escaped(text.substr(0, end), std::string::npos);
        if (end < text.size()) out += text[end];
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<const char*, 7> units = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    if (bytes < 1000) return std::to_string(bytes) + " B";
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    while (value >= 999.5 && unit + 1 < units.size()) {
        value /= 1000;
        ++unit;
    }
    std::array<char, 32> buffer{};
    const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    std::snprintf(buffer.data(), buffer.size(), "%.*f %s", digits, value, units[unit]);
    return buffer.data();
}

std::string utc_text(double seconds) {
    const auto time = static_cast<std::time_t>(std::clamp(std::isnan(seconds) ? 0.0 : seconds, 0.0, 2.5e11));
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    std::array<char, 32> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string utc_now() {
    return utc_text(static_cast<double>(std::time(nullptr)));
}

std::string printf_text(const char* format, double value) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), format, value);
    return text.data();
}

std::string prefixed_text(double value, int digits) {
    static constexpr std::array<const char*, 5> units{"", " k", " M", " G", " T"};
    std::size_t unit = 0;
    for (; value >= 1000 && unit + 1 < units.size(); ++unit) value /= 1000;
    char text[40];
    std::snprintf(text, sizeof text, "%.*g%s", digits, value, units[unit]);
    return text;
}

std::string count_text(std::uint64_t count) {
    std::string text = std::to_string(count);
    for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ' ');
    return text;
}

std::string shortened(std::string_view text, std::size_t most) {
    if (text.size() <= most) return std::string(text);
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
    const std::size_t left = text.size() - end;
    return std::string(text.substr(0, end)) + " … " + count_text(left) + (left == 1 ? " byte more" : " bytes more");
}

std::string list_text(const std::vector<std::string>& items, std::size_t most) {
    std::string text;
    for (std::size_t i = 0; i < std::min(items.size(), most); ++i) {
        if (i > 0) text += ", ";
        text += '"' + escaped(items[i]) + '"';
    }
    if (items.size() > most) text += " and " + std::to_string(items.size() - most) + " more";
    return text;
}

std::vector<std::string> separated_parts(const std::string& text, char separator) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
    return parts;
}

bool contains(const std::vector<std::string>& items, std::string_view item) {
    return std::find(items.begin(), items.end(), item) != items.end();
}

std::string joined_text(const std::vector<std::string>& items, std::string_view between) {
    std::string text;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) text += between;
        text += items[i];
    }
    return text;
}

}  // namespace headscope
