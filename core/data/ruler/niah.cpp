// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <array>

#include "core/data/ruler/ruler.h"

namespace headscope::data {
namespace {

constexpr const char* kLine =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";
constexpr std::int64_t kDepths = 40;

std::string number(Random& random, std::int64_t digits) {
    std::int64_t least = 1;
    for (std::int64_t i = 1; i < digits; ++i) least *= 10;
    return std::to_string(least + random.below(9 * least));
}

/// A random one, version 4.
std::string uuid(Random& random) {
    std::array<std::uint64_t, 2> bits{random.next(), random.next()};
    bits[0] = (bits[0] & ~std::uint64_t{0xF000}) | 0x4000U;
    bits[1] = (bits[1] & ~(std::uint64_t{3} << 62U)) | (std::uint64_t{2} << 62U);
    std::string text;
    for (unsigned digit = 0; digit < 32; ++digit) {
        if (digit == 8 || digit == 12 || digit == 16 || digit == 20) text += '-';
        text += "0123456789abcdef"[(bits[digit / 16] >> (60U - 4U * (digit % 16))) & 15U];
    }
    return text;
}

class Niah final : public RulerDraw {
public:
    Niah(const NiahShape& shape, std::shared_ptr<const Essays> essays, Random& random)
        : shape_(shape), essays_(std::move(essays)) {
        while (std::ssize(keys_) < shape.key_count) {
            const std::string key = draw(shape.keys, random);
            if (std::find(keys_.begin(), keys_.end(), key) == keys_.end()) keys_.push_back(key);
        }
        for (const std::string& key : keys_) {
            std::vector<std::string>& values = values_.emplace_back();
            while (std::ssize(values) < shape.values_each) {
                const std::string value = draw(shape.values, random);
                if (std::find(values.begin(), values.end(), value) != values.end()) continue;
                values.push_back(value);
                needles_.push_back(needle(key, value));
            }
        }
        for (std::size_t i = needles_.size(); i > 1; --i)
            std::swap(needles_[i - 1], needles_[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
        if (shape.hay == RulerHay::essays) {
            depths_ = draw_different(random, kDepths, std::ssize(needles_));
            std::sort(depths_.begin(), depths_.end());
        } else {
            for (std::size_t i = 0; i < needles_.size(); ++i) places_.push_back(random.uniform());
            std::sort(places_.begin(), places_.end());
        }
        asked_ = draw_different(random, shape.key_count, shape.asked);
        hay_ = random.next();
    }

    RulerText text(std::int64_t units) const override {
        const bool one = shape_.asked * shape_.values_each == 1;
        const std::string kind = word(shape_.values), kinds = kind + "s", what = one ? kind : kinds;
        RulerText text;
        std::vector<std::string> asked;
        for (const std::int64_t key : asked_) {
            const auto place = static_cast<std::size_t>(key);
            asked.push_back(keys_[place]);
            text.outputs.insert(text.outputs.end(), values_[place].begin(), values_[place].end());
        }
        const std::string query = ruler_list(asked);
        text.input = (one ? "A special magic " + what + " is" : "Some special magic " + what + " are") +
                     " hidden within the following text. Make sure to memorize it. I will quiz you about the " + what +
                     " afterwards.\n" + context(units) + "\nWhat " + (one ? "is" : "are all") + " the special magic " +
                     what + " for " + query + " mentioned in the provided text?";
        text.gen_prefix =
            "The special magic " + what + " for " + query + " mentioned in the provided text " + (one ? "is" : "are");
        return text;
    }

private:
    static std::string word(RulerWord kind) { return kind == RulerWord::uuids ? "uuid" : "number"; }

    std::string draw(RulerWord kind, Random& random) const {
        switch (kind) {
            case RulerWord::words:
                return random_word(random);
            case RulerWord::numbers:
                return number(random, shape_.digits);
            case RulerWord::uuids:
                break;
        }
        return uuid(random);
    }
    std::string needle(const std::string& key, const std::string& value) const {
        return "One of the special magic " + word(shape_.values) + "s for " + key + " is: " + value + ".";
    }
    /// A unit of the hay. Keys of needles in the hay are never asked for.
    std::string hay(std::int64_t unit) const {
        if (shape_.hay == RulerHay::lines) return kLine;
        if (shape_.hay == RulerHay::essays)
            return essays_->sentences[static_cast<std::size_t>(unit % std::ssize(essays_->sentences))];
        Random random(hay_, static_cast<std::uint64_t>(unit));
        std::string key = draw(shape_.keys, random);
        while (std::find(keys_.begin(), keys_.end(), key) != keys_.end()) key = draw(shape_.keys, random);
        return needle(key, draw(shape_.values, random));
    }
    /// Units before a needle, out of `units`.
    std::int64_t place(std::size_t needle, std::int64_t units) const {
        if (shape_.hay == RulerHay::essays) return units * depths_[needle] / (kDepths - 1);
        return static_cast<std::int64_t>(places_[needle] * static_cast<double>(units + 1));
    }
    std::string context(std::int64_t units) const {
        const char between = shape_.hay == RulerHay::essays ? ' ' : '\n';
        std::string text;
        const auto add = [&](const std::string& more) {
            if (!text.empty()) text += between;
            text += more;
        };
        std::size_t next = 0;
        for (std::int64_t unit = 0; unit <= units; ++unit) {
            for (; next < needles_.size() && place(next, units) == unit; ++next) add(needles_[next]);
            if (unit < units) add(hay(unit));
        }
        return text;
    }

    NiahShape shape_;
    std::shared_ptr<const Essays> essays_;
    std::vector<std::string> keys_, needles_;
    std::vector<std::vector<std::string>> values_;  ///< of each key
    std::vector<std::int64_t> depths_;              ///< of needles, in 39ths of the essays
    std::vector<double> places_;                    ///< of needles, as a share of the lines
    std::vector<std::int64_t> asked_;
    std::uint64_t hay_ = 0;
};

}  // namespace

std::unique_ptr<RulerDraw> draw_niah(const NiahShape& shape, std::shared_ptr<const Essays> essays, Random& random) {
    return std::make_unique<Niah>(shape, std::move(essays), random);
}

}  // namespace headscope::data
