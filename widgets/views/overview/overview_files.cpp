// SPDX-License-Identifier: GPL-3.0-or-later
#include "widgets/views/overview/overview_files.h"

#include <QCoreApplication>
#include <utility>
#include <variant>

#include "core/base/error.h"
#include "core/base/io/output_file.h"
#include "core/figures/table.h"
#include "widgets/file_dialog.h"

namespace headscope::widgets {
namespace {

/// For spreadsheets: the same fields as CSV; names of sites hold no tabs.
std::string tab_separated(const figures::Table& table) {
    std::string text;
    for (std::size_t c = 0; c < table.columns.size(); ++c) text += (c > 0 ? "\t" : "") + table.columns[c].name;
    text += '\n';
    for (std::size_t row = 0; row < table.rows(); ++row) {
        for (std::size_t c = 0; c < table.columns.size(); ++c) {
            if (c > 0) text += '\t';
            const auto& values = table.columns[c].values;
            if (const auto* numbers = std::get_if<std::vector<double>>(&values))
                text += figures::csv_number((*numbers)[row]);
            else if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&values))
                text += std::to_string((*whole)[row]);
            else
                text += std::get<std::vector<std::string>>(values)[row];
        }
        text += '\n';
    }
    return text;
}

}  // namespace

std::string TableCut::text(TableFormat format) const {
    if (format == TableFormat::latex) return workspace::latex_table(*table, rows, columns);
    const figures::Table plain = workspace::plain_table(*table, rows, columns);
    return format == TableFormat::csv ? figures::csv(plain) : tab_separated(plain);
}

void save_text(Desk* desk, Mailbox::Sender send, const std::filesystem::path& path, std::function<std::string()> make) {
    // No owner: the file is written even if the view or the window closes.
    desk->writer().post(nullptr, [=, send = std::move(send), make = std::move(make)](const Cancellation&) {
        QString failure;
        try {
            write_whole_file(path, make(), "table");
        } catch (...) {
            failure = QString::fromUtf8(current_error("table").what());
        }
        const QString name = QString::fromStdString(escaped(path.string()));
        send([desk, failure, name] {
            if (failure.isEmpty())
                Q_EMIT desk->told(QCoreApplication::translate("Overview", "Saved as %1").arg(name));
            else
                Q_EMIT desk->failed(failure);
        });
    });
}

void ask_for_path(QWidget* parent, const QString& title, const QString& name, TableFormat format,
                  std::function<void(const std::filesystem::path&)> take) {
    const bool latex = format == TableFormat::latex;
    FileQuestion question{title, latex ? QStringLiteral("LaTeX (*.tex)") : QStringLiteral("CSV (*.csv)")};
    question.mode = QFileDialog::AnyFile;
    question.suffix = latex ? QStringLiteral("tex") : QStringLiteral("csv");
    question.suggestion = name + QLatin1Char('.') + question.suffix;
    ask_for_file(parent, question, [take = std::move(take)](const QString& path) { take(path.toStdString()); });
}

}  // namespace headscope::widgets
