# SPDX-License-Identifier: GPL-3.0-or-later
# Everything but LibTorch and Arrow comes from Debian's packages (installer/packages.txt lists them).
include(FeatureSummary)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS CXX)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(ONIG REQUIRED IMPORTED_TARGET oniguruma)
find_package(tomlplusplus REQUIRED)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)

# Several processes that train together; without it the program trains in one.
if(HEADSCOPE_MPI)
  find_package(MPI COMPONENTS C)
endif()

add_library(headscope_hdf5 INTERFACE)
target_include_directories(headscope_hdf5 SYSTEM INTERFACE ${HDF5_CXX_INCLUDE_DIRS})
target_link_libraries(headscope_hdf5 INTERFACE ${HDF5_CXX_LIBRARIES})

if(HEADSCOPE_WINDOW)
  find_package(Qt6 REQUIRED COMPONENTS Core Gui Widgets PrintSupport Svg Test)
endif()
