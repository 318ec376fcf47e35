// SPDX-License-Identifier: GPL-3.0-or-later
// A chain of variables to be followed, as RULER hides it: one statement at a time between lines of hay.
#include <algorithm>

#include "core/data/ruler/ruler.h"

namespace headscope::data {
namespace {

constexpr const char* kHay =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.\n";
constexpr std::int64_t kExampleLetters = 3;

struct Chain {
    std::vector<std::string> names, statements;
    std::string value;

    Chain(std::int64_t variables, std::int64_t letters, Random& random) {
        while (std::ssize(names) < variables) {
            std::string name;
            for (std::int64_t i = 0; i < letters; ++i) name += static_cast<char>('A' + random.below(std::int64_t{26}));
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
        value = std::to_string(10000 + random.below(std::int64_t{89999}));
        statements.push_back("VAR " + names[0] + " = " + value);
        for (std::size_t i = 1; i < names.size(); ++i)
            statements.push_back("VAR " + names[i] + " = VAR " + names[i - 1] + " ");
    }

    std::string question(const std::string& context) const {
        return "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n" + context +
               "\nQuestion: Find all variables that are assigned the value " + value + " in the text above.";
    }
    /// RULER's spelling: who compares says what it says.
    std::string prefix() const {
        return "Answer: According to the chain(s) of variable assignment in the text above, " +
               std::to_string(names.size()) + " variables are assgined the value " + value + ", they are:";
    }
};

/// Statements in their order among `lines` lines; `places`: one each, in order, as a share of the lines.
std::string context_of(const Chain& chain, const std::vector<double>& places, std::int64_t lines) {
    std::string text;
    const auto add = [&](const std::string& more) {
        if (!text.empty()) text += ' ';
        text += more;
    };
    std::size_t next = 0;
    for (std::int64_t line = 0; line <= lines; ++line) {
        for (; next < places.size() && static_cast<std::int64_t>(places[next] * static_cast<double>(lines + 1)) == line;
             ++next)
            add(chain.statements[next]);
        if (line < lines) add(kHay);
    }
    return text;
}

std::vector<double> draw_places(const Chain& chain, Random& random) {
    std::vector<double> places;
    for (std::size_t i = 0; i < chain.statements.size(); ++i) places.push_back(random.uniform());
    std::sort(places.begin(), places.end());
    return places;
}

class Tracing final : public RulerDraw {
public:
    Tracing(const TracingShape& shape, Random& random)
        : chain_(shape.variables, shape.letters, random), places_(draw_places(chain_, random)) {
        if (shape.example_lines >= 0) example_ = tracing_example(shape.variables, shape.example_lines, random);
    }
    RulerText text(std::int64_t units) const override {
        return {example_ + chain_.question(context_of(chain_, places_, units)), chain_.prefix(), chain_.names};
    }

private:
    Chain chain_;
    std::vector<double> places_;
    std::string example_;
};

}  // namespace

std::string tracing_example(std::int64_t variables, std::int64_t lines, Random& random) {
    const Chain chain(variables, kExampleLetters, random);
    const std::vector<double> places = draw_places(chain, random);
    std::string names;
    for (const std::string& name : chain.names) names += " " + name;
    return chain.question(context_of(chain, places, lines)) + " " + chain.prefix() + " " + names + "\n\n\n\n";
}

std::unique_ptr<RulerDraw> draw_tracing(const TracingShape& shape, Random& random) {
    return std::make_unique<Tracing>(shape, random);
}

}  // namespace headscope::data
