// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/cost/formula.h"

#include <cctype>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/base/error.h"

namespace headscope::cost {
namespace {

/// Evaluates while it reads. Without letters every letter is 1: that is the check of a text.
class Reader {
public:
    Reader(std::string_view text, const Letters* letters) : text_(text), letters_(letters) {}

    double run() {
        const double value = sum();
        if (at_ != text_.size()) refuse("the end");
        return value;
    }

private:
    [[noreturn]] void refuse(const std::string& expected) const {
        throw Error(ErrorCode::internal, "formula " + std::string(text_),
                    "expected " + expected + " at character " + std::to_string(at_ + 1), "found another text");
    }
    char peek() {
        while (at_ < text_.size() && text_[at_] == ' ') ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool take(char wanted) {
        if (peek() != wanted) return false;
        ++at_;
        return true;
    }
    static bool starts_factor(char c) { return c == '(' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

    double sum() {
        double value = product();
        for (;;) {
            if (take('+'))
                value += product();
            else if (take('-'))
                value -= product();
            else
                return value;
        }
    }
    double product() {
        double value = factor();
        for (;;) {
            if (take('/'))
                value /= factor();
            else if (starts_factor(peek()))
                value *= factor();
            else
                return value;
        }
    }
    double factor() {
        const char c = peek();
        double value = 0;
        if (take('(')) {
            value = sum();
            if (!take(')')) refuse("a closing bracket");
        } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
            return number();
        } else if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
            ++at_;
            value = letter(c);
        } else {
            refuse("a number, a letter or a bracket");
        }
        return at_ < text_.size() && take('^') ? std::pow(value, number()) : value;
    }
    double number() {
        if (std::isdigit(static_cast<unsigned char>(peek())) == 0) refuse("a number");
        double value = 0;
        for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_)
            value = 10 * value + (text_[at_] - '0');
        return value;
    }
    double letter(char c) const {
        if (letters_ == nullptr) return 1;
        const auto it = letters_->find(c);
        if (it == letters_->end())
            throw Error(ErrorCode::internal, "formula " + std::string(text_), "expected a value of every letter",
                        std::string("found none of ") + c);
        return it->second;
    }

    std::string_view text_;
    const Letters* letters_;
    std::size_t at_ = 0;
};

}  // namespace

Formula::Formula(const char* text) : Formula(std::string(text)) {}

Formula::Formula(std::string text) : text_(std::move(text)) {
    if (!text_.empty()) Reader(text_, nullptr).run();
}

double Formula::operator()(const Letters& letters) const {
    return text_.empty() ? std::numeric_limits<double>::quiet_NaN() : Reader(text_, &letters).run();
}

std::string Formula::pretty() const {
    static const char* const raised[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    std::string result;
    bool exponent = false;
    for (const char c : text_) {
        if (c == '^') {
            exponent = true;
        } else if (exponent && c >= '0' && c <= '9') {
            result += raised[c - '0'];
        } else {
            exponent = false;
            result += c;
        }
    }
    return result;
}

}  // namespace headscope::cost
