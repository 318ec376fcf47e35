// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/commands/ask/ask_tool.h"

namespace headscope::app {

#define HEADSCOPE_ASK_TOOL(make) std::unique_ptr<AskTool> make();
#include "app/commands/ask/tools/list.inc"
#undef HEADSCOPE_ASK_TOOL

std::vector<std::unique_ptr<AskTool>> ask_tools() {
    std::vector<std::unique_ptr<AskTool>> tools;
#define HEADSCOPE_ASK_TOOL(make) tools.push_back(make());
#include "app/commands/ask/tools/list.inc"
#undef HEADSCOPE_ASK_TOOL
    return tools;
}

}  // namespace headscope::app
