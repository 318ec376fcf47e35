// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/model/towers/moved_passes.h"

#include "core/model/device.h"

namespace headscope::model {
namespace {

class ProcessorProbe final : public Probe {
public:
    explicit ProcessorProbe(Probe& probe) : probe_(probe) {}

    bool wants(std::string_view name, LayerIndex layer) const override { return probe_.wants(name, layer); }
    void announce(std::string_view name, LayerIndex layer, const at::Tensor& value) override {
        probe_.announce(name, layer, probe_.reads_shapes_alone() ? value : on_processor(value));
    }
    const kernels::StatisticsRequest* request(SiteIndex site) override { return probe_.request(site); }
    void measured(const AttentionRecord& record) override {
        const at::Tensor query = on_processor(record.query), key = on_processor(record.key);
        const at::Tensor value = on_processor(record.value), output = on_processor(record.output);
        at::Tensor projection;
        if (record.output_projection) projection = on_processor(*record.output_projection);
        probe_.measured({record.site, record.description, query, key, value, output, record.rule, record.statistics,
                         record.output_projection ? &projection : nullptr});
    }
    Implicit implicit_request(SiteIndex site) override { return probe_.implicit_request(site); }
    void implicit(const ImplicitRecord& record) override {
        const at::Tensor weights = on_processor(record.weights);
        probe_.implicit({record.site, record.description, record.statistics, weights, record.deviation});
    }

private:
    Probe& probe_;
};

class ProcessorEditor final : public Editor {
public:
    explicit ProcessorEditor(Editor& editor) : editor_(editor) {}

    void begin(const Start& start) override { editor_.begin(start); }
    bool edits(const PointKey& key) const override { return editor_.edits(key); }
    at::Tensor edit(const EditPlace& place, const at::Tensor& value) override {
        EditPlace here = place;
        here.visible = on_processor(place.visible);
        const at::Tensor read = on_processor(value), changed = editor_.edit(here, read);
        return changed.is_same(read) ? value : on_device(changed, value.device());
    }
    at::Tensor stored_heads(const PointKey& key) const override { return editor_.stored_heads(key); }
    std::vector<std::int64_t> changed_heads(const PointKey& key) const override { return editor_.changed_heads(key); }
    void end() override { editor_.end(); }

private:
    Editor& editor_;
};

}  // namespace

MovedPasses::MovedPasses(const std::vector<Model::Pass>& given, const at::Device& device) : passes_(&given) {
    if (device.is_cpu()) return;
    for (const auto& [batch, options] : given) {
        Batch& own = batches_.emplace_back(*batch);
        for (at::Tensor* part : {&own.ids, &own.token_types, &own.target, &own.features})
            *part = on_device(*part, device);
        Model::Pass& pass = moved_.emplace_back(Model::Pass{&own, options});
        if (options.probe) {
            probes_.push_back(std::make_unique<ProcessorProbe>(*options.probe));
            pass.options.probe = probes_.back().get();
        }
        if (options.editor) {
            editors_.push_back(std::make_unique<ProcessorEditor>(*options.editor));
            pass.options.editor = editors_.back().get();
        }
    }
    passes_ = &moved_;
}

}  // namespace headscope::model
