// SPDX-License-Identifier: GPL-3.0-or-later
// An analysis file (HDF5) of ours, changed through HDF5 itself by the input's edits (hdf5_edits.h), then read
// whole. Not raw bytes: the parser of Debian's HDF5 1.10.8 has known memory errors that are not ours to mend (which is
// why the window leaves foreign files to a child), and they would hide what our own checks miss. With
// HEADSCOPE_FUZZ_HDF5_BYTES set in the environment, the input is instead the whole HDF5 file.
#include <cmath>
#include <cstdlib>

#include "core/store/analysis/analysis_file.h"
#include "tests/core/store/synthetic_analysis.h"
#include "tests/fuzz/check.h"
#include "tests/fuzz/targets/hdf5_edits.h"
#include "tests/fuzz/targets/targets.h"

namespace headscope::fuzz {
namespace {

void write_sample(const std::filesystem::path& path) {
    tests::SyntheticAnalysis analysis;
    analysis.lengths = {5, 3};
    analysis.layers = 2;
    analysis.heads = 2;
    analysis.key_value_heads = 1;
    analysis.key_size = 2;
    analysis.vocabulary = 4;
    analysis.record.maps = analysis.record.attention = analysis.record.states = analysis.record.logits = true;
    analysis.record.experts = true;
    analysis.record.norms = true;
    analysis.map_type = store::MapType::int16;
    tests::write_synthetic_analysis(path, analysis);
}

/// Every public question about a file that was opened, right or refused, within the sizes that it claims.
void read_all(const store::AnalysisFile& file) {
    constexpr std::int64_t most = 8;
    const store::AnalysisHeader& header = file.header();
    const auto sequences = std::min<std::int64_t>(most, static_cast<std::int64_t>(header.sequences.size()));
    const auto sites = std::min<std::int64_t>(most, static_cast<std::int64_t>(header.sites.size()));
    refusal([&] { file.check(); });
    for (const std::string& name : file.indicators()) refusal([&] { file.indicator(name); });
    refusal([&] { file.histogram_edges(); });
    for (const char* name : {"minimum", "maximum", "mean", "variance", "above"}) {
        refusal([&] { file.score_statistic(name); });
    }
    for (const char* name : {"offset", "slope", "distance_bias"}) refusal([&] { file.parameters(name); });
    for (std::int64_t s = 0; s < sequences; ++s) {
        refusal([&] { file.loss(s); });
        refusal([&] { file.logits(s, 0, 1); });
        for (std::int64_t site = 0; site < sites; ++site) {
            refusal([&] { file.site_done(s, site); });
            refusal([&] { file.column_mass(s, site); });
            refusal([&] { file.histogram(s, site); });
            refusal([&] { file.token_types(s, site); });
            refusal([&] { file.branch_weights(s, site); });
            refusal([&] { file.implicit(s, site, 1, {0, 2}, {0, 2}); });
            refusal([&] { file.implicit_deviation(s, site); });
            refusal([&] { file.experts(s, header.sites[static_cast<std::size_t>(site)].layer); });
            refusal([&] { file.value_products(s, site); });
            for (const char* name : {"mean", "maximum"}) refusal([&] { file.thumbnail(name, s, site); });
            for (const char* name : {"q_norm", "v_variance", "hidden_norm"})
                refusal([&] { file.state(name, s, site); });
            refusal([&] { file.attention_rows(s, site, 1, 0, 2); });
            refusal([&] {
                const auto map = file.map(s, site);
                if (!map) return;
                expect(map->query.size() == static_cast<std::size_t>(map->heads * map->queries * map->key_size),
                       "as many queries as the map says");
                map->input();
            });
        }
    }
}

}  // namespace

void run_analysis(std::string_view input) {
    static const EditedFile file(write_sample);
    static const bool raw = std::getenv("HEADSCOPE_FUZZ_HDF5_BYTES") != nullptr;
    // HDF5 wants a path that leads somewhere, which /proc/self/fd/N of a file in memory does not.
    const auto path = raw ? file.replaced(input) : file.edited(input);
    refusal([&] { read_all(*store::AnalysisFile::open(path)); });
}

}  // namespace headscope::fuzz
