// SPDX-License-Identifier: GPL-3.0-or-later
// Nothing: a target that has precompiled headers for others has a source of its own.
