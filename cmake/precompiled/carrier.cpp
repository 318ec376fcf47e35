// SPDX-License-Identifier: GPL-3.0-or-later
// The file that carries a precompiled header for others to reuse.
