# SPDX-License-Identifier: GPL-3.0-or-later
# Warnings, sanitizers, ccache and the fast linker, in one place.

# Precompiled headers carry time stamps and macros that ccache must overlook. Paths in the checkout are
# relative to the build's folder, so that presets with the same options (release, core-only) share what is compiled.
find_program(HEADSCOPE_CCACHE ccache)
if(HEADSCOPE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_ABSSTDERR=1 ${HEADSCOPE_CCACHE})
endif()

# headscope_precompile(TARGET header...): headers of other people that most files of the target include. What it saves
# was measured (g++ 12, Zen 4, seconds of one file): CLI11, nlohmann-json and a Tensor 14 -> 5; QCustomPlot 6.8 -> 2;
# Qt's widgets and nlohmann-json 13 -> 6.5.
function(headscope_precompile target)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE -fpch-preprocess)
endfunction()

# Two sets that libraries share: `standard` (the standard library) and `torch` (that and LibTorch's tensors). Seconds of a
# file (g++ 12, Zen 4): a figure's scale 0.8 -> 0.3, a family 0.7 -> 0.4 (with the torch set 1.8), a tower 6.7 -> 2.8.
#   headscope_precompiled(TARGET standard|torch)
function(headscope_precompiled target set)
  if(NOT TARGET headscope_precompiled_${set})
    add_library(headscope_precompiled_${set} OBJECT ${CMAKE_SOURCE_DIR}/cmake/precompiled/carrier.cpp)
    target_link_libraries(headscope_precompiled_${set} PRIVATE headscope_options Threads::Threads)
    if(set STREQUAL "torch")
      target_link_libraries(headscope_precompiled_${set} PRIVATE headscope_torch)
      target_compile_definitions(headscope_precompiled_${set} PRIVATE AT_PER_OPERATOR_HEADERS)
    endif()
    headscope_precompile(headscope_precompiled_${set} ${CMAKE_SOURCE_DIR}/cmake/precompiled/${set}.h)
  endif()
  if(set STREQUAL "torch")
    # ATen/TensorOperators.h then takes the headers of single operators, not all of ATen/Functions.h.
    target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
  endif()
  target_compile_options(${target} PRIVATE -fpch-preprocess)
  target_precompile_headers(${target} REUSE_FROM headscope_precompiled_${set})
endfunction()

# Text files of the source tree as C++: writes OUTPUT, an ENTRY for each name, in which @name@ and @text@ stand for the
# name and the text of FILE, a path with @name@. A change of a file configures again.
#   headscope_embed_texts(OUTPUT FILE ENTRY NAME...)
function(headscope_embed_texts output file entry)
  set(entries "")
  foreach(name ${ARGN})
    string(REPLACE "@name@" "${name}" path "${CMAKE_SOURCE_DIR}/${file}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} text)
    string(REPLACE "@name@" "${name}" named "${entry}")
    string(REPLACE "@text@" "${text}" named "${named}")
    string(APPEND entries "${named}")
  endforeach()
  file(GENERATE OUTPUT ${output} CONTENT "${entries}")
endfunction()

# headscope_unity(TARGET): with HEADSCOPE_UNITY (preset release) a dozen files of the target are compiled as one. For what
# instantiates the same templates of Qt or LibTorch in every file: thirteen files of widgets/text take 6 s in place of 45,
# twelve of core/model 12 s (and 730 MB) in place of 49.
function(headscope_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HEADSCOPE_UNITY} UNITY_BUILD_BATCH_SIZE 12)
endfunction()

add_library(headscope_options INTERFACE)
target_compile_options(headscope_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
  $<$<BOOL:${HEADSCOPE_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of g++ 12 in std::string's operator+ (GCC bugs 105329, 105651), mended in 13.
  target_compile_options(headscope_options INTERFACE -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow)
endif()
target_include_directories(headscope_options INTERFACE ${CMAKE_SOURCE_DIR})

if(HEADSCOPE_SANITIZE)
  # g++ 12 takes std::regex for uninitialised under the sanitizers.
  target_compile_options(headscope_options INTERFACE -Wno-maybe-uninitialized)
endif()
if(HEADSCOPE_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=address,undefined)
elseif(HEADSCOPE_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(HEADSCOPE_SANITIZE)
  message(FATAL_ERROR "HEADSCOPE_SANITIZE: expected empty, address or thread; found ${HEADSCOPE_SANITIZE}")
endif()

# The wheel's libraries carry DT_RPATH; ours must too, or their neighbours are not found.
add_link_options(-Wl,--disable-new-dtags)
find_program(HEADSCOPE_MOLD mold)
if(HEADSCOPE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
