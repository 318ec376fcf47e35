// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/tokenizer/template/render.h"

#include "core/tokenizer/template/lexer.h"
#include "core/tokenizer/template/parser.h"

namespace headscope::tokenizer::chat {

std::string render(const std::string& source, const std::string& where, const Evaluator::Variables& variables,
                   const std::tm& now, Budget& budget) {
    std::size_t at = 0;
    try {
        const Body body = parse(source, at);
        return Evaluator(variables, now, budget, at).run(body);
    } catch (const Fault& fault) {
        throw Error(fault.code, where + ", " + place(source, at), fault.expected, fault.found);
    }
}

}  // namespace headscope::tokenizer::chat
