// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QObject>
#include <QString>
#include <QTemporaryDir>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "core/base/process/worker.h"
#include "core/figures/options/option_list.h"
#include "widgets/mailbox.h"

namespace headscope {
class Spawned;
}
namespace headscope::widgets {

/// Makes figures as the command line does: by running it. So what the window previews and writes is what
/// `headscope export` writes, byte for byte, and a figure that takes long holds up nothing.
class FigureMaker : public QObject {
    Q_OBJECT
public:
    struct Copy {
        QString format;
        QByteArray bytes;
        QImage picture;  ///< what a PNG shows; else null
        QString text;    ///< of other formats
    };

    /// `program`: the headscope to run. `reader` reads the pictures.
    FigureMaker(std::string program, Worker* reader, QObject* parent = nullptr);
    ~FigureMaker() override;  ///< what write() began goes on

    /// Draws the figure as a picture; cancels an older preview.
    void preview(const figures::FigureRequest& request, const std::vector<std::string>& files);
    /// Writes the figure; the ending says what: .pdf, .svg, .png, .csv.
    void write(const figures::FigureRequest& request, const std::vector<std::string>& files, const QString& output);
    /// For the clipboard: the bytes of a format ("png", "svg", "csv"), up to 32 MB of them.
    void copy(const figures::FigureRequest& request, const std::vector<std::string>& files, const QString& format);

Q_SIGNALS:
    void previewed(const QImage& picture);
    void preview_failed(const QString& message);
    void written(const QString& path);
    void failed(const QString& message);
    void copied(const headscope::widgets::FigureMaker::Copy& copy);

private:
    using Done = std::function<void(const QString& message)>;  ///< empty: it is there
    struct Work {
        std::shared_ptr<Spawned> process;
        Done done;          ///< none: given up
        bool kept = false;  ///< the user's: it goes on when this ends
    };
    using Works = std::list<Work>;
    /// end(): it could not be begun.
    Works::iterator start(const figures::FigureRequest& request, const std::vector<std::string>& files,
                          const QString& output, Done done);
    void ended(Works::iterator work);

    std::string program_;
    Worker* reader_;
    QTemporaryDir folder_;
    Works works_;
    Works::iterator previewing_ = works_.end();
    int count_ = 0;
    Mailbox mailbox_{this};
};

}  // namespace headscope::widgets
