// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <functional>
#include <memory>
#include <mutex>

namespace headscope::widgets {

/// Lets other threads hand results to an object of the window's thread that may be gone by the time they come: then
/// they are dropped. A member of that object; declare it after everything that the results touch.
class Mailbox {
public:
    explicit Mailbox(QObject* owner) : box_(std::make_shared<Box>()) { box_->owner = owner; }
    ~Mailbox() { close(); }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    /// From now on nothing arrives.
    void close() {
        const std::lock_guard lock(box_->mutex);
        box_->owner = nullptr;
    }

    /// May be copied to any thread, and called there: runs `letter` on the window's thread, or drops it.
    using Sender = std::function<void(std::function<void()> letter)>;
    Sender sender() const {
        return [box = box_](std::function<void()> letter) {
            const std::lock_guard lock(box->mutex);
            if (box->owner) QMetaObject::invokeMethod(box->owner, std::move(letter), Qt::QueuedConnection);
        };
    }

private:
    struct Box {
        std::mutex mutex;
        QObject* owner = nullptr;
    };
    std::shared_ptr<Box> box_;
};

}  // namespace headscope::widgets
