// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QTemporaryDir>
#include <memory>
#include <string>

#include "core/base/process/worker.h"
#include "widgets/desk/run_shelf.h"
#include "widgets/mailbox.h"

namespace headscope {
class Spawned;
}
namespace headscope::app {

/// Measures what mixers cost here, for the cost view: `headscope cost --measure` as a child at a low priority.
class CostService : public QObject {
    Q_OBJECT
public:
    CostService(widgets::RunShelf* shelf, std::string program, QObject* parent = nullptr);
    ~CostService() override;

Q_SIGNALS:
    void failed(const QString& message);

private:
    void measure(const widgets::CostRequest& wish);
    void start(const widgets::CostRequest& wish, const QStringList& sizes);
    void ended(const widgets::CostRequest& wish);
    void fail(const QString& words);
    void stop();

    widgets::RunShelf* shelf_;
    std::string program_;
    std::shared_ptr<Spawned> process_;
    bool stopped_ = false;
    QTemporaryDir folder_;
    widgets::Mailbox mailbox_{this};
    Worker files_;
};

}  // namespace headscope::app
