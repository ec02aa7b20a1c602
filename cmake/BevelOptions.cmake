# Flags, sanitizers, compiler cache and linker, shared by every target through `bevel_flags`.

option(BEVEL_TESTS "Build the tests" ON)
option(BEVEL_WERROR "Treat warnings as errors" OFF)
set(BEVEL_SANITIZE "" CACHE STRING "Sanitizers, as given to -fsanitize= (for example address,undefined)")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Debug)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_C_FLAGS_DEBUG "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

# The runners' own progress lines stay readable: colour when a terminal shows them.
set(CMAKE_COLOR_DIAGNOSTICS ON)

find_program(BEVEL_CCACHE ccache)
if(BEVEL_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${BEVEL_CCACHE}")
  # Precompiled headers are cached only when told that macros and times in them do not matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env "CCACHE_SLOPPINESS=pch_defines,time_macros" "${BEVEL_CCACHE}")
endif()

find_program(BEVEL_MOLD mold)
if(BEVEL_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(bevel_flags INTERFACE)
target_compile_options(bevel_flags INTERFACE -Wall -Wextra -Wno-invalid-offsetof)
if(BEVEL_WERROR)
  target_compile_options(bevel_flags INTERFACE -Werror)
endif()
target_include_directories(bevel_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")

if(BEVEL_SANITIZE)
  add_compile_options(-fsanitize=${BEVEL_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${BEVEL_SANITIZE})
  if(BEVEL_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
