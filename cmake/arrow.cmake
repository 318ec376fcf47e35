# SPDX-License-Identifier: GPL-3.0-or-later
# Apache Arrow out of PyPI's wheel, for Parquet files; optional. installer/setup.sh unpacks two of its libraries, whose
# names end in a version, and its headers. libparquet finds libarrow in its own folder through its RUNPATH.

set(HEADSCOPE_ARROW "${CMAKE_SOURCE_DIR}/.deps/arrow" CACHE PATH "Folder with lib/ and include/ of the unpacked wheel")
if(NOT HEADSCOPE_PARQUET)
  return()
endif()
file(GLOB _arrow ${HEADSCOPE_ARROW}/lib/libarrow.so.*)
file(GLOB _parquet ${HEADSCOPE_ARROW}/lib/libparquet.so.*)
if(NOT _arrow OR NOT _parquet)
  message(STATUS "Parquet files cannot be read: no libparquet under ${HEADSCOPE_ARROW} (installer/setup.sh)")
  return()
endif()
add_library(arrow::arrow SHARED IMPORTED)
set_target_properties(arrow::arrow PROPERTIES IMPORTED_LOCATION ${_arrow}
  INTERFACE_INCLUDE_DIRECTORIES ${HEADSCOPE_ARROW}/include)
add_library(arrow::parquet SHARED IMPORTED)
set_target_properties(arrow::parquet PROPERTIES IMPORTED_LOCATION ${_parquet}
  IMPORTED_LINK_DEPENDENT_LIBRARIES arrow::arrow)
