// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <hdf5.h>

namespace headscope::store::hdf5 {

/// A file driver of ours over the library's POSIX one. It exists because HDF5 1.10 cannot survive a failed write: its
/// cache keeps the block, the file cannot be closed, and the process crashes when it exits. Here the first failure of a
/// write, flush or truncation is remembered and nothing more is written; the library goes on believing that all is
/// well and closes in peace, while whoever writes asks after each step whether it is.
///
/// Sets it in a file access list. Negative on failure, as the library's own.
herr_t use_latching_driver(hid_t access_list);

/// errno's value of the first write to this file that failed; 0: all is well. EIO when the library gave no number.
int write_failure(hid_t file);

/// True when the file was opened for reading while another process held it for writing. The library would refuse it;
/// here it opens, for a running job's partial file may be read at any time (analysis_writer_create.h), and whoever
/// opened it finds out whether it is one.
bool held_by_writer(hid_t file);

/// True when a read of it failed. The library (1.10) goes on with what it has half read of the file's structure, so
/// that later reads fail, or worse, though the disk is well again: such a file is closed and opened anew (ReadHandle).
bool unsound(hid_t file);

/// errno's value of the last open or lock that failed on this thread, 0 when there is none; forgets it.
int take_refusal();

/// The error number in the text of the library's error stack, 0 when there is none. HDF5 keeps errno as text only.
int system_error_on_stack();

}  // namespace headscope::store::hdf5
