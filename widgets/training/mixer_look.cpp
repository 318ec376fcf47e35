// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/training/mixer_look.h"

#include <QPainter>
#include <QPixmap>
#include <array>
#include <utility>

namespace headscope::widgets {
namespace {

struct Look {
    const char* name;
    const char* title;
    int colour;
};
// Of those with a state, which stand beside standard layers and NAtS-L, the colours come again.
constexpr std::array<Look, 30> kLooks{{{"standard", "Standard", 0},
                                       {"mlp", "MLP", 6},
                                       {"approximate", "Approximate", 1},
                                       {"non_approximate", "Non-approximate", 2},
                                       {"rnd_emb_qk", "RndEmbQK", 3},
                                       {"fixed_seq_qk", "FixedSeqQK", 4},
                                       {"static_emb_qk", "StaticEmbQK", 5},
                                       {"natsl", "NAtS-L", 3},
                                       {"gated_deltanet", "Gated DeltaNet", 2},
                                       {"deltanet", "DeltaNet", 4},
                                       {"mamba2", "Mamba2", 1},
                                       {"retnet", "RetNet", 5},
                                       {"gla", "Gated linear attention", 6},
                                       {"lightning", "Lightning attention", 5},
                                       {"kda", "Kimi delta attention", 4},
                                       {"lazy", "Lazy Attention", 6},
                                       {"sigmoid", "Sigmoid", 1},
                                       {"alibi", "ALiBi", 2},
                                       {"sink_logits", "Learned sink", 3},
                                       {"streaming_llm", "StreamingLLM", 4},
                                       {"sha", "SHA", 1},
                                       {"mqa", "MQA", 2},
                                       {"skv", "SKV", 3},
                                       {"el_att", "EL-att", 4},
                                       {"mhe_add", "MHE-ADD", 5},
                                       {"mhe_mul", "MHE-MUL", 6},
                                       {"ttt_linear", "TTT-Linear", 6},
                                       {"titans", "Titans", 3},
                                       {"fnet", "FNet", 2},
                                       {"linear", "Linear", 5}}};

}  // namespace

QColor mixer_colour(const Theme& theme, const std::string& mixer) {
    for (const Look& look : kLooks)
        if (mixer == look.name) return theme.categorical(look.colour);
    return theme.muted;
}

QString mixer_title(const std::string& mixer) {
    for (const Look& look : kLooks)
        if (mixer == look.name) return QString::fromLatin1(look.title);
    return QString::fromStdString(mixer);
}

QIcon swatch(const QColor& colour) {
    QPixmap picture(16, 16);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawRoundedRect(QRectF(1, 1, 14, 14), 4, 4);
    return QIcon(picture);
}

}  // namespace headscope::widgets
