// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace headscope::widgets {

/// Lets other threads hand results to an object of the window's thread that may be gone by the time they come: then
/// they are dropped. A member of that object; declare it after everything that the results touch. Letters are opened
/// one an event, in the order in which they came. They lie in a queue of our own and not in Qt's events, for a lock
/// that ThreadSanitizer sees (Qt is not built with it) is what shows it that a result was made before it is read.
class Mailbox {
public:
    explicit Mailbox(QObject* owner) : box_(std::make_shared<Box>()) { box_->owner = owner; }
    ~Mailbox() { close(); }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    /// From now on nothing arrives; what waits is dropped.
    void close() {
        std::deque<Letter> dropped;  // their ends run without the lock
        const std::lock_guard lock(box_->mutex);
        box_->owner = nullptr;
        dropped.swap(box_->letters);
    }

    using Letter = std::function<void()>;
    /// May be copied to any thread, and called there: runs `letter` on the window's thread, or drops it.
    using Sender = std::function<void(Letter letter)>;
    Sender sender() const {
        return [box = box_](Letter letter) {
            const std::lock_guard lock(box->mutex);
            if (box->owner == nullptr) return;
            box->letters.push_back(std::move(letter));
            QMetaObject::invokeMethod(box->owner, Opener{box.get()}, Qt::QueuedConnection);
        };
    }

private:
    struct Box {
        std::mutex mutex;
        QObject* owner = nullptr;
        std::deque<Letter> letters;
    };
    /// Qt's event for a waiting letter; dropped with the owner, of which the box's Mailbox is a member.
    struct Opener {
        Box* box;
        void operator()() const {
            Letter letter;
            {
                const std::lock_guard lock(box->mutex);
                if (box->letters.empty()) return;
                letter = std::move(box->letters.front());
                box->letters.pop_front();
            }
            letter();  // may be the end of the owner, and of the box
        }
    };
    std::shared_ptr<Box> box_;
};

}  // namespace headscope::widgets
