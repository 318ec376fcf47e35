// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <hdf5.h>

namespace headscope::store::hdf5 {

/// A file driver over the library's POSIX one. HDF5 1.10 cannot survive a failed write: its cache keeps the block, the
/// file cannot be closed, and the process crashes at exit. This driver records the first failure of a write, flush or
/// truncation and writes nothing more; the library believes that all is well and closes, and writers check for failures
/// after each step.
///
/// Sets it in a file access list. Negative on failure, as the library's own.
herr_t use_latching_driver(hid_t access_list);

/// errno's value of the first write to this file that failed; 0: all is well. EIO when the library gave no number.
int write_failure(hid_t file);

/// True if the file was opened for reading while another process held it for writing. The library would refuse it. Here
/// it opens: a running job's partial file may be read at any time (analysis_writer_create.h), and the reader checks
/// whether it is one.
bool held_by_writer(hid_t file);

/// True if a read of it failed. The library (1.10) keeps the partly read structure, so that later reads fail, or worse,
/// although the disk has recovered: close such a file and reopen it (ReadHandle).
bool unsound(hid_t file);

/// errno's value of the last open or lock that failed on this thread, 0 when there is none; forgets it.
int take_refusal();

/// The error number in the text of the library's error stack, 0 when there is none. HDF5 keeps errno as text only.
int system_error_on_stack();

}  // namespace headscope::store::hdf5
