// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/window/files/copy_file.h"

#include <QBuffer>
#include <QImage>
#include <vector>

#include "core/base/io/input_file.h"
#include "core/base/io/output_file.h"
#include "core/store/analysis/analysis_file.h"
#include "widgets/plots/colour_map.h"

namespace headscope::app {

void copy_whole(const std::filesystem::path& source, const std::filesystem::path& target,
                const Cancellation& cancellation) {
    const InputFile in(source);
    const std::vector<std::filesystem::path> inputs{source};
    OutputFile out(target, inputs, "analysis");
    std::vector<char> block(std::size_t{4} << 20U);
    for (std::uint64_t at = 0; at < in.size();) {
        cancellation.check();
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), in.size() - at));
        in.read(at, block.data(), size);
        out.append(block.data(), size);
        at += size;
    }
    out.publish();
}

QByteArray recent_picture(const store::AnalysisFile& file, bool dark) {
    constexpr int kSide = 64;
    const auto sites = static_cast<std::int64_t>(file.header().sites.size());
    const store::Values maps = file.thumbnail("maximum", 0, sites / 2);
    const auto side = maps.shape.at(1);
    QImage image(kSide, kSide, QImage::Format_RGB32);
    figures::ColourScale scale;
    scale.scale = figures::ScaleKind::logarithmic;
    scale.minimum = 1e-3;
    const auto& table = widgets::colour_table(figures::ColourMap::sequential, dark);
    for (int y = 0; y < kSide; ++y)
        for (int x = 0; x < kSide; ++x) {
            const double value = maps.data[static_cast<std::size_t>((y * side / kSide) * side + x * side / kSide)];
            image.setPixel(x, y,
                           widgets::colour_of(table, widgets::fraction(scale, value), dark ? 0xff2b2e34 : 0xffe9e9e9));
        }
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    image.save(&buffer, "PNG");
    return bytes;
}

}  // namespace headscope::app
