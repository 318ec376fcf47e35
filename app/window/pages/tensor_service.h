// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/process/worker.h"
#include "widgets/mailbox.h"
#include "widgets/views/tensors/tensor_source.h"

namespace headscope::app {

class Engine;
struct OpenModel;

/// Lists the tensors of the engine's open checkpoints. A thread of its own makes lists and numbers: runs and previews
/// do not wait for gigabytes to be read.
class TensorService : public widgets::TensorSource {
    Q_OBJECT
public:
    explicit TensorService(Engine* engine, QObject* parent = nullptr);
    ~TensorService() override;

    std::vector<Model> models() const override;
    void want_table(int model) override;
    void want_numbers(int model, const QString& tensor) override;
    void stop_numbers() override;

private:
    Engine* engine_;
    widgets::Mailbox mailbox_{this};
    Worker worker_;
};

/// All tensors of a checkpoint, with what the model makes of them. Half a second for half a million.
std::shared_ptr<const widgets::TensorTable> make_tensor_table(const OpenModel& model, const Cancellation& cancellation);

}  // namespace headscope::app
