# SPDX-License-Identifier: GPL-3.0-or-later
# LibTorch out of PyPI's wheel, imported by hand: find_package(Torch) of a CUDA wheel asks for the whole CUDA toolkit.
# installer/setup.sh unpacks it; the wheel's libraries find libcudart and libcupti beside them through their own RPATH.

set(HEADSCOPE_LIBTORCH "${CMAKE_SOURCE_DIR}/.deps/libtorch" CACHE PATH
    "Folder with torch/ and nvidia/ of the unpacked wheels")
if(NOT EXISTS ${HEADSCOPE_LIBTORCH}/torch/lib/libtorch_cpu.so)
  message(FATAL_ERROR "[HEADSCOPE_LIBTORCH] expected torch/lib/libtorch_cpu.so under ${HEADSCOPE_LIBTORCH}; "
                      "found none. Run installer/setup.sh first.")
endif()

set(_torch ${HEADSCOPE_LIBTORCH}/torch)
add_library(torch::c10 SHARED IMPORTED)
set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libc10.so)
add_library(torch::cpu SHARED IMPORTED)
set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libtorch_cpu.so)

add_library(headscope_torch INTERFACE)
target_include_directories(headscope_torch SYSTEM INTERFACE
  ${_torch}/include ${_torch}/include/torch/csrc/api/include)
target_link_options(headscope_torch INTERFACE -Wl,--no-as-needed
  -Wl,-rpath-link,${_torch}/lib:${HEADSCOPE_LIBTORCH}/nvidia/cu13/lib)
target_link_libraries(headscope_torch INTERFACE torch::cpu torch::c10)
