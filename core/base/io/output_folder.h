// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <span>
#include <string>

namespace headscope {

/// One output folder that appears whole or not at all: filled aside as NAME.partial (or NAME.2.partial ...; each made
/// exclusively, as OutputFile's), then renamed. Without publish() the destructor removes it with all that is in it.
/// Errors and threads: as OutputFile.
class OutputFolder {
public:
    /// Checks the destination and makes the empty temporary folder. `inputs`: folders that must not be the destination.
    /// `kind` names the output in errors: "checkpoint".
    explicit OutputFolder(const std::filesystem::path& destination, std::span<const std::filesystem::path> inputs = {},
                          std::string kind = "folder");
    ~OutputFolder();
    OutputFolder(const OutputFolder&) = delete;
    OutputFolder& operator=(const OutputFolder&) = delete;

    /// Folder for the output. Writers sync their files in it, as OutputFile does.
    const std::filesystem::path& partial_path() const noexcept { return partial_; }
    const std::filesystem::path& target() const noexcept { return target_; }

    /// Syncs the folder and renames it. An empty folder at the destination is replaced.
    void publish();

    /// Throws unless `destination` is absent or an empty folder, in a folder that exists, and is none of `inputs`.
    static void check_target(const std::filesystem::path& destination,
                             std::span<const std::filesystem::path> inputs = {});

private:
    std::filesystem::path target_;
    std::filesystem::path partial_;
    std::string kind_;
    bool published_ = false;
};

}  // namespace headscope
