// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// "mixers" of a native configuration: the given options of mixers, by name.

#include <map>
#include <string>

#include "core/mixers/types/type.h"

namespace headscope::mixers {

class MixerOptions {
public:
    void set(const MixerType& type, const std::string& key, OptionValue value) {
        given_[type.name][key] = std::move(value);
    }

    /// The given value or the default. `key` must be an option of the type, T its type.
    template <class T>
    T get(const MixerType& type, std::string_view key) const {
        for (const Option& option : type.options) {
            if (key == option.name) return std::get<T>(value(type, option));
        }
        throw std::bad_variant_access();
    }

    const OptionValue& value(const MixerType& type, const Option& option) const {
        const auto own = given_.find(type.name);
        if (own == given_.end()) return option.standard;
        const auto found = own->second.find(option.name);
        return found == own->second.end() ? option.standard : found->second;
    }

    /// True if every option has its default.
    bool are_standard(const MixerType& type) const {
        for (const Option& option : type.options) {
            if (value(type, option) != option.standard) return false;
        }
        return true;
    }

    bool operator==(const MixerOptions&) const = default;

private:
    std::map<std::string, std::map<std::string, OptionValue>> given_;
};

}  // namespace headscope::mixers
