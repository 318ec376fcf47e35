// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

// The tensors of open checkpoints as the window shows them: values, made on other threads by the owner of the files.

#include <QObject>
#include <QString>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tokenizer/hashed/word_hash.h"

namespace headscope::widgets {

enum class TensorStatus : std::uint8_t {
    plain,       ///< of a checkpoint that cannot be run: nothing says what belongs to what
    matched,     ///< the model uses it
    missing,     ///< the model could use it, and the file lacks it
    left_over,   ///< in the file, and the model does not use it
    unreadable,  ///< in the file, of a kind that is not read
};
inline constexpr std::size_t kTensorStatuses = 5;

struct TensorRow {
    std::string name;
    std::vector<std::int64_t> shape;
    std::string type;  ///< as the file spells it; empty where it is not known
    std::int64_t elements = 0, bytes = 0;
    std::int32_t file = -1;  ///< index into TensorTable::files; -1: none
    TensorStatus status = TensorStatus::plain;
};

/// All tensors of one checkpoint, by name in the order of bytes.
struct TensorTable {
    int model = 0;
    QString name;  ///< of the checkpoint
    std::vector<TensorRow> rows;
    std::vector<QString> files;
    std::vector<QString> notes;  ///< how the weights were found, why tensors are unreadable
};

/// Numbers of one tensor; NaN where there are none. See core/checkpoint/tensor_summary.h.
struct TensorNumbers {
    std::int64_t elements = 0, zeros = 0, nans = 0, positive_infinities = 0, negative_infinities = 0;
    double minimum = 0, maximum = 0, mean = 0, deviation = 0, norm = 0;
    std::vector<double> edges;
    std::vector<std::int64_t> counts;
};

/// Window's thread; nothing waits, answers are signals.
class TensorSource : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;

    struct Model {
        int id = 0;
        QString name;
        QString path = {};
        std::shared_ptr<const tokenizer::WordHash> hash = {};  ///< of its hash embedding; null: it has none
    };
    virtual std::vector<Model> models() const = 0;
    /// The model whose tensors are looked at; 0: none.
    int chosen() const { return chosen_; }
    void choose(int model) {
        if (model == chosen_) return;
        chosen_ = model;
        Q_EMIT chosen_changed();
    }

    virtual void want_table(int model) = 0;
    /// Replaces an earlier request that is not done yet.
    virtual void want_numbers(int model, const QString& tensor) = 0;
    virtual void stop_numbers() = 0;

Q_SIGNALS:
    void models_changed();
    void chosen_changed();
    void table_ready(std::shared_ptr<const headscope::widgets::TensorTable> table);
    void numbers_progressed(int model, const QString& tensor, double share);
    void numbers_ready(int model, const QString& tensor,
                       std::shared_ptr<const headscope::widgets::TensorNumbers> numbers);
    void failed(int model, const QString& tensor, const QString& message);  ///< tensor empty: the table

private:
    int chosen_ = 0;
};

}  // namespace headscope::widgets
